#include "predictor/match/op_store.h"

namespace lbf {
namespace {
constexpr std::size_t kChunksPerSlab = 64;
}  // namespace

OpStore::OpStore(Rank ranks, std::uint32_t readers)
    : ranks_(ranks),
      readers_(readers),
      queues_(static_cast<std::size_t>(ranks)),
      actors_of_rank_(static_cast<std::size_t>(ranks), 0) {
  assert(readers >= 1);
  for (Rank rank = 0; rank < ranks; ++rank) queues_[static_cast<std::size_t>(rank)].rank = rank;
}

ProcessIndex OpStore::add_actor(Rank rank) {
  const ProcessIndex index = processes();
  Queue& queue = queues_.emplace_back();
  queue.rank = rank;
  queue.actor_number = ++actors_of_rank_[static_cast<std::size_t>(rank)];
  return index;
}

void OpStore::lengthen(Queue& queue) {
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
  (queue.last == nullptr ? queue.first : queue.last->next) = chunk;
  queue.last = chunk;
}

void OpStore::free_chunk(Chunk* chunk) {
  chunk->next = free_chunks_;
  free_chunks_ = chunk;
  --chunks_in_use_;
}

void OpStore::release(ProcessIndex process, Op& post, MessageIndex message) {
  post.message = message;
  post.flags &= static_cast<std::uint8_t>(~kOpHeld);
  if (message != kNoMessage) ++messages_[message].ops;
  touch(process);
}

void OpStore::clear_touched() {
  for (ProcessIndex process : touched_) queues_[process].touched = false;
  touched_.clear();
}

void OpStore::add_reader_of(ProcessIndex process, const Cursor& cursor) {
  for (Chunk* chunk = cursor.chunk != nullptr ? cursor.chunk : queues_[process].first; chunk != nullptr;
       chunk = chunk->next) {
    ++chunk->readers_left;
  }
}

}  // namespace lbf
