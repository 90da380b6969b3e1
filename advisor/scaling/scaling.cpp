// Scaling, see scaling.h.
#include "advisor/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/times.h"

namespace lbf::advisor {
namespace {

// Counts that are closer than this do not tell 1/p from a constant.
constexpr double kLeastRatio = 1.5;
// One problem has about as much work at any rank count; caches, and work that all ranks do, change it by less.
constexpr double kMostWorkRatio = 2;
// Of its own value a part differs by so much between runs that are alike.
constexpr double kNoise = 0.02;
// A more complex law must be off by so much less.
constexpr double kMuchBetter = 0.5;
// What keeps less than this from perfect scaling is nothing.
constexpr double kLeastBound = 0.01;

struct PartTraits {
  std::string_view name;
  std::string_view key;
  Shape same;           // its kind where the problem is the same
  Shape for_each_rank;  // ... where that of each rank is
  enum class Known { kAlways, kWithOthers, kByNodes } known;
};
using Known = PartTraits::Known;

constexpr std::array<PartTraits, kParts> kTraits{{
    {"work", "work_s", kInverse, kOne, Known::kAlways},
    {"imbalance", "imbalance_s", kInverse, kOne, Known::kWithOthers},
    {"overhead of messages", "overhead_s", kLog, kLog, Known::kByNodes},
    {"copies in collectives", "copies_s", kOne, kLog, Known::kByNodes},
    {"latency inside nodes", "latency_inside_s", kLog, kLog, Known::kByNodes},
    {"latency between nodes", "latency_between_s", kLog, kLog, Known::kByNodes},
    {"bytes inside nodes", "bytes_inside_s", kOne, kLog, Known::kByNodes},
    {"bytes between nodes", "bytes_between_s", kOne, kLog, Known::kByNodes},
    {"blocked time", "kept_s", kOne, kOne, Known::kAlways},
}};

constexpr std::array kExponents{-1.0, -2.0 / 3, -0.5, -1.0 / 3, 0.0, 1.0 / 3, 0.5, 2.0 / 3, 1.0};

std::size_t index_of(Part part) {
  return static_cast<std::size_t>(part);
}

const PartTraits& traits(Part part) {
  return kTraits[index_of(part)];
}

template <typename Use>
void for_each_part(const Use& use) {
  for (std::size_t i = 0; i < kParts; ++i) use(static_cast<Part>(i));
}

double factor_of(Part part, const CostFactors& costs) {
  switch (part) {
    case Part::kWork:
    case Part::kImbalance:
    case Part::kCopies:
      return costs.speed;
    case Part::kOverhead:
      return costs.speed * costs.overhead;
    case Part::kLatencyInside:
    case Part::kLatencyBetween:
      return costs.latency;
    case Part::kBytesInside:
    case Part::kBytesBetween:
      return costs.gap;
    case Part::kKept:
      return 1;
  }
  return 1;
}

// A form of a law, before it is fitted.
struct Form {
  bool has_constant = false;
  Shape shape = kOne;  // without a constant it may be one
  int complexity = 0;
};

// Least squares of what is off in shares of the runs' times. Nothing: a term would be below 0, or cannot be told.
std::optional<Law> fit(const Form& form, std::span<const Sample> samples) {
  double ones = 0;
  double shapes = 0;
  double both = 0;
  double ones_y = 0;
  double shapes_y = 0;
  for (const Sample& sample : samples) {
    const double weight = 1 / (sample.of_s * sample.of_s);
    const double x = form.shape.at(sample.ranks);
    ones += weight;
    shapes += weight * x * x;
    both += weight * x;
    ones_y += weight * sample.value_s;
    shapes_y += weight * x * sample.value_s;
  }
  if (!form.has_constant || form.shape == kOne)
    return shapes > 0 ? std::optional(Law{0, shapes_y / shapes, form.shape}) : std::nullopt;
  const double determinant = ones * shapes - both * both;
  constexpr double kSingular = 1e-9;
  if (!(determinant > kSingular * ones * shapes)) return std::nullopt;
  const Law law{(shapes * ones_y - both * shapes_y) / determinant, (ones * shapes_y - both * ones_y) / determinant,
                form.shape};
  // Below 0 by rounding is 0: the same law without that term is fitted, too.
  return law.constant >= 0 && law.factor >= 0 ? std::optional(law) : std::nullopt;
}

double off(const Law& law, std::span<const Sample> samples) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double share = (law.at(sample.ranks) - sample.value_s) / sample.of_s;
    sum += share * share;
  }
  return sum;
}

