// ProcedureTranslation, see procedure_translation.h.
#include "predictor/daemon/steps/procedure_translation.h"

#include <algorithm>

namespace lbf::daemon {

std::span<const Event> ProcedureTranslation::translate(const ProcedureTable& table, std::size_t end, Rank rank,
                                                       std::span<const Event> events) {
  const auto says = [](const Event& event) { return is_procedure_event(event.kind) && !event.values.empty(); };
  const auto count = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), says));
  if (count == 0) return events;
  events_.assign(events.begin(), events.end());
  values_.clear();
  values_.reserve(count);
  for (Event& event : events_) {
    if (!says(event)) continue;
    const std::optional<std::uint32_t> number = table.translate(rank, event.values[0]);
    if (!number || *number >= end) {
      event.kind = EventKind::kCompute;
      event.values = {};
      continue;
    }
    auto& values = values_.emplace_back();
    const std::size_t used = std::min(values.size(), event.values.size());
    std::copy_n(event.values.begin(), used, values.begin());
    values[0] = *number;
    event.values = std::span(values).first(used);
  }
  return events_;
}

}  // namespace lbf::daemon
