// SharedReplay: one target on which processes share processors.
//
// The papers' algorithm (TSE Sec. 2.1, Fig. 2) on one global clock: always the earliest next thing of all
// nodes happens next, and only while every live process has a current or pending event, since otherwise
// something earlier could still arrive. On a node with C processors of speed s, k runnable processes each get
// s * min(1, C/k): fair round robin with an infinitely small quantum. Each node keeps one virtual clock (work
// that each runnable process got so far); a process's work ends at a fixed point of that clock, so an event
// costs O(log) and not a walk over the node's processes. Where memory domains are shared (memory_sharing.h), each is
// such a node. Shared links (links.h) are further sources of the same clock.
#pragma once

#include <vector>

#include "predictor/engine/replay/call_begins.h"
#include "predictor/engine/replay/cost_table.h"
#include "predictor/engine/replay/event_queue.h"
#include "predictor/engine/replay/flights.h"
#include "predictor/engine/replay/links.h"
#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/memory_sharing.h"
#include "predictor/engine/replay/observer.h"
#include "predictor/engine/replay/rendezvous.h"
#include "predictor/engine/replay/replay.h"
#include "predictor/engine/replay/timeline.h"
#include "predictor/engine/replay/winner_tree.h"

namespace lbf::engine {

class SharedReplay final : public Replay {
 public:
  // REQUIRES: target and store outlive the replay.
  SharedReplay(const Target& target, OpStore& store);

  void advance() override;
  Seconds finish_s(std::size_t, Rank rank) const override {
    return processes_[static_cast<std::size_t>(rank)].finish_s;
  }
  Seconds measured_s(Rank rank) const override { return processes_[static_cast<std::size_t>(rank)].measured_s; }
  bool exited(Rank rank) const override { return processes_[static_cast<std::size_t>(rank)].exited; }
  Seconds exchange_s() const override { return links_.exchange_s(); }
  Bytes memory_bytes() const override;
  ProcessStatus status(ProcessIndex process) const override;

  // Calls `observer` for a row after each report, and now for the initial row. REQUIRES: it outlives the
  // replay.
  void observe(ReplayObserver* observer);
  // Event `number` of `rank` has arrived: the next advance() gives a row for it before it executes anything.
  void observe_arrival(Rank rank, std::uint64_t number);
  // Ops from here on. REQUIRES: before the first op; `timeline` outlives the replay.
  void record(TimelineRecorder* timeline) override { timeline_ = timeline; }

