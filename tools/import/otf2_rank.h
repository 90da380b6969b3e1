// The records of one rank of an OTF2 archive -> its events. What a record says only later (the channel of a receive,
// the operation of a non-blocking collective) is waited for: the event holds those behind it. No file but the import
// needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "event/event_sink.h"
#include "tools/import/otf2_clocks.h"
#include "tools/import/otf2_collectives.h"
#include "tools/import/otf2_held.h"
#include "tools/import/otf2_shared.h"
#include "tools/import/otf2_stream.h"
#include "tools/import/otf2_teams.h"

namespace lbf::tools::otf2 {

class RankImport {
 public:
  // MOST_HELD events are held at most for a receive that ends late; then it counts as posted at its end.
  RankImport(Shared& shared, Rank rank, std::size_t most_held, const Start& start)
      : shared_(shared), rank_(rank), most_held_(most_held), start_(start) {}

  // By time. Errors name rank and event.
  Result<void> on(const Record& record);
  // No record comes any more.
  Result<void> finish();
  // Hands on what waits for nothing. Errors: the sink's, those of Collectives::arrive.
  Result<void> flush(Collectives& collectives, const EventBlockSink& sink);
  // What was rebuilt until NOW_NS, by the rank's own clock: ends of receives that no record has. Errors: more than one
  // reading is possible.
  Result<void> rebuild(Nanoseconds now_ns);
  bool has_all_handed_on() const { return held_.size() == 0; }
  // Receives without an end; they are left out.
  bool has_unended_receives() const { return has_unended_receives_; }

 private:
  // --- otf2_rank.cpp: time, regions, messages
  struct Call {
    const Region* region = nullptr;  // nullptr: in none
    std::uint16_t thread = 0;
    std::uint64_t position = 0;
    Nanoseconds enter_ns = 0;
    Nanoseconds last_ns = 0;  // until which its events have its time
    std::uint64_t first = 0;  // held event
    int depth = 0;            // of calls in it
    int collectives = 0;      // that began and did not end
    bool has_record = false;
    bool has_sync = false;                // on a window
    std::optional<std::uint64_t> posted;  // the receive of MPI_Sendrecv
    MpiRole role() const { return region->function != nullptr ? region->function->role : MpiRole::kUnmodelled; }
    std::uint16_t function() const { return region->function != nullptr ? region->function->id : std::uint16_t{0}; }
  };
  struct Request {
    enum class Kind : std::uint8_t { kSend, kReceive, kCollective, kOneSided } kind = Kind::kSend;
    std::uint32_t number = 0;
    std::uint64_t post = 0;      // held event
    std::uint64_t position = 0;  // of its record
    std::uint64_t order = 0;
    bool is_late = false;  // its post was given up
    Nanoseconds ns = 0;
  };

  void begin_program(Nanoseconds ns);
  Error error(const Record& record, const std::string& what) const;
  Error error(const Call& call, const std::string& what) const;
  std::vector<const Region*>& stack(std::uint16_t thread);
  // A region of which nothing else counts.
  void track(const Record& record);
  void of_measurement(const Record& record);
  Result<void> enter(const Record& record);
  Result<void> leave(const Record& record);
  Result<void> end_region(const Region& region, std::uint16_t thread, Nanoseconds ns);
  Result<void> begin_call(const Record& record);
  Result<void> end_call(Nanoseconds ns);
  Result<void> end_lost_before_call();
  Result<void> in_call(const Record& record);
  Result<void> message(const Record& record);
  Result<void> completion(const Record& record);
  Result<void> collective_end(const Record& record);
  Result<void> nonblocking_end(const Record& record);
  // The time until NS is process time.
  void work_until(Nanoseconds ns);
  // An event of the call in hand, at NS.
  std::uint64_t add(Held held, Nanoseconds ns, std::uint64_t position);
  // The only event of CALL, which is over at NS.
  std::uint64_t add_alone(Held held, const Call& call, Nanoseconds ns);
  // An event of no call, with the process time so far.
  void add_plain(Event event);
  Result<void> end_program(Nanoseconds ns);
  // Peer and communicator of a message.
  Result<void> set_channel(const Record& record, Held& held) const;
  Result<void> open(const Record& record, Request::Kind kind, Held held);
  void fill_receive(std::uint64_t post, const Held& end);
  // What stays of an event that did not happen: its time.
  void drop(std::uint64_t number);
  void resolve_probes(const Held& receive);
  void give_up_front();
  void give_up_probe(std::uint64_t number);
  // Whether a call without a record is one of MPI_PROC_NULL.
  bool may_be_silent() const {
    return shared_.definitions.writer == Writer::kScoreP || shared_.definitions.writer == Writer::kLbf;
  }

