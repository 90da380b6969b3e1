// ChannelTable: the point where sends and receives meet. A channel is (communicator, source, destination,
// tag); on it the n-th send pairs with the n-th receive (MPI 3.5, "messages are non-overtaking").
//
// A channel only remembers which side is ahead and by which messages, so one with nothing outstanding holds
// no state at all and is forgotten when the table would otherwise grow: memory follows what is in flight,
// also for programs that use a new tag each iteration.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/ghosts.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

inline constexpr std::uint32_t kCollectiveChannel = 0x80000000U;

struct ChannelKey {
  std::uint32_t comm;  // with kCollectiveChannel: collectives' messages, `tag` is then the collective's number
  Rank src;
  Rank dst;
  std::int32_t tag;
  bool operator==(const ChannelKey&) const = default;
};

enum class ChannelEnd : std::uint8_t { kSends, kReceives };

class ChannelTable {
 public:
  // Half a cache line.
  struct alignas(32) Channel {
    std::uint32_t comm = 0;
    Rank src = 0;
    std::int32_t tag = 0;
    MessageIndex head = kNoMessage;  // messages that one side has and the other does not yet
    MessageIndex tail = kNoMessage;
    MessageIndex peeked = kNoMessage;  // a probe saw it, the next receive takes it
    bool sender_ahead = false;
    bool used = false;
  };

  // A channel that was found: where it is as long as its table was not rebuilt.
  struct Known {
    Channel* channel = nullptr;
    std::uint32_t rebuilt = 0;
  };

  // REQUIRES: both outlive the table.
  ChannelTable(OpStore& store, Ghosts& ghosts)
      : store_(store), ghosts_(ghosts), tables_(static_cast<std::size_t>(store.ranks()), Table(), store.account()) {}

