#include "pattern/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "pattern/merge.h"

namespace lbf::pattern {
namespace {

using skeleton::OperationKind;

// A rank that has more statements, or a program, does not repeat itself.
constexpr std::size_t kMostStatements = 1000;

struct Run {
  Rank ranks = 0;
  skeleton::CommVariables comms;
  std::vector<std::vector<Step>> executed;  // by rank
};

// Of times: between a constant and 1/p.
PowerLaw time_law(const PowerLawFit& fit, double exponent_of_one) {
  return fit.law({exponent_of_one, -1, 0});
}

class Fitter {
 public:
  Fitter(const Grids& grids, std::span<const Place> places, double exponent, bool waits_have_conditions)
      : grids_(grids), places_(places), exponent_(exponent), waits_have_conditions_(waits_have_conditions) {}

  Result<Program> run(const std::vector<Node>& nodes) {
    count_rules(nodes);
    for (std::size_t rule = 0; rule < kGridRules; ++rule) rules_.push_back(static_cast<GridRule>(rule));
    std::stable_sort(rules_.begin(), rules_.end(), [&](GridRule a, GridRule b) { return uses(a) > uses(b); });
    Program program;
    Result<std::vector<Instruction>> instructions = all(nodes);
    if (!instructions) return instructions.error();
    program.instructions = std::move(*instructions);
    program.notes.assign(notes_.begin(), notes_.end());
    program.works = works_;
    program.layout = rules_.front();
    program.largest = largest();
    Rank smaller = 1;
    for (const Place& place : places_)
      smaller = place.ranks < places_.front().ranks ? std::max(smaller, place.ranks) : smaller;
    program.miss_factor = static_cast<double>(places_.front().ranks) / smaller;
    if (miss_.was_s > 0) program.miss_percent = 100 * (miss_.foretold_s / miss_.was_s - 1);
    return program;
  }

 private:
  std::size_t uses(GridRule rule) const { return uses_[static_cast<std::size_t>(rule)]; }

  // How many statements a grid explains, and whether there are some that only neighbours explain.
  void count_rules(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      count_rules(node.body);
      const bool are_neighbours =
          std::all_of(node.relations.begin(), node.relations.end(),
                      [](const Relation& relation) { return relation.kind == Relation::Kind::kShift; });
      std::set<GridRule> rules;
      for (const Relation& relation : node.relations) {
        if (relation.kind != Relation::Kind::kRank && relation.kind != Relation::Kind::kRankFromEnd)
          rules.insert(relation.rule);
      }
      for (const GridRule rule : rules) ++uses_[static_cast<std::size_t>(rule)];
      if (are_neighbours) neighbours_.insert(rules.begin(), rules.end());
    }
  }

  Result<std::vector<Instruction>> all(const std::vector<Node>& nodes, Node::Kind in = Node::Kind::kLoop) {
    std::vector<Instruction> instructions;
    for (const Node& node : nodes) {
      Result<Instruction> made = node.kind == Node::Kind::kStatement ? statement(node, in) : block(node);
      if (!made) return made.error();
      instructions.push_back(std::move(*made));
    }
    return instructions;
  }

  Result<Instruction> block(const Node& node) {
    Instruction instruction;
    Result<std::vector<Instruction>> body = all(node.body, node.kind);
    if (!body) return body.error();
    instruction.body = std::move(*body);
    if (node.kind != Node::Kind::kLoop) {
      instruction.kind = node.kind == Node::Kind::kSteps ? Instruction::Kind::kSteps : Instruction::Kind::kStepsBack;
      const auto with_peer = std::find_if(instruction.body.begin(), instruction.body.end(),
                                          [](const Instruction& inner) { return skeleton::has_peer(inner.key.kind); });
      instruction.way.relation = with_peer->way.relation;
      return instruction;
    }
    instruction.kind = Instruction::Kind::kLoop;
    std::vector<FormulaSample> counts;
    for (const auto& [place, count] : node.counts) counts.push_back({places_[place].ranks, places_[place].me, count});
    instruction.count = Formula::fit(counts, grids_, {rules_.front(), {}});
    if (!instruction.count.is_exact())
      notes_.insert("iterations of a loop differ by no rule: a power law of their mean");
    return instruction;
  }

