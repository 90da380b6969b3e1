// Events of a rank to the sink, as far as they wait for nothing. See otf2_rank.h.
#include <algorithm>

#include "tools/import/otf2_rank.h"

namespace lbf::tools::otf2 {
namespace {

constexpr std::uint64_t kUidOfOtf2 = std::uint64_t{0x4F544632} << 32;  // numbers of communicators, alike on all ranks

// As rank sees the communicator: its own group first.
std::vector<std::uint64_t> definition_values(const Communicator& comm, Rank rank) {
  const std::vector<Rank> self{rank};
  const bool mine_is_remote = comm.in_remote(rank);
  const std::vector<Rank>& mine = comm.is_self ? self : mine_is_remote ? comm.remote : comm.members;
  const std::vector<Rank>& others = mine_is_remote ? comm.members : comm.remote;
  std::vector<std::uint64_t> values{kUidOfOtf2 | comm.index_of(rank), comm.is_inter() ? mine.size() : 0};
  values.insert(values.end(), mine.begin(), mine.end());
  values.insert(values.end(), others.begin(), others.end());
  return values;
}

}  // namespace

// The oldest event waits too long: a receive counts as posted at its end, a collective as begun there.
void RankImport::give_up_front() {
  const std::uint64_t front = held_.first();
  if (found_by_look_ && found_by_look_->number == front) return settle_looks();
  if (const auto probe = std::find(probes_.begin(), probes_.end(), front); probe != probes_.end()) {
    give_up_probe(front);
    probes_.erase(probe);
    return;
  }
  for (auto& [id, request] : requests_) {
    if (request.post != front || request.is_late) continue;
    request.is_late = true;
    ++shared_.counts.late_posts;
    return drop(front);
  }
}

Result<void> RankImport::flush(Collectives& collectives, const EventBlockSink& sink) {
  block_.clear();
  std::vector<std::vector<std::uint64_t>> definitions;  // their values stay where they are
  // The events of a call that goes on may get more of its time.
  const std::uint64_t end = call_.region != nullptr && call_.has_record ? call_.first : held_.end();
  std::uint64_t next = held_.first();
  for (; next < end; ++next) {
    Held& held = held_.at(next);
    if (held.waits && next == held_.first() && held_.size() > most_held_) give_up_front();
    if (held.waits) break;
    if (is_collective(held.event.kind)) {
      const Result<bool> complete = collectives.arrive(rank_, held);
      if (!complete) return complete.error();
      if (!*complete) break;
    }
    if (held.comm != nullptr && held.event.comm != 0 && defined_.insert(held.event.comm).second) {
      Event define = event_of_kind(EventKind::kCommCreate);
      define.comm = held.event.comm;
      define.values = definitions.emplace_back(definition_values(*held.comm, rank_));
      block_.push_back(define);
    }
    block_.push_back(held.event);
    block_.back().values = held.values;
  }
  if (block_.empty()) return {};
  Result<void> taken = sink(rank_, block_);
  while (held_.first() < next) held_.pop();
  return taken;
}

}  // namespace lbf::tools::otf2
