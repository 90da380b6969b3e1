// read_batch_header (event/wire.h). Implements docs/formats/wire-v1.md.
#include <string>

#include "base/crc32c.h"
#include "event/wire.h"
#include "event/wire_layout.h"

namespace lbf {

Result<BatchHeader> read_batch_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kBatchHeaderBytes) {
    return invalid_input("batch cut short: " + std::to_string(bytes.size()) + " bytes of a header of " +
                         std::to_string(kBatchHeaderBytes));
  }
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  if (std::memcmp(at, wire::kMagic, sizeof wire::kMagic) != 0) {
    return invalid_input("not a batch: it does not start with LBFBATCH");
  }
  BatchHeader header;
  header.version = wire::load_u16(at + wire::kVersionAt);
  if (header.version != kWireVersion) {
    return invalid_input("batch of wire format version " + std::to_string(header.version) +
                         "; this program reads version " + std::to_string(kWireVersion) +
                         " (relay and lbfd must be of the same release)");
  }
  if (crc32c(at, wire::kHeaderCrcAt) != wire::load_u32(at + wire::kHeaderCrcAt)) {
    return invalid_input("batch damaged: the checksum of its header is wrong");
  }
  header.stream = wire::load_u32(at + wire::kStreamAt);
  header.sequence = wire::load_u64(at + wire::kSequenceAt);
  header.raw_bytes = wire::load_u32(at + wire::kRawBytesAt);
  header.compressed_bytes = wire::load_u32(at + wire::kCompressedBytesAt);
  header.events = wire::load_u32(at + wire::kEventsAt);
  const std::string name = "batch " + std::to_string(header.sequence) + " of stream " + std::to_string(header.stream);
  if (wire::load_u16(at + wire::kReservedAt) != 0 || wire::load_u32(at + wire::kReserved2At) != 0) {
    return invalid_input(name + ": reserved header fields are not 0");
  }
  if (header.raw_bytes > kMaxBatchRawBytes) {
    return invalid_input(name + ": a payload of " + std::to_string(header.raw_bytes) +
                         " bytes is more than the limit of " + std::to_string(kMaxBatchRawBytes));
  }
  if (header.compressed_bytes > kMaxBatchBytes - kBatchHeaderBytes) {
    return invalid_input(name + ": " + std::to_string(header.compressed_bytes) +
                         " compressed bytes are more than the limit of " +
                         std::to_string(kMaxBatchBytes - kBatchHeaderBytes));
  }
  if (header.events > header.raw_bytes) {
    return invalid_input(name + ": more events than bytes");
  }
  if (header.compressed_bytes > bytes.size() - kBatchHeaderBytes) {
    return invalid_input(name + " cut short: " + std::to_string(bytes.size() - kBatchHeaderBytes) +
                         " payload bytes of " + std::to_string(header.compressed_bytes));
  }
  return header;
}

bool has_whole_payload(std::span<const std::byte> batch) {
  const auto payload = batch.subspan(kBatchHeaderBytes);
  const auto* header = reinterpret_cast<const unsigned char*>(batch.data());
  return crc32c(payload.data(), payload.size()) == wire::load_u32(header + wire::kPayloadCrcAt);
}

}  // namespace lbf
