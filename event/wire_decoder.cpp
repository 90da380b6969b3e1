// BatchDecoder (event/wire.h): a batch that anybody may have sent, back to events.
// Every length is checked against what is there before anything is read, copied or allocated; memory is
// bounded by the limits in event/wire.h and event/wire_layout.h. Implements docs/formats/wire-v1.md.
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/paged_array.h"
#include "event/wire.h"
#include "event/wire_cursor.h"
#include "event/wire_layout.h"
#include "event/wire_shape.h"

namespace lbf {
namespace {

using wire::Cursor;
using wire::kNoShape;
using wire::RequestUse;
using wire::Shape;

// Loads of 8 bytes may start at the last byte of the payload.
constexpr std::size_t kPaddingBytes = 16;
constexpr std::size_t kRawStep = std::size_t{16} << 10;  // capacity for payloads is a multiple of this
constexpr std::uint32_t kUnknownComm = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxCachedComms = 4096;

constexpr std::uint64_t kLengthMasks[8] = {0,          0xFF,         0xFFFF,         0xFFFFFF,
                                           0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF};

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
// One for all decoders of a thread, of which a merge has one a node: it takes 100 KiB and more, and nothing of it
// outlives a call.
ZSTD_DCtx* zstd_context() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

// How the requests of one event of a round are numbered.
struct RoundStep {
  std::uint64_t from_last;  // its first request, from the last one of the same use on
  std::uint64_t distance;   // to its last one
  std::uint64_t mask;
  std::uint32_t last;  // RequestUse: whose last one
  std::uint32_t shape;
};
// The rounds that a thread reads. Nothing of it outlives a call.
struct RoundsRead {
  std::vector<Event> events;
  std::vector<RoundStep> steps;
  std::vector<Rounds::Times> times;  // grows only
};
RoundsRead& rounds_read() {
  thread_local RoundsRead rounds;
  return rounds;
}

}  // namespace

struct BatchDecoder::State {
  static constexpr std::size_t kBlockEvents = 64;
  static constexpr std::uint32_t kNoSection = std::numeric_limits<std::uint32_t>::max();
  // A section that was found and not read to its end.
  struct Section {
    Rank rank = 0;
    std::uint32_t which = 0;  // place of the rank in `ranks`
    std::uint64_t events = 0;
    std::uint64_t done = 0;
    const unsigned char* control = nullptr;
    Cursor data{nullptr, nullptr};
    std::uint32_t next = kNoSection;  // of this rank
  };
  struct RankState {
    std::uint64_t last_started = 0;
    std::uint64_t last_completed = 0;
    std::uint32_t first_shape = kNoShape;        // successor of "none"
    std::uint32_t previous_shape = kNoShape;     // of the section at hand; kNoShape: none, or one for one event only
    std::vector<std::uint32_t> shape_by_number;  // number - 1 -> index into `shapes`
    std::vector<std::uint32_t> global_by_local;  // kUnknownComm: look it up
    std::uint32_t which = 0;                     // place in `ranks`, if it has a section in the segment
    std::uint32_t section = kNoSection;          // the one at hand, of the segment
    std::uint32_t last_section = kNoSection;
  };

  CommunicatorTable& communicators;
  Rank max_ranks;
  std::vector<unsigned char> raw;
  PagedArray<Shape> shapes;           // of all ranks of the batch
  Shape once;                         // a shape for one event only
  std::vector<std::uint64_t> values;  // of all shapes (kWait: differences)
  // Events that were decoded and not handed on yet.
  std::array<Event, kBlockEvents> pending;
  bool pending_values = false;                  // some of them point into `values` or `several_requests`
  std::vector<std::uint64_t> several_requests;  // kWait's values, of the block
  std::size_t several_used = 0;
  std::vector<RankState> states;  // of the ranks of the batch
  std::unordered_map<Rank, std::uint32_t> state_by_rank;
  // The segment at hand: the sections up to the next control record. Ranks are independent of each other in
  // it.
  std::vector<Section> sections;
  std::size_t sections_left = 0;
  std::vector<Rank> ranks;              // that have a section, in the order of their first ones
  std::vector<std::uint32_t> state_of;  // of each of these ranks
  BatchHeader header;                   // of the batch at hand
  Cursor at{nullptr, nullptr};          // its next block
  std::uint64_t events_seen = 0;
  std::uint64_t values_seen = 0;
  std::uint64_t waited_requests = 0;
  bool lost_in_gap = false;  // the event at hand refers to what a gap took along
  std::string batch_name;

