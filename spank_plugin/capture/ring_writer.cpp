// The rarer paths of the ring writer: adjustments, a full ring, several records of one call. See
// ring_writer.h.
#include "spank_plugin/capture/ring_writer.h"

#include <sys/mman.h>

#include <algorithm>

namespace lbf::capture {
namespace {

constexpr std::uint64_t kAdjustBytes = sizeof(ring::Record) + sizeof(ring::Looks);

}  // namespace

bool RingWriter::make_pages(std::uint64_t until) noexcept {
  if (pages_end_) return false;
  const std::uint64_t end = std::min((until + kPieceBytes - 1) / kPieceBytes * kPieceBytes, capacity_);
  // An error where a write into a page that is not to be had would be a SIGBUS.
  pages_end_ = madvise(data_ + there_until_, end - there_until_, kPopulateWrite) != 0;
  if (pages_end_) return false;
  there_until_ = end == capacity_ ? kAllThere : end;
  return true;
}

void RingWriter::write_adjust(const ring::Adjustment& adjust) noexcept {
  if (!adjust.any()) return;
  const std::uint32_t values = adjust.looks.count > 0 ? ring::kLooksValues : 0;
  auto* const record = reinterpret_cast<ring::Record*>(claim((ring::kRecordWords + values) * std::uint64_t{8}));
  *record = ring::record_of(adjust);
  if (values == 0) return;
  record->words_and_op += values;
  std::memcpy(values_of(record), &adjust.looks, sizeof adjust.looks);
}

// What was lost, and what was to be taken away before it.
void RingWriter::write_gap() noexcept {
  write_adjust(gap_.before);
  auto* record = reinterpret_cast<ring::Record*>(claim(sizeof(ring::Record)));
  *record = ring::Record{};
  record->words_and_op = ring::kRecordWords;
  record->kind = ring::kind_of(EventKind::kGap);
  record->flags = kFlagCallBegin;
  record->enter = gap_.enter;
  record->leave = gap_.leave;
  ring::set_lost_records(*record, gap_.records);
  gap_ = Gap{};
  gap_counted_ = 0;
}

void RingWriter::end() noexcept {
  // Of a call that is not over (the thread was cancelled inside the recorder) nothing is whole.
  if (gap_.records == 0 || first_ != nullptr || lost_in_call_) return;
  use_kept_back();
  // The adjustment, and a pad before either.
  if (!has_room(sizeof(ring::Record), 2 * kAdjustBytes)) return;
  write_gap();
  header_->head.store(head_, std::memory_order_release);
}

void RingWriter::append_slow(EventKind kind, const Fields& fields) noexcept {
  ring::Record* const record = append_slow(kind, sizeof(ring::Record));
  if (record == nullptr) return;
  record->flags = static_cast<std::uint8_t>(record->flags | fields.flags);
  record->words_and_op |= std::uint32_t{fields.op} << 24;
  write_fields(*record, fields);
}

ring::Record* RingWriter::append_slow(EventKind kind, std::uint64_t bytes) noexcept {
  if (plain_ && bytes <= kPlainBytes && has_room(bytes, 0)) {
    ring::Record* const record = place(kind, bytes);
    renew_plain_until();
    return record;
  }
  if (lost_in_call_) {  // later records of a call whose first ones are missing would only mislead
    ++gap_.records;
    return nullptr;
  }
  const std::uint64_t preface = gap_.records > 0 ? 2 * kAdjustBytes + sizeof(ring::Record) : kAdjustBytes;
  // After a loss wait until an eighth is free: one long gap is better than a gap between every two records.
  const bool last = kept_back_ == 0;
  // Any of the pieces may be the one that needs a pad before it, at most as long as the piece.
  const std::uint64_t pad = bytes > kAdjustBytes ? bytes : kAdjustBytes;
  const std::uint64_t slack = preface + pad + (gap_.records > 0 && !last ? capacity_ / 8 : 0);
  if (fits_at_all(bytes) && has_room(bytes, slack)) {
    if (gap_.records > 0) write_gap();
    write_adjust(adjust_);
    adjust_ = ring::Adjustment{};
    ring::Record* const record = place(kind, bytes);
    plain_ = true;
    renew_plain_until();
    return record;
  }
  if (gap_.records == 0) gap_.before = adjust_;
  ++gap_.records;
  lost_in_call_ = true;
  set_plain(false);
  return nullptr;
}

bool RingWriter::write_procedure(ring::ProcedureWord word, std::uint32_t id, const char* name, std::size_t name_bytes,
                                 const char* text, std::size_t text_bytes, std::uint64_t calls,
                                 std::uint64_t ticks) noexcept {
  const ring::Record said = ring::record_of(
      ring::ProcedureText{word, id, static_cast<std::uint32_t>(name_bytes), name_bytes + text_bytes, calls, ticks});
  const std::uint64_t bytes = ring::length_words(said) * std::uint64_t{8};
  // Records of calls come first: at most half of the ring for words.
  if (!fits_at_all(bytes) || !has_room(bytes, bytes + capacity_ / 2)) return false;
  auto* record = reinterpret_cast<ring::Record*>(claim(bytes));
  std::memset(static_cast<void*>(record), 0, bytes);
  *record = said;
  auto* const out = reinterpret_cast<char*>(record + 1);
  std::memcpy(out, name, name_bytes);
  std::memcpy(out + name_bytes, text, text_bytes);
  header_->head.store(head_, std::memory_order_release);
  return true;
}

void RingWriter::stamp_others(std::uint64_t leave) noexcept {
  std::uint64_t at = first_head_ + ring::length_words(*first_) * std::uint64_t{8};
  while (at < head_) {
    auto* record = reinterpret_cast<ring::Record*>(data_ + (at & (capacity_ - 1)));
    if (record->kind != ring::kRecordPad) {
      record->enter = leave;
      record->leave = leave;
    }
    at += ring::length_words(*record) * std::uint64_t{8};
  }
}

void RingWriter::lose_calls(std::uint64_t calls, std::uint64_t at) noexcept {
  if (calls == 0) return;
  if (gap_.records == 0) gap_.before = adjust_;
  gap_.records += calls;
  set_plain(false);
  close_lost(at, at);
}

void RingWriter::close_lost(std::uint64_t lost_from, std::uint64_t leave) noexcept {
  if (gap_.enter == 0) gap_.enter = lost_from;
  gap_.leave = leave;
  adjust_ = ring::Adjustment{};  // what it would have taken away lies inside the gap now
  lost_in_call_ = false;
  lost_total_ += gap_.records - gap_counted_;
  gap_counted_ = gap_.records;
  header_->lost_records.store(lost_total_, std::memory_order_relaxed);
}

}  // namespace lbf::capture
