// Which steps: sacct's -j, -u, -a, -S, -E as requests to lbfd (docs/formats/http-v1.md, GET /v1/steps).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::report {

struct JobSelector {
  std::uint32_t job = 0;
  std::optional<std::uint64_t> step;
  std::optional<std::uint32_t> array_task;  // "12_3": `job` is the array's number
  std::optional<std::uint32_t> het_offset;  // "12+1": `job` is the heterogeneous job's number
  std::string cluster{};                    // "12.0@alpha"; empty: any

  friend bool operator==(const JobSelector&, const JobSelector&) = default;
};

// The most steps that one request asks for, and those that lbfd gives; it leaves out the oldest.
inline constexpr std::size_t kStepLimit = 1000;
inline constexpr std::size_t kMostSteps = 10000;

struct Selection {
  std::vector<JobSelector> jobs;   // empty: every job
  std::vector<std::string> users;  // names or uids; empty: the caller
  bool all_users = false;
  std::vector<std::string> clusters;    // empty: any
  std::vector<std::string> names;       // of jobs; empty: any
  std::vector<std::string> accounts;    // empty: any
  std::vector<std::string> partitions;  // empty: any
  std::vector<std::string> states;      // lbfd's words; empty: any
  std::string nodes;                    // Slurm's list of names: steps that ran on one of them; empty: any
  bool operator_view = true;            // with jobs and no users: ask for everybody's, which lbfd allows operators only
  std::optional<std::uint64_t> submit_s;  // of jobs that had one number the one that was submitted then
  bool duplicates = false;                // also the earlier ones
  std::optional<std::time_t> since;
  std::optional<std::time_t> until;
  bool detail = false;             // also what lists leave out: rank_finish_s
  bool summary = false;            // only what lists of steps show: two predictions of each
  std::string rows;                // not empty: these values as rows (field_keys.h)
  std::size_t limit = kStepLimit;  // of each request
};

// "12,13.0,14.batch,15_3.0,15_[1-3,7],16+1", and "@CLUSTER" behind each of them. A job without _TASK or +OFFSET is all
// tasks of that array, all components of that heterogeneous job. Errors: kInvalidInput, with the item that is wrong.
Result<std::vector<JobSelector>> parse_jobs(std::string_view list);
// "alice,1000". Errors: an empty item.
Result<std::vector<std::string>> parse_users(std::string_view list);
// The same for other names; `what` is for the message: "an account".
Result<std::vector<std::string>> parse_names(std::string_view list, std::string_view what);
// "running,CD,partial": lbfd's states, and sacct's words and letters for them (R, CD). Errors: another word.
Result<std::vector<std::string>> parse_states(std::string_view list);

// The targets ("/v1/steps?job=12&all=1") that have to be asked, in order; their answers joined are the
// selection. With jobs but no users the owner does not matter (as with sacct -j), so all=1 is asked: lbfd
// still shows only what the caller may see.
std::vector<std::string> request_targets(const Selection& selection);

// "12_3.0", as parse_jobs reads it.
std::string text_of(const JobSelector& selector);

// "job=12&array_task=3&step=0&cluster=alpha": parameters of GET /v1/steps.
std::string query_of(const JobSelector& selector);

// For a value in a request's query.
std::string percent_encoded(std::string_view text);

// "job 12.0", "jobs 12, 13": for messages.
std::string describe(const std::vector<JobSelector>& jobs);

// "-A physics -r gpu", as a shell reads it: what leaves steps out, but jobs and times; empty: nothing does.
std::string describe_filters(const Selection& selection);
// " since 2026-01-01T00:00:00 until ...": empty where all times are meant.
std::string describe_window(const Selection& selection);

}  // namespace lbf::report