  State(CommunicatorTable& table, Rank rank_limit) : communicators(table), max_ranks(rank_limit) {}

  Error fail(const std::string& what) const { return invalid_input(batch_name + ": " + what); }

  // `raw` has `bytes`, whatever they are. Its capacity is not doubled: a merge has a batch of every node open.
  void make_room(std::size_t bytes) {
    if (bytes > raw.capacity()) {
      std::vector<unsigned char>().swap(raw);
      raw.reserve((bytes + kRawStep - 1) / kRawStep * kRawStep);
    }
    raw.resize(bytes);
  }

  Result<BatchHeader> open(std::span<const std::byte> batch) {
    at = {nullptr, nullptr};
    Result<BatchHeader> read = read_batch_header(batch);
    if (!read) return read;
    header = *read;
    batch_name = "batch " + std::to_string(header.sequence) + " of stream " + std::to_string(header.stream);
    const auto payload = batch.subspan(kBatchHeaderBytes);
    if (payload.size() != header.compressed_bytes) {
      return fail(std::to_string(payload.size() - header.compressed_bytes) + " bytes follow its end");
    }
    if (!has_whole_payload(batch)) return fail("damaged: the checksum of its payload is wrong");
    make_room(header.raw_bytes + kPaddingBytes);
    const std::size_t size =
        ZSTD_decompressDCtx(zstd_context(), raw.data(), header.raw_bytes, payload.data(), payload.size());
    if (ZSTD_isError(size) != 0) return fail(std::string("zstd: ") + ZSTD_getErrorName(size));
    if (size != header.raw_bytes) {
      return fail("its payload has " + std::to_string(size) + " bytes; the header says " +
                  std::to_string(header.raw_bytes));
    }
    std::fill_n(raw.begin() + header.raw_bytes, kPaddingBytes, static_cast<unsigned char>(0));

    shapes.clear();
    once = Shape{};
    values.clear();
    states.clear();
    state_by_rank.clear();
    sections.clear();
    ranks.clear();
    state_of.clear();
    sections_left = 0;
    events_seen = 0;
    values_seen = 0;
    waited_requests = 0;
    lost_in_gap = false;
    at = {raw.data(), raw.data() + header.raw_bytes};
    return header;
  }

  // Hands on the control records that come next and finds the sections up to the next one. False: the batch
  // is over.
  Result<bool> next_segment(const BatchSink& sink) {
    sections.clear();
    ranks.clear();
    state_of.clear();
    Cursor cursor = std::exchange(at, {nullptr, nullptr});  // after an error there is nothing more
    while (cursor.left() > 0) {
      const unsigned char* const block = cursor.at;
      const std::uint8_t type = cursor.byte();
      if (type == wire::kControlBlock) {
        if (!sections.empty()) {
          cursor.at = block;
          break;
        }
        if (Result<void> done = read_control(cursor, sink); !done) return done.error();
      } else if (type == wire::kSectionBlock) {
        if (Result<void> done = find_section(cursor); !done) return done.error();
      } else {
        return fail("unknown block type " + std::to_string(type));
      }
    }
    at = cursor;
    sections_left = sections.size();
    if (sections.empty()) forget_large();
    if (at.left() == 0 && events_seen != header.events) {
      return fail("it has " + std::to_string(events_seen) + " events; the header says " +
                  std::to_string(header.events));
    }
    return !sections.empty();
  }

  // What an unusual batch needed is not kept: a daemon has a decoder for each stream.
  void forget_large() {
    const auto shrink = [](auto& list) {
      constexpr std::size_t kKeptBytes = std::size_t{4} << 20;
      if (list.capacity() * sizeof(list[0]) > kKeptBytes) std::remove_reference_t<decltype(list)>().swap(list);
    };
    shrink(values);
    shrink(several_requests);
    shrink(sections);
    shrink(states);
  }

