// ProcessorWatch, see processor_watch.h.
#include "spank_plugin/relay/processor_watch.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/number.h"
#include "spank_plugin/relay/cgroup.h"

namespace lbf::relay {
namespace {

// The kernel counts in steps of 10 ms: a shorter look would see steps only, a more frequent one cost more than it
// tells.
constexpr std::uint64_t kFirstIntervalNs = 200'000'000;
constexpr std::uint64_t kIntervalNs = 1'000'000'000;
constexpr std::size_t kMostProcessors = 8192;

enum Field : std::size_t { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftirq, kSteal, kFields };

// "cpu3 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...": the processor's number; empty: another line.
std::optional<std::size_t> processor_line(std::string_view line, std::array<std::uint64_t, kFields>& values) {
  if (!line.starts_with("cpu")) return std::nullopt;
  std::size_t end = std::min(line.find(' '), line.size());
  const auto number = parse_number<std::size_t>(line.substr(3, end - 3));
  for (std::uint64_t& value : values) {
    const std::size_t begin = std::min(line.find_first_not_of(' ', end), line.size());
    end = std::min(line.find(' ', begin), line.size());
    value = parse_number<std::uint64_t>(line.substr(begin, end - begin)).value_or(0);
  }
  return number;
}

Seconds tick_s() {
  static const long kTicksPerSecond = std::max(::sysconf(_SC_CLK_TCK), 1L);
  return 1.0 / static_cast<double>(kTicksPerSecond);
}

Seconds grown(Seconds now_s, Seconds before_s) {
  return std::max(now_s - before_s, 0.0);
}

}  // namespace

void add_processors_of(std::int32_t pid, ProcessorSet& set) {
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(kMostProcessors),
                                                              [](cpu_set_t* allocated) { CPU_FREE(allocated); });
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostProcessors);
  if (mask == nullptr || ::sched_getaffinity(pid, bytes, mask.get()) != 0) return;
  for (std::size_t i = 0; i < kMostProcessors; ++i) {
    if (!CPU_ISSET_S(i, bytes, mask.get())) continue;
    if (set.size() <= i) set.resize(i + 1, false);
    set[i] = true;
  }
}

ProcessorTimes processor_times_in(std::string_view stat, const ProcessorSet& set, Seconds tick_s) {
  ProcessorTimes times;
  std::uint64_t busy = 0;
  std::uint64_t stolen = 0;
  std::uint64_t softirq = 0;
  while (!stat.empty()) {
    const std::size_t end = std::min(stat.find('\n'), stat.size());
    std::array<std::uint64_t, kFields> values{};
    const auto number = processor_line(stat.substr(0, end), values);
    stat.remove_prefix(std::min(end + 1, stat.size()));
    if (!number || *number >= set.size() || !set[*number]) continue;
    ++times.processors;
    busy += values[kUser] + values[kNice] + values[kSystem] + values[kIrq] + values[kSoftirq];
    stolen += values[kSteal];
    softirq += values[kSoftirq];
  }
  times.busy_s = static_cast<double>(busy) * tick_s;
  times.stolen_s = static_cast<double>(stolen) * tick_s;
  times.softirq_s = static_cast<double>(softirq) * tick_s;
  return times;
}

DelayShares shares_of(const ProcessorUse& use) {
  DelayShares shares;
  if (!(use.delayed_s > 0)) return shares;
  shares.limited = std::min(use.throttled_s / use.delayed_s, 1.0);
  const Seconds others_s = std::max(use.busy_s - use.ranks_cpu_s, 0.0);
  shares.others = std::min(others_s / use.delayed_s, 1 - shares.limited);
  return shares;
}

ProcessorWatch::Reading ProcessorWatch::read(std::uint64_t now_ns, std::span<const std::int32_t> pids,
                                             const std::map<Rank, RankCost>& costs) {
  Reading reading;
  reading.at_ns = now_ns;
  for (const std::int32_t pid : pids) add_processors_of(pid, set_);
  if (cpu_stat_files_.empty() && !pids.empty()) {
    if (const auto folder = cgroup_folder_of("cpu", pids.front())) cpu_stat_files_ = cpu_stat_files(*folder);
  }
  reading.times = processor_times_in(read_whole("/proc/stat"), set_, tick_s());
  for (const std::string& file : cpu_stat_files_) reading.throttled_s += throttled_in(read_whole(file));
  for (const auto& [rank, cost] : costs) {
    reading.ranks_cpu_s += cost.cpu_s;
    reading.delayed_s += cost.delayed_s;
  }
  return reading;
}

void ProcessorWatch::look(std::uint64_t now_ns, std::span<const std::int32_t> pids,
                          const std::map<Rank, RankCost>& costs) {
  if (pids.empty()) return;
  if (last_ && now_ns - last_->at_ns < (looks_ < 2 ? kFirstIntervalNs : kIntervalNs)) return;
  ++looks_;
  const Reading now = read(now_ns, pids, costs);
  const std::optional<Reading> before = std::exchange(last_, now);
  if (!before) {
    // Ranks that have a processor each do not wait for each other.
    shares_.others = pids.size() <= now.times.processors ? 1 : 0;
    return;
  }
  const ProcessorUse use{grown(now.times.busy_s, before->times.busy_s), grown(now.throttled_s, before->throttled_s),
                         grown(now.ranks_cpu_s, before->ranks_cpu_s), grown(now.delayed_s, before->delayed_s)};
  shares_ = shares_of(use);
  total_.processors = now.times.processors;
  total_.passed_s += static_cast<double>(now.times.processors) * static_cast<double>(now.at_ns - before->at_ns) * 1e-9;
  total_.others_s += grown(use.busy_s, use.ranks_cpu_s);
  total_.stolen_s += grown(now.times.stolen_s, before->times.stolen_s);
  total_.softirq_s += grown(now.times.softirq_s, before->times.softirq_s);
  total_.throttled_s += use.throttled_s;
}

std::optional<protocol::ProcessorsRecord> ProcessorWatch::record(std::uint64_t node_index) const {
  if (looks_ < 2) return std::nullopt;
  protocol::ProcessorsRecord record = total_;
  record.node_index = node_index;
  return record;
}

}  // namespace lbf::relay
