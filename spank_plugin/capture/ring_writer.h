// Writes the records of one thread into its event ring.
//
// Place in the event's way: MPI call -> recorder -> *ring writer* -> ring (spank_plugin/capture/ring.h) ->
// relay. Single producer: every member function is called by the owning thread only. Nothing here waits, allocates or
// makes a system call, but for one per kPieceBytes in the ring's first round. What one MPI call records is published at
// once, when the call's leave is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "event/event.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

class RingWriter {
 public:
  // The first `bytes_there` of the data have their pages; the others get theirs as they are needed.
  // REQUIRES: `capacity_bytes` is a power of two >= kMinCapacityBytes; header and data outlive the writer; where
  // bytes_there is less, data is at the begin of a page.
  void attach(ring::Header* header, std::byte* data, std::uint64_t capacity_bytes, std::uint64_t bytes_there) noexcept {
    header_ = header;
    data_ = data;
    capacity_ = capacity_bytes;
    there_until_ = bytes_there < capacity_bytes ? bytes_there : kAllThere;
  }
  static constexpr std::uint64_t kMinCapacityBytes = 4096;
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  static constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which older headers lack

  // A call begins; what `append` adds until `commit` belongs to it.
  void begin_call(std::uint64_t enter, std::uint16_t function) noexcept {
    enter_ = enter;
    function_ = function;
  }

  // A record of the current call with room for `values` values behind it; peer, tag, comm, request and bytes
  // are zero. nullptr: no room, the record is counted as lost (and so are the later ones of the same call).
  // The first record of a call carries kFlagCallBegin, its enter and leave; the others enter = leave.
  ring::Record* append(EventKind kind, std::uint32_t values = 0) noexcept {
    const std::uint64_t words = ring::kRecordWords + values;
    const std::uint64_t bytes = words * 8;
    if (bytes <= kPlainBytes && head_ + bytes <= plain_until_) [[likely]]
      return place(kind, bytes);
    return append_slow(kind, bytes);
  }

  // The same for a record without values, with what it says.
  struct Fields {
    std::int32_t peer = 0;
    std::int32_t tag = 0;
    std::uint32_t comm = 0;
    std::uint32_t request = 0;
    std::uint64_t bytes = 0;
    std::uint8_t flags = 0;  // EventFlags beside kFlagCallBegin
    std::uint8_t op = 0;     // CollectiveOp
  };
  [[gnu::always_inline]] void append(EventKind kind, const Fields& fields) noexcept {
    if (!has_plain_room()) [[unlikely]]
      return append_slow(kind, Fields(fields));  // a copy: the fields themselves stay in registers
    append_plain(kind, fields);
  }
  // Whether a record without values has room in one piece, and nothing has to be written before it.
  bool has_plain_room() const noexcept { return head_ + sizeof(ring::Record) <= plain_until_; }
  // append. REQUIRES: has_plain_room().
  [[gnu::always_inline]] void append_plain(EventKind kind, const Fields& fields) noexcept {
    auto* const record = reinterpret_cast<ring::Record*>(data_ + (head_ & (capacity_ - 1)));
    std::uint8_t flags = fields.flags;
    if (first_ == nullptr) [[likely]] {
      flags |= kFlagCallBegin;
      first_ = record;
      first_head_ = head_;
    } else {
      several_ = true;
    }
    head_ += sizeof(ring::Record);
    want_line(reinterpret_cast<const std::byte*>(record) + kWantedAhead);
    record->words_and_op = ring::kRecordWords | std::uint32_t{fields.op} << 24;
    record->kind = static_cast<std::uint8_t>(kind);
    record->flags = flags;
    record->function = function_;
    record->enter = enter_;
    write_fields(*record, fields);
  }
  static std::uint64_t* values_of(ring::Record* record) noexcept {
    return reinterpret_cast<std::uint64_t*>(record + 1);
  }

  // Of the call that began last.
  std::uint64_t enter() const noexcept { return enter_; }
  std::uint16_t function() const noexcept { return function_; }

  bool recorded() const noexcept { return first_ != nullptr || lost_in_call_; }
  // As most calls: one, and none lost.
  bool has_one_record() const noexcept { return first_ != nullptr && !several_ && !lost_in_call_; }
  // commit. REQUIRES: has_one_record().
  void commit_one(std::uint64_t leave) noexcept {
    first_->leave = leave;
    header_->head.store(head_, std::memory_order_release);
    first_ = nullptr;
  }

  // The call is over: stamps and publishes its records.
  void commit(std::uint64_t leave) noexcept {
    const std::uint64_t lost_from = first_ != nullptr ? leave : enter_;
    if (first_ != nullptr) [[likely]] {
      first_->leave = leave;
      if (several_) stamp_others(leave);
      header_->head.store(head_, std::memory_order_release);
      first_ = nullptr;
      several_ = false;
    }
    if (lost_in_call_) [[unlikely]]
      close_lost(lost_from, leave);
  }