  Result<Instruction> statement(const Node& node, Node::Kind in) {
    const bool is_in_steps = in != Node::Kind::kLoop;
    Instruction instruction;
    instruction.key = node.key;
    instruction.tag_per_step = node.tag_per_step;
    std::vector<bool> executes(places_.size(), false);
    for (const Sample& sample : node.samples) executes[sample.place] = true;
    if (node.key.kind == OperationKind::kWait) {
      set_wait(node, instruction);
      if (waits_have_conditions_)
        instruction.way.conditions = conditions(executes, nullptr, rules_).value_or(std::vector<Predicate>());
    } else if (!choose(node, executes, is_in_steps, instruction)) {
      return invalid_input(
          fmt::format("{}: no rule tells which ranks execute it ({})", call_of(node.key), shares(executes)));
    }
    set_sizes(node, instruction);
    instruction.number = works_;
    std::map<PlaceId, std::uint32_t> last_step;
    for (const Sample& sample : node.samples) last_step[sample.place] = std::max(last_step[sample.place], sample.step);
    std::vector<std::vector<WorkSample>> process;  // by turn
    PowerLawFit idle;
    for (const Sample& sample : node.samples) {
      const auto [ranks, me] = places_[sample.place];
      const std::uint32_t turn = in == Node::Kind::kStepsBack ? last_step[sample.place] - sample.step : sample.step;
      if (turn >= process.size()) process.resize(turn + 1);
      process[turn].push_back(
          {ranks, likened(layout_of(rules_.front(), grids_, ranks), largest(), me), sample.times_s});
      idle.add(places_[sample.place].ranks, sample.idle_s);
    }
    for (std::vector<WorkSample>& of_turn : process) {
      const Work& work =
          instruction.process.emplace_back(Work::fit(std::move(of_turn), exponent_, places_.front().ranks));
      miss_.foretold_s += work.miss().foretold_s;
      miss_.was_s += work.miss().was_s;
    }
    works_ += static_cast<std::uint32_t>(process.size());
    instruction.idle = time_law(idle, 0);
    return instruction;
  }

  const Grid& largest() const { return layout_of(rules_.front(), grids_, places_.front().ranks); }

  // "8 of 16, 0 of 8"
  std::string shares(const std::vector<bool>& executes) const {
    std::map<Rank, int, std::greater<>> counts;
    for (std::size_t place = 0; place < places_.size(); ++place)
      counts[places_[place].ranks] += executes[place] ? 1 : 0;
    std::string words;
    for (const auto& [ranks, count] : counts)
      words += fmt::format("{}{} of {}", words.empty() ? "" : ", ", count, ranks);
    return words;
  }

  static void set_wait(const Node& node, Instruction& instruction) {
    instruction.positions = node.positions;
    for (const WaitForm form : {kWaitsForAll, kWaitsForReceives, kWaitsForOthers, kWaitsForOldest, kWaitsForNewest,
                                kWaitsForOldestReceive, kWaitsForOldestOther, kWaitsForPositions}) {
      if ((node.wait_forms & form) == 0) continue;
      instruction.wait_form = form;
      return;
    }
  }

  // What a way needs to be said: the fewer conditions, dimensions and distances, the simpler.
  static std::array<int, 3> complexity(const Way& way) {
    std::array<int, 3> all{};
    for (const Predicate& predicate : way.conditions) all[0] += predicate.kind == Predicate::Kind::kInside ? 1 : 2;
    if (way.relation.kind != Relation::Kind::kShift) return {all[0], 1, 1};
    for (const std::int32_t shift : way.relation.shift) {
      all[1] += shift != 0 ? 1 : 0;
      all[2] += std::abs(shift);
    }
    return all;
  }

