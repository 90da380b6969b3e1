// RunFinder: finds the programs that mpirun starts on this node, one after the other or side by side.
//
// Place in the event's way: ring directory -> *RunFinder* -> a StreamRun for each run. Implements
// docs/relay.md ("Programs that mpirun starts"). It drains nothing; it has no clock of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "spank_plugin/relay/launch.h"
#include "spank_plugin/relay/ring_directory.h"
#include "spank_plugin/relay/ring_reader.h"

namespace lbf::relay {

// One run's part on this node, as soon as every rank of it here has come out of MPI_Init.
struct FoundRun {
  std::string run;
  Rank world_size = 0;
  std::vector<Rank> ranks;  // of this node, ascending
  CommandLine command;      // of its lowest rank here
  std::uint64_t start_realtime_ns = 0;
};

// Whose process it is.
enum class Membership {
  kMine,
  kSpawned,    // of this run, but not of its world
  kElsewhere,  // another run's
};

class RunFinder {
 public:
  explicit RunFinder(std::shared_ptr<RingDirectory> directory) : directory_(std::move(directory)) {}

  // Looks for new processes and at those in MPI_Init. Each run is returned once.
  std::vector<FoundRun> look(std::uint64_t now_ns);
  // RUN empty: of the step itself, which Slurm started.
  Membership membership(const RingDirectory::Ring& ring, const std::string& run);
  // A ring of a process that no mpirun started was there.
  bool saw_others() const { return saw_others_; }
  // A ring was there.
  bool saw_rings() const { return saw_others_ || !launches_.empty(); }
  // Processes are in MPI_Init: look again soon.
  bool waiting() const { return !pending_.empty() || rescan_; }

 private:
  struct Process {
    RingReader reader;
    CommandLine command;  // read at the first sight: a short program may be gone when all are known
    bool begun = false;
    Rank rank = -1;
    Rank world_size = 0;
  };
  struct Pending {
    std::map<std::int32_t, Process> processes;
    std::int32_t local_size = 0;
    std::uint64_t first_begun_ns = 0;  // when the first of them came out of MPI_Init
  };
  void scan();
  const Launch& launch_of(const RingDirectory::Ring& ring);
  static bool look_at(Pending& pending, std::uint64_t now_ns);

  std::shared_ptr<RingDirectory> directory_;
  std::uint64_t scanned_generation_ = 0;
  bool rescan_ = false;  // a ring was not ready
  bool saw_others_ = false;
  struct Known {
    std::uint64_t start_time_clock = 0;
    Launch launch;
  };
  std::map<std::int32_t, Known> launches_;  // by pid
  std::map<std::string, Pending> pending_;
  std::set<std::string> started_;  // every run that look() has returned
};

}  // namespace lbf::relay
