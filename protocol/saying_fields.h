// How a prediction is said (advisor/trust): keys beside those of a PREDICTION in lbfd's documents, and in the JSON of
// lbf-whatif and lbf-advise. They are worked out when a document is written, not stored.
#pragma once

#include <optional>
#include <string>

#include "base/units.h"
#include "protocol/field.h"

namespace lbf::protocol {

struct SayingFields {
  std::string trust;
  std::optional<Seconds> interval_low_s;
  std::optional<Seconds> interval_high_s;
  std::string why_no_number;
  std::string remedy;
};

inline constexpr auto kSayingTable = [] {
  using S = SayingFields;
  // clang-format off
  return std::tuple{
      Field{&S::trust, "trust", kNotStored, Unit::kNone, kNoColumn, "`number`, `range`, `at_best` (a bound: no network is described between the nodes) or `cannot_tell`; \"\" if nothing is predicted"},
      Field{&S::interval_low_s, "interval_low_s", kNotStored, Unit::kSeconds, kNoColumn, "lower end of the interval, or the bound; null if it cannot be told"},
      Field{&S::interval_high_s, "interval_high_s", kNotStored, Unit::kSeconds, kNoColumn, "upper end of the interval; null if it is a bound or cannot be told"},
      Field{&S::why_no_number, "why_no_number", kNotStored, Unit::kNone, kNoColumn, "what is not known; \"\" for a number"},
      Field{&S::remedy, "remedy", kNotStored, Unit::kNone, kNoColumn, "the one thing that helps; \"\" for a number, or if `why_no_number` says it"},
  };
  // clang-format on
}();

}  // namespace lbf::protocol
