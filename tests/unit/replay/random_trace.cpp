// Programs, see random_trace.h.
#include "tests/unit/replay/random_trace.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>

#include "predictor/engine/match/collective.h"

namespace lbf::random_trace {
namespace {

using reference::Action;

struct Channel {
  std::deque<std::size_t> sent;    // messages that no receive has a place for
  std::deque<std::size_t> placed;  // messages that receives have places for, not sent yet
};

struct Posted {
  std::uint32_t request = 0;
  Rank src = kAnyRank;  // kAnyRank: wildcard
  std::int32_t tag = 0;
  std::size_t message = 0;
  std::size_t action = 0;  // wildcard: its kPost among the rank's actions, whose message is to be filled in
};

struct Outstanding {  // a send or a non-blocking collective
  std::uint32_t request = 0;
  std::size_t message = 0;  // the send's, or the collective's join
  bool collective = false;
};

class Maker {
 public:
  Maker(std::mt19937_64& random, Regions regions) : random_(random), has_regions_(regions == Regions::kSome) {}

  Trace make() {
    trace_.ranks = static_cast<Rank>(pick(1, 16));
    const std::size_t ranks = static_cast<std::size_t>(trace_.ranks);
    trace_.events.resize(ranks);
    trace_.program.ranks = trace_.ranks;
    trace_.program.processes.resize(ranks);
    for (std::size_t r = 0; r < ranks; ++r) trace_.program.processes[r].rank = static_cast<int>(r);
    posted_.resize(ranks);
    outstanding_.resize(ranks);
    exited_.resize(ranks, false);
    needs_no_buffers_ = chance(2);
    const std::size_t actions = pick(5, 40) * ranks;
    const bool collectives = chance(2);
    for (std::size_t i = 0; i < actions; ++i) {
      const Rank rank = static_cast<Rank>(pick(0, ranks - 1));
      if (exited_[static_cast<std::size_t>(rank)]) continue;
      act(rank, collectives);
    }
    drain();
    for (Rank rank = 0; rank < trace_.ranks; ++rank) {
      if (!exited_[static_cast<std::size_t>(rank)]) leave(rank);
    }
    return std::move(trace_);
  }

 private:
  std::size_t pick(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random_);
  }
  bool chance(std::size_t one_in) { return pick(1, one_in) == 1; }
  // Often 0, often a small whole number (so that things happen at the same time), else anything.
  double duration() {
    switch (pick(0, 3)) {
      case 0:
        return 0;
      case 1:
        return static_cast<double>(pick(1, 3));
      default:
        return std::uniform_real_distribution<double>(0, 5)(random_);
    }
  }

  Event start(Rank rank, EventKind kind) {
    Event event;
    event.kind = kind;
    event.process_s = duration();
    event.call_s = duration();
    act_on(rank, {Action::Kind::kWork, event.process_s, 0});
    return event;
  }
  void act_on(Rank rank, Action action) {
    trace_.program.processes[static_cast<std::size_t>(rank)].actions.push_back(action);
  }
  void add(Rank rank, const Event& event) { trace_.events[static_cast<std::size_t>(rank)].push_back(event); }
  std::size_t new_message(Rank src, Rank dst) {
    trace_.program.messages.push_back({src, dst, 0, false, false, false});
    sent_.push_back(false);
    posted_messages_.push_back(false);
    return trace_.program.messages.size() - 1;
  }
  Channel& channel(Rank src, Rank dst, std::int32_t tag) { return channels_[{src, dst, tag}]; }