  Result<void> find_section(Cursor& cursor) {
    const std::uint64_t rank_number = cursor.varint();
    const std::uint64_t count = cursor.varint();
    const std::uint64_t data_bytes = cursor.varint();
    if (!cursor.ok || count > cursor.left() || data_bytes > cursor.left() - count) {
      return fail("a section is longer than the batch");
    }
    if (max_ranks <= 0 || rank_number >= static_cast<std::uint64_t>(max_ranks)) {
      return fail("rank " + std::to_string(rank_number) + " is out of range: the step has " +
                  std::to_string(max_ranks) + " ranks");
    }
    if (count == 0) return fail("a section without events");
    const auto index = static_cast<std::uint32_t>(sections.size());
    Section& section = sections.emplace_back();
    section.rank = static_cast<Rank>(rank_number);
    section.events = count;
    section.control = cursor.at;
    cursor.at += count;
    section.data = {cursor.at, cursor.at + data_bytes};
    cursor.at += data_bytes;
    events_seen += count;
    const auto [known, is_new] = state_by_rank.try_emplace(section.rank, static_cast<std::uint32_t>(states.size()));
    RankState& state = is_new ? states.emplace_back() : states[known->second];
    if (state.section == kNoSection) {
      state.section = index;
      state.which = static_cast<std::uint32_t>(ranks.size());
      ranks.push_back(section.rank);
      state_of.push_back(known->second);
    } else {
      sections[state.last_section].next = index;
    }
    section.which = state.which;
    state.last_section = index;
    return {};
  }

  // At most `most` events of a rank of this segment.
  Result<Taken> next(std::size_t which, std::uint64_t most, const BatchSink& sink) {
    Taken taken;
    if (which >= state_of.size()) return taken;
    RankState& state = states[state_of[which]];
    if (state.section == kNoSection) return taken;
    Section& section = sections[state.section];
    for (std::uint64_t left = std::min(most, section.events - section.done); left > 0;) {
      std::uint64_t part = left;
      if (sink.on_rounds && sink.on_events) {
        const Result<std::uint64_t> as_rounds = read_rounds(section, state, left, sink, taken.passed_s);
        if (!as_rounds) return as_rounds.error();
        left -= *as_rounds;
        // Rounds follow one another.
        if (*as_rounds > 0 && section.events - section.done > left) break;
        part = events_to_rounds(section, left);
      }
      if (part == 0) break;
      if (Result<void> done = read_events(section, state, part, sink, taken.passed_s); !done) return done.error();
      left -= part;
    }
    if (section.done == section.events) {
      if (section.data.left() != 0) {
        return fail("a section of rank " + std::to_string(section.rank) + " has bytes left over");
      }
      state.section = section.next;
      state.previous_shape = kNoShape;
      --sections_left;
    }
    taken.more = state.section != kNoSection;
    return taken;
  }

  Result<void> read_all(const BatchSink& sink) {
    for (;;) {
      const Result<bool> found = next_segment(sink);
      if (!found) return found.error();
      if (!*found) return {};
      for (std::size_t i = 0; i < sections.size(); ++i) {  // as the batch has them
        const Result<Taken> done = next(sections[i].which, sections[i].events, sink);
        if (!done) return done.error();
      }
    }
  }

  void prefetch(std::size_t which) const {
    constexpr std::size_t kLine = 64;
    const RankState& state = states[state_of[which]];
    if (state.section == kNoSection) return;
    const Section& section = sections[state.section];
    __builtin_prefetch(section.control + section.done);
    for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(section.data.at + line * kLine);
  }

  Result<void> read_control(Cursor& cursor, const BatchSink& sink) {
    const std::uint64_t size = cursor.varint_up_to(kMaxControlBytes);
    if (!cursor.ok || size > cursor.left()) return fail("a control record is longer than it may be");
    const std::string_view json(reinterpret_cast<const char*>(cursor.at), static_cast<std::size_t>(size));
    cursor.at += size;
    return sink.on_control ? sink.on_control(json) : Result<void>();
  }

  // The events from the first pending one to `end`, which is there again afterwards.
  Result<void> hand_on(Rank rank, const BatchSink& sink, Event*& end) {
    const std::span<const Event> events(pending.data(), std::exchange(end, pending.data()));
    pending_values = false;
    several_used = 0;
    return events.empty() || !sink.on_events ? Result<void>() : sink.on_events(rank, events);
  }

