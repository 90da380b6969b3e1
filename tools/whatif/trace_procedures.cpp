#include "tools/whatif/trace_procedures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace lbf::tools {
namespace {

// The record's words and numbers; of another type: as if they were not there. They come from the user's program.
std::string word(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::uint64_t> number(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::optional<std::vector<std::string>> words(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_array()) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& item : *found) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace

Result<void> StoredProcedures::take_record(std::string_view text) {
  if (text.find("\"procedure") == std::string_view::npos) return {};
  const nlohmann::json record = nlohmann::json::parse(text, nullptr, false);
  if (!record.is_object()) return {};
  const std::string type = word(record, "type");
  const std::optional<std::uint64_t> said_rank = number(record, "rank");
  const bool has_rank = said_rank && *said_rank < kMaxRanks;
  const auto rank = static_cast<Rank>(has_rank ? *said_rank : 0);
  if (type == "procedure") {
    const std::optional<std::uint64_t> id = number(record, "id");
    const std::string name = word(record, "name");
    if (!has_rank || !id || name.empty()) return invalid_input("a procedure's record without rank, id or name");
    if (Result<void> defined = table_.define(rank, *id, name); !defined) return defined;
    return said_.define(rank, *id, name);
  }
  if (type == "procedure_remark") {
    if (word(record, "kind") == "off" && record.contains("name")) switched_off_.insert(word(record, "name"));
    if (has_rank) said_.remark(rank, word(record, "kind"), word(record, "name"), word(record, "text"));
  } else if (type == "procedure_samples" && has_rank) {
    said_.take_samples(rank, word(record, "name"), number(record, "inclusive").value_or(0),
                       number(record, "exclusive").value_or(0), number(record, "of").value_or(0));
  } else if (type == "procedure_list") {
    const std::optional<std::uint64_t> generation = number(record, "generation");
    const std::optional<std::vector<std::string>> names = words(record, "names");
    if (generation && *generation > 0 && names) take_list(*names, *generation);
  }
  return {};
}

// Each node's relay says it when its ranks have it.
void StoredProcedures::take_list(const std::vector<std::string>& names, std::uint64_t generation) {
  if (generation < list_generation_) return;
  list_generation_ = generation;
  listed_ = {names.begin(), names.end()};
  said_.take_list(names);
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
