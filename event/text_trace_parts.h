// Values of a text trace's `regions` and `device` lines, which are parts of a gap (docs/formats/text-trace-v1.md). No
// file but the reader (event/text_trace_reader.cpp) needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "event/duration.h"
#include "event/event.h"
#include "event/text_trace_lines.h"

namespace lbf::text_trace {

// VALUES of kRegions: count, threads; work, critical, fork and join in ns. Errors name the line.
Result<void> read_regions(const Lines& line, const Keys& keys, std::vector<std::uint64_t>& values);

// VALUES of kDevice: calls; ns on the processor, of the event's TIME: all of it without busy=.
Result<void> read_device_wait(const Lines& line, const Keys& keys, Duration time, std::vector<std::uint64_t>& values);

// EVENT, a kCompute, becomes one with looks in vain where the line has them.
Result<void> read_looks(const Lines& line, const Keys& keys, Event& event);

}  // namespace lbf::text_trace
