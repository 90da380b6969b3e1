// BatchEncoder (event/wire.h): events of many ranks to one compressed batch. Implements
// docs/formats/wire-v1.md.
#include <zstd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "event/wire.h"
#include "event/wire_layout.h"

namespace lbf {
namespace {

using wire::RequestUse;

// Level 1: on the trace of a regular program level 3 was seen to save less than 2 % more, and the relay's
// time is part of the observed cost.
constexpr int kZstdLevel = 1;

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void append_svarint(std::string& out, std::int64_t value) {
  append_varint(out, wire::zigzag(static_cast<std::uint64_t>(value)));
}

unsigned length_in_bytes(std::uint64_t value) {
  return value == 0 ? 0 : (64 - static_cast<unsigned>(__builtin_clzll(value)) + 7) / 8;
}

std::uint64_t wire_ns(Duration time) {
  return std::min(static_cast<std::uint64_t>(std::max<Nanoseconds>(time.ns(), 0)), wire::kMaxTimeNs);
}

}  // namespace

struct BatchEncoder::State {
  struct Shape {
    EventKind kind{};
    std::uint8_t flags = 0;
    std::uint16_t function = 0;
    std::uint8_t op_code = 0;
    std::int32_t peer = 0;
    std::int32_t tag = 0;
    std::uint32_t comm = 0;
    Rank root = 0;
    Bytes bytes = 0;
    std::uint32_t values_count = 0;
    std::uint32_t successor = 0;      // the shape that last followed this one (0: none yet)
    std::size_t values_at = 0;        // into value_differences
    std::uint64_t request_delta = 0;  // as last used
    std::size_t hash = 0;
  };
  static constexpr std::size_t kInitialTableSlots = 64;
  struct PerRank {
    Rank rank = 0;
    std::string control;
    std::string data;
    // The rank's dictionary. It is the rank's own, because sections are decoded one after the other while
    // events of different ranks come here interleaved.
    std::vector<Shape> shapes = std::vector<Shape>(1);  // [0] stands for "none"; a shape's number is its index
    std::vector<std::uint64_t> value_differences;
    std::vector<std::uint32_t> table = std::vector<std::uint32_t>(kInitialTableSlots);  // hash -> shape
    std::uint32_t previous_shape = 0;
    std::uint64_t last_started = 0;
    std::uint64_t last_completed = 0;
  };
  static constexpr std::size_t kSectionOverheadBytes = 16;  // type, rank, two lengths: at most

  std::vector<PerRank> ranks;
  std::unordered_map<Rank, std::size_t> rank_index;
  std::vector<std::size_t> open_sections;  // indices into `ranks`, in the order of their first event
  std::size_t last_index = 0;

  std::uint32_t shapes_in_batch = 0;  // that decoders must remember, of all ranks
  std::string raw;                    // finished blocks
  std::size_t open_bytes = 0;         // of the sections that are still open
  std::uint32_t events = 0;
  ZSTD_CCtx* zstd = ZSTD_createCCtx();

