#include "skeleton/scale.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "skeleton/detached.h"
#include "skeleton/similarity.h"
#include "skeleton/ties.h"

namespace lbf::skeleton {
namespace {

// Everything of an exchange but its sizes, times and tags: equal for exchanges that differ in these alone. (A
// tag is often the number of a step.)
std::vector<std::uint64_t> structure_of(const Exchange& exchange) {
  std::vector<std::uint64_t> structure;
  for (const Exchange::Part& part : exchange.parts) {
    const auto operations = std::span(exchange.operations).subspan(part.begin, part.count);
    structure.push_back(static_cast<std::uint64_t>(part.rank));
    structure.push_back(static_cast<std::uint64_t>(std::count_if(
        operations.begin(), operations.end(), [](const Operation& o) { return o.kind != OperationKind::kCompute; })));
  }
  for (const Operation& o : exchange.operations) {
    if (o.kind == OperationKind::kCompute) continue;
    structure.insert(structure.end(),
                     {static_cast<std::uint64_t>(o.kind), std::uint64_t{o.flags}, static_cast<std::uint64_t>(o.op),
                      std::uint64_t{o.comm}, static_cast<std::uint64_t>(o.peer), static_cast<std::uint64_t>(o.root),
                      std::uint64_t{o.slot}, std::uint64_t{o.values_count}});
    if (has_sizes(o)) continue;
    structure.insert(structure.end(), exchange.values.begin() + o.values_begin,
                     exchange.values.begin() + o.values_begin + o.values_count);
  }
  return structure;
}

// As it is written in a skeleton, so that the program and the signature say the same.
double six_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return std::strtod(text.data(), nullptr);
}

class Scaler {
 public:
  // taken_apart: by body of the signature, whether loops of it are rest.
  Scaler(const Signature& signature, std::uint64_t factor, const std::vector<bool>& taken_apart)
      : signature_(signature),
        taken_apart_(taken_apart),
        left_iterations_(signature.bodies.size(), 0),
        iterations_seen_(signature.bodies.size(), 0) {
    result_.factor = factor;
    count_left_iterations();
    reduce(signature_.elements);
  }

  // Detaches what can be; or else says of which bodies loops are to be taken apart first.
  std::set<std::uint32_t> detach() {
    if (result_.factor == 1) return {};
    Ties ties(reduced_.size(), signature_.ranks);
    std::vector<std::uint64_t> open;  // by place: exchanges that are not closed
    for (std::uint32_t at = 0; at < reduced_.size(); ++at) open.push_back(tie(reduced_[at], at, ties));
    std::unordered_map<std::uint32_t, Group> groups;
    for (std::uint32_t at = 0; at < reduced_.size(); ++at) {
      if (open[at] > 0) add(reduced_[at], open[at], groups[ties.group_of(at)]);
    }
    std::set<std::uint32_t> apart;
    for (const auto& [number, group] : groups) {
      if (!group.has_wildcards && group.in_rest > group.in_loops * result_.factor)
        apart.insert(group.bodies.begin(), group.bodies.end());
    }
    if (!apart.empty()) return apart;
    for (std::uint32_t at = 0; at < reduced_.size(); ++at) {
      if (open[at] == 0) continue;
      const Group& group = groups[ties.group_of(at)];
      if (group.bodies.empty() && !group.has_wildcards)
        reduced_[at].element.value = detached_number(reduced_[at].element.value);
    }
    return {};
  }

  ScaledSignature finish() {
    leave_one_of_each_group();
    LoopFolder folder(result_.bodies);
    for (std::size_t at = 0; at < reduced_.size(); ++at) {
      if (reduced_[at].is_whole) {
        folder.push(reduced_[at].element);
      } else if (divisor_[at] > 0) {
        folder.push_symbol(symbol(reduced_[at].element.value, divisor_[at]));
      }
    }
    result_.elements = folder.finish();
    return std::move(result_);
  }

 private:
  // Of the skeleton, whole; or a symbol of the signature, for step 2.
  struct Reduced {
    Element element;
    bool is_whole = false;
    std::uint32_t body = 0;  // of a whole one: the loop of the signature that it comes from
  };

  // Tied exchanges that are not closed.
  struct Group {
    std::uint64_t in_rest = 0;
    std::uint64_t in_loops = 0;  // of the skeleton
    std::set<std::uint32_t> bodies;
    // Whose messages meet by chance: to end requests earlier could make ranks wait for each other.
    bool has_wildcards = false;
  };

  const Exchange& exchange(std::uint32_t number) const { return result_.exchange_of(signature_, number); }