  void act(Rank rank, bool collectives) {
    const std::size_t me = static_cast<std::size_t>(rank);
    switch (has_regions_ && chance(16)   ? kRegions
            : has_regions_ && chance(16) ? kDevice
                                         : pick(0, collectives ? 13 : 11)) {
      case 0: {
        Event event = start(rank, EventKind::kCompute);
        if (chance(3)) {
          const std::uint64_t looks = pick(1, 3);
          const Event vain = vain_looks_event(looks, Duration(duration()));
          event.bytes = vain.bytes;
          event.call_s = vain.call_s;
          act_on(rank, {Action::Kind::kVainLooks, vain.call_s, 0, 0, static_cast<double>(looks)});
        }
        add(rank, event);
        return;
      }
      case 1: {
        Event event = start(rank, chance(2) ? EventKind::kBlocked : EventKind::kUnmodelled);
        event.off_s = event.kind == EventKind::kBlocked ? duration() : 0;
        if (event.kind == EventKind::kBlocked && ++blocked_ % 3 == 0) {
          event.kind = EventKind::kPreempted;
          if (blocked_ % 2 == 0) set_delayed_end(event, event.off_s.ns() / 2);
          act_on(rank, {Action::Kind::kOthers, event.off_s + seconds_from_ns(delayed_end_ns(event)), 0});
        } else {
          act_on(rank, {Action::Kind::kBlocked, event.kind == EventKind::kBlocked ? event.off_s : event.call_s, 0});
        }
        add(rank, event);
        return;
      }
      case 2: {
        Event event = start(rank, EventKind::kKeepAlive);
        add(rank, event);
        return;
      }
      case 3:
      case 4:
      case 5:
        send(rank, static_cast<Rank>(pick(0, static_cast<std::size_t>(trace_.ranks) - 1)), tag());
        return;
      case 6:
        post(rank);
        return;
      case 7:
      case 8:
        receive(rank);
        return;
      case 9:
        complete_receive(rank);
        return;
      case 10:
        complete_outstanding(rank);
        return;
      case 11:
        if (chance(8) && posted_[me].empty() && outstanding_[me].empty() && !collectives) leave(rank);
        return;
      case kRegions:
        regions(rank);
        return;
      case kDevice:
        device(rank);
        return;
      case 12:
        collective(false);
        return;
      default:
        collective(true);
        return;
    }
  }
  static constexpr std::size_t kRegions = 99;
  static constexpr std::size_t kDevice = 100;
  void device(Rank rank) {
    Event event = event_of_kind(EventKind::kDevice);
    event.process_s = duration();
    const Nanoseconds all_ns = event.process_s.ns();
    const Nanoseconds busy_ns = chance(2) ? all_ns : all_ns / static_cast<Nanoseconds>(pick(1, 4));
    trace_.values.push_back({pick(1, 5), static_cast<std::uint64_t>(busy_ns)});
    event.values = trace_.values.back();
    act_on(rank, {Action::Kind::kBlocked, seconds_from_ns(all_ns - busy_ns), 0});
    act_on(rank, {Action::Kind::kDevice, seconds_from_ns(busy_ns), 0});
    add(rank, event);
  }
  void regions(Rank rank) {
    Event event = event_of_kind(EventKind::kRegions);
    event.process_s = 0.5 + duration();
    const std::uint64_t threads = pick(1, 4);
    const auto nanoseconds = [&] { return static_cast<std::uint64_t>(duration() * 1e9); };
    const std::uint64_t work = nanoseconds();
    const std::uint64_t longest = threads == 1 ? work : std::min(work, work / threads + nanoseconds() / threads);
    trace_.values.push_back({pick(1, 5), threads, work, longest, threads == 1 ? 0 : nanoseconds()});
    event.values = trace_.values.back();
    const auto seconds = [&](std::size_t at) { return static_cast<double>(event.values[at]) / 1e9; };
    Action action{Action::Kind::kRegions, 0, 0};
    action.work = seconds(2);
    action.longest = seconds(3);
    action.fork_join = seconds(4);
    action.regions = static_cast<double>(event.values[0]);
    action.threads = static_cast<int>(threads);
    act_on(rank, action);
    add(rank, event);
  }
  std::int32_t tag() { return static_cast<std::int32_t>(pick(0, 2)); }

