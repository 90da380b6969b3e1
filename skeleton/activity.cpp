#include "skeleton/activity.h"

#include <algorithm>
#include <set>

#include "skeleton/call_name.h"

namespace lbf::skeleton {

Seconds Activities::total_s() const {
  Seconds sum_s = computation_s + idle_s;
  for (const auto& [name, call] : calls) sum_s += call.seconds;
  return sum_s;
}

Activities activities_of(const ProgramTrace& trace) {
  Activities all;
  for (const std::vector<Operation>& operations : trace.ranks) {
    for (const Operation& operation : operations) {
      all.computation_s += static_cast<Seconds>(operation.process_s);
      all.idle_s += static_cast<Seconds>(operation.idle_s);
      if (operation.kind == OperationKind::kEnd) continue;
      Activities::Call& call = all.calls[call_name(operation)];
      call.seconds += static_cast<Seconds>(operation.call_s);
      ++call.count;
    }
  }
  return all;
}

std::vector<ActivityRow> compare_activities(const std::vector<Activities>& programs, double least_percent) {
  std::set<std::string> names;
  for (const Activities& program : programs) {
    for (const auto& [name, call] : program.calls) names.insert(name);
  }
  const auto row_of = [&](const std::string& name, const auto& seconds_of) {
    ActivityRow row{name, {}};
    for (const Activities& program : programs) {
      const Seconds total_s = program.total_s();
      row.percent.push_back(total_s > 0 ? 100 * seconds_of(program) / total_s : 0);
    }
    return row;
  };
  std::vector<ActivityRow> rows{row_of("computation", [](const Activities& a) { return a.computation_s; })};
  ActivityRow idle = row_of("idle", [](const Activities& a) { return a.idle_s; });
  if (*std::max_element(idle.percent.begin(), idle.percent.end()) > 0) rows.push_back(std::move(idle));
  std::vector<ActivityRow> calls;
  ActivityRow others{"other calls", std::vector<double>(programs.size(), 0)};
  bool any_others = false;
  for (const std::string& name : names) {
    ActivityRow row = row_of(name, [&](const Activities& a) {
      const auto found = a.calls.find(name);
      return found == a.calls.end() ? 0 : found->second.seconds;
    });
    if (*std::max_element(row.percent.begin(), row.percent.end()) >= least_percent) {
      calls.push_back(std::move(row));
      continue;
    }
    any_others = true;
    for (std::size_t i = 0; i < row.percent.size(); ++i) others.percent[i] += row.percent[i];
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const ActivityRow& a, const ActivityRow& b) { return a.percent.front() > b.percent.front(); });
  for (ActivityRow& row : calls) rows.push_back(std::move(row));
  if (any_others) rows.push_back(std::move(others));
  return rows;
}

}  // namespace lbf::skeleton
