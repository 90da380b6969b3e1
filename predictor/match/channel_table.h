// ChannelTable: the point where sends and receives meet. A channel is (communicator, source, destination,
// tag); on it the n-th send pairs with the n-th receive (MPI 3.5, "messages are non-overtaking").
//
// A channel only remembers which side is ahead and by which messages, so one with nothing outstanding holds
// no state at all and is forgotten when the table would otherwise grow: memory follows what is in flight,
// also for programs that use a new tag each iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "predictor/match/op_store.h"

namespace lbf {

struct ChannelKey {
  std::uint32_t comm;  // high bit: collectives' messages, `tag` is then the collective's number
  Rank src;
  Rank dst;
  std::int32_t tag;
  bool operator==(const ChannelKey&) const = default;
};

class ChannelTable {
 public:
  struct Channel {
    std::uint32_t comm = 0;
    Rank src = 0;
    std::int32_t tag = 0;
    MessageIndex head = kNoMessage;  // messages that one side has and the other does not yet
    MessageIndex tail = kNoMessage;
    MessageIndex peeked = kNoMessage;  // a probe saw it, the next receive takes it
    bool sender_ahead = false;
    bool used = false;
  };

  explicit ChannelTable(OpStore& store) : store_(store) {}

  // The message of the channel's next send. `paired`: a receive was waiting for it.
  MessageIndex take_send(const ChannelKey& key, bool& paired);
  // The message of the channel's next receive. `paired`: its send was there.
  MessageIndex take_receive(const ChannelKey& key, bool& paired);
  // The message that the next take_receive will give.
  MessageIndex peek(const ChannelKey& key, bool& paired);
  // The newest receive of the channel gives its message back. REQUIRES: `message` is the last that
  // take_receive gave for this channel.
  void return_receive(const ChannelKey& key, MessageIndex message);
  // Takes a sent message out again, if no receive took it. False: one did.
  bool cancel_send(const ChannelKey& key, MessageIndex message);
  // Messages that one side waits for or has sent.
  template <typename Visit>
  void for_each_outstanding(Visit visit) const {
    for (const Table& table : tables_) {
      for (const Channel& channel : table.slots) {
        if (!channel.used) continue;
        for (MessageIndex m = channel.head; m != kNoMessage; m = store_.message(m).next) {
          visit(m, channel.sender_ahead);
        }
      }
    }
  }

 private:
  // Channels into one rank. A table of their own: what a rank posts then lies close together, however many
  // ranks there are.
  struct Table {
    std::vector<Channel> slots;
    std::size_t used = 0;
  };

  Channel& at(const ChannelKey& key);
  static std::size_t home(const Table& table, std::uint32_t comm, Rank src, std::int32_t tag);
  static void rebuild(Table& table);
  MessageIndex append(Channel& channel, const ChannelKey& key, bool sender);
  MessageIndex pop(Channel& channel);
  // REQUIRES: the message was sent, and so were all others of the channel's list.
  void push_front(Channel& channel, MessageIndex message);

  OpStore& store_;
  std::vector<Table> tables_;  // by destination
};

}  // namespace lbf
