#include "skeleton/phase_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "skeleton/call_name.h"
#include "skeleton/phase_times.h"

namespace lbf::skeleton {
namespace {

constexpr std::size_t kMostNodes = 1000;      // of the search
constexpr std::size_t kMostBlockNodes = 400;  // of blocks tried at one of them
constexpr std::size_t kMostBlockTerms = 4;
constexpr std::size_t kMostOffsets = 64;
constexpr double kElementBytes = 8;  // sizes that are shares of a whole are rounded to elements

bool is_collective(OperationKind kind) {
  return kind == OperationKind::kCollective || kind == OperationKind::kIcollective;
}

// What a term and an operation must have in common.
using Key = std::tuple<OperationKind, std::uint8_t, CollectiveOp, std::uint32_t>;

Key key_of(const RankItem& item, std::uint32_t comm) {
  const Operation& o = item.operation;
  return {o.kind, static_cast<std::uint8_t>(o.flags & (kFlagSync | kFlagBuffered)), o.op,
          o.kind == OperationKind::kWait || o.kind == OperationKind::kEnd ? 0 : comm};
}

bool has_bytes(const Operation& o) {
  if (o.kind == OperationKind::kWait || o.kind == OperationKind::kEnd || o.kind == OperationKind::kProbe)
    return false;
  return !is_collective(o.kind) || (o.op != CollectiveOp::kBarrier && o.op != CollectiveOp::kCommCreate);
}

struct Sample {  // an operation that a term took
  std::size_t stretch;
  Standpoint at;
  Rank peer;
  const RankItem* item;
};

struct State {
  std::vector<std::uint32_t> position;                                     // by stretch
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> open;  // by stretch: slot, term
  std::size_t taken = 0;
  std::uint32_t terms = 0;
};

class Search {
 public:
  Search(const std::vector<RankStretch>& stretches, const Geometry& geometry, const PhaseFitOptions& options)
      : stretches_(stretches), geometry_(geometry), options_(options) {
    for (const RankStretch& stretch : stretches) all_ += stretch.items.size();
    fewest_ = stretches.front().at.ranks;
    for (const RankStretch& stretch : stretches) fewest_ = std::min(fewest_, stretch.at.ranks);
  }

  bool run() {
    State state;
    state.position.resize(stretches_.size(), 0);
    state.open.resize(stretches_.size());
    return search(state);
  }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<std::string>& doubts() const { return doubts_; }
  std::size_t explained() const { return furthest_; }
  const std::string& why() const { return why_; }

 private:
  struct Candidate {
    State state;
    Block block;
    std::vector<std::string> doubts;
  };

  const RankItem* head(const State& state, std::size_t stretch) const {
    const std::uint32_t at = state.position[stretch];
    return at < stretches_[stretch].items.size() ? stretches_[stretch].items[at] : nullptr;
  }
  Key head_key(const State& state, std::size_t stretch) const {
    return key_of(*head(state, stretch), stretches_[stretch].comms[state.position[stretch]]);
  }

  // Of a wait: the terms whose requests it completes.
  static std::set<std::uint32_t> waited(const State& state, std::size_t stretch, const RankItem& item) {
    std::set<std::uint32_t> terms;
    for (const std::uint32_t slot : item.slots) {
      for (const auto& [open, term] : state.open[stretch]) {
        if (open == slot) terms.insert(term);
      }
    }
    return terms;
  }

  // `term` on all stretches, at the i-th step of its block. False: some rank would be left behind.
  bool apply(State& state, const Term& term, std::uint32_t number, StepRange range, Rank i,
             std::vector<Sample>& samples) const {
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      Standpoint at = stretches_[s].at;
      if (i >= steps_of(range, at.ranks)) continue;
      at.step = range == StepRange::kOnce ? 0 : step_at(range, at.ranks, i);
      if (!holds(term.guard, at)) continue;
      Rank peer = -1;
      if (has_peer(term.kind)) {
        peer = peer_of(term.peer, at);
        if (peer < 0) continue;
      }
      std::size_t ending = 0;
      if (term.kind == OperationKind::kWait) {
        for (const auto& [slot, by] : state.open[s])
          ending += std::find(term.waits.begin(), term.waits.end(), by) != term.waits.end() ? 1 : 0;
        if (ending == 0) continue;
      }
      const RankItem* const item = head(state, s);
      if (item == nullptr || head_key(state, s) != Key{term.kind, term.flags, term.op, term.comm})
        return false;
      if (has_peer(term.kind) && item->operation.peer != peer) return false;
      if (term.kind == OperationKind::kWait) {
        if (item->slots.size() != ending) return false;
        for (const std::uint32_t by : waited(state, s, *item)) {
          if (std::find(term.waits.begin(), term.waits.end(), by) == term.waits.end()) return false;
        }
        std::erase_if(state.open[s], [&](const auto& each) {
          return std::find(item->slots.begin(), item->slots.end(), each.first) != item->slots.end();
        });
      }
      if (starts_request(term.kind)) state.open[s].emplace_back(item->operation.slot, number);
      ++state.position[s];
      ++state.taken;
      samples.push_back({s, at, peer, item});
    }
    return true;
  }