  // Takes something away from the process time before the next record (ring.h, kRecordAdjust). In ticks.
  void adjust(std::uint64_t preempted, std::uint64_t blocked, std::uint64_t waiting) noexcept {
    adjust_.preempted += preempted;
    adjust_.blocked += blocked;
    adjust_.waiting += waiting;
    set_plain(false);
  }

  // The call under way had no processor for so long. In ticks.
  void delay_call(std::uint64_t delay) noexcept {
    adjust_.in_call += delay;
    set_plain(false);
  }

  // BLOCKED ticks that adjust() was told of are sleep after a call that looked and found nothing.
  void note_look_sleep(std::uint64_t blocked) noexcept {
    adjust_.look_sleep += blocked;
    ++adjust_.look_sleeps;
  }

  // One more call that found nothing; BETWEEN ticks that adjust() was told of passed before it.
  void note_look(std::uint64_t between) noexcept {
    ++adjust_.looks.count;
    adjust_.looks.between += between;
  }
  // Such a call took so many ticks of processor time.
  void note_look_cpu(std::uint64_t ticks) noexcept {
    ++adjust_.looks.timed;
    adjust_.looks.cpu += ticks;
  }

  // A record that will be missing for another reason than a full ring.
  void count_lost() noexcept { header_->lost_records.store(++lost_total_, std::memory_order_relaxed); }

  // Calls that were not recorded, all over by `at`: a gap of as many records comes before the next one.
  void lose_calls(std::uint64_t calls, std::uint64_t at) noexcept;

  // append, but without room nothing is lost and nothing happens. REQUIRES: nothing of the call is lost yet.
  ring::Record* try_append(EventKind kind, std::uint32_t values = 0) noexcept {
    const std::uint64_t bytes = (ring::kRecordWords + values) * std::uint64_t{8};
    // What append_slow may write before it, and its pads.
    if (!fits_at_all(bytes) ||
        !has_room(bytes, bytes + 6 * sizeof(ring::Record) + (gap_.records > 0 ? capacity_ / 8 : 0)))
      return nullptr;
    return append(kind, values);
  }

  // What is said of a procedure (ring.h, kRecordProcedure), published at once. false: no room now, nothing happened.
  // REQUIRES: no call has begun that is not committed; `name` and `text` together kMaxProcedureTextBytes at most.
  bool write_procedure(ring::ProcedureWord word, std::uint32_t id, const char* name, std::size_t name_bytes,
                       const char* text, std::size_t text_bytes, std::uint64_t calls = 0,
                       std::uint64_t ticks = 0) noexcept;

  // The thread records nothing any more: what was lost since its last record is told, as far as there is room. Without
  // it the header's count alone has it.
  void end() noexcept;

  // Less than an eighth is free, as the consumer says now.
  bool nearly_full() noexcept {
    tail_ = header_->tail.load(std::memory_order_acquire);
    return head_ - tail_ > capacity_ - capacity_ / 8;
  }

  // From here on records may use the room that is kept back for those that must not be missing: kWindowClose,
  // the last kWindowOpen, kGap and kExit. keep_back: no more. At most 5 records between the two.
  void use_kept_back() noexcept { kept_back_ = 0; }
  void keep_back() noexcept {
    kept_back_ = kKeptBackBytes;
    plain_until_ = 0;
  }
  // Adjustments that no record will carry: the time that they belong to is not recorded.
  void drop_adjustments() noexcept {
    adjust_ = ring::Adjustment{};
    set_plain(gap_.records == 0);
  }

 private:
  struct Gap {
    std::uint64_t records = 0;  // lost since the last record in the ring
    std::uint64_t enter = 0;    // the part of the thread's time that they covered
    std::uint64_t leave = 0;
    ring::Adjustment before;
  };

  void set_plain(bool plain) noexcept {
    plain_ = plain;
    plain_until_ = 0;
  }
  // As far as is known now.
  void renew_plain_until() noexcept {
    const std::uint64_t used = head_ - tail_;
    const std::uint64_t room =
        plain_ && used <= capacity_ && used + kept_back_ < capacity_ ? capacity_ - kept_back_ - used : 0;
    std::uint64_t end_of_data = (head_ | (capacity_ - 1)) + 1;
    if (there_until_ < end_of_data) end_of_data = there_until_;
    plain_until_ = head_ + room < end_of_data ? head_ + room : end_of_data;
  }

