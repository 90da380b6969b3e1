// Schedule, see schedule.h.
#include "advisor/advice/schedule.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "advisor/advice/how.h"
#include "base/number.h"
#include "base/scoped_fd.h"

namespace lbf::advisor {
namespace {

// Above what is predicted: two runs of one job differ, and one that reaches its limit is killed.
constexpr double kTimeLimitFactor = 1.25;
constexpr Seconds kTimeBesideTheRunS = 60;

// Gone with the object. Empty path: it could not be written.
class TemporaryHostFile {
 public:
  explicit TemporaryHostFile(const std::string& text) {
    const char* const folder = std::getenv("TMPDIR");
    std::string path = folder != nullptr && *folder != '\0' ? folder : "/tmp";
    // It becomes one word among srun's flags.
    if (path.find(' ') != std::string::npos) path = "/tmp";
    path += "/lbf-advise-XXXXXX";
    const ScopedFd file(::mkstemp(path.data()));
    if (!file) return;
    path_ = path;
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) remove();
  }
  ~TemporaryHostFile() { remove(); }
  TemporaryHostFile(const TemporaryHostFile&) = delete;
  TemporaryHostFile& operator=(const TemporaryHostFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  void remove() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }
  std::string path_;
};

std::vector<std::string> words_of(const std::string& flags) {
  std::istringstream in(flags);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// What a candidate wants of Slurm: all but how the ranks are spread over it.
std::string wants(const Candidate& candidate) {
  if (!candidate.needs_host_file()) {
    std::string key;
    for (const std::string& word : words_of(srun_flags(candidate, {}))) {
      if (word.rfind("--distribution=", 0) != 0) key += word + ' ';
    }
    return key;
  }
  std::map<std::string, std::uint32_t> ranks_of;
  for (const std::uint32_t node : candidate.target.node_of_rank) ++ranks_of[candidate.node_names[node]];
  std::string key = candidate.set.partition + (candidate.overcommits ? " overcommit" : "");
  for (const auto& [node, ranks] : ranks_of) key += fmt::format(" {}={}", node, ranks);
  return key;
}

class Scheduler {
 public:
  Scheduler(StartSource& slurm, const ScheduleOptions& options) : slurm_(slurm), options_(options) {
    schedule_.asked_at_s = options.now_s;
  }

  Result<Schedule> run(Ranking& ranking, Baseline& baseline, const Objective& objective) {
    limit(baseline.now, baseline.time_s(), baseline);
    if (Result<void> asked = ask(baseline.now, baseline.is_what_ran ? Layout::kAsItRan : Layout::kAsAdvised); !asked)
      return asked.error();
    // It is no candidate: what it ends before or after is for the advice to say.
    schedule_.known = 0;
    first_end_s_ = std::numeric_limits<double>::infinity();
    std::vector<Ranked*> order;
    for (Ranked& one : ranking.ranked) {
      if (one.verdict != Verdict::kReplayed || !objective.allows(one.time_s, one.node_hours())) continue;
      limit(one, one.time_s, baseline);
      order.push_back(&one);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Ranked* a, const Ranked* b) { return a->time_s < b->time_s; });
    for (Ranked* one : order) {
      if (!worth_asking(*one)) continue;
      if (Result<void> asked = ask(*one, Layout::kAsAdvised); !asked) schedule_.why_stopped = asked.error().message;
    }
    std::stable_sort(ranking.ranked.begin(), ranking.ranked.end(), [](const Ranked& a, const Ranked& b) {
      if (a.start.at_s.has_value() != b.start.at_s.has_value()) return a.start.at_s.has_value();
      return a.start.at_s && *a.ends_at_s() < *b.ends_at_s();
    });
    return std::move(schedule_);
  }

 private:
  void limit(Ranked& one, Seconds time_s, const Baseline& baseline) const {
    one.start.time_limit = options_.time_limit.empty()
                               ? time_limit_of(time_s, baseline.say(options_.trust, one).half_width_percent)
                               : options_.time_limit;
  }

  // Counts those for which it is not.
  bool worth_asking(const Ranked& one) {
    const bool known = !wanted_.insert(wants(one.candidate)).second;
    if (known || options_.now_s + one.time_s >= first_end_s_ || !schedule_.why_stopped.empty()) {
      ++schedule_.not_asked;
      return false;
    }
    if (schedule_.questions < kMostQuestions) return true;
    ++schedule_.beyond_bound;
    return false;
  }

  // Empty: the partition allows it, or nobody knows.
  std::string why_too_long(const Ranked& one) const {
    if (options_.cluster == nullptr) return {};
    const std::optional<Seconds> limit_s = parse_time_limit(one.start.time_limit);
    for (const Partition& partition : options_.cluster->partitions) {
      const std::string& wanted = one.candidate.set.partition;
      const bool meant = wanted.empty() ? partition.is_default : partition.name == wanted;
      if (!meant || partition.max_time_s <= 0 || !limit_s || *limit_s <= partition.max_time_s) continue;
      return fmt::format("its time limit ({:g} minutes) is above the partition's ({:g} minutes)", *limit_s / 60,
                         partition.max_time_s / 60);
    }
    return {};
  }

  // kAsItRan: nobody knows the nodes' names any more.
  enum class Layout : std::uint8_t { kAsAdvised, kAsItRan };
  Result<void> ask(Ranked& one, Layout layout) {
    one.start.why_not = why_too_long(one);
    if (!one.start.why_not.empty()) return {};
    const std::string hosts = layout == Layout::kAsItRan ? std::string() : host_file_of(one.candidate);
    const TemporaryHostFile file(hosts);
    if (!hosts.empty() && file.path().empty()) {
      one.start.why_not = "no temporary host file could be written";
      return {};
    }
    const std::string flags =
        layout == Layout::kAsItRan ? srun_flags_of_what_ran(one.candidate) : srun_flags(one.candidate, file.path());
    ++schedule_.questions;
    Result<StartAnswer> answer = slurm_.ask(words_of(flags_with_limit(flags, one.start)));
    if (options_.progress) options_.progress(static_cast<double>(schedule_.questions) / kMostQuestions);
    if (!answer) return answer.error();
    one.start.why_not = answer->why_not;
    if (!answer->at_s) return {};
    one.start.at_s = std::max(*answer->at_s, options_.now_s);
    ++schedule_.known;
    first_end_s_ = std::min(first_end_s_, *one.ends_at_s());
    return {};
  }

  StartSource& slurm_;
  const ScheduleOptions& options_;
  Schedule schedule_;
  std::set<std::string> wanted_;
  double first_end_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::string time_limit_of(Seconds time_s, double error_percent) {
  const Seconds limit_s = time_s * (1 + error_percent / 100) * kTimeLimitFactor + kTimeBesideTheRunS;
  return fmt::format("{:.0f}", std::max(1.0, std::ceil(limit_s / 60)));
}

std::optional<Seconds> parse_time_limit(std::string_view text) {
  const std::size_t dash = text.find('-');
  std::vector<double> numbers;
  const auto read = [&](std::string_view digits) {
    const auto value = parse_number<unsigned>(digits);
    if (value) numbers.push_back(*value);
    return value.has_value();
  };
  if (dash != std::string_view::npos && !read(text.substr(0, dash))) return std::nullopt;
  std::string_view rest = dash == std::string_view::npos ? text : text.substr(dash + 1);
  for (;;) {
    const std::size_t colon = rest.find(':');
    if (!read(rest.substr(0, colon))) return std::nullopt;
    if (colon == std::string_view::npos) break;
    rest = rest.substr(colon + 1);
  }
  // Seconds of each number: behind days hours are first, else one or two numbers begin with minutes.
  constexpr std::array<double, 4> kUnits = {86400, 3600, 60, 1};
  const std::size_t first = dash != std::string_view::npos ? 0 : numbers.size() == 3 ? 1 : 2;
  if (first + numbers.size() > kUnits.size()) return std::nullopt;
  Seconds sum_s = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) sum_s += numbers[i] * kUnits[first + i];
  return sum_s;
}

Result<Schedule> schedule(Ranking& ranking, Baseline& baseline, const Objective& objective, StartSource& slurm,
                          const ScheduleOptions& options) {
  return Scheduler(slurm, options).run(ranking, baseline, objective);
}

std::string flags_with_limit(std::string flags, const Start& start) {
  if (!start.time_limit.empty()) flags += " --time=" + start.time_limit;
  return flags;
}

}  // namespace lbf::advisor
