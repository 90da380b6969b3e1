// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as in RFC 3720 appendix B.4): checksums of batches,
// of the trace store's records, and of request bodies inside munge credentials.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lbf {

// Continues from `crc`, the checksum of the bytes before: crc32c(b, nb, crc32c(a, na)) == crc32c of a and b.
// Uses the processor's CRC instruction where there is one.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc = 0) noexcept;

inline std::uint32_t crc32c(std::string_view data, std::uint32_t crc = 0) noexcept {
  return crc32c(data.data(), data.size(), crc);
}

// The same, always by table: for processors without the instruction, and for tests that compare both.
std::uint32_t crc32c_by_table(const void* data, std::size_t bytes, std::uint32_t crc = 0) noexcept;

}  // namespace lbf
