// Collector, see collector.h.
#include "spank_plugin/relay/collector.h"

#include <algorithm>
#include <utility>

namespace lbf::relay {

Result<Collector> Collector::make(CollectorOptions options) {
  if (options.directory == nullptr) {
    auto directory = RingDirectory::open(options.ring_dir);
    if (!directory) return directory.error();
    options.directory = std::move(*directory);
  }
  return Collector(std::move(options));
}

bool Collector::has_threads() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const auto& entry) { return entry.second.rings().size() > 1; });
}

Bytes Collector::held_bytes() const {
  Bytes bytes = 0;
  for (const auto& [pid, process] : processes_) bytes += process.held_bytes();
  return bytes;
}

void Collector::share_room(Pass& pass) const {
  std::size_t rings = 0;
  for (const auto& [pid, process] : processes_) rings += process.rings().size();
  pass.share_room(rings, held_bytes());
}

void Collector::scan(Pass& pass) {
  rescan_ = false;
  for (const RingDirectory::Ring& found : options_.directory->list(KnownRings::kMaxRings)) {
    if (!known_rings_.is_new(found)) continue;
    const Membership membership = options_.membership ? options_.membership(found) : Membership::kMine;
    if (membership == Membership::kElsewhere) continue;
    if (membership == Membership::kSpawned) {
      known_rings_.add(found);
      leave_out(found.pid, "", "MPI_Comm_spawn started it", pass);
      continue;
    }
    open_ring(found, pass);
  }
}

void Collector::open_ring(const RingDirectory::Ring& found, Pass& pass) {
  auto reader = RingReader::open(options_.directory->fd(), found.name, options_.longest_record_bytes);
  if (!reader && reader.error().code == ErrorCode::kNotFound) {  // not ready: the next scan
    rescan_ = true;
    return;
  }
  known_rings_.add(found);
  if (!reader) return pass.note(reader.error().message);
  if (reader->identity().pid != found.named_pid || (reader->identity().clock_source == 0 && !has_tick_counter())) {
    return pass.note("ring " + found.name +
                     " belongs to another process or uses a clock that this machine does not have");
  }
  note_small_ring(reader->identity(), pass);
  CapturedProcess& process = processes_.try_emplace(found.pid, found.pid).first->second;
  process.add_ring(CapturedRing{found.name, found.inode, std::move(*reader), ++rings_seen_});
}

void Collector::note_small_ring(const RingIdentity& ring, Pass& pass) {
  if (ring.wanted_bytes <= ring.capacity_bytes || std::exchange(small_ring_noted_, true)) return;
  pass.note(
      "an event ring has " + std::to_string(ring.capacity_bytes >> 10) + " KiB instead of " +
      std::to_string(ring.wanted_bytes >> 10) +
      " KiB: its directory has little room (a container's /dev/shm?), or a limit on the size of files is low; events "
      "of bursts may be lost");
}

void Collector::leave_out(std::int32_t pid, const std::string& what, const std::string& why, Pass& pass) {
  if (++left_out_ > 1) return;
  pass.note("process " + std::to_string(pid) + (what.empty() ? "" : " (" + what + ")") + " is left out: " + why);
}

bool Collector::take(CapturedProcess& process, Pass& pass) {
  if (!process.find_first_ring()) return false;
  const CapturedRing& first = process.rings().front();
  const RingStatus& status = first.status;
  std::string why;
  if (options_.tasks > 1 && status.world_size == 1) {
    why =
        "it is alone in its MPI_COMM_WORLD, rank 0 of 1, as its MPI library got nothing from Slurm: start the step "
        "with "
        "srun --mpi=pmix (srun --mpi=list names what there is)";
  } else if (options_.tasks > 0 && status.world_size != options_.tasks) {
    why = "its MPI_COMM_WORLD has " + std::to_string(status.world_size) + " processes, the step " +
          std::to_string(options_.tasks) + " tasks";
  } else if (status.rank < 0 || status.rank >= status.world_size) {
    why = "its rank " + std::to_string(status.rank) + " is outside its world";
  } else if (!ranks_taken_.insert(status.rank).second) {
    why = "another process has its rank " + std::to_string(status.rank) + ", so it is a second MPI program of the task";
  }
  if (!why.empty()) {
    leave_out(process.pid(), first.reader.identity().executable, why, pass);
    process.leave_out();
    return false;
  }
  process.take(options_.node_index, pass);
  return true;
}