  Result<void> read_events(Section& section, RankState& state, std::uint64_t most, const BatchSink& sink,
                           Seconds& passed_s) {
    const Rank rank = section.rank;
    const auto event_error = [&](std::uint64_t i, const std::string& what) {
      return fail("rank " + std::to_string(rank) + ", event " + std::to_string(i + 1) + " of its section: " + what);
    };
    // Where it is noted which shape follows here.
    std::uint32_t* expected =
        state.previous_shape == kNoShape ? &state.first_shape : &shapes[state.previous_shape].successor;
    const std::uint64_t end = section.done + std::min(most, section.events - section.done);
    Event* free = pending.data();
    Cursor data = section.data;
    Shape* shape = nullptr;
    std::uint64_t total_ns = 0;
    for (std::uint64_t i = section.done; i < end; ++i) {
      const unsigned bits = section.control[i];
      const unsigned process_length = bits & wire::kTimeLengthMask;
      const unsigned call_length = bits >> wire::kCallLengthShift & wire::kTimeLengthMask;
      // At most 14 bytes on: still in the padding.
      const unsigned char* const call_at = data.at + process_length;
      if (call_at + call_length > data.end) return event_error(i, "its times are cut short");
      const std::uint64_t process_ns = wire::load_u64(data.at) & kLengthMasks[process_length];
      const std::uint64_t call_ns = wire::load_u64(call_at) & kLengthMasks[call_length];
      data.at = call_at + call_length;

      if ((bits & wire::kExplicitShape) != 0) {
        const std::uint64_t code = data.varint();
        if (!data.ok) return event_error(i, "its shape is cut short");
        if (code >= wire::kFirstShapeCode) {
          const std::uint64_t number = code - wire::kFirstShapeCode;
          if (number >= state.shape_by_number.size()) {
            return event_error(i, "it refers to a shape that is not there");
          }
          *expected = state.shape_by_number[static_cast<std::size_t>(number)];
          shape = &shapes[*expected];
        } else {
          if (pending_values) {  // they may move
            if (Result<void> done = hand_on(rank, sink, free); !done) return done;
          }
          if (const char* wrong = read_definition(data); wrong != nullptr) return event_error(i, wrong);
          if (code == wire::kDefineOnceCode) {
            *expected = kNoShape;
            shape = &once;
          } else {
            if (shapes.size() >= wire::kMaxShapes) return event_error(i, "the batch has too many shapes");
            *expected = static_cast<std::uint32_t>(shapes.size());
            state.shape_by_number.push_back(*expected);
            shape = &shapes.emplace_back();
            *shape = std::exchange(once, Shape{});
          }
        }
      } else {
        if (*expected == kNoShape) return event_error(i, "no shape is known to follow here");
        shape = &shapes[*expected];
      }
      expected = shape != &once ? &shape->successor : &state.first_shape;

      if ((bits & wire::kExplicitRequest) != 0) {
        shape->request_delta = wire::unzigzag(data.varint());
        if (!data.ok || shape->use == RequestUse::kNone) return event_error(i, "a request where none can be");
      }
      const bool needs_room =
          shape->use == RequestUse::kSeveral && several_used + shape->values_count > several_requests.size();
      if (needs_room) [[unlikely]] {
        if (Result<void> done = hand_on(rank, sink, free); !done) return done;
      }
      Event& event = *free++;
      shape->copy_to(event, Duration::of_ns(static_cast<Nanoseconds>(process_ns)),
                     Duration::of_ns(static_cast<Nanoseconds>(call_ns)));
      total_ns += process_ns + call_ns;
      if (shape->extra == wire::kSetRequest) {
        set_request(*shape, event, state);
      } else if (shape->extra != 0) {
        if (Result<void> done = finish_event(*shape, event, rank, state, data, sink); !done) {
          return event_error(i, done.error().message);
        }
        total_ns += static_cast<std::uint64_t>(event.off_s.ns());
        if (std::exchange(lost_in_gap, false)) [[unlikely]]
          event = gap_instead_of(event);
      }
      if (free == pending.data() + kBlockEvents) {
        if (Result<void> done = hand_on(rank, sink, free); !done) return done;
      }
    }
    if (Result<void> done = hand_on(rank, sink, free); !done) return done;
    if (shape != nullptr) {
      state.previous_shape = shape != &once ? static_cast<std::uint32_t>(shape - &shapes[0]) : kNoShape;
    }
    section.data = data;
    section.done = end;
    passed_s += seconds_from_ns(static_cast<Nanoseconds>(total_ns));
    return {};
  }