  // The message of the channel's next send. `paired`: a receive was waiting for it. `known`: of this channel, or {}.
  [[gnu::always_inline]] MessageIndex take_send(const ChannelKey& key, bool& paired, Known* known = nullptr) {
    Channel& channel = at(key, known);
    paired = channel.head != kNoMessage && !channel.sender_ahead;
    if (!paired) return append(channel, key, ChannelEnd::kSends);
    const MessageIndex index = pop(channel);
    if (store_.message(index).is_run) [[unlikely]] {
      paired = false;
      return take_from_run(channel, key, index, ChannelEnd::kSends);
    }
    return index;
  }
  // The message of the channel's next receive. `paired`: its send was there.
  [[gnu::always_inline]] MessageIndex take_receive(const ChannelKey& key, bool& paired, Known* known = nullptr) {
    Channel& channel = at(key, known);
    if (channel.peeked != kNoMessage) {
      const MessageIndex index = channel.peeked;
      channel.peeked = kNoMessage;
      paired = false;  // counted when it was peeked, or when its send comes
      return index;
    }
    paired = channel.head != kNoMessage && channel.sender_ahead;
    MessageIndex index = paired ? pop(channel) : append(channel, key, ChannelEnd::kReceives);
    if (store_.message(index).is_run) [[unlikely]] {
      paired = false;
      index = take_from_run(channel, key, index, ChannelEnd::kReceives);
    }
    store_.message(index).receiver = static_cast<ProcessIndex>(key.dst);
    return index;
  }
  // A message that was on no channel, of which END is there, behind those that are outstanding. REQUIRES: these have
  // the same end.
  void put(const ChannelKey& key, ChannelEnd end, MessageIndex index) { link(at(key), index, end); }
  // The channel's next `count` sends or receives were not recorded: `ghost` plays them for the messages
  // whose other end was, or will be.
  void skip(const ChannelKey& key, ChannelEnd end, std::uint64_t count, ProcessIndex ghost);
  // Of the collectives with these numbers on `comm`: plays the sends or receives for what is outstanding from `src`
  // (kAnyRank: from all) to `dst`, and nothing else.
  struct Numbers {
    std::uint32_t first;
    std::uint32_t end;
  };
  void play_collectives(std::uint32_t comm, Rank src, Rank dst, const Numbers& numbers, ChannelEnd end,
                        ProcessIndex ghost);
  // The channel's sends or receives from here on were neither recorded nor counted: `ghost` plays them for what is
  // outstanding. To be called again whenever there is more.
  void end_outstanding(const ChannelKey& key, ChannelEnd end, ProcessIndex ghost) {
    end_outstanding(at(key), end, ghost);
  }
  // The same for all channels: `ghost_of(rank, from_the_end)` plays for the rank from its capture's end on, or from
  // where its receives may have been posted before that; kNobody: it does not end.
  template <typename GhostOf>
  void end_all_outstanding(GhostOf ghost_of) {
    for (std::size_t dst = 0; dst < tables_.size(); ++dst) {
      if (!store_.budget().spend(1 + tables_[dst].slots.size() / kSlotsPerUnit)) return;
      for (Channel& channel : tables_[dst].slots) {
        if (!channel.used) continue;
        if (channel.peeked != kNoMessage) [[unlikely]] {
          const ProcessIndex ghost = ghost_of(static_cast<Rank>(dst), false);
          if (ghost != kNobody) ghosts_.receive(ghost, std::exchange(channel.peeked, kNoMessage));
        }
        if (channel.head == kNoMessage) continue;
        const ChannelEnd missing = missing_end(channel);
        const bool sends = missing == ChannelEnd::kSends;
        // Both ends of collectives are played from the capture's end on: no receive of theirs was posted before.
        const bool from_the_end = sends || (channel.comm & kCollectiveChannel) != 0;
        const ProcessIndex ghost = ghost_of(sends ? channel.src : static_cast<Rank>(dst), from_the_end);
        if (ghost != kNobody) end_outstanding(channel, missing, ghost);
      }
    }
  }
  // A message of which one end is played by `ghost`, on no channel.
  MessageIndex one_ended(const ChannelKey& key, ChannelEnd recorded, ProcessIndex ghost);
  // The channel will be asked for soon.
  void prefetch(const ChannelKey& key) const {
    const Table& table = tables_[static_cast<std::size_t>(key.dst)];
    __builtin_prefetch(&table.at[home(table, key.comm, key.src, key.tag)], 1);
  }
  // The message that the next take_receive will give.
  MessageIndex peek(const ChannelKey& key, bool& paired);
  // The newest receive of the channel gives its message back. REQUIRES: `message` is the last that
  // take_receive gave for this channel.
  void return_receive(const ChannelKey& key, MessageIndex message);
  // Takes a sent message out again, if no receive took it. False: one did. REQUIRES: the slot still has the message.
  bool cancel_send(const ChannelKey& key, MessageIndex message);
  // Messages that one side waits for or has sent.
  template <typename Visit>
  void for_each_outstanding(Visit visit) const {
    for (const Table& table : tables_) {
      for (const Channel& channel : table.slots) {
        if (!channel.used) continue;
        for (MessageIndex m = channel.head; m != kNoMessage; m = store_.message(m).next) {
          if (!store_.message(m).is_run) visit(m, channel.sender_ahead);
        }
      }
    }
  }

 private:
  // Channels into one rank. A table of their own: what a rank posts then lies close together, however many
  // ranks there are.
  struct Table {
    CountedVector<Channel> slots;          // a power of two; none: nothing came here yet
    const Channel* at = kNoSlots;          // of the slots
    std::uint32_t mask = kFirstSlots - 1;  // slots - 1
    std::uint32_t shift = shift_of(kFirstSlots);
    std::uint32_t used = 0;
    std::uint32_t rebuilt = 0;  // how often
  };
  static constexpr std::size_t kFirstSlots = 16;
  static constexpr std::size_t kSlotsPerUnit = 16;  // that are walked over
  static const Channel kNoSlots[kFirstSlots];       // unused
  // Neighbouring sources lie side by side, so many.
  static constexpr unsigned kGroupBits = 2;
  static constexpr std::uint32_t shift_of(std::size_t slots) {
    return 64 + kGroupBits - static_cast<std::uint32_t>(std::countr_zero(slots));
  }

