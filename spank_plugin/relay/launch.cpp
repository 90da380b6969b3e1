// Launch, see launch.h.
#include "spank_plugin/relay/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/number.h"
#include "base/scoped_fd.h"
#include "protocol/control_records.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kMaxEnvironmentBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxSettingBytes = 256;
constexpr std::size_t kMaxCommandBytes = std::size_t{32} << 10;
constexpr std::size_t kMaxNameBytes = 256;  // of a namespace: PMIX_MAX_NSLEN
constexpr int kMaxGenerations = 16;         // of scripts between a launcher's daemon and a rank
constexpr std::string_view kHydraLocalRanks = "MPI_LOCALNRANKS";

std::string read_up_to(const std::string& path, std::size_t limit) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  char buffer[16384];
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (text.size() > limit) text.resize(limit);
  return text;
}

// What all threads of a process have alike in /proc. Of a first thread that has ended it is empty: main() left with
// pthread_exit.
std::string read_of_any_thread(std::int32_t pid, const std::string& name, std::size_t limit) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::string text = read_up_to(folder + "/" + name, limit);
  std::error_code error;
  std::filesystem::directory_iterator thread;
  if (text.empty()) thread = std::filesystem::directory_iterator(folder + "/task", error);
  for (; text.empty() && !error && thread != std::filesystem::directory_iterator(); thread.increment(error))
    text = read_up_to(thread->path() / name, limit);
  return text;
}

std::optional<std::string_view> value_of(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view word = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(word.size() + 1, environment.size()));
    if (word.size() > name.size() && word[name.size()] == '=' && word.starts_with(name)) {
      return word.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Of Open MPI, MPICH and what is made of it. Most of MPICH's have nothing to do with collectives.
bool is_setting_of_collectives(std::string_view name) {
  if (name == "OMPI_MCA_coll" || name.starts_with("OMPI_MCA_coll_") || name.starts_with("I_MPI_ADJUST_")) return true;
  if (!name.starts_with("MPIR_CVAR_") && !name.starts_with("MPICH_")) return false;
  constexpr std::string_view kWords[] = {"COLL", "BARRIER", "BCAST", "REDUCE", "GATHER", "SCATTER", "ALLTOALL", "SCAN"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// Of a command line: the word behind NAME.
std::optional<std::string_view> word_behind(std::string_view command, std::string_view name) {
  bool is_next = false;
  while (!command.empty()) {
    const std::string_view word = command.substr(0, command.find('\0'));
    if (is_next) return word;
    command.remove_prefix(std::min(word.size() + 1, command.size()));
    is_next = word == name;
  }
  return std::nullopt;
}

// 0: it is gone.
std::int32_t parent_of(std::int32_t pid) {
  const std::string stat = read_up_to("/proc/" + std::to_string(pid) + "/stat", 4096);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) return 0;
  const std::string_view parent = std::string_view(stat).substr(name_end + 4);  // ") S PPID"
  return parse_number<std::int32_t>(parent.substr(0, parent.find(' '))).value_or(0);
}

template <typename Number>
std::optional<Number> number_of(std::optional<std::string_view> text) {
  return text ? parse_number<Number>(*text) : std::nullopt;
}

}  // namespace

Launch launch_of_environment(std::string_view environment) {
  Launch launch;
  if (const auto space = value_of(environment, "PMIX_NAMESPACE")) {
    if (space->empty() || space->size() > kMaxNameBytes || space->starts_with("slurm.")) return launch;
    const std::size_t at = space->rfind('@');
    if (const auto number = number_of<std::uint32_t>(space)) {  // Open MPI 4: job family, number in it
      launch.run = "ompi4-" + std::to_string(*number >> 16);
      launch.spawned = (*number & 0xffff) != 1;
    } else if (at != std::string_view::npos) {  // PRRTE: "prterun-HOST-PID@NUMBER"
      launch.run = space->substr(0, at);
      launch.spawned = space->substr(at + 1) != "1";
    }
    launch.local_size = number_of<std::int32_t>(value_of(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")).value_or(0);
  }
  if (launch.local_size < 0) launch.local_size = 0;
  return launch;
}

Launch launch_of_process(std::int32_t pid, const std::string& told) {
  const std::string environment = !told.empty() ? told : read_of_any_thread(pid, "environ", kMaxEnvironmentBytes);
  Launch launch = launch_of_environment(environment);
  if (!launch.run.empty() || !value_of(environment, kHydraLocalRanks)) return launch;
  // The proxy is the parent of every rank that no script of the user's stands before.
  std::int32_t ancestor = pid;
  for (int generation = 0; generation < kMaxGenerations && launch.run.empty(); ++generation) {
    ancestor = parent_of(ancestor);
    if (ancestor <= 1) break;
    launch =
        launch_by_hydra(environment, read_up_to("/proc/" + std::to_string(ancestor) + "/cmdline", kMaxCommandBytes));
  }
  return launch;
}

Launch launch_by_hydra(std::string_view environment, std::string_view proxy) {
  Launch launch;
  const auto local_size = number_of<std::int32_t>(value_of(environment, kHydraLocalRanks));
  const std::string_view program = proxy.substr(0, proxy.find('\0'));
  if (!local_size || !program.substr(program.rfind('/') + 1).starts_with("hydra_")) return launch;
  const auto port = word_behind(proxy, "--control-port");
  if (!port || port->empty() || port->size() > kMaxNameBytes) return launch;
  launch.run = "hydra-";
  launch.run.append(*port).append("-").append(value_of(environment, "SLURM_STEP_ID").value_or(""));
  launch.spawned = number_of<std::int32_t>(word_behind(proxy, "--pgid")).value_or(0) != 0;
  launch.local_size = std::max(*local_size, 0);
  return launch;
}

std::uint32_t step_number_of_run(std::string_view run) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : run) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr std::uint32_t kMask = kLastRunNumber - kFirstRunNumber;
  return kFirstRunNumber + ((hash ^ (hash >> 28)) & kMask);
}

std::vector<std::string> mpi_settings_of_environment(std::string_view environment) {
  std::vector<std::string> settings;
  while (!environment.empty() && settings.size() < protocol::kMostMpiSettings) {
    const std::string_view word = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(word.size() + 1, environment.size()));
    const std::size_t end = word.find('=');
    if (end == std::string_view::npos || word.size() > kMaxSettingBytes) continue;
    if (is_setting_of_collectives(word.substr(0, end))) settings.emplace_back(word);
  }
  return settings;
}

std::vector<std::string> mpi_settings_of_process(std::int32_t pid) {
  return mpi_settings_of_environment(read_of_any_thread(pid, "environ", kMaxEnvironmentBytes));
}

CommandLine command_line_of_process(std::int32_t pid) {
  CommandLine line;
  line.words = read_of_any_thread(pid, "cmdline", kMaxCommandBytes);
  line.cut = line.words.size() == kMaxCommandBytes;
  if (!line.words.empty() && line.words.back() != '\0') line.words += '\0';
  return line;
}

}  // namespace lbf::relay
