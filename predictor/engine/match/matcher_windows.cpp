// Matcher: capture windows, and what was only counted between them (docs/adr/0010-capture-windows.md). See
// matcher.h.
#include <algorithm>

#include "predictor/engine/match/matcher.h"

namespace lbf::engine {
namespace {

constexpr std::uint64_t kMostSkipped = std::uint64_t{1} << 60;
constexpr std::uint64_t kMostCollectives = 0x7fffffff;
constexpr std::size_t kKeptSlots = 4096;  // of a table of requests

std::uint64_t member_key(std::uint32_t comm, Rank rank) {
  return std::uint64_t{comm} << 32 | static_cast<std::uint32_t>(rank);
}

}  // namespace

std::uint8_t Matcher::closing_flag(const RankState& state, Seconds process_s) {
  if (state.scoped) return kOpScoped;
  return process_s > seconds_from_ns(static_cast<Nanoseconds>(state.measured_ns)) ? kOpInWork : 0;
}

Result<void> Matcher::feed_window_close(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (windows_.empty()) windows_.push_back(0);
  state.scoped = state.scoped || state.outside;
  // Receives without a place, wildcards and those behind them, come once more: posted in the next window if they
  // are still under way then, else among what was skipped. Their posts are held until it is known which of it (or that
  // the capture ends): nobody is to pass them before those who sent to them may.
  state.closed_before_places = state.any_unplaced();
  // Nobody will see how the others end.
  std::vector<ActiveRequest> active;
  state.requests.for_each([&](const ActiveRequest& request) { active.push_back(request); });
  if (!store_.budget().spend(state.requests.slots() / 16)) return store_.budget().status();
  if (state.requests.slots() > kKeptSlots) {
    state.requests = RequestTable(store_.account());  // each close walks over all of its slots
  } else {
    for (const ActiveRequest& request : active) state.requests.erase(request.number);
  }
  active.push_back(std::exchange(state.blocking_receive, {}));
  for (const ActiveRequest& request : active) {
    const bool is_held = request.what() == RequestKind::kHeldReceive && records_[request.value].message == kNoMessage;
    if (!is_held) forget(rank, request);
  }
  // Its blocks have what is in events; the rest is the whole window's.
  const auto process = static_cast<ProcessIndex>(rank);
  emit(process, Op::plain(OpKind::kCompute, event.process_s, 0));
  if (state.block_end_ns < blocks::kNeverNs) end_block(rank, state);
  state.block_end_ns = blocks::kNeverNs;
  emit(process, Op::on_window(OpKind::kWindowClose, state.window, event.call_s,
                              static_cast<std::uint8_t>(kOpEndsEvent | closing_flag(state, event.process_s))));
  state.counting = true;
  return {};
}

void Matcher::end_block(Rank rank, RankState& state) {
  emit(static_cast<ProcessIndex>(rank), Op::block_end(blocks::index_of(state.window, state.block)));
  // An event may be longer than several blocks: it is all in the one in which it began.
  while (state.block_end_ns <= state.measured_ns && state.block + 1 < blocks::kMostOfAWindow) {
    state.block_end_ns = blocks::end_ns(state.block_end_ns, ++state.block);
  }
}

void Matcher::emit_unseen(Rank rank, RankState& state, Duration call_s) {
  const auto process = static_cast<ProcessIndex>(rank);
  const bool is_cut = state.block_end_ns < blocks::kNeverNs;
  state.measured_ns -= static_cast<std::uint64_t>(call_s.ns());  // feed() adds it
  // What the block has so far is its own; it goes on behind this.
  if (is_cut) emit(process, Op::block_end(blocks::index_of(state.window, state.block)));
  emit(process, Op::plain(OpKind::kCompute, 0, call_s));
  if (is_cut) emit(process, Op::block_end(blocks::kOfNoBlock));
}

void Matcher::drop_unplaced(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  release_posts(rank);
  if (state.unplaced == nullptr) return;
  state.unplaced->for_each([&](std::uint32_t record) { free_record(record); });
  state.unplaced.reset();
  store_.account()->bytes -= sizeof(UnplacedReceives);
}

Result<void> Matcher::feed_window_open(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!state.counting) return fail(rank, "a capture window opens in another one");
  drop_unplaced(rank);
  const auto [at, is_new] =
      window_of_number_.emplace(window_number(event), static_cast<std::uint32_t>(windows_.size()));
  if (is_new) windows_.push_back(window_number(event));
  state.window = at->second;
  // After the end of the capture nothing comes but the end of the program.
  state.counting = state.after_end != kNobody;
  state.measured_ns = 0 - static_cast<std::uint64_t>(event.call_s.ns());  // feed() adds it
  state.block = 0;
  const bool is_cut = state.window < blocks::kCutWindows && !state.counting && !state.scoped;
  state.block_end_ns = is_cut ? blocks::kShortestNs : blocks::kNeverNs;
  if (state.ghost != kNobody) ghosts_.let_go(std::exchange(state.ghost, kNobody));
  if (state.held_ghost != kNobody) ghosts_.let_go(std::exchange(state.held_ghost, kNobody));
  // Parts of the program's scope follow one another: on no target does it take time what lies between them.
  const Seconds outside_s = state.outside ? Seconds(event.call_s) : 0;
  state.outside_s += outside_s;
  emit(static_cast<ProcessIndex>(rank),
       Op::on_window(OpKind::kWindowOpen, state.window, event.call_s - outside_s, kOpEndsEvent));
  return {};
}

