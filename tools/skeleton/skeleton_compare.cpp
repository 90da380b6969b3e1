#include "tools/skeleton/skeleton_compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "report/text.h"
#include "skeleton/about.h"
#include "skeleton/activity.h"
#include "skeleton/skeleton_trace.h"
#include "tools/skeleton/skeleton_build.h"
#include "tools/skeleton/skeleton_message.h"

namespace lbf::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameWidth = 18;
constexpr std::size_t kBarWidth = 20;

// A folder of our own for a private lbfd, gone at the end.
class CaptureFolder {
 public:
  static Result<CaptureFolder> make() {
    const char* const base = std::getenv("TMPDIR");
    std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/lbf-skeleton-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return Error{ErrorCode::kIo, "cannot make " + path};
    return CaptureFolder(path);
  }
  CaptureFolder(CaptureFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  CaptureFolder& operator=(CaptureFolder&&) = delete;
  ~CaptureFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

  // The one stored trace below it. Errors: kNotFound.
  Result<std::string> trace() const {
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(path_, error); !error && it != fs::recursive_directory_iterator();
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with("stream-") && name.ends_with(".lbfw")) return it->path().parent_path().string();
    }
    return Error{ErrorCode::kNotFound,
                 "the capture saw no MPI program: was the skeleton compiled with Open MPI or MPICH "
                 "as a shared library? (lbf-run(1), LIMITS)"};
  }

 private:
  explicit CaptureFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Beside this program, else in PATH.
std::string lbf_run_program() {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "lbf-run";
  return fs::exists(beside, error) ? beside.string() : "lbf-run";
}

// Runs a skeleton under lbf-run and reads what was captured.
Result<skeleton::ProgramTrace> capture(const CompareOptions& options, const std::string& skeleton,
                                       const skeleton::About& about) {
  Result<Launcher> launcher = Launcher::parse(options.launcher);
  if (!launcher) return launcher.error();
  launcher->distribution = options.distribution;
  const Result<std::vector<std::string>> words = launcher->words(about.ranks, options.nodes);
  if (!words) return words.error();
  const Result<std::string> program = program_of(skeleton, options.compiler);
  if (!program) return program.error();
  // The captured run calibrates nothing: it would count as computation.
  const Result<SkeletonRun> first = run_skeleton(*words, *program, {}, options.limit_s);
  if (!first) return first.error();
  const Result<CaptureFolder> folder = CaptureFolder::make();
  if (!folder) return folder.error();
  std::vector<std::string> captured{lbf_run_program(), "--dir", folder->path(), "--quiet", "--overhead", "100", "--"};
  captured.insert(captured.end(), words->begin(), words->end());
  const Result<SkeletonRun> second = run_skeleton(captured, *program, first->rate, options.limit_s);
  if (!second) return second.error();
  const Result<std::string> trace = folder->trace();
  if (!trace) return trace.error();
  Result<skeleton::ProgramTrace> read = read_program(*trace, options.server);
  if (!read) return Error{read.error().code, "the capture of " + skeleton + ": " + read.error().message};
  return read;
}

// A skeleton, or a trace of one.
Result<skeleton::Activities> activities_of_skeleton(const CompareOptions& options, const std::string& other) {
  std::error_code error;
  Result<skeleton::ProgramTrace> program = Error{ErrorCode::kNotFound, ""};
  const bool is_file = fs::is_regular_file(other, error);
  const Result<skeleton::About> about =
      is_file ? skeleton::read_about(other) : Result<skeleton::About>(program.error());
  if (about) {
    program = capture(options, other, *about);
    if (!program) return Error{program.error().code, other + ": " + program.error().message};
  } else {
    program = read_program(other, options.server);
    if (!program) return program.error();
  }
  if (const Result<void> bare = take_off_frame(*program); !bare)
    return Error{bare.error().code, other + ": " + bare.error().message};
  return activities_of(*program);
}

std::string bar(double percent) {
  const auto length = static_cast<std::size_t>(std::lround(percent / 100 * static_cast<double>(kBarWidth)));
  return std::string(std::min(length, kBarWidth), '#');
}

std::string cell(double percent) {
  char number[32];
  std::snprintf(number, sizeof number, "%6.1f %% ", percent);
  return report::fit(number + bar(percent), 9 + kBarWidth, true);
}

}  // namespace

int skeleton_compare(const CompareOptions& options) {
  const Result<skeleton::ProgramTrace> application = read_program(options.trace, options.server);
  if (!application) return kSkeletonMessages.fail(application.error());
  std::vector<skeleton::Activities> programs{activities_of(*application)};
  std::vector<std::string> names{"application"};
  for (const std::string& other : options.others) {
    Result<skeleton::Activities> activities = activities_of_skeleton(options, other);
    if (!activities) return kSkeletonMessages.fail(activities.error());
    programs.push_back(std::move(*activities));
    names.push_back(fs::path(other).filename().string());
  }
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!(programs[i].total_s() > programs[i].computation_s + programs[i].idle_s)) {
      return kSkeletonMessages.fail(kExitFailure,
                                    (i == 0 ? options.trace : options.others[i - 1]) +
                                        ": the trace has no times of MPI calls (a text trace?), nothing to compare");
    }
  }
  const std::vector<skeleton::ActivityRow> rows = compare_activities(programs, options.least_percent);
  struct Difference {
    double points = -1;
    std::string name;
  };
  std::vector<Difference> largest(programs.size());
  for (const skeleton::ActivityRow& row : rows) {
    for (std::size_t i = 1; i < programs.size(); ++i) {
      const double points = std::abs(row.percent[i] - row.percent[0]);
      if (points > largest[i].points) largest[i] = {points, row.name};
    }
  }
  std::string out;
  if (options.json) {
    nlohmann::json json = {{"programs", names},
                           {"rows", nlohmann::json::array()},
                           {"total_s", nlohmann::json::array()},
                           {"largest_difference_points", nlohmann::json::array()}};
    for (const skeleton::ActivityRow& row : rows)
      json["rows"].push_back({{"name", row.name}, {"percent", row.percent}});
    for (const skeleton::Activities& each : programs) json["total_s"].push_back(each.total_s());
    for (std::size_t i = 1; i < programs.size(); ++i) json["largest_difference_points"].push_back(largest[i].points);
    out = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  } else {
    out = report::fit("Share of the time", kNameWidth, true);
    for (const std::string& name : names) out += "  " + report::fit(report::printable(name), 9 + kBarWidth, true);
    out += "\n";
    for (const skeleton::ActivityRow& row : rows) {
      out += report::fit(row.name, kNameWidth, true);
      for (const double percent : row.percent) out += "  " + cell(percent);
      out += "\n";
    }
    for (std::size_t i = 1; i < programs.size(); ++i) {
      out += report::printable(names[i]) + ": at most " + short_number(std::round(10 * largest[i].points) / 10) +
             " points off (" + largest[i].name + ")\n";
    }
  }
  return kSkeletonMessages.write(out);
}

}  // namespace lbf::tools