// How far a form is off: of each rank count, fitted to the others; with two counts, of what it is fitted to.
std::optional<double> error_of(const Form& form, std::span<const Sample> samples, const std::set<double>& counts) {
  double sum = 0;
  if (counts.size() < 3) {
    const auto law = fit(form, samples);
    if (!law) return std::nullopt;
    sum = off(*law, samples);
  } else {
    for (const double count : counts) {
      std::vector<Sample> others;
      std::vector<Sample> left_out;
      for (const Sample& sample : samples) (sample.ranks == count ? left_out : others).push_back(sample);
      const auto law = fit(form, others);
      if (!law) return std::nullopt;
      sum += off(*law, left_out);
    }
  }
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

// From simple to complex; of two that are as good the first one counts.
std::vector<Form> forms(Shape kind, std::size_t counts) {
  std::vector<Form> out{{false, kind, 0}, {false, kOne, 0}};
  if (counts == 1) {
    out.push_back({false, kLinear, 0});
    return out;
  }
  out.push_back({true, kind, 1});
  if (counts == 2) {
    out.push_back({true, kLog, 2});
    out.push_back({true, kLinear, 2});
    return out;
  }
  for (const bool has_constant : {false, true}) {
    for (const double exponent : kExponents) {
      for (const bool log : {false, true}) {
        if (const Shape shape{exponent, log}; shape != kOne && shape != kind)
          out.push_back({has_constant, shape, has_constant ? 2 : 1});
      }
    }
  }
  return out;
}

std::string on_nodes(std::uint32_t nodes) {
  return fmt::format("{} {}", nodes, nodes == 1 ? "node" : "nodes");
}

}  // namespace

std::string_view name_of(Part part) {
  return traits(part).name;
}

std::string_view key_of(Part part) {
  return traits(part).key;
}

Seconds ScalingRun::time_s() const {
  return std::accumulate(parts.begin(), parts.end(), Seconds{0});
}

double Shape::at(double ranks) const {
  return std::pow(ranks, exponent) * (log ? std::log2(ranks) : 1);
}

std::string Law::in_words() const {
  std::string out;
  if (constant > 0 || factor <= 0 || shape == kOne) out = format_duration(constant + (shape == kOne ? factor : 0), 3);
  if (factor <= 0 || shape == kOne) return out;
  if (!out.empty()) out += " + ";
  out += format_duration(factor, 3);
  if (shape.log) out += " log2(p)";
  if (shape.exponent == -1) return out + " / p";
  if (shape.exponent == 1) return out + " p";
  return shape.exponent == 0 ? out : out + fmt::format(" p^{:.2g}", shape.exponent);
}

