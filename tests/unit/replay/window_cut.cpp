#include "tests/unit/replay/window_cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lbf::random_trace {
namespace {

struct CutReceive {
  bool wildcard = false;
  std::uint32_t window = 0;  // in which it began; kNone: between two
  Event event{};             // of a receive
  std::size_t number = 0;    // of the event in the rank's trace
};
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::uint32_t kBlocking = ~std::uint32_t{0};  // stands for the request of a blocking startRecv

bool is_wildcard(const Event& event) {
  return (event.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0;
}

// One rank's capture.
class Cutter {
 public:
  Cutter(CutTrace& cut, Rank rank) : cut_(cut), events_(cut.events[static_cast<std::size_t>(rank)]) {}

  void take(const Event& event, std::size_t number) {
    if (ended_) {
      away_s_ += event.process_s + event.call_s + event.off_s;
    } else if (open_) {
      record(event, number);
    } else {
      count(event, number);
    }
  }
  void close() {
    Event event;
    event.kind = EventKind::kWindowClose;
    made(event);
    open_ = false;
  }
  // Receives that have no place yet are posted in the window once more.
  void post_waiting() {
    for (const std::uint32_t request : waiting_) {
      CutReceive& posted = active_.at(request);
      posted.window = window_;
      Event again = posted.event;
      again.process_s = again.call_s = 0;
      events_.push_back({again, posted.number});
    }
  }
  void open() {
    for (const auto& [key, count] : counts_) {
      const auto& [side, comm, peer, tag] = key;
      skipped(side, comm, peer, tag, count);
    }
    counts_.clear();
    Event event = window_open_event(++window_);
    event.call_s = away_s_;
    away_s_ = 0;
    made(event);
    open_ = true;
    post_waiting();
  }
  // The capture ends for good. Of what was counted since the last window some may be said, none need be.
  void end(std::mt19937_64& random) {
    if (open_) close();
    for (const auto& [key, count] : counts_) {
      const auto& [side, comm, peer, tag] = key;
      if (random() % 3 == 0) skipped(side, comm, peer, tag, 1 + random() % count);
    }
    skipped(SkippedSide::kEverything, 0, kAnyRank, kAnyTag, 1);
    ended_ = true;
  }
  // ... and the program.
  void exit(const Event& event, std::size_t number) {
    Event open = window_open_event(window_);
    open.call_s = away_s_;
    made(open);
    events_.push_back({event, number});
  }
  bool has_ended() const { return ended_; }
  bool is_open() const { return open_; }
  bool inside_a_receive() const { return active_.contains(kBlocking); }

 private:
  void made(const Event& event) { events_.push_back({event, kMade}); }
  void skipped(SkippedSide side, std::uint32_t comm, Rank peer, std::int32_t tag, std::uint64_t count) {
    Event event = skipped_event(side, count);
    event.comm = comm;
    event.peer = peer;
    event.tag = tag;
    made(event);
  }
  static std::uint32_t request_of(const Event& event) {
    return (event.flags & kFlagHasRequest) != 0 ? event.request : kBlocking;
  }
  void begin(const Event& event, std::size_t number) {
    const bool starts =
        event.kind == EventKind::kIsend || event.kind == EventKind::kStartRecv || event.kind == EventKind::kIcollective;
    if (!starts) return;
    const std::uint32_t request = request_of(event);
    active_[request] = {is_wildcard(event), open_ ? window_ : kNone, event, number};
    if (event.kind != EventKind::kStartRecv) return;
    if (is_wildcard(event) || is_behind(event, waiting_.size())) {
      waiting_.push_back(request);
    } else if (!open_) {
      ++counts_[{SkippedSide::kReceives, event.comm, event.peer, event.tag}];
    }
  }
  // Whether one of the first `before` receives without a place may take what this one waits for.
  bool is_behind(const Event& receive, std::size_t before) const {
    return std::any_of(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(before),
                       [&](std::uint32_t request) {
                         const Event& other = active_.at(request).event;
                         return other.comm == receive.comm &&
                                ((other.flags & kFlagWildcardSource) != 0 || other.peer == receive.peer) &&
                                ((other.flags & kFlagWildcardTag) != 0 || other.tag == receive.tag);
                       });
  }
  // A receive ends. Whether it had no place until now; then those behind it have theirs.
  bool stops_waiting(std::uint32_t request) {
    const auto found = std::find(waiting_.begin(), waiting_.end(), request);
    if (found == waiting_.end()) return false;
    waiting_.erase(found);
    for (std::size_t i = 0; i < waiting_.size();) {
      const Event& receive = active_.at(waiting_[i]).event;
      if (is_wildcard(receive) || is_behind(receive, i)) {
        ++i;
        continue;
      }
      if (!open_) ++counts_[{SkippedSide::kReceives, receive.comm, receive.peer, receive.tag}];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return true;
  }
  // The request ends; was it begun in the window that is open?
  bool ends_here(std::uint32_t request, bool& wildcard) {
    const auto found = active_.find(request);
    wildcard = found->second.wildcard;
    const bool here = open_ && found->second.window == window_;
    active_.erase(found);
    return here;
  }

  void record(const Event& event, std::size_t number) {
    begin(event, number);
    bool wildcard = false;
    if (event.kind == EventKind::kEndRecv) stops_waiting(request_of(event));
    if (event.kind == EventKind::kEndRecv && !ends_here(request_of(event), wildcard)) {
      pass(event);
    } else if (event.kind == EventKind::kWait) {
      std::vector<std::uint64_t> requests(event.values.begin(), event.values.end());
      if (requests.empty()) requests.push_back(event.request);
      std::erase_if(requests,
                    [&](std::uint64_t request) { return !ends_here(static_cast<std::uint32_t>(request), wildcard); });
      if (requests.empty()) return pass(event);
      Event wait = event;
      wait.values = cut_.values.emplace_back(std::move(requests));
      events_.push_back({wait, number});
    } else {
      events_.push_back({event, number});
    }
  }
  // Only its time.
  void pass(const Event& event) {
    Event compute;
    compute.kind = EventKind::kCompute;
    compute.process_s = event.process_s;
    compute.call_s = event.call_s;
    made(compute);
  }

  void count(const Event& event, std::size_t number) {
    begin(event, number);
    away_s_ += event.process_s + event.call_s + event.off_s;
    bool wildcard = false;
    switch (event.kind) {
      case EventKind::kSend:
      case EventKind::kIsend:
        ++counts_[{SkippedSide::kSends, event.comm, event.peer, event.tag}];
        break;
      case EventKind::kRecv:
        ++counts_[{SkippedSide::kReceives, event.comm, event.peer, event.tag}];
        break;
      case EventKind::kEndRecv:
        if (stops_waiting(request_of(event))) ++counts_[{SkippedSide::kReceives, event.comm, event.peer, event.tag}];
        ends_here(request_of(event), wildcard);
        break;
      case EventKind::kWait:
        for (const std::uint64_t request : event.values) ends_here(static_cast<std::uint32_t>(request), wildcard);
        if (event.values.empty()) ends_here(event.request, wildcard);
        break;
      case EventKind::kCollective:
      case EventKind::kIcollective:
        ++counts_[{SkippedSide::kCollectives, event.comm, kAnyRank, kAnyTag}];
        break;
      default:
        break;
    }
  }

  CutTrace& cut_;
  std::vector<CutEvent>& events_;
  bool open_ = true;
  bool ended_ = false;
  std::uint32_t window_ = 0;
  Seconds away_s_ = 0;
  std::map<std::uint32_t, CutReceive> active_;
  std::vector<std::uint32_t> waiting_;  // receives without a place, in posting order
  std::map<std::tuple<SkippedSide, std::uint32_t, Rank, std::int32_t>, std::uint64_t> counts_;
};

}  // namespace

CutTrace cut_windows(const Trace& trace, double share, std::mt19937_64& random, double ending) {
  CutTrace cut;
  cut.events.resize(static_cast<std::size_t>(trace.ranks));
  std::uniform_real_distribution<double> uniform(0, 1);
  const int windows = 1 + static_cast<int>(random() % 5);
  for (Rank rank = 0; rank < trace.ranks; ++rank) {
    const auto& events = trace.events[static_cast<std::size_t>(rank)];
    Cutter cutter(cut, rank);
    // Where it opens and closes, as shares of the events: alike for all ranks but for some jitter.
    std::vector<double> changes;
    for (int w = 0; w < windows; ++w) {
      changes.push_back((w + share) / windows + 0.1 * (uniform(random) - 0.5) / windows);
      changes.push_back((w + 1.0) / windows + 0.1 * (uniform(random) - 0.5) / windows);
    }
    const double end_at = uniform(random) < ending ? uniform(random) : 2;
    std::size_t change = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool last = events[i].kind == EventKind::kExit;
      const double at = static_cast<double>(i) / static_cast<double>(events.size());
      const bool may_change = !last && !cutter.has_ended() && !cutter.inside_a_receive();
      if (may_change && at >= end_at) cutter.end(random);
      while (may_change && !cutter.has_ended() && change < changes.size() && at >= changes[change]) {
        (change % 2 == 0) ? cutter.close() : cutter.open();
        ++change;
      }
      if (last && cutter.has_ended()) {
        cutter.exit(events[i], i);
        continue;
      }
      if (last && !cutter.is_open()) cutter.open();  // an empty window, for the last counts
      cutter.take(events[i], i);
    }
  }
  return cut;
}

}  // namespace lbf::random_trace