  State() {
    if (zstd == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, kZstdLevel);
  }
  ~State() { ZSTD_freeCCtx(zstd); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  PerRank& per_rank(Rank rank) {
    if (last_index < ranks.size() && ranks[last_index].rank == rank) return ranks[last_index];
    const auto [at, is_new] = rank_index.try_emplace(rank, ranks.size());
    if (is_new) {
      ranks.emplace_back();
      ranks.back().rank = rank;
    }
    last_index = at->second;
    return ranks[last_index];
  }

  // kWait's first value is coded relative to the requests; everything else relative to the value before it.
  static std::uint64_t difference(RequestUse use, std::span<const std::uint64_t> values, std::size_t i) {
    if (i == 0) return use == RequestUse::kSeveral ? 0 : values[0];
    return values[i] - values[i - 1];
  }

  static bool matches(const PerRank& section, const Shape& shape, const Event& event, RequestUse use) {
    if (shape.kind != event.kind || shape.flags != event.flags || shape.function != event.function ||
        shape.op_code != event.op_code || shape.peer != event.peer || shape.tag != event.tag ||
        shape.comm != event.comm || shape.root != event.root || shape.bytes != event.bytes ||
        shape.values_count != event.values.size()) {
      return false;
    }
    for (std::size_t i = 0; i < shape.values_count; ++i) {
      if (section.value_differences[shape.values_at + i] != difference(use, event.values, i)) return false;
    }
    return true;
  }

  static std::size_t hash(const Event& event, RequestUse use) {
    std::uint64_t h = 0x9E3779B97F4A7C15u;
    const auto mix = [&h](std::uint64_t word) {
      h = (h ^ word) * 0xFF51AFD7ED558CCDu;
      h ^= h >> 32;
    };
    mix(static_cast<std::uint64_t>(event.kind) | static_cast<std::uint64_t>(event.flags) << 8 |
        static_cast<std::uint64_t>(event.function) << 16 | static_cast<std::uint64_t>(event.op_code) << 32);
    mix(static_cast<std::uint32_t>(event.peer) | static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.tag))
                                                     << 32);
    mix(event.comm | static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.root)) << 32);
    mix(event.bytes);
    for (std::size_t i = 0; i < event.values.size(); ++i) mix(difference(use, event.values, i));
    return static_cast<std::size_t>(h);
  }

  static std::size_t slot_of(const PerRank& section, const Event& event, RequestUse use) {
    const auto& table = section.table;
    std::size_t slot = hash(event, use) & (table.size() - 1);
    while (table[slot] != 0 && !matches(section, section.shapes[table[slot]], event, use)) {
      slot = (slot + 1) & (table.size() - 1);
    }
    return slot;
  }

  static void grow_table(PerRank& section) {
    section.table.assign(section.table.size() * 2, 0);
    const std::size_t mask = section.table.size() - 1;
    for (std::uint32_t index = 1; index < section.shapes.size(); ++index) {
      std::size_t slot = section.shapes[index].hash & mask;
      while (section.table[slot] != 0) slot = (slot + 1) & mask;
      section.table[slot] = index;
    }
  }

  static void append_definition(std::string& out, const Event& event, RequestUse use) {
    const Event unset;
    out += static_cast<char>(event.kind);
    out += static_cast<char>(event.flags);
    unsigned fields = 0;
    if (event.function != unset.function) fields |= wire::kHasFunction;
    if (event.op_code != unset.op_code) fields |= wire::kHasOp;
    if (event.peer != unset.peer) fields |= wire::kHasPeer;
    if (event.tag != unset.tag) fields |= wire::kHasTag;
    if (event.comm != unset.comm) fields |= wire::kHasComm;
    if (event.root != unset.root) fields |= wire::kHasRoot;
    if (event.bytes != unset.bytes) fields |= wire::kHasBytes;
    if (!event.values.empty()) fields |= wire::kHasValues;
    out += static_cast<char>(fields);
    if ((fields & wire::kHasFunction) != 0) append_varint(out, event.function);
    if ((fields & wire::kHasOp) != 0) out += static_cast<char>(event.op_code);
    if ((fields & wire::kHasPeer) != 0) append_svarint(out, event.peer);
    if ((fields & wire::kHasTag) != 0) append_svarint(out, event.tag);
    if ((fields & wire::kHasComm) != 0) append_varint(out, event.comm);
    if ((fields & wire::kHasRoot) != 0) append_svarint(out, event.root);
    if ((fields & wire::kHasBytes) != 0) append_varint(out, event.bytes);
    if ((fields & wire::kHasValues) != 0) {
      append_varint(out, event.values.size());
      for (std::size_t i = use == RequestUse::kSeveral ? 1 : 0; i < event.values.size(); ++i) {
        append_varint(out, wire::zigzag(difference(use, event.values, i)));
      }
    }
  }

  // The shape's number, written to the section's data, with the definition when it is new. 0: the batch has
  // as many shapes as a decoder remembers, so this one is defined for this event only.
  std::uint32_t explicit_shape(PerRank& section, const Event& event, RequestUse use) {
    const std::size_t slot = slot_of(section, event, use);
    if (section.table[slot] != 0) {
      append_varint(section.data, section.table[slot] + wire::kFirstShapeCode - 1);
      return section.table[slot];
    }
    const bool remember = shapes_in_batch < wire::kMaxShapes;
    append_varint(section.data, remember ? wire::kDefineShapeCode : wire::kDefineOnceCode);
    append_definition(section.data, event, use);
    if (!remember) return 0;
    ++shapes_in_batch;
    const auto index = static_cast<std::uint32_t>(section.shapes.size());
    Shape& shape = section.shapes.emplace_back();
    shape.kind = event.kind;
    shape.flags = event.flags;
    shape.function = event.function;
    shape.op_code = event.op_code;
    shape.peer = event.peer;
    shape.tag = event.tag;
    shape.comm = event.comm;
    shape.root = event.root;
    shape.bytes = event.bytes;
    shape.values_count = static_cast<std::uint32_t>(event.values.size());
    shape.values_at = section.value_differences.size();
    shape.hash = hash(event, use);
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      section.value_differences.push_back(difference(use, event.values, i));
    }
    section.table[slot] = index;
    if (section.shapes.size() * 2 > section.table.size()) grow_table(section);
    return index;
  }

  void add(Rank rank, const Event& event) {
    PerRank& section = per_rank(rank);
    if (section.control.size() == wire::kMaxEncodedSectionEvents) close_full_section(section);
    if (section.control.empty()) {
      open_sections.push_back(static_cast<std::size_t>(&section - ranks.data()));
      open_bytes += kSectionOverheadBytes;
      section.previous_shape = 0;
    }
    const std::size_t data_before = section.data.size();

    const std::uint64_t process_ns = wire_ns(event.process_s);
    const std::uint64_t call_ns = wire_ns(event.call_s);
    const unsigned process_length = length_in_bytes(process_ns);
    const unsigned call_length = length_in_bytes(call_ns);
    char times[16];
    wire::store_u64(times, process_ns);
    wire::store_u64(times + process_length, call_ns);
    section.data.append(times, process_length + call_length);
    unsigned control = process_length | call_length << wire::kCallLengthShift;

    const RequestUse use = wire::request_use(event.kind, event.flags, event.values.size());
    std::uint32_t index = section.shapes[section.previous_shape].successor;
    if (index == 0 || !matches(section, section.shapes[index], event, use)) {
      control |= wire::kExplicitShape;
      index = explicit_shape(section, event, use);
      section.shapes[section.previous_shape].successor = index;
    }
    if (use != RequestUse::kNone) {
      const bool starts = use == RequestUse::kStarts;
      const std::uint64_t first = use == RequestUse::kSeveral ? event.values.front() : event.request;
      const std::uint64_t delta = first - ((starts ? section.last_started : section.last_completed) + 1);
      const std::uint64_t expected = index != 0 ? section.shapes[index].request_delta : 0;
      if (delta != expected) {
        control |= wire::kExplicitRequest;
        append_varint(section.data, wire::zigzag(delta));
        if (index != 0) section.shapes[index].request_delta = delta;
      }
      if (starts) {
        section.last_started = first;
      } else {
        section.last_completed = use == RequestUse::kSeveral ? event.values.back() : first;
      }
    }
    if (has_off_time(event.kind)) append_varint(section.data, wire_ns(event.off_s));
    section.control += static_cast<char>(control);
    section.previous_shape = index;
    open_bytes += 1 + section.data.size() - data_before;
    ++events;
  }

  void write_section(PerRank& section) {
    raw += static_cast<char>(wire::kSectionBlock);
    append_varint(raw, static_cast<std::uint32_t>(section.rank));
    append_varint(raw, section.control.size());
    append_varint(raw, section.data.size());
    raw += section.control;
    raw += section.data;
    section.control.clear();
    section.data.clear();
  }

  void close_full_section(PerRank& section) {
    const auto index = static_cast<std::size_t>(&section - ranks.data());
    open_sections.erase(std::find(open_sections.begin(), open_sections.end(), index));
    open_bytes -= kSectionOverheadBytes + section.control.size() + section.data.size();
    write_section(section);
  }

  void close_sections() {
    for (const std::size_t index : open_sections) write_section(ranks[index]);
    open_sections.clear();
    open_bytes = 0;
  }

  void close() {
    close_sections();
    std::vector<PerRank>().swap(ranks);
    rank_index.clear();
    last_index = 0;
    raw.shrink_to_fit();
  }

  void add_control(std::string_view json) {
    close_sections();
    raw += static_cast<char>(wire::kControlBlock);
    append_varint(raw, json.size());
    raw += json;
  }

  std::string finish(std::uint32_t stream, std::uint64_t sequence) {
    close_sections();
    std::string batch(kBatchHeaderBytes + ZSTD_compressBound(raw.size()), '\0');
    const std::size_t compressed = ZSTD_compress2(zstd, batch.data() + kBatchHeaderBytes,
                                                  batch.size() - kBatchHeaderBytes, raw.data(), raw.size());
    if (ZSTD_isError(compressed) != 0) {  // cannot happen with that much room, but for lack of memory
      throw std::runtime_error(std::string("wire: zstd: ") + ZSTD_getErrorName(compressed));
    }
    batch.resize(kBatchHeaderBytes + compressed);
    char* header = batch.data();
    std::memcpy(header, wire::kMagic, sizeof wire::kMagic);
    wire::store_u16(header + wire::kVersionAt, kWireVersion);
    wire::store_u32(header + wire::kStreamAt, stream);
    wire::store_u64(header + wire::kSequenceAt, sequence);
    wire::store_u32(header + wire::kRawBytesAt, static_cast<std::uint32_t>(raw.size()));
    wire::store_u32(header + wire::kCompressedBytesAt, static_cast<std::uint32_t>(compressed));
    wire::store_u32(header + wire::kEventsAt, events);
    wire::store_u32(header + wire::kPayloadCrcAt, crc32c(header + kBatchHeaderBytes, compressed));
    wire::store_u32(header + wire::kHeaderCrcAt, crc32c(header, wire::kHeaderCrcAt));

    // The next batch starts anew.
    raw.clear();
    events = 0;
    shapes_in_batch = 0;
    for (PerRank& rank : ranks) {
      if (rank.shapes.size() == 1) continue;  // nothing of it was in this batch
      rank.shapes.assign(1, Shape{});
      rank.value_differences.clear();
      rank.table.assign(kInitialTableSlots, 0);
      rank.last_started = 0;
      rank.last_completed = 0;
    }
    return batch;
  }
};

BatchEncoder::BatchEncoder() : state_(std::make_unique<State>()) {}
BatchEncoder::~BatchEncoder() = default;

void BatchEncoder::add(Rank rank, const Event& event) {
  state_->add(rank, event);
}
void BatchEncoder::add_control(std::string_view json) {
  state_->add_control(json);
}
bool BatchEncoder::empty() const {
  return state_->events == 0 && state_->raw.empty();
}
std::size_t BatchEncoder::raw_bytes() const {
  return state_->raw.size() + state_->open_bytes;
}
std::uint32_t BatchEncoder::events() const {
  return state_->events;
}
void BatchEncoder::close() {
  state_->close();
}
std::string BatchEncoder::finish(std::uint32_t stream, std::uint64_t sequence) {
  return state_->finish(stream, sequence);
}

}  // namespace lbf
