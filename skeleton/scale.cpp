#include "skeleton/scale.h"

#include <algorithm>
#include <utility>

namespace lbf::skeleton {
namespace {

class Scaler {
 public:
  Scaler(const Signature& signature, std::uint64_t factor)
      : signature_(signature), occurrences_(signature.exchanges.size(), 0) {
    result_.factor = factor;
  }

  ScaledSignature run() {
    reduce(signature_.elements);
    const std::vector<std::uint64_t> total = occurrences_;
    std::vector<std::uint64_t> seen(total.size(), 0);
    LoopFolder folder(result_.bodies);
    for (const Element& element : reduced_) {
      if (element.is_loop) {
        folder.push(element);
      } else {
        leave_one_of_each_group(element.value, total[element.value], seen[element.value]++, folder);
      }
    }
    result_.elements = folder.finish();
    return std::move(result_);
  }

 private:
  // Step 1. What cannot be divided by K goes to reduced_ as symbols of the signature.
  void reduce(const Elements& elements) {
    const std::uint64_t factor = result_.factor;
    for (const Element& element : elements) {
      if (!element.is_loop) {
        reduced_.push_back(element);
        ++occurrences_[element.value];
        continue;
      }
      const Elements& body = signature_.bodies[element.value];
      const std::uint64_t whole = element.count / factor;
      if (whole > 0) {
        // Also a loop of one iteration stays a loop here, so that step 2 leaves it alone.
        reduced_.push_back({result_.bodies.add(whole_elements(body)), true, whole});
        result_.in_loops +=
            whole * factor *
            executed_length<std::uint64_t>(signature_.bodies, body, [](auto) { return 1ULL; });
      }
      for (std::uint64_t i = whole * factor; i < element.count; ++i) reduce(body);
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
        kept.push_back({scaled_symbol(element.value, false), false, 1});
      }
    }
    return kept;
  }

  // Steps 2 and 3, for one of `total` occurrences in the unreduced part.
  void leave_one_of_each_group(std::uint32_t symbol, std::uint64_t total, std::uint64_t index,
                               LoopFolder& folder) {
    const Exchange& exchange = signature_.exchanges[symbol];
    const std::uint64_t factor = result_.factor;
    if (exchange.is_closed && !exchange.is_end && index < total / factor * factor) {
      ++result_.grouped;
      if (index % factor == 0) folder.push_symbol(scaled_symbol(symbol, false));
      return;
    }
    ++result_.divided;
    result_.divided_s += exchange.seconds;
    folder.push_symbol(scaled_symbol(symbol, factor > 1));
  }

  const Signature& signature_;
  ScaledSignature result_;
  Elements reduced_;
  std::vector<std::uint64_t> occurrences_;  // by exchange: in the unreduced part
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
