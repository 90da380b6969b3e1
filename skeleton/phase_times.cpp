#include "skeleton/phase_times.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "skeleton/call_name.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {
namespace {

constexpr int kSweeps = 300;

// Unknown 2 t: before term t at its block's first step; 2 t + 1: at each further one.
using Row = std::map<std::uint32_t, double>;
struct Equation {
  Row times;  // how often each unknown is in the sum
  double computation_s = 0;
  double idle_s = 0;
};

struct RunEquations {
  Standpoint at;
  std::vector<Equation> all;
  std::vector<double> executions;  // by unknown: of all ranks, iterations included
};

// Coordinate descent: the earliest unknown takes what others do not claim.
std::vector<double> solve(const std::vector<Equation>& equations, std::size_t unknowns,
                          double Equation::*wanted) {
  std::vector<double> x(unknowns, 0);
  std::vector<double> left(equations.size());
  std::vector<std::vector<std::pair<std::size_t, double>>> columns(unknowns);
  for (std::size_t e = 0; e < equations.size(); ++e) {
    left[e] = equations[e].*wanted;
    for (const auto& [unknown, times] : equations[e].times) columns[unknown].emplace_back(e, times);
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double change = 0;
    for (std::size_t u = 0; u < unknowns; ++u) {
      double product = 0;
      double norm = 0;
      for (const auto& [e, times] : columns[u]) {
        product += times * left[e];
        norm += times * times;
      }
      if (norm == 0) continue;
      const double next = std::max(0.0, x[u] + product / norm);
      const double step = next - x[u];
      for (const auto& [e, times] : columns[u]) left[e] -= times * step;
      x[u] = next;
      change = std::max(change, std::abs(step));
    }
    if (change < 1e-12) break;
  }
  return x;
}

void add_equations(const Phase& phase, const RankStretch& stretch, RunEquations& run) {
  std::size_t next = 0;
  Row passed;
  std::vector<std::uint32_t> open;  // terms whose requests are under way, once for each
  std::vector<std::uint32_t> since;
  visit_phase(phase, stretch.at,
              [&](std::uint32_t number, const Term& term, const Standpoint&, Rank step_index, Rank peer) {
                const std::uint32_t unknown = 2 * number + (step_index > 0 ? 1 : 0);
                if (has_peer(term.kind) && peer < 0 && !has_borders(term.peer.kind)) return true;
                passed[unknown] += 1;
                since.push_back(unknown);
                if (has_peer(term.kind) && peer < 0) return true;
                if (term.kind == OperationKind::kWait) {
                  const std::size_t ended = std::erase_if(open, [&](std::uint32_t by) {
                    return std::find(term.waits.begin(), term.waits.end(), by) != term.waits.end();
                  });
                  if (ended == 0) return true;
                }
                if (starts_request(term.kind)) open.push_back(number);
                const RankItem& item = *stretch.items[next++];
                run.all.push_back({std::exchange(passed, {}), item.computation.mean_s(), item.idle_s()});
                for (const std::uint32_t each : since)
                  run.executions[each] += static_cast<double>(item.occurrences);
                since.clear();
                return true;
              });
}

std::string name_of(const Term& term) {
  if (term.kind == OperationKind::kEnd) return "the end";
  Operation o;
  o.kind = term.kind;
  o.flags = term.flags;
  o.op = term.op;
  return call_name(o);
}

std::string microseconds(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g us", seconds * 1e6);
  return text;
}

// How the times of a term's operations are spread in the run with the most ranks.
void find_shapes(const std::vector<RankStretch>& stretches, Phase& phase) {
  Rank most = 0;
  for (const RankStretch& stretch : stretches) most = std::max(most, stretch.at.ranks);
  std::map<std::uint32_t, std::vector<double>> quantiles;
  for (const RankStretch& stretch : stretches) {
    if (stretch.at.ranks != most) continue;
    std::size_t next = 0;
    std::vector<std::uint32_t> open;
    visit_phase(
        phase, stretch.at, [&](std::uint32_t number, const Term& term, const Standpoint&, Rank, Rank peer) {
          if (has_peer(term.kind) && peer < 0) return true;
          if (term.kind == OperationKind::kWait && std::erase_if(open, [&](std::uint32_t by) {
                                                     return std::find(term.waits.begin(), term.waits.end(),
                                                                      by) != term.waits.end();
                                                   }) == 0)
            return true;
          if (starts_request(term.kind)) open.push_back(number);
          std::vector<double>& sums = quantiles[number];
          sums.resize(kShapeParts, 0);
          const std::vector<double> means = stretch.items[next++]->computation.quantile_means_s(kShapeParts);
          for (std::size_t i = 0; i < means.size(); ++i) sums[i] += means[i];
          return true;
        });
  }
  std::uint32_t number = 0;
  for (Block& block : phase.blocks) {
    for (Term& term : block.terms) {
      std::vector<double>& parts = quantiles[number++];
      double mean = 0;
      for (const double part : parts) mean += part / kShapeParts;
      if (!(mean > 0)) continue;
      bool differs = false;
      for (double& part : parts) {
        part /= mean;
        differs = differs || part < 1 - kShapeDifference || part > 1 + kShapeDifference;
      }
      if (differs) term.shape = parts;
    }
  }
}

}  // namespace

