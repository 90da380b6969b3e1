// Launch, see launch.h.
#include "spank_plugin/relay/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/number.h"
#include "base/scoped_fd.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kMaxEnvironmentBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxCommandBytes = std::size_t{32} << 10;
constexpr std::size_t kMaxNameBytes = 256;  // of a namespace: PMIX_MAX_NSLEN

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
  } else if (const auto local = number_of<std::int32_t>(value_of(environment, "MPI_LOCALNRANKS"))) {
    // Hydra says how many ranks there are, but not of which run: all on one node are told by their proxy.
    const auto size = number_of<std::int32_t>(value_of(environment, "PMI_SIZE"));
    const auto fd = value_of(environment, "PMI_FD");
    if (!size || *size != *local || !fd) return launch;
    launch.run = "hydra";
    launch.local_size = *local;
  }
  if (launch.local_size < 0) launch.local_size = 0;
  return launch;
}

Launch launch_of_process(std::int32_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Launch launch = launch_of_environment(read_of_any_thread(pid, "environ", kMaxEnvironmentBytes));
  if (launch.run != "hydra") return launch;
  // The proxy is the parent of every rank that no script of the user's stands before.
  const std::string stat = read_up_to(folder + "/stat", 4096);
  const std::size_t name_end = stat.rfind(')');
  const std::size_t parent = name_end == std::string::npos ? name_end : name_end + 4;  // ") S PPID"
  if (parent == std::string::npos || parent >= stat.size()) return {};
  launch.run += "-" + stat.substr(parent, stat.find(' ', parent) - parent);
  return launch;
}

std::uint32_t step_number_of_run(std::string_view run) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : run) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  constexpr std::uint32_t kMask = kLastRunNumber - kFirstRunNumber;
  return kFirstRunNumber + ((hash ^ (hash >> 28)) & kMask);
}

CommandLine command_line_of_process(std::int32_t pid) {
  CommandLine line;
  line.words = read_of_any_thread(pid, "cmdline", kMaxCommandBytes);
  line.cut = line.words.size() == kMaxCommandBytes;
  if (!line.words.empty() && line.words.back() != '\0') line.words += '\0';
  return line;
}

}  // namespace lbf::relay