  // The simplest way, on the grid that explains most.
  bool choose(const Node& node, const std::vector<bool>& executes, bool is_in_steps, Instruction& instruction) const {
    if (!skeleton::has_peer(node.key.kind)) {
      const auto found = conditions(executes, nullptr, rules_);
      if (found) instruction.way.conditions = *found;
      return found.has_value();
    }
    std::vector<Way> ways;
    for (const Relation& relation : node.relations) {
      auto found = conditions(executes, &relation, {relation.rule, GridRule::kLine});
      if (found) ways.push_back({relation, std::move(*found)});
    }
    if (ways.empty()) return false;
    std::stable_sort(ways.begin(), ways.end(), [&](const Way& a, const Way& b) {
      const auto x = complexity(a);
      const auto y = complexity(b);
      return x != y ? x < y : uses(a.relation.rule) > uses(b.relation.rule);
    });
    instruction.way = ways.front();
    // Stages of a butterfly, or neighbours in dimensions of two.
    for (const Relation& relation : node.alone) {
      const Way neighbour{relation, {}};
      if (relation.kind == Relation::Kind::kShift && neighbours_.contains(relation.rule) &&
          complexity(neighbour)[1] == 1)
        instruction.other_ways.push_back(neighbour);
    }
    for (std::size_t i = 1; i < ways.size() && !is_in_steps; ++i) {
      const bool is_as_simple = complexity(ways[i]) == complexity(ways.front());
      const bool explains_as_much = uses(ways[i].relation.rule) == uses(ways.front().relation.rule);
      if (is_as_simple && explains_as_much) instruction.other_ways.push_back(ways[i]);
    }
    return true;
  }

  // What tells the ranks that execute a statement from all others: nothing, one predicate, or two.
  std::optional<std::vector<Predicate>> conditions(const std::vector<bool>& executes, const Relation* relation,
                                                   const std::vector<GridRule>& rules) const {
    const auto is_possible = [&](std::size_t place) {
      // A step of a butterfly, a rank that does not exist: no condition is needed where there is no peer.
      return relation == nullptr || peer_of(*relation, grids_, places_[place].ranks, places_[place].me).has_value();
    };
    std::vector<std::size_t> others;
    for (std::size_t place = 0; place < places_.size(); ++place) {
      if (!executes[place] && is_possible(place)) others.push_back(place);
    }
    if (others.empty()) return std::vector<Predicate>();
    // Those that hold for all that execute it.
    std::vector<std::pair<Predicate, std::vector<bool>>> known;  // whether it leaves each of `others` out
    const Relation of_peer = relation != nullptr ? *relation : Relation{};
    const auto consider = [&](const Predicate& predicate) {
      for (std::size_t place = 0; place < places_.size(); ++place) {
        if (executes[place] && !holds(predicate, of_peer, grids_, places_[place].ranks, places_[place].me)) return;
      }
      std::vector<bool> leaves_out;
      for (const std::size_t place : others)
        leaves_out.push_back(!holds(predicate, of_peer, grids_, places_[place].ranks, places_[place].me));
      known.emplace_back(predicate, std::move(leaves_out));
    };
    using Kind = Predicate::Kind;
    if (relation != nullptr && relation->kind == Relation::Kind::kShift)
      consider({Kind::kInside, relation->rule, 0, 0});
    if (relation != nullptr) consider({Kind::kNotSelf, relation->rule, 0, 0});
    std::set<GridRule> seen;
    for (const GridRule rule : rules) {
      if (!seen.insert(rule).second) continue;
      for (std::uint8_t d = 0; d < (rule == GridRule::kLine ? 1 : kDimensions); ++d) {
        for (const Kind kind : {Kind::kFirst, Kind::kNotFirst, Kind::kLast, Kind::kNotLast, Kind::kEven, Kind::kOdd,
                                Kind::kEdge, Kind::kInner, Kind::kWide})
          consider({kind, rule, d, 0});
      }
      for (const std::int32_t value : {2, 4, 8}) {
        for (const Kind kind : {Kind::kCoarse, Kind::kCoarseLast}) consider({kind, rule, 0, value});
      }
    }
    for (const auto& [predicate, leaves_out] : known) {
      if (std::find(leaves_out.begin(), leaves_out.end(), false) == leaves_out.end()) return std::vector{predicate};
    }
    for (std::size_t a = 0; a < known.size(); ++a) {
      for (std::size_t b = a + 1; b < known.size(); ++b) {
        bool all = true;
        for (std::size_t i = 0; i < others.size() && all; ++i) all = known[a].second[i] || known[b].second[i];
        if (all) return std::vector{known[a].first, known[b].first};
      }
    }
    return std::nullopt;
  }

