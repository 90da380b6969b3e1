// Launch: which mpirun started a process, from the environment that it was started with, as its ring has it.
//
// Implements docs/relay.md ("Programs that mpirun starts"). Slurm knows nothing of them: mpirun's daemons are
// the step's tasks, or there is no step at all, and the ranks are their children.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lbf::relay {

struct Launch {
  std::string run;              // the same for all ranks of one mpirun, on every node; empty: Slurm, or nobody
  bool spawned = false;         // by MPI_Comm_spawn of that run: another MPI_COMM_WORLD
  std::int32_t local_size = 0;  // ranks of its world on this node; 0: not said
};

// From the words of ENVIRONMENT ("NAME=VALUE", a NUL behind each): Open MPI 4 (PMIX_NAMESPACE is the job's
// number, 1 in its low 16 bits) and 5 ("prterun-HOST-PID@1").
Launch launch_of_environment(std::string_view environment);
// MPICH's Hydra says nothing of that to a rank: its proxy's command line does (PROXY, a NUL behind each word), where
// mpiexec listens, the same on all nodes, and which of its worlds this is (--pgid). ENVIRONMENT is the rank's: the
// proxies of one mpiexec are one step of Slurm's. An empty run: Hydra did not start it.
Launch launch_by_hydra(std::string_view environment, std::string_view proxy);
// Of a process of this user, now. TOLD: what its ring says of it; empty: as it is in /proc, where a process
// that is gone has none, and one may have overwritten its own.
Launch launch_of_process(std::int32_t pid, const std::string& told = {});

// Runs of mpirun have no step number of Slurm's: they get one above all of those, from their name, so that
// the relays of all nodes agree without a word.
inline constexpr std::uint32_t kFirstRunNumber = 0xe0000000;
inline constexpr std::uint32_t kLastRunNumber = 0xefffffff;
std::uint32_t step_number_of_run(std::string_view run);

// The words of a process's command line, cut as a step description needs it. Empty: it is gone.
struct CommandLine {
  std::string words;  // a NUL behind each
  bool cut = false;
};
CommandLine command_line_of_process(std::int32_t pid);

// Those words of ENVIRONMENT ("NAME=VALUE", a NUL behind each) that set how an MPI library's collectives go, at most
// protocol::kMostMpiSettings of at most 256 bytes.
std::vector<std::string> mpi_settings_of_environment(std::string_view environment);
// Of the environment that a process was started with; nothing: it is gone.
std::vector<std::string> mpi_settings_of_process(std::int32_t pid);

}  // namespace lbf::relay
