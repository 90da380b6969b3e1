// TaskEnds, see task_ends.h.
#include "protocol/task_ends.h"

#include <algorithm>

#include "base/number.h"

namespace lbf::protocol {
namespace {

constexpr std::string_view kTask = "task ";
constexpr std::string_view kKilledBy = "killed ";

}  // namespace

std::string encode(const TaskEnds& ends) {
  std::string text;
  for (const auto& [pid, status] : ends.status_of_pid)
    text += std::string(kTask) + std::to_string(pid) + ' ' + std::to_string(status) + '\n';
  if (!ends.killed_by.empty()) text += std::string(kKilledBy) + ends.killed_by + '\n';
  return text;
}

void take_line(std::string_view line, TaskEnds& ends) {
  if (line.starts_with(kKilledBy)) ends.killed_by = line.substr(kKilledBy.size());
  if (!line.starts_with(kTask)) return;
  line.remove_prefix(kTask.size());
  const std::size_t blank = std::min(line.find(' '), line.size());
  const auto pid = parse_number<std::int32_t>(line.substr(0, blank));
  const auto status = parse_number<int>(line.substr(std::min(blank + 1, line.size())));
  if (pid && status) ends.status_of_pid[*pid] = *status;
}

}  // namespace lbf::protocol