FittedLaw fit_law(std::span<const Sample> samples, Shape kind) {
  std::set<double> counts;
  double square_share = 0;
  for (const Sample& sample : samples) {
    counts.insert(sample.ranks);
    square_share += sample.value_s / sample.of_s * sample.value_s / sample.of_s;
  }
  const double noise = kNoise * std::sqrt(square_share / static_cast<double>(samples.size()));
  struct Tried {
    Law law;
    double error;
  };
  std::vector<Tried> tried;
  std::size_t best = 0;
  int complexity = 0;  // of the best
  for (const Form& form : forms(kind, counts.size())) {
    const auto error = error_of(form, samples, counts);
    const auto law = fit(form, samples);
    if (!error || !law) continue;
    tried.push_back({*law, *error});
    const double best_error = tried[best].error;
    const bool is_better =
        form.complexity == complexity ? *error < best_error : best_error > noise && *error < kMuchBetter * best_error;
    if (!is_better) continue;
    best = tried.size() - 1;
    complexity = form.complexity;
  }
  FittedLaw out;
  out.is_assumed = counts.size() == 1;
  if (tried.empty()) return out;  // a kind that is 0 at the only count: not the runs that are taken
  out.law = tried[best].law;
  out.left_out = tried[best].error;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (i != best && (out.is_assumed || tried[i].error <= std::max(2 * out.left_out, noise)))
      out.others.push_back(tried[i].law);
  }
  return out;
}

double ScalingForecast::half_width_percent() const {
  return time_s > 0 ? 100 * std::max(high_s - time_s, time_s - low_s) / time_s : 0;
}

Scaling::Scaling(std::vector<ScalingRun> runs, Problem problem) : runs_(std::move(runs)), problem_(problem) {
  for (const ScalingRun& run : runs_) error_percent_ = std::max(error_percent_, run.error_percent);
  for_each_part([&](Part part) {
    const Shape kind = problem_ == Problem::kSame ? traits(part).same : traits(part).for_each_rank;
    for (const bool several : {false, true}) {
      const std::vector<Sample> samples = samples_of(part, several);
      if (!samples.empty()) laws_[several ? 1 : 0].emplace(part, fit_law(samples, kind));
    }
  });
}

std::vector<Sample> Scaling::samples_of(Part part, bool several_nodes) const {
  std::vector<Sample> out;
  for (const ScalingRun& run : runs_) {
    const Known known = traits(part).known;
    if (known != Known::kAlways && run.ranks == 1) continue;
    if (known == Known::kByNodes && (run.nodes > 1) != several_nodes) continue;
    out.push_back({static_cast<double>(run.ranks), run.parts[index_of(part)], run.time_s()});
  }
  return out;
}

Result<Scaling> Scaling::make(std::vector<ScalingRun> runs, Problem problem) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const ScalingRun& a, const ScalingRun& b) { return a.ranks < b.ranks; });
  const std::uint32_t least = runs.empty() ? 0 : runs.front().ranks;
  const std::uint32_t most = runs.empty() ? 0 : runs.back().ranks;
  if (least == most) {
    return invalid_input(
        fmt::format("one rank count ({}) makes no law: run it once with {} ranks", least, 2 * std::max(1U, most)));
  }
  if (most < kLeastRatio * least) {
    return invalid_input(fmt::format(
        "{} and {} ranks are too close to tell 1/p from a constant: run it once with {} ranks", least, most, 2 * most));
  }
  const auto work_of = [&](const ScalingRun& run) {
    return run.parts[index_of(Part::kWork)] * (problem == Problem::kSame ? run.ranks : 1);
  };
  const auto [little, much] = std::minmax_element(
      runs.begin(), runs.end(), [&](const ScalingRun& a, const ScalingRun& b) { return work_of(a) < work_of(b); });
  if (work_of(*much) > kMostWorkRatio * work_of(*little)) {
    return invalid_input(fmt::format("no common problem: {}{} ranks work {:.3g} s, {} ranks {:.3g} s; {}",
                                     problem == Problem::kSame ? "together " : "each of ", little->ranks,
                                     work_of(*little), much->ranks, work_of(*much),
                                     problem == Problem::kSame ? "--weak is for problems that grow with the ranks, "
                                                                 "and of work that every rank repeats there is no law"
                                                               : "without --weak the problem stays the same"));
  }
  Scaling out(std::move(runs), problem);
  out.first_s_ = out.at(out.runs_.front().ranks, out.runs_.front().nodes)->time_s;
  return out;
}

