// The site summary of `lbf-report --savings`: node-hours that runs would have saved on the configurations that their
// own reports advise (report/advice.h), by program, account and partition.
//
// Only from runs whose predictions are trusted; what the others would have saved is not known, and they are counted. An
// advised configuration has no more nodes than ran and is surely faster, so it always saves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/fields.h"
#include "report/selection.h"
#include "report/step.h"

namespace lbf::report {

// Why it is not known what a run would have saved, or kTrusted. The first that holds counts. Those of a complete run
// with a self-prediction are advisor::Doubt.
enum class Trusted : std::uint8_t {
  kTrusted,
  kRunning,
  kPartial,
  kSeenTooLittle,
  kNoSelfPrediction,   // or no measured time
  kLostToOthers,       // lost_s(): the measured time is not the program's own
  kSelfErrorTooLarge,  // above advisor::kDoubtfulSelfErrorPercent
};
inline constexpr std::size_t kTrustedKinds = 7;
Trusted trusted(const Step& step);
// "partial"
std::string_view words_of(Trusted why);

// Of the runs of one group. In node-hours; the interval is the sum of the runs' own: as if all predictions were off to
// the same side.
struct Saved {
  std::size_t steps = 0;
  std::size_t advised = 0;  // of them: another configuration than ran is advised
  double used = 0;          // of all steps, as measured
  double saved = 0;
  double low = 0;
  double high = 0;
  // Runs beside them whose predictions are not trusted.
  std::size_t unknown_steps = 0;
  double unknown_used = 0;  // as far as it is known

  void add(const Saved& other);
};

// Of a trusted step. The gain counts from the smaller of measured and self-predicted time (advise()).
Saved saved_by(const Step& step);

class Savings {
 public:
  static constexpr std::array<std::string_view, 3> kGroups = {"program", "account", "partition"};

  void add(const Step& step);

  const Saved& all() const { return all_; }
  struct Line {
    std::string key;  // "-": not known
    Saved saved;
  };
  // Those that save most first. GROUP: of kGroups.
  std::vector<Line> lines(std::size_t group) const;
  // Of all groups, those that are not known for one reason.
  const Saved& unknown(Trusted why) const { return unknown_[static_cast<std::size_t>(why)]; }
  // Of the trusted steps, those of which lbfd has yet to replay targets: more may be advised later.
  std::size_t with_deferred() const { return with_deferred_; }

 private:
  Saved all_;
  std::array<std::map<std::string, Saved>, kGroups.size()> groups_;
  std::array<Saved, kTrustedKinds> unknown_{};
  std::size_t with_deferred_ = 0;
};

// SELECTION: of which time.
// "Of 1234 node-hours with trusted predictions, 123.4 (10.0 %) would have been saved ...", without a line end.
std::string savings_sentence(const Savings& savings, const Selection& selection);
// "Not known: 12 runs, ...": what is in no sum, and why; without a line end. Empty: nothing is.
std::string unknown_sentence(const Savings& savings);

// A line for all and for each program, account and partition: Group, Key, Steps, Advised, NodeHours, Saved, Low, High,
// NotKnown (node-hours).
std::string render_savings(const Savings& savings, const TableStyle& style);
// {"savings":{...}}, as lbf-report(1) says.
std::string savings_json(const Savings& savings, const Selection& selection);
// Bars. WIDTH in columns.
enum class PlotCharacters : std::uint8_t { kAscii, kUnicode };
std::string plot_savings(const Savings& savings, const Selection& selection, std::size_t width,
                         PlotCharacters characters);
// A page that needs nothing else. VERSION: of lbf-report.
std::string savings_html(const Savings& savings, const Selection& selection, std::string_view version);

}  // namespace lbf::report
