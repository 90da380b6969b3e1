// Sensitivity: how the run time depends on one parameter of a target, exactly, and where the critical path changes.
//
// Place in the event's way: replays of scaled targets -> *sensitivity* -> commands. The time is the longest path
// through a graph that a factor does not change (docs/engine.md, "Sensitivity"). So it is a convex, piecewise linear
// function of the factor, and one replay tells its value and its slope there (Composed). The lines at both ends of an
// interval meet in it: a replay there tells whether that is a breakpoint or a third line lies above (parametric
// longest path). A breakpoint takes about two replays, wherever it is, and 16 of them are the targets of one pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "predictor/engine/metric/predictor.h"

namespace lbf::engine {

// What is scaled. The factor multiplies times: speed 2 is processors that take twice as long.
enum class Parameter : std::uint8_t { kLatency, kGap, kOverhead, kSpeed };
inline constexpr std::array kParameters{Parameter::kLatency, Parameter::kGap, Parameter::kOverhead, Parameter::kSpeed};
// "latency", "gap", "overhead", "speed".
std::string_view parameter_name(Parameter parameter);
std::optional<Parameter> parameter_named(std::string_view name);

// TARGET with the parameter times FACTOR. REQUIRES: a finite factor above 0.
Target scaled(const Target& target, Parameter parameter, double factor);
// The part of a composition that the parameter scales.
Seconds scaled_s(const Composed& composition, Parameter parameter);

// A tangent of the run time over the factor.
struct Tangent {
  Seconds time_s = 0;   // at the factor that was asked for
  Seconds slope_s = 0;  // more for each 1 of the factor, on one of the critical paths there
};
// Of a prediction on a target that was scaled by FACTOR. REQUIRES: it has a composition.
Tangent tangent_of(const Prediction& prediction, Parameter parameter, double factor);

struct FactorRange {
  double low = 0;
  double high = 0;
};

struct SensitivityCurve {
  struct Point {
    double factor = 0;
    Seconds time_s = 0;
  };
  // The ends of the range, and in between the breakpoints; ascending. Lines connect them.
  std::vector<Point> points;
  // There the time is no convex function of the factor: what happens depends on the order of events (first contacts,
  // sleeps between looks). The lines in them connect single replays.
  std::vector<FactorRange> not_convex;
  // There were more breakpoints than were looked for: the lines lie above the time by so much at most. 0: nowhere.
  Seconds most_above_s = 0;

  // REQUIRES: in the range.
  Seconds time_s(double factor) const;
  // The next breakpoint above the factor; nothing: there is none in the range.
  std::optional<double> next_breakpoint(double factor) const;
  // The least factor from FROM on at which the run takes TIME_S or more; nothing: it does nowhere in the range.
  std::optional<double> reaches(Seconds time_s, double from) const;
};

// Looks for one curve step by step, so that several can share the passes.
class CurveSearch {
 public:
  // REQUIRES: 0 < low < high. MOST_PROBES bounds the replays, which are about twice the breakpoints.
  explicit CurveSearch(FactorRange range, std::size_t most_probes = 400);
  // Factors whose tangents it needs next; empty: it is done.
  const std::vector<double>& wanted() const { return wanted_; }
  // TANGENTS: of all that is wanted, in this order.
  void take(std::span<const Tangent> tangents);
  // REQUIRES: it is done.
  SensitivityCurve curve() const;

 private:
  struct Probe {
    double factor = 0;
    Tangent tangent;
    Seconds at(double other) const { return tangent.time_s + tangent.slope_s * (other - factor); }
  };
  void look_between(const Probe& left, const Probe& right);

  std::size_t probes_left_;
  std::vector<double> wanted_;
  std::vector<std::pair<Probe, Probe>> around_;  // each of wanted_; empty: the first round
  std::vector<Probe> probes_;
  std::vector<FactorRange> not_convex_;
  Seconds most_above_s_ = 0;
};

inline constexpr std::size_t kProbesPerPass = 16;
struct ProbeRequest {
  std::size_t search = 0;
  double factor = 0;
};
// The tangents of up to kProbesPerPass requests.
using ReplayProbes = std::function<Result<std::vector<Tangent>>(std::span<const ProbeRequest>)>;
// Errors: those of REPLAY.
Result<std::vector<SensitivityCurve>> find_curves(std::vector<CurveSearch> searches, const ReplayProbes& replay);

}  // namespace lbf::engine
