// Bounds: what one step, one user and all together may take of lbfd (docs/lbfd.md, "Bounds").
//
// Every amount that a request can cause has one of these above it. Those that an admin changes are keys of lbfd.toml
// (config.cpp); the others are constants of a site that nobody has to know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace lbf::daemon {

struct Bounds {
  // --- replays: above them the step ends partial, with the reason
  // Held in memory: the replays, what ranks and relays said, the predictions. 0: no limit.
  Bytes step_memory_bytes = Bytes{384} << 20;
  Bytes user_memory_bytes = Bytes{448} << 20;
  Bytes all_memory_bytes = Bytes{512} << 20;  // who holds most gives way
  Seconds turn_cpu_s = 30;                    // processor time of one turn, which is one batch; 0: no limit

  // --- steps of one user
  std::uint32_t user_steps = 1000;                    // under way at a time; 0: no limit
  std::uint64_t user_ranks = std::uint64_t{1} << 22;  // of these steps, as they announce
  double user_starts_per_s = 20;                      // steps begun, in the long run ...
  double user_starts_at_once = 2000;                  // ... and in a burst

  // --- text and rows, in memory and in the database, of one step
  std::size_t step_procedures = 4096;
  std::size_t step_procedure_bytes = std::size_t{512} << 10;  // of their names
  std::size_t step_command_bytes = std::size_t{512} << 10;
  Seconds user_write_s = 0.1;  // running steps of a user are written to the database so long in a second

  // --- outcomes
  double outcome_others_percent = 5;  // of a run's time: where others had its processors for longer, it is none

  // --- starts of lbfd
  // lbfd ended so often while it replayed the step: it is set aside.
  std::uint32_t deaths_in_a_row = 2;   // at the same batch
  std::uint32_t deaths_in_replay = 6;  // wherever
};

}  // namespace lbf::daemon
