// See savings.h.
#include "report/savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/advice.h"
#include "report/row_table.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr double kSecondsPerHour = 3600;

std::optional<double> used_node_hours(const Step& step) {
  const TargetPrediction* const self = step.self();
  const std::uint64_t nodes =
      self != nullptr && self->nodes ? *self->nodes : step.node_count.value_or(step.nodes.size());
  if (nodes == 0 || !step.measured_s) return std::nullopt;
  return static_cast<double>(nodes) * *step.measured_s / kSecondsPerHour;
}

std::string key_of_group(std::string_view group, const Step& step) {
  const std::string key = group == "program" ? program_of(step) : group == "account" ? step.account : step.partition;
  return key.empty() ? "-" : printable(key);
}

std::string hours(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 999.95 ? 1 : 0);
}

nlohmann::json json_of(const Saved& saved) {
  return {{"steps", saved.steps},
          {"advised_steps", saved.advised},
          {"node_hours", saved.used},
          {"saved_node_hours", saved.saved},
          {"low_node_hours", saved.low},
          {"high_node_hours", saved.high},
          {"not_known_steps", saved.unknown_steps},
          {"not_known_node_hours", saved.unknown_used}};
}

}  // namespace

Trusted trusted(const Step& step) {
  if (step.running()) return Trusted::kRunning;
  if (step.state == StepState::kPartial) return Trusted::kPartial;
  const advisor::Doubt doubt = trust_of(step).doubt();
  if (doubt == advisor::Doubt::kSeenTooLittle) return Trusted::kSeenTooLittle;
  const TargetPrediction* const self = step.self();
  if (self == nullptr || !self->predicted_s || !step.self_error_percent() || !used_node_hours(step))
    return Trusted::kNoSelfPrediction;
  if (doubt == advisor::Doubt::kLostToOthers) return Trusted::kLostToOthers;
  return doubt == advisor::Doubt::kSelfErrorTooLarge ? Trusted::kSelfErrorTooLarge : Trusted::kTrusted;
}

std::string_view words_of(Trusted why) {
  switch (why) {
    case Trusted::kTrusted:
      return "trusted";
    case Trusted::kRunning:
      return "running";
    case Trusted::kPartial:
      return "partial";
    case Trusted::kSeenTooLittle:
      return "too little captured";
    case Trusted::kNoSelfPrediction:
      return "without self-prediction";
    case Trusted::kSelfErrorTooLarge:
      return "self-prediction error above 10 %";
    case Trusted::kLostToOthers:
      return "processors lost to others";
  }
  return "";
}

void Saved::add(const Saved& other) {
  steps += other.steps;
  advised += other.advised;
  used += other.used;
  saved += other.saved;
  low += other.low;
  high += other.high;
  unknown_steps += other.unknown_steps;
  unknown_used += other.unknown_used;
}

Saved saved_by(const Step& step) {
  Saved out;
  out.steps = 1;
  out.used = used_node_hours(step).value_or(0);
  const TargetPrediction* const target = advise(step).here;
  if (target == nullptr || !target->nodes) return out;
  const auto reference = reference_s(step, *target);
  const auto saying = saying_of(step, *target);
  const TargetPrediction& self = *step.self();
  if (!reference || !saying || !self.nodes) return out;
  const double now = std::min(*reference, *self.predicted_s) * static_cast<double>(*self.nodes) / kSecondsPerHour;
  const double then = *target->predicted_s * static_cast<double>(*target->nodes) / kSecondsPerHour;
  const advisor::Gain gain = advisor::gain_of(now, then, saying->half_width_percent);
  out.advised = 1;
  out.saved = now * gain.percent / 100;
  out.low = now * gain.low_percent / 100;
  out.high = now * gain.high_percent / 100;
  return out;
}

void Savings::add(const Step& step) {
  const Trusted why = trusted(step);
  Saved saved;
  if (why == Trusted::kTrusted) {
    saved = saved_by(step);
  } else {
    saved.unknown_steps = 1;
    saved.unknown_used = used_node_hours(step).value_or(0);
    unknown_[static_cast<std::size_t>(why)].add(saved);
  }
  all_.add(saved);
  for (std::size_t i = 0; i < kGroups.size(); ++i) groups_[i][key_of_group(kGroups[i], step)].add(saved);
  if (why != Trusted::kTrusted) return;
  const bool has_deferred =
      std::ranges::any_of(step.predictions, [](const TargetPrediction& one) { return !one.why_deferred.empty(); });
  with_deferred_ += has_deferred ? 1 : 0;
}

