#include "predictor/match/channel_table.h"

#include <algorithm>
#include <utility>

namespace lbf {
namespace {
constexpr std::size_t kFirstSlots = 16;
}  // namespace

std::size_t ChannelTable::home(const Table& table, std::uint32_t comm, Rank src, std::int32_t tag) {
  std::uint64_t hash =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(src)) << 32) | static_cast<std::uint32_t>(tag);
  hash += static_cast<std::uint64_t>(comm) * 0x9e3779b97f4a7c15;
  hash *= 0xbf58476d1ce4e5b9;
  hash ^= hash >> 32;
  return static_cast<std::size_t>(hash) & (table.slots.size() - 1);
}

void ChannelTable::rebuild(Table& table) {
  std::size_t busy = 0;
  for (const Channel& channel : table.slots) {
    busy += channel.used && (channel.head != kNoMessage || channel.peeked != kNoMessage) ? 1 : 0;
  }
  std::size_t size = table.slots.empty() ? kFirstSlots : table.slots.size();
  // At most a quarter full afterwards: the next rebuild is then at least a quarter of the slots away.
  while (busy * 4 > size) size *= 2;
  const std::vector<Channel> old = std::move(table.slots);
  table.slots.assign(size, Channel{});
  table.used = busy;
  for (const Channel& channel : old) {
    if (!channel.used || (channel.head == kNoMessage && channel.peeked == kNoMessage)) continue;
    std::size_t i = home(table, channel.comm, channel.src, channel.tag);
    while (table.slots[i].used) i = (i + 1) & (size - 1);
    table.slots[i] = channel;
  }
}

ChannelTable::Channel& ChannelTable::at(const ChannelKey& key) {
  const auto dst = static_cast<std::size_t>(key.dst);
  if (dst >= tables_.size()) tables_.resize(std::max(dst + 1, static_cast<std::size_t>(store_.ranks())));
  Table& table = tables_[dst];
  if (table.used * 2 >= table.slots.size()) rebuild(table);
  std::size_t i = home(table, key.comm, key.src, key.tag);
  for (; table.slots[i].used; i = (i + 1) & (table.slots.size() - 1)) {
    Channel& channel = table.slots[i];
    if (channel.src == key.src && channel.tag == key.tag && channel.comm == key.comm) return channel;
  }
  Channel& channel = table.slots[i];
  channel = Channel{};
  channel.comm = key.comm;
  channel.src = key.src;
  channel.tag = key.tag;
  channel.used = true;
  ++table.used;
  return channel;
}

MessageIndex ChannelTable::append(Channel& channel, const ChannelKey& key, bool sender) {
  const MessageIndex index = store_.new_message();
  Message& message = store_.message(index);
  message.src = key.src;
  message.dst = key.dst;
  message.comm = key.comm & 0x7fffffffU;
  message.collective = (key.comm & 0x80000000U) != 0;
  message.tag = key.tag;
  if (channel.head == kNoMessage) {
    channel.head = index;
  } else {
    store_.message(channel.tail).next = index;
  }
  channel.tail = index;
  channel.sender_ahead = sender;
  return index;
}

void ChannelTable::push_front(Channel& channel, MessageIndex index) {
  store_.message(index).next = channel.head;
  if (channel.head == kNoMessage) channel.tail = index;
  channel.head = index;
  channel.sender_ahead = true;
}

MessageIndex ChannelTable::pop(Channel& channel) {
  const MessageIndex index = channel.head;
  channel.head = store_.message(index).next;
  store_.message(index).next = kNoMessage;
  return index;
}

MessageIndex ChannelTable::take_send(const ChannelKey& key, bool& paired) {
  Channel& channel = at(key);
  paired = channel.head != kNoMessage && !channel.sender_ahead;
  return paired ? pop(channel) : append(channel, key, true);
}

MessageIndex ChannelTable::take_receive(const ChannelKey& key, bool& paired) {
  Channel& channel = at(key);
  if (channel.peeked != kNoMessage) {
    const MessageIndex index = channel.peeked;
    channel.peeked = kNoMessage;
    paired = false;  // counted when it was peeked, or when its send comes
    return index;
  }
  paired = channel.head != kNoMessage && channel.sender_ahead;
  return paired ? pop(channel) : append(channel, key, false);
}

MessageIndex ChannelTable::peek(const ChannelKey& key, bool& paired) {
  Channel& channel = at(key);
  paired = false;
  if (channel.peeked == kNoMessage) {
    paired = channel.head != kNoMessage && channel.sender_ahead;
    channel.peeked = paired ? pop(channel) : append(channel, key, false);
  }
  return channel.peeked;
}

void ChannelTable::return_receive(const ChannelKey& key, MessageIndex index) {
  Channel& channel = at(key);
  if (channel.peeked != kNoMessage) {
    // A probe looked one place further than what the next receive gets now; what it saw comes after that.
    const MessageIndex seen = channel.peeked;
    channel.peeked = index;
    if (store_.message(seen).sent) push_front(channel, seen);
    return;
  }
  if (store_.message(index).sent) {
    push_front(channel, index);
    return;
  }
  // Not sent: it is the last of the receivers' list.
  MessageIndex before = kNoMessage;
  for (MessageIndex m = channel.head; m != index; m = store_.message(m).next) before = m;
  if (before == kNoMessage) {
    channel.head = kNoMessage;
  } else {
    store_.message(before).next = kNoMessage;
    channel.tail = before;
  }
  store_.settle(index, kSendToCome | kReceiveToCome);
}

bool ChannelTable::cancel_send(const ChannelKey& key, MessageIndex index) {
  Channel& channel = at(key);
  if (!channel.sender_ahead) return false;
  MessageIndex before = kNoMessage;
  MessageIndex m = channel.head;
  while (m != kNoMessage && m != index) {
    before = m;
    m = store_.message(m).next;
  }
  if (m == kNoMessage) return false;
  const MessageIndex after = store_.message(m).next;
  if (before == kNoMessage) {
    channel.head = after;
  } else {
    store_.message(before).next = after;
  }
  if (channel.tail == index) channel.tail = before;
  store_.message(index).next = kNoMessage;
  store_.settle(index, kReceiveToCome);
  return true;
}

}  // namespace lbf
