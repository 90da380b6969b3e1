// Events for the tests of the wire format, and batches around payloads that no encoder would make.
#pragma once

#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "event/wire.h"
#include "event/wire_layout.h"

namespace lbf::wire_samples {

struct Item {
  Rank rank = 0;
  Event event;
  std::vector<std::uint64_t> values;
  std::string control;  // not empty: a control record instead of an event
};

inline Item item(Rank rank, EventKind kind, double process_s, double call_s = 0) {
  Item made;
  made.rank = rank;
  made.event.kind = kind;
  made.event.process_s = process_s;
  made.event.call_s = call_s;
  return made;
}

// Every kind of event, two ranks, two control records, repeated iterations: the contents of the golden batch
// (tests/golden/wire/v1.batch). Append nothing here: the fixture is frozen.
inline std::vector<Item> golden_items() {
  std::vector<Item> items;
  Item control;
  control.control = R"({"type":"process","rank":0})";
  items.push_back(control);
  const auto add = [&](Item made) -> Item& { return items.emplace_back(std::move(made)); };
  for (Rank rank = 0; rank < 2; ++rank) {
    Item& create = add(item(rank, EventKind::kCommCreate, 0));
    create.event.comm = 1;
    create.event.function = 117;
    create.values = {0xFEDCBA9876543210u, 0, 1, 0};
    for (std::uint32_t step = 0; step < 3; ++step) {
      Item& post = add(item(rank, EventKind::kStartRecv, 1e-3, 4e-7));
      post.event.flags = kFlagHasRequest | kFlagCallBegin | kFlagWildcardTag;
      post.event.function = 17;
      post.event.peer = 1 - rank;
      post.event.request = 3 * step + 1;
      Item& send = add(item(rank, EventKind::kIsend, 2.5e-7, 1.5e-6));
      send.event.flags = kFlagHasRequest | kFlagCallBegin;
      send.event.function = 13;
      send.event.peer = 1 - rank;
      send.event.tag = 42;
      send.event.comm = 1;
      send.event.bytes = 8192;
      send.event.request = 3 * step + 2;
      Item& reduce = add(item(rank, EventKind::kIcollective, 1e-8, 0));
      reduce.event.flags = kFlagHasRequest | kFlagCallBegin | kFlagInPlace;
      set_op(reduce.event, CollectiveOp::kAllreduce);
      reduce.event.bytes = 8;
      reduce.event.request = 3 * step + 3;
      Item& end = add(item(rank, EventKind::kEndRecv, 3e-6, 4e-5));
      end.event.flags = kFlagHasRequest | kFlagCallBegin;
      end.event.function = 26;
      end.event.peer = 1 - rank;
      end.event.tag = 42;
      end.event.bytes = 8192;
      end.event.request = 3 * step + 1;
      Item& wait = add(item(rank, EventKind::kWait, 0));
      wait.event.function = 26;
      wait.values = {3 * step + 2, 3 * step + 3};
    }
    add(item(rank, EventKind::kCompute, 0.25));
    Item& blocked = add(item(rank, EventKind::kBlocked, 1e-9));
    blocked.event.off_s = 2.5;
  }
  control.control = R"({"type":"stats","rank":1})";
  items.push_back(control);
  Item& send = add(item(1, EventKind::kSend, 0, 1e-6));
  send.event.flags = kFlagSync;
  send.event.peer = 0;
  send.event.tag = 2147483647;
  send.event.bytes = std::uint64_t{1} << 40;
  Item& recv = add(item(0, EventKind::kRecv, 5, 1));
  recv.event.flags = kFlagWildcardSource;
  recv.event.peer = 1;
  recv.event.tag = 0;
  Item& probe = add(item(0, EventKind::kProbe, 0, 3e-6));
  probe.event.peer = 1;
  probe.event.tag = 9;
  Item& one_wait = add(item(1, EventKind::kWait, 1e-6));
  one_wait.event.flags = kFlagHasRequest;
  one_wait.event.request = 4000000000u;
  Item& gather = add(item(1, EventKind::kCollective, 1e-6, 2e-5));
  set_op(gather.event, CollectiveOp::kAlltoallv);
  gather.event.comm = 1;
  gather.event.root = -4;
  gather.values = {100, 200, 300, 0};
  Item& unmodelled = add(item(0, EventKind::kUnmodelled, 0, 0.125));
  unmodelled.event.function = 300;
  Item& enter = add(item(0, EventKind::kEnter, 1e-6));
  enter.values = {7};
  Item& leave = add(item(0, EventKind::kLeave, 1e-6));
  leave.values = {7};
  add(item(0, EventKind::kKeepAlive, 60));
  Item& cancel = add(item(1, EventKind::kCancel, 0));
  cancel.event.flags = kFlagHasRequest;
  cancel.event.request = 17;
  Item& freed = add(item(1, EventKind::kRequestFree, 0));
  freed.event.flags = kFlagHasRequest;
  freed.event.request = 16;
  Item& phase = add(item(0, EventKind::kPhase, 0));
  phase.event.tag = 2;
  Item& gap = add(item(0, EventKind::kGap, 0));
  gap.event.bytes = 1000;
  Item& comm_free = add(item(1, EventKind::kCommFree, 0));
  comm_free.event.comm = 1;
  add(item(0, EventKind::kExit, 1e-3));
  add(item(1, EventKind::kExit, 86400));
  return items;
}

// Of the kinds that came later than the golden bytes of version 1.
inline std::vector<Item> later_items() {
  std::vector<Item> items;
  const auto add = [&](Item made) -> Item& { return items.emplace_back(std::move(made)); };
  Item& create = add(item(1, EventKind::kCommCreate, 0));
  create.event.comm = 1;
  create.values = {77, 0, 1, 0};
  for (const OneSidedOp op : {OneSidedOp::kPut, OneSidedOp::kLock}) {
    Item& one_sided = add(item(1, EventKind::kOneSided, 1e-6, 2e-6));
    set_op(one_sided.event, op);
    one_sided.event.peer = 0;
    one_sided.event.comm = 1;
    one_sided.event.bytes = op == OneSidedOp::kPut ? 4096 : 0;
    if (op == OneSidedOp::kPut) one_sided.event.flags = kFlagHasRequest;
    if (op == OneSidedOp::kPut) one_sided.event.request = 4000000001u;
  }
  Item& sync = add(item(1, EventKind::kOneSidedSync, 0, 1e-5));
  sync.event.comm = 1;
  Item& io = add(item(0, EventKind::kIo, 0, 0.5));
  set_op(io.event, IoDirection::kWrite);
  io.event.bytes = 1 << 20;
  return items;
}

inline void add_all(BatchEncoder& encoder, const std::vector<Item>& items) {
  for (const Item& made : items) {
    if (!made.control.empty()) {
      encoder.add_control(made.control);
      continue;
    }
    Event event = made.event;
    event.values = made.values;
    encoder.add(made.rank, event);
  }
}

inline std::string encode(const std::vector<Item>& items, std::uint32_t stream = 3, std::uint64_t sequence = 12) {
  BatchEncoder encoder;
  add_all(encoder, items);
  return encoder.finish(stream, sequence);
}

inline std::span<const std::byte> bytes_of(const std::string& batch) {
  return std::as_bytes(std::span(batch));
}

// Writes the checksum of the (changed) header.
inline void seal_header(std::string& batch) {
  wire::store_u32(batch.data() + wire::kHeaderCrcAt, crc32c(batch.data(), wire::kHeaderCrcAt));
}

// A batch with right lengths and checksums around any payload.
inline std::string batch_around(const std::string& raw, std::uint32_t events) {
  std::string batch(kBatchHeaderBytes + ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size =
      ZSTD_compress(batch.data() + kBatchHeaderBytes, batch.size() - kBatchHeaderBytes, raw.data(), raw.size(), 1);
  batch.resize(kBatchHeaderBytes + size);
  std::memcpy(batch.data(), wire::kMagic, sizeof wire::kMagic);
  wire::store_u16(batch.data() + wire::kVersionAt, kWireVersion);
  wire::store_u64(batch.data() + wire::kSequenceAt, 1);
  wire::store_u32(batch.data() + wire::kRawBytesAt, static_cast<std::uint32_t>(raw.size()));
  wire::store_u32(batch.data() + wire::kCompressedBytesAt, static_cast<std::uint32_t>(size));
  wire::store_u32(batch.data() + wire::kEventsAt, events);
  wire::store_u32(batch.data() + wire::kPayloadCrcAt, crc32c(batch.data() + kBatchHeaderBytes, size));
  seal_header(batch);
  return batch;
}

inline std::string payload_of(const std::string& batch) {
  std::string raw(wire::load_u32(reinterpret_cast<const unsigned char*>(batch.data()) + wire::kRawBytesAt), '\0');
  const std::size_t size =
      ZSTD_decompress(raw.data(), raw.size(), batch.data() + kBatchHeaderBytes, batch.size() - kBatchHeaderBytes);
  raw.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return raw;
}

}  // namespace lbf::wire_samples
