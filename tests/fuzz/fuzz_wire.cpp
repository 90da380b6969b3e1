// Fuzzes the wire decoder. The first byte says how: odd, the rest is a batch as it is; even, the rest is a
// payload around which lengths and checksums are made right (else nothing but the checksum would ever be
// tested). What can be decoded can be encoded, and decodes again to the same number of events. As rounds
// (event/rounds.h) come the same events.
#include "event/wire.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/event/rounds_as_events.h"
#include "tests/unit/event/wire_samples.h"

namespace {

constexpr lbf::Rank kMaxRanks = 64;

struct Decoded {
  bool ok = false;
  std::string error;
  std::vector<lbf::wire_samples::Item> items;
};

enum class As { kEvents, kRounds };

Decoded decode(std::span<const std::byte> batch, As as = As::kEvents) {
  lbf::CommunicatorTable communicators;
  lbf::BatchDecoder decoder(communicators, kMaxRanks);
  Decoded decoded;
  lbf::BatchSink sink;
  sink.on_events = lbf::one_by_one([&](lbf::Rank rank, const lbf::Event& event) -> lbf::Result<void> {
    fuzz_require(rank >= 0 && rank < kMaxRanks, "the rank is in range");
    fuzz_require(event.peer >= lbf::kAnyRank && event.peer < kMaxRanks, "the peer is in range");
    fuzz_require(static_cast<int>(event.kind) < lbf::kEventKindCount, "the kind is known");
    fuzz_require(event.op_code < lbf::op_count(event.kind), "the operation is known");
    fuzz_require(event.process_s >= 0 && event.call_s >= 0 && event.off_s >= 0, "no time is negative");
    fuzz_require(event.comm < communicators.size(), "the communicator exists");
    auto& item = decoded.items.emplace_back();
    item.rank = rank;
    item.event = event;
    item.values.assign(event.values.begin(), event.values.end());
    return {};
  });
  sink.on_control = [&](std::string_view json) -> lbf::Result<void> {
    decoded.items.emplace_back().control = json.empty() ? " " : json;
    return {};
  };
  if (as == As::kRounds) {
    sink.on_rounds = [&](lbf::Rank rank, const lbf::Rounds& rounds) -> lbf::Result<bool> {
      if (const auto taken = lbf::hand_on_as_events(rank, rounds, sink.on_events); !taken) return taken.error();
      return true;
    };
  }
  const auto header = decoder.decode(batch, sink);
  decoded.ok = header.ok();
  if (!decoded.ok) {
    decoded.error = header.error().message;
    fuzz_require(!header.error().message.empty(), "an error has a message");
    fuzz_require(header.error().message.find('\n') == std::string::npos, "an error is one line");
  }
  return decoded;
}

// What a decoder that hands on rounds says is what one that does not says.
Decoded decode_both(const std::string& batch) {
  Decoded decoded = decode(lbf::wire_samples::bytes_of(batch));
  const Decoded rounds = decode(lbf::wire_samples::bytes_of(batch), As::kRounds);
  fuzz_require(rounds.error == decoded.error, "the error is the same");
  if (!decoded.ok) return decoded;  // how many events came before it may differ
  fuzz_require(rounds.items.size() == decoded.items.size(), "there are as many events");
  for (std::size_t i = 0; i < decoded.items.size(); ++i) {
    const lbf::Event& a = decoded.items[i].event;
    const lbf::Event& b = rounds.items[i].event;
    fuzz_require(decoded.items[i].rank == rounds.items[i].rank && a.kind == b.kind && a.peer == b.peer &&
                     a.tag == b.tag && a.comm == b.comm && a.request == b.request && a.bytes == b.bytes &&
                     a.process_s.ns() == b.process_s.ns() && a.call_s.ns() == b.call_s.ns() &&
                     decoded.items[i].values == rounds.items[i].values,
                 "the events are the same");
  }
  return decoded;
}

// A rank that does the same again and again.
std::vector<lbf::wire_samples::Item> regular_items() {
  std::vector<lbf::wire_samples::Item> items;
  for (std::uint32_t request = 1; request < 60; request += 2) {
    for (const auto kind : {lbf::EventKind::kStartRecv, lbf::EventKind::kIsend, lbf::EventKind::kEndRecv}) {
      auto& call = items.emplace_back(lbf::wire_samples::item(0, kind, 1e-6 * request, 1e-7));
      call.event.flags = lbf::kFlagHasRequest;
      call.event.peer = 1;
      call.event.tag = 3;
      call.event.request = kind == lbf::EventKind::kIsend ? request + 1 : request;
    }
    items.emplace_back(lbf::wire_samples::item(0, lbf::EventKind::kWait, 0)).values = {request + 1};
  }
  return items;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  using lbf::wire_samples::golden_items;
  const std::string batch = lbf::wire_samples::encode(golden_items());
  const std::string raw = lbf::wire_samples::payload_of(batch);
  const std::string regular = lbf::wire_samples::payload_of(lbf::wire_samples::encode(regular_items()));
  return {"\1" + batch, std::string(1, '\0') + raw, std::string(1, '\2') + raw, std::string(1, '\0') + raw + raw,
          std::string(1, '\0') + regular};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  Decoded decoded;
  if ((data[0] & 1) != 0) {
    decoded = decode_both(input);
  } else {
    // The number of events is in the header, too: count what the decoder gets to see.
    const Decoded counted = decode(lbf::wire_samples::bytes_of(lbf::wire_samples::batch_around(input, 0)));
    std::uint32_t events = 0;
    for (const auto& item : counted.items) events += item.control.empty() ? 1 : 0;
    decoded = decode_both(lbf::wire_samples::batch_around(input, events));
  }
  if (!decoded.ok) return 0;
  const Decoded again = decode(lbf::wire_samples::bytes_of(lbf::wire_samples::encode(decoded.items)));
  fuzz_require(again.ok, "what was decoded can be encoded and decoded");
  fuzz_require(again.items.size() == decoded.items.size(), "no event was lost");
  return 0;
}