  // Room for `bytes` in one piece, with a pad to the end of the data area where needed, and `slack` beyond.
  bool has_room(std::uint64_t bytes, std::uint64_t slack) noexcept {
    const std::uint64_t to_end = capacity_ - (head_ & (capacity_ - 1));
    const std::uint64_t needed = (bytes > to_end ? bytes + to_end : bytes) + slack + kept_back_;
    if (head_ - tail_ + needed > capacity_) [[unlikely]] {
      tail_ = header_->tail.load(std::memory_order_acquire);
      if (head_ - tail_ > capacity_ || needed > capacity_ - (head_ - tail_)) return false;
    }
    return head_ + needed <= there_until_ || make_pages(head_ + needed);
  }
  // false: the file system has no more; the ring stays full.
  bool make_pages(std::uint64_t until) noexcept;

  std::byte* claim(std::uint64_t bytes) noexcept {
    std::uint64_t offset = head_ & (capacity_ - 1);
    if (bytes > capacity_ - offset) [[unlikely]] {
      auto* pad = reinterpret_cast<ring::Record*>(data_ + offset);  // its first 8 bytes always fit
      pad->words_and_op = static_cast<std::uint32_t>((capacity_ - offset) / 8);
      pad->kind = ring::kRecordPad;
      pad->flags = 0;
      pad->function = 0;
      head_ += capacity_ - offset;
      offset = 0;
    }
    head_ += bytes;
    return data_ + offset;
  }

  ring::Record* place(EventKind kind, std::uint64_t bytes) noexcept {
    auto* record = reinterpret_cast<ring::Record*>(claim(bytes));
    record->words_and_op = static_cast<std::uint32_t>(bytes / 8);
    record->kind = static_cast<std::uint8_t>(kind);
    record->function = function_;
    record->enter = enter_;
    record->peer = 0;
    record->tag = 0;
    record->comm = 0;
    record->request = 0;
    record->bytes = 0;
    if (first_ == nullptr) [[likely]] {
      record->flags = kFlagCallBegin;
      first_ = record;
      first_head_ = head_ - bytes;
    } else {
      record->flags = 0;
      several_ = true;
    }
    return record;
  }

  // A record's length must fit its 24 bits, and the ring must be able to hold it.
  bool fits_at_all(std::uint64_t bytes) const noexcept { return bytes / 8 < (1u << 24) && bytes <= capacity_ / 4; }
  static void write_fields(ring::Record& record, const Fields& fields) noexcept {
    record.peer = fields.peer;
    record.tag = fields.tag;
    record.comm = fields.comm;
    record.request = fields.request;
    record.bytes = fields.bytes;
  }

  // A line that is written soon: the relay's processor has read it last. Without this the program's own stores would
  // wait behind the record's until the line is here, because stores become visible in order.
  [[gnu::always_inline]] static void want_line(const std::byte* at) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*at));  // no operation on processors that lack it
#else
    __builtin_prefetch(at, 1);
#endif
  }

  ring::Record* append_slow(EventKind kind, std::uint64_t bytes) noexcept;
  void append_slow(EventKind kind, const Fields& fields) noexcept;
  void write_adjust(const ring::Adjustment& adjust) noexcept;
  void write_gap() noexcept;  // REQUIRES: there is room for two records, each with a pad
  void stamp_others(std::uint64_t leave) noexcept;
  void close_lost(std::uint64_t lost_from, std::uint64_t leave) noexcept;

  static constexpr std::uint64_t kAllThere = ~std::uint64_t{0};
  static constexpr std::size_t kWantedAhead = 1024;
  static constexpr std::uint64_t kPlainBytes = 512;  // larger records take the path that checks their size
  // Two lots of: pads, adjusts, kGap, two records. A window that closed leaves enough for the end.
  static constexpr std::uint64_t kKeptBackBytes = 20 * sizeof(ring::Record);

  ring::Header* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0;                 // written, not yet published
  std::uint64_t there_until_ = kAllThere;  // the first round's data behind it have no pages yet
  std::uint64_t plain_until_ = 0;          // up to here records fit in one piece and want no look at anything else
  std::uint64_t enter_ = 0;
  std::uint64_t first_head_ = 0;
  ring::Record* first_ = nullptr;
  std::uint16_t function_ = 0;
  bool several_ = false;
  bool lost_in_call_ = false;
  bool pages_end_ = false;  // the file system had none at there_until_
  bool plain_ = true;       // no adjustment and no gap to write first
  std::uint64_t tail_ = 0;  // the consumer's, as last seen
  std::uint64_t kept_back_ = kKeptBackBytes;
  ring::Adjustment adjust_;
  Gap gap_;
  std::uint64_t gap_counted_ = 0;  // of gap_.records, in the header already
  std::uint64_t lost_total_ = 0;
};

}  // namespace lbf::capture
