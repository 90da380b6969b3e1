#include "predictor/daemon/steps/step_procedures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace lbf::daemon {
namespace {

constexpr std::size_t kMaxRemarks = 2048;  // a hostile stream could give one per record
constexpr std::size_t kMaxTextBytes = 1000;
constexpr std::size_t kMaxNameBytes = 500;
constexpr double kMostCallNs = 1e6;
constexpr double kMostCallsPerS = 1e10;
constexpr Seconds kLeastObservedS = 0.5;  // of a rank's time, for its calls to count as a rate
// What samples must be for a prediction from them: taken over most of the rank's time, and enough.
constexpr double kLeastCovered = 0.7;
constexpr double kMostHalfWidth = 0.25;  // of the 95 % interval, of the time
constexpr double kZ95 = 1.96;

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

Result<void> StepProcedures::define(Rank rank, std::uint64_t own, std::string_view name, double call_ns) {
  const bool is_new = !table_.find(name);
  if (is_new && (table_.names().size() >= most_names_ || name_bytes_ + name.size() > most_name_bytes_))
    return Error{ErrorCode::kLimit, fmt::format("the step has {} procedures; further ones are left out: name fewer",
                                                table_.names().size())};
  Result<void> defined = table_.define(rank, own, name);
  if (!defined) return defined;
  if (is_new) name_bytes_ += name.size();
  totals_.resize(table_.names().size());
  Total& total = totals_[*table_.translate(rank, own)];
  if (total.ranks.insert(rank).second) entries_ += 3;  // table_ and `began` have it, too
  total.began.try_emplace(rank, time_of(rank).all_s);
  say_call_ns(call_ns);
  return {};
}

void StepProcedures::say_call_ns(double call_ns) {
  if (call_ns > 0 && call_ns < kMostCallNs) call_ns_ = std::max(call_ns_, call_ns);
}

StepProcedures::RankTime StepProcedures::time_of(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < times_.size() ? times_[index] : RankTime{};
}

void StepProcedures::end_on(std::uint32_t number, Rank rank) {
  if (totals_[number].ended.try_emplace(rank, time_of(rank).all_s).second) ++entries_;
}

void StepProcedures::expect_within(const std::string& name, double cost_limit) {
  if (within_.size() < kMaxRemarks) within_[name] = cost_limit;
}

void StepProcedures::take_list(const std::vector<std::string>& names) {
  listed_.emplace(names.begin(), names.end());
  for (std::uint32_t number = 0; number < totals_.size(); ++number) {
    if (!is_off_list(table_.names()[number])) continue;
    for (const Rank rank : totals_[number].ranks) end_on(number, rank);
  }
}

void StepProcedures::take_samples(Rank rank, std::string_view name, std::uint64_t inclusive, std::uint64_t exclusive,
                                  std::uint64_t of) {
  if (name.empty() || inclusive > of || exclusive > inclusive) return;
  std::string key = cut(name, kMaxNameBytes);
  if (samples_.size() >= kMaxRemarks && !samples_.contains(key)) return;
  if (samples_[std::move(key)].insert_or_assign(rank, Samples{inclusive, exclusive, of}).second) ++entries_;
}

void StepProcedures::remark(Rank rank, std::string_view kind, std::string_view name, std::string_view text,
                            double calls_per_s) {
  if (kind != "refused" && kind != "note" && kind != "off") return;
  Remark said{std::string(kind), cut(name, kMaxNameBytes), cut(text, kMaxTextBytes)};
  if (remarks_.size() >= kMaxRemarks && !remarks_.contains(said)) return;
  if (kind == "off") {
    if (const auto number = table_.find(said.name)) end_on(*number, rank);
    if (calls_per_s > 0 && calls_per_s < kMostCallsPerS && table_.find(said.name)) {
      double& rate = off_rates_[said.name];
      rate = std::max(rate, calls_per_s);
    }
  }
  if (remarks_[std::move(said)].insert(rank).second) ++entries_;
}

std::size_t StepProcedures::memory_bytes() const {
  constexpr std::size_t kOfEntry = 64;  // of a map or a set
  return 4 * name_bytes_ + table_.names().size() * sizeof(Total) + entries_ * kOfEntry +
         times_.capacity() * sizeof(RankTime) + remarks_.size() * (kMaxTextBytes + kMaxNameBytes) +
         samples_.size() * kMaxNameBytes;
}

StepProcedures::RankTime& StepProcedures::time_to_add_to(Rank rank) {
  if (static_cast<std::size_t>(rank) >= times_.size()) times_.resize(static_cast<std::size_t>(rank) + 1);
  return times_[static_cast<std::size_t>(rank)];
}

void StepProcedures::take_rounds(Rank rank, const Rounds& rounds) {
  RankTime& time = time_to_add_to(rank);
  for (const Rounds::Times& times : rounds.times) {
    const Seconds process_s = seconds_from_ns(static_cast<Nanoseconds>(times.process_ns));
    time.all_s += process_s + seconds_from_ns(static_cast<Nanoseconds>(times.call_ns));
    time.process_s += process_s;
  }
}

void StepProcedures::take_events(Rank rank, std::span<const Event> events) {
  if (rank < 0) return;
  RankTime& time = time_to_add_to(rank);
  for (const Event& event : events) {
    time.all_s += event.process_s + event.call_s + event.off_s;
    time.process_s += event.process_s;
    if (event.kind != EventKind::kProcedure || event.values.size() < kProcedureValues) continue;
    const auto number = table_.translate(rank, event.values[0]);
    if (!number) continue;
    Total& total = totals_[*number];
    total.inclusive_s += static_cast<Seconds>(event.values[1]) * 1e-9;
    total.exclusive_s += static_cast<Seconds>(event.values[2]) * 1e-9;
    total.calls += event.values[3];
  }
}

Seconds StepProcedures::measured_s(const Total& total) const {
  Seconds sum_s = 0;
  for (const auto& [rank, began_s] : total.began) {
    const auto ended = total.ended.find(rank);
    sum_s += std::max((ended == total.ended.end() ? time_of(rank).all_s : ended->second) - began_s, 0.0);
  }
  return sum_s;
}

Seconds StepProcedures::call_s() const {
  return (call_ns_ > 0 ? call_ns_ : kDefaultProcedureCallNs) * 1e-9;
}

StepProcedures::Expected StepProcedures::expected(const std::string& name) const {
  if (const auto known = history_.find(name); known != history_.end()) return {known->second * call_s(), "history"};
  if (const auto tried = within_.find(name); tried != within_.end()) return {tried->second, "limit"};
  return {kDefaultProcedureCallsPerS * call_s(), "default"};
}

std::optional<double> StepProcedures::known_cost(const std::string& name) const {
  if (const auto number = table_.find(name)) {
    const Total& total = totals_[*number];
    if (const Seconds sum_s = measured_s(total); sum_s >= kLeastObservedS * static_cast<double>(total.ranks.size()))
      return static_cast<double>(total.calls) / sum_s * call_s();
  }
  if (const auto known = history_.find(name); known != history_.end()) return known->second * call_s();
  return std::nullopt;
}

// --- samples

std::string StepProcedures::why_not_sampled(const std::string& name) const {
  const std::map<Rank, Samples>& samples = samples_.at(name);
  if (is_off_list(name)) return "ranks that did not switch it off themselves have no samples of it";
  const std::optional<std::uint32_t> number = table_.find(name);
  if (number) {
    // A rank that measured it to its end has its times; one that did not has samples, or nothing.
    for (const auto& [rank, ended_s] : totals_[*number].ended) {
      if (!samples.contains(rank)) return fmt::format("rank {} has no samples of it", rank);
    }
  }
  Seconds sampled_s = 0;
  double variance = 0;
  for (const auto& [rank, one] : samples) {
    const Seconds process_s = time_of(rank).process_s;
    if (one.of == 0) continue;
    // From when it was switched off; what never was measured is sampled from MPI_Init on.
    const Seconds all_s = time_of(rank).all_s;
    double covered = 1;
    if (number && all_s > 0) {
      const auto ended = totals_[*number].ended.find(rank);
      if (ended != totals_[*number].ended.end()) covered = 1 - ended->second / all_s;
    }
    if (covered < kLeastCovered)
      return fmt::format("rank {} was sampled in {:.0f} % of its time, after it was switched off", rank, 100 * covered);
    const auto n = static_cast<double>(one.of);
    const double share = (static_cast<double>(one.inclusive) + 2) / (n + 4);
    sampled_s += static_cast<double>(one.inclusive) / n * process_s;
    variance += process_s * process_s * share * (1 - share) / (n + 4);
  }
  if (!(sampled_s > 0)) return "no sample was in it";
  if (kZ95 * std::sqrt(variance) > kMostHalfWidth * sampled_s)
    return fmt::format("its time is known to {:.0f} % only: too few samples",
                       100 * kZ95 * std::sqrt(variance) / sampled_s);
  return {};
}

// Agresti and Coull's interval for each rank's share, their variances added up.
void StepProcedures::describe_samples(db::ProcedureRecord& record) const {
  const auto found = samples_.find(record.name);
  if (found == samples_.end() || record.state == "measured") return;
  Seconds sum_s = 0;
  Seconds middle_s = 0;
  double variance = 0;
  for (const auto& [rank, one] : found->second) {
    if (one.of == 0) continue;
    const Seconds process_s = time_of(rank).process_s;
    const auto n = static_cast<double>(one.of);
    const double share = (static_cast<double>(one.inclusive) + 2) / (n + 4);
    record.samples += one.inclusive;
    sum_s += static_cast<double>(one.inclusive) / n * process_s;
    middle_s += share * process_s;
    variance += process_s * process_s * share * (1 - share) / (n + 4);
  }
  if (variance <= 0) return;
  record.sampled_s = sum_s;
  record.sampled_low_s = std::clamp(middle_s - kZ95 * std::sqrt(variance), 0.0, sum_s);
  record.sampled_high_s = std::max(middle_s + kZ95 * std::sqrt(variance), sum_s);
}

std::vector<std::string> StepProcedures::sampled_names() const {
  std::vector<std::string> out;
  for (const auto& [said, ranks] : remarks_) {
    const bool is_missing = said.kind == "off" || said.kind == "refused";
    if (!is_missing || !samples_.contains(said.name) || !why_not_sampled(said.name).empty()) continue;
    if (std::find(out.begin(), out.end(), said.name) == out.end()) out.push_back(said.name);
  }
  return out;
}

std::map<Rank, std::vector<SampledShare>> StepProcedures::sampled_shares(const std::vector<std::string>& all) const {
  std::map<Rank, std::vector<SampledShare>> out;
  for (const std::string& name : sampled_names()) {
    const auto number = std::find(all.begin(), all.end(), name);
    if (number == all.end()) continue;
    for (const auto& [rank, one] : samples_.at(name)) {
      if (one.of == 0) continue;
      const auto of = static_cast<double>(one.of);
      out[rank].push_back({static_cast<std::uint32_t>(number - all.begin()), static_cast<double>(one.inclusive) / of,
                           static_cast<double>(one.exclusive) / of});
    }
  }
  return out;
}

std::vector<std::uint32_t> StepProcedures::ranked() const {
  std::vector<std::uint32_t> numbers(totals_.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return totals_[a].exclusive_s > totals_[b].exclusive_s; });
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
    const Expected known = expected(record.name);
    record.predicted_cost = known.cost;
    record.predicted_from = known.from;
    // What was switched off was so for how often it was called then, not for what a whole run would have of it.
    const auto off_rate = off_rates_.find(record.name);
    const Seconds sum_s = measured_s(total);
    if (off_rate != off_rates_.end() || sum_s > 0) {
      record.calls_per_s = off_rate != off_rates_.end() ? off_rate->second : static_cast<double>(total.calls) / sum_s;
      record.observed_cost = *record.calls_per_s * call_s();
    }
    if (is_off_list(record.name)) {
      record.state = "off";
      record.note = "it is on the list of all ranks no more: its calls and times are those until then";
    }
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
    describe_samples(record);
    const std::string why_not = record.sampled_s ? why_not_sampled(record.name) : std::string();
    if (record.sampled_s && why_not.empty()) {
      record.note += fmt::format(
          "; sampled: {:.4g} s ({:.4g} .. {:.4g}), an average share of the captured time between MPI calls on each "
          "rank",
          *record.sampled_s, *record.sampled_low_s, *record.sampled_high_s);
      continue;
    }
    if (record.sampled_s) record.note += "; not predicted from samples: " + why_not;
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

}  // namespace lbf::daemon