  // Tag, root and bytes from what the term took.
  bool finish(Term& term, const std::vector<Sample>& samples) {
    if (samples.empty()) return false;
    if (has_peer(term.kind) && !find_number(
                                   term.tag, samples, [](const Operation& o) { return o.tag; }, false))
      return because(term, "its tags are no function of rank and peer");
    if (is_collective(term.kind) && !find_number(
                                        term.root, samples, [](const Operation& o) { return o.root; }, true))
      return because(term, "its roots differ between the runs");
    doubt_.clear();
    if (!has_bytes(samples.front().item->operation)) return true;
    if (!find_bytes(term, samples)) return false;
    if (!doubt_.empty()) doubt_ = "the sizes of " + name_of(term) + " fit " + doubt_;
    return true;
  }

  template <typename Of>
  static bool find_number(NumberFormula& formula, const std::vector<Sample>& samples, const Of& of,
                          bool is_root) {
    using Kind = NumberFormula::Kind;
    const Sample& first = samples.front();
    const std::int64_t value = of(first.item->operation);
    std::vector<NumberFormula> all{{Kind::kConstant, value}};
    if (is_root) {
      all.push_back({Kind::kLast, 0});
    } else {
      all.push_back({Kind::kRank, value - first.at.rank});
      all.push_back({Kind::kPeer, value - first.peer});
      all.push_back({Kind::kStep, value - first.at.step});
    }
    for (const NumberFormula& each : all) {
      formula = each;
      if (std::all_of(samples.begin(), samples.end(),
                      [&](const Sample& s) { return evaluate(each, s.at, s.peer) == of(s.item->operation); }))
        return true;
    }
    return false;
  }

  // The bytes of a v-collective's operation: one size for all peers. Empty: they differ.
  static std::optional<double> bytes_of(const RankItem& item, double slack) {
    if (item.sizes.empty()) return item.bytes();
    const auto [least, most] = std::minmax_element(item.sizes.begin(), item.sizes.end());
    if (static_cast<double>(*most - *least) > slack * static_cast<double>(*most)) return {};
    double sum = 0;
    for (const std::uint64_t size : item.sizes) sum += static_cast<double>(size);
    return sum / static_cast<double>(item.sizes.size());
  }

  bool find_bytes(Term& term, const std::vector<Sample>& samples) {
    struct Sum {
      Standpoint at;
      double sum = 0, least = 0, most = 0;
      std::size_t count = 0;
    };
    std::map<std::pair<Rank, Rank>, Sum> sums;  // by ranks, step
    for (const Sample& sample : samples) {
      const std::optional<double> bytes = bytes_of(*sample.item, options_.similarity);
      if (!bytes) return because(term, "its sizes differ between peers");
      Sum& sum = sums[{sample.at.ranks, sample.at.step}];
      if (sum.count == 0) sum = {sample.at, 0, *bytes, *bytes, 0};
      sum.sum += *bytes;
      sum.least = std::min(sum.least, *bytes);
      sum.most = std::max(sum.most, *bytes);
      ++sum.count;
    }
    std::vector<LawSample> means;
    for (const auto& [key, sum] : sums) {
      const double slack = std::max(std::min(kElementBytes, 0.02 * sum.most), options_.similarity * sum.most);
      if (sum.most - sum.least > slack) {
        return because(term, "its sizes differ between ranks (" + number(sum.least) + " to " +
                                 number(sum.most) + " bytes with " + std::to_string(key.first) + ")");
      }
      means.push_back({sum.at, sum.sum / static_cast<double>(sum.count)});
    }
    const LawTolerance tolerance{kElementBytes, std::min(options_.similarity, 0.02)};
    doubt_.clear();
    const std::optional<RankLaw> law = fit_law(means, geometry_, tolerance, &doubt_);
    if (!law) {
      std::string values;
      for (std::size_t i = 0; i < means.size() && i < 6; ++i)
        values += (i > 0 ? ", " : "") + number(means[i].value) + " with " + std::to_string(means[i].at.ranks);
      return because(term, "its sizes follow no law of the rank count (bytes: " + values + ")");
    }
    term.bytes = *law;
    return true;
  }

  static std::string number(double value) {
    std::string text = std::to_string(std::llround(value));
    return text;
  }

