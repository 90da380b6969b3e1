#include "pattern/rank_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "skeleton/loop_folder.h"

namespace lbf::pattern {
namespace {

using skeleton::Operation;
using skeleton::OperationKind;

class Executed {
 public:
  Executed(const skeleton::ProgramTrace& trace, const skeleton::CommVariables& comms) : trace_(trace), comms_(comms) {}

  Step step_of(const Operation& operation) {
    Step step;
    step.key = {operation.kind, operation.flags, operation.op, operation.tag, comms_.variable[operation.comm]};
    step.process_s = operation.process_s;
    step.idle_s = operation.idle_s;
    if (operation.kind == OperationKind::kWait) {
      step.key = {operation.kind, 0, CollectiveOp::kBarrier, 0, 0};
      find_requests(trace_.values_of(operation), step);
      return step;
    }
    if (skeleton::has_peer(operation.kind)) step.peer = operation.peer;
    step.root = operation.root;
    step.bytes = operation.bytes;
    const auto values = trace_.values_of(operation);
    step.values.assign(values.begin(), values.end());
    if (skeleton::begins_request(operation.kind))
      active_.push_back({operation.slot, operation.kind == OperationKind::kIrecv});
    return step;
  }

  void find_requests(std::span<const std::uint64_t> slots, Step& step) {
    std::size_t receives = 0;
    std::size_t waited_receives = 0;
    std::vector<Active> left;
    for (std::size_t place = 0; place < active_.size(); ++place) {
      receives += active_[place].is_receive ? 1 : 0;
      if (std::find(slots.begin(), slots.end(), active_[place].slot) == slots.end()) {
        left.push_back(active_[place]);
        continue;
      }
      step.positions.push_back(static_cast<std::uint32_t>(place));
      waited_receives += active_[place].is_receive ? 1 : 0;
    }
    const std::size_t waited = step.positions.size();
    const std::size_t others = active_.size() - receives;
    const auto first_of = [&](bool is_receive) {
      const auto found = std::find_if(active_.begin(), active_.end(),
                                      [&](const Active& active) { return active.is_receive == is_receive; });
      return static_cast<std::uint32_t>(found - active_.begin());
    };
    step.wait_forms = kWaitsForPositions;
    const auto hold = [&](WaitForm form, bool holds) {
      if (holds) step.wait_forms |= form;
    };
    hold(kWaitsForAll, waited == active_.size());
    hold(kWaitsForReceives, waited == receives && waited_receives == receives);
    hold(kWaitsForOthers, waited == others && waited_receives == 0);
    if (waited == 1) {
      hold(kWaitsForOldest, step.positions[0] == 0);
      hold(kWaitsForNewest, step.positions[0] + 1 == active_.size());
      hold(kWaitsForOldestReceive, step.positions[0] == first_of(true));
      hold(kWaitsForOldestOther, step.positions[0] == first_of(false));
    }
    active_ = std::move(left);
  }

 private:
  struct Active {
    std::uint32_t slot;
    bool is_receive;
  };

  const skeleton::ProgramTrace& trace_;
  const skeleton::CommVariables& comms_;
  std::vector<Active> active_;  // in the order in which they were started
};

class TreeMaker {
 public:
  TreeMaker(const std::vector<Step>& executed, const Folding& folding) : executed_(executed), folding_(folding) {}

  std::vector<Step> run() {
    skeleton::LoopBodies bodies;
    skeleton::LoopFolder folder(bodies);
    std::map<std::vector<std::uint64_t>, std::uint32_t> symbols;
    for (const Step& step : executed_) {
      const auto [known, is_new] = symbols.emplace(symbol_of(step), static_cast<std::uint32_t>(symbols.size()));
      if (is_new) is_wait_.push_back(step.key.kind == OperationKind::kWait);
      folder.push_symbol(known->second);
    }
    std::vector<Step> tree = shape(bodies, folder.finish());
    begin_behind_waits(tree);
    walk(tree);
    finish(tree);
    return tree;
  }

 private:
  std::vector<std::uint64_t> symbol_of(const Step& step) const {
    std::vector<std::uint64_t> symbol{static_cast<std::uint64_t>(step.key.kind) | std::uint64_t{step.key.flags} << 8 |
                                          static_cast<std::uint64_t>(step.key.op) << 16 |
                                          std::uint64_t{step.key.comm} << 32,
                                      static_cast<std::uint64_t>(static_cast<std::uint32_t>(step.key.tag)) << 32 |
                                          static_cast<std::uint32_t>(step.peer),
                                      static_cast<std::uint64_t>(step.root)};
    if (step.key.kind == OperationKind::kWait) {
      // Waits of one form are alike, however many requests they are for.
      symbol.push_back(step.wait_forms);
      if (step.wait_forms == kWaitsForPositions)
        symbol.insert(symbol.end(), step.positions.begin(), step.positions.end());
    } else if (folding_.sizes == Sizes::kSame) {
      symbol.push_back(step.bytes);
      symbol.insert(symbol.end(), step.values.begin(), step.values.end());
    }
    return symbol;
  }