  // --- rounds (event/rounds.h)

  // How many events from CONTROL on say nothing but "the shape that came next last time, its request, too".
  static std::uint64_t expected_events(const unsigned char* control, std::uint64_t most) {
    constexpr unsigned kSurprise = wire::kExplicitShape | wire::kExplicitRequest;
    constexpr std::uint64_t kSurpriseInEight = 0x0101010101010101u * kSurprise;
    std::uint64_t count = 0;
    while (count + 8 <= most && (wire::load_u64(control + count) & kSurpriseInEight) == 0) count += 8;
    while (count < most && (control[count] & kSurprise) == 0) ++count;
    return count;
  }

  // Events of the section, where rounds do not come next, until they may; all LEFT ones, if there will be none.
  static std::uint64_t events_to_rounds(const Section& section, std::uint64_t left) {
    constexpr std::uint64_t kWorthACall = 32;
    const unsigned char* const control = section.control + section.done;
    std::uint64_t count = expected_events(control, left) + 1;
    while (count + kWorthACall <= left) {
      const std::uint64_t expected = expected_events(control + count, kWorthACall);
      if (expected == kWorthACall) return count;
      count += expected + 1;
    }
    return left;
  }

  static bool may_be_in_rounds(const Shape& shape) {
    if (shape.kind == EventKind::kExit || shape.kind == EventKind::kCommFree) return false;
    constexpr unsigned kPossible =
        wire::kSetRequest | wire::kSetSeveralRequests | wire::kTranslateComm | wire::kHasValueList;
    return (shape.extra & ~kPossible) == 0;
  }

  // The number of shapes from FIRST on that come again and again; 0: they do not, or are more than MOST.
  std::size_t cycle_length(std::uint32_t first, std::uint64_t most) const {
    std::size_t length = 0;
    for (std::uint32_t index = first; index != kNoShape && length < most;) {
      if (!may_be_in_rounds(shapes[index])) return 0;
      ++length;
      index = shapes[index].successor;
      if (index == first) return length;
    }
    return 0;
  }