std::vector<Savings::Line> Savings::lines(std::size_t group) const {
  std::vector<Line> out;
  for (const auto& [key, saved] : groups_[group]) out.push_back({key, saved});
  std::ranges::stable_sort(out, [](const Line& a, const Line& b) { return a.saved.saved > b.saved.saved; });
  return out;
}

std::string savings_sentence(const Savings& savings, const Selection& selection) {
  const Saved& all = savings.all();
  if (all.steps == 0) return "No run" + describe_window(selection) + " has trusted predictions.";
  return fmt::format(
      "Of {} node-hours with trusted predictions{}, {} ({:.1f} %) would have been saved at the advised node counts; "
      "between {} and {} by the predictions' intervals. {}, {} with an advice.",
      hours(all.used), describe_window(selection), hours(all.saved), all.used > 0 ? 100 * all.saved / all.used : 0,
      hours(all.low), hours(all.high), count_of(all.steps, "run"), all.advised);
}

std::string unknown_sentence(const Savings& savings) {
  std::string out;
  if (const Saved& all = savings.all(); all.unknown_steps > 0) {
    for (std::size_t i = 0; i < kTrustedKinds; ++i) {
      const auto why = static_cast<Trusted>(i);
      const Saved& one = savings.unknown(why);
      if (one.unknown_steps == 0) continue;
      out += fmt::format("{}{} {} ({})", out.empty() ? "" : ", ", one.unknown_steps, words_of(why),
                         hours(one.unknown_used));
    }
    out = fmt::format("Not known: {}, {} node-hours: {}.", count_of(all.unknown_steps, "run"), hours(all.unknown_used),
                      out);
  }
  if (savings.with_deferred() > 0) {
    out += fmt::format("{}Of {} further targets are to be replayed yet.", out.empty() ? "" : " ",
                       count_of(savings.with_deferred(), "run"));
  }
  return out;
}

std::string render_savings(const Savings& savings, const TableStyle& style) {
  struct SavingsRow {
    std::string group;
    std::string key;
    Saved saved;
  };
  using Row = const SavingsRow&;
  static constexpr std::array<ColumnOf<SavingsRow>, 9> kColumns{
      {{"Group", 9, true, [](Row row) { return row.group; }},
       {"Key", 13, true, [](Row row) { return row.key; }, true},
       {"Steps", 5, false, [](Row row) { return std::to_string(row.saved.steps); }},
       {"Advised", 7, false, [](Row row) { return std::to_string(row.saved.advised); }},
       {"NodeHours", 9, false, [](Row row) { return hours(row.saved.used); }},
       {"Saved", 7, false, [](Row row) { return hours(row.saved.saved); }},
       {"Low", 7, false, [](Row row) { return hours(row.saved.low); }},
       {"High", 7, false, [](Row row) { return hours(row.saved.high); }},
       {"NotKnown", 8, false, [](Row row) { return hours(row.saved.unknown_used); }}}};
  std::vector<SavingsRow> rows;
  if (savings.all().steps + savings.all().unknown_steps > 0) rows.push_back({"all", "", savings.all()});
  for (std::size_t i = 0; i < Savings::kGroups.size(); ++i) {
    for (Savings::Line& line : savings.lines(i))
      rows.push_back({std::string(Savings::kGroups[i]), std::move(line.key), line.saved});
  }
  return render_rows(rows, kColumns, style);
}

std::string savings_json(const Savings& savings, const Selection& selection) {
  using Json = nlohmann::json;
  const auto known = [](const std::optional<std::time_t>& value) { return value ? Json(*value) : Json(); };
  Json out = {{"since", known(selection.since)},
              {"until", known(selection.until)},
              {"all", json_of(savings.all())},
              {"not_known", Json::array()},
              {"steps_with_deferred_targets", savings.with_deferred()}};
  for (std::size_t i = 0; i < Savings::kGroups.size(); ++i) {
    const std::string group(Savings::kGroups[i]);
    Json& list = out["by_" + group] = Json::array();
    for (const Savings::Line& line : savings.lines(i)) {
      Json one = json_of(line.saved);
      one[group] = line.key;
      list.push_back(std::move(one));
    }
  }
  for (std::size_t i = 0; i < kTrustedKinds; ++i) {
    const auto why = static_cast<Trusted>(i);
    const Saved& one = savings.unknown(why);
    if (one.unknown_steps == 0) continue;
    out["not_known"].push_back(
        {{"why", words_of(why)}, {"steps", one.unknown_steps}, {"node_hours", one.unknown_used}});
  }
  return Json{{"savings", std::move(out)}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lbf::report
