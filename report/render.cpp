#include "report/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "base/hostlist.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/answer.h"
#include "report/answer_json.h"
#include "report/fields.h"
#include "report/other_programs.h"
#include "report/terminal_colors.h"
#include "report/text.h"

namespace lbf::report {
namespace {

// A run of less may cost more than the overhead limit (docs/cost-system.md, "Budget"), in what each one costs once.
constexpr Seconds kLimitHoldsFromS = 2;

using Json = nlohmann::json;

std::string colored(std::string text, std::string_view color, const PageStyle& style) {
  if (!style.color) return text;
  return std::string(color) + std::move(text) + std::string(kPlain);
}

std::string head(const Step& step, const PageStyle& style) {
  std::string title = "Job " + job_id(step);
  if (!job_id(step).starts_with(raw_job_id(step))) title += " (" + raw_job_id(step) + ")";
  if (step.restart > 0) title += fmt::format(" (restart {})", step.restart);
  std::string program = command_line(step);
  if (program.empty()) program = step.job_name;
  if (!program.empty()) title += "  " + program;

  std::string where;
  if (step.ranks) where = count_of(*step.ranks, "rank");
  if (!step.nodes.empty()) {
    where += fmt::format("{}{} ({})", where.empty() ? "" : " on ", count_of(step.nodes.size(), "node"),
                         shorten(hostlist(step.nodes), style.width / 2));
  }
  if (!step.network.empty()) where += (where.empty() ? "network " : ", network ") + step.network;
  if (!step.user_name.empty()) where += (where.empty() ? "user " : ", user ") + step.user_name;

  std::string when;
  if (step.start_s) when = "started " + format_timestamp(*step.start_s) + ", ";
  if (step.measured_s) {
    when += fmt::format("{} {}, ", step.running() ? "measured so far" : "measured", format_duration(*step.measured_s));
  }
  std::string state(name_of(step.state));
  if (step.state != StepState::kComplete) state = colored(state, kYellow, style);

  std::string out = colored(shorten(title, style.width), kBold, style) + '\n';
  if (!where.empty()) out += wrap(where, style.width, 2);
  return out + "  " + when + state + '\n';
}

std::string partial_line(const Step& step, const PageStyle& style) {
  if (step.state != StepState::kPartial && step.why_partial.empty()) return {};
  return wrap("Partial: " + (step.why_partial.empty() ? std::string("lbfd gives no reason.") : step.why_partial),
              style.width, 2);
}

std::vector<const TargetPrediction*> sorted_targets(const Step& step) {
  std::vector<const TargetPrediction*> out;
  for (const TargetPrediction& target : step.predictions) out.push_back(&target);
  std::stable_sort(out.begin(), out.end(), [](const TargetPrediction* a, const TargetPrediction* b) {
    const auto key = [](const TargetPrediction& t) {
      return std::make_tuple(!t.is_self(), std::string_view(t.network), t.nodes.value_or(0),
                             t.cores_per_node.value_or(0), std::string_view(t.placement), t.threads.value_or(0));
    };
    return key(*a) < key(*b);
  });
  return out;
}

// A line per target. Columns are as wide as what stands in them, network and placement share what is left.
std::string target_table(const Step& step, const PageStyle& style) {
  const std::vector<const TargetPrediction*> targets = sorted_targets(step);
  const auto varies = [&](auto member) {
    return std::any_of(targets.begin(), targets.end(),
                       [&](const TargetPrediction* t) { return t->*member != targets.front()->*member; });
  };
  std::vector<Column> columns;
  const auto add = [&](std::string_view name, std::size_t width) {
    auto column = parse_format(name);
    if (!column) return;
    column->front().width = std::max(width, name.size());
    columns.push_back(column->front());
  };
  const auto widest = [&](const auto& text_of) {
    std::size_t width = 0;
    for (const TargetPrediction* t : targets) width = std::max(width, display_width(text_of(*t)));
    return width;
  };

  constexpr std::size_t kFixed = 2 + 5 + 7 + 12 + 2 * 11 + 9;  // margin, Nodes, Kind, Predicted, Low, High, Speedup
  std::size_t rest = style.width > kFixed + 20 ? style.width - kFixed - 2 : 20;
  const bool cores = varies(&TargetPrediction::cores_per_node);
  const bool threads = varies(&TargetPrediction::threads);
  const bool speed = varies(&TargetPrediction::speed);
  const bool any_oversubscribed = std::any_of(targets.begin(), targets.end(),
                                              [&](const TargetPrediction* t) { return is_oversubscribed(step, *t); });
  if (any_oversubscribed) rest -= std::min<std::size_t>(rest, 2);  // the mark
  if (cores) rest -= std::min<std::size_t>(rest, 6);
  if (threads) rest -= std::min<std::size_t>(rest, 8);
  if (speed) rest -= std::min<std::size_t>(rest, 6);
  // Where it gets narrow: it is Measured by Predicted, and what kind a target is stands in its other columns.
  constexpr std::size_t kLeastRest = 7 + 1 + 9;  // Network, Placement
  const bool speedup_fits = rest >= kLeastRest;
  if (!speedup_fits) rest += 9;
  const bool kind_fits = rest >= kLeastRest;
  if (!kind_fits) rest += 7;
  const std::size_t placement_width =
      std::clamp<std::size_t>(widest([](const TargetPrediction& t) { return t.placement; }), 9, rest / 2);
  const std::size_t network_width = std::clamp<std::size_t>(widest([](const TargetPrediction& t) { return t.network; }),
                                                            7, std::max<std::size_t>(7, rest - placement_width));

  add("Nodes", 5);
  if (cores) add("Cores", 5);
  if (threads) add("Threads", 7);
  if (speed) add("Speed", 5);
  add("Network", network_width);
  add("Placement", placement_width);
  if (kind_fits) add("Kind", 6);
  add("Predicted", 11);
  add("Low", 10);
  add("High", 10);
  if (speedup_fits) add("Speedup", 8);

  const Advice advice = advise(step);
  std::string out;
  const auto line = [&](const auto& cell_of, std::string_view color, std::string_view mark = {}) {
    std::string text = "  ";
    for (const Column& column : columns) {
      if (text.size() > 2) text += ' ';
      text += fit(cell_of(column), column.width, column.left);
    }
    text += mark;
    text.erase(text.find_last_not_of(' ') + 1);
    out += (color.empty() ? text : colored(text, color, style)) + '\n';
  };
  if (style.header) {
    line([](const Column& c) { return std::string(c.field->name); }, {});
    line([](const Column& c) { return std::string(c.width, '-'); }, {});
  }
  for (const TargetPrediction* target : targets) {
    line(
        [&](const Column& c) {
          std::string cell = c.field->value(step, target);
          return cell.empty() ? std::string("-") : cell;
        },
        target == advice.here || target == advice.elsewhere ? kGreen : std::string_view(),
        is_oversubscribed(step, *target) ? " *" : "");
  }
  if (any_oversubscribed)
    out += wrap("* more ranks or threads than processors on a node: such predictions are the least exact ones.",
                style.width, 2);
  return out;
}

std::string facts(const Step& step, const PageStyle& style) {
  std::string out;
  const auto fact = [&](const std::string& text) { out += wrap(text, style.width, 2); };

  const TargetPrediction* self = step.self();
  if (const auto error = step.self_error_percent(); error && self != nullptr && self->predicted_s) {
    const auto reference = reference_s(step, *self);
    fact(fmt::format("Self-prediction error {:+.1f} %: the configuration that ran, predicted {}{}.", *error,
                     format_duration(*self->predicted_s),
                     reference ? ", measured " + format_duration(*reference) : std::string()));
  }
  if (step.cost && step.cost->low_percent && step.cost->high_percent) {
    const Cost& cost = *step.cost;
    std::string text = fmt::format("Capture overhead {:.2f} to {:.2f} % of the program's processor time",
                                   *cost.low_percent, *cost.high_percent);
    if (cost.limit_percent) text += fmt::format(", limit {:g} %", *cost.limit_percent);
    if (cost.predicted_percent) text += fmt::format(", predicted {:.2f} %", *cost.predicted_percent);
    if (cost.over_limit()) text += ": above the limit";
    if (cost.over_limit() && cost.program_cpu_s &&
        *cost.program_cpu_s < kLimitHoldsFromS * static_cast<double>(step.ranks.value_or(1)))
      text += fmt::format(", which holds from {:g} s of each rank's processor time on", kLimitHoldsFromS);
    fact(text + '.');
    if (cost.once_s() && cost.total_high_percent) {
      fact(fmt::format(
          "Starting the capture took {} once (programs {}, relays {}), which has no limit: {:.2f} % in all.",
          format_duration(*cost.once_s(), 3), format_duration(*cost.once_capture_s, 3),
          format_duration(*cost.once_relay_s, 3), *cost.total_high_percent));
    }
    if (step.lbfd_cpu_s && cost.program_cpu_s && *cost.program_cpu_s > 0) {
      fact(fmt::format(
          "lbfd's replays took {} of processor time, {:.2f} % of the program's, under a limit of their own.",
          format_duration(*step.lbfd_cpu_s, 3), 100 * *step.lbfd_cpu_s / *cost.program_cpu_s));
    }
    if (cost.seen_in_part()) {
      fact(fmt::format("Seen {:.1f} % of the run ({} recorded, {} counted){}.", 100 * *cost.seen_share,
                       count_of(cost.recorded_calls.value_or(0), "call"),
                       count_of(cost.counted_calls.value_or(0), "call"),
                       step.seen().is_too_little() ? "" : ": predictions are extrapolated from it"));
    }
  } else if (const auto overhead = step.overhead_percent()) {
    fact(fmt::format("Capture overhead {:.2f} % of the ranks' processor time (capture {}, relay {}){}.", *overhead,
                     format_duration(*step.capture_s, 3), format_duration(*step.running_relay_s(), 3),
                     step.events ? ", " + count_of(*step.events, "event") : ""));
  }
  if (const auto share = step.mpi_percent()) {
    const bool in_part = step.cost && step.cost->seen_in_part();
    std::string text = fmt::format("MPI {:.1f} % of the ranks' time{}", *share, in_part ? " that was seen" : "");
    const auto unmodelled = step.unmodelled_percent();
    const bool noted = std::any_of(step.notes.begin(), step.notes.end(), [](const std::string& note) {
      return note.find("MPI time unmodelled") != std::string::npos;
    });
    if (unmodelled && *step.unmodelled_s > 0 && !noted) {
      text += fmt::format("; {:.1f} % of MPI time unmodelled", *unmodelled);
    } else if (unmodelled && step.unmodelled_calls.empty()) {
      text += ", all of it modelled";
    }
    fact(text + ".");
  }
  if (!step.unmodelled_calls.empty()) {
    constexpr std::size_t kMostCalls = 8;
    std::vector<CallTotal> calls = step.unmodelled_calls;
    std::stable_sort(calls.begin(), calls.end(),
                     [](const CallTotal& a, const CallTotal& b) { return a.total_s > b.total_s; });
    std::string text = "Unmodelled:";
    for (std::size_t i = 0; i < std::min(calls.size(), kMostCalls); ++i) {
      text += fmt::format("{} {} ({}, {})", i > 0 ? "," : "", calls[i].function, count_of(calls[i].calls, "call"),
                          format_duration(calls[i].total_s, 3));
    }
    if (calls.size() > kMostCalls) text += fmt::format(", and {} others", calls.size() - kMostCalls);
    fact(text + ".");
  }
  if (step.lost_events.value_or(0) > 0) {
    fact(fmt::format("{} lost: the program was faster than the capture.", count_of(*step.lost_events, "event")));
  }
  for (const std::string& note : step.notes) fact("Note: " + note);
  return out;
}

}  // namespace

std::string render_step(const Step& step, const PageStyle& style) {
  std::string out = head(step, style);
  for (const std::string& line : disturbances(step)) out += wrap(line, style.width, 2);
  out += partial_line(step, style);
  if (!step.predictions.empty()) out += '\n' + target_table(step, style);
  const std::string known = facts(step, style);
  if (!known.empty()) out += '\n' + known;
  return out + '\n' + closing_note(step, style.width);
}

Result<std::string> join_answers(const std::vector<std::string>& answers) {
  Json steps = Json::array();
  std::set<std::array<std::string, 5>> seen;
  for (const std::string& answer : answers) {
    Json document = json_of_answer(answer);
    if (!document.is_object() || !document.contains("steps") || !document["steps"].is_array()) {
      return invalid_input("lbfd answered something that is no list of steps; is that address lbfd's?");
    }
    for (Json& step : document["steps"]) {
      const auto part = [&](const char* key) {
        return step.is_object() && step.contains(key) ? step[key].dump(-1, ' ', false, Json::error_handler_t::replace)
                                                      : std::string();
      };
      // A step without numbers is no duplicate of another one; parse_steps names it.
      const bool numbered = !part("job").empty() && !part("step").empty();
      std::array key{part("cluster"), part("job"), part("step"), part("submit"), part("restart")};
      if (numbered && !seen.insert(std::move(key)).second) continue;
      steps.push_back(std::move(step));
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Json& a, const Json& b) {
    const auto number = [](const Json& step, const char* key) {
      if (!step.is_object()) return std::uint64_t{0};
      const auto found = step.find(key);
      return found != step.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : std::uint64_t{0};
    };
    // An array's tasks and a heterogeneous job's components together and in their own order, whatever job ids
    // they have.
    const auto key = [&](const Json& step) {
      const std::uint64_t array_job = number(step, "array_job");
      const std::uint64_t het_job = number(step, "het_job");
      const std::uint64_t job = number(step, "job");
      return std::make_tuple(array_job != 0 ? array_job : (het_job != 0 ? het_job : job), number(step, "array_task"),
                             number(step, "het_offset"), job, number(step, "step"), number(step, "submit"),
                             number(step, "restart"));
    };
    return key(a) < key(b);
  });
  Json joined = Json::object();
  joined["steps"] = std::move(steps);
  return joined.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string step_text(std::string_view joined, std::size_t number) {
  const Json document = json_of_answer(joined);
  if (!document.is_object() || !document.contains("steps") || !document["steps"].is_array() ||
      number >= document["steps"].size()) {
    return "{}";
  }
  return document["steps"][number].dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lbf::report