  // What goes to a neighbour is the face of a block: it depends on all other dimensions.
  Formula::Likely likely_sizes(const Node& node, const Instruction& instruction) const {
    const Relation& relation = instruction.way.relation;
    Formula::Likely likely{skeleton::has_peer(node.key.kind) ? relation.rule : rules_.front(), {}};
    if (relation.kind != Relation::Kind::kShift || !skeleton::has_peer(node.key.kind)) return likely;
    const bool is_plane = relation.rule == GridRule::kPlane || relation.rule == GridRule::kPlaneTurned;
    const std::size_t used = relation.rule == GridRule::kLine ? 1 : is_plane ? 2 : kDimensions;
    for (std::size_t d = 0; d < used; ++d) likely.dimensions[d] = relation.shift[d] == 0;
    return likely;
  }

  void set_sizes(const Node& node, Instruction& instruction) {
    std::vector<FormulaSample> bytes;
    std::vector<FormulaSample> roots;
    std::vector<FormulaSample> values;
    bool are_even = true;
    for (const Sample& sample : node.samples) {
      const auto [ranks, me] = places_[sample.place];
      bytes.push_back({ranks, me, sample.bytes, sample.step});
      roots.push_back({ranks, me, static_cast<std::uint64_t>(std::max(sample.root, 0)), sample.step});
      if (sample.values.empty()) continue;
      const std::uint64_t sum = std::accumulate(sample.values.begin(), sample.values.end(), std::uint64_t{0});
      values.push_back({ranks, me, sum / sample.values.size(), sample.step});
      for (const std::uint64_t value : sample.values) are_even = are_even && value == sample.values.front();
    }
    const Formula::Likely likely = likely_sizes(node, instruction);
    instruction.bytes = Formula::fit(bytes, grids_, likely);
    instruction.root = Formula::fit(roots, grids_, {likely.rule, {}});
    if (!values.empty()) instruction.value = Formula::fit(values, grids_, {likely.rule, {}});
    if (!instruction.root.is_exact()) notes_.insert(call_of(node.key) + ": its roots follow no rule");
    if (!instruction.bytes.is_exact() || !instruction.value.is_exact() || !are_even)
      notes_.insert(call_of(node.key) + ": its sizes follow no rule: the mean, and a power law of it");
  }

  const Grids& grids_;
  std::span<const Place> places_;
  const double exponent_;
  const bool waits_have_conditions_;
  std::array<std::size_t, kGridRules> uses_{};
  std::set<GridRule> neighbours_;  // rules of grids on which neighbours exchange messages
  std::vector<GridRule> rules_;    // the most useful first
  std::set<std::string> notes_;
  std::uint32_t works_ = 0;
  Work::Miss miss_;
};

class Learning {
 public:
  Result<Program> run(const std::vector<skeleton::ProgramTrace>& traces) {
    if (Result<void> read = this->read(traces); !read) return read.error();
    Result<std::vector<Subgrid>> communicators = find_communicators(traces);
    if (!communicators) return communicators.error();
    std::optional<Error> first;
    for (const Sizes sizes : {Sizes::kSame, Sizes::kAny}) {
      for (const std::size_t written_out : {std::size_t{16}, std::size_t{0}}) {
        Result<Program> program = learn({sizes, written_out}, *communicators);
        if (program) return program;
        if (!first) first = program.error();
      }
    }
    return *first;
  }