 private:
  enum class State : std::uint8_t {
    kNeedsEvents,
    kWorking,  // on its node's processors
    kTimed,    // blocked, or waits for a message that arrives at a known time
    kWaiting,  // for a message whose arrival, or whose sender's end, is not known yet
    kRunning,  // between two of these, inside run()
    kDone,
  };
  enum class Stage : std::uint8_t { kStart, kAction, kAfter };  // of the op in hand
  struct Process {
    OpStore::Cursor cursor;
    std::uint32_t node = 0;  // of nodes_
    State state = State::kNeedsEvents;
    Stage stage = Stage::kStart;
    bool exited = false;
    bool actor = false;
    bool awake = false;        // waits on the processor, not asleep; known where counts_awake_
    bool at_device = false;    // waits for its device, on the processor
    bool for_post = false;     // waits for the end of its send, not for a message
    bool takes_turns = false;  // waits on a node whose waiting processes do
    bool settled = false;      // its first receive over a path with first_peer_s is over
    MessageIndex waits_for = kNoMessage;
    Seconds finish_s = 0;
    Seconds measured_s = 0;
    Seconds wait_since_s = 0;
    Seconds connected_s = kNeverS;  // since when a send of its own over such a path has left
    Seconds timed_until_s = 0;
    std::uint64_t events_done = 0;
    std::uint32_t further_threads = 0;  // that work beside its own, in a parallel region
  };
  struct Work {
    Seconds end;  // on the node's virtual clock
    ProcessIndex process;
  };
  struct EndsLater {
    bool operator()(const Work& a, const Work& b) const {
      return a.end != b.end ? a.end > b.end : a.process > b.process;
    }
  };
  // A group of groups_: a node, or one of its memory domains.
  struct Node {
    Seconds time_s = 0;          // group time: up to here the virtual clock was brought
    Seconds virtual_s = 0;       // work that each runnable process got since the node was last idle
    std::vector<Work> runnable;  // heap by end
    std::size_t beside = 0;   // awake (where `spins`), further_threads, at_devices: they have a share beside `runnable`
    std::size_t looking = 0;  // processes in a kVainLooks
    double undisturbed = 1;   // so many processes work at full speed
    double speed = 1;
    double cores = 1;
    std::size_t awake = 0;            // processes that wait, not asleep; counted where counts_awake_
    std::size_t further_threads = 0;  // of its processes
    std::size_t at_devices = 0;       // processes that wait for their devices and keep their share
    bool spins = false;               // who is awake keeps its share of the processors
    bool takes_turns = false;         // its waiting processes do
    bool yields = false;              // it has more ranks than processors, and who looks in vain gives its own away
    // Processes that wait for a message now, and how many did just before the last time that changed.
    std::size_t waiting = 0;
    std::size_t waiting_before = 0;
    Seconds waiting_since_s = 0;  // when `waiting` last changed
    Seconds turn_s = 0;           // work of one vain poll of another waiting process
    Seconds switch_s = 0;         // work until a process that waited for one of the node has its processor
  };
  void add_processes();
  void grow_messages();
  // Seconds of each node's turns, where its ranks are more than its processors and yield.
  void set_turns();
  void start_processes();
  double rate(const Node& node) const {
    if (node.looking > 0) [[unlikely]]
      return looking_rate(node);
    const auto sharers = static_cast<double>(node.runnable.size() + node.beside);
    return sharers <= node.undisturbed ? node.speed : crowded_rate(node, sharers);
  }
  // Where some rank looks in vain.
  double looking_rate(const Node& node) const;
  // Where not all SHARERS work at full speed.
  double crowded_rate(const Node& node, double sharers) const;
  // Of its speed without the others of its memory domain, where each has so much of a processor. Who waits, at a
  // device, too, and who looks in vain moves nothing.
  double memory_share(const Node& node, double processors) const;
  void bring_to(Node& node, Seconds time_s);
  // The node's next end of work has changed.
  void schedule(std::uint32_t node);
  static constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
  // Starts `work_s` of processor work; false: there is none to do.
  bool start_work(ProcessIndex index, Seconds work_s, Seconds now_s);
  bool start_wait(ProcessIndex index, Seconds time_s, Seconds now_s);
  bool hold_up(ProcessIndex index, const Op& op, Seconds now_s);
  void run(ProcessIndex index, Seconds now_s);
  // Recorded work of so many threads, had its rank a memory domain for itself.
  Seconds undisturbed_s(ProcessIndex index, Seconds work_s, std::uint32_t threads) const;
  // Work of an op with a row, or of its first stage; and of any op, had its rank a memory domain for itself.
  Seconds changed_work_s(ProcessIndex index, const Op& op) const;
  // The threads of a parallel region work at the same time; false: they have nothing to do.
  bool start_threads(ProcessIndex index, const Op& op, Seconds now_s);
  void finish_row(Process& process, const Op& op);
  // One stage of the op in hand; true: the process goes on at once.
  bool step(ProcessIndex index, const Op& op, Seconds now_s);
  void finish_op(ProcessIndex index, const Op& op, Seconds now_s);
  // flight, send_cpu and recv_cpu of the message
  struct Cost {
    Seconds flight_s, send_cpu_s, recv_cpu_s;
  };
  Cost cost(const Message& message);
  // Of a kCopy or kReduce.
  Seconds local_work_s(const Op& op);
  std::uint32_t node_of(Rank rank) const { return target_.node_of_rank[static_cast<std::size_t>(rank)]; }
  std::size_t locality(const Message& message) const {
    return localities_.of(node_of(message.src), node_of(message.dst));
  }
  bool is_rendezvous(const Message& message) const {
    if (message.bytes <= eager_up_to_ && !message.sync) return false;
    return !message.internal && (message.sync || message.bytes > eager_limit_[locality(message)]);
  }
  Rendezvous rendezvous(const Message& message);
  Flight& flight_of(MessageIndex index);
  // An op that names the message was executed. REQUIRES: it has a flight.
  void use(MessageIndex index);
  // The message leaves `delay_s` from now.
  void execute_send(MessageIndex index, Seconds delay_s, Seconds now_s);
  void execute_post(MessageIndex index, Seconds now_s);
  // Both sides of a rendezvous are ready.
  void start_transfer(MessageIndex index, Flight& flight, Seconds now_s);
  // The message is on its way at `start_s` and, on links of its own, arrives `rest_s` later.
  void fly(MessageIndex index, Seconds start_s, Seconds rest_s, Seconds now_s);
  void arrives(MessageIndex index, Seconds arrival_s, Seconds now_s);
  // The process waits for a message event at `time_s` (kNeverS: when is not known yet); false: it is over.
  enum class Waits : std::uint8_t { kAwake, kAsleep };  // asleep: off the processor whatever Target::waiting is
  template <Waits kHow = Waits::kAwake>
  bool await(ProcessIndex index, MessageIndex message, Awaited what, Seconds time_s, Seconds now_s);
  void set_timer(ProcessIndex index, Seconds time_s);
  // A process of the node begins to wait awake (1), or ends it (-1).
  void count_awake(ProcessIndex index, int change, Seconds now_s);
  // From here on who waits awake is counted, those that do it already too.
  void begin_counting_awake();
  // A kVainLooks; false: it takes no time here.
  bool start_looks(ProcessIndex index, const Op& op, Seconds now_s);
  void end_looks(ProcessIndex index, Seconds now_s);
  // A process begins to wait for its device on the processor (1), or ends it (-1).
  void count_at_device(ProcessIndex index, int change, Seconds now_s);
  void count_waiting(Node& node, int change, Seconds now_s);
  // The work that passes before a process that waited for `op`'s message has the processor again. REQUIRES:
  // it takes turns.
  Seconds turns_s(const Process& process, const Op& op, Seconds since_s, Seconds now_s) const;
  Seconds first_message_s(const Message& message, const Op& op) const {
    return (op.flags & kOpFirst) == 0 ? 0 : localities_.path(locality(message)).first_message_s;
  }
  // First contact (docs/engine.md). How much longer the rank waits for this message, because it has not
  // looked for connections before.
  // When a probe finds the message, as far as it is known.
  Seconds announced_s(MessageIndex index);
  Seconds first_peer_s(const Process& process, const Op& op);
  bool is_unsettled(const Process& process, const Op& op) const;
  // It has sent a message that leaves at `leaves_s`.
  void connect(Process& process, const Op& op, Seconds leaves_s);
  bool next_event();
  void observe_arrival_row();
  void observe_row(ObservedRow::Cause cause, Rank rank, std::uint64_t number);
  void observe_events(Rank rank, ObservedRow& row);