  void send(Rank rank, Rank to, std::int32_t tag) {
    if (exited_[static_cast<std::size_t>(to)]) return;
    Channel& c = channel(rank, to, tag);
    // A program that needs no buffers sends with MPI_Send only what its receiver waits for already.
    const bool nonblocking = chance(2) || (needs_no_buffers_ && c.placed.empty());
    Event event = start(rank, nonblocking ? EventKind::kIsend : EventKind::kSend);
    event.peer = to;
    event.tag = tag;
    event.bytes = chance(3) ? 0 : pick(0, static_cast<std::size_t>(kMaxBytes));
    if (chance(8) && (needs_no_buffers_ || chance(8))) event.flags |= kFlagSync;
    std::size_t message = 0;
    if (c.placed.empty()) {
      message = new_message(rank, to);
      c.sent.push_back(message);
    } else {
      message = c.placed.front();
      c.placed.pop_front();
    }
    if (nonblocking) {
      event.request = ++requests_;
      event.flags |= kFlagHasRequest;
      outstanding_[static_cast<std::size_t>(rank)].push_back({event.request, message, false});
    }
    sent_[message] = true;
    trace_.program.messages[message].bytes = static_cast<double>(event.bytes);
    trace_.program.messages[message].sync = (event.flags & kFlagSync) != 0;
    act_on(rank, {nonblocking ? Action::Kind::kIsend : Action::Kind::kSend, 0, message});
    add(rank, event);
  }

  bool has_wildcard(Rank rank) const {
    const auto& posted = posted_[static_cast<std::size_t>(rank)];
    return std::any_of(posted.begin(), posted.end(), [](const Posted& p) { return p.src == kAnyRank; });
  }

  // A non-blocking receive, perhaps long before its send. While a wildcard is open nothing else is posted:
  // which place a receive behind a wildcard takes is the matcher's own test.
  void post(Rank rank) {
    if (has_wildcard(rank)) return;
    Event event = start(rank, EventKind::kStartRecv);
    Posted posted;
    posted.request = ++requests_;
    event.request = posted.request;
    event.flags |= kFlagHasRequest;
    if (chance(4)) {
      event.flags |= kFlagWildcardSource | kFlagWildcardTag;
    } else {
      const Rank src = static_cast<Rank>(pick(0, static_cast<std::size_t>(trace_.ranks) - 1));
      posted.tag = tag();
      if (exited_[static_cast<std::size_t>(src)] && channel(src, rank, posted.tag).sent.empty()) {
        event.flags |= kFlagWildcardSource | kFlagWildcardTag;
      } else {
        posted.src = src;
        event.peer = src;
        event.tag = posted.tag;
        posted.message = take(src, rank, posted.tag);
      }
    }
    posted.action = trace_.program.processes[static_cast<std::size_t>(rank)].actions.size();
    act_on(rank, {Action::Kind::kPost, 0, posted.message});
    if (posted.src != kAnyRank) posted_messages_[posted.message] = true;
    posted_[static_cast<std::size_t>(rank)].push_back(posted);
    add(rank, event);
  }

  std::size_t take(Rank src, Rank dst, std::int32_t tag) {
    Channel& c = channel(src, dst, tag);
    if (!c.sent.empty()) {
      const std::size_t message = c.sent.front();
      c.sent.pop_front();
      return message;
    }
    c.placed.push_back(new_message(src, dst));
    return c.placed.back();
  }

  // A channel on which something was sent that no receive has a place for.
  bool find_sent(Rank dst, Rank& src, std::int32_t& tag) {
    std::vector<std::pair<Rank, std::int32_t>> found;
    for (const auto& [key, c] : channels_) {
      if (std::get<1>(key) == dst && !c.sent.empty()) found.emplace_back(std::get<0>(key), std::get<2>(key));
    }
    if (found.empty()) return false;
    std::tie(src, tag) = found[pick(0, found.size() - 1)];
    return true;
  }