void Collector::look_at(CapturedProcess& process, StepState step, Pass& pass) {
  process.observe_life(step, pass);
  process.read_status(pass);
  if (!process.taken() && !take(process, pass)) {
    if (process.ended() || (process.alive() && step == StepState::kRunning)) return;
    if (never_begun_.empty()) {
      never_begun_ = "process " + std::to_string(process.pid()) + " (" +
                     process.rings().front().reader.identity().executable + ")";
    }
    process.leave_out();
    return;
  }
  RankCost& cost = costs_[process.rank()];
  process.observe_cost(options_.primitives, pass, cost);
  process.observe_delay(processors_.shares(), cost);
  if (list_) write_procedure_list(process, pass);
  process.drain_rings(step, known_rings_, pass);
  if (process.ended() && process.was_killed()) unfinished_.emplace_back(process.pid(), process.rank());
}

void Collector::watch_processors(const Pass& pass) {
  std::vector<std::int32_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (process.taken() && process.alive()) pids.push_back(pid);
  }
  processors_.look(pass.now_ns(), pids, costs_);
}

PassResult Collector::pass(ClockReading now, const TickRate& rate, BatchBuilder& out, PassRoom room) {
  Pass pass(now, rate, out, notes_, std::move(room));
  // A thread's ring is found before the records that were written after it: they may need its definitions.
  const std::uint64_t generation = options_.directory->generation();
  if (rescan_ || generation != scanned_generation_) {
    scanned_generation_ = generation;
    scan(pass);
  }
  share_room(pass);
  for (auto it = processes_.begin(); it != processes_.end();) {
    CapturedProcess& process = it->second;
    look_at(process, StepState::kRunning, pass);
    if (process.ended()) {
      remove_files(process);
      it = processes_.erase(it);
    } else {
      ++it;
    }
  }
  watch_processors(pass);
  // Not for a program without MPI, of which nothing will come.
  if (!ranks_taken_.empty() || !processes_.empty()) out.keep_alive(now.monotonic_ns);
  out.flush_if_old(now.monotonic_ns);
  return pass.result;
}

void Collector::finish(ClockReading now, const TickRate& rate, BatchBuilder& out, PassRoom room) {
  Pass pass(now, rate, out, notes_, std::move(room));
  scan(pass);
  share_room(pass);
  for (auto& [pid, process] : processes_) {
    look_at(process, StepState::kEnded, pass);
    remove_files(process);
  }
  processes_.clear();
  if (ranks_taken_.empty() && !never_begun_.empty())
    pass.note(never_begun_ + " never came out of MPI_Init: is it srun --mpi=pmix that is missing?");
  if (const auto record = processors_.record(static_cast<std::uint64_t>(options_.node_index)))
    pass.add_control(*record);
  if (left_out_ > 1) {
    pass.note(std::to_string(left_out_) + " processes on this node were left out (not of the step's MPI_COMM_WORLD)");
  }
  out.flush();
}

void Collector::remove_files(const CapturedProcess& process) {
  for (const CapturedRing& ring : process.rings()) known_rings_.remove(ring.file, ring.inode);
}

template <typename Use>
void Collector::for_each_sound_ring(const Use& use) {
  for (auto& [pid, process] : processes_) {
    if (!process.taken() || process.ended()) continue;
    for (CapturedRing& ring : process.rings()) {
      if (!ring.broken) use(process, ring);
    }
  }
}

std::vector<RingUse> Collector::ring_uses() {
  std::vector<RingUse> uses;
  for_each_sound_ring([&](const CapturedProcess& process, const CapturedRing& ring) {
    // Also a ring whose thread had ended when the process's capture did.
    uses.push_back({ring.number, ring.status.recorded.executions, ring.status.counted.executions,
                    ring.status.recording_window != 0, process.is_off(), ring.status.recording_window});
  });
  return uses;
}

void Collector::give_orders(std::span<const RingOrder> orders, ClockReading now, const TickRate& rate,
                            BatchBuilder& out) {
  Pass pass(now, rate, out, notes_, {});
  std::size_t i = 0;
  for_each_sound_ring([&](CapturedProcess& process, CapturedRing& ring) {
    if (i == orders.size()) return;
    const RingOrder& order = orders[i++];
    if (auto done = ring.reader.write_control(order.order, order.window, order.grant, order.counted_grant); !done) {
      process.close_ring(ring, done.error(), pass);
    }
  });
}

void Collector::give_procedure_list(std::shared_ptr<const protocol::ProcedureList> list) {
  if (list && list->generation > procedure_list_generation()) list_ = std::move(list);
}

void Collector::write_procedure_list(CapturedProcess& process, Pass& pass) {
  process.write_procedure_list(*list_, pass);
  if (list_written_ == list_->generation) return;
  list_written_ = list_->generation;
  // Stored with the events: who replays them knows what was measured from here on.
  pass.add_control(protocol::ProcedureListRecord{process.rank(), *list_});
}

}  // namespace lbf::relay
