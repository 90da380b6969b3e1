// Collector: finds the rings of a step on this node, drains them, and turns them into events and control
// records.
//
// Place in the event's way: ring -> *Collector* (a CapturedProcess for each process) -> BatchBuilder.
// Implements docs/relay.md ("Which processes are taken") and the control records of docs/formats/http-v1.md.
// It has no clock and no network of its own: the caller passes the time in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/procedure_list.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/captured_process.h"
#include "spank_plugin/relay/cost_control.h"
#include "spank_plugin/relay/cost_meter.h"
#include "spank_plugin/relay/known_rings.h"
#include "spank_plugin/relay/pass.h"
#include "spank_plugin/relay/ring_directory.h"
#include "spank_plugin/relay/run_finder.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

struct CollectorOptions {
  std::string ring_dir;
  std::int32_t tasks = 0;       // of the step: only processes of a world of this size are taken
  std::int32_t node_index = 0;  // in the step
  // Whose process a ring here is of; empty: all are this collector's. Asked once for each.
  std::function<Membership(const RingDirectory::Ring& ring)> membership{};
  std::shared_ptr<RingDirectory> directory{};  // shared with other collectors; empty: opened from ring_dir
  Bytes longest_record_bytes = kLongestRecordBytes;
  // What stands in for the capture's own measurements (cost_meter.h).
  PrimitiveCosts primitives{cost::kDefaultRecordedCallS / 2, cost::kDefaultCountedCallS,
                            cost::kDefaultRecordedCallS / 2};
};

class Collector {
 public:
  // Errors: kIo, the ring directory cannot be opened.
  static Result<Collector> make(CollectorOptions options);

  // One look at everything: new rings, records, ends of processes, keep-alives, statistics. REQUIRES:
  // rate.ready().
  PassResult pass(ClockReading now, const TickRate& rate, BatchBuilder& out, PassRoom room = {});

  // The step has ended: takes what is left in the rings, and ends every process that has not ended itself. REQUIRES:
  // there is always room left at last.
  void finish(ClockReading now, const TickRate& rate, BatchBuilder& out, PassRoom room = {});

  // The cost of what was taken, ended processes included, as of the last pass() or finish().
  const std::map<Rank, RankCost>& costs() const { return costs_; }
  // The sound rings of the processes that are under way.
  std::vector<RingUse> ring_uses();
  // ORDERS[i] into the control word of ring_uses()[i]. REQUIRES: no pass() since ring_uses(); rate.ready().
  void give_orders(std::span<const RingOrder> orders, ClockReading now, const TickRate& rate, BatchBuilder& out);

  // From now on in the rings of all processes, also of those that come; the first time a record says so in
  // the stream. A list that is not newer than the one before changes nothing.
  void give_procedure_list(std::shared_ptr<const protocol::ProcedureList> list);
  std::uint64_t procedure_list_generation() const { return list_ ? list_->generation : 0; }

  std::size_t processes_taken() const { return ranks_taken_.size(); }
  std::size_t processes_left_out() const { return left_out_; }
  // Processes that ended without MPI_Finalize and without MPI_Abort, with their pids.
  const std::vector<std::pair<std::int32_t, Rank>>& unfinished() const { return unfinished_; }
  // Some process has several rings.
  bool has_threads() const;
  // Of records that wait for their turn.
  Bytes held_bytes() const;
  // None is under way, and none is just beginning.
  bool idle() const { return processes_.empty() && !rescan_; }

 private:
  explicit Collector(CollectorOptions options) : options_(std::move(options)), known_rings_(options_.directory) {}
  void scan(Pass& pass);
  void share_room(Pass& pass) const;
  void open_ring(const RingDirectory::Ring& found, Pass& pass);
  void note_small_ring(const RingIdentity& ring, Pass& pass);
  void look_at(CapturedProcess& process, StepState step, Pass& pass);
  bool take(CapturedProcess& process, Pass& pass);
  void leave_out(std::int32_t pid, const std::string& what, const std::string& why, Pass& pass);
  void write_procedure_list(CapturedProcess& process, Pass& pass);
  void remove_files(const CapturedProcess& process);
  void watch_processors(const Pass& pass);
  template <typename Use>
  void for_each_sound_ring(const Use& use);

  CollectorOptions options_;
  KnownRings known_rings_;
  std::uint64_t scanned_generation_ = 0;
  bool rescan_ = true;  // a ring was not ready
  std::uint64_t rings_seen_ = 0;

  std::map<std::int32_t, CapturedProcess> processes_;  // by pid
  std::set<Rank> ranks_taken_;
  std::size_t left_out_ = 0;
  std::size_t notes_ = 0;
  bool small_ring_noted_ = false;
  std::string never_begun_;  // the first process that ended before it came out of MPI_Init
  std::map<Rank, RankCost> costs_;
  ProcessorWatch processors_;
  std::vector<std::pair<std::int32_t, Rank>> unfinished_;

  std::shared_ptr<const protocol::ProcedureList> list_;
  std::uint64_t list_written_ = 0;  // generation that the stream has
};

}  // namespace lbf::relay
