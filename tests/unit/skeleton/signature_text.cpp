#include "tests/unit/skeleton/signature_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace lbf::skeleton_test {
namespace {

using skeleton::Operation;
using skeleton::OperationKind;
using skeleton::Signature;

constexpr Bytes kCommCreateBytes = 8;  // one double

bool is_collective(const Operation& o) {
  return o.kind == OperationKind::kCollective || o.kind == OperationKind::kIcollective;
}

// What a receive gets is its send's to say; what a v-collective moves, its values'.
bool says_bytes(const Operation& o, Seen seen) {
  if (o.kind == OperationKind::kRecv || o.kind == OperationKind::kIrecv) return false;
  if (seen == Seen::kExactly) return true;
  if (o.kind == OperationKind::kProbe) return false;
  if (!is_collective(o)) return true;
  switch (o.op) {
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kBarrier:
      return false;
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
      return o.values_count == 0;
    default:
      return true;
  }
}

// The requests of one rank's part of a closed exchange, named by the lowest number that is free: what is
// under way around it, and so has numbers, is no part of it.
class RequestNames {
 public:
  std::uint64_t start(std::uint64_t slot) {
    std::uint64_t name = 0;
    while (std::any_of(names_.begin(), names_.end(), [&](const auto& n) { return n.second == name; })) ++name;
    return names_[slot] = name;
  }
  std::uint64_t of(std::uint64_t slot) const { return names_.at(slot); }
  void end(std::uint64_t slot) { names_.erase(slot); }

 private:
  std::map<std::uint64_t, std::uint64_t> names_;
};

std::string text_of(const Signature& signature, const skeleton::Exchange& exchange,
                    const skeleton::ScaledExchange& scaled, Seen seen) {
  std::ostringstream text;
  for (const auto& part : exchange.parts) {
    text << part.rank << ":";
    RequestNames names;
    for (std::uint32_t i = 0; i < part.count; ++i) {
      Operation o = exchange.operations[part.begin + i];
      if (o.kind == OperationKind::kCompute) continue;
      const bool starts =
          o.kind == OperationKind::kIsend || o.kind == OperationKind::kIrecv || o.kind == OperationKind::kIcollective;
      if (exchange.is_closed && starts) o.slot = static_cast<std::uint32_t>(names.start(o.slot));
      std::uint64_t divided = scaled.of(o.bytes);
      if (seen == Seen::kCaptured && is_collective(o) && o.op == CollectiveOp::kCommCreate) {
        o.op = CollectiveOp::kAllreduce;
        divided = kCommCreateBytes;
      }
      text << static_cast<int>(o.kind) << "," << static_cast<int>(o.flags) << "," << static_cast<int>(o.op) << ","
           << o.tag << "," << o.root << "," << o.slot << ",";
      if (says_bytes(o, seen)) text << divided;
      text << ",(";
      if (!is_collective(o)) text << o.peer;
      for (const Rank member : signature.comms[o.comm]) text << "-" << member;
      text << ")";
      std::vector<std::uint64_t> values;
      for (std::uint32_t v = 0; v < o.values_count; ++v) {
        const std::uint64_t value = exchange.values[o.values_begin + v];
        if (o.kind != OperationKind::kWait) {
          values.push_back(scaled.of(value));
        } else {
          values.push_back(exchange.is_closed ? names.of(value) : value);
        }
      }
      for (std::uint32_t v = 0; v < o.values_count && o.kind == OperationKind::kWait; ++v)
        names.end(exchange.values[o.values_begin + v]);
      if (seen == Seen::kCaptured && o.kind == OperationKind::kWait) std::sort(values.begin(), values.end());
      for (const std::uint64_t value : values) text << "+" << value;
      text << ";";
    }
  }
  return text.str();
}

}  // namespace

void count_symbols(const skeleton::LoopBodies& bodies, const skeleton::Elements& elements, std::uint64_t times,
                   std::map<std::uint32_t, std::uint64_t>& counts) {
  for (const skeleton::Element& element : elements) {
    if (element.is_loop) {
      count_symbols(bodies, bodies[element.value], times * element.count, counts);
    } else {
      counts[element.value] += times;
    }
  }
}

Counts exchanges_of(const Signature& signature, Seen seen) {
  std::map<std::uint32_t, std::uint64_t> counts;
  count_symbols(signature.bodies, signature.elements, 1, counts);
  Counts texts;
  for (const auto& [symbol, times] : counts) texts[text_of(signature, signature.exchanges[symbol], {}, seen)] += times;
  return texts;
}

Counts exchanges_of(const Signature& signature, const skeleton::ScaledSignature& scaled, Seen seen) {
  std::map<std::uint32_t, std::uint64_t> counts;
  count_symbols(scaled.bodies, scaled.elements, 1, counts);
  Counts texts;
  for (const auto& [symbol, times] : counts) {
    const skeleton::ScaledExchange& exchange = scaled.symbols[symbol];
    texts[text_of(signature, scaled.exchange_of(signature, exchange.exchange), exchange, seen)] += times;
  }
  return texts;
}

std::string difference(const Counts& got, const Counts& wanted) {
  std::ostringstream text;
  for (const auto& [exchange, times] : got) {
    const auto other = wanted.find(exchange);
    if (other == wanted.end() || other->second != times)
      text << "got " << times << ", wanted " << (other == wanted.end() ? 0 : other->second) << ": " << exchange << "\n";
  }
  for (const auto& [exchange, times] : wanted) {
    if (!got.contains(exchange)) text << "got 0, wanted " << times << ": " << exchange << "\n";
  }
  return text.str();
}

}  // namespace lbf::skeleton_test
