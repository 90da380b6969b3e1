// What /proc tells about a process, see process_probe.h.
#include "spank_plugin/relay/process_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"
#include "base/scoped_fd.h"

namespace lbf::relay {
namespace {

std::string read_small_file(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::array<char, 2048> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

// The fields of /proc/.../stat after the command's name, which may hold spaces and parentheses itself: [0] is
// field 3 of proc(5), the state.
std::vector<std::string_view> fields_after_name(std::string_view stat) {
  std::vector<std::string_view> fields;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return fields;
  stat.remove_prefix(name_end + 1);
  while (!stat.empty()) {
    const std::size_t begin = stat.find_first_not_of(" \n");
    if (begin == std::string_view::npos) break;
    stat.remove_prefix(begin);
    const std::size_t end = std::min(stat.find_first_of(" \n"), stat.size());
    fields.push_back(stat.substr(0, end));
    stat.remove_prefix(end);
  }
  return fields;
}

std::uint64_t number(std::string_view word) {
  return parse_number<std::uint64_t>(word).value_or(0);
}

}  // namespace

ProcessStat read_process_stat(std::int32_t pid) {
  const std::string stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const auto fields = fields_after_name(stat);
  if (fields.size() < 20) return {};
  // A first thread that ended before the others is a zombie until they have ended, too; it counts in num_threads.
  const bool gone = fields[0] == "X" || (fields[0] == "Z" && number(fields[17]) <= 1);
  return {!gone, fields[0] == "T", fields[0] == "D", number(fields[19])};
}

std::optional<std::uint64_t> read_thread_cpu_ns(std::int32_t pid, std::int32_t tid) {
  const std::string task = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
  const std::string schedstat = read_small_file(task + "/schedstat");
  if (!schedstat.empty()) return number(std::string_view(schedstat).substr(0, schedstat.find(' ')));
  const std::string stat = read_small_file(task + "/stat");
  const auto fields = fields_after_name(stat);
  if (fields.size() < 13) return std::nullopt;
  static const auto kTicksPerSecond = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return (number(fields[11]) + number(fields[12])) * (1'000'000'000 / kTicksPerSecond);
}

std::optional<std::uint64_t> read_run_delay_ns(std::int32_t pid) {
  const std::string schedstat = read_small_file("/proc/" + std::to_string(pid) + "/schedstat");
  const std::size_t space = schedstat.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return number(std::string_view(schedstat).substr(space + 1, schedstat.find(' ', space + 1) - space - 1));
}

std::optional<std::uint64_t> read_process_cpu_ns(std::int32_t pid) {
  clockid_t clock{};
  timespec now{};
  // One system call, exact, and open to everybody: /proc/PID/stat counts in steps of 10 ms.
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace lbf::relay