  // Executes `each` for the exchanges of a place, those of a loop once; how many are executed that are not
  // closed.
  template <typename Function>
  std::uint64_t for_each_open(const Element& element, bool is_whole, const Function& each) const {
    if (element.is_loop) {
      std::uint64_t open = 0;
      for (const Element& inner : result_.bodies[element.value]) open += for_each_open(inner, is_whole, each);
      return open * element.count;
    }
    const Exchange& mine = exchange(is_whole ? result_.symbols[element.value].exchange : element.value);
    if (mine.is_closed) return 0;
    each(mine);
    return 1;
  }
  std::uint64_t tie(const Reduced& place, std::uint32_t at, Ties& ties) const {
    return for_each_open(place.element, place.is_whole, [&](const Exchange& open) { ties.execute(at, open); });
  }
  void add(const Reduced& place, std::uint64_t open, Group& group) const {
    (place.is_whole ? group.in_loops : group.in_rest) += open;
    if (place.is_whole) group.bodies.insert(place.body);
    for_each_open(place.element, place.is_whole, [&](const Exchange& mine) {
      group.has_wildcards =
          group.has_wildcards || std::any_of(mine.operations.begin(), mine.operations.end(), [](const Operation& o) {
            return is_receive(o.kind) && (o.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0;
          });
    });
  }

  std::uint32_t detached_number(std::uint32_t number) {
    const auto next = static_cast<std::uint32_t>(signature_.exchanges.size() + result_.detached.size());
    const auto [known, added] = detached_numbers_.try_emplace(number, next);
    if (added) result_.detached.push_back(detached(signature_.exchanges[number]));
    return known->second;
  }

  // How many iterations of each body are left over by the loops that are executed, all places together. A
  // body is younger than those of its loops.
  void count_left_iterations() {
    count_left_by(signature_.elements, 1);
    for (std::size_t body = left_iterations_.size(); body-- > 0;) {
      count_left_by(signature_.bodies[static_cast<std::uint32_t>(body)],
                    taken_apart_[body] ? left_iterations_[body] : left_iterations_[body] % result_.factor);
    }
  }
  void count_left_by(const Elements& elements, std::uint64_t times) {
    for (const Element& element : elements) {
      if (!element.is_loop) continue;
      left_iterations_[element.value] +=
          times * (taken_apart_[element.value] ? element.count : element.count % result_.factor);
    }
  }

  // Step 1. What cannot be divided by K goes to reduced_ as symbols of the signature.
  void reduce(const Elements& elements) {
    const std::uint64_t factor = result_.factor;
    for (const Element& element : elements) {
      if (!element.is_loop) {
        reduced_.push_back({element});
        continue;
      }
      const Elements& body = signature_.bodies[element.value];
      if (taken_apart_[element.value]) {
        for (std::uint64_t i = 0; i < element.count; ++i) reduce(body);
        continue;
      }
      const std::uint64_t whole = element.count / factor;
      if (whole > 0) keep_whole({element.value, true, whole});
      std::uint64_t divided = whole * factor;
      for (std::uint64_t i = divided; i < element.count; ++i) {
        const std::uint64_t index = iterations_seen_[element.value]++;
        if (index >= left_iterations_[element.value] / factor * factor) {
          reduce(body);
          continue;
        }
        ++divided;
        if (index % factor == 0) keep_whole({element.value, true, 1});
      }
      if (divided == 0) continue;
      result_.in_loops += divided * executed_length<std::uint64_t>(signature_.bodies, body, [](auto) { return 1ULL; });
    }
  }

  void keep_whole(const Element& loop) {
    const Elements body = whole_elements(signature_.bodies[loop.value]);
    if (loop.count > 1) {
      reduced_.push_back({{result_.bodies.add(body), true, loop.count}, true, loop.value});
    } else {
      for (const Element& element : body) reduced_.push_back({element, true, loop.value});
    }
  }

  // A loop's body as it is, in the symbols of the scaled signature.
  Elements whole_elements(const Elements& body) {
    Elements kept;
    kept.reserve(body.size());
    for (const Element& element : body) {
      if (element.is_loop) {
        const Elements inner = whole_elements(signature_.bodies[element.value]);
        kept.push_back({result_.bodies.add(inner), true, element.count});
      } else {
        kept.push_back({symbol(element.value, 1), false, 1});
      }
    }
    return kept;
  }

  // Steps 2 and 3: fills divisor_.
  void leave_one_of_each_group() {
    const std::uint64_t factor = result_.factor;
    divisor_.assign(reduced_.size(), 0);
    const std::size_t exchanges = signature_.exchanges.size() + result_.detached.size();
    std::vector<std::uint64_t> occurrences(exchanges, 0);
    for (const Reduced& place : reduced_) {
      if (!place.is_whole) ++occurrences[place.element.value];
    }
    std::vector<std::uint64_t> seen(exchanges, 0);
    std::vector<std::vector<std::size_t>> rest;  // by structure: where in reduced_
    for (std::size_t at = 0; at < reduced_.size(); ++at) {
      if (reduced_[at].is_whole) continue;
      const std::uint32_t value = reduced_[at].element.value;
      const Exchange& mine = exchange(value);
      const std::uint64_t index = seen[value]++;
      const bool may_go = mine.is_closed && !mine.is_end;
      if (may_go && index < occurrences[value] / factor * factor) {
        ++result_.grouped;
        if (index % factor == 0) divisor_[at] = 1;
        continue;
      }
      ++result_.divided;
      result_.divided_s += mine.seconds;
      if (may_go) {
        const std::uint32_t structure = structure_number(value);
        rest.resize(std::max<std::size_t>(rest.size(), structure + 1));
        rest[structure].push_back(at);
      } else {
        divisor_[at] = six_digits(static_cast<double>(factor));
      }
    }
    for (const std::vector<std::size_t>& places : rest) {
      for (std::size_t begin = 0; begin < places.size(); begin += factor)
        leave_the_longest(std::span(places).subspan(begin, std::min<std::size_t>(factor, places.size() - begin)));
    }
  }

  // The same for exchanges of the same structure, from 0 on.
  std::uint32_t structure_number(std::uint32_t of) {
    const auto [known, added] = structure_numbers_.try_emplace(of, 0);
    if (added) {
      const auto number = static_cast<std::uint32_t>(structures_.size());
      known->second = structures_.try_emplace(structure_of(exchange(of)), number).first->second;
    }
    return known->second;
  }

  void leave_the_longest(std::span<const std::size_t> places) {
    const auto seconds = [&](std::size_t at) { return exchange(reduced_[at].element.value).seconds; };
    const std::size_t longest = *std::max_element(
        places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
    double all_s = 0;
    for (const std::size_t at : places) all_s += seconds(at);
    const double factor = static_cast<double>(result_.factor);
    const double share = all_s > 0 ? all_s / seconds(longest) : static_cast<double>(places.size());
    divisor_[longest] = std::max(1.0, six_digits(factor / share));
  }

  std::uint32_t symbol(std::uint32_t number, double divisor) {
    const ScaledExchange scaled{number, divisor};
    const auto [known, added] = numbers_.emplace(scaled, static_cast<std::uint32_t>(result_.symbols.size()));
    if (added) result_.symbols.push_back(scaled);
    return known->second;
  }

  const Signature& signature_;
  const std::vector<bool>& taken_apart_;
  ScaledSignature result_;
  std::map<ScaledExchange, std::uint32_t> numbers_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> structures_;
  std::unordered_map<std::uint32_t, std::uint32_t> structure_numbers_;  // by exchange
  std::unordered_map<std::uint32_t, std::uint32_t> detached_numbers_;   // by exchange
  std::vector<Reduced> reduced_;
  std::vector<double> divisor_;                 // by element of reduced_; 0: left out
  std::vector<std::uint64_t> left_iterations_;  // by body
  std::vector<std::uint64_t> iterations_seen_;  // by body: of those
};

class Dominant {
 public:
  explicit Dominant(const Signature& signature) : signature_(signature) {}

  DominantSequence find() {
    const double all_s = seconds(signature_.elements);
    for (const Element& element : signature_.elements) {
      if (element.is_loop && all_s > 0) descend(element, 1, all_s);
    }
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
    DominantSequence result;
    for (const DominantSequence::Part& part : found_) {
      if (result.share >= kDominantShare) break;
      result.parts.push_back(part);
      result.share += part.share;
      result.shortest_good_s += part.seconds;
    }
    if (result.share < kDominantShare) return {{}, 0, all_s};
    return result;
  }

 private:
  double seconds(const Elements& elements) const {
    return executed_length<double>(signature_.bodies, elements,
                                   [&](std::uint32_t symbol) { return signature_.exchanges[symbol].seconds; });
  }

  // `times`: how often the loop is entered.
  void descend(const Element& loop, std::uint64_t times, double all_s) {
    const Elements& body = signature_.bodies[loop.value];
    const double iteration_s = seconds(body);
    const double runs = static_cast<double>(times) * static_cast<double>(loop.count);
    for (const Element& element : body) {
      if (!element.is_loop) continue;
      const double inner_s = static_cast<double>(element.count) * seconds(signature_.bodies[element.value]);
      if (inner_s >= kInnerShare * iteration_s) return descend(element, times * loop.count, all_s);
    }
    const auto known =
        std::find_if(found_.begin(), found_.end(), [&](const auto& part) { return part.body == loop.value; });
    if (known != found_.end()) {
      known->share += runs * iteration_s / all_s;
    } else {
      found_.push_back({loop.value, runs * iteration_s / all_s, iteration_s});
    }
  }

  const Signature& signature_;
  std::vector<DominantSequence::Part> found_;
};

}  // namespace

ScaledSignature scale(const Signature& signature, std::uint64_t factor) {
  std::vector<bool> taken_apart(signature.bodies.size(), false);
  for (;;) {
    Scaler scaler(signature, factor, taken_apart);
    const std::set<std::uint32_t> more = scaler.detach();
    if (more.empty()) return scaler.finish();
    for (const std::uint32_t body : more) taken_apart[body] = true;
  }
}

DominantSequence dominant_sequence(const Signature& signature) {
  return Dominant(signature).find();
}

}  // namespace lbf::skeleton