  // --- otf2_rank_calls.cpp: calls without a record
  Result<void> end_silent_call(const Call& call, Nanoseconds ns);
  Result<void> silent_message(const Call& call) const;
  void failed_look(const Call& call, Nanoseconds ns);
  Result<void> probe(const Call& call, Nanoseconds ns);
  Result<void> unmodelled(const Call& call, Nanoseconds ns, EventKind kind);

  // --- otf2_one_sided.cpp
  Result<void> one_sided(const Record& record);
  Held on_window(EventKind kind, const Communicator& window, Rank peer) const;
  Result<void> begin_operation(const Record& record, const Communicator& window, Rank target);
  void end_here(const Record& record);
  void end_there(const Record& record, const Communicator& window);
  void lock(const Record& record, const Communicator& window, Rank target);
  void end_window_collective(const Record& record, const Communicator& window);
  void add_sync(const Communicator& window, Rank peer, const Record& record);
  void add_window_collective(const Communicator& on, CollectiveOp op, const Record& record);
  Result<void> add_group_messages(const Record& record, const Communicator& window);

  // --- otf2_lost_ends.cpp: archives without the ends of requests
  struct LostCall {
    Call call;
    Nanoseconds leave_ns = 0;
  };
  struct LostReceives {
    Nanoseconds until_ns = 0;
    Call call;
    std::vector<std::uint64_t> posts;
    std::vector<std::uint64_t> ends;
  };
  struct Looks {               // at requests, of which the last may have found one
    std::uint64_t number = 0;  // held event
    Call call;
    Nanoseconds ns = 0;
    std::size_t open = 0;  // requests
  };
  static bool is_wait_or_test(MpiRole role);
  Result<void> keep_lost(const Call& call, Nanoseconds ns);
  Result<void> rule_out_left_open(const Call& call) const;
  Error may_be_either(const Call& call, std::size_t requests, const Call& other) const;
  Result<void> end_lost();
  void take_looks(const LostCall& last);
  void settle_looks();
  void lose_end(std::uint64_t id, const Call& call, Nanoseconds ns, LostReceives& lost);
  void lose_ends(std::size_t count, const Call& call, Nanoseconds ns);
  Result<void> end_by_look(std::uint64_t id, std::uint64_t position);
  Result<void> end_of_lost();
  std::vector<std::uint64_t> open_in_order() const;

  Shared& shared_;
  Rank rank_;
  std::size_t most_held_;
  Start start_;
  HeldEvents held_;
  std::vector<std::vector<const Region*>> stacks_;  // by thread
  Teams teams_;
  Call call_;
  bool began_ = false;
  bool ended_ = false;
  bool paused_ = false;  // the measurement
  Nanoseconds paused_ns_ = 0;
  Nanoseconds last_ns_ = 0;  // of the last record
  bool has_gap_ = false;
  Nanoseconds since_ns_ = 0;  // until which time is in an event, in work_ns_ or in looks_ns_
  Nanoseconds work_ns_ = 0;
  Nanoseconds looks_ns_ = 0;  // in looks that found nothing
  std::uint64_t looks_ = 0;
  Nanoseconds off_since_ns_ = 0;
  int off_depth_ = 0;
  std::unordered_map<std::uint64_t, Request> requests_;  // by the archive's numbers
  std::uint32_t next_number_ = 0;
  std::uint64_t next_order_ = 0;
  std::vector<std::uint64_t> probes_;                                              // that wait for the next receive
  std::optional<std::uint64_t> blocking_post_;                                     // of an exported text trace
  std::unordered_map<std::uint64_t, std::pair<OTF2_RmaWinRef, Rank>> operations_;  // one-sided ones under way
  std::unordered_map<OTF2_RmaWinRef, std::pair<OTF2_GroupRef, OTF2_GroupRef>> epochs_;  // started, posted
  std::unordered_set<std::uint32_t> defined_;                                           // communicators
  std::vector<LostCall> lost_;
  std::deque<LostReceives> lost_receives_;
  std::unordered_set<std::uint64_t> maybe_open_;  // MPI_Waitall counts as their end, and no record says it
  Call waited_for_all_;                           // that one
  std::optional<Looks> found_by_look_;
  bool has_unended_receives_ = false;
  std::vector<Event> block_;  // scratch of flush()
};

}  // namespace lbf::tools::otf2
