// ProcedureRecord: what is known and predicted of one procedure of a step; CriticalPathRecord: the longest path through
// the step (docs/formats/http-v1.md, PROCEDURES).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace lbf::db {

struct ProcedureRecord {
  std::string name;
  std::string state = "measured";  // off: measured until it was switched off; refused: not at all
  std::string note;                // why; what else is to be known
  std::uint32_t ranks = 0;         // that measured it
  std::uint64_t calls = 0;         // of all ranks, as the times
  Seconds inclusive_s = 0;
  Seconds exclusive_s = 0;
  // On the configuration that ran. Nothing: not predicted (yet), or off.
  std::optional<Seconds> critical_path_s{};  // exclusive
  std::optional<Seconds> receiver_s{};       // predicted run time if it ran in the receiver of each message
  std::optional<Seconds> sender_s{};
  std::optional<Seconds> zeroed_s{};          // Critical Path Zeroing
  std::optional<Seconds> stayed_receiver_s{};  // of its time, what had no message to go with
  std::optional<Seconds> stayed_sender_s{};
  // What measuring it costs, as a share of the time of the ranks that do, while they do (docs/procedures.md, "Predicted and
  // observed cost").
  std::optional<double> predicted_cost{};  // before it was patched
  std::string predicted_from{};            // history, limit (at most so much), default; empty: not predicted
  std::optional<double> observed_cost{};
  std::optional<double> calls_per_s{};     // of a rank, observed; the next run's history
  // Of what is not measured, or no more: its time as statistical samples say, with its 95 % interval. What is predicted of
  // such a procedure is predicted from these.
  std::uint64_t samples = 0;
  std::optional<Seconds> sampled_s{};
  std::optional<Seconds> sampled_low_s{};
  std::optional<Seconds> sampled_high_s{};
};

struct CriticalPathRecord {
  Seconds as_it_ran_s = 0;  // predicted run time of the configuration that ran
  Seconds length_s = 0;
  Rank ends_at = 0;
  Seconds other_work_s = 0;  // process time in none of the procedures
  Seconds mpi_s = 0;
  Seconds blocked_s = 0;
  Seconds unseen_s = 0;  // between capture windows
  std::vector<std::pair<std::int32_t, Seconds>> ranks;        // longest first; -1: all others
  std::vector<std::pair<std::string, Seconds>> functions;     // MPI functions
  bool partial = false;  // the times are those of a part of the run
};

struct ProcedureReport {
  std::vector<ProcedureRecord> procedures;
  std::optional<CriticalPathRecord> path;
  std::string why_deferred;  // not empty: lbfd had no room to replay all of the run for them
};

}  // namespace lbf::db
