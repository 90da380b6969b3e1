#include "predictor/engine/match/channel_table.h"

#include <algorithm>
#include <utility>

namespace lbf::engine {

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
    channel.peeked = take_receive(key, paired);
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
  const MessageIndex after = store_.message(index).next;
  (before == kNoMessage ? channel.head : store_.message(before).next) = after;
  if (channel.tail == index) channel.tail = before;
  store_.withdraw(index, 2);
}

MessageIndex ChannelTable::take_from_run(Channel& channel, const ChannelKey& key, MessageIndex run,
                                         ChannelEnd recorded) {
  const MessageIndex index = one_ended(key, recorded, store_.message(run).sender);
  if (--store_.message(run).bytes == 0) {
    free_run(run);
    return index;
  }
  store_.message(run).next = channel.head;
  if (channel.head == kNoMessage) channel.tail = run;
  channel.head = run;
  return index;
}

MessageIndex ChannelTable::one_ended(const ChannelKey& key, ChannelEnd recorded, ProcessIndex ghost) {
  const MessageIndex index = store_.new_message();
  Message& message = store_.message(index);
  message.src = key.src;
  message.dst = key.dst;
  message.comm = key.comm & 0x7fffffffU;
  message.collective = (key.comm & 0x80000000U) != 0;
  message.tag = key.tag;
  play(index, recorded == ChannelEnd::kSends ? ChannelEnd::kReceives : ChannelEnd::kSends, ghost);
  return index;
}

void ChannelTable::play_outstanding(const ChannelKey& key, ChannelEnd end, ProcessIndex ghost) {
  Channel& channel = at(key);
  while (channel.head != kNoMessage && missing_end(channel) == end) play(pop(channel), end, ghost);
}

void ChannelTable::end_outstanding(Channel& channel, ChannelEnd end, ProcessIndex ghost) {
  while (channel.head != kNoMessage && missing_end(channel) == end) {
    const MessageIndex index = pop(channel);
    if (store_.message(index).is_run) {
      free_run(index);  // neither end of these was recorded
    } else {
      play(index, end, ghost);
    }
  }
}

void ChannelTable::free_run(MessageIndex run) {
  ghosts_.let_go(store_.message(run).sender);
  store_.withdraw(run, 2);
}

void ChannelTable::skip(const ChannelKey& key, ChannelEnd end, std::uint64_t count, ProcessIndex ghost) {
  Channel& channel = at(key);
  // What a probe saw is the first of the receives. (If nobody has sent it yet it is in the list, too.)
  if (end == ChannelEnd::kReceives && count > 0 && channel.peeked != kNoMessage) {
    ghosts_.receive(ghost, std::exchange(channel.peeked, kNoMessage));
    --count;
  }
  while (count > 0 && channel.head != kNoMessage && missing_end(channel) == end) {
    Message& message = store_.message(channel.head);
    if (!message.is_run) {
      play(pop(channel), end, ghost);
      --count;
      continue;
    }
    // Neither end of these was recorded.
    const std::uint64_t both = std::min(count, message.bytes);
    message.bytes -= both;
    count -= both;
    if (message.bytes == 0) free_run(pop(channel));
  }
  if (count == 0) return;
  const MessageIndex run = append(channel, key, end);
  Message& message = store_.message(run);
  message.is_run = true;
  message.bytes = count;
  message.sender = ghost;
  ghosts_.hold(ghost);
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

}  // namespace lbf::engine
