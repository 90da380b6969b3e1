#include "report/other_programs.h"

#include <fmt/format.h>

#include "base/times.h"

namespace lbf::report {
namespace {

// Below it neither the host nor interrupts show beside the error of a prediction.
constexpr double kShownPercent = 2;

}  // namespace

Seconds lost_s(const Step& step) {
  return protocol::noticeable_loss_s(step.others_s.value_or(0) + step.limited_s.value_or(0),
                                     step.measured_s.value_or(0));
}

std::vector<std::string> disturbances(const Step& step) {
  std::vector<std::string> lines;
  const Seconds measured_s = step.measured_s.value_or(0);
  const auto of_measured = [&](Seconds part_s) {
    return format_duration(part_s) + " of " + format_duration(measured_s);
  };
  if (lost_s(step) > 0) {
    const Seconds others_s = step.others_s.value_or(0);
    const Seconds limited_s = step.limited_s.value_or(0);
    std::string line;
    if (others_s >= limited_s || protocol::noticeable_loss_s(others_s, measured_s) > 0)
      line = "Other programs had the processors for " + of_measured(others_s);
    if (protocol::noticeable_loss_s(limited_s, measured_s) > 0) {
      line += line.empty() ? "The job's" : "; the job's";
      line += " CPU limit was used up for " + of_measured(limited_s);
    }
    lines.push_back(line +
                    ". Only the configuration that ran is predicted with it; its error says little of the model.");
  }
  if (step.stolen_percent.value_or(0) >= kShownPercent) {
    lines.push_back(fmt::format("The host of the virtual machines took {:.1f} % of the processors' time (steal).",
                                *step.stolen_percent));
  }
  if (step.softirq_percent.value_or(0) >= kShownPercent) {
    lines.push_back(
        fmt::format("Interrupts (softirq) took {:.1f} % of the processors' time, which counts as the ranks' work.",
                    *step.softirq_percent));
  }
  return lines;
}

}  // namespace lbf::report
