// ProcessorWatch: what the processors do on which a node's ranks may run, and who has them while ranks wait.
//
// Place in the event's way: /proc/stat, cpu.stat, the ranks' times (RankCost) -> *ProcessorWatch* -> the share of run
// delay that RecordConverter makes kPreempted events of, and the `processors` record (docs/relay.md, "Other programs").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "protocol/control_records.h"
#include "spank_plugin/relay/cost_meter.h"

namespace lbf::relay {

// By the kernel's number of it: whether a rank may run there.
using ProcessorSet = std::vector<bool>;
// Adds those of PID's first thread. Of a process that is gone none.
void add_processors_of(std::int32_t pid, ProcessorSet& set);

// Of all processors of a set together, since the machine started.
struct ProcessorTimes {
  std::uint64_t processors = 0;
  Seconds busy_s = 0;  // all but idle and stolen time, softirq time too
  Seconds stolen_s = 0;
  Seconds softirq_s = 0;
};
// STAT is /proc/stat, whose times are in units of TICK_S.
ProcessorTimes processor_times_in(std::string_view stat, const ProcessorSet& set, Seconds tick_s);

// Of the time in which ranks were ready to run and had no processor. What is left of 1 the job's ranks took from each
// other.
struct DelayShares {
  double others = 0;   // other programs ran
  double limited = 0;  // their cgroup had used up its CPU limit
  double not_the_jobs() const { return others + limited; }
};

// What passed between two looks.
struct ProcessorUse {
  Seconds busy_s = 0;
  Seconds throttled_s = 0;
  Seconds ranks_cpu_s = 0;
  Seconds delayed_s = 0;  // all ranks together
};
// Other programs take from the job what they ran, where somebody of it waited: of fair shares this is exact with all
// processors busy, and an upper bound without (docs/relay.md).
DelayShares shares_of(const ProcessorUse& use);

class ProcessorWatch {
 public:
  // Looks, if the last look is long enough ago. PIDS are alive; COSTS are of all ranks so far.
  void look(std::uint64_t now_ns, std::span<const std::int32_t> pids, const std::map<Rank, RankCost>& costs);
  // As of the last look; before the second one a guess.
  const DelayShares& shares() const { return shares_; }
  // Since the first look. Empty: there was none.
  std::optional<protocol::ProcessorsRecord> record(std::uint64_t node_index) const;

 private:
  struct Reading {
    ProcessorTimes times;
    Seconds throttled_s = 0;
    Seconds ranks_cpu_s = 0;
    Seconds delayed_s = 0;
    std::uint64_t at_ns = 0;
  };
  Reading read(std::uint64_t now_ns, std::span<const std::int32_t> pids, const std::map<Rank, RankCost>& costs);

  ProcessorSet set_;
  std::vector<std::string> cpu_stat_files_;
  std::optional<Reading> last_;
  std::uint64_t looks_ = 0;
  DelayShares shares_;
  protocol::ProcessorsRecord total_;
};

}  // namespace lbf::relay
