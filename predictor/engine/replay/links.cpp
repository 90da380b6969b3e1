#include "predictor/engine/replay/links.h"

#include <algorithm>
#include <utility>

namespace lbf::engine {

static std::uint64_t connection_of(Rank from, Rank to) {
  return (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
}

Links::Links(const Target& target)
    : model_(target.network->contention()),
      bytes_per_s_(target.network->contention_bytes_per_s()),
      nodes_(target.nodes) {
  if (model_ == Contention::kBus) links_.resize(1);
  if (model_ == Contention::kNic) links_.resize(2 * static_cast<std::size_t>(nodes_));
  link_queue_.add_sources(links_.size());
}

Bytes Links::memory_bytes() const {
  // A transfer is in at most two links, and in the queue; a connection's entry has two pointers besides.
  const Bytes of_transfer =
      sizeof(Transfer) + kMaxLinksOfTransfer * sizeof(Share) + sizeof(EventQueue::Entry) + sizeof(std::size_t);
  const Bytes of_connection = sizeof(std::uint64_t) + sizeof(Connection) + 2 * sizeof(void*);
  return links_.size() * sizeof(Link) + exchange_s_.capacity() * sizeof(Seconds) + transfers_.capacity() * of_transfer +
         connections_.size() * of_connection;
}

void Links::note_exchange(const Message& message, Seconds start_s) {
  const auto back = connections_.find(connection_of(message.dst, message.src));
  if (back == connections_.end()) return;
  const Transfer& other = transfers_[back->second.tail];
  const Seconds left_s = std::min(other.start_s + other.work_s - start_s, other.work_s);
  if (!other.is_rendezvous || left_s <= 0) return;
  const auto rank = static_cast<std::size_t>(message.dst);
  if (exchange_s_.size() <= rank) exchange_s_.resize(rank + 1);
  exchange_s_[rank] += left_s;
}

Seconds Links::exchange_s() const {
  return exchange_s_.empty() ? 0 : std::ranges::max(exchange_s_);
}

void Links::add(MessageIndex index, const Message& message, bool is_rendezvous, std::uint32_t from_node,
                std::uint32_t to_node, Seconds start_s, Seconds rest_s, Seconds now_s) {
  if (is_rendezvous && model_ == Contention::kNic) note_exchange(message, start_s);
  Index number = free_transfers_;
  if (number == kNone) {
    number = static_cast<Index>(transfers_.size());
    transfers_.emplace_back();
    start_queue_.add_sources(transfers_.size());
  } else {
    free_transfers_ = transfers_[number].next;
  }
  Transfer& transfer = transfers_[number];
  transfer.message = index;
  transfer.generation = message.generation;
  transfer.connection = connection_of(message.src, message.dst);
  transfer.is_rendezvous = is_rendezvous;
  transfer.start_s = start_s;
  const Seconds needs_s = static_cast<double>(message.bytes) / bytes_per_s_;
  transfer.work_s = std::min(needs_s, rest_s);
  transfer.latency_s = rest_s - transfer.work_s;
  transfer.tail_s = needs_s - transfer.work_s;
  transfer.links[0] = model_ == Contention::kBus ? 0 : from_node;
  transfer.links[1] = model_ == Contention::kBus ? kNone : nodes_ + to_node;
  transfer.next = kNone;
  Connection& connection = connections_[transfer.connection];
  if (connection.tail != kNone) {
    transfers_[connection.tail].next = number;
    connection.tail = number;
    return;
  }
  connection.head = connection.tail = number;
  enter_or_set_timer(number, now_s);
}

void Links::enter_or_set_timer(Index number, Seconds now_s) {
  const Transfer& transfer = transfers_[number];
  if (transfer.start_s <= now_s) {
    enter(number, now_s);
  } else {
    start_queue_.set(number, transfer.start_s, transfer.connection);
  }
}

void Links::enter(Index number, Seconds now_s) {
  Transfer& transfer = transfers_[number];
  transfer.links_left = 0;
  for (const Index index : transfer.links) {
    if (index == kNone) continue;
    ++transfer.links_left;
    Link& link = links_[index];
    if (!link.shares.empty() && now_s > link.time_s) {
      // Never past the first end: that end is an event of its own, which comes at this time at the latest.
      link.virtual_s = std::min(link.virtual_s + (now_s - link.time_s) / static_cast<double>(link.shares.size()),
                                link.shares.front().end);
    }
    link.time_s = now_s;
    link.shares.push_back({link.virtual_s + transfer.work_s, transfer.connection, number});
    std::push_heap(link.shares.begin(), link.shares.end(), later);
    schedule(index);
  }
}

void Links::schedule(Index index) {
  Link& link = links_[index];
  if (link.shares.empty()) {
    link.virtual_s = 0;  // idle: the clock starts anew, so it never loses precision over a long run
    link_queue_.remove(index);
    return;
  }
  const double sharers = static_cast<double>(link.shares.size());
  link_queue_.set(index, link.time_s + (link.shares.front().end - link.virtual_s) * sharers, index);
}

Seconds Links::next_s() const {
  Seconds next_s = link_queue_.empty() ? kNeverS : link_queue_.top().time_s;
  if (!start_queue_.empty()) next_s = std::min(next_s, start_queue_.top().time_s);
  return next_s;
}

MessageIndex Links::advance(Seconds& latency_s, std::uint32_t& generation) {
  const bool starts =
      !start_queue_.empty() && (link_queue_.empty() || start_queue_.top().time_s < link_queue_.top().time_s);
  if (starts) {
    const EventQueue::Entry next = start_queue_.top();
    start_queue_.remove(next.source);
    enter(next.source, next.time_s);
    return kNoMessage;
  }
  const EventQueue::Entry next = link_queue_.top();
  Link& link = links_[next.source];
  link.virtual_s = link.shares.front().end;
  link.time_s = std::max(link.time_s, next.time_s);
  const Index number = link.shares.front().transfer;
  std::pop_heap(link.shares.begin(), link.shares.end(), later);
  link.shares.pop_back();
  schedule(next.source);
  Transfer& transfer = transfers_[number];
  if (--transfer.links_left > 0) return kNoMessage;
  latency_s = transfer.latency_s;
  generation = transfer.generation;
  const MessageIndex message = std::exchange(transfer.message, kNoMessage);
  if (transfer.tail_s > 0) {
    transfer.work_s = std::exchange(transfer.tail_s, 0);
    enter(number, next.time_s);
    return message;
  }
  // Through: the connection's next message follows.
  const auto connection = connections_.find(transfer.connection);
  if (transfer.next == kNone) {
    connections_.erase(connection);
  } else {
    connection->second.head = transfer.next;
    enter_or_set_timer(transfer.next, next.time_s);
  }
  transfer.next = free_transfers_;
  free_transfers_ = number;
  return message;
}

}  // namespace lbf::engine
