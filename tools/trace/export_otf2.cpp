#include "tools/trace/export_otf2.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "predictor/engine/replay/timeline.h"
#include "tools/trace/event_text.h"
#include "tools/trace/otf2_archive.h"
#include "tools/trace/otf2_records.h"

namespace lbf::tools {
namespace {

OTF2_TimeStamp ticks(Seconds time_s) {
  return static_cast<OTF2_TimeStamp>(std::llround(std::max(time_s, 0.0) * 1e9));
}

// Whether the event is (part of) a call: everything else is time, or nothing.
bool is_call(const Event& event) {
  switch (event.kind) {
    case EventKind::kCompute:
    case EventKind::kBlocked:
    case EventKind::kPreempted:
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kProcedure:
    case EventKind::kRegions:
    case EventKind::kDevice:
    case EventKind::kKeepAlive:
    case EventKind::kGap:
    case EventKind::kExit:
      return false;
    case EventKind::kCommCreate:
      return event.function != 0;
    default:
      return true;
  }
}

class Otf2Writer final : public TimelineExport, private engine::TimelineObserver {
 public:
  Otf2Writer(std::unique_ptr<engine::Predictor> predictor, std::unique_ptr<Otf2Archive> archive, Rank ranks)
      : predictor_(std::move(predictor)),
        target_(predictor_->targets().front()),
        archive_(std::move(archive)),
        communicators_(*archive_, ranks),
        work_(artificial("work")),
        waiting_(artificial("waiting")),
        blocked_(artificial("blocked")),
        ranks_(static_cast<std::size_t>(ranks)) {
    predictor_->observe_timeline(*this);
  }

  void set_mpi(const engine::MpiSetup& setup) override { predictor_->set_mpi(setup); }

  Result<void> feed(Rank rank, const Event& event) override {
    if (rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size() && event.kind != EventKind::kKeepAlive) {
      ranks_[static_cast<std::size_t>(rank)].calls.push_back(noted(rank, event));
    }
    if (Result<void> fed = predictor_->feed(rank, event); !fed) return fed;
    if (event.kind == EventKind::kCommCreate) communicators_.define(event);
    return archive_->status();
  }

  Result<TimelineResult> finish() override {
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) predictor_->close(rank);
    (void)predictor_->advance();
    TimelineResult result;
    result.lbf_s = predictor_->predictions().front().lbf_s;
    if (const Result<void> whole = predictor_->diagnosis(); !whole) result.why_partial = whole.error().message;
    Otf2Archive::Run run;
    run.nodes = target_.nodes;
    run.node_of_rank = target_.node_of_rank;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      leave(static_cast<Rank>(rank), ranks_[rank]);
      run.length_ns = std::max(run.length_ns, ticks(ranks_[rank].now_s));
    }
    if (Result<void> closed = archive_->close(run); !closed) return closed.error();
    return result;
  }

 private:
  // What is kept of an event until the replay has done it.
  struct Call {
    EventKind kind = EventKind::kCompute;
    bool begins = true;  // the first event of its MPI call
    bool is_call = false;
    bool has_request = false;
    bool started = false;
    OTF2_RegionRef region = 0;
    std::uint32_t comm = 0;
    std::uint32_t request = 0;
    std::vector<std::uint32_t> requests;  // kWait of several
    std::optional<Otf2Collective> collective;
  };
  struct Request {
    EventKind kind = EventKind::kIsend;
    std::uint64_t id = 0;
    std::uint32_t comm = 0;
    std::optional<Otf2Collective> collective;
  };
  struct RankState {
    std::deque<Call> calls;  // that are fed and not over
    std::unordered_map<std::uint32_t, Request> requests;
    std::uint64_t next_request = 0;
    bool inside = false;  // a call's region
    OTF2_RegionRef region = 0;
    Seconds now_s = 0;  // end of the last op
  };

  OTF2_RegionRef artificial(std::string_view name) {
    return archive_->region(name, OTF2_REGION_ROLE_ARTIFICIAL, OTF2_PARADIGM_UNKNOWN);
  }

