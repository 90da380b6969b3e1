#include "tools/advise/probe.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "advisor/advice/how.h"
#include "base/times.h"
#include "report/text.h"
#include "skeleton/c_program.h"
#include "skeleton/scale.h"
#include "tools/advise/probe_plan.h"
#include "tools/skeleton/launch.h"
#include "tools/skeleton/skeleton_build.h"
#include "tools/skeleton/statistics.h"
#include "tools/support/environment.h"
#include "tools/support/progress.h"

namespace lbf::tools {
namespace {

namespace fs = std::filesystem;
using advisor::Ranked;

constexpr const char* kConfig = "/etc/lbf/advise.toml";
constexpr const char* kLimitKey = "probe_node_seconds";
constexpr std::size_t kMostCandidates = 4;  // beside what runs now
// Ending a run takes srun a moment, which counts.
constexpr Seconds kEndS = 1;

double elapsed_s(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// Where the skeleton is compiled: the working folder, because nodes have a /tmp of their own.
class WorkFolder {
 public:
  static Result<WorkFolder> make() {
    std::error_code error;
    std::string path = (fs::current_path(error) / ".lbf-probe-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr)
      return Error{ErrorCode::kIo,
                   "--probe: cannot make a folder for the skeleton here; run it where the nodes see your files"};
    return WorkFolder(path);
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // The same from the working folder, whose own name may have blanks: among the flags of srun they would end
  // a word.
  std::string file_from_here(const std::string& name) const {
    return "./" + fs::path(path_).filename().string() + "/" + name;
  }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<void> write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return Error{ErrorCode::kIo, path + ": cannot write"};
}

class Prober {
 public:
  Prober(AdviseResult& result, const advisor::Objective& objective, const ProbeOptions& options)
      : result_(result), objective_(objective), options_(options) {}

  Result<void> run() {
    ProbeResult& probe = result_.probe.emplace();
    probe.budget_node_s = options_.budget_node_s;
    make_short_list();
    if (rows_.size() < 2) {
      probe.decision = "nothing was probed: replay leaves no two placements to decide between";
      return {};
    }
    BuildOptions build;
    build.trace = options_.trace;
    build.server = options_.server;
    if (result_.baseline.measured_s) build.application_s = *result_.baseline.measured_s;
    const Result<BuiltSignature> built = build_signature(build);
    if (!built) return built.error();
    const Seconds application_s = built->signature.application_s;
    if (!(application_s > 0)) return invalid_input("--probe: the trace has no times at all: no skeleton can be scaled");
    const Seconds shortest_s = skeleton::dominant_sequence(built->signature).shortest_good_s;
    const ProbePlan plan = plan_probe(list_, application_s, shortest_s, options_.budget_node_s);
    if (plan.candidates == 0) {
      probe.decision = "nothing was probed: " + plan.why_not;
      return {};
    }
    probe.factor = plan.factor;
    rows_.resize(plan.candidates);
    if (Result<void> ran = measure(*built, plan); !ran) return ran;
    decide();
    return {};
  }

 private:
  struct Row {
    ProbeRow row;
    const Ranked* ranked;
    std::vector<std::string> words;
  };

  // What runs now first: everything is compared with it.
  void make_short_list() {
    const Ranked& now = result_.baseline.now;
    if (!now.candidate.needs_host_file() && now.verdict == advisor::Verdict::kReplayed) {
      const engine::Target& target = now.candidate.target;
      advisor::Candidate like = now.candidate;
      like.set.by_name = false;  // the trace does not know its nodes' names
      add({}, now, advisor::srun_flags(like, ""),
          fmt::format("now: {} node{}", target.nodes, target.nodes == 1 ? "" : "s"));
    }
    std::size_t taken = 0;
    for (std::size_t i = 0; i < result_.ranking.ranked.size() && taken < kMostCandidates; ++i) {
      const Ranked& one = result_.ranking.ranked[i];
      if (one.verdict != advisor::Verdict::kReplayed || !objective_.allows(one.time_s, one.node_hours())) continue;
      const bool is_now = !now.candidate.needs_host_file() &&
                          advisor::computes_alike(one.candidate.target, now.candidate.target) &&
                          one.candidate.set.partition == now.candidate.set.partition;
      if (is_now && !rows_.empty()) continue;
      add(i, one, "", advisor::describe(one.candidate));
      ++taken;
    }
  }

  void add(std::optional<std::size_t> candidate, const Ranked& ranked, const std::string& flags, std::string where) {
    Row row{{candidate, std::move(where), {}, 0, {}}, &ranked, {}};
    std::istringstream words(flags);
    for (std::string word; words >> word;) row.words.push_back(word);
    rows_.push_back(std::move(row));
    list_.push_back({ranked.time_s, ranked.candidate.target.nodes});
  }

  Result<void> measure(const BuiltSignature& built, const ProbePlan& plan) {
    const Result<Launcher> launcher = Launcher::parse(options_.launcher);
    if (!launcher) return launcher.error();
    const Result<WorkFolder> folder = WorkFolder::make();
    if (!folder) return folder.error();
    const skeleton::ScaledSignature scaled = skeleton::scale(built.signature, plan.factor);
    const Result<std::string> text = skeleton::c_program(built.signature, scaled, options_.trace);
    if (!text) return text.error();
    const std::string source = folder->file("skeleton.c");
    const std::string program = folder->file("skeleton");
    if (Result<void> written = write(source, *text); !written) return written;
    if (Result<void> compiled = compile_skeleton(options_.compiler, source, program); !compiled) {
      return Error{compiled.error().code, "--probe: " + compiled.error().message};
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      if (row.row.candidate) {
        const std::string hosts = folder->file_from_here("hosts." + std::to_string(i));
        if (row.ranked->candidate.needs_host_file()) {
          if (Result<void> written = write(hosts, advisor::host_file_of(row.ranked->candidate)); !written)
            return written;
        }
        std::istringstream words(advisor::srun_flags(row.ranked->candidate, hosts));
        for (std::string word; words >> word;) row.words.push_back(word);
      }
      row.words.insert(row.words.begin(), launcher->command.begin(), launcher->command.end());
    }
    Progress progress("lbf-advise", "of the probes done");
    std::optional<double> rate;
    for (Row& row : rows_) {
      if (rate) break;
      run_once(row, program, plan, rate);
      row.row.times_s.clear();  // the first run measures the processor
    }
    for (int round = 0; round < plan.repeat; ++round) {
      for (Row& row : rows_) {
        progress.show(result_.probe->spent_node_s / std::max(1.0, plan.cost_node_s));
        if (row.row.why_failed.empty()) run_once(row, program, plan, rate);
      }
    }
    for (Row& row : rows_) {
      if (!row.row.times_s.empty()) {
        const std::vector<Seconds> one{1.0};
        row.row.application_s = scaled_ratio(static_cast<double>(plan.factor), row.row.times_s, one).value;
      }
    }
    return {};
  }

  void run_once(Row& row, const std::string& program, const ProbePlan& plan, std::optional<double>& rate) {
    ProbeResult& probe = *result_.probe;
    const std::uint32_t nodes = row.ranked->candidate.target.nodes;
    const double left_node_s = probe.budget_node_s - probe.spent_node_s;
    if (left_node_s < probe_run_node_s({row.ranked->time_s, nodes}, plan.factor)) {
      row.row.why_failed = "the budget was over";
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    const Result<SkeletonRun> ran = run_skeleton(row.words, program, rate, std::max(0.1, left_node_s / nodes - kEndS));
    probe.spent_node_s += nodes * elapsed_s(start);
    if (!ran) {
      row.row.why_failed = ran.error().message;
      return;
    }
    if (!rate) rate = ran->rate;
    row.row.times_s.push_back(ran->seconds);
  }

  double value_of(const Row& row) const {
    return objective_.value(row.row.application_s, row.ranked->candidate.node_hours(row.row.application_s));
  }

  void decide() {
    std::stable_sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
      const bool a_measured = !a.row.times_s.empty();
      const bool b_measured = !b.row.times_s.empty();
      if (!a_measured || !b_measured) return a_measured && !b_measured;
      return value_of(a) < value_of(b);
    });
    const Row& best = rows_.front();
    const auto now = std::find_if(rows_.begin(), rows_.end(), [](const Row& row) { return !row.row.candidate; });
    std::string decision;
    if (best.row.times_s.empty()) {
      decision = "no probe succeeded: the advice is the replay's";
    } else if (!best.row.candidate) {
      advise_nothing(decision = "by its skeleton the program is fastest as it runs now");
    } else if (now == rows_.end() || now->row.times_s.empty()) {
      const advisor::Saying by_replay = result_.baseline.say(result_.trust, *best.ranked);
      if (!by_replay.has_interval()) {
        advise_nothing(decision =
                           "what runs now was not measured, and to compare with it by replay there is no number: " +
                           by_replay.why);
      } else {
        choose(best,
               advisor::gain_of(objective_.value(result_.baseline.time_s(),
                                                 result_.baseline.now.candidate.node_hours(result_.baseline.time_s())),
                                objective_.value(best.ranked->time_s, best.ranked->node_hours()),
                                by_replay.half_width_percent));
        decision =
            "the skeleton decides for " + best.row.where + "; what runs now was not measured, its gain is the replay's";
      }
    } else {
      const double scale =
          objective_.goal == advisor::Goal::kTime
              ? 1.0
              : static_cast<double>(best.ranked->candidate.target.nodes) / now->ranked->candidate.target.nodes;
      const Estimate ratio = scaled_ratio(scale, best.row.times_s, now->row.times_s);
      const double high = ratio.bounds ? ratio.bounds->high : 1;
      if (high >= 1) {
        advise_nothing(decision =
                           fmt::format("by its skeleton {} is {:.1f} % better than now, less than the runs differ",
                                       best.row.where, 100 * (1 - ratio.value)));
      } else {
        choose(best, {100 * (1 - ratio.value), 100 * (1 - high), 100 * (1 - ratio.bounds->low)});
        decision = "the skeleton decides for " + best.row.where;
      }
    }
    for (Row& row : rows_) result_.probe->rows.push_back(std::move(row.row));
    result_.probe->decision = std::move(decision);
  }

  void choose(const Row& row, const advisor::Gain& gain) {
    result_.advice.chosen = row.row.candidate;
    result_.advice.gain = gain;
    result_.advice.why_not.clear();
    result_.advice.reasons = {fmt::format("a skeleton (K = {}) was measured there now, {} runs", result_.probe->factor,
                                          row.row.times_s.size())};
  }

  void advise_nothing(const std::string& why) {
    result_.advice.chosen.reset();
    result_.advice.reasons.clear();
    result_.advice.why_not = why;
  }

  AdviseResult& result_;
  const advisor::Objective& objective_;
  const ProbeOptions& options_;
  std::vector<Row> rows_;
  std::vector<ProbeCandidate> list_;  // of rows_, before they are run
};

}  // namespace

Result<double> probe_limit_node_s() {
  const std::string path = from_environment("LBF_ADVISE_CONFIG", kConfig);
  std::error_code error;
  if (!fs::exists(path, error)) return kProbeDefaultNodeS;
  try {
    const toml::table table = toml::parse_file(path);
    for (const auto& [key, value] : table) {
      if (key.str() != kLimitKey) return invalid_input(path + ": unknown key " + std::string(key.str()));
      const std::optional<double> limit = value.value<double>();
      if (!limit || !(*limit >= 0))
        return invalid_input(path + ": " + kLimitKey + " must be a number of node-seconds, 0 or more");
      return *limit;
    }
  } catch (const toml::parse_error& wrong) {
    return invalid_input(path + ": " + std::string(wrong.description()));
  }
  return kProbeDefaultNodeS;
}

Result<void> probe(AdviseResult& result, const advisor::Objective& objective, const ProbeOptions& options) {
  return Prober(result, objective, options).run();
}

std::string probe_text(const ProbeResult& probe) {
  std::string out;
  if (!probe.rows.empty()) {
    out +=
        fmt::format("Probes: {:.0f} of {:.0f} node-seconds, skeletons with K = {}.\n{:44} {:>12} {:>11} {:>5}\n",
                    probe.spent_node_s, probe.budget_node_s, probe.factor, "Where", "Application", "Skeleton", "Runs");
    for (const ProbeRow& row : probe.rows) {
      const std::string where = report::fit(report::printable(row.where), 44, true);
      if (row.times_s.empty()) {
        out += where + "   " + report::printable(row.why_failed) + "\n";
        continue;
      }
      out += fmt::format("{} {:>12} {:>11} {:>5}\n", where, format_duration(row.application_s),
                         format_duration(quartiles_of(row.times_s).median), row.times_s.size());
    }
  }
  return out + report::wrap("Probe: " + report::printable(probe.decision) + ".", report::kTextWidth, 0);
}

}  // namespace lbf::tools
