#include "bench/replay_throughput/synth.h"

#include <algorithm>

#include "event/stored_trace_writer.h"
#include "event/synth.h"

namespace lbf::bench {

StoredTrace make_trace(std::string_view pattern, Rank ranks, std::uint64_t events) {
  const std::uint64_t per_iteration = synth_events_per_iteration(pattern, ranks);
  if (per_iteration == 0) return {};
  StoredTrace trace;
  trace.ranks = ranks;
  StoredTraceOptions options;
  options.ranks_per_stream = 8;
  options.batch_raw_bytes = std::size_t{256} << 10;
  options.with_world_size = false;
  const auto keep = [&trace](std::uint32_t stream, std::string batch) -> Result<void> {
    if (trace.streams.size() <= stream) trace.streams.resize(stream + std::size_t{1});
    trace.streams[stream].push_back(std::move(batch));
    return {};
  };
  StoredTraceWriter writer(ranks, keep, options);
  const EventSink sink = [&writer](Rank rank, const Event& event) { return writer.add(rank, event); };
  const std::uint64_t iterations = std::max<std::uint64_t>(1, (events + per_iteration - 1) / per_iteration);
  if (!synthesize(pattern, ranks, iterations, sink) || !writer.finish()) return {};
  trace.events = writer.events();
  trace.stored_bytes = writer.bytes();
  return trace;
}

}  // namespace lbf::bench
