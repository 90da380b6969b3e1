// Limits of the cost system by name: what each is counted in, which values it takes, and that a user's is
// never above his site's (docs/cost-system.md, "Limits and what happens at them").
//
// Place in the cost system: plugstack.conf, lbfd.toml, `--lbf-limits`, `lbf-run --limits` -> *limits* ->
// relay, lbfd. Pure functions; slurmstepd loads them, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::cost {

enum class Limit : std::uint8_t {
  kOverhead,     // capture and relay, percent of the program's processor time on a node
  kRelayCpu,     // the relay alone, percent of the same
  kRelayMemory,  // batches that wait in a relay's memory, MiB
  kNetwork,      // from one relay to lbfd, 1000 bytes per second
  kSpool,        // of one user on one node, MiB
  kStepCpu,      // lbfd's: replays of a running step, percent of its ranks' time
  kStepTrace,    // lbfd's: stored batches of one step, MiB
};
inline constexpr std::size_t kLimits = 7;
inline constexpr Limit kLimitsOfLbfd[] = {Limit::kStepCpu, Limit::kStepTrace};

struct LimitRule {
  std::string_view name;  // as in plugstack.conf and lbfd.toml
  std::string_view unit;  // behind a value
  std::string_view give;  // what an error asks for
  double least = 0;
  double most = 0;
  bool is_whole = false;
  bool is_of_lbfd = false;  // the others are of the nodes
};
const LimitRule& rule_of(Limit limit);
std::optional<Limit> limit_named(std::string_view name);
// "overhead_limit, relay_cpu_limit, ...".
std::string known_limits(bool with_those_of_lbfd);

// TEXT as a value of LIMIT; percentages may end in "%". Errors (kInvalidInput): what is wrong, and what to
// give.
Result<double> read_limit(Limit limit, std::string_view text);
// "0.5", "5000", six decimals at most; with the unit: "0.5 %", "5000 kB/s".
std::string shown_number(double value);
std::string shown_limit(Limit limit, double value);

// A value for each limit, in its unit. Nothing: a site has no such limit, a user did not ask for one.
class Limits {
 public:
  std::optional<double>& operator[](Limit limit) { return values_[static_cast<std::size_t>(limit)]; }
  const std::optional<double>& operator[](Limit limit) const { return values_[static_cast<std::size_t>(limit)]; }

 private:
  std::array<std::optional<double>, kLimits> values_;
};

// "NAME=VALUE[,NAME=VALUE...]". Errors (kInvalidInput) begin with the item that is wrong, printable: no
// NAME=VALUE, an unknown name (with those that are known), a name twice, and those of read_limit().
Result<Limits> read_limits(std::string_view list);

// LIMITS becomes the lower of itself and ASKED, limit by limit. Which were asked for above what LIMITS has:
// these keep it.
std::vector<Limit> lower(Limits& limits, const Limits& asked);

// How lbf-relay is told its limits, as far as there are any (docs/relay.md). The overhead limit is in the
// step's description.
std::vector<std::string> relay_arguments(const Limits& limits);

}  // namespace lbf::cost
