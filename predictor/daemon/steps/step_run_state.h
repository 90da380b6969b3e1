// What StepRun keeps of each stream and of each rank; for step_run*.cpp only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "predictor/daemon/steps/step_cost.h"
#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {

struct StepRun::Stream {
  explicit Stream(std::uint32_t stream_number, CommunicatorTable& communicators)
      : number(stream_number), decoder(communicators, kMaxTraceRanks) {}
  std::uint32_t number;
  BatchDecoder decoder;
  std::uint64_t next_sequence = 1;  // to replay
  bool broken = false;              // a stored batch could not be read: nothing behind it is replayed
  Seconds replayed_s = 0;           // measured time of its events, all its ranks
  std::uint32_t ranks = 0;          // that it has carried
  Seconds relay_cpu_s = 0;
  Bytes sent_bytes = 0;
  std::uint64_t relay_lost_batches = 0;
  std::uint64_t processes_left_out = 0;  // by the relay; its notes say why
  std::optional<StreamCost> cost;        // as the relay said last

  Seconds mean_replayed_s() const { return ranks == 0 ? 0 : replayed_s / ranks; }
};

struct StepRun::RankState {
  std::optional<std::uint32_t> stream;  // the one that carries it
  bool process_seen = false;
  bool closed = false;
  std::int64_t pid = 0;
  std::string how;  // process_end
  Seconds elapsed_s = 0;
  Seconds init_s = 0;
  Seconds unread_gap_s = 0;
  Seconds capture_s = 0;
  std::uint64_t lost_records = 0;
  std::uint64_t abandoned_calls = 0;
  std::uint64_t events_without_communicator = 0;
  std::vector<std::pair<std::uint64_t, Seconds>> calls;  // by function id
};

}  // namespace lbf::daemon
