// Slurm's estimate of a start, see start_source.h.
#include "advisor/candidate/start_source.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/child_process.h"
#include "base/number.h"

namespace lbf::advisor {
namespace {

constexpr std::string_view kStarts = " to start at ";

// Of Slurm's variables those that say who asks whom, and what users set for all their jobs. A job's own ones
// (SLURM_JOB_ID, SLURM_NNODES ...) would make srun a step of it.
constexpr std::array<std::string_view, 11> kKept = {
    "SLURM_CONF",  "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_ACCOUNT",   "SLURM_QOS", "SLURM_RESERVATION",
    "SLURM_WCKEY", "SLURM_JWT",         "SLURM_SACK_KEY", "SLURM_USER_NAME", "SLURM_HINT"};

// Slurm itself does not answer, in its own words.
constexpr std::array<std::string_view, 6> kOutOfReach = {
    "Unable to contact slurm controller", "Socket timed out",     "Zero Bytes were transmitted",
    "Communication connection failure",   "configuration source", "Unable to establish"};

std::optional<double> parse_moment(const std::string& word) {
  if (const auto seconds = parse_number<long long>(word)) return static_cast<double>(*seconds);
  std::tm local{};
  const char* const rest = ::strptime(word.c_str(), "%Y-%m-%dT%H:%M:%S", &local);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  local.tm_isdst = -1;
  return static_cast<double>(std::mktime(&local));
}

// "srun: error: Unable to allocate resources: Invalid partition name specified": the last part says it.
std::string reason(std::string line) {
  for (const std::string_view front :
       {"srun: ", "error: ", "fatal: ", "Unable to allocate resources: ", "allocation failure: "}) {
    if (line.compare(0, front.size(), front) == 0) line.erase(0, front.size());
  }
  return line;
}

// Then every other question would wait for as long, for the same answer.
bool is_out_of_reach(const std::string& words) {
  return std::any_of(kOutOfReach.begin(), kOutOfReach.end(),
                     [&](std::string_view phrase) { return words.find(phrase) != std::string::npos; });
}

class SrunSource final : public StartSource {
 public:
  SrunSource(std::string srun, Seconds patience_s) : srun_(std::move(srun)), patience_s_(patience_s) {
    std::vector<std::string> mine;
    for (char** variable = environ; *variable != nullptr; ++variable) mine.emplace_back(*variable);
    environment_ = start_environment(mine);
  }

  Result<StartAnswer> ask(const std::vector<std::string>& flags) override {
    std::vector<std::string> words{srun_};
    words.insert(words.end(), flags.begin(), flags.end());
    // A program that srun does not look for: nothing is started.
    words.insert(words.end(), {"--test-only", "true"});
    const Result<ChildOutput> said = run_child(words, patience_s_, environment_);
    if (!said) return said.error();
    if (said->timed_out)
      return Error{ErrorCode::kUnavailable, srun_ + " --test-only does not answer: is slurmctld up?"};
    if (is_out_of_reach(said->err))
      return Error{ErrorCode::kUnavailable, "Slurm cannot be asked: " + reason(last_line(said->err))};
    return parse_start(said->err);
  }

 private:
  std::string srun_;
  Seconds patience_s_;
  std::vector<std::string> environment_;
};

}  // namespace

std::unique_ptr<StartSource> srun_start_source(std::string srun, Seconds patience_s) {
  return std::make_unique<SrunSource>(std::move(srun), patience_s);
}

StartAnswer parse_start(std::string_view srun_stderr) {
  StartAnswer answer;
  if (const std::size_t at = srun_stderr.find(kStarts); at != std::string_view::npos) {
    const std::string_view rest = srun_stderr.substr(at + kStarts.size());
    answer.at_s = parse_moment(std::string(rest.substr(0, rest.find_first_of(" \n"))));
  }
  if (answer.at_s) return answer;
  answer.why_not = reason(last_line(std::string(srun_stderr)));
  if (answer.why_not.empty()) answer.why_not = "srun --test-only said nothing";
  return answer;
}

std::vector<std::string> start_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& variable : environment) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    const bool of_slurm = name.substr(0, 6) == "SLURM_";
    if (!of_slurm || std::find(kKept.begin(), kKept.end(), name) != kKept.end()) kept.push_back(variable);
  }
  kept.emplace_back("SLURM_TIME_FORMAT=%s");
  return kept;
}

}  // namespace lbf::advisor
