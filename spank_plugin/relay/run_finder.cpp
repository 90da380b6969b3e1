// RunFinder, see run_finder.h.
#include "spank_plugin/relay/run_finder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kMaxProcesses = 65536;
// Ranks that are late: MPI_Init meets all ranks, so they return from it within moments of each other.
constexpr std::uint64_t kWaitForAllNs = 10'000'000'000;
constexpr std::uint64_t kWaitForUnknownNs = 1'000'000'000;  // where nobody said how many there are

}  // namespace

const Launch& RunFinder::launch_of(const RingDirectory::Ring& ring) {
  const std::uint64_t start = read_process_stat(ring.pid).start_time_clock;
  const auto known = launches_.find(ring.pid);
  // A process that is gone is the one that was known by this number.
  if (known != launches_.end() && (start == 0 || known->second.start_time_clock == start)) {
    return known->second.launch;
  }
  if (launches_.size() >= kMaxProcesses) launches_.clear();
  const auto reader = RingReader::open(directory_->fd(), ring.name);
  const auto told = reader ? reader->identity().launch : std::string();
  return (launches_[ring.pid] = Known{start, launch_of_process(ring.pid, told)}).launch;
}

Membership RunFinder::membership(const RingDirectory::Ring& ring, const std::string& run) {
  const Launch& launch = launch_of(ring);
  if (launch.run != run) return Membership::kElsewhere;
  return launch.spawned ? Membership::kSpawned : Membership::kMine;
}

void RunFinder::scan() {
  rescan_ = false;
  for (const RingDirectory::Ring& ring : directory_->list(kMaxProcesses)) {
    const Launch& launch = launch_of(ring);
    saw_others_ |= launch.run.empty();
    if (launch.run.empty() || launch.spawned || started_.contains(launch.run)) continue;
    const auto pending = pending_.find(launch.run);
    if (pending != pending_.end() && pending->second.processes.contains(ring.pid)) continue;
    auto reader = RingReader::open(directory_->fd(), ring.name);
    if (!reader) {
      rescan_ |= reader.error().code == ErrorCode::kNotFound;  // not ready yet
      continue;
    }
    if (reader->identity().pid != ring.named_pid) continue;
    Pending& found = pending_[launch.run];
    found.local_size = launch.local_size;
    found.processes.emplace(ring.pid, Process{std::move(*reader), command_line_of_process(ring.pid)});
  }
}

// True: as many as are to be expected have begun.
bool RunFinder::look_at(Pending& pending, std::uint64_t now_ns) {
  std::size_t begun = 0;
  for (auto it = pending.processes.begin(); it != pending.processes.end();) {
    Process& process = it->second;
    if (!process.begun) {
      const auto status = process.reader.read_status();
      if (status && status->init_leave_ticks != 0 && status->state != ring::ProcessState::kStarting) {
        process.begun = true;
        process.rank = status->rank;
        process.world_size = status->world_size;
      } else if (!status || !read_process_stat(it->first).alive) {
        it = pending.processes.erase(it);
        continue;
      }
    }
    begun += process.begun ? 1 : 0;
    ++it;
  }
  if (begun == 0) return false;
  if (pending.first_begun_ns == 0) pending.first_begun_ns = now_ns;
  const std::uint64_t waited_ns = now_ns - pending.first_begun_ns;
  if (pending.local_size > 0) {
    return begun >= static_cast<std::size_t>(pending.local_size) || waited_ns >= kWaitForAllNs;
  }
  return waited_ns >= kWaitForUnknownNs;
}

std::vector<FoundRun> RunFinder::look(std::uint64_t now_ns) {
  const std::uint64_t generation = directory_->generation();
  if (rescan_ || generation != scanned_generation_) {
    scanned_generation_ = generation;
    scan();
  }
  std::vector<FoundRun> found;
  for (auto it = pending_.begin(); it != pending_.end();) {
    Pending& pending = it->second;
    if (look_at(pending, now_ns)) {
      FoundRun run;
      run.run = it->first;
      Rank lowest = std::numeric_limits<Rank>::max();
      for (auto& [pid, process] : pending.processes) {
        if (!process.begun) continue;
        if (process.rank < lowest && !process.command.words.empty()) {
          lowest = process.rank;
          run.command = std::move(process.command);
        }
        // The Collector names and leaves out those that do not fit; the first one says how large the world is.
        if (run.world_size == 0) {
          run.world_size = process.world_size;
          run.start_realtime_ns = process.reader.identity().start_realtime_ns;
        }
        if (process.rank >= 0 && process.rank < run.world_size) run.ranks.push_back(process.rank);
      }
      std::sort(run.ranks.begin(), run.ranks.end());
      run.ranks.erase(std::unique(run.ranks.begin(), run.ranks.end()), run.ranks.end());
      started_.insert(run.run);
      if (!run.ranks.empty()) found.push_back(std::move(run));
      it = pending_.erase(it);
    } else if (pending.processes.empty()) {
      it = pending_.erase(it);  // none of them came out of MPI_Init
    } else {
      ++it;
    }
  }
  return found;
}

}  // namespace lbf::relay
