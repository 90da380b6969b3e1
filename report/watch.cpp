#include "report/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/hostlist.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/terminal_colors.h"
#include "report/text.h"

namespace lbf::report {
namespace {

std::string scaled(double value) {
  for (const char* unit : {"", "k", "M", "G"}) {
    if (value < 1000) return fmt::format("{:.3g}{}{}", value, *unit == '\0' ? "" : " ", unit);
    value /= 1000;
  }
  return fmt::format("{:.3g} T", value);
}

std::string rate(std::uint64_t before, std::uint64_t now, double seconds, std::string_view unit) {
  if (!(seconds > 0)) return {};
  const double grown = now > before ? static_cast<double>(now - before) : 0;
  return fmt::format("{}{}/s", scaled(grown / seconds), unit);
}

double seconds_between(const WatchSample* before, const WatchSample& now) {
  return before == nullptr ? 0 : std::chrono::duration<double>(now.at - before->at).count();
}

// How much of what was measured the replay has reached.
std::optional<double> replayed_percent(const Step& step) {
  const TargetPrediction* self = step.self();
  if (self == nullptr || !self->measured_at_progress_s || !step.measured_s || !(*step.measured_s > 0))
    return std::nullopt;
  return std::min(100.0, 100 * *self->measured_at_progress_s / *step.measured_s);
}

struct Shown {
  const TargetPrediction* target;
  advisor::Saying saying;
};

// What is only a bound, or not told, comes last.
std::vector<Shown> by_time(const Step& step) {
  std::vector<Shown> out;
  for (const TargetPrediction& target : step.predictions) {
    if (auto saying = saying_of(step, target)) out.push_back({&target, std::move(*saying)});
  }
  std::stable_sort(out.begin(), out.end(), [](const Shown& a, const Shown& b) {
    return std::make_pair(!a.saying.has_interval(), *a.target->predicted_s) <
           std::make_pair(!b.saying.has_interval(), *b.target->predicted_s);
  });
  return out;
}

}  // namespace

WatchSample sample_of(const Step& step, std::chrono::steady_clock::time_point at) {
  return {at, step.events.value_or(0), step.messages.value_or(0), step.stored_bytes.value_or(0)};
}

std::string render_watch(const Step& step, const WatchSample* before, const WatchSample& now, const WatchStyle& style) {
  std::string title = "Job " + job_id(step);
  if (const std::string program = command_line(step); !program.empty()) title += "  " + program;
  title = shorten(title, style.width);
  if (style.color) title = std::string(kBold) + title + std::string(kPlain);
  std::string out = title + '\n';
  const auto line = [&](const std::string& text) { out += shorten("  " + text, style.width) + '\n'; };
  line(fmt::format("{}, {} ranks on {}, network {}", name_of(step.state), step.ranks.value_or(0),
                   step.nodes.empty() ? std::string("unknown nodes") : hostlist(step.nodes),
                   step.network.empty() ? "unknown" : step.network));
  std::string progress = step.measured_s ? "measured " + format_duration(*step.measured_s) : "measured: not yet";
  if (const auto percent = replayed_percent(step)) progress += fmt::format(", {:.0f} % of it replayed", *percent);
  line(progress);
  const double seconds = seconds_between(before, now);
  std::string events =
      scaled(static_cast<double>(now.events)) + " events, " + scaled(static_cast<double>(now.messages)) + " messages";
  if (seconds > 0) {
    events += ", " + rate(before->events, now.events, seconds, " events") + ", " +
              rate(before->bytes_stored, now.bytes_stored, seconds, "B") + " stored";
  }
  line(events);
  std::string coverage = "MPI time modelled: ";
  const auto unmodelled = step.unmodelled_percent();
  coverage += unmodelled ? fmt::format("{:.1f} %", 100 - *unmodelled) : "unknown";
  if (const auto lost = step.lost_events.value_or(0); lost > 0) coverage += fmt::format(", {} events lost", lost);
  if (const auto overhead = step.overhead_percent()) coverage += fmt::format(", overhead {:.2f} %", *overhead);
  if (const auto error = step.self_error_percent()) coverage += fmt::format(", self-prediction {:+.1f} %", *error);
  line(coverage);

  const std::vector<Shown> targets = by_time(step);
  const std::string note = closing_note(step, style.width);
  const auto note_lines = static_cast<std::size_t>(std::count(note.begin(), note.end(), '\n'));
  const std::size_t used = 5 + 4 + note_lines + 1;
  const std::size_t room = style.height > used + 3 ? style.height - used : 3;
  if (!targets.empty()) {
    out += '\n';
    const std::size_t name_width = style.width > 68 ? style.width - 42 : 26;
    out += "  " + fit("Target", name_width, true) + ' ' + fit("Predicted", 20, false) + ' ' + fit("Speedup", 9, false) +
           '\n';
    for (std::size_t i = 0; i < std::min(room, targets.size()); ++i) {
      const auto& [target, saying] = targets[i];
      const auto ratio = saying.is_number() ? speedup(step, *target) : std::nullopt;
      out += "  " + fit(describe(*target, true) + (target->is_self() ? " (runs now)" : ""), name_width, true) + ' ' +
             fit(saying.in_words(), 20, false) + ' ' + fit(ratio ? fmt::format("{:.2f}x", *ratio) : "-", 9, false) +
             '\n';
    }
    if (targets.size() > room) line(fmt::format("and {} more", targets.size() - room));
  }
  return out + '\n' + note;
}

std::string watch_line(const Step& step, const WatchSample* before, const WatchSample& now) {
  std::string out = fmt::format("{} {}", job_id(step), name_of(step.state));
  if (step.measured_s) out += ", measured " + format_duration(*step.measured_s);
  if (const auto percent = replayed_percent(step)) out += fmt::format(", {:.0f} % replayed", *percent);
  out += ", " + scaled(static_cast<double>(now.events)) + " events";
  if (const double seconds = seconds_between(before, now); seconds > 0) {
    out += " (" + rate(before->events, now.events, seconds, "") + ")";
  }
  const std::vector<Shown> targets = by_time(step);
  if (!targets.empty() && targets.front().saying.has_interval())
    out += ", fastest " + describe(*targets.front().target, true) + ' ' + targets.front().saying.in_words();
  return printable(out);
}

}  // namespace lbf::report
