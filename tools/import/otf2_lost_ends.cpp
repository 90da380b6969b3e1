// Archives that have no record of how a request ends (EZTrace). See otf2_rank.h. A request was ended before its number
// is used again: where one call can have done it, that call did. MPI_Wait ends one open request, MPI_Waitall any
// number.
#include <algorithm>
#include <utility>

#include "tools/import/otf2_rank.h"

namespace lbf::tools::otf2 {
namespace {

bool is_test(MpiRole role) {
  return role >= MpiRole::kTest && role <= MpiRole::kTestsome;
}

}  // namespace

bool RankImport::is_wait_or_test(MpiRole role) {
  return role >= MpiRole::kWait && role <= MpiRole::kTestsome;
}

std::vector<std::uint64_t> RankImport::open_in_order() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_order;
  for (const auto& [id, request] : requests_) by_order.emplace_back(request.order, id);
  std::sort(by_order.begin(), by_order.end());
  std::vector<std::uint64_t> ids;
  for (const auto& [order, id] : by_order) ids.push_back(id);
  return ids;
}

// A call that may have ended requests, without a record of it. It is looked at when the calls like it in a row are
// over.
Result<void> RankImport::keep_lost(const Call& call, Nanoseconds ns) {
  if (Result<void> only = rule_out_left_open(call); !only) return only;
  if (!shared_.rebuilds() || requests_.empty()) {
    if (is_test(call.role())) failed_look(call, ns);
    return {};  // else of null requests
  }
  // Of looks in a row, the last one counts.
  if (is_test(call.role()) && !lost_.empty() && lost_.back().call.role() == call.role()) {
    failed_look(lost_.back().call, lost_.back().leave_ns);
    lost_.back() = {call, ns};
  } else {
    lost_.push_back({call, ns});
  }
  return {};
}

// MPI_Waitall may have left requests open, and this call may have ended them.
Result<void> RankImport::rule_out_left_open(const Call& call) const {
  if (maybe_open_.empty()) return {};
  return may_be_either(waited_for_all_, maybe_open_.size(), call);
}

Error RankImport::may_be_either(const Call& call, std::size_t requests, const Call& other) const {
  return error(call, "may have ended " + std::to_string(requests) + (requests == 1 ? " request" : " requests") +
                         ", and so may " + other.region->name + " (event " + std::to_string(other.position) +
                         "): the archive does not say which");
}

void RankImport::lose_end(std::uint64_t id, const Call& call, Nanoseconds ns, LostReceives& lost) {
  Request request = requests_.at(id);
  requests_.erase(id);
  ++shared_.counts.rebuilt_ends;
  const bool is_receive = request.kind == Request::Kind::kReceive;
  if (is_receive && request.is_late) {
    Held post;
    post.event = event_of_kind(EventKind::kStartRecv);
    post.event.flags = kFlagHasRequest;
    post.event.request = request.number;
    post.waits = true;
    request.post = add(std::move(post), ns, call.position);
  }
  Held end;
  end.event.flags = kFlagHasRequest;
  end.event.request = request.number;
  end.event.kind = is_receive ? EventKind::kEndRecv : EventKind::kWait;
  end.waits = is_receive;
  const std::uint64_t number = add(std::move(end), ns, call.position);
  if (!is_receive) return;
  lost.until_ns = ns;
  lost.call = call;
  lost.posts.push_back(request.post);
  lost.ends.push_back(number);
}

// The first COUNT open requests end in CALL, which is call_.
void RankImport::lose_ends(std::size_t count, const Call& call, Nanoseconds ns) {
  LostReceives lost;
  std::vector<std::uint64_t> open = open_in_order();
  open.resize(std::min(count, open.size()));
  for (const std::uint64_t id : open) {
    lose_end(id, call, ns, lost);
    if (call.role() == MpiRole::kWaitall) maybe_open_.insert(id);
  }
  if (call.role() == MpiRole::kWaitall) waited_for_all_ = call;
  if (!lost.posts.empty()) lost_receives_.push_back(std::move(lost));
}

