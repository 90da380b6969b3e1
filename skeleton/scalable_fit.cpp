#include "skeleton/scalable_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "skeleton/phase_fit.h"
#include "skeleton/rank_program.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {
namespace {

// Loops of fewer iterations are written out where ranks or runs do not agree on loops otherwise.
constexpr std::array<std::uint64_t, 8> kLeastCounts{2, 3, 4, 5, 9, 17, 33, 65};
constexpr std::size_t kMostOperations = 20'000;  // of one rank, loops' bodies once

struct RankOfRun {
  std::size_t run;
  Rank rank;
  RankProgram program;
};

// Why an attempt failed, and how far it came.
struct Failure {
  double progress = -1;
  std::string what;
  void take(double other_progress, const std::string& other) {
    if (other_progress <= progress) return;
    progress = other_progress;
    what = other;
  }
};

bool has_size_of_each_peer(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
    case CollectiveOp::kReduceScatter:
      return true;
    default:
      return false;
  }
}

class Fitter {
 public:
  Fitter(const std::vector<ProgramTrace>& traces, const ScalableOptions& options)
      : traces_(traces), options_(options) {
    for (const ProgramTrace& trace : traces) {
      variables_.push_back(comm_variables(trace.comms));
      Seconds computation_s = 0;
      for (const auto& operations : trace.ranks) {
        for (const Operation& o : operations) computation_s += o.process_s;
      }
      computation_s_.push_back(computation_s);
      operations_ += trace.operations();
    }
  }

  Result<ScalableProgram> run() {
    if (Result<void> usable = check(); !usable) return usable.error();
    std::size_t items_before = 0;
    for (int step = 0;; ++step) {
      const double threshold = options_.threshold_step * step;
      if (step > 0 && (options_.threshold_step <= 0 || threshold > options_.largest_threshold + 1e-12)) break;
      threshold_ = threshold;
      fold();
      std::size_t items = 0;
      for (const RankOfRun& each : ranks_) items += each.program.items.size();
      // A higher threshold that makes nothing more alike in time may still do so over the ranks.
      if (step > 0 && items == items_before && step % 5 != 0) continue;
      items_before = items;
      for (std::size_t i = 0; i < kLeastCounts.size(); ++i) {
        const std::uint64_t least = kLeastCounts[i];
        if (i > 0 && !has_loops(kLeastCounts[i - 1], least)) continue;  // the same again
        if (std::optional<ScalableProgram> program = attempt(least)) return std::move(*program);
      }
    }
    return invalid_input("no scalable skeleton: " + failure_.what);
  }