  void receive(Rank rank) {
    Rank src = 0;
    std::int32_t t = 0;
    if (has_wildcard(rank) || !find_sent(rank, src, t)) return;
    if (chance(4)) {
      const double period_s = sleep_between_looks(rank);
      Event probe = start(rank, EventKind::kProbe);
      probe.peer = src;
      probe.tag = t;
      look(rank, period_s, channel(src, rank, t).sent.front());
      act_on(rank, {Action::Kind::kPeek, 0, channel(src, rank, t).sent.front()});
      add(rank, probe);
    }
    const std::size_t message = take(src, rank, t);
    posted_messages_[message] = true;
    if (chance(2)) {
      Event event = start(rank, EventKind::kRecv);
      event.peer = src;
      event.tag = t;
      if (chance(3)) event.flags |= kFlagWildcardSource;
      act_on(rank, {Action::Kind::kRecv, 0, message});
      add(rank, event);
      return;
    }
    Event begin = start(rank, EventKind::kStartRecv);
    begin.peer = src;
    begin.tag = t;
    act_on(rank, {Action::Kind::kPost, 0, message});
    add(rank, begin);
    end_recv(rank, src, t, message, 0);
  }

  // The rank slept between looks for the message that its next event takes. How long each time; 0: it did not.
  double sleep_between_looks(Rank rank) {
    if (!chance(6)) return 0;
    Event sleep = start(rank, EventKind::kBlocked);
    set_look_period(sleep, static_cast<Nanoseconds>(pick(1, 20)) * 100'000'000);
    sleep.off_s = seconds_from_ns(look_period_ns(sleep) * static_cast<Nanoseconds>(pick(1, 5)));
    add(rank, sleep);
    return seconds_from_ns(look_period_ns(sleep));
  }
  void look(Rank rank, double period_s, std::size_t message) {
    if (period_s > 0) act_on(rank, {Action::Kind::kLook, period_s, message});
  }

  void end_recv(Rank rank, Rank src, std::int32_t t, std::size_t message, std::uint32_t request) {
    const double period_s = sleep_between_looks(rank);
    Event end = start(rank, EventKind::kEndRecv);
    end.peer = src;
    end.tag = t;
    if (request != 0) {
      end.request = request;
      end.flags |= kFlagHasRequest;
    }
    look(rank, period_s, message);
    act_on(rank, {Action::Kind::kRecv, 0, message});
    add(rank, end);
  }

  void complete_receive(Rank rank) {
    auto& posted = posted_[static_cast<std::size_t>(rank)];
    if (posted.empty()) return;
    const std::size_t which = pick(0, posted.size() - 1);
    Posted p = posted[which];
    if (p.src == kAnyRank) {
      if (!find_sent(rank, p.src, p.tag)) return;
      p.message = take(p.src, rank, p.tag);
      posted_messages_[p.message] = true;
      trace_.program.processes[static_cast<std::size_t>(rank)].actions[p.action].message = p.message;
    } else if (!sent_[p.message]) {
      return;
    }
    posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(which));
    end_recv(rank, p.src, p.tag, p.message, p.request);
  }

  // Completing a send whose receive is not posted yet would need a buffer.
  bool may_complete(const Outstanding& o) const {
    return o.collective || !needs_no_buffers_ || posted_messages_[o.message];
  }
  void complete(Rank rank, const Outstanding& o) {
    act_on(rank, {o.collective ? Action::Kind::kRecv : Action::Kind::kWaitSend, 0, o.message});
  }

  void complete_outstanding(Rank rank) {
    auto& outstanding = outstanding_[static_cast<std::size_t>(rank)];
    std::vector<Outstanding> now;
    std::copy_if(outstanding.begin(), outstanding.end(), std::back_inserter(now),
                 [this](const Outstanding& o) { return may_complete(o); });
    if (now.empty()) return;
    if (chance(2)) now = {now[pick(0, now.size() - 1)]};
    Event event = start(rank, EventKind::kWait);
    if (now.size() > 1 || chance(2)) {
      trace_.values.emplace_back();
      for (const Outstanding& o : now) trace_.values.back().push_back(o.request);
      event.values = trace_.values.back();
    } else {
      event.request = now.front().request;
      event.flags |= kFlagHasRequest;
    }
    for (const Outstanding& o : now) {
      complete(rank, o);
      std::erase_if(outstanding, [&](const Outstanding& other) { return other.request == o.request; });
    }
    add(rank, event);
  }

