// Scaling: the run time of a program over its number of ranks, from runs at a few of them (docs/adr/0016-scaling.md).
//
// Place in the event's way: composition of each run's longest path (db) -> *Scaling* -> lbf-report --scaling. Times are
// not extrapolated: each part of the path follows the simplest law that its runs support, and the time is their sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::advisor {

// What the longest path through a run is made of.
enum class Part : std::uint8_t {
  kWork,       // of a rank, the mean
  kImbalance,  // what the path works more
  kOverhead,   // protocol processing of messages
  kCopies,     // and reductions, in collectives
  kLatencyInside,
  kLatencyBetween,
  kBytesInside,
  kBytesBetween,
  kKept,  // first contacts, blocked time
};
inline constexpr std::size_t kParts = 9;
using Parts = std::array<Seconds, kParts>;
// "latency between nodes"
std::string_view name_of(Part part);
// "latency_between_s": in JSON.
std::string_view key_of(Part part);

// What stays the same when the ranks change: the problem (strong scaling), or the problem of each rank (weak).
enum class Problem : std::uint8_t { kSame, kSameForEachRank };

struct ScalingRun {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  Parts parts{};
  double error_percent = 0;  // how far the run's own prediction may be off

  Seconds time_s() const;
};

// A term of a performance model normal form: p^exponent, times log2(p) with LOG.
struct Shape {
  double exponent = 0;
  bool log = false;

  double at(double ranks) const;
  friend bool operator==(const Shape&, const Shape&) = default;
};
inline constexpr Shape kOne{0, false};
inline constexpr Shape kInverse{-1, false};
inline constexpr Shape kLog{0, true};
inline constexpr Shape kLinear{1, false};

// constant + factor * shape(p), neither below 0.
struct Law {
  Seconds constant = 0;
  Seconds factor = 0;
  Shape shape = kOne;

  Seconds at(double ranks) const { return constant + factor * shape.at(ranks); }
  // "2.00 s + 3.00 s / p"
  std::string in_words() const;
};

// One part of one run.
struct Sample {
  double ranks = 1;
  Seconds value_s = 0;
  Seconds of_s = 0;  // the run's time. REQUIRES: above 0
};

// How a part depends on the rank count.
struct FittedLaw {
  Law law;                  // the simplest one that the samples support
  double left_out = 0;      // how far it is off a count that it was not fitted to, in shares of the run time
  std::vector<Law> others;  // that fit nearly as well
  bool is_assumed = false;  // the samples have one rank count: it is the law of the part's kind
};
// KIND: the shape that the part has if nothing else shows. With three rank counts and more the law is the one that
// predicts each count best from the others; with two, that of the kind, alone or beside a constant, else one that
// grows. A more complex law must be off by half as much. REQUIRES: a sample.
FittedLaw fit_law(std::span<const Sample> samples, Shape kind);

// Of another network and other processors, relative to those that ran: 2 takes twice as long.
struct CostFactors {
  double latency = 1;
  double gap = 1;
  double overhead = 1;
  double speed = 1;
};

struct ScalingForecast {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  Seconds time_s = 0;  // where each rank has a processor
  Seconds low_s = 0;
  Seconds high_s = 0;
  Parts parts{};
  Part widest = Part::kWork;  // which widens the interval most

  double half_width_percent() const;
  double node_hours() const { return nodes * time_s / 3600; }
};

class Scaling {
 public:
  // Errors (kInvalidInput), each with the run that would settle it: the runs have one rank count, or counts that are
  // too close to tell 1/p from a constant, or no common problem. REQUIRES: runs with a time above 0.
  static Result<Scaling> make(std::vector<ScalingRun> runs, Problem problem);

  // Errors (kInvalidInput), likewise: no run had several nodes, or none had one.
  Result<ScalingForecast> at(std::uint32_t ranks, std::uint32_t nodes, const CostFactors& costs = {}) const;
  // Of T(first) p(first), or T(first) where each rank has its problem, what T(p) makes use of; 1 at the first run's
  // count.
  double efficiency(const ScalingForecast& there) const;
  // What keeps a rank count from perfect scaling; nothing: less than 1 % of the time. Work: what does not shrink of it.
  std::optional<Part> bound_by(const ScalingForecast& there) const;
  // nullptr: no run tells. SEVERAL_NODES: of runs on several nodes.
  const FittedLaw* law(Part part, bool several_nodes) const;
  const std::vector<ScalingRun>& runs() const { return runs_; }  // by ranks

 private:
  Scaling(std::vector<ScalingRun> runs, Problem problem);
  std::vector<Sample> samples_of(Part part, bool several_nodes) const;

  std::vector<ScalingRun> runs_;
  Problem problem_;
  double error_percent_ = 0;
  std::array<std::map<Part, FittedLaw>, 2> laws_;  // on one node, on several
  Seconds first_s_ = 0;
};

// Where efficiency over run time is largest, so p T^2 smallest (Eager, Zahorjan, Lazowska, "Speedup versus efficiency
// in parallel systems", IEEE Transactions on Computers 38(3), 1989). Nothing: at the last one, it may lie beyond. BY
// ranks.
std::optional<std::size_t> knee_of(std::span<const ScalingForecast> by_ranks);

// Of one run: Amdahl's bound with the serial part that was seen. No law: what was seen beside work may grow.
struct AmdahlBound {
  std::uint32_t ranks = 1;
  Seconds shrinks_s = 0;  // work of a rank
  Seconds stays_s = 0;    // all else
  Seconds at(double other_ranks) const { return stays_s + shrinks_s * ranks / other_ranks; }
};
AmdahlBound amdahl_bound(const ScalingRun& run);

}  // namespace lbf::advisor