 private:
  Result<void> check() const {
    std::set<std::size_t> counts;
    for (const ProgramTrace& trace : traces_) {
      if (trace.ranks.size() < 2) return invalid_input("a scalable skeleton needs runs of 2 ranks and more");
      if (!counts.insert(trace.ranks.size()).second) {
        return invalid_input(
            "two of the runs had " + std::to_string(trace.ranks.size()) +
            " ranks: a scalable skeleton is made from one run at each of two or more rank counts");
      }
      for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
        for (const Operation& o : trace.ranks[rank]) {
          if (o.kind == OperationKind::kIcollective && has_size_of_each_peer(o.op)) {
            return invalid_input("no scalable skeleton: rank " + std::to_string(rank) + " of " +
                                 std::to_string(trace.ranks.size()) +
                                 " has a non-blocking collective with a size for each peer");
          }
          if (o.kind != OperationKind::kCancel && o.kind != OperationKind::kRequestFree) continue;
          return invalid_input("no scalable skeleton: rank " + std::to_string(rank) + " of " +
                               std::to_string(trace.ranks.size()) + " cancels or frees a request");
        }
      }
    }
    if (counts.size() < 2) {
      return invalid_input(
          "a scalable skeleton needs runs at two or more rank counts; this is one: record another one (with "
          "the "
          "same input, or one that grows with the ranks)");
    }
    return {};
  }

  void fold() {
    ranks_.clear();
    for (std::size_t run = 0; run < traces_.size(); ++run) {
      for (Rank rank = 0; rank < ranks_of(run); ++rank)
        ranks_.push_back({run, rank, fold_rank(traces_[run], rank, threshold_)});
    }
  }

  // Whether some loop has `from` to `below` - 1 iterations.
  bool has_loops(std::uint64_t from, std::uint64_t below) const {
    const auto in = [&](const Elements& elements) {
      return std::any_of(elements.begin(), elements.end(), [&](const Element& element) {
        return element.is_loop && element.count >= from && element.count < below;
      });
    };
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankOfRun& rank) {
      for (std::uint32_t body = 0; body < rank.program.bodies.size(); ++body) {
        if (in(rank.program.bodies[body])) return true;
      }
      return in(rank.program.elements);
    });
  }

  Rank ranks_of(std::size_t run) const { return static_cast<Rank>(traces_[run].ranks.size()); }

  std::vector<Geometry> geometries() const {
    std::vector<Geometry> all{{}};
    for (const int dims : {2, 3}) {
      all.push_back({Geometry::Kind::kBalanced, dims, 0});
      all.push_back({Geometry::Kind::kBalancedUp, dims, 0});
    }
    Rank fewest = ranks_of(0);
    for (std::size_t run = 1; run < traces_.size(); ++run) fewest = std::min(fewest, ranks_of(run));
    for (Rank fixed = 2; fixed <= fewest / 2; ++fixed) {
      all.push_back({Geometry::Kind::kFixedColumns, 2, fixed});
      all.push_back({Geometry::Kind::kFixedRows, 2, fixed});
    }
    std::erase_if(all, [&](const Geometry& geometry) {
      for (std::size_t run = 0; run < traces_.size(); ++run) {
        if (!shape_of(geometry, ranks_of(run))) return true;
      }
      return false;
    });
    return all;
  }

  // One way to read the loops, with each geometry. The first that explains all is taken; one that does, too,
  // and means something else at other rank counts is told.
  std::optional<ScalableProgram> attempt(std::uint64_t least) {
    least_ = least;
    std::vector<std::vector<RankPart>> parts;
    for (const RankOfRun& each : ranks_) {
      parts.push_back(parts_of(each.program, least, kMostOperations));
      if (parts.back().empty()) {
        failure_.take(-0.5, "rank " + std::to_string(each.rank) + " of " +
                                std::to_string(ranks_of(each.run)) + " hardly repeats itself: more than " +
                                std::to_string(kMostOperations) + " different operations");
        return {};
      }
    }
    std::vector<const std::vector<RankPart>*> lists;
    for (const auto& each : parts) lists.push_back(&each);
    if (!is_aligned(lists)) return {};
    std::optional<ScalableProgram> first;
    for (const Geometry& geometry : geometries()) {
      ScalableProgram program;
      program.geometry = geometry;
      explained_ = 0;
      if (!fit(lists, program)) continue;
      if (!first) {
        first = std::move(program);
        continue;
      }
      if (const std::string other = difference(*first, program); !other.empty()) {
        first->warnings.push_back(other);
        break;
      }
    }
    if (first) {
      // Each once: many terms may be in the same doubt.
      std::vector<std::string>& warnings = first->warnings;
      std::sort(warnings.begin(), warnings.end());
      warnings.erase(std::unique(warnings.begin(), warnings.end()), warnings.end());
      for (std::string& warning : warnings) warning += ": a run at another rank count would tell";
    }
    return first;
  }

  // Whether all ranks of each run have the same loops, and all runs loops in the same places.
  bool is_aligned(const std::vector<const std::vector<RankPart>*>& lists) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (lists[i]->size() != lists[0]->size()) {
        return unlike(i, lists[i]->size() / 2, lists[0]->size() / 2);
      }
    }
    for (std::size_t part = 1; part < lists[0]->size(); part += 2) {
      std::map<std::size_t, std::uint64_t> counts;  // by run
      std::vector<const std::vector<RankPart>*> bodies;
      for (std::size_t i = 0; i < lists.size(); ++i) {
        const RankPart& loop = (*lists[i])[part];
        const auto [known, is_new] = counts.emplace(ranks_[i].run, loop.count);
        if (!is_new && known->second != loop.count) {
          failure_.take(0, who(i) + " has a loop of " + std::to_string(loop.count) +
                               " iterations where rank 0 has " + std::to_string(known->second));
          return false;
        }
        bodies.push_back(&loop.body);
      }
      if (!is_aligned(bodies)) return false;
    }
    return true;
  }

  std::string who(std::size_t i) const {
    return "rank " + std::to_string(ranks_[i].rank) + " of " + std::to_string(ranks_of(ranks_[i].run));
  }
  bool unlike(std::size_t i, std::size_t loops, std::size_t others) {
    failure_.take(0, who(i) + " has " + std::to_string(loops) + " loops where " + who(0) + " has " +
                         std::to_string(others) + ": ranks and runs must repeat themselves alike");
    return false;
  }

  bool fit(const std::vector<const std::vector<RankPart>*>& lists, ScalableProgram& program) {
    if (!fit_comms(program)) return false;
    if (!fit_parts(lists, program, program.parts)) return false;
    for (std::size_t run = 0; run < traces_.size(); ++run) order_.emplace_back(ranks_of(run), run);
    std::sort(order_.begin(), order_.end());
    for (const auto& [ranks, run] : order_) {
      program.counts.push_back(ranks);
      program.application_s.push_back(application_s(run));
    }
    order_.clear();
    return true;
  }

  Seconds application_s(std::size_t run) const {
    if (run < options_.application_s.size() && options_.application_s[run] > 0)
      return options_.application_s[run];
    Seconds longest_s = 0;
    for (const auto& operations : traces_[run].ranks) {
      Seconds sum_s = 0;
      for (const Operation& o : operations) sum_s += static_cast<double>(o.process_s) + o.idle_s + o.call_s;
      longest_s = std::max(longest_s, sum_s);
    }
    return longest_s;
  }

  Standpoint at(std::size_t run, Rank rank, const Geometry& geometry) const {
    return {rank, ranks_of(run), shape_of(geometry, ranks_of(run)).value_or(Shape{1, 1, 1}), 0};
  }

  // Communicator variables of all runs, by the formula that has their members.
  bool fit_comms(ScalableProgram& program) {
    program.comms = {{}};
    const std::size_t variables = variables_[0].comms.size();
    for (const CommVariables& each : variables_) {
      if (each.comms.size() != variables) {
        failure_.take(0.5, "the runs do not make the same communicators");
        return false;
      }
    }
    Rank fewest = ranks_of(0);
    for (std::size_t run = 1; run < traces_.size(); ++run) fewest = std::min(fewest, ranks_of(run));
    for (std::size_t v = 1; v < variables; ++v) {
      const std::vector<CommFormula> formulas = comm_formulas(program.geometry, fewest);
      const auto found = std::find_if(formulas.begin(), formulas.end(), [&](const CommFormula& formula) {
        for (std::size_t run = 0; run < traces_.size(); ++run) {
          if (!has_members(formula, run, v, program.geometry)) return false;
        }
        return true;
      });
      if (found == formulas.end()) {
        failure_.take(0.6, "no formula for the members of the program's communicator " + std::to_string(v));
        return false;
      }
      program.comms.push_back(*found);
    }
    return true;
  }

  bool has_members(const CommFormula& formula, std::size_t run, std::size_t variable,
                   const Geometry& geometry) const {
    std::map<Rank, std::vector<Rank>> by_color;
    for (Rank rank = 0; rank < ranks_of(run); ++rank)
      by_color[color_of(formula, at(run, rank, geometry))].push_back(rank);
    std::set<std::vector<Rank>> wanted;
    for (auto& [color, members] : by_color) wanted.insert(std::move(members));
    std::set<std::vector<Rank>> made;
    for (const std::uint32_t comm : variables_[run].comms[variable]) made.insert(traces_[run].comms[comm]);
    return wanted == made;
  }

  bool fit_parts(const std::vector<const std::vector<RankPart>*>& lists, ScalableProgram& program,
                 std::vector<ScalablePart>& parts) {
    for (std::size_t part = 0; part < lists[0]->size(); ++part) {
      ScalablePart made;
      if ((*lists[0])[part].is_loop) {
        made.is_loop = true;
        std::map<std::size_t, LawSample> counts;
        std::vector<const std::vector<RankPart>*> bodies;
        for (std::size_t i = 0; i < lists.size(); ++i) {
          const RankPart& loop = (*lists[i])[part];
          counts[ranks_[i].run] = {at(ranks_[i].run, 0, program.geometry), static_cast<double>(loop.count)};
          bodies.push_back(&loop.body);
        }
        std::vector<LawSample> samples;
        std::string values;
        for (const auto& [run, sample] : counts) {
          samples.push_back(sample);
          values += (values.empty() ? "" : ", ") + std::to_string(std::llround(sample.value)) + " with " +
                    std::to_string(sample.at.ranks);
        }
        std::string doubt;
        const std::optional<RankLaw> law = fit_law(samples, program.geometry, {}, &doubt);
        if (!doubt.empty()) program.warnings.push_back("a loop's iterations fit " + doubt);
        if (!law) {
          fail("the iterations of a loop follow no law of the rank count (" + values + ")");
          return false;
        }
        made.count = *law;
        if (!fit_parts(bodies, program, made.body)) return false;
      } else if (!fit_run(lists, part, program, made.phase)) {
        return false;
      }
      if (made.is_loop || !made.phase.blocks.empty()) parts.push_back(std::move(made));
    }
    return true;
  }

  bool fit_run(const std::vector<const std::vector<RankPart>*>& lists, std::size_t part,
               ScalableProgram& program, Phase& phase) {
    std::vector<RankStretch> stretches;
    std::size_t items = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const RankOfRun& rank = ranks_[i];
      RankStretch stretch{at(rank.run, rank.rank, program.geometry), rank.run, {}, {}};
      for (const std::uint32_t index : (*lists[i])[part].run) {
        const RankItem& item = rank.program.items[index];
        stretch.items.push_back(&item);
        stretch.comms.push_back(variables_[rank.run].variable[item.operation.comm]);
      }
      items += stretch.items.size();
      stretches.push_back(std::move(stretch));
    }
    if (items == 0) return true;
    PhaseFitOptions how;
    how.similarity = threshold_;
    how.time_tolerance = options_.time_tolerance;
    how.computation_s = computation_s_;
    std::size_t explained = 0;
    Result<PhaseFit> fitted = fit_phase(stretches, program.geometry, how, explained);
    explained_ += explained;
    if (!fitted) {
      fail(fitted.error().message);
      return false;
    }
    phase = std::move(fitted->phase);
    for (const std::string& warning : fitted->warnings) program.warnings.push_back(warning);
    return true;
  }

  // What stood in the way before loops were written out says more than what did afterwards.
  void fail(const std::string& what) {
    if (failure_.progress >= 1 && failed_at_ != least_) return;
    failed_at_ = least_;
    failure_.take(1 + static_cast<double>(explained_) / static_cast<double>(operations_ + 1), what);
  }

  // Empty: at every rank count where both hold they are one program.
  static std::string difference(const ScalableProgram& a, const ScalableProgram& b) {
    for (Rank ranks = 2; ranks <= kMostCompared; ++ranks) {
      if (std::find(a.counts.begin(), a.counts.end(), ranks) != a.counts.end()) continue;
      if (!check_ranks(a, ranks) || !check_ranks(b, ranks)) continue;
      if (is_alike(without_loops(a), without_loops(b), ranks)) continue;
      return "the runs fit " + text_of(a.geometry) + " (taken) and also " + text_of(b.geometry) +
             ", which differ at " + std::to_string(ranks) + " ranks";
    }
    return {};
  }

  // Each loop once is enough to compare, and quick.
  static ScalableProgram without_loops(const ScalableProgram& program) {
    ScalableProgram once = program;
    make_once(once.parts);
    return once;
  }
  static void make_once(std::vector<ScalablePart>& parts) {
    for (ScalablePart& part : parts) {
      if (!part.is_loop) continue;
      part.count = {RankLaw::Basis::kOne, 0, 1, 0, 0};
      make_once(part.body);
    }
  }
  static bool is_alike(const ScalableProgram& a, const ScalableProgram& b, Rank ranks) {
    const Result<ProgramTrace> x = expand(a, ranks);
    const Result<ProgramTrace> y = expand(b, ranks);
    if (!x || !y) return true;
    for (std::size_t rank = 0; rank < x->ranks.size(); ++rank) {
      const bool same = std::equal(x->ranks[rank].begin(), x->ranks[rank].end(), y->ranks[rank].begin(),
                                   y->ranks[rank].end(), [](const Operation& p, const Operation& q) {
                                     return p.kind == q.kind && p.peer == q.peer && p.op == q.op &&
                                            p.bytes == q.bytes && p.tag == q.tag;
                                   });
      if (!same) return false;
    }
    return true;
  }

  const std::vector<ProgramTrace>& traces_;
  const ScalableOptions& options_;
  std::vector<CommVariables> variables_;  // by run
  std::vector<Seconds> computation_s_;    // by run
  std::uint64_t operations_ = 0;
  std::vector<RankOfRun> ranks_;
  std::vector<std::pair<Rank, std::size_t>> order_;
  double threshold_ = 0;
  std::size_t explained_ = 0;
  std::uint64_t least_ = 0;      // of this attempt
  std::uint64_t failed_at_ = 0;  // of the one whose failure is told
  Failure failure_;
};

}  // namespace

Result<ScalableProgram> fit_scalable(const std::vector<ProgramTrace>& traces,
                                     const ScalableOptions& options) {
  if (traces.empty()) return invalid_input("a scalable skeleton needs runs at two or more rank counts");
  return Fitter(traces, options).run();
}

}  // namespace lbf::skeleton
