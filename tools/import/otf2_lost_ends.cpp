// Archives that have no record of how a request ends (EZTrace). See otf2_rank.h. What a call must have ended is ended:
// MPI_Waitall all that is open, N calls of MPI_Wait in a row all N that are open. Anything else has several readings.
#include <algorithm>
#include <utility>

#include "tools/import/otf2_rank.h"

namespace lbf::tools::otf2 {
namespace {

// What a clock set by one collective may be off.
constexpr Nanoseconds kClockError = 1'000'000;

}  // namespace

bool RankImport::is_wait_or_test(MpiRole role) {
  switch (role) {
    case MpiRole::kWait:
    case MpiRole::kWaitany:
    case MpiRole::kWaitall:
    case MpiRole::kWaitsome:
    case MpiRole::kTest:
    case MpiRole::kTestany:
    case MpiRole::kTestall:
    case MpiRole::kTestsome:
      return true;
    default:
      return false;
  }
}

std::vector<std::uint64_t> RankImport::open_in_order() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_order;
  for (const auto& [id, request] : requests_) by_order.emplace_back(request.order, id);
  std::sort(by_order.begin(), by_order.end());
  std::vector<std::uint64_t> ids;
  for (const auto& [order, id] : by_order) ids.push_back(id);
  return ids;
}

// True: the call may have ended a request; it is looked at when the calls like it in a row are over.
bool RankImport::keep_lost(const Call& call, Nanoseconds ns) {
  if (!shared_.rebuilds() || requests_.empty()) return false;
  const bool is_test = call.role() >= MpiRole::kTest && call.role() <= MpiRole::kTestsome;
  // Of looks in a row, the last one counts.
  if (is_test && !lost_.empty() && lost_.back().call.role() == call.role()) {
    failed_look(lost_.back().call, lost_.back().leave_ns);
    lost_.back() = {call, ns};
  } else {
    lost_.push_back({call, ns});
  }
  return true;
}

void RankImport::lose_end(std::uint64_t id, const Call& call, Nanoseconds ns, LostReceives& lost) {
  const Request request = requests_.at(id);
  requests_.erase(id);
  ++shared_.counts.rebuilt_ends;
  Held end;
  end.event.flags = kFlagHasRequest;
  end.event.request = request.number;
  end.event.kind = request.kind == Request::Kind::kReceive ? EventKind::kEndRecv : EventKind::kWait;
  end.waits = request.kind == Request::Kind::kReceive;
  const std::uint64_t number = add(std::move(end), ns, call.position);
  if (request.kind != Request::Kind::kReceive) return;
  lost.until_ns = ns;
  lost.call = call;
  lost.posts.push_back(request.post);
  lost.ends.push_back(number);
}

Result<void> RankImport::end_lost() {
  if (lost_.empty()) return {};
  const std::vector<LostCall> calls = std::exchange(lost_, {});
  std::vector<std::uint64_t> open = open_in_order();
  std::size_t waits = 0;
  bool waits_for_all = false;
  for (const LostCall& lost : calls) {
    waits_for_all = waits_for_all || lost.call.role() == MpiRole::kWaitall;
    waits += lost.call.role() == MpiRole::kWait || lost.call.role() == MpiRole::kWaitany ? 1 : 0;
    waits += lost.call.role() == MpiRole::kWaitsome && open.size() == 1 ? 1 : 0;
  }
  const bool only_looks = std::all_of(calls.begin(), calls.end(), [](const LostCall& lost) {
    return lost.call.role() >= MpiRole::kTest && lost.call.role() <= MpiRole::kTestsome;
  });
  if (!only_looks && !waits_for_all && waits < open.size()) {
    return error(calls.front().call,
                 "ends one of " + std::to_string(open.size()) + " requests, and the archive does not say which");
  }
  std::size_t next = 0;
  for (const LostCall& lost : calls) {
    const bool is_last = &lost == &calls.back();
    if (only_looks && is_last) {
      take_looks(lost);
      continue;
    }
    const MpiRole role = lost.call.role();
    const bool is_look = role >= MpiRole::kTest && role <= MpiRole::kTestsome;
    const std::size_t count = is_look                     ? 0
                              : role == MpiRole::kWaitall ? open.size() - next
                                                          : std::min<std::size_t>(1, open.size() - next);
    if (is_look) {
      failed_look(lost.call, lost.leave_ns);
      continue;
    }
    work_until(lost.call.enter_ns);
    if (count == 0) continue;
    call_ = lost.call;
    LostReceives receives;
    for (std::size_t i = 0; i < count; ++i) lose_end(open[next++], lost.call, lost.leave_ns, receives);
    if (!receives.posts.empty()) lost_receives_.push_back(std::move(receives));
    call_ = {};
    since_ns_ = std::max(since_ns_, lost.leave_ns);
  }
  if (!only_looks && found_by_look_) {  // a wait came, so the looks found nothing
    if (held_.has(found_by_look_->number)) held_.at(found_by_look_->number).waits = false;
    found_by_look_.reset();
  }
  return {};
}

