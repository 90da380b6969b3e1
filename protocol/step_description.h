// StepDescription: what a relay says about its step when it registers a stream (docs/formats/http-v1.md,
// "Step description").
//
// Place in the event's way, before the first event: SPANK plugin, lbf-run -> relay -> lbfd -> trace store. The input is
// hostile: types, lengths and mutual fit are checked here, once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cost/limits.h"

namespace lbf::protocol {

inline constexpr std::size_t kMaxStepNodes = 65536;
inline constexpr Rank kMaxStepTasks = 1 << 20;
inline constexpr std::size_t kMaxDescriptionBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxNodeNameBytes = 255;
inline constexpr std::size_t kMaxNameBytes = 255;  // of a user, an account, a partition
inline constexpr std::uint32_t kMaxCpusOnNode = 1u << 20;
inline constexpr std::uint64_t kMaxSubmitS = std::uint64_t{1} << 53;  // what JSON and sqlite keep exactly

// nlohmann::json moves without throwing; the linter sees the assertions in it.
struct StepDescription {  // NOLINT(bugprone-exception-escape)
  std::string cluster;    // empty: not said
  std::optional<std::uint32_t> job;
  std::optional<std::uint32_t> step;
  std::optional<std::uint32_t> restart;
  std::uint64_t submit_s = 0;              // when the job was submitted, seconds since 1970; 0: not said
  std::optional<std::uint32_t> array_job;  // with array_task, or neither
  std::optional<std::uint32_t> array_task;
  std::optional<std::uint32_t> het_job;  // with het_offset, or neither
  std::optional<std::uint32_t> het_offset;
  std::string user;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::string account;
  std::string partition;
  std::string job_name;
  std::string submit_host;
  std::vector<std::string> nodes;
  std::uint32_t node_index = 0;
  std::string node;  // its name
  Rank tasks = 0;
  std::vector<std::uint32_t> tasks_per_node;  // empty: not said; else one per node, sum = tasks
  std::vector<Rank> task_ids;                 // of this node; empty: not said
  std::uint32_t cpus_on_node = 0;             // that the step may use on this node; 0: not said
  std::uint32_t threads_per_task = 0;         // OMP_NUM_THREADS, else more than 1 --cpus-per-task; 0: neither
  Nanoseconds start_realtime_ns = 0;          // 0: not said
  std::vector<std::string> command;
  bool command_cut = false;           // words or parts of words are missing from `command`
  std::string launcher;               // who started the ranks where Slurm did not: "mpirun"; empty: Slurm
  std::string run;                    // the launcher's name for the run
  std::vector<std::string> networks;  // the user's --lbf-networks; empty: all
  std::optional<double> overhead_limit_percent;
  // "limits": what the user asked for of lbfd's (docs/lbfd.md, "Budgets"); nothing else.
  cost::Limits limits;
  nlohmann::json raw;  // as it came, unknown keys included; not for json_of()
};

// Errors (kInvalidInput) name the key: not JSON, a required key missing, wrong type, out of range.
Result<StepDescription> decode_step_description(std::string_view text);
// What is empty, 0 or not set is left out, but for `networks`.
nlohmann::json json_of(const StepDescription& description);
// Bytes that are no UTF-8 become U+FFFD.
std::string encode(const StepDescription& description);

// What is one stream's own in its description; all else is the step's. A step has as many streams as nodes, and each
// description names all nodes: only this much of each is kept.
struct StreamDescription {
  std::vector<Rank> task_ids;       // of its node; empty: not said
  std::uint32_t cpus_on_node = 0;   // 0: not said
  bool registered_by_lbfd = false;  // in the name of a node that never reported

  static StreamDescription of(const StepDescription& description) {
    return {description.task_ids, description.cpus_on_node, false};
  }
};

// From what of the stream's keys differs from those of the step. Errors: kInvalidInput.
Result<StreamDescription> decode_stream_description(const nlohmann::json& own, const StepDescription& step);

}  // namespace lbf::protocol