  OpStore& store_;
  const Target& target_;
  const MemoryDomains* memory_;  // nullptr: not shared
  std::uint8_t scales_work_;     // 1: recorded work is not what it would be with a memory domain for itself
  SharingGroups groups_;
  Localities localities_;
  CostTable costs_;
  CallBegins calls_;
  std::vector<Bytes> eager_limit_;  // by locality
  Bytes eager_up_to_ = 0;           // the smallest of them
  bool any_first_peer_ = false;     // some path has a first_peer_s
  std::vector<Node> nodes_;
  std::vector<Process> processes_;
  Flights flights_;
  WinnerTree work_queue_;              // sources: nodes
  std::uint32_t busy_node_ = kNoNode;  // its next end is put into the queue later, when it is known
  EventQueue timer_queue_;             // sources: processes
  Links links_;
  bool counts_awake_;                       // of each node, who waits awake: all spin, or a rank has looked in vain
  std::vector<ProcessIndex> needs_events_;  // ranks that ran out of events; nothing happens until it is empty
  std::vector<ProcessIndex> starting_;      // scratch
  Seconds now_s_ = 0;
  ReplayObserver* observer_ = nullptr;
  TimelineRecorder* timeline_ = nullptr;
  Rank arrived_rank_ = kAnyRank;
  std::uint64_t arrived_number_ = 0;
};

}  // namespace lbf::engine
