// EventScript: bytes -> events of a parallel program, mostly valid ones with wild numbers.
//
// Four bytes say how many ranks, whose rules, which nodes and how much memory. Each operation is a byte, the rank's
// byte, and numbers. A number below 128 picks one of what is there (a rank, a communicator, an active request), so that
// most events fit to those before them; larger ones are taken as they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "event/event.h"

namespace lbf::fuzz {

// What is done next: an event of the rank, or no more of it, or a round of replay.
struct Step {
  Rank rank = 0;
  Event event;
  bool closes = false;
  bool advances = false;
};

enum Operation : std::uint8_t {
  kDoCompute,
  kDoSend,
  kDoIsend,
  kDoStartRecv,
  kDoEndRecv,
  kDoRecv,
  kDoWait,
  kDoWaitAll,
  kDoProbe,
  kDoCollective,
  kDoIcollective,
  kDoCommCreate,
  kDoIntercommCreate,
  kDoCommFree,
  kDoCancel,
  kDoRequestFree,
  kDoOneSided,
  kDoOneSidedSync,
  kDoWindowClose,
  kDoWindowOpen,
  kDoSkipped,
  kDoGap,
  kDoOther,
  kDoExit,
  kDoClose,
  kDoAdvance,
  kDoRepeat,     // a count: the operation behind it so many times
  kDoEverybody,  // the operation behind it on each rank
  kOperations,
};

class EventScript {
 public:
  explicit EventScript(std::span<const std::uint8_t> input);

  Rank ranks() const { return static_cast<Rank>(ranks_.size()); }
  const std::string& library() const { return library_; }
  const std::vector<std::uint32_t>& node_of_rank() const { return node_of_rank_; }
  Bytes memory_bytes() const { return memory_bytes_; }
  // nullptr: the script is over. Valid until the next call.
  const Step* next();

 private:
  static constexpr std::size_t kMostSteps = 20000;
  struct Request {
    std::uint32_t number = 0;
    EventKind kind = EventKind::kIsend;
    Rank peer = 0;
    std::int32_t tag = 0;
    std::uint32_t comm = 0;
  };
  struct RankModel {
    std::vector<Request> active;
    std::uint32_t next_request = 1;
    std::uint64_t window = 0;
  };
  struct CommModel {
    std::vector<Rank> group;
    std::vector<Rank> remote;
  };

  std::uint8_t byte();
  std::uint64_t number();
  // Below `count`, or a wild number.
  std::uint64_t pick(std::size_t count);
  std::int32_t tag() { return static_cast<std::int32_t>(number()); }
  // A wild number gives a request that is not active.
  enum class Wanted { kAny, kReceive, kNoReceive };
  Request& pick_request(RankModel& model, Wanted wanted);
  Request start_request(Event& event, RankModel& model);
  std::size_t size_of(std::uint32_t comm) const;
  void start(std::uint8_t operation, Rank rank);
  void collective(Event& event, RankModel& model);
  void values_of_collective(const Event& event);
  void comm_create(Event& event, bool intercommunicator);
  void make(std::uint8_t operation, Event& event, RankModel& model);

  std::span<const std::uint8_t> input_;
  std::size_t at_ = 0;
  std::vector<RankModel> ranks_;
  std::vector<CommModel> comms_;  // [0]: the world
  std::string library_;
  std::vector<std::uint32_t> node_of_rank_;
  Bytes memory_bytes_ = 0;
  Step step_;
  std::vector<std::uint64_t> values_;
  Request none_;
  std::size_t steps_ = 0;
  // kDoRepeat, kDoEverybody: what is left of it, from where in the input.
  std::uint64_t repeats_ = 0;
  std::size_t repeat_at_ = 0;
  Rank everybody_from_ = kAnyRank;
  std::size_t everybody_at_ = 0;
};

// One for each kind of input that a predictor once did not bear, each with its story, and ordinary programs.
std::vector<std::string> script_seeds();

}  // namespace lbf::fuzz