  // Statements stay empty. Twice the same are as often two neighbours that are one rank: with more ranks they differ.
  std::vector<Step> shape(const skeleton::LoopBodies& bodies, const skeleton::Elements& elements) const {
    std::vector<Step> tree;
    for (const skeleton::Element& element : elements) {
      Step step;
      step.is_loop = element.is_loop;
      step.count = element.is_loop ? element.count : 0;
      step.symbol = element.is_loop ? 0 : element.value;
      if (element.is_loop) step.body = shape(bodies, bodies[element.value]);
      if (!step.is_loop || !is_written_out(step)) {
        tree.push_back(std::move(step));
        continue;
      }
      for (std::uint64_t iteration = 0; iteration < step.count; ++iteration)
        tree.insert(tree.end(), step.body.begin(), step.body.end());
    }
    return tree;
  }

  bool is_written_out(const Step& loop) const {
    constexpr std::size_t kMostWrittenTwice = 16;
    const std::size_t statements = statements_of(loop.body);
    return (loop.count == 2 && statements <= kMostWrittenTwice) || loop.count * statements <= folding_.written_out;
  }

  // A loop whose iterations begin with the waits of the one before begins behind them: what belongs together stays so.
  void begin_behind_waits(std::vector<Step>& tree) const {
    for (std::size_t at = 0; at < tree.size(); ++at) {
      if (!tree[at].is_loop) continue;
      begin_behind_waits(tree[at].body);
      const auto can_turn = [&] {
        const Step& first = tree[at].body.front();
        return !first.is_loop && is_wait_[first.symbol] && tree[at].body.size() > 1 && at + 1 < tree.size() &&
               !tree[at + 1].is_loop && tree[at + 1].symbol == first.symbol;
      };
      while (can_turn()) {
        std::vector<Step>& body = tree[at].body;
        std::rotate(body.begin(), body.begin() + 1, body.end());
        // What comes behind the loop comes before it now.
        std::swap(tree[at], tree[at + 1]);
        ++at;
      }
    }
  }

  // Executes the tree once along the operations; of a statement `count` is how often it was executed.
  void walk(std::vector<Step>& tree) {
    for (Step& step : tree) {
      for (std::uint64_t iteration = 0; step.is_loop && iteration < step.count; ++iteration) walk(step.body);
      if (!step.is_loop) add(executed_[next_++], step);
    }
  }

  static void add(const Step& executed, Step& step) {
    if (step.count++ == 0) {
      const std::uint64_t count = step.count;
      const std::uint32_t symbol = step.symbol;
      step = executed;
      step.count = count;
      step.symbol = symbol;
      step.times_s = {static_cast<float>(executed.process_s)};
      return;
    }
    step.times_s.push_back(static_cast<float>(executed.process_s));
    step.idle_s += executed.idle_s;
    step.bytes += executed.bytes;
    step.wait_forms &= executed.wait_forms;
    for (std::size_t i = 0; i < std::min(step.values.size(), executed.values.size()); ++i)
      step.values[i] += executed.values[i];
  }

  static void finish(std::vector<Step>& tree) {
    for (Step& step : tree) {
      if (step.is_loop) {
        finish(step.body);
        continue;
      }
      const std::uint64_t count = std::exchange(step.count, 1);
      step.idle_s /= static_cast<double>(count);
      step.bytes /= count;
      for (std::uint64_t& value : step.values) value /= count;
    }
  }

  const std::vector<Step>& executed_;
  const Folding folding_;
  std::vector<bool> is_wait_;  // by symbol
  std::size_t next_ = 0;
};

}  // namespace

std::size_t Step::statements() const {
  return is_loop ? statements_of(body) : 1;
}

std::size_t statements_of(const std::vector<Step>& steps) {
  std::size_t all = 0;
  for (const Step& step : steps) all += step.statements();
  return all;
}

Result<std::vector<Step>> executed_steps(const skeleton::ProgramTrace& trace, const skeleton::CommVariables& comms,
                                         Rank rank) {
  Executed executed(trace, comms);
  std::vector<Step> steps;
  for (const Operation& operation : trace.ranks[static_cast<std::size_t>(rank)]) {
    if (operation.kind == OperationKind::kCancel || operation.kind == OperationKind::kRequestFree ||
        (skeleton::has_peer(operation.kind) && operation.peer < 0))
      return invalid_input(fmt::format("rank {} cancels or frees a request, which cannot be extrapolated", rank));
    steps.push_back(executed.step_of(operation));
  }
  return steps;
}

std::vector<Step> folded(const std::vector<Step>& executed, const Folding& folding) {
  return TreeMaker(executed, folding).run();
}

}  // namespace lbf::pattern
