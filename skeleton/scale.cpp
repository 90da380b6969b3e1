#include "skeleton/scale.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "skeleton/similarity.h"

namespace lbf::skeleton {
namespace {

// Everything of an exchange but its sizes and times: equal for exchanges that differ in these alone.
std::vector<std::uint64_t> structure_of(const Exchange& exchange) {
  std::vector<std::uint64_t> structure;
  for (const Exchange::Part& part : exchange.parts) {
    structure.push_back(static_cast<std::uint64_t>(part.rank));
    structure.push_back(part.count);
  }
  for (const Operation& o : exchange.operations) {
    structure.insert(
        structure.end(),
        {static_cast<std::uint64_t>(o.kind), std::uint64_t{o.flags}, static_cast<std::uint64_t>(o.op),
         std::uint64_t{o.comm}, static_cast<std::uint64_t>(o.peer), static_cast<std::uint64_t>(o.tag),
         static_cast<std::uint64_t>(o.root), std::uint64_t{o.slot}, std::uint64_t{o.values_count}});
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
  Scaler(const Signature& signature, std::uint64_t factor)
      : signature_(signature),
        occurrences_(signature.exchanges.size(), 0),
        left_iterations_(signature.bodies.size(), 0),
        iterations_seen_(signature.bodies.size(), 0) {
    result_.factor = factor;
  }

  ScaledSignature run() {
    count_left_iterations();
    reduce(signature_.elements);
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
  };

  // How many iterations of each body are left over by the loops that are executed, all places together. A body is younger than
  // those of its loops.
  void count_left_iterations() {
    count_left_by(signature_.elements, 1);
    for (std::size_t body = left_iterations_.size(); body-- > 0;)
      count_left_by(signature_.bodies[static_cast<std::uint32_t>(body)], left_iterations_[body] % result_.factor);
  }
  void count_left_by(const Elements& elements, std::uint64_t times) {
    for (const Element& element : elements) {
      if (element.is_loop) left_iterations_[element.value] += times * (element.count % result_.factor);
    }
  }

  // Step 1. What cannot be divided by K goes to reduced_ as symbols of the signature.
  void reduce(const Elements& elements) {
    const std::uint64_t factor = result_.factor;
    for (const Element& element : elements) {
      if (!element.is_loop) {
        reduced_.push_back({element});
        ++occurrences_[element.value];
        continue;
      }
      const Elements& body = signature_.bodies[element.value];
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
      result_.in_loops +=
          divided * executed_length<std::uint64_t>(signature_.bodies, body, [](auto) { return 1ULL; });
    }
  }

  void keep_whole(const Element& loop) {
    const Elements body = whole_elements(signature_.bodies[loop.value]);
    if (loop.count > 1) {
      reduced_.push_back({{result_.bodies.add(body), true, loop.count}, true});
    } else {
      for (const Element& element : body) reduced_.push_back({element, true});
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
    std::vector<std::uint64_t> seen(occurrences_.size(), 0);
    std::vector<std::vector<std::size_t>> rest;  // by structure: where in reduced_
    for (std::size_t at = 0; at < reduced_.size(); ++at) {
      if (reduced_[at].is_whole) continue;
      const std::uint32_t value = reduced_[at].element.value;
      const Exchange& exchange = signature_.exchanges[value];
      const std::uint64_t index = seen[value]++;
      const bool may_go = exchange.is_closed && !exchange.is_end;
      if (may_go && index < occurrences_[value] / factor * factor) {
        ++result_.grouped;
        if (index % factor == 0) divisor_[at] = 1;
        continue;
      }
      ++result_.divided;
      result_.divided_s += exchange.seconds;
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
        leave_the_longest(
            std::span(places).subspan(begin, std::min<std::size_t>(factor, places.size() - begin)));
    }
  }

  // The same for exchanges of the same structure, from 0 on.
  std::uint32_t structure_number(std::uint32_t exchange) {
    const auto [known, added] = structure_numbers_.try_emplace(exchange, 0);
    if (added) {
      const auto number = static_cast<std::uint32_t>(structures_.size());
      known->second =
          structures_.try_emplace(structure_of(signature_.exchanges[exchange]), number).first->second;
    }
    return known->second;
  }

  void leave_the_longest(std::span<const std::size_t> places) {
    const auto seconds = [&](std::size_t at) { return signature_.exchanges[reduced_[at].element.value].seconds; };
    const std::size_t longest = *std::max_element(
        places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
    double all_s = 0;
    for (const std::size_t at : places) all_s += seconds(at);
    const double factor = static_cast<double>(result_.factor);
    const double share = all_s > 0 ? all_s / seconds(longest) : static_cast<double>(places.size());
    divisor_[longest] = std::max(1.0, six_digits(factor / share));
  }

  std::uint32_t symbol(std::uint32_t exchange, double divisor) {
    const ScaledExchange scaled{exchange, divisor};
    const auto [known, added] = numbers_.emplace(scaled, static_cast<std::uint32_t>(result_.symbols.size()));
    if (added) result_.symbols.push_back(scaled);
    return known->second;
  }

  const Signature& signature_;
  ScaledSignature result_;
  std::map<ScaledExchange, std::uint32_t> numbers_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> structures_;
  std::unordered_map<std::uint32_t, std::uint32_t> structure_numbers_;  // by exchange
  std::vector<Reduced> reduced_;
  std::vector<double> divisor_;                 // by element of reduced_; 0: left out
  std::vector<std::uint64_t> occurrences_;      // by exchange: in the unreduced part
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
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.share > b.share; });
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
    return executed_length<double>(signature_.bodies, elements, [&](std::uint32_t symbol) {
      return signature_.exchanges[symbol].seconds;
    });
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
  return Scaler(signature, factor).run();
}

DominantSequence dominant_sequence(const Signature& signature) {
  return Dominant(signature).find();
}

}  // namespace lbf::skeleton
