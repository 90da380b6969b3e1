#include "predictor/serve/step_procedures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace lbf {
namespace {

constexpr std::size_t kMaxRemarks = 2048;  // a hostile stream could give one per record
constexpr std::size_t kMaxTextBytes = 1000;
constexpr std::size_t kMaxNameBytes = 500;

// The limit takes a procedure out because of what it does then: what was seen before is no sample of what came after.
constexpr std::string_view kNotPredicted =
    "what moving it would gain is not predicted, because what ran before says nothing of what ran after; measure what "
    "calls it";

std::string cut(std::string_view text, std::size_t most) {
  return std::string(text.substr(0, most));
}

}  // namespace

bool StepProcedures::Remark::operator<(const Remark& other) const {
  return std::tie(kind, name, text) < std::tie(other.kind, other.name, other.text);
}

Result<void> StepProcedures::define(Rank rank, std::uint64_t own, std::string_view name) {
  Result<void> defined = table_.define(rank, own, name);
  if (!defined) return defined;
  totals_.resize(table_.names().size());
  totals_[*table_.translate(rank, own)].ranks.insert(rank);
  return {};
}

void StepProcedures::remark(Rank rank, std::string_view kind, std::string_view name, std::string_view text) {
  if (kind != "refused" && kind != "note" && kind != "off") return;
  Remark said{std::string(kind), cut(name, kMaxNameBytes), cut(text, kMaxTextBytes)};
  if (remarks_.size() >= kMaxRemarks && !remarks_.contains(said)) return;
  remarks_[std::move(said)].insert(rank);
}

void StepProcedures::take_events(Rank rank, std::span<const Event> events) {
  if (totals_.empty()) return;
  for (const Event& event : events) {
    if (event.kind != EventKind::kProcedure || event.values.size() < kProcedureValues) continue;
    const auto number = table_.translate(rank, event.values[0]);
    if (!number) continue;
    Total& total = totals_[*number];
    total.inclusive_s += static_cast<Seconds>(event.values[1]) * 1e-9;
    total.exclusive_s += static_cast<Seconds>(event.values[2]) * 1e-9;
    total.calls += event.values[3];
  }
}

std::vector<std::uint32_t> StepProcedures::ranked() const {
  std::vector<std::uint32_t> numbers(totals_.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::uint32_t a, std::uint32_t b) {
    return totals_[a].exclusive_s > totals_[b].exclusive_s;
  });
  return numbers;
}

std::vector<std::uint32_t> StepProcedures::foremost(std::size_t most) const {
  std::vector<std::uint32_t> numbers = ranked();
  if (numbers.size() > most) numbers.resize(most);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<db::ProcedureRecord> StepProcedures::records() const {
  std::vector<db::ProcedureRecord> out;
  std::map<std::string, std::size_t> by_name;
  for (const std::uint32_t number : ranked()) {
    const Total& total = totals_[number];
    db::ProcedureRecord record;
    record.name = table_.names()[number];
    record.ranks = static_cast<std::uint32_t>(total.ranks.size());
    record.calls = total.calls;
    record.inclusive_s = total.inclusive_s;
    record.exclusive_s = total.exclusive_s;
    by_name.emplace(record.name, out.size());
    out.push_back(std::move(record));
  }
  for (const auto& [said, ranks] : remarks_) {
    if (said.kind == "note") continue;
    auto found = by_name.find(said.name);
    if (found == by_name.end()) {
      if (said.kind != "refused") continue;
      found = by_name.emplace(said.name, out.size()).first;
      db::ProcedureRecord record;
      record.name = said.name;
      record.state = "refused";
      out.push_back(std::move(record));
    }
    db::ProcedureRecord& record = out[found->second];
    if (said.kind == "off") record.state = "off";
    const std::string whose = said.kind == "off" || record.state != "refused"
                                  ? fmt::format("{} {}: ", ranks.size(), ranks.size() == 1 ? "rank" : "ranks")
                                  : std::string();
    record.note += (record.note.empty() ? "" : "; ") + whose + said.text;
  }
  for (db::ProcedureRecord& record : out) {
    if (record.state == "off") record.note += "; " + std::string(kNotPredicted);
  }
  return out;
}

std::vector<std::string> StepProcedures::notes() const {
  std::vector<std::string> out;
  for (const auto& [said, ranks] : remarks_) {
    if (said.kind != "note") continue;
    std::string line = "procedures: " + said.text;
    // What "auto" chose differs from rank to rank.
    if (ranks.size() == 1) line += fmt::format(" (rank {})", *ranks.begin());
    if (out.size() < 16) out.push_back(std::move(line));
  }
  return out;
}

}  // namespace lbf
