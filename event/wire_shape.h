// A shape of the wire format as the decoder keeps it (docs/formats/wire-v1.md). No file but the decoder needs
// it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "event/event.h"
#include "event/wire_cursor.h"
#include "event/wire_layout.h"

namespace lbf::wire {

inline constexpr std::uint32_t kNoShape = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kNoComm = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kLostComm = kNoComm - 1;  // the trace has too many

// What the loop has to do for an event of a shape beyond setting its times; 0 for most.
enum ShapeExtra : std::uint8_t {
  kTranslateComm = 1,
  kSetRequest = 2,
  kSetSeveralRequests = 4,
  kReadOff = 8,
  kDefineComm = 16,
  kHasValueList = 32,
  kNoteGap = 64,
};
// A cache line: what its events have in common. The fields that an Event has too are as there.
struct alignas(64) Shape {
  EventKind kind = EventKind::kCompute;
  std::uint8_t flags = 0;
  std::uint16_t function = 0;
  std::uint8_t op_code = 0;
  std::uint8_t extra = 0;
  RequestUse use = RequestUse::kNone;
  std::int32_t peer = kAnyRank;
  std::int32_t tag = kAnyTag;
  std::uint32_t local_comm = 0;
  Rank root = 0;
  Bytes bytes = 0;
  std::uint64_t request_delta = 0;  // as last used
  std::uint32_t values_at = 0;      // into `values`
  std::uint32_t values_count = 0;
  std::uint32_t successor = kNoShape;  // index of the shape that last followed this one
  std::uint32_t defined_as = kNoComm;  // kCommCreate: the global index, once it was defined
  std::uint64_t request_distance = 0;  // kWait's values: from before the first request to the last

  void copy_to(Event& event, Duration process_s, Duration call_s) const {
    event.kind = kind;
    event.flags = flags;
    event.function = function;
    event.op_code = op_code;
    event.peer = peer;
    event.tag = tag;
    event.comm = 0;
    event.request = 0;
    event.root = root;
    event.bytes = bytes;
    event.process_s = process_s;
    event.call_s = call_s;
    event.off_s = {};
    event.values = {};
  }
};
static_assert(sizeof(Shape) == 64);

// Reads a definition; its values are appended to `values`. nullptr, or what is wrong.
const char* read_shape(Cursor& data, Rank max_ranks, Shape& shape, std::vector<std::uint64_t>& values);

}  // namespace lbf::wire