Result<void> RankImport::end_lost() {
  if (lost_.empty()) return {};
  const std::vector<LostCall> calls = std::exchange(lost_, {});
  if (std::all_of(calls.begin(), calls.end(), [](const LostCall& lost) { return is_test(lost.call.role()); })) {
    for (const LostCall& lost : calls) failed_look(lost.call, lost.leave_ns);
    take_looks(calls.back());
    return {};
  }
  std::size_t waits = 0;
  bool waits_for_all = false;
  bool ends_some = false;
  const Call* look = found_by_look_ ? &found_by_look_->call : nullptr;
  for (const LostCall& lost : calls) {
    const MpiRole role = lost.call.role();
    if (is_test(role)) look = &lost.call;
    waits_for_all = waits_for_all || role == MpiRole::kWaitall;
    waits += is_test(role) ? 0 : 1;
    ends_some = ends_some || role == MpiRole::kWaitsome;
  }
  const bool has_one_reading = requests_.size() == 1 || (!ends_some && (waits_for_all || waits >= requests_.size()));
  if (!has_one_reading) {
    return error(calls.front().call,
                 "ends one of " + std::to_string(requests_.size()) + " requests, and the archive does not say which");
  }
  if (waits_for_all && look != nullptr) return may_be_either(calls.back().call, requests_.size(), *look);
  settle_looks();  // a wait came: they found nothing
  for (const LostCall& lost : calls) {
    if (Result<void> only = rule_out_left_open(lost.call); !only) return only;
    if (is_test(lost.call.role())) {
      failed_look(lost.call, lost.leave_ns);
      continue;
    }
    work_until(lost.call.enter_ns);
    if (requests_.empty()) continue;
    call_ = lost.call;
    lose_ends(lost.call.role() == MpiRole::kWaitall ? requests_.size() : 1, lost.call, lost.leave_ns);
    call_ = {};
    since_ns_ = std::max(since_ns_, lost.leave_ns);
  }
  return {};
}

void RankImport::settle_looks() {
  if (found_by_look_ && held_.has(found_by_look_->number)) held_.at(found_by_look_->number).waits = false;
  found_by_look_.reset();
}

// Looks at open requests, the last one of which may have found one.
void RankImport::take_looks(const LostCall& last) {
  settle_looks();
  Held held;
  held.event = vain_looks_event(std::exchange(looks_, 0), Duration::of_ns(std::exchange(looks_ns_, 0)));
  held.event.process_s = Duration::of_ns(std::exchange(work_ns_, 0));
  held.event.function = last.call.function();
  held.position = last.call.position;
  held.waits = true;
  found_by_look_ = Looks{held_.push(std::move(held)), last.call, last.leave_ns, requests_.size()};
}

// The request is ended, and no record or wait did it: the last look found it, if it looked at no other one.
Result<void> RankImport::end_by_look(std::uint64_t id, std::uint64_t position) {
  const Request request = requests_.at(id);
  const bool is_found = found_by_look_ && found_by_look_->open == 1 && found_by_look_->number > request.post &&
                        held_.has(found_by_look_->number);
  if (!is_found) {
    return shared_.error(rank_, position, "",
                         "request " + std::to_string(id) + " is over, and no record or call says where it ended");
  }
  requests_.erase(id);
  ++shared_.counts.rebuilt_ends;
  Held& end = held_.at(found_by_look_->number);
  end.event.kind = request.kind == Request::Kind::kReceive ? EventKind::kEndRecv : EventKind::kWait;
  end.event.flags = kFlagHasRequest | kFlagCallBegin;
  end.event.request = request.number;
  end.event.bytes = 0;
  if (request.kind == Request::Kind::kReceive) {
    lost_receives_.push_back({found_by_look_->ns, found_by_look_->call, {request.post}, {found_by_look_->number}});
    found_by_look_.reset();
  } else {
    settle_looks();
  }
  return {};
}

// At the rank's end all receives are over.
Result<void> RankImport::end_of_lost() {
  if (!shared_.rebuilds()) return {};
  for (const std::uint64_t id : open_in_order()) {
    if (requests_.at(id).kind != Request::Kind::kReceive) continue;
    if (Result<void> ended = end_by_look(id, requests_.at(id).position); !ended) return ended;
  }
  settle_looks();
  return {};
}

Result<void> RankImport::rebuild(Nanoseconds now_ns) {
  Inbox& inbox = shared_.inboxes[static_cast<std::size_t>(rank_)];
  for (; !lost_receives_.empty(); lost_receives_.pop_front()) {
    const LostReceives& lost = lost_receives_.front();
    if (now_ns < lost.until_ns + Inbox::kClockError) return {};
    const Result<std::vector<Message>> messages = inbox.take(lost.posts.size(), lost.until_ns, now_ns);
    if (!messages) return error(lost.call, messages.error().message);
    if (messages->empty()) return {};
    if (messages->back().sent_ns > lost.until_ns + Inbox::kClockError) ++shared_.counts.early_ends;
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
  }
  inbox.settle(now_ns);
  return {};
}

}  // namespace lbf::tools::otf2
