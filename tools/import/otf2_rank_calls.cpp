// Calls without a record of what they did. See otf2_rank.h; the table is docs/formats/interchange.md, "OTF2, reading".
#include <algorithm>
#include <utility>

#include "event/collective_op.h"
#include "tools/import/otf2_rank.h"

namespace lbf::tools::otf2 {

Result<void> RankImport::end_silent_call(const Call& call, Nanoseconds ns) {
  // What an exported text trace calls its events.
  if (shared_.definitions.writer == Writer::kLbf && call.region->function == nullptr) {
    const std::string& name = call.region->name;
    if (name == "probe") return probe(call, ns);
    if (name == "unmodelled" || name == "io") return unmodelled(call, ns, EventKind::kUnmodelled);
    if (name == "oneSided" || name == "oneSidedSync") return error(call, "the export writes no one-sided operations");
    if (name == "startRecv") {
      Held post;
      post.event = event_of_kind(EventKind::kStartRecv);
      post.waits = true;
      blocking_post_ = add_alone(std::move(post), call, ns);
    }
    return {};
  }
  if (is_wait_or_test(call.role())) return keep_lost(call, ns);
  switch (call.role()) {
    case MpiRole::kInit:
    case MpiRole::kInitThread:
    case MpiRole::kFinalize:
    case MpiRole::kPcontrol:
    case MpiRole::kLocal:
    case MpiRole::kPersistentInitSend:
    case MpiRole::kPersistentInitRecv:
    case MpiRole::kCollectiveInit:
    case MpiRole::kCommFree:
      return {};  // process time
    case MpiRole::kRequestFree:
    case MpiRole::kCancel:
      if (!shared_.rebuilds() || requests_.empty()) return {};
      return error(call, "may be of one of " + std::to_string(requests_.size()) +
                             " open requests, and the archive does not say which");
    case MpiRole::kSend:
    case MpiRole::kIsend:
    case MpiRole::kRecv:
    case MpiRole::kIrecv:
    case MpiRole::kSendrecv:
    case MpiRole::kSendrecvReplace:
    case MpiRole::kIsendrecv:
    case MpiRole::kIsendrecvReplace:
    case MpiRole::kMrecv:
    case MpiRole::kImrecv:
    case MpiRole::kStart:
    case MpiRole::kStartall:
      return silent_message(call);
    case MpiRole::kRequestGetStatus:
    case MpiRole::kIprobe:
    case MpiRole::kImprobe:
    case MpiRole::kWinTest:
      failed_look(call, ns);
      return {};
    case MpiRole::kProbe:
    case MpiRole::kMprobe:
      return probe(call, ns);
    case MpiRole::kCollective:
      if (!is_neighbour(call.region->function->op))
        return error(call, "has no record: which communicator, root and size it has is not in the archive");
      return unmodelled(call, ns, EventKind::kUnmodelled);
    case MpiRole::kIo:
      return unmodelled(call, ns, EventKind::kIo);
    default:
      return unmodelled(call, ns, EventKind::kUnmodelled);
  }
}

Result<void> RankImport::silent_message(const Call& call) const {
  if (may_be_silent()) return {};  // MPI_PROC_NULL
  return error(call, "has no record of its messages");
}

void RankImport::failed_look(const Call& call, Nanoseconds ns) {
  work_until(call.enter_ns);
  looks_ns_ += std::max<Nanoseconds>(ns - call.enter_ns, 0);
  ++looks_;
  since_ns_ = std::max(since_ns_, ns);
}

// Of the message that the rank receives next.
Result<void> RankImport::probe(const Call& call, Nanoseconds ns) {
  ++shared_.counts.probes;
  Held held;
  held.event = event_of_kind(EventKind::kProbe);
  held.waits = true;
  probes_.push_back(add_alone(std::move(held), call, ns));
  return {};
}

void RankImport::give_up_probe(std::uint64_t number) {
  if (!held_.has(number)) return;
  Held& held = held_.at(number);
  held.event.kind = EventKind::kUnmodelled;
  held.waits = false;
}

Result<void> RankImport::unmodelled(const Call& call, Nanoseconds ns, EventKind kind) {
  if (kind == EventKind::kUnmodelled && shared_.counts.unmodelled_calls++ == 0)
    shared_.counts.first_unmodelled = call.region->name;
  Held held;
  held.event = event_of_kind(kind);
  if (kind == EventKind::kIo) set_op(held.event, IoDirection::kNone);
  add_alone(std::move(held), call, ns);
  return {};
}

}  // namespace lbf::tools::otf2