  Call noted(Rank rank, const Event& event) {
    Call call;
    call.kind = event.kind;
    call.is_call = is_call(event);
    call.begins = event.function == 0 || (event.flags & kFlagCallBegin) != 0;
    call.has_request = (event.flags & kFlagHasRequest) != 0;
    call.comm = event.comm;
    call.request = event.request;
    if (call.is_call) call.region = archive_->region(call_name(event), otf2_role(event), OTF2_PARADIGM_MPI);
    if (event.kind == EventKind::kWait) {
      for (const std::uint64_t request : event.values) call.requests.push_back(static_cast<std::uint32_t>(request));
      if (call.requests.empty() && call.has_request) call.requests.push_back(event.request);
    }
    if (event.kind == EventKind::kCollective || event.kind == EventKind::kIcollective) {
      const Otf2Communicators::Place place = communicators_.place(event.comm, rank);
      call.collective = otf2_collective(event, place.rank, place.peers);
    }
    return call;
  }

  void check(OTF2_ErrorCode code) { archive_->check(code); }

  void region(Rank rank, OTF2_RegionRef region, Seconds begin_s, Seconds end_s) {
    if (end_s <= begin_s) return;
    check(OTF2_EvtWriter_Enter(archive_->events(rank), nullptr, ticks(begin_s), region));
    check(OTF2_EvtWriter_Leave(archive_->events(rank), nullptr, ticks(end_s), region));
  }

  void leave(Rank rank, RankState& state) {
    if (!state.inside) return;
    check(OTF2_EvtWriter_Leave(archive_->events(rank), nullptr, ticks(state.now_s), state.region));
    state.inside = false;
  }

  void on_op(const engine::TimelineOp& op) override {
    if (op.actor) return;  // a non-blocking collective's: its request says when it began and ended
    RankState& state = ranks_[static_cast<std::size_t>(op.rank)];
    const bool ends = (op.flags & engine::kOpEndsEvent) != 0;
    Call* const call = state.calls.empty() ? nullptr : &state.calls.front();
    // Work before the call; the internal message before a wildcard's receive takes no time.
    const bool is_before =
        op.kind == engine::OpKind::kCompute ||
        (op.kind == engine::OpKind::kSend && op.message_id != 0 && op.message.internal && op.end_s <= op.begin_s);
    const bool only_time = call == nullptr || (is_before && !ends && !call->started);
    if (call == nullptr || !call->started) {
      const bool same_call =
          call != nullptr && !call->begins && call->is_call && state.inside && state.region == call->region;
      if (!same_call) leave(op.rank, state);
      region(op.rank, work_, op.begin_s, op.acted_s);
    }
    if (!only_time) {
      if (!call->started) begin(op.rank, state, *call, op.acted_s);
      act(op, state, *call);
    }
    state.now_s = op.end_s;
    if (!ends || call == nullptr) return;
    end(op.rank, state, *call);
    state.calls.pop_front();
  }

  void begin(Rank rank, RankState& state, Call& call, Seconds now_s) {
    call.started = true;
    OTF2_EvtWriter* const events = archive_->events(rank);
    const OTF2_TimeStamp now = ticks(now_s);
    if (call.is_call && !state.inside) {
      check(OTF2_EvtWriter_Enter(events, nullptr, now, call.region));
      state.inside = true;
      state.region = call.region;
    }
    if (call.kind == EventKind::kCollective && call.collective)
      check(OTF2_EvtWriter_MpiCollectiveBegin(events, nullptr, now));
    if (call.kind == EventKind::kStartRecv && call.has_request)
      check(OTF2_EvtWriter_MpiIrecvRequest(events, nullptr, now, add_request(state, call)));
    if (call.kind == EventKind::kIcollective && call.collective)
      check(OTF2_EvtWriter_NonBlockingCollectiveRequest(events, nullptr, now, add_request(state, call)));
  }

  void act(const engine::TimelineOp& op, RankState& state, const Call& call) {
    const bool is_message = op.message_id != 0 && !op.message.internal && !op.message.collective;
    if (is_message && op.kind == engine::OpKind::kSend) send(op, state, call);
    const bool is_off = op.kind == engine::OpKind::kBlocked || op.kind == engine::OpKind::kDevice;
    region(op.rank, is_off && !call.is_call ? blocked_ : waiting_, op.acted_s, op.waited_s);
    if (is_message && op.kind == engine::OpKind::kRecv) receive(op, state, call);
  }

