// Matcher: events of all ranks -> ops, once for all targets.
//
// Place in the event's way: wire -> Event -> *match* -> Op -> replay. Pairs sends with receives (the match
// that happened in the captured run is the match that is replayed), resolves requests, spells collectives out
// as messages. What it makes of one rank's events depends on that rank's events alone, plus the pairing by
// place in the channel: so the result does not depend on the order in which different ranks' events arrive.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/paged_array.h"
#include "base/result.h"
#include "event/event.h"
#include "event/rounds.h"
#include "predictor/engine/match/blocks.h"
#include "predictor/engine/match/channel_table.h"
#include "predictor/engine/match/collective.h"
#include "predictor/engine/match/communicator.h"
#include "predictor/engine/match/flat_map.h"
#include "predictor/engine/match/ghosts.h"
#include "predictor/engine/match/match_stats.h"
#include "predictor/engine/match/mpi_library.h"
#include "predictor/engine/match/one_sided.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/match/procedure_shift.h"
#include "predictor/engine/match/repeated_collectives.h"
#include "predictor/engine/match/request_table.h"
#include "predictor/engine/match/unplaced_receives.h"

namespace lbf::engine {

// What the targets need to know.
struct MatchOptions {
  // Messages of at most so many bytes are eager on every target, so that their ops need not say when a receive of a
  // collective is posted or a send's buffer is free.
  Bytes eager_up_to = ~Bytes{0};
  // First messages (kOpFirst): costs 16 to 32 bytes for each pair of ranks that exchange any.
  bool marks_first = false;
  // What the copies and reductions of collectives are (kCopy, kReduce).
  bool local_work = false;
  // Op::function is set, as with a ProcedurePlan.
  bool marks_functions = false;
  // Collectives that come again are not spelled out again. The ops are the same without.
  bool plans = true;
};

class Matcher {
 public:
  // REQUIRES: `store` outlives the matcher.
  Matcher(Rank ranks, OpStore& store, const MatchOptions& options = {});

  // Whose collectives these are; without it Open MPI 4.1's. REQUIRES: before the first collective;
  // `node_of_rank` is empty or has every rank of the world.
  void set_mpi(MpiSetup setup);

  // Ops carry the scenarios of `plan`, whose rows the store gets. REQUIRES: before the first event.
  void shift_procedures(ProcedurePlan plan);
  // nullptr: no plan.
  const ProcedureShift* procedures() const { return procedures_ ? &*procedures_ : nullptr; }

  // The next events of `rank`; after an error those before it count. Errors (kInvalidInput) name rank and
  // event number: a peer, root or communicator that does not exist, requests that are not or already active,
  // an endRecv that contradicts its posting, times that are negative or not finite, an event after exit.
  // After a kGap of the rank, what the gap can explain is no error: it is noted in why_partial().
  Result<void> feed(Rank rank, std::span<const Event> events);
  Result<void> feed(Rank rank, const Event& event) { return feed(rank, std::span(&event, 1)); }
  // The same for events that come as rounds of a batch. false: nothing was fed, they are wanted as events.
  Result<bool> feed_rounds(Rank rank, const Rounds& rounds);
  // No more events of this rank.
  void close(Rank rank);
  // To be called before the replays go on: the ends of messages that ranks would have had after their
  // captures ended. (Not at each end: it looks at all channels.)
  void settle() {
    if (ends_to_play_) [[unlikely]]
      play_all_after_end();
  }