  static std::string name_of(const Term& term) {
    Operation o;
    o.kind = term.kind;
    o.flags = term.flags;
    o.op = term.op;
    return call_name(o);
  }

  bool because(const Term& term, const std::string& what) {
    law_ = name_of(term) + ": " + what;
    return false;
  }

  // The values that formulas may have: what the next operations of this kind suggest.
  void suggestions(const State& state, const Key& key, std::vector<int>& offsets,
                   std::vector<int>& roots) const {
    std::set<int> found;
    std::set<int> peers;
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      if (head(state, s) == nullptr || head_key(state, s) != key) continue;
      const Rank peer = head(state, s)->operation.peer;
      const Rank offset = peer - stretches_[s].at.rank;
      found.insert(offset);
      found.insert(offset > 0 ? offset - stretches_[s].at.ranks : offset + stretches_[s].at.ranks);
      if (peer < fewest_) peers.insert(peer);
    }
    offsets.assign(found.begin(), found.end());
    std::stable_sort(offsets.begin(), offsets.end(), [](int a, int b) { return std::abs(a) < std::abs(b); });
    offsets.resize(std::min(offsets.size(), kMostOffsets));
    roots.assign(peers.begin(), peers.end());
  }

  // All terms of one key that may come next at the first step of a block.
  std::vector<Term> terms_of(const State& state, const Key& key, StepRange range) const {
    Term term;
    std::tie(term.kind, term.flags, term.op, term.comm) = key;
    std::vector<Term> terms;
    const auto with_guards = [&](int guards) {
      for (int guard = 0; guard < guards; ++guard) {
        term.guard = static_cast<Guard>(guard);
        terms.push_back(term);
      }
    };
    // Formulas of a step say themselves whom they concern, but for those of a root that takes turns.
    const bool turns = range == StepRange::kTurns || range == StepRange::kRanks;
    const int guards = range == StepRange::kOnce ? kGuards
                       : turns                   ? static_cast<int>(Guard::kNotFirst) + 1
                                                 : 1;
    if (has_peer(term.kind)) {
      std::vector<int> offsets, roots;
      suggestions(state, key, offsets, roots);
      for (const PeerFormula& formula : peer_formulas(geometry_, range, offsets, roots)) {
        term.peer = formula;
        with_guards(guards);
      }
    } else if (term.kind == OperationKind::kWait) {
      std::set<std::uint32_t> all;
      std::set<std::set<std::uint32_t>> different;
      for (std::size_t s = 0; s < stretches_.size(); ++s) {
        if (head(state, s) == nullptr || head(state, s)->operation.kind != OperationKind::kWait) continue;
        const std::set<std::uint32_t> one = waited(state, s, *head(state, s));
        all.insert(one.begin(), one.end());
        different.insert(one);
      }
      different.insert(all);
      for (auto each = different.rbegin(); each != different.rend(); ++each) {
        if (each->empty()) continue;
        term.waits.assign(each->begin(), each->end());
        with_guards(guards);
      }
    } else if (range == StepRange::kOnce) {
      with_guards(guards);
    }
    return terms;
  }