  // One collective of all ranks. The steps are expand_collective's (it has its own tests); what is compared
  // is how they are paired and replayed.
  void collective(bool nonblocking) {
    if (chance(2)) return;
    static constexpr CollectiveOp kOps[] = {CollectiveOp::kBarrier, CollectiveOp::kAlltoall, CollectiveOp::kAllreduce,
                                            CollectiveOp::kBcast,   CollectiveOp::kReduce,   CollectiveOp::kGather};
    const CollectiveOp op = kOps[pick(0, 5)];
    const bool in_place = chance(4);
    const Bytes bytes = op == CollectiveOp::kBarrier ? 0 : pick(0, 4000);
    const Rank root = static_cast<Rank>(pick(0, static_cast<std::size_t>(trace_.ranks) - 1));
    std::map<std::pair<Rank, Rank>, std::vector<std::size_t>> by_pair;
    const auto message = [&](Rank src, Rank dst, std::size_t nth) {
      auto& list = by_pair[{src, dst}];
      while (list.size() <= nth) list.push_back(new_message(src, dst));
      return list[nth];
    };
    for (Rank rank = 0; rank < trace_.ranks; ++rank) {
      Event event = start(rank, nonblocking ? EventKind::kIcollective : EventKind::kCollective);
      set_op(event, op);
      event.bytes = bytes;
      event.root = root;
      if (in_place) event.flags |= kFlagInPlace;
      engine::CollectiveCall call;
      call.op = op;
      call.in_place = in_place;
      call.local_work = true;
      call.nonblocking = nonblocking;
      call.rank = static_cast<std::uint32_t>(rank);
      call.size = static_cast<std::uint32_t>(trace_.ranks);
      call.root = root;
      call.bytes = bytes;
      std::vector<engine::CollectiveStep> steps;
      if (!engine::expand_collective(call, steps).ok())
        throw std::logic_error("expand_collective refuses a plain call");
      std::size_t runner = static_cast<std::size_t>(rank);
      std::size_t fork = 0;
      std::size_t join = 0;
      if (nonblocking) {
        event.request = ++requests_;
        event.flags |= kFlagHasRequest;
        fork = new_message(rank, rank);
        join = new_message(rank, rank);
        trace_.program.messages[fork].internal = trace_.program.messages[join].internal = true;
        act_on(rank, {Action::Kind::kSend, 0, fork});
        runner = trace_.program.processes.size();
        trace_.program.processes.push_back({rank, true, {{Action::Kind::kRecv, 0, fork}}});
        outstanding_[static_cast<std::size_t>(rank)].push_back({event.request, join, true});
      }
      std::map<std::pair<Rank, Rank>, std::size_t> nth;
      const auto name = [&](const engine::CollectiveStep& step) {
        const Rank peer = static_cast<Rank>(step.peer);
        const bool sends = step.kind == engine::CollectiveStep::Kind::kSend;
        const std::pair<Rank, Rank> pair = sends ? std::pair{rank, peer} : std::pair{peer, rank};
        // A rank that sends to itself counts sends and receives apart.
        const std::size_t m =
            message(pair.first, pair.second, sends ? nth[pair]++ : nth[{pair.first + 1000, pair.second}]++);
        if (sends) trace_.program.messages[m].bytes = static_cast<double>(step.bytes);
        trace_.program.messages[m].collective = true;
        return m;
      };
      const auto act = [&](Action::Kind kind, std::size_t m) {
        trace_.program.processes[runner].actions.push_back({kind, 0, m});
      };
      // Sends with the receives that follow them are one exchange: posts, sends, receives, then waits. Sends
      // that no receive follows are done one after the other. What the rank does by itself ends an exchange.
      std::size_t at = 0;
      while (at < steps.size()) {
        const bool copies = steps[at].kind == engine::CollectiveStep::Kind::kCopy;
        if (copies || steps[at].kind == engine::CollectiveStep::Kind::kReduce) {
          const Action::Kind kind = copies ? Action::Kind::kCopy : Action::Kind::kReduce;
          trace_.program.processes[runner].actions.push_back({kind, 0, 0, static_cast<double>(steps[at++].bytes)});
          continue;
        }
        std::vector<std::size_t> sent;
        std::vector<std::size_t> received;
        for (; at < steps.size() && steps[at].kind == engine::CollectiveStep::Kind::kSend; ++at)
          sent.push_back(name(steps[at]));
        for (; at < steps.size() && steps[at].kind == engine::CollectiveStep::Kind::kRecv; ++at)
          received.push_back(name(steps[at]));
        if (sent.empty() || received.empty()) {
          for (std::size_t m : sent) act(Action::Kind::kSend, m);
          for (std::size_t m : received) act(Action::Kind::kRecv, m);
          continue;
        }
        for (std::size_t m : received) act(Action::Kind::kPost, m);
        for (std::size_t m : sent) act(Action::Kind::kIsend, m);
        for (std::size_t m : received) act(Action::Kind::kRecv, m);
        for (std::size_t m : sent) act(Action::Kind::kWaitSend, m);
      }
      if (nonblocking) trace_.program.processes[runner].actions.push_back({Action::Kind::kSend, 0, join});
      add(rank, event);
    }
  }

