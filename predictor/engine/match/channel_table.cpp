#include "predictor/engine/match/channel_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lbf::engine {

const ChannelTable::Channel ChannelTable::kNoSlots[kFirstSlots] = {};

void ChannelTable::rebuild(Table& table) {
  std::size_t busy = 0;
  for (const Channel& channel : table.slots) {
    busy += channel.used && (channel.head != kNoMessage || channel.peeked != kNoMessage) ? 1 : 0;
  }
  std::size_t size = std::max(table.slots.size(), kFirstSlots);
  // At most a quarter full afterwards: the next rebuild is then at least a quarter of the slots away.
  while (busy * 4 > size) size *= 2;
  const CountedVector<Channel> old = std::move(table.slots);
  table.slots = CountedVector<Channel>(size, Channel{}, store_.account());
  table.at = table.slots.data();
  table.mask = static_cast<std::uint32_t>(size - 1);
  table.shift = shift_of(size);
  table.used = static_cast<std::uint32_t>(busy);
  ++table.rebuilt;
  for (const Channel& channel : old) {
    if (!channel.used || (channel.head == kNoMessage && channel.peeked == kNoMessage)) continue;
    std::size_t i = home(table, channel.comm, channel.src, channel.tag);
    while (table.slots[i].used) i = (i + 1) & table.mask;
    table.slots[i] = channel;
  }
}

ChannelTable::Channel& ChannelTable::add(Table& table, const ChannelKey& key) {
  if ((table.used + std::size_t{1}) * 2 > table.slots.size()) rebuild(table);
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
  (channel.head == kNoMessage ? channel.tail : store_.message(channel.head).previous) = index;
  channel.head = index;
}

void ChannelTable::take_out(Channel& channel, MessageIndex index) {
  const MessageIndex after = std::exchange(store_.message(index).next, kNoMessage);
  const MessageIndex before = channel.head == index ? kNoMessage : store_.message(index).previous;
  (before == kNoMessage ? channel.head : store_.message(before).next) = after;
  (after == kNoMessage ? channel.tail : store_.message(after).previous) = before;
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
    if (store_.message(seen).sent) give_back(channel, seen);
    return;
  }
  if (store_.message(index).sent) {
    give_back(channel, index);
    return;
  }
  // Not sent: it is the last of the receivers' list.
  take_out(channel, index);
  store_.withdraw(index, 2);
}

void ChannelTable::give_back(Channel& channel, MessageIndex sent) {
  store_.message(sent).receiver = kNobody;
  push_front(channel, sent);
  channel.sender_ahead = true;
}

MessageIndex ChannelTable::take_from_run(Channel& channel, const ChannelKey& key, MessageIndex run,
                                         ChannelEnd recorded) {
  const MessageIndex index = one_ended(key, recorded, store_.message(run).sender);
  if (--store_.message(run).bytes == 0) {
    free_run(run);
    return index;
  }
  push_front(channel, run);
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

void ChannelTable::play_collectives(std::uint32_t comm, Rank src, Rank dst, const Numbers& numbers, ChannelEnd end,
                                    ProcessIndex ghost) {
  comm |= kCollectiveChannel;
  Table& table = tables_[static_cast<std::size_t>(dst)];
  const std::size_t count = numbers.end - numbers.first;
  if (!store_.budget().spend(std::min(count, table.slots.size()) / kSlotsPerUnit)) return;
  if (src != kAnyRank && count <= table.slots.size()) {
    for (std::uint32_t number = numbers.first; number < numbers.end; ++number) {
      Channel* const channel = find(table, {comm, src, dst, static_cast<std::int32_t>(number)});
      if (channel != nullptr) play_outstanding(*channel, end, ghost);
    }
    return;
  }
  // More numbers than there are channels.
  std::vector<Channel*> found;
  for (Channel& channel : table.slots) {
    const bool is_one = channel.used && channel.comm == comm && (src == kAnyRank || channel.src == src) &&
                        static_cast<std::uint32_t>(channel.tag) - numbers.first < count;
    if (is_one && channel.head != kNoMessage) found.push_back(&channel);
  }
  std::ranges::sort(found, [](const Channel* a, const Channel* b) {
    return std::pair(a->src, static_cast<std::uint32_t>(a->tag)) <
           std::pair(b->src, static_cast<std::uint32_t>(b->tag));
  });
  for (Channel* const channel : found) play_outstanding(*channel, end, ghost);
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
  const Message& message = store_.message(index);
  const bool is_sent = message.pending > 0 && message.sent && message.src == key.src;
  if (!is_sent || message.collective || message.internal || message.receiver != kNobody) return false;
  take_out(at(key), index);
  store_.withdraw(index, 1);
  return true;
}

}  // namespace lbf::engine
