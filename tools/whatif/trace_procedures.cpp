#include "tools/whatif/trace_procedures.h"

#include <algorithm>
#include <optional>

namespace lbf::tools {
Result<void> StoredProcedures::take(const protocol::ControlRecord& record) {
  const std::int64_t said_rank = protocol::rank_of(record).value_or(protocol::kNoRank);
  const bool has_rank = said_rank >= 0 && said_rank < kMaxRanks;
  const auto rank = static_cast<Rank>(has_rank ? said_rank : 0);
  if (const auto* named = std::get_if<protocol::ProcedureRecord>(&record)) {
    if (!has_rank || !named->id || named->name.empty())
      return invalid_input("a procedure's record without rank, id or name");
    if (Result<void> defined = table_.define(rank, *named->id, named->name); !defined) return defined;
    return said_.define(rank, *named->id, named->name);
  }
  if (const auto* remark = std::get_if<protocol::ProcedureRemarkRecord>(&record)) {
    if (remark->kind == protocol::kSwitchedOff && !remark->name.empty()) switched_off_.insert(remark->name);
    if (has_rank) said_.remark(rank, remark->kind, remark->name, remark->text);
  } else if (const auto* samples = std::get_if<protocol::ProcedureSamplesRecord>(&record)) {
    if (has_rank) said_.take_samples(rank, samples->name, samples->inclusive, samples->exclusive, samples->of);
  } else if (const auto* given = std::get_if<protocol::ProcedureListRecord>(&record)) {
    if (given->list.generation > 0) take_list(given->list);
  }
  return {};
}

// Each node's relay says it when its ranks have it.
void StoredProcedures::take_list(const protocol::ProcedureList& list) {
  if (list.generation < list_generation_) return;
  list_generation_ = list.generation;
  listed_ = {list.names.begin(), list.names.end()};
  said_.take_list(list.names);
}

void StoredProcedures::finish(bool with_samples) {
  // With `auto`: the times of what left the list of all ranks, or was never on it, end somewhere.
  for (const std::string& name : table_.names()) {
    if (list_generation_ > 0 && !listed_.contains(name)) switched_off_.insert(name);
  }
  if (!with_samples) return;
  for (const std::string& name : said_.sampled_names()) {
    (void)table_.number_of(name);
    switched_off_.erase(name);
    sampled_.insert(name);
  }
  times_ = daemon::SampledTimes(said_.sampled_shares(table_.names()));
}

std::span<const Event> StoredProcedures::translated(Rank rank, std::span<const Event> events) {
  const auto says = [](const Event& event) { return is_procedure_event(event.kind) && !event.values.empty(); };
  if (std::none_of(events.begin(), events.end(), says)) return times_.put_into(rank, events);
  translated_.assign(events.begin(), events.end());
  numbers_.clear();
  for (Event& event : translated_) {
    if (!says(event)) continue;
    const std::optional<std::uint32_t> its_number = table_.translate(rank, event.values[0]);
    if (!its_number) {
      event.kind = EventKind::kCompute;
      event.values = {};
      continue;
    }
    std::vector<std::uint64_t>& values = numbers_.emplace_back(event.values.begin(), event.values.end());
    values[0] = *its_number;
    event.values = values;
  }
  return times_.put_into(rank, translated_);
}

}  // namespace lbf::tools
