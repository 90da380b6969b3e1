#include "predictor/match/op_store.h"

namespace lbf {
namespace {
constexpr std::size_t kChunksPerSlab = 64;
}  // namespace

OpStore::OpStore(Rank ranks, std::uint32_t readers)
    : ranks_(ranks),
      readers_(readers),
      first_(static_cast<std::size_t>(ranks), nullptr),
      last_(static_cast<std::size_t>(ranks), nullptr),
      rank_of_(static_cast<std::size_t>(ranks)),
      actor_number_(static_cast<std::size_t>(ranks), 0),
      actors_of_rank_(static_cast<std::size_t>(ranks), 0),
      closed_(static_cast<std::size_t>(ranks), false),
      is_touched_(static_cast<std::size_t>(ranks), false) {
  assert(readers >= 1);
  for (Rank rank = 0; rank < ranks; ++rank) rank_of_[static_cast<std::size_t>(rank)] = rank;
}

ProcessIndex OpStore::add_actor(Rank rank) {
  const ProcessIndex index = processes();
  first_.push_back(nullptr);
  last_.push_back(nullptr);
  rank_of_.push_back(rank);
  actor_number_.push_back(++actors_of_rank_[static_cast<std::size_t>(rank)]);
  closed_.push_back(false);
  is_touched_.push_back(false);
  return index;
}

OpStore::Chunk* OpStore::new_chunk() {
  if (free_chunks_ == nullptr) {
    // Not value-initialised: ops are written before they are read.
    std::unique_ptr<Chunk[]> slab(new Chunk[kChunksPerSlab]);
    for (std::size_t i = 0; i < kChunksPerSlab; ++i) {
      slab[i].next = free_chunks_;
      free_chunks_ = &slab[i];
    }
    slabs_.push_back(std::move(slab));
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next;
  chunk->next = nullptr;
  chunk->filled = 0;
  chunk->readers_left = readers_;
  ++chunks_in_use_;
  return chunk;
}

void OpStore::free_chunk(Chunk* chunk) {
  chunk->next = free_chunks_;
  free_chunks_ = chunk;
  --chunks_in_use_;
}

Op& OpStore::push(ProcessIndex process, const Op& op) {
  Chunk*& last = last_[process];
  if (last == nullptr || last->filled == kChunkOps) {
    Chunk* chunk = new_chunk();
    if (last == nullptr) {
      first_[process] = chunk;
    } else {
      last->next = chunk;
    }
    last = chunk;
  }
  Op& pushed = last->ops[last->filled++];
  pushed = op;
  if (op.message != kNoMessage) ++messages_[op.message].ops;
  touch(process);
  return pushed;
}

void OpStore::release(ProcessIndex process, Op& post, MessageIndex message) {
  post.message = message;
  post.flags &= static_cast<std::uint8_t>(~kOpHeld);
  if (message != kNoMessage) ++messages_[message].ops;
  touch(process);
}

void OpStore::touch(ProcessIndex process) {
  if (is_touched_[process]) return;
  is_touched_[process] = true;
  touched_.push_back(process);
}

void OpStore::clear_touched() {
  for (ProcessIndex process : touched_) is_touched_[process] = false;
  touched_.clear();
}

MessageIndex OpStore::new_message() {
  if (free_messages_ == kNoMessage) {
    messages_.emplace_back();
    return static_cast<MessageIndex>(messages_.size() - 1);
  }
  const MessageIndex index = free_messages_;
  free_messages_ = messages_[index].next;
  const std::uint32_t generation = messages_[index].generation;
  messages_[index] = Message{};
  messages_[index].generation = generation;
  return index;
}

void OpStore::free_message(MessageIndex index) {
  ++messages_[index].generation;
  messages_[index].next = free_messages_;
  free_messages_ = index;
}

void OpStore::add_reader_of(ProcessIndex process, const Cursor& cursor) {
  for (Chunk* chunk = cursor.chunk != nullptr ? cursor.chunk : first_[process]; chunk != nullptr;
       chunk = chunk->next) {
    ++chunk->readers_left;
  }
}

}  // namespace lbf
