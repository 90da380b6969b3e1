#include "skeleton/scalable_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace lbf::skeleton {

bool starts_request(OperationKind kind) {
  return kind == OperationKind::kIsend || kind == OperationKind::kIrecv ||
         kind == OperationKind::kIcollective;
}

bool visit_phase(const Phase& phase, Standpoint at, const VisitTerm& visit) {
  std::uint32_t first = 0;
  for (const Block& block : phase.blocks) {
    const Rank steps = steps_of(block.range, at.ranks);
    for (Rank i = 0; i < steps; ++i) {
      at.step = block.range == StepRange::kOnce ? 0 : step_at(block.range, at.ranks, i);
      std::uint32_t number = first;
      for (const Term& term : block.terms) {
        const std::uint32_t mine = number++;
        if (!holds(term.guard, at)) continue;
        if (!visit(mine, term, at, i, has_peer(term.kind) ? peer_of(term.peer, at) : -1)) return false;
      }
    }
    first += static_cast<std::uint32_t>(block.terms.size());
  }
  return true;
}

namespace {

bool pairs_by_bits(const std::vector<ScalablePart>& parts) {
  for (const ScalablePart& part : parts) {
    if (part.is_loop) {
      if (pairs_by_bits(part.body)) return true;
      continue;
    }
    for (const Block& block : part.phase.blocks) {
      for (const Term& term : block.terms) {
        if (has_peer(term.kind) &&
            (term.peer.kind == PeerFormula::Kind::kStepXor || term.peer.kind == PeerFormula::Kind::kTurnXor))
          return true;
      }
    }
  }
  return false;
}

bool is_power_of_two(Rank ranks) {
  return (ranks & (ranks - 1)) == 0;
}

class Expansion {
 public:
  Expansion(const ScalableProgram& program, Rank ranks) : program_(program), ranks_(ranks) {
    trace_.ranks.resize(static_cast<std::size_t>(ranks));
    for (const CommFormula& formula : program.comms) {
      std::map<Rank, std::vector<Rank>> members;
      for (Rank rank = 0; rank < ranks; ++rank) members[color_of(formula, at(rank))].push_back(rank);
      std::vector<std::uint32_t>& of_rank = comm_of_.emplace_back(static_cast<std::size_t>(ranks));
      for (auto& [color, list] : members) {
        for (const Rank rank : list)
          of_rank[static_cast<std::size_t>(rank)] = static_cast<std::uint32_t>(trace_.comms.size());
        trace_.comms.push_back(std::move(list));
      }
    }
  }

  ProgramTrace run() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      rank_ = rank;
      slots_.clear();
      parts(program_.parts);
    }
    return std::move(trace_);
  }

 private:
  Standpoint at(Rank rank) const {
    return {rank, ranks_, shape_of(program_.geometry, ranks_).value_or(Shape{1, 1, 1}), 0};
  }

  void parts(const std::vector<ScalablePart>& list) {
    for (const ScalablePart& part : list) {
      if (!part.is_loop) {
        started_.clear();
        visit_phase(part.phase, at(rank_),
                    [&](std::uint32_t number, const Term& term, const Standpoint& here, Rank, Rank peer) {
                      term_of(number, term, here, peer);
                      return true;
                    });
        continue;
      }
      const double count = std::floor(evaluate(part.count, at(rank_)) + 0.5);
      for (double i = 0; i < count; ++i) parts(part.body);
    }
  }

  void term_of(std::uint32_t number, const Term& term, const Standpoint& here, Rank peer) {
    if (has_peer(term.kind) && peer < 0) return;
    Operation o;
    o.kind = term.kind;
    o.flags = term.flags;
    o.op = term.op;
    o.comm = comm_of_[term.comm][static_cast<std::size_t>(rank_)];
    o.values_begin = static_cast<std::uint32_t>(trace_.values.size());
    o.tag = kAnyTag;  // as OperationReader leaves those that have none
    if (term.kind == OperationKind::kWait) {
      o.peer = kAnyRank;
      for (auto it = started_.begin(); it != started_.end();) {
        const bool ends = std::find(term.waits.begin(), term.waits.end(), it->first) != term.waits.end();
        if (ends) {
          trace_.values.push_back(it->second);
          slots_[it->second] = false;
        }
        it = ends ? started_.erase(it) : it + 1;
      }
      o.values_count = static_cast<std::uint32_t>(trace_.values.size()) - o.values_begin;
      if (o.values_count == 0) return;
      std::sort(trace_.values.begin() + o.values_begin, trace_.values.end());
    } else if (term.kind != OperationKind::kEnd) {
      o.peer = has_peer(term.kind) ? peer : 0;
      const NumberFormula& root = term.root;
      o.tag = static_cast<std::int32_t>(evaluate(term.tag, here, peer));
      o.root = root.kind == NumberFormula::Kind::kLast ? static_cast<Rank>(trace_.comms[o.comm].size()) - 1
                                                       : static_cast<Rank>(evaluate(root, here, peer));
      o.bytes = static_cast<Bytes>(std::max(0.0, std::floor(evaluate(term.bytes, here) + 0.5)));
      o.values_count = sizes_of(term.op, o.comm, o.root);
      if (has_peer(term.kind)) o.values_count = 0;
      trace_.values.insert(trace_.values.end(), o.values_count, o.bytes);
    }
    if (starts_request(term.kind)) {
      const auto free = std::find(slots_.begin(), slots_.end(), false);
      o.slot = static_cast<std::uint32_t>(free - slots_.begin());
      if (free == slots_.end()) slots_.push_back(false);
      slots_[o.slot] = true;
      started_.emplace_back(number, o.slot);
    }
    trace_.ranks[static_cast<std::size_t>(rank_)].push_back(o);
  }

  // How many sizes a collective has on this rank, as OperationReader has them.
  std::uint32_t sizes_of(CollectiveOp op, std::uint32_t comm, Rank root) const {
    const std::vector<Rank>& members = trace_.comms[comm];
    const bool is_root = root >= 0 && static_cast<std::size_t>(root) < members.size() &&
                         members[static_cast<std::size_t>(root)] == rank_;
    return static_cast<std::uint32_t>(values_needed(op, members.size(), is_root));
  }

  const ScalableProgram& program_;
  const Rank ranks_;
  Rank rank_ = 0;
  ProgramTrace trace_;
  std::vector<std::vector<std::uint32_t>> comm_of_;               // by program's comm, rank
  std::vector<bool> slots_;                                       // in use
  std::vector<std::pair<std::uint32_t, std::uint32_t>> started_;  // term, slot
};

}  // namespace

bool needs_power_of_two(const ScalableProgram& program) {
  return pairs_by_bits(program.parts) &&
         std::all_of(program.counts.begin(), program.counts.end(), is_power_of_two);
}

Result<void> check_ranks(const ScalableProgram& program, Rank ranks) {
  const std::string text = std::to_string(ranks) + " ranks: ";
  if (ranks < 2) return invalid_input(text + "the formulas hold from 2 ranks on");
  if (!shape_of(program.geometry, ranks))
    return invalid_input(text + "they do not make " + text_of(program.geometry) + ", each at least 2 long");
  if (needs_power_of_two(program) && !is_power_of_two(ranks))
    return invalid_input(text + "no power of two, as those of the recorded runs were");
  return {};
}

Result<ProgramTrace> expand(const ScalableProgram& program, Rank ranks) {
  if (const Result<void> held = check_ranks(program, ranks); !held) return held.error();
  return Expansion(program, ranks).run();
}

}  // namespace lbf::skeleton