// Looks at open requests, the last one of which may have found one.
void RankImport::take_looks(const LostCall& lost) {
  failed_look(lost.call, lost.leave_ns);
  if (found_by_look_ && held_.has(found_by_look_->number)) held_.at(found_by_look_->number).waits = false;
  Held held;
  held.event = vain_looks_event(std::exchange(looks_, 0), Duration::of_ns(std::exchange(looks_ns_, 0)));
  held.event.process_s = Duration::of_ns(std::exchange(work_ns_, 0));
  held.event.function = lost.call.function();
  held.position = lost.call.position;
  held.waits = true;
  found_by_look_ = Looks{held_.push(std::move(held)), lost.call, lost.leave_ns};
}

// A request that has no end is used again: the last look found it.
Result<void> RankImport::posted_again(const Record& record) {
  const Request request = requests_.at(record.request);
  const bool is_found = shared_.rebuilds() && found_by_look_ && found_by_look_->number > request.post &&
                        held_.has(found_by_look_->number);
  if (!is_found) {
    return error(record, "request " + std::to_string(record.request) +
                             " is posted again, and no record or call says where it ended");
  }
  requests_.erase(record.request);
  ++shared_.counts.rebuilt_ends;
  Held& end = held_.at(found_by_look_->number);
  end.event.kind = request.kind == Request::Kind::kReceive ? EventKind::kEndRecv : EventKind::kWait;
  end.event.flags = kFlagHasRequest | kFlagCallBegin;
  end.event.request = request.number;
  end.event.bytes = 0;
  if (request.kind == Request::Kind::kReceive) {
    lost_receives_.push_back({found_by_look_->ns, found_by_look_->call, {request.post}, {found_by_look_->number}});
  } else {
    end.waits = false;
  }
  found_by_look_.reset();
  return {};
}

// At the rank's end: what is open was found by the last look, if it is one.
Result<void> RankImport::end_of_lost() {
  if (!shared_.rebuilds()) return {};
  std::vector<std::uint64_t> receives;
  for (const std::uint64_t id : open_in_order()) {
    if (requests_.at(id).kind == Request::Kind::kReceive) receives.push_back(id);
  }
  if (!receives.empty() && found_by_look_ && receives.size() == 1) {
    Record record;
    record.request = receives.front();
    record.position = found_by_look_->call.position;
    if (Result<void> found = posted_again(record); !found) return found;
    receives.clear();
  }
  if (!receives.empty()) {
    return shared_.error(rank_, requests_.at(receives.front()).position, "",
                         "a receive has no end, neither a record nor a call that must have ended it");
  }
  if (found_by_look_ && held_.has(found_by_look_->number)) held_.at(found_by_look_->number).waits = false;
  found_by_look_.reset();
  return {};
}

Result<void> RankImport::rebuild(Nanoseconds now_ns) {
  std::size_t done = 0;
  for (const LostReceives& lost : lost_receives_) {
    if (now_ns < lost.until_ns + kClockError) break;
    const Result<std::vector<Message>> messages =
        shared_.inboxes[static_cast<std::size_t>(rank_)].take(lost.posts.size(), lost.until_ns + kClockError);
    if (!messages) return error(lost.call, messages.error().message);
    for (std::size_t i = 0; i < lost.posts.size(); ++i) {
      const Message& message = (*messages)[i];
      Held& end = held_.at(lost.ends[i]);
      end.event.peer = message.source;
      end.event.tag = message.tag;
      end.event.bytes = message.bytes;
      end.event.comm = message.comm->index_of(rank_);
      end.comm = message.comm;
      end.waits = false;
      fill_receive(lost.posts[i], end);
    }
    ++done;
  }
  lost_receives_.erase(lost_receives_.begin(), lost_receives_.begin() + static_cast<std::ptrdiff_t>(done));
  return {};
}

}  // namespace lbf::tools::otf2