  // Gives every posted receive its send, completes everything.
  void drain() {
    for (auto& [key, c] : channels_) {
      while (!c.placed.empty()) send(std::get<0>(key), std::get<1>(key), std::get<2>(key));
    }
    for (Rank rank = 0; rank < trace_.ranks; ++rank) {
      auto& posted = posted_[static_cast<std::size_t>(rank)];
      while (!posted.empty()) {
        Rank src = 0;
        std::int32_t t = 0;
        if (has_wildcard(rank) && !find_sent(rank, src, t)) send(some_live_rank(), rank, tag());
        complete_receive(rank);
      }
    }
    // What was sent and nobody has received yet.
    for (Rank rank = 0; rank < trace_.ranks; ++rank) {
      Rank src = 0;
      std::int32_t t = 0;
      while (!exited_[static_cast<std::size_t>(rank)] && find_sent(rank, src, t)) receive(rank);
    }
    for (Rank rank = 0; rank < trace_.ranks; ++rank) finish_outstanding(rank);
  }
  // Sends to ranks that have exited are never received: where that needs a buffer they stay uncompleted.
  void finish_outstanding(Rank rank) {
    const auto& outstanding = outstanding_[static_cast<std::size_t>(rank)];
    while (
        std::any_of(outstanding.begin(), outstanding.end(), [this](const Outstanding& o) { return may_complete(o); })) {
      complete_outstanding(rank);
    }
  }
  Rank some_live_rank() {
    for (;;) {
      const std::size_t rank = pick(0, exited_.size() - 1);
      if (!exited_[rank]) return static_cast<Rank>(rank);
    }
  }

  void leave(Rank rank) {
    // Receives of others that were placed on this rank's sends must be served first.
    for (auto& [key, c] : channels_) {
      if (std::get<0>(key) == rank) {
        while (!c.placed.empty()) send(rank, std::get<1>(key), std::get<2>(key));
      }
    }
    finish_outstanding(rank);
    add(rank, start(rank, EventKind::kExit));
    exited_[static_cast<std::size_t>(rank)] = true;
  }

  std::mt19937_64& random_;
  bool has_regions_;
  Trace trace_;
  std::map<std::tuple<Rank, Rank, std::int32_t>, Channel> channels_;
  std::vector<std::vector<Posted>> posted_;
  std::vector<std::vector<Outstanding>> outstanding_;
  std::vector<bool> exited_;
  std::vector<bool> sent_;             // by message
  std::vector<bool> posted_messages_;  // by message: its receive is posted
  std::uint32_t requests_ = 0;
  bool needs_no_buffers_ = false;  // the program runs with every send a synchronous one
  std::size_t blocked_ = 0;        // events so far
};

}  // namespace

Trace make_trace(std::mt19937_64& random, Regions regions) {
  return Maker(random, regions).make();
}

}  // namespace lbf::random_trace