  // At most MOST events of the section, as rounds. How many these were: 0 where there are no rounds, the sink does not
  // want them, or something is wrong, which read_events() will say.
  Result<std::uint64_t> read_rounds(Section& section, RankState& state, std::uint64_t most, const BatchSink& sink,
                                    Seconds& passed_s) {
    constexpr std::uint64_t kFewestRounds = 2;
    constexpr std::uint64_t kMostEvents = 4096;
    const unsigned char* control = section.control + section.done;
    std::uint64_t expected = expected_events(control, std::min(most, kMostEvents));
    const std::uint32_t first =
        state.previous_shape == kNoShape ? state.first_shape : shapes[state.previous_shape].successor;
    const std::size_t length = cycle_length(first, expected / kFewestRounds);
    if (length == 0) return std::uint64_t{0};
    // What the next call gets of the same rounds is enough for rounds, too.
    const std::uint64_t fewest = kFewestRounds * length;
    const std::uint64_t rest =
        expected_events(control + expected, std::min(fewest, section.events - section.done - expected));
    if (rest > 0 && expected + rest >= 2 * fewest) expected -= fewest - rest;

    auto& [round_events, round_steps, round_times] = rounds_read();
    round_events.clear();
    round_steps.clear();
    std::uint64_t round_values = 0;
    std::uint64_t round_waits = 0;
    for (std::uint32_t index = first; round_events.size() < length; index = shapes[index].successor) {
      const Shape& shape = shapes[index];
      Event& event = round_events.emplace_back();
      shape.copy_to(event, {}, {});
      if (shape.values_count > 0) event.values = std::span(values).subspan(shape.values_at, shape.values_count);
      if ((shape.extra & wire::kTranslateComm) != 0) {
        const bool known = shape.local_comm < state.global_by_local.size();
        event.comm = known ? state.global_by_local[shape.local_comm] : kUnknownComm;
        if (event.comm == kUnknownComm) return std::uint64_t{0};
      }
      const bool several = shape.use == RequestUse::kSeveral;
      const bool in_last = round_steps.size() < expected % length;
      const std::uint64_t all_values = shape.values_count * (expected / length + (in_last ? 1 : 0));
      round_values += all_values;
      if (several) round_waits += all_values;
      round_steps.push_back({shape.use == RequestUse::kNone ? 0 : shape.request_delta + 1, shape.request_distance,
                             several ? ~std::uint64_t{0} : std::uint64_t{0xFFFFFFFF},
                             static_cast<std::uint32_t>(several ? RequestUse::kCompletes : shape.use), index});
    }
    if (values_seen + round_values > wire::kMaxValues || waited_requests + round_waits > wire::kMaxWaitedRequests) {
      return std::uint64_t{0};
    }

    // The last request by use.
    std::uint64_t requests[] = {0, state.last_started, state.last_completed};
    std::uint64_t total_ns = 0;
    const unsigned char* data = section.data.at;
    if (round_times.size() < expected) round_times.resize(expected);
    const RoundStep* step = round_steps.data();
    const RoundStep* const end_of_round = step + length;
    for (Rounds::Times& times : std::span(round_times).first(expected)) {
      const unsigned bits = *control++;
      const unsigned process_length = bits & wire::kTimeLengthMask;
      const unsigned call_length = bits >> wire::kCallLengthShift;
      const unsigned char* const call_at = data + process_length;
      if (call_at + call_length > section.data.end) return std::uint64_t{0};
      times.process_ns = wire::load_u64(data) & kLengthMasks[process_length];
      times.call_ns = wire::load_u64(call_at) & kLengthMasks[call_length];
      data = call_at + call_length;
      total_ns += times.process_ns + times.call_ns;
      times.request = (requests[step->last] + step->from_last) & step->mask;
      requests[step->last] = times.request + step->distance;
      if (++step == end_of_round) step = round_steps.data();
    }

    const Result<bool> taken = sink.on_rounds(section.rank, Rounds{round_events, {round_times.data(), expected}});
    if (!taken) return taken.error();
    if (!*taken) return std::uint64_t{0};
    values_seen += round_values;
    waited_requests += round_waits;
    state.last_started = requests[1];
    state.last_completed = requests[2];
    state.previous_shape = round_steps[(expected - 1) % length].shape;
    section.data.at = data;
    section.done += expected;
    passed_s += seconds_from_ns(static_cast<Nanoseconds>(total_ns));
    return expected;
  }

  // Reads a definition into `once`. nullptr, or what is wrong.
  const char* read_definition(Cursor& data) {
    // The values of a shape that was for one event only are the last ones: nobody needs them any more.
    if (once.values_count > 0) values.resize(once.values_at);
    once = Shape{};
    const char* const wrong = wire::read_shape(data, max_ranks, once, values);
    if (once.use == RequestUse::kSeveral && several_requests.size() < once.values_count)
      several_requests.resize(once.values_count);
    return wrong;
  }

  // One more event that is lost; the time that it took passes all the same.
  static Event gap_instead_of(const Event& event) {
    Event gap = gap_event(1);
    gap.function = event.function;
    gap.process_s = event.process_s;
    gap.call_s = event.call_s;
    return gap;
  }

  static void set_request(const Shape& shape, Event& event, RankState& state) {
    std::uint64_t& last = shape.use == RequestUse::kStarts ? state.last_started : state.last_completed;
    event.request = static_cast<std::uint32_t>(last + 1 + shape.request_delta);
    last = event.request;
  }

