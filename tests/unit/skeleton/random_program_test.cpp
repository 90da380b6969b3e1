// A few hundred random programs: what their skeletons execute gives the signature that they were made from,
// scaled. tests/unit/skeleton/mpi_test.cpp compiles and runs some of them.
#include "tests/unit/skeleton/random_program.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "skeleton/loop_folder.h"

namespace lbf::skeleton_test {
namespace {

using skeleton::Element;
using skeleton::Elements;
using skeleton::LoopBodies;
using skeleton::ScaledSignature;
using skeleton::Signature;

// Everything about an exchange but its times; sizes divided by `divisor`.
std::string text_of(const Signature& signature, const skeleton::Exchange& exchange, std::uint64_t divisor) {
  std::ostringstream text;
  for (const auto& part : exchange.parts) {
    text << part.rank << ":";
    for (std::uint32_t i = 0; i < part.count; ++i) {
      const skeleton::Operation& o = exchange.operations[part.begin + i];
      text << static_cast<int>(o.kind) << "," << static_cast<int>(o.flags) << "," << static_cast<int>(o.op)
           << "," << o.tag << "," << o.root << "," << o.slot << ",";
      // What a receive gets is its send's to say.
      if (o.kind != skeleton::OperationKind::kRecv && o.kind != skeleton::OperationKind::kIrecv)
        text << o.bytes / divisor;
      text << ",(";
      if (o.kind != skeleton::OperationKind::kCollective && o.kind != skeleton::OperationKind::kIcollective)
        text << o.peer;
      for (const Rank member : signature.comms[o.comm]) text << "-" << member;
      text << ")";
      for (std::uint32_t v = 0; v < o.values_count; ++v) {
        const std::uint64_t value = exchange.values[o.values_begin + v];
        text << "+" << (o.kind == skeleton::OperationKind::kWait ? value : value / divisor);
      }
      text << ";";
    }
  }
  return text.str();
}

void count(const LoopBodies& bodies, const Elements& elements, std::uint64_t times,
           std::map<std::uint32_t, std::uint64_t>& counts) {
  for (const Element& element : elements) {
    if (element.is_loop) {
      count(bodies, bodies[element.value], times * element.count, counts);
    } else {
      counts[element.value] += times;
    }
  }
}

std::map<std::string, std::uint64_t> exchanges_of(const Signature& signature) {
  std::map<std::uint32_t, std::uint64_t> counts;
  count(signature.bodies, signature.elements, 1, counts);
  std::map<std::string, std::uint64_t> texts;
  for (const auto& [symbol, times] : counts)
    texts[text_of(signature, signature.exchanges[symbol], 1)] += times;
  return texts;
}

std::map<std::string, std::uint64_t> exchanges_of(const Signature& signature, const ScaledSignature& scaled) {
  std::map<std::uint32_t, std::uint64_t> counts;
  count(scaled.bodies, scaled.elements, 1, counts);
  std::map<std::string, std::uint64_t> texts;
  for (const auto& [symbol, times] : counts) {
    texts[text_of(signature, signature.exchanges[skeleton::exchange_of(symbol)],
                  skeleton::is_divided(symbol) ? scaled.factor : 1)] += times;
  }
  return texts;
}

using Counts = std::map<std::string, std::uint64_t>;

// One line for each exchange that they have not equally often.
std::string difference(const Counts& got, const Counts& wanted) {
  std::ostringstream text;
  for (const auto& [exchange, times] : got) {
    const auto other = wanted.find(exchange);
    if (other == wanted.end() || other->second != times)
      text << "got " << times << ", wanted " << (other == wanted.end() ? 0 : other->second) << ": "
           << exchange << "\n";
  }
  for (const auto& [exchange, times] : wanted) {
    if (!got.contains(exchange)) text << "got 0, wanted " << times << ": " << exchange << "\n";
  }
  return text.str();
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, ExecuteTheirScaledSignature) {
  constexpr int kEach = 40;
  for (int i = 0; i < kEach; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam() * kEach + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const EventProgram program = random_program(seed);
    const Signature signature = signature_of(program, {0, 0, 0});
    // The signature stands for every operation of the trace.
    std::map<std::uint32_t, std::uint64_t> counts;
    count(signature.bodies, signature.elements, 1, counts);
    std::uint64_t operations = 0;
    for (const auto& [symbol, times] : counts) {
      EXPECT_EQ(times, signature.exchanges[symbol].occurrences);
      operations += times * signature.exchanges[symbol].operations.size();
    }
    EXPECT_EQ(operations, signature.trace_length);
    for (const std::uint64_t factor : {1u, 3u, 7u, 1000u}) {
      SCOPED_TRACE("K = " + std::to_string(factor));
      const ScaledSignature scaled = scale(signature, factor);
      const Signature again = signature_of(executed(signature, scaled), {0, 0, 0});
      EXPECT_EQ(difference(exchanges_of(again), exchanges_of(signature, scaled)), "");
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, 8));

}  // namespace
}  // namespace lbf::skeleton_test
