// What the encoder and the decoder of the wire format must agree on (docs/formats/wire-v1.md); no other file
// needs it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "event/event.h"

namespace lbf::wire {

// "LBFBATCH"
inline constexpr unsigned char kMagic[8] = {'L', 'B', 'F', 'B', 'A', 'T', 'C', 'H'};

// Offsets in the header; all numbers little-endian.
inline constexpr std::size_t kVersionAt = 8;
inline constexpr std::size_t kReservedAt = 10;
inline constexpr std::size_t kStreamAt = 12;
inline constexpr std::size_t kSequenceAt = 16;
inline constexpr std::size_t kRawBytesAt = 24;
inline constexpr std::size_t kCompressedBytesAt = 28;
inline constexpr std::size_t kEventsAt = 32;
inline constexpr std::size_t kReserved2At = 36;
inline constexpr std::size_t kPayloadCrcAt = 40;
inline constexpr std::size_t kHeaderCrcAt = 44;

enum BlockType : std::uint8_t { kSectionBlock = 1, kControlBlock = 2 };

// An event's control byte: the lengths of its two times in bytes, and what else follows them.
inline constexpr unsigned kTimeLengthMask = 7;
inline constexpr unsigned kCallLengthShift = 3;
inline constexpr unsigned kExplicitShape = 64;
inline constexpr unsigned kExplicitRequest = 128;
inline constexpr std::uint64_t kMaxTimeNs = (std::uint64_t{1} << 56) - 1;  // 7 bytes: 833 days

// Which fields of a shape's definition are there; the others have the value that Event gives them.
enum ShapeFields : std::uint8_t {
  kHasFunction = 1,
  kHasOp = 2,
  kHasPeer = 4,
  kHasTag = 8,
  kHasComm = 16,
  kHasRoot = 32,
  kHasBytes = 64,
  kHasValues = 128,
};

// An explicit shape is a code: a definition that gets the rank's next number, a definition for this event
// only, or kFirstShapeCode + n - 1 for the rank's shape number n (1, 2 ...).
inline constexpr std::uint64_t kDefineShapeCode = 0;
inline constexpr std::uint64_t kDefineOnceCode = 1;
inline constexpr std::uint32_t kFirstShapeCode = 2;

// Shapes of all ranks of one batch that have a number: bounds a decoder's memory.
inline constexpr std::uint32_t kMaxShapes = 262144;
// Values of all events of a batch, each time that a shape with values is repeated: what a decoder and its sinks have to
// do.
inline constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 31;
// Of these the requests of all waits. A request is waited for once, and costs bytes when it starts.
inline constexpr std::uint64_t kMaxWaitedRequests = std::uint64_t{1} << 26;

// Events after which the encoder ends a section and starts a new one: readers that hand events on as they
// decode them then see a node's ranks side by side, and what has to wait for other ranks stays little.
inline constexpr std::size_t kMaxEncodedSectionEvents = 256;

// How the request numbers of an event are coded.
enum class RequestUse : std::uint8_t {
  kNone,
  kStarts,     // relative to the last request that was started
  kCompletes,  // relative to the last one that was completed
  kSeveral,    // the same for the first of kWait's `values`
};

inline RequestUse request_use(EventKind kind, std::uint8_t flags, std::size_t values) {
  if (kind == EventKind::kWait && values > 0) return RequestUse::kSeveral;
  if ((flags & kFlagHasRequest) == 0) return RequestUse::kNone;
  if (kind == EventKind::kIsend || kind == EventKind::kStartRecv || kind == EventKind::kIcollective ||
      kind == EventKind::kOneSided) {
    return RequestUse::kStarts;
  }
  return RequestUse::kCompletes;
}

inline std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}
inline std::uint64_t unzigzag(std::uint64_t coded) {
  return coded >> 1 ^ (0 - (coded & 1));
}

// Numbers are little-endian on the wire, wherever they lie.
template <typename Number>
Number swapped_on_big_endian(Number number) {
  if constexpr (std::endian::native == std::endian::little) return number;
  if constexpr (sizeof number == 2) return __builtin_bswap16(number);
  if constexpr (sizeof number == 4) return __builtin_bswap32(number);
  return static_cast<Number>(__builtin_bswap64(number));
}
template <typename Number>
void store(char* at, Number number) {
  number = swapped_on_big_endian(number);
  std::memcpy(at, &number, sizeof number);
}
template <typename Number>
Number load(const unsigned char* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return swapped_on_big_endian(number);
}
inline void store_u16(char* at, std::uint16_t value) {
  store(at, value);
}
inline void store_u32(char* at, std::uint32_t value) {
  store(at, value);
}
inline void store_u64(char* at, std::uint64_t value) {
  store(at, value);
}
inline std::uint64_t load_u64(const unsigned char* at) {
  return load<std::uint64_t>(at);
}
inline std::uint32_t load_u32(const unsigned char* at) {
  return load<std::uint32_t>(at);
}
inline std::uint16_t load_u16(const unsigned char* at) {
  return load<std::uint16_t>(at);
}

}  // namespace lbf::wire