bool Matcher::end_last_window(Rank rank, Seconds process_s, Seconds call_s) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.ghost != kNobody) ghosts_.let_go(std::exchange(state.ghost, kNobody));
  if (windows_.empty() || state.counting) return false;
  emit(static_cast<ProcessIndex>(rank), Op::plain(OpKind::kCompute, process_s, 0));
  if (state.block_end_ns < blocks::kNeverNs) end_block(rank, state);
  state.block_end_ns = blocks::kNeverNs;
  emit(static_cast<ProcessIndex>(rank),
       Op::on_window(OpKind::kWindowClose, state.window, call_s, closing_flag(state, process_s)));
  return true;
}

Result<void> Matcher::feed_skipped(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const SkippedSide side = skipped_side(event);
  const std::uint64_t calls = skipped_calls(event);
  if (calls == 0 || calls > kMostSkipped || static_cast<std::uint8_t>(side) >= kSkippedSideCount) {
    return fail(rank, "an impossible number of calls between two windows");
  }
  if (side == SkippedSide::kEverything) return feed_capture_end(rank, event);
  if (side != SkippedSide::kCollectives && !has_peer(event)) return no_such_peer(rank, event);
  if (side == SkippedSide::kCollectives && (event.comm >= kMaxCommunicators || calls > kMostCollectives)) {
    return fail(rank, "an impossible number of collectives between two windows");
  }
  // Inside a window each has a moment of its own.
  if (state.ghost == kNobody) state.ghost = ghosts_.call(rank);
  const ProcessIndex ghost = state.ghost;
  switch (side) {
    case SkippedSide::kSends:
      channels_.skip({event.comm, rank, event.peer, event.tag}, ChannelEnd::kSends, calls, ghost);
      break;
    case SkippedSide::kReceives:
      channels_.skip({event.comm, event.peer, rank, event.tag}, ChannelEnd::kReceives, calls, ghost);
      break;
    case SkippedSide::kCollectives:
      if (Result<void> ok = skip_collectives(rank, event, ghost); !ok) return ok;
      break;
    case SkippedSide::kEverything:
      break;  // above
  }
  if (!state.counting) ghosts_.let_go(std::exchange(state.ghost, kNobody));
  ++stats_.skipped_channels;
  emit_plain(rank, event);
  return {};
}

Result<void> Matcher::feed_capture_end(Rank rank, const Event& event) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!state.counting) return fail(rank, "the capture ends for good inside a window");
  if (state.after_end == kNobody) {
    if (state.ghost == kNobody) state.ghost = ghosts_.call(rank);
    state.after_end = state.ghost;
    ghosts_.hold(state.after_end);  // for ever
    // Receives that were posted before, and took their messages after it: which ones nobody knows. So no sender waits
    // for longer than till the first of them.
    state.receives_after_end = state.closed_before_places ? state.held_ghost : state.after_end;
    ghosts_.hold(state.receives_after_end);
    plans_.forget();
    any_ended_ = ends_to_play_ = true;
    drop_unplaced(rank);
  }
  emit_plain(rank, event);
  return {};
}

