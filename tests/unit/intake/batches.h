// Batches for tests of the trace store.
#pragma once

#include <span>
#include <string>

#include "event/wire.h"
#include "protocol/step_description.h"

namespace lbf::test {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// `events` compute events of rank 0, different from batch to batch.
inline std::string make_batch(std::uint32_t stream, std::uint64_t sequence, int events = 20) {
  BatchEncoder encoder;
  encoder.add_control(R"({"type":"stats","rank":0,"elapsed_s":1.0})");
  for (int i = 0; i < events; ++i) {
    Event event;
    event.kind = EventKind::kCompute;
    event.process_s = 1e-6 * static_cast<double>(sequence * 1000 + static_cast<std::uint64_t>(i));
    encoder.add(0, event);
  }
  return encoder.finish(stream, sequence);
}

inline protocol::StepDescription describe(std::uint32_t node_index = 0, int nodes = 1) {
  nlohmann::json description = {{"job", 7}, {"step", 0}, {"node_index", node_index}, {"tasks", 4}};
  for (int node = 0; node < nodes; ++node) description["nodes"].push_back("n" + std::to_string(node));
  description["task_ids"] = {node_index};
  return protocol::decode_step_description(description.dump()).value();
}

}  // namespace lbf::test
