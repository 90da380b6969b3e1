#include "predictor/engine/match/op_store.h"

#include <algorithm>

namespace lbf::engine {
namespace {
constexpr std::size_t kChunksPerSlab = 128;
}  // namespace

OpStore::OpStore(Rank ranks, std::uint32_t readers)
    : ranks_(ranks),
      readers_(readers),
      queues_(static_cast<std::size_t>(ranks), &account_),
      actors_of_rank_(static_cast<std::size_t>(ranks), 0, &account_),
      touched_(&account_),
      rows_(&account_),
      row_pending_(&account_),
      free_rows_(&account_) {
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

ProcessIndex OpStore::add_actor_for(Rank rank, Rank for_rank, std::uint32_t which, std::uint32_t of_each) {
  const ProcessIndex index = processes();
  Queue& queue = queues_.emplace_back();
  queue.rank = rank;
  queue.actor_number = 0x80000000U | (static_cast<std::uint32_t>(for_rank) * of_each + which);
  return index;
}

ProcessIndex OpStore::add_ghost(Rank rank) {
  const ProcessIndex index = processes();
  Queue& queue = queues_.emplace_back();
  queue.rank = rank;
  queue.actor_number = ~std::uint32_t{0};
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
    account_.bytes += kChunksPerSlab * sizeof(Chunk);
  }
  Chunk* chunk = free_chunks_;
  free_chunks_ = chunk->next;
  chunk->next = nullptr;
  chunk->readers_left = readers_;
  ++chunks_in_use_;
  (queue.end == nullptr ? queue.first : chunk_of(queue.end)->next) = chunk;
  queue.at = chunk->ops.data();
  queue.end = queue.at + kChunkOps;
}

void OpStore::enter_next_chunk(ProcessIndex process, Cursor& cursor) {
  Chunk* next = queues_[process].first;
  if (cursor.end != nullptr) {
    Chunk* const passed = const_cast<Chunk*>(chunk_of(cursor.end));
    next = passed->next;
    if (--passed->readers_left == 0) free_chunk(passed);
  }
  cursor.at = next->ops.data();
  cursor.end = cursor.at + kChunkOps;
}

void OpStore::free_chunk(Chunk* chunk) {
  chunk->next = free_chunks_;
  free_chunks_ = chunk;
  --chunks_in_use_;
}

void OpStore::release(ProcessIndex process, Op& post, MessageIndex message) {
  post.set_message(message);
  post.flags &= static_cast<std::uint8_t>(~kOpHeld);
  if (message != kNoMessage) expect(message);
  touch(process);
}

RowIndex OpStore::new_row() {
  if (free_rows_.empty()) {
    free_rows_.push_back(static_cast<RowIndex>(row_pending_.size()));
    row_pending_.push_back(0);
    rows_.resize(rows_.size() + row_width_);
  }
  const RowIndex index = free_rows_.back();
  free_rows_.pop_back();
  row_pending_[index] = readers_;
  std::fill_n(row(index), row_width_, 0.0);
  return index;
}

void OpStore::clear_touched() {
  for (ProcessIndex process : touched_) queues_[process].touched = false;
  touched_.clear();
}

void OpStore::add_reader() {
  ++readers_;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].pending != 0) messages_[i].pending += messages_[i].expected;
  }
}

void OpStore::add_reader_of(ProcessIndex process, const Cursor& cursor) {
  Chunk* chunk = cursor.end != nullptr ? const_cast<Chunk*>(chunk_of(cursor.end)) : queues_[process].first;
  for (; chunk != nullptr; chunk = chunk->next) ++chunk->readers_left;
  for_each_ahead(process, cursor, [this](const Op& op) {
    if ((op.flags & kOpVaries) != 0) ++row_pending_[op.row()];
    if ((op.flags & kOpRegions) != 0) regions_.expect_one_more(op.region());
  });
}

}  // namespace lbf::engine
