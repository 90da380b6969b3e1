// read_shape, see wire_shape.h.
#include "event/wire_shape.h"

#include <span>

namespace lbf::wire {
namespace {

const char* read_fields(Cursor& data, unsigned fields, Shape& read) {
  if ((fields & kHasFunction) != 0) {
    read.function = static_cast<std::uint16_t>(data.varint_up_to(std::numeric_limits<std::uint16_t>::max()));
  }
  if ((fields & kHasOp) != 0) {
    const std::uint8_t op = data.byte();
    if (op >= op_count(read.kind)) return "its operation is not one of version 1";
    read.op_code = op;
  }
  if ((fields & kHasPeer) != 0) read.peer = data.svarint32();
  if ((fields & kHasTag) != 0) read.tag = data.svarint32();
  if ((fields & kHasComm) != 0) {
    read.local_comm = static_cast<std::uint32_t>(data.varint_up_to(std::numeric_limits<std::uint32_t>::max()));
  }
  if ((fields & kHasRoot) != 0) read.root = data.svarint32();
  if ((fields & kHasBytes) != 0) read.bytes = data.varint();
  return data.ok ? nullptr : "its shape is cut short, or a number in it is too large";
}

// A kWait's are differences: they are relative to the requests that complete.
const char* read_values(Cursor& data, Shape& read, std::vector<std::uint64_t>& values) {
  read.values_at = static_cast<std::uint32_t>(values.size());
  const std::uint64_t count = data.varint();
  const bool several = read.kind == EventKind::kWait;
  if (!data.ok || count == 0 || count - (several ? 1 : 0) > data.left()) return "it has too many values";
  std::uint64_t value = 0;
  if (several) values.push_back(0);
  for (std::uint64_t i = several ? 1 : 0; i < count; ++i) {
    const std::uint64_t difference = unzigzag(data.varint());
    value += difference;
    values.push_back(several ? difference : value);
    if (several) read.request_distance += difference;
  }
  if (!data.ok) return "its values are cut short";
  read.values_count = static_cast<std::uint32_t>(count);
  return nullptr;
}

const char* check_values(const Shape& read, Rank max_ranks, const std::vector<std::uint64_t>& values) {
  if (read.kind == EventKind::kCommCreate) {
    const auto listed = std::span(values).subspan(read.values_at, read.values_count);
    if (listed.size() < 3) return "a communicator without members";
    for (const std::uint64_t member : listed.subspan(2)) {
      if (member >= static_cast<std::uint64_t>(max_ranks)) return "a member is not a rank of the step";
    }
  }

  if (read.kind == EventKind::kProcedure) {
    if (read.values_count != kProcedureValues) return "a procedure's time without its numbers";
    const std::uint64_t* const listed = &values[read.values_at];
    if (listed[1] > kMaxTimeNs) return "a procedure's time is longer than a trace can be";
    if (listed[2] > listed[1]) return "a procedure's exclusive time is more than its inclusive time";
  }
  if (read.kind == EventKind::kRegions) {
    if (read.values_count != kRegionValues) return "parallel regions without their numbers";
    const std::uint64_t* const listed = &values[read.values_at];
    if (listed[0] == 0 || listed[1] == 0 || listed[1] > kMostRegionThreads) return "parallel regions that cannot be";
    if (listed[2] > kMaxTimeNs || listed[4] > kMaxTimeNs) return "parallel regions longer than a trace can be";
    if (listed[3] > listed[2]) return "parallel regions whose critical part is more than their work";
  }
  if (read.kind == EventKind::kDevice) {
    if (read.values_count != kDeviceValues) return "waits for a device without their numbers";
    const std::uint64_t* const listed = &values[read.values_at];
    if (listed[0] == 0 || listed[1] > kMaxTimeNs) return "waits for a device that cannot be";
  }
  return nullptr;
}

std::uint8_t extra_of(const Shape& read) {
  unsigned extra = 0;
  if (read.kind == EventKind::kCommCreate) {
    extra |= kDefineComm;
  } else if (read.local_comm != 0) {
    extra |= kTranslateComm;
  }
  if (read.use == RequestUse::kSeveral) {
    extra |= kSetSeveralRequests;
  } else {
    if (read.use != RequestUse::kNone) extra |= kSetRequest;
    if (read.values_count > 0) extra |= kHasValueList;
  }
  if (has_off_time(read.kind)) extra |= kReadOff;
  if (read.kind == EventKind::kGap) extra |= kNoteGap;
  return static_cast<std::uint8_t>(extra);
}

}  // namespace

const char* read_shape(Cursor& data, Rank max_ranks, Shape& shape, std::vector<std::uint64_t>& values) {
  const std::uint8_t kind = data.byte();
  shape.flags = data.byte();
  const unsigned fields = data.byte();
  if (!data.ok) return "its shape is cut short";
  if (kind >= kEventKindCount) return "its kind is not one of version 1";
  shape.kind = static_cast<EventKind>(kind);
  if (const char* wrong = read_fields(data, fields, shape); wrong != nullptr) return wrong;
  if (shape.peer < kAnyRank || shape.peer >= max_ranks) return "its peer is not a rank of the step";
  if ((fields & kHasValues) != 0) {
    if (const char* wrong = read_values(data, shape, values); wrong != nullptr) return wrong;
  }
  if (const char* wrong = check_values(shape, max_ranks, values); wrong != nullptr) return wrong;
  shape.use = request_use(shape.kind, shape.flags, shape.values_count);
  shape.extra = extra_of(shape);
  return nullptr;
}

}  // namespace lbf::wire