  void send(const engine::TimelineOp& op, RankState& state, const Call& call) {
    const std::uint32_t receiver = communicators_.place(call.comm, op.message.dst).rank;
    const OTF2_CommRef comm = communicators_.ref(call.comm);
    const auto tag = static_cast<std::uint32_t>(op.message.tag);
    OTF2_EvtWriter* const events = archive_->events(op.rank);
    check(call.has_request
              ? OTF2_EvtWriter_MpiIsend(events, nullptr, ticks(op.acted_s), receiver, comm, tag, op.message.bytes,
                                        add_request(state, call))
              : OTF2_EvtWriter_MpiSend(events, nullptr, ticks(op.acted_s), receiver, comm, tag, op.message.bytes));
  }

  void receive(const engine::TimelineOp& op, RankState& state, const Call& call) {
    const std::uint32_t sender = communicators_.place(call.comm, op.message.src).rank;
    const OTF2_CommRef comm = communicators_.ref(call.comm);
    const auto tag = static_cast<std::uint32_t>(op.message.tag);
    OTF2_EvtWriter* const events = archive_->events(op.rank);
    const auto request = call.has_request ? state.requests.find(call.request) : state.requests.end();
    if (request == state.requests.end()) {
      check(OTF2_EvtWriter_MpiRecv(events, nullptr, ticks(op.end_s), sender, comm, tag, op.message.bytes));
      return;
    }
    check(OTF2_EvtWriter_MpiIrecv(events, nullptr, ticks(op.end_s), sender, comm, tag, op.message.bytes,
                                  request->second.id));
    state.requests.erase(request);
  }

  void end(Rank rank, RankState& state, const Call& call) {
    OTF2_EvtWriter* const events = archive_->events(rank);
    if (call.kind == EventKind::kCollective && call.collective && call.started) {
      const Otf2Collective& made = *call.collective;
      check(OTF2_EvtWriter_MpiCollectiveEnd(events, nullptr, ticks(state.now_s), made.op, communicators_.ref(call.comm),
                                            made.root, made.sent_bytes, made.received_bytes));
    }
    for (const std::uint32_t request : call.requests) complete(rank, state, request, false);
    if (call.kind == EventKind::kCancel) complete(rank, state, call.request, true);
    if (call.kind == EventKind::kRequestFree) complete(rank, state, call.request, false);
  }

  // The end of a request other than by a receive that took its message.
  void complete(Rank rank, RankState& state, std::uint32_t number, bool cancelled) {
    const auto found = state.requests.find(number);
    if (found == state.requests.end()) return;
    const Request request = found->second;
    state.requests.erase(found);
    OTF2_EvtWriter* const events = archive_->events(rank);
    const OTF2_TimeStamp now = ticks(state.now_s);
    if (request.collective) {
      const Otf2Collective& made = *request.collective;
      check(OTF2_EvtWriter_NonBlockingCollectiveComplete(events, nullptr, now, made.op,
                                                         communicators_.ref(request.comm), made.root, made.sent_bytes,
                                                         made.received_bytes, request.id));
    } else if (cancelled || request.kind == EventKind::kStartRecv) {
      check(OTF2_EvtWriter_MpiRequestCancelled(events, nullptr, now, request.id));
    } else {
      check(OTF2_EvtWriter_MpiIsendComplete(events, nullptr, now, request.id));
    }
  }

  std::uint64_t add_request(RankState& state, const Call& call) {
    const std::uint64_t id = ++state.next_request;
    state.requests.insert_or_assign(call.request, Request{call.kind, id, call.comm, call.collective});
    return id;
  }

  std::unique_ptr<engine::Predictor> predictor_;
  const engine::Target& target_;
  std::unique_ptr<Otf2Archive> archive_;
  Otf2Communicators communicators_;
  OTF2_RegionRef work_;
  OTF2_RegionRef waiting_;
  OTF2_RegionRef blocked_;
  std::vector<RankState> ranks_;
};

}  // namespace

Result<std::unique_ptr<TimelineExport>> make_otf2_export(Rank ranks, const engine::Target& target,
                                                         const std::string& folder) {
  Result<std::unique_ptr<engine::Predictor>> predictor = engine::Predictor::make(ranks, {target});
  if (!predictor) return predictor.error();
  Result<std::unique_ptr<Otf2Archive>> archive = Otf2Archive::create(folder, ranks);
  if (!archive) return archive.error();
  return std::unique_ptr<TimelineExport>(
      std::make_unique<Otf2Writer>(std::move(*predictor), std::move(*archive), ranks));
}

}  // namespace lbf::tools