void Matcher::play_all_after_end() {
  ends_to_play_ = false;
  channels_.end_all_outstanding([&](Rank rank, bool from_the_end) {
    const RankState& state = ranks_[static_cast<std::size_t>(rank)];
    return from_the_end ? state.after_end : state.receives_after_end;
  });
}

Result<void> Matcher::skip_collectives(Rank rank, const Event& event, ProcessIndex ghost) {
  plans_.forget();
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  std::uint32_t* count = state.collectives.find(event.comm);
  if (count == nullptr) {
    state.collectives.insert(event.comm, 0);
    count = state.collectives.find(event.comm);
  }
  const std::uint32_t first = *count;
  const std::uint32_t calls = static_cast<std::uint32_t>(skipped_calls(event));
  if (calls >= FlatMap::kNothing - first) return fail(rank, "an impossible number of collectives between two windows");
  const std::uint32_t end = first + calls;
  *count = end;
  CountedVector<SkippedCollectives>& skipped =
      skipped_collectives_.try_emplace(member_key(event.comm, rank), store_.account()).first->second;
  skipped.push_back({first, end, ghost});
  ghosts_.hold(ghost);
  std::uint32_t asked_from = end;  // no member will ask for a lower one
  // Members that recorded some of these are before us. What they sent to this rank waits in its table, what they wait
  // for from it in theirs.
  channels_.play_collectives(event.comm, kAnyRank, rank, {first, end}, ChannelEnd::kReceives, ghost);
  const auto play_for = [&](Rank member) {
    if (member == rank || !store_.budget().spend(1)) return;
    const RankState& other = ranks_[static_cast<std::size_t>(member)];
    const std::uint32_t* theirs = other.collectives.find(event.comm);
    if (!other.exited && !other.closed && other.after_end == kNobody)
      asked_from = std::min(asked_from, theirs != nullptr ? *theirs : 0);
    const std::uint32_t last = theirs != nullptr ? std::min(*theirs, end) : 0;
    if (first < last) channels_.play_collectives(event.comm, rank, member, {first, last}, ChannelEnd::kSends, ghost);
  };
  if (event.comm == 0) {
    for (Rank member = 0; member < store_.ranks(); ++member) play_for(member);
  } else if (const auto comm = communicators_.find(event.comm); comm != communicators_.end()) {
    for (const RankGroup* group : {&comm->second.group, &comm->second.remote_group}) {
      for (std::size_t place = 0; place < group->size(); ++place) play_for((*group)[place]);
    }
  } else {
    asked_from = 0;  // who the members are is not known yet
  }
  const auto needed = std::ranges::find_if(skipped, [&](const SkippedCollectives& s) { return s.end > asked_from; });
  for (auto done = skipped.begin(); done != needed; ++done) ghosts_.let_go(done->ghost);
  skipped.erase(skipped.begin(), needed);
  return store_.budget().status();
}

ProcessIndex Matcher::ghost_of_collective(std::uint32_t comm, Rank peer, std::uint32_t number) const {
  if (const RankState& member = ranks_[static_cast<std::size_t>(peer)]; member.after_end != kNobody) {
    const std::uint32_t* const count = member.collectives.find(comm);
    if (number >= (count != nullptr ? *count : 0)) return member.after_end;
  }
  const auto found = skipped_collectives_.find(member_key(comm, peer));
  if (found == skipped_collectives_.end()) return kNobody;
  const auto after = std::upper_bound(found->second.begin(), found->second.end(), number,
                                      [](std::uint32_t n, const SkippedCollectives& s) { return n < s.first; });
  if (after == found->second.begin()) return kNobody;
  const SkippedCollectives& skipped = *std::prev(after);
  return number < skipped.end ? skipped.ghost : kNobody;
}

}  // namespace lbf::engine