 private:
  Result<void> read(const std::vector<skeleton::ProgramTrace>& traces) {
    for (const skeleton::ProgramTrace& trace : traces) {
      Run run;
      run.ranks = static_cast<Rank>(trace.ranks.size());
      run.comms = skeleton::comm_variables(trace.comms);
      grids_.add(run.ranks);
      for (Rank rank = 0; rank < run.ranks; ++rank) {
        Result<std::vector<Step>> executed = executed_steps(trace, run.comms, rank);
        if (!executed) return executed.error();
        run.executed.push_back(std::move(*executed));
      }
      runs_.push_back(std::move(run));
    }
    std::set<Rank> counts;
    for (const Run& run : runs_) counts.insert(run.ranks);
    if (counts.size() < 2)
      return invalid_input(runs_.empty() ? "no run"
                                         : fmt::format("all runs have {} ranks: run it once with {}",
                                                       runs_.front().ranks, 2 * runs_.front().ranks));
    std::vector<std::size_t> order(runs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return runs_[a].ranks > runs_[b].ranks; });
    for (const std::size_t number : order) {
      first_place_.emplace_back(number, static_cast<PlaceId>(places_.size()));
      for (Rank me = 0; me < runs_[number].ranks; ++me) places_.push_back({runs_[number].ranks, me});
    }
    return {};
  }

  Result<Program> learn(const Folding& folding, const std::vector<Subgrid>& communicators) const {
    Result<std::vector<Node>> nodes = merged(folding);
    if (!nodes) return nodes.error();
    find_steps(*nodes, grids_, places_);
    std::optional<Error> first;
    for (const bool waits_have_conditions : {false, true}) {
      Result<Program> program = Fitter(grids_, places_, exponent(), waits_have_conditions).run(*nodes);
      if (!program) return program.error();
      program->communicators = communicators;
      if (folding.sizes == Sizes::kAny)
        program->notes.push_back("message sizes differ between iterations: their means are taken");
      Result<void> checked = check(*program);
      if (checked) return program;
      if (!first) first = checked.error();
    }
    return *first;
  }

  // Ranks of the largest run first, of a run those with the most statements first.
  Result<std::vector<Node>> merged(const Folding& folding) const {
    Merger merger(grids_, places_);
    for (const auto& [number, first] : first_place_) {
      const Run& run = runs_[number];
      std::vector<std::vector<Step>> trees;
      for (const std::vector<Step>& executed : run.executed) {
        trees.push_back(folded(executed, folding));
        if (statements_of(trees.back()) > kMostStatements)
          return invalid_input(fmt::format("rank {} of {} does not repeat itself: {} statements", trees.size() - 1,
                                           run.ranks, statements_of(trees.back())));
      }
      std::vector<PlaceId> order(trees.size());
      std::iota(order.begin(), order.end(), PlaceId{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](PlaceId a, PlaceId b) { return statements_of(trees[a]) > statements_of(trees[b]); });
      for (const PlaceId me : order) merger.add(first + me, trees[me]);
    }
    return merger.finish();
  }

  // Of the process time of a rank.
  double exponent() const {
    PowerLawFit fit;
    for (const Run& run : runs_) {
      for (const std::vector<Step>& executed : run.executed) {
        double all = 0;
        for (const Step& step : executed) all += step.process_s;
        fit.add(run.ranks, all);
      }
    }
    return time_law(fit, 0).exponent;
  }