  // REQUIRES: key.dst is a rank of the store.
  [[gnu::always_inline]] Channel& at(const ChannelKey& key) {
    Table& table = tables_[static_cast<std::size_t>(key.dst)];
    Channel* const there = find(table, key);
    return there != nullptr ? *there : add(table, key);
  }
  [[gnu::always_inline]] Channel& at(const ChannelKey& key, Known* known) {
    if (known == nullptr) return at(key);
    const Table& table = tables_[static_cast<std::size_t>(key.dst)];
    if (known->channel == nullptr || known->rebuilt != table.rebuilt) {
      Channel& found = at(key);
      *known = {&found, table.rebuilt};
    }
    return *known->channel;
  }
  // nullptr: nothing is outstanding on the channel.
  [[gnu::always_inline]] static Channel* find(const Table& table, const ChannelKey& key) {
    const Channel* const slots = table.at;
    for (std::size_t i = home(table, key.comm, key.src, key.tag); slots[i].used; i = (i + 1) & table.mask) {
      const Channel& channel = slots[i];
      if (channel.src == key.src && channel.tag == key.tag && channel.comm == key.comm)
        return const_cast<Channel*>(&channel);
    }
    return nullptr;
  }
  Channel& add(Table& table, const ChannelKey& key);
  // Groups of sources are spread by the golden ratio: a run of them then meets hardly any collision.
  static std::size_t home(const Table& table, std::uint32_t comm, Rank src, std::int32_t tag) {
    const auto source = static_cast<std::uint32_t>(src);
    const std::uint64_t others = (static_cast<std::uint64_t>(comm) << 32) | static_cast<std::uint32_t>(tag);
    const std::uint64_t group = others * 0xbf58476d1ce4e5b9 + (source >> kGroupBits);
    const std::uint64_t spread = group * 0x9e3779b97f4a7c15 >> table.shift;
    return static_cast<std::size_t>(spread << kGroupBits) | (source & ((1U << kGroupBits) - 1));
  }
  void rebuild(Table& table);
  [[gnu::always_inline]] MessageIndex append(Channel& channel, const ChannelKey& key, ChannelEnd end) {
    const MessageIndex index = store_.new_message();
    Message& message = store_.message(index);
    message.src = key.src;
    message.dst = key.dst;
    message.comm = key.comm & 0x7fffffffU;
    message.collective = (key.comm & 0x80000000U) != 0;
    message.tag = key.tag;
    link(channel, index, end);
    return index;
  }
  // As the last one. REQUIRES: what is outstanding is of the same end.
  [[gnu::always_inline]] void link(Channel& channel, MessageIndex index, ChannelEnd end) {
    if (channel.head == kNoMessage) {
      channel.head = index;
    } else {
      store_.message(index).previous = channel.tail;
      store_.message(channel.tail).next = index;
    }
    channel.tail = index;
    channel.sender_ahead = end == ChannelEnd::kSends;
  }
  MessageIndex pop(Channel& channel) {
    const MessageIndex index = channel.head;
    Message& message = store_.message(index);
    channel.head = message.next;
    message.next = kNoMessage;
    return index;
  }
  // A message of which only the end that is asked for was recorded, from the run that was at the channel's
  // head.
  MessageIndex take_from_run(Channel& channel, const ChannelKey& key, MessageIndex run, ChannelEnd recorded);
  void play(MessageIndex index, ChannelEnd end, ProcessIndex ghost) {
    if (end == ChannelEnd::kSends) {
      ghosts_.send(ghost, index);
    } else {
      ghosts_.receive(ghost, index);
    }
  }
  // Of the messages in the list: the other end is there.
  static ChannelEnd missing_end(const Channel& channel) {
    return channel.sender_ahead ? ChannelEnd::kReceives : ChannelEnd::kSends;
  }
  void play_outstanding(Channel& channel, ChannelEnd end, ProcessIndex ghost) {
    while (channel.head != kNoMessage && missing_end(channel) == end) play(pop(channel), end, ghost);
  }
  void free_run(MessageIndex run);
  void end_outstanding(Channel& channel, ChannelEnd end, ProcessIndex ghost);
  // REQUIRES: all others of the list are of the same end.
  void push_front(Channel& channel, MessageIndex message);
  // The channel has a sent message again that no receive took.
  void give_back(Channel& channel, MessageIndex sent);
  // REQUIRES: it is in the channel's list.
  void take_out(Channel& channel, MessageIndex message);

  OpStore& store_;
  Ghosts& ghosts_;
  CountedVector<Table> tables_;  // by destination
};

}  // namespace lbf::engine
