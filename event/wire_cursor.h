// Reads numbers of a batch that anybody may have sent (docs/formats/wire-v1.md). No file but the decoder needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "event/wire_layout.h"

namespace lbf::wire {

// Reads [at, end). After a failure `ok` is false and everything reads as 0.
struct Cursor {
  const unsigned char* at;
  const unsigned char* end;
  bool ok = true;

  std::size_t left() const { return static_cast<std::size_t>(end - at); }

  std::uint8_t byte() {
    if (at == end) {
      ok = false;
      return 0;
    }
    return *at++;
  }

  // At most ten bytes; the tenth may only carry the last bit.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (shift == 63 && next > 1) break;
      value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
      if ((next & 0x80) == 0) return value;
    }
    ok = false;
    return 0;
  }

  // A varint that must be at most `max`.
  std::uint64_t varint_up_to(std::uint64_t max) {
    const std::uint64_t value = varint();
    if (value <= max) return value;
    ok = false;
    return 0;
  }

  std::int32_t svarint32() {
    const auto value = static_cast<std::int64_t>(unzigzag(varint()));
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
      ok = false;
      return 0;
    }
    return static_cast<std::int32_t>(value);
  }
};

}  // namespace lbf::wire
