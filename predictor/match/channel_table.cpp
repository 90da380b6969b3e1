#include "predictor/match/channel_table.h"

#include <utility>

namespace lbf {

void ChannelTable::rebuild(Table& table) {
  std::size_t busy = 0;
  for (const Channel& channel : table.slots) {
    busy += channel.used && (channel.head != kNoMessage || channel.peeked != kNoMessage) ? 1 : 0;
  }
  std::size_t size = table.slots.size();
  // At most a quarter full afterwards: the next rebuild is then at least a quarter of the slots away.
  while (busy * 4 > size) size *= 2;
  const std::vector<Channel> old = std::move(table.slots);
  table.slots.assign(size, Channel{});
  table.mask = static_cast<std::uint32_t>(size - 1);
  table.shift = shift_of(size);
  table.used = busy;
  for (const Channel& channel : old) {
    if (!channel.used || (channel.head == kNoMessage && channel.peeked == kNoMessage)) continue;
    std::size_t i = home(table, channel.comm, channel.src, channel.tag);
    while (table.slots[i].used) i = (i + 1) & table.mask;
    table.slots[i] = channel;
  }
}

ChannelTable::Channel& ChannelTable::add(Table& table, const ChannelKey& key) {
  if ((table.used + 1) * 2 > table.slots.size()) rebuild(table);
  std::size_t i = home(table, key.comm, key.src, key.tag);
  while (table.slots[i].used) i = (i + 1) & table.mask;
  Channel& channel = table.slots[i];
  channel = Channel{};
  channel.comm = key.comm;
  channel.src = key.src;
  channel.tag = key.tag;
  channel.used = true;
  ++table.used;
  return channel;
}

void ChannelTable::push_front(Channel& channel, MessageIndex index) {
  store_.message(index).next = channel.head;
  if (channel.head == kNoMessage) channel.tail = index;
  channel.head = index;
  channel.sender_ahead = true;
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
  store_.withdraw(index, 2);
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
  store_.withdraw(index, 1);
  return true;
}

}  // namespace lbf