  std::set<Key> next_keys(const State& state) const {
    std::set<Key> keys;
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      if (head(state, s) != nullptr) keys.insert(head_key(state, s));
    }
    return keys;
  }

  static void add_candidate(std::vector<Candidate>& candidates, State state, Block block,
                            std::vector<std::string> doubts) {
    for (const Candidate& known : candidates) {
      if (known.state.position == state.position && known.state.open == state.open) return;
    }
    candidates.push_back({std::move(state), std::move(block), std::move(doubts)});
  }

  void add_terms(const State& state, std::vector<Candidate>& candidates) {
    for (const Key& key : next_keys(state)) {
      for (Term& term : terms_of(state, key, StepRange::kOnce)) {
        State next = state;
        std::vector<Sample> samples;
        if (!apply(next, term, state.terms, StepRange::kOnce, 0, samples) || samples.empty()) continue;
        if (!finish(term, samples)) {
          if (next.taken > furthest_) furthest_ = next.taken, why_ = law_;
          continue;
        }
        ++next.terms;
        add_candidate(candidates, std::move(next), {StepRange::kOnce, {term}},
                      doubt_.empty() ? std::vector<std::string>() : std::vector{doubt_});
      }
    }
  }

  // `first`: what the block's terms did at its first step. Tries the whole block, and one more term.
  void extend_block(const State& start, const State& first, StepRange range, const std::vector<Term>& terms,
                    std::vector<Candidate>& candidates) {
    if (++block_nodes_ > kMostBlockNodes) return;
    // Without a message that depends on the step it is no block.
    if (!terms.empty() && has_peer(terms.front().kind)) close_block(start, range, terms, candidates);
    if (terms.size() == kMostBlockTerms) return;
    for (const Key& key : next_keys(first)) {
      for (const Term& term : terms_of(first, key, range)) {
        if (terms.empty() && !has_peer(term.kind)) continue;
        State next = first;
        std::vector<Sample> samples;
        if (!apply(next, term, first.terms, range, 0, samples) || samples.empty()) continue;
        ++next.terms;
        std::vector<Term> longer = terms;
        longer.push_back(term);
        extend_block(start, next, range, longer, candidates);
      }
    }
  }

  void close_block(const State& start, StepRange range, std::vector<Term> terms,
                   std::vector<Candidate>& candidates) {
    Rank most = 0;
    for (const RankStretch& stretch : stretches_) most = std::max(most, steps_of(range, stretch.at.ranks));
    State state = start;
    std::vector<std::vector<Sample>> samples(terms.size());
    for (Rank i = 0; i < most; ++i) {
      for (std::size_t t = 0; t < terms.size(); ++t) {
        if (!apply(state, terms[t], start.terms + static_cast<std::uint32_t>(t), range, i, samples[t]))
          return;
      }
    }
    std::vector<std::string> doubts;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (!finish(terms[t], samples[t])) return;
      if (!doubt_.empty()) doubts.push_back(doubt_);
    }
    state.terms += static_cast<std::uint32_t>(terms.size());
    add_candidate(candidates, std::move(state), {range, std::move(terms)}, std::move(doubts));
  }

  bool search(const State& state) {
    if (state.taken == all_) {
      for (const auto& open : state.open) {
        if (!open.empty()) {
          why_ = "a request is under way from one iteration of a loop to the next, or into a loop";
          return false;
        }
      }
      return true;
    }
    if (++nodes_ > kMostNodes || !seen_.insert({state.position, state.open}).second) return false;
    std::vector<Candidate> candidates;
    add_terms(state, candidates);
    for (const StepRange range : kStepRanges) {
      block_nodes_ = 0;
      extend_block(state, state, range, {}, candidates);
    }
    if (candidates.empty() && (state.taken > furthest_ || why_.empty())) {
      furthest_ = state.taken;
      why_ = stuck_at(state);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.state.taken > b.state.taken; });
    for (Candidate& candidate : candidates) {
      blocks_.push_back(std::move(candidate.block));
      const std::size_t doubts = doubts_.size();
      doubts_.insert(doubts_.end(), candidate.doubts.begin(), candidate.doubts.end());
      if (search(candidate.state)) return true;
      doubts_.resize(doubts);
      blocks_.pop_back();
    }
    return false;
  }

  std::string stuck_at(const State& state) const {
    for (std::size_t s = stretches_.size(); s-- > 0;) {
      const RankItem* const item = head(state, s);
      if (item == nullptr) continue;
      const Standpoint& at = stretches_[s].at;
      std::string text =
          "rank " + std::to_string(at.rank) + " of " + std::to_string(at.ranks) + ": " +
          (item->operation.kind == OperationKind::kEnd ? "the end" : call_name(item->operation));
      if (has_peer(item->operation.kind)) {
        return text + " with rank " + std::to_string(item->operation.peer) +
               ": no formula of rank and rank count has this peer on every rank of every run";
      }
      return text + ": not all ranks of all runs come here alike";
    }
    return "no formula";
  }

  const std::vector<RankStretch>& stretches_;
  const Geometry& geometry_;
  const PhaseFitOptions& options_;
  std::size_t all_ = 0;
  Rank fewest_ = 0;
  std::size_t nodes_ = 0;
  std::size_t block_nodes_ = 0;
  std::size_t furthest_ = 0;
  std::string why_;
  std::string doubt_;  // of the last term that was finished
  std::vector<std::string> doubts_;
  std::string law_;  // why a term that took its operations was refused all the same
  std::vector<Block> blocks_;
  // States that were searched in vain.
  std::set<std::pair<std::vector<std::uint32_t>,
                     std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>>>
      seen_;
};

}  // namespace

Result<PhaseFit> fit_phase(const std::vector<RankStretch>& stretches, const Geometry& geometry,
                           const PhaseFitOptions& options, std::size_t& explained) {
  Search search(stretches, geometry, options);
  const bool found = search.run();
  explained = search.explained();
  if (!found) return invalid_input(search.why().empty() ? "no formulas were found in time" : search.why());
  PhaseFit fit{{search.blocks()}, search.doubts()};
  explained = 0;
  for (const RankStretch& stretch : stretches) explained += stretch.items.size();
  if (Result<void> timed = fit_times(stretches, geometry, options, fit); !timed) return timed.error();
  return fit;
}

}  // namespace lbf::skeleton
