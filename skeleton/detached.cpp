#include "skeleton/detached.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace lbf::skeleton {
namespace {

class Detacher {
 public:
  explicit Detacher(const Exchange& from) : from_(from), ends_here_(from.operations.size(), false) {}

  Exchange run() {
    detached_.occurrences = from_.occurrences;
    detached_.seconds = from_.seconds;
    detached_.is_end = from_.is_end;
    for (std::uint32_t part = 0; part < from_.parts.size(); ++part) {
      const auto begin = static_cast<std::uint32_t>(detached_.operations.size());
      slots_.clear();
      taken_.clear();
      find_ends(from_.parts[part]);
      start_receives(part);
      for (std::uint32_t i = 0; i < from_.parts[part].count; ++i) operation(from_.parts[part].begin + i);
      end_requests();
      const auto end = static_cast<std::uint32_t>(detached_.operations.size());
      detached_.parts.push_back({from_.parts[part].rank, begin, end - begin});
    }
    return std::move(detached_);
  }

 private:
  // Fills ends_here_, by operation that starts a request.
  void find_ends(const Exchange::Part& part) {
    std::map<std::uint32_t, std::uint32_t> started;  // by slot
    for (std::uint32_t at = part.begin; at < part.begin + part.count; ++at) {
      const Operation& o = from_.operations[at];
      if (begins_request(o.kind)) started[o.slot] = at;
      for_each_ended(o, from_.values_of(o), [&](std::uint32_t slot) {
        const auto found = started.find(slot);
        if (found == started.end()) return;
        ends_here_[found->second] = true;
        started.erase(found);
      });
    }
  }

  void start_receives(std::uint32_t part) {
    for (const Exchange::UnderWay& each : from_.under_way) {
      if (each.part != part) continue;
      Operation receive = each.receive;
      receive.slot = take(receive.slot);
      receive.values_count = 0;
      push(receive, {}, nullptr);
    }
  }

  void operation(std::uint32_t at) {
    Operation o = from_.operations[at];
    std::vector<std::uint64_t> values;
    if (begins_request(o.kind)) {
      if (o.kind == OperationKind::kIrecv && !ends_here_[at]) return leave_out(at);
      o.slot = take(o.slot);
    }
    if (o.kind == OperationKind::kWait) {
      for (const std::uint64_t slot : from_.values_of(o)) {
        const auto mine = slots_.find(static_cast<std::uint32_t>(slot));
        if (mine != slots_.end()) values.push_back(mine->second);
      }
      if (values.empty()) return leave_out(at);
    } else {
      const auto all = from_.values_of(o);
      values.assign(all.begin(), all.end());
    }
    if (o.kind == OperationKind::kCancel || o.kind == OperationKind::kRequestFree) {
      const auto mine = slots_.find(o.slot);
      if (mine == slots_.end()) return leave_out(at);
      o.slot = mine->second;
    }
    for_each_ended(from_.operations[at], from_.values_of(from_.operations[at]),
                   [&](std::uint32_t slot) { give_back(slot); });
    push(o, values, &at);
  }

  void leave_out(std::uint32_t at) {
    Operation nothing;
    nothing.kind = OperationKind::kCompute;
    push(nothing, {}, &at);
  }

  void end_requests() {
    std::vector<std::uint64_t> values;
    for (const auto& [slot, mine] : slots_) values.push_back(mine);
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    Operation wait;
    wait.kind = OperationKind::kWait;
    wait.peer = kAnyRank;  // as those of a trace
    wait.tag = kAnyTag;
    push(wait, values, nullptr);
  }

  // `timed`: the operation whose computation and idle time are before it.
  void push(Operation o, const std::vector<std::uint64_t>& values, const std::uint32_t* timed) {
    o.values_begin = static_cast<std::uint32_t>(detached_.values.size());
    o.values_count = static_cast<std::uint32_t>(values.size());
    detached_.values.insert(detached_.values.end(), values.begin(), values.end());
    detached_.operations.push_back(o);
    detached_.computation.push_back(timed != nullptr ? from_.computation[*timed] : TimeDistribution());
    detached_.idle.push_back(timed != nullptr ? from_.idle[*timed] : TimeDistribution());
  }

  // The new name of a request.
  std::uint32_t take(std::uint32_t slot) {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    const auto mine = static_cast<std::uint32_t>(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(false);
    taken_[mine] = true;
    slots_[slot] = mine;
    return mine;
  }
  void give_back(std::uint32_t slot) {
    const auto mine = slots_.find(slot);
    if (mine == slots_.end()) return;
    taken_[mine->second] = false;
    slots_.erase(mine);
  }

  const Exchange& from_;
  std::vector<bool> ends_here_;
  Exchange detached_;
  // Of the part that is being made:
  std::map<std::uint32_t, std::uint32_t> slots_;  // of the requests under way: the new one
  std::vector<bool> taken_;                       // by new slot
};

}  // namespace

Exchange detached(const Exchange& exchange) {
  return Detacher(exchange).run();
}

}  // namespace lbf::skeleton