  const MatchStats& stats() const { return stats_; }
  // The number of each capture window, as ops name them; [0] is what was captured before the first window
  // ended. Empty: the capture was never closed.
  const std::vector<std::uint64_t>& windows() const { return windows_; }
  // Why predictions from these events are partial; empty: they are not.
  const std::string& why_partial() const { return why_partial_; }
  // What it holds besides what is on the store's account.
  Bytes memory_bytes() const;
  // Of all that the replay may hold; 0: no bound. Plans get their share of it.
  void bound_memory(Bytes bytes) {
    if (bytes > 0) plans_.bound(bytes);
  }
  const RepeatedCollectives& plans() const { return plans_; }
  std::uint64_t events_of(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].events; }
  bool exited(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].exited; }
  bool closed(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].closed; }
  // Measured time outside of the scope that the program asked for (MPI_Pcontrol). It is in no op.
  Seconds outside_s(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].outside_s; }

 private:
  static constexpr std::size_t kRecentPeers = 8;
  // What a request needs beyond its ActiveRequest: a receive that was posted without a place in a channel,
  // a non-blocking collective, and a one-sided operation.
  struct Record {
    bool wildcard = false;
    std::uint32_t comm = 0;
    Rank peer = kAnyRank;
    std::int32_t tag = kAnyTag;
    MessageIndex message = kNoMessage;  // receive: its place, once it has one; collective: the join
    ProcessIndex actor = 0;
    Op* post = nullptr;          // receive: its kPost, held until it has a place
    std::uint32_t unplaced = 0;  // ... its entry there
    OneSided::Ticket one_sided;
  };
  // Between looks: kBlocked events with a period.
  struct Sleep {
    Seconds off_s = 0;  // held until the event that says for what
    Seconds period_s = 0;
    std::uint16_t function =
        0;                   // of the look that found something; its later calls sleep, too, where they find nothing
    std::uint8_t awake = 0;  // such calls since, none of which had slept; as many as this in a row: it does not
    static constexpr std::uint8_t kMostAwake = 16;
  };
  struct RankState {
    std::uint64_t events = 0;
    std::uint32_t postings = 0;
    bool exited = false;
    bool closed = false;
    bool gap = false;
    bool looks = false;                         // it has slept between looks: `sleep`
    bool counting = false;                      // between two capture windows
    bool outside = false;                       // of the scope that the program asked for (kPhase)
    bool scoped = false;                        // it has been outside ...
    Seconds outside_s = 0;                      // ... for so long
    std::uint32_t window = 0;                   // the one that is open
    ProcessIndex ghost = kNobody;               // of the kSkipped events that came last, one after the other
    ProcessIndex after_end = kNobody;           // plays all that it did after its capture ended for good, but ...
    ProcessIndex receives_after_end = kNobody;  // ... its receives
    ProcessIndex held_ghost = kNobody;          // there since the window's first receive that had no place yet
    bool closed_before_places = false;          // such receives were under way when the last window closed
    std::uint64_t measured_ns = 0;              // since its window opened, in events; modulo 2^64
    std::uint64_t block_end_ns = blocks::kShortestNs;  // ... at which its block ends; kNeverNs: the window is not cut
    std::uint32_t block = 0;                           // of its window
    Sleep sleep;
    ActiveRequest blocking_receive;  // the startRecv without request, or of kind kNone
    RequestTable requests;
    std::unique_ptr<UnplacedReceives> unplaced;  // records of receives without a place; nullptr: there never was one
    std::uint64_t held_since = 0;                // event of the first held kPost
    FlatMap collectives;                         // communicator -> collectives so far
    CountedVector<ProcessIndex> idle_actors;
    FlatMap peers;                         // ranks that it sent to or received from (values: 0)
    std::array<Rank, kRecentPeers> met{};  // some of them, by their last bits
    explicit RankState(MemoryAccount* account)
        : requests(account), collectives(account), idle_actors(account), peers(account) {
      met.fill(kAnyRank);
    }
    bool any_unplaced() const { return unplaced != nullptr && !unplaced->empty(); }
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kMaxCommunicators = 1U << 24;

  Error fail(Rank rank, const std::string& what) const;
  // An error, unless lost events of the rank can explain it.
  Result<void> contradiction(Rank rank, const Event& event, const std::string& what);
  void note_partial(const std::string& why);
  // Do the event's peer and communicator exist?
  bool has_peer(const Event& event) const {
    return static_cast<std::uint32_t>(event.peer) < static_cast<std::uint32_t>(store_.ranks()) &&
           event.comm < kMaxCommunicators;
  }
  Error no_such_peer(Rank rank, const Event& event) const;

  [[gnu::always_inline]] Op& emit(ProcessIndex process, Op op) {
    op.function = function_;
    return store_.push(process, op);
  }
  // The rank sends a message to `peer`: kOpFirst, or 0.
  std::uint8_t first_flag(Rank rank, Rank peer) { return marks_first_ && note_contact(rank, peer) ? kOpFirst : 0; }
  // The rank has received a message from `peer`.
  void note_received_from(Rank rank, Rank peer) {
    if (marks_first_) note_contact(rank, peer);
  }
  // True the first time that the two have to do with each other, from the rank's own side.
  bool note_contact(Rank rank, Rank peer) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    Rank& recent = state.met[static_cast<std::size_t>(peer) % kRecentPeers];
    if (recent == peer || rank == peer) return false;
    recent = peer;
    return state.peers.add(static_cast<std::uint32_t>(peer));
  }
  // The event's process time, and its end.
  void emit_plain(Rank rank, const Event& event);
  void emit_regions(Rank rank, const Event& event);
  void emit_device(Rank rank, const Event& event);
  void emit_preempted(Rank rank, const Event& event);

  std::uint32_t new_record();
  void free_record(std::uint32_t record) { free_records_.push_back(record); }
  MessageIndex send_message(Rank rank, const Event& event);
  MessageIndex take_place_now(const ChannelKey& key);  // inline, for matcher.cpp
  MessageIndex take_place(const ChannelKey& key);

  // A receive whose match is not known yet, or that may have to wait behind such a one.
  ActiveRequest post_held(Rank rank, const Event& event, bool wildcard);
  // The receive has its place now, or (kNoMessage) its kPost is to be held no longer.
  void place(Rank rank, std::uint32_t record, MessageIndex message);
  void remove_unplaced(Rank rank, std::uint32_t record);
  void release_posts(Rank rank);
  // The message that it took.
  MessageIndex end_held_receive(Rank rank, const Event& event, std::uint32_t record);

  static std::string ends_another(const Event& event, std::uint32_t comm, Rank peer, std::int32_t tag);
  Result<void> end_of_no_receive(Rank rank, const Event& event, bool is_active);
  Result<void> wait_for_no_send(Rank rank, std::uint64_t number, bool is_active);
  // One request of a wait. `work_s`: process time before it, 0 once an op has it.
  Result<void> complete(Rank rank, RankState& state, std::uint64_t number, Seconds& work_s);
  // What is left of `work_s` for the ops that follow.
  Seconds complete_slowly(Rank rank, const ActiveRequest& request, Seconds work_s);
  // The event starts a request that is active already.
  Result<void> lose_request(Rank rank, const Event& event);
  // No op of the request will come any more.
  void forget(Rank rank, const ActiveRequest& request);
  // Of a receive: its message, and the channel that it takes it from. REQUIRES: channel_of: it has one.
  MessageIndex& message_of(ActiveRequest& receive);
  ChannelKey channel_of(Rank rank, ActiveRequest& receive);
  void cancel_send(Rank rank, const ActiveRequest& request);
  void cancel_receive(Rank rank, ActiveRequest request);

  // --- rounds (matcher_rounds.cpp)
  // What one of their events becomes in the usual case.
  struct RoundPlace {
    const Event* event = nullptr;  // of the round
    bool is_usual = false;         // else feed() makes something of it
    EventKind kind{};
    OpKind op{};
    std::uint8_t op_flags = 0;
    bool is_sync = false;
    bool is_wildcard = false;
    RequestKind request{};  // that it starts
    ChannelKey key{};
    ChannelTable::Known channel;
    Bytes bytes = 0;
  };
  // Whether the usual case may be: nothing about the rank is as it is with few.
  bool is_plain(const RankState& state) const;
  RoundPlace place_of(Rank rank, const Event& event) const;
  Result<void> feed_as_event(Rank rank, const Event& common, const Rounds::Times& times);
  // False: it is not the usual case, nothing was done.
  bool feed_usual(Rank rank, RankState& state, const Rounds::Times& times, RoundPlace& place);

  Result<void> feed_one(Rank rank, RankState& state, const Event& event);
  // Whether the event ends what is held, or looks for a message as others did between sleeps.
  static bool ends_sleep(const Sleep& sleep, const Event& event);
  // feed_one of such an event.
  Result<void> feed_after_sleep(Rank rank, RankState& state, const Event& event);
  Result<void> feed_look(Rank rank, RankState& state, const Event& event, const Sleep& sleep);
  // The sleep that is held, if any, becomes blocked time.
  void keep_sleep(Rank rank, const Sleep& sleep);
  // feed_one, with functions and procedures.
  Result<void> feed_marked(Rank rank, RankState& state, Event event);
  Result<void> feed_send(Rank rank, RankState& state, const Event& event);
  Result<void> feed_start_recv(Rank rank, RankState& state, const Event& event);
  Result<void> feed_end_recv(Rank rank, RankState& state, const Event& event);
  Result<void> feed_recv(Rank rank, const Event& event);
  Result<void> feed_wait(Rank rank, RankState& state, const Event& event);
  Result<void> feed_probe(Rank rank, const Event& event);
  Result<void> feed_collective(Rank rank, const Event& event);
  Result<void> feed_one_sided(Rank rank, const Event& event);
  Result<void> feed_window_open(Rank rank, const Event& event);
  Result<void> feed_window_close(Rank rank, const Event& event);
  Result<void> feed_skipped(Rank rank, const Event& event);
  Result<void> feed_capture_end(Rank rank, const Event& event);
  // Receives of the last window that had no place when it closed.
  void drop_unplaced(Rank rank);
  // The other end of a message of the channel that one end is known of: of a rank whose capture ended, if it
  // did.
  void play_after_end(Rank rank, const ChannelKey& key, ChannelEnd end) {
    const RankState& state = ranks_[static_cast<std::size_t>(rank)];
    if (state.after_end != kNobody)
      channels_.end_outstanding(key, end, end == ChannelEnd::kSends ? state.after_end : state.receives_after_end);
  }
  // The same for all messages that were fed before their other end's capture ended.
  void play_all_after_end();
  // The rank's block ends here.
  void end_block(Rank rank, RankState& state);
  Result<void> skip_collectives(Rank rank, const Event& event, ProcessIndex ghost);
  // The ghost that plays `peer`'s end of a collective which it did not record; kNobody: it did, or will.
  ProcessIndex ghost_of_collective(std::uint32_t comm, Rank peer, std::uint32_t number) const;
  // `call_s` of the window that is open, in none of its blocks.
  void emit_unseen(Rank rank, RankState& state, Duration call_s);
  // kOpScoped, kOpInWork, or 0, of a window that closes after PROCESS_S of work.
  static std::uint8_t closing_flag(const RankState& state, Seconds process_s);
  // True: there was one. `process_s` since the last call is the window's; `call_s` as of kWindowClose.
  bool end_last_window(Rank rank, Seconds process_s, Seconds call_s);
  Result<void> feed_comm_create(Rank rank, const Event& event);
  Result<void> feed_comm_free(Rank rank, const Event& event);
  Result<void> feed_cancel(Rank rank, const Event& event);
  Result<void> feed_request_free(Rank rank, const Event& event);
  // The layout of the world or of a communicator, if nodes are known.
  const NodeLayout* layout_of(Communicator* comm);
  // Ranks of the world become ranks of the communicator (nullptr: the world); into values_.
  Result<void> translate_neighbours(Rank rank, const Event& event, const Communicator* comm);
  Result<void> expand(Rank rank, const Event& event, bool nonblocking);
  // The ops of steps_: before the first one `work_s`, with the last one `call_s` and `last_flags`.
  void emit_steps(Rank rank, ProcessIndex process, const Event& event, std::uint32_t number, Seconds work_s,
                  Seconds call_s, std::uint8_t last_flags);
  void append_local_work(CollectiveStep::Kind kind, Bytes bytes);
  RepeatedCollectives::Joined join_plan(Rank rank, const Event& event, std::uint32_t number);
  // emit_steps, of a part of a plan.
  void emit_part(Rank rank, ProcessIndex process, const Event& event, std::uint32_t number, Seconds work_s,
                 Seconds call_s, std::uint8_t last_flags);
  MessageIndex step_message(Rank rank, ProcessIndex process, const Event& event, std::uint32_t number,
                            const CollectiveStep& step);

  OpStore& store_;
  Bytes eager_up_to_;
  bool marks_first_;
  bool local_work_;
  bool marks_functions_;
  MpiSetup mpi_;
  std::optional<NodeLayout> world_layout_;
  Ghosts ghosts_;
  ChannelTable channels_;
  bool has_plans_;
  RepeatedCollectives plans_;
  OneSided one_sided_;
  std::optional<ProcedureShift> procedures_;
  std::uint16_t function_ = 0;  // of the event in hand, where functions are marked
  Rank closed_ranks_ = 0;
  CountedVector<RankState> ranks_;
  CountedMap<std::uint32_t, Communicator> communicators_;
  PagedArray<Record> records_;
  CountedVector<std::uint32_t> free_records_;
  MatchStats stats_;
  std::string why_partial_;
  std::vector<std::uint64_t> windows_;  // the number of each capture window; 0 is what came before the first
  std::map<std::uint64_t, std::uint32_t> window_of_number_;
  // Collectives that a rank did not record, by communicator and rank, in ascending order.
  struct SkippedCollectives {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    ProcessIndex ghost = 0;
  };
  CountedMap<std::uint64_t, CountedVector<SkippedCollectives>> skipped_collectives_;
  bool any_ended_ = false;     // some rank's capture ended for good
  bool ends_to_play_ = false;  // play_all_after_end() is due
  // Scratch, kept between calls.
  std::vector<CollectiveStep> steps_;
  std::vector<Op> step_ops_;
  std::vector<std::uint32_t> taken_by_;  // for each of them, the first one that names its message
  std::vector<MessageIndex> part_messages_;
  RepeatedCollectives::Joined joined_;      // the collective in hand
  bool approximated_ = false;               // ... as it was spelled out
  const RankGroup* peers_ = nullptr;        // of the collective in hand; nullptr: the world
  const RankGroup* local_peers_ = nullptr;  // ... and my own group, on an intercommunicator
  std::vector<std::uint64_t> values_;
  std::vector<RoundPlace> places_;         // of the rounds in hand
  std::vector<std::uint64_t> waited_for_;  // requests of a wait in them
};

}  // namespace lbf::engine