Result<void> fit_times(const std::vector<RankStretch>& stretches, const Geometry& geometry,
                       const PhaseFitOptions& options, PhaseFit& fit) {
  std::size_t terms = 0;
  for (const Block& block : fit.phase.blocks) terms += block.terms.size();
  std::map<std::size_t, RunEquations> runs;
  for (const RankStretch& stretch : stretches) {
    RunEquations& run = runs[stretch.run];
    run.at = stretch.at;
    run.executions.resize(2 * terms, 0);
    add_equations(fit.phase, stretch, run);
  }
  std::vector<std::vector<double>> computation, idle;  // by run, unknown
  for (const auto& [index, run] : runs) {
    computation.push_back(solve(run.all, 2 * terms, &Equation::computation_s));
    idle.push_back(solve(run.all, 2 * terms, &Equation::idle_s));
  }
  const auto law_of = [&](std::size_t unknown, const std::vector<std::vector<double>>& solved, RankLaw& law,
                          const Term& term, bool idle_times) -> Result<void> {
    std::vector<LawSample> samples;
    bool matters = false;
    std::size_t at = 0;
    for (const auto& [index, run] : runs) {
      const double value = solved[at++][unknown];
      // A run without this unknown (a block of one step) says nothing of it.
      if (run.executions[unknown] == 0) continue;
      samples.push_back({run.at, value});
      matters = matters || value * run.executions[unknown] > kSmallShare * options.computation_s[index];
    }
    if (samples.empty()) return {};
    double off = 0;
    law = nearest_law(samples, geometry, off);
    if (off <= options.time_tolerance || !matters) return {};
    std::string values;
    for (const LawSample& sample : samples)
      values += (values.empty() ? "" : ", ") + microseconds(sample.value) + " with " +
                std::to_string(sample.at.ranks);
    return invalid_input(std::string(idle_times ? "idle time" : "computation") + " before " + name_of(term) +
                         " follows no law of the rank count within " +
                         std::to_string(std::lround(100 * options.time_tolerance)) + " % (" + values +
                         "); --time-tolerance allows more");
  };
  std::size_t number = 0;
  for (Block& block : fit.phase.blocks) {
    for (Term& term : block.terms) {
      for (const Result<void>& done :
           {law_of(2 * number, computation, term.computation_s, term, false),
            law_of(2 * number + 1, computation, term.computation_again_s, term, false),
            law_of(2 * number, idle, term.idle_s, term, true),
            law_of(2 * number + 1, idle, term.idle_again_s, term, true)}) {
        if (!done) return done.error();
      }
      ++number;
    }
  }
  find_shapes(stretches, fit.phase);
  return {};
}

}  // namespace lbf::skeleton
