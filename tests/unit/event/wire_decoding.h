// A batch decoded into items, for the tests of the wire format.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tests/unit/event/wire_samples.h"

namespace lbf::wire_samples {

struct Decoded {
  Result<BatchHeader> header = BatchHeader{};
  std::vector<Item> items;
};

inline Decoded decode(std::span<const std::byte> batch, Rank max_ranks = 16, CommunicatorTable* table = nullptr) {
  CommunicatorTable own;
  BatchDecoder decoder(table != nullptr ? *table : own, max_ranks);
  Decoded decoded;
  BatchSink sink;
  sink.on_events = one_by_one([&](Rank rank, const Event& event) -> Result<void> {
    Item& made = decoded.items.emplace_back();
    made.rank = rank;
    made.event = event;
    made.values.assign(event.values.begin(), event.values.end());
    made.event.values = {};
    return {};
  });
  sink.on_control = [&](std::string_view json) -> Result<void> {
    decoded.items.emplace_back().control = json;
    return {};
  };
  decoded.header = decoder.decode(batch, sink);
  return decoded;
}

}  // namespace lbf::wire_samples