  Result<std::vector<Subgrid>> find_communicators(const std::vector<skeleton::ProgramTrace>& traces) const {
    const std::size_t count = runs_.front().comms.comms.size();
    for (const Run& run : runs_) {
      if (run.comms.comms.size() != count)
        return invalid_input(fmt::format("a rank has {} communicators of {} ranks and {} of {}", count - 1,
                                         runs_.front().ranks, run.comms.comms.size() - 1, run.ranks));
    }
    std::vector<Subgrid> found;
    for (std::size_t variable = 1; variable < count; ++variable) {
      const auto subgrid = find_communicator(traces, variable);
      if (!subgrid) return invalid_input("communicators are no rows or columns of a process grid");
      found.push_back(*subgrid);
    }
    return found;
  }

  std::optional<Subgrid> find_communicator(const std::vector<skeleton::ProgramTrace>& traces,
                                           std::size_t variable) const {
    for (std::size_t rule = 0; rule < kGridRules; ++rule) {
      for (unsigned mask = 0; mask < 1U << kDimensions; ++mask) {
        Subgrid subgrid{static_cast<GridRule>(rule), {}};
        for (std::size_t d = 0; d < kDimensions; ++d) subgrid.varies[d] = (mask >> d & 1) != 0;
        bool all = true;
        for (std::size_t number = 0; number < runs_.size() && all; ++number) {
          const Run& run = runs_[number];
          all = grids_.find(subgrid.rule, run.ranks) != nullptr;
          for (const std::uint32_t comm : run.comms.comms[variable]) {
            const std::vector<Rank>& members = traces[number].comms[comm];
            all = all && subgrid.members_of(grids_, run.ranks, members.front()) == members;
          }
        }
        if (all) return subgrid;
      }
    }
    return std::nullopt;
  }

  // What was learnt, executed at the rank counts that ran, does what the ranks did.
  Result<void> check(const Program& program) const {
    for (const Run& run : runs_) {
      for (Rank me = 0; me < run.ranks; ++me) {
        const std::vector<Step>& executed = run.executed[static_cast<std::size_t>(me)];
        Execution execution(program, grids_, run.ranks, me);
        std::size_t at = 0;
        for (const Step* step = execution.next(); step != nullptr || at < executed.size();
             step = execution.next(), ++at) {
          if (step != nullptr && at < executed.size() && alike(*step, executed[at], program.is_exact())) continue;
          return invalid_input(fmt::format(
              "rank {} of {} does not follow the rules that its statements suggest: operation {} was {}, not {}", me,
              run.ranks, at, at < executed.size() ? in_words(executed[at]) : "nothing",
              step == nullptr ? "nothing" : in_words(*step)));
        }
      }
    }
    return {};
  }

  static bool alike(const Step& learnt, const Step& executed, bool with_sizes) {
    if (learnt.key != executed.key) return false;
    if (learnt.key.kind == OperationKind::kWait) return learnt.positions == executed.positions;
    if (skeleton::has_peer(learnt.key.kind) && learnt.peer != executed.peer) return false;
    return !with_sizes || learnt.key.kind == OperationKind::kEnd ||
           (learnt.bytes == executed.bytes && learnt.root == std::max(executed.root, 0));
  }

  static std::string in_words(const Step& step) {
    std::string words = call_of(step.key);
    if (skeleton::has_peer(step.key.kind)) words += fmt::format(" and rank {}, {} bytes", step.peer, step.bytes);
    if (step.key.kind == OperationKind::kWait) words += fmt::format(" for {} requests", step.positions.size());
    return words;
  }

  Grids grids_;
  std::vector<Run> runs_;
  std::vector<Place> places_;
  std::vector<std::pair<std::size_t, PlaceId>> first_place_;  // of runs, the largest first
};

}  // namespace

Result<Program> Learner::learn() const {
  return Learning().run(runs_);
}

}  // namespace lbf::pattern