const FittedLaw* Scaling::law(Part part, bool several_nodes) const {
  const auto& laws = laws_[several_nodes ? 1 : 0];
  const auto found = laws.find(part);
  return found == laws.end() ? nullptr : &found->second;
}

Result<ScalingForecast> Scaling::at(std::uint32_t ranks, std::uint32_t nodes, const CostFactors& costs) const {
  const bool several = nodes > 1;
  ScalingForecast out;
  out.ranks = ranks;
  out.nodes = nodes;
  Seconds widest_s = 0;
  Seconds below_s = 0;
  Seconds above_s = 0;
  double left_out = 0;
  bool is_known = true;
  for_each_part([&](Part part) {
    if (ranks == 1 && traits(part).known != Known::kAlways) return;
    const FittedLaw* const fitted = law(part, several);
    is_known = is_known && fitted != nullptr;
    if (fitted == nullptr) return;
    const double factor = factor_of(part, costs);
    const Seconds value_s = factor * fitted->law.at(ranks);
    Seconds low_s = value_s;
    Seconds high_s = value_s;
    for (const Law& other : fitted->others) {
      low_s = std::min(low_s, factor * other.at(ranks));
      high_s = std::max(high_s, factor * other.at(ranks));
    }
    out.parts[index_of(part)] = value_s;
    out.time_s += value_s;
    below_s += value_s - low_s;
    above_s += high_s - value_s;
    left_out += fitted->left_out;
    if (high_s - low_s <= widest_s) return;
    widest_s = high_s - low_s;
    out.widest = part;
  });
  if (!is_known) {
    const std::uint32_t other = several ? std::max(ranks / nodes, 1U) * 2 : runs_.front().ranks / runs_.front().nodes;
    return invalid_input(fmt::format("no run had {}: run it once with {} ranks on {}",
                                     several ? "several nodes" : "one node only", other, on_nodes(several ? 2 : 1)));
  }
  constexpr double kTwoSigma = 2;
  const Seconds everywhere_s = (kTwoSigma * left_out + error_percent_ / 100) * out.time_s;
  out.low_s = std::max(0.0, out.time_s - below_s - everywhere_s);
  out.high_s = out.time_s + above_s + everywhere_s;
  return out;
}

double Scaling::efficiency(const ScalingForecast& there) const {
  const double grown = problem_ == Problem::kSame ? static_cast<double>(there.ranks) / runs_.front().ranks : 1;
  return there.time_s > 0 ? first_s_ / (there.time_s * grown) : 1;
}

std::optional<Part> Scaling::bound_by(const ScalingForecast& there) const {
  const FittedLaw* const work = law(Part::kWork, there.nodes > 1);
  const double shrinks = problem_ == Problem::kSame ? static_cast<double>(runs_.front().ranks) / there.ranks : 1;
  Parts lost = there.parts;
  lost[index_of(Part::kWork)] -= work->law.at(runs_.front().ranks) * shrinks;
  const auto most = std::max_element(lost.begin(), lost.end());
  if (*most < kLeastBound * there.time_s) return std::nullopt;
  return static_cast<Part>(most - lost.begin());
}

std::optional<std::size_t> knee_of(std::span<const ScalingForecast> by_ranks) {
  const auto knee = std::min_element(by_ranks.begin(), by_ranks.end(), [](const auto& a, const auto& b) {
    return a.ranks * a.time_s * a.time_s < b.ranks * b.time_s * b.time_s;
  });
  if (knee == by_ranks.end() || knee + 1 == by_ranks.end()) return std::nullopt;
  return static_cast<std::size_t>(knee - by_ranks.begin());
}

AmdahlBound amdahl_bound(const ScalingRun& run) {
  const Seconds work_s = run.parts[index_of(Part::kWork)];
  return {run.ranks, work_s, run.time_s() - work_s};
}

}  // namespace lbf::advisor