  // The rarer parts of an event. Errors carry the bare text; the caller says where.
  [[gnu::always_inline]] inline Result<void> finish_event(Shape& shape, Event& event, Rank rank, RankState& state,
                                                          Cursor& data, const BatchSink& sink) {
    values_seen += shape.values_count;
    if (values_seen > wire::kMaxValues) return invalid_input("the batch has too many values");
    if ((shape.extra & wire::kSetRequest) != 0) set_request(shape, event, state);
    if ((shape.extra & wire::kSetSeveralRequests) != 0) {
      waited_requests += shape.values_count;
      if (waited_requests > wire::kMaxWaitedRequests) return invalid_input("the batch waits for too many requests");
      std::uint64_t request = state.last_completed + 1 + shape.request_delta;
      state.last_completed = request + shape.request_distance;
      if (sink.on_events) {
        for (std::size_t i = 0; i < shape.values_count; ++i) {
          request += values[shape.values_at + i];
          several_requests[several_used + i] = request;
        }
        event.values = std::span(several_requests).subspan(several_used, shape.values_count);
        several_used += shape.values_count;
        pending_values = true;
      }
    }
    if ((shape.extra & wire::kHasValueList) != 0) {
      event.values = std::span(values).subspan(shape.values_at, shape.values_count);
      pending_values = true;
    }
    if ((shape.extra & wire::kReadOff) != 0) {
      const std::uint64_t off_ns = data.varint_up_to(wire::kMaxTimeNs);
      if (!data.ok) return invalid_input("its time off the processor is cut short or too large");
      event.off_s = Duration::of_ns(static_cast<Nanoseconds>(off_ns));
    }
    if ((shape.extra & wire::kNoteGap) != 0) communicators.note_gap(rank);
    if ((shape.extra & wire::kTranslateComm) != 0) return translate_comm(shape, event, rank, state);
    if ((shape.extra & wire::kDefineComm) != 0) return define_comm(shape, event, rank, state);
    return {};
  }

  Result<void> translate_comm(const Shape& shape, Event& event, Rank rank, RankState& state) {
    if (shape.local_comm < state.global_by_local.size() && state.global_by_local[shape.local_comm] != kUnknownComm) {
      event.comm = state.global_by_local[shape.local_comm];
    } else {
      Result<std::uint32_t> global = communicators.translate(rank, shape.local_comm);
      if (!global && communicators.has_gap(rank)) {
        lost_in_gap = true;
        return {};
      }
      if (!global) return global.error();
      event.comm = *global;
      remember_comm(state, shape.local_comm, *global);
    }
    return {};
  }

  // A shape that comes again need not be compared again with what it has defined.
  Result<void> define_comm(Shape& shape, Event& event, Rank rank, RankState& state) {
    if (shape.defined_as == wire::kNoComm) {
      Result<std::uint32_t> global = communicators.define(rank, shape.local_comm, event.values);
      if (!global && global.error().code != ErrorCode::kLimit) return global.error();
      shape.defined_as = global ? *global : wire::kLostComm;
      if (global) remember_comm(state, shape.local_comm, *global);
    }
    if (shape.defined_as == wire::kLostComm) {
      communicators.note_gap(rank);
      lost_in_gap = true;
    } else {
      event.comm = shape.defined_as;
    }
    return {};
  }

  static void remember_comm(RankState& state, std::uint32_t local, std::uint32_t global) {
    if (local >= kMaxCachedComms) return;
    std::vector<std::uint32_t>& known = state.global_by_local;
    if (known.size() <= local) known.resize(local + std::size_t{1}, kUnknownComm);
    known[local] = global;
  }
};

BatchDecoder::BatchDecoder(CommunicatorTable& communicators, Rank max_ranks)
    : state_(std::make_unique<State>(communicators, max_ranks)) {}
BatchDecoder::~BatchDecoder() = default;

Result<BatchHeader> BatchDecoder::open(std::span<const std::byte> batch) {
  return state_->open(batch);
}
Result<std::span<const Rank>> BatchDecoder::ranks(const BatchSink& sink) {
  if (state_->sections_left == 0) {
    const Result<bool> found = state_->next_segment(sink);
    if (!found) return found.error();
  }
  return std::span<const Rank>(state_->ranks);
}
Result<BatchDecoder::Taken> BatchDecoder::next(std::size_t which, std::uint64_t most, const BatchSink& sink) {
  return state_->next(which, most, sink);
}
void BatchDecoder::prefetch(std::size_t which) const {
  state_->prefetch(which);
}

Result<BatchHeader> BatchDecoder::decode(std::span<const std::byte> batch, const BatchSink& sink) {
  const Result<BatchHeader> header = open(batch);
  if (!header) return header;
  if (Result<void> done = state_->read_all(sink); !done) {
    state_->forget_large();
    return done.error();
  }
  return header;
}

}  // namespace lbf
