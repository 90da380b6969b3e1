// RequestTable: what the capture knows of each request and of each matched message, by its handle.
//
// Place in the event's way: inside *capture*; what begins a request puts it here, what completes it finds it here. Open
// addressing over mapped pages, of fixed capacity: a handle's place is one of the kLooks behind its home. MPI libraries
// use their handles again and again, so a handle keeps its place when its request is over; where no place is free any
// more, it is given to another handle. Threads that are in MPI at once (share()) need no lock: a request's state is one
// word, which is changed from what it was known to be; who writes the rest has claimed the word before. So they wait
// for each other only where they have the same handle at the same moment. noexcept, no heap.
#pragma once

#include <sched.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/thread_annotations.h"
#include "event/event.h"
#include "spank_plugin/capture/memory.h"
#include "spank_plugin/capture/replaced_requests.h"

namespace lbf::capture {

struct Communicator;
struct PersistentCollective;

enum class RequestKind : std::uint8_t {
  kUnknown,  // or over
  kNothing,
  kSend,
  kRecv,
  kCollective,
  kCommIdup,
  kOneSided,
  kIo,
};

// What changes while a request lives; one word.
struct RequestState {
  std::uint32_t id = 0;
  RequestKind kind = RequestKind::kUnknown;
  bool persistent : 1 = false;
  bool active : 1 = false;
  bool cancelled : 1 = false;  // MPI_Cancel was called: the status tells whether it worked
  bool synchronous : 1 = false;
  bool buffered : 1 = false;
  bool exact : 1 = false;             // a receive that matches what it was posted for, whatever its status says
  bool fortran_new_comm : 1 = false;  // kCommIdup: the handle will be a Fortran one
  bool partitioned : 1 = false;       // MPI_Psend_init, MPI_Precv_init
  std::uint16_t watch = 0;            // its number in process.watched, as long as that has it

  // The mode of a send as EventFlags.
  std::uint8_t mode_flags() const noexcept {
    return static_cast<std::uint8_t>((synchronous ? kFlagSync : 0) | (buffered ? kFlagBuffered : 0));
  }
  void set_mode(std::uint8_t flags) noexcept {
    synchronous = (flags & kFlagSync) != 0;
    buffered = (flags & kFlagBuffered) != 0;
  }
};
static_assert(sizeof(RequestState) == sizeof(std::uint64_t));

struct RequestInfo : RequestState {
  std::int32_t peer = 0;  // as the program gave it: rank in comm, MPI_ANY_SOURCE, MPI_PROC_NULL
  std::int32_t tag = 0;
  Communicator* comm = nullptr;  // kCommIdup: the one that is being made
  union {
    std::uint64_t bytes = 0;
    const void* new_comm;              // kCommIdup: where the handle will stand
    PersistentCollective* collective;  // kCollective that is persistent
  };
};
static_assert(sizeof(RequestInfo) == 32);  // looked up and copied on the MPI path

class RequestTable {
  struct Place;

 public:
  using Handle = std::uint64_t;  // 0 is none

  // A request as it was when it was looked up: MPI overwrites the handle, other threads may take the place.
  struct Entry {
    Handle handle = 0;
    RequestInfo info;
    Place* place = nullptr;  // where it was
  };

  // REQUIRES: 2 <= log2_capacity <= 30; called once. false: no memory.
  bool open(unsigned log2_capacity) noexcept {
    places_ = static_cast<Place*>(map_pages((std::size_t{1} << log2_capacity) * sizeof(Place)));
    if (places_ == nullptr) return false;
    shift_ = 64 - log2_capacity;
    mask_ = (std::size_t{1} << log2_capacity) - 1;
    return true;
  }

  // Whether several threads may be in here at once. REQUIRES: so far none is, or they already may.
  void share(bool shared) noexcept { shared_.store(shared, std::memory_order_relaxed); }

  // What HANDLE stands for. false, and kUnknown: nothing that is known, or what it stood for is over.
  [[gnu::always_inline]] bool read(Handle handle, Entry& entry) noexcept {
    entry.handle = handle;
    Place* const place = find(handle);
    if (place == nullptr) {
      entry.info.kind = RequestKind::kUnknown;
      return false;
    }
    entry.place = place;
    const std::uint64_t state = place->words[kState].load(std::memory_order_acquire);
    copy(*place, state, entry.info);
    if (shared()) [[unlikely]] {
      std::atomic_thread_fence(std::memory_order_acquire);
      if (state == kClaimed || place->words[kState].load(std::memory_order_relaxed) != state ||
          place->handle.load(std::memory_order_relaxed) != handle) [[unlikely]]
        return read_again(entry);
    }
    return !is_over(state);
  }

  // A moment before a call that completes requests: read_at() tells what their handles stood for then, whatever other
  // threads did meanwhile. Whoever gets such a handle from MPI later puts it behind this moment: MPI's own order of
  // giving it back and out is enough for that.
  std::uint64_t mark() noexcept { return mark_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // As read(), of what HANDLE stood for at MARK. REQUIRES: share(true).
  bool read_at(Handle handle, std::uint64_t mark, Entry& entry) noexcept {
    std::uint64_t born = 0;
    entry.handle = handle;
    const bool known = read_again(entry, born);
    if (entry.place != nullptr && born < mark) return known;
    if (replaced_.find(handle, mark, entry.info)) return true;
    entry.info.kind = RequestKind::kUnknown;
    return false;
  }

  // INFO under HANDLE from here on. What was there and was not over, because it completed while nobody looked, is given
  // to replaced(const RequestInfo&). false: all places that it could have are of requests that are not over.
  template <class Replaced>
  [[gnu::always_inline]] bool put(Handle handle, const RequestInfo& info, Replaced replaced) noexcept {
    if (shared()) [[unlikely]]
      __builtin_prefetch(&places_[home(handle)], 1);
    Place* place = place_for(handle);
    if (place == nullptr) [[unlikely]]
      return false;
    std::uint64_t state = place->words[kState].load(std::memory_order_relaxed);
    if (shared() && !claim(*place, handle, state)) [[unlikely]] {
      const Claimed claimed = claim_again(handle);
      if (claimed.place == nullptr) return false;
      place = claimed.place;
      state = claimed.state;
    }
    const bool is_shared = shared();
    if (!is_over(state)) [[unlikely]] {
      RequestInfo before;
      copy(*place, state, before);
      if (is_shared) renew(*place, handle, before);
      publish(*place, info);
      replaced(before);
      return true;
    }
    if (is_shared) place->born.store(mark_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    publish(*place, info);
    return true;
  }

  // The state becomes what change(RequestState&) makes of it, which may be called several times. false: the request is
  // not the one that ENTRY has (any more), or is over.
  template <class Change>
  [[gnu::always_inline]] bool change(const Entry& entry, Change change) noexcept {
    Place* place = entry.place;
    if (place == nullptr || place->handle.load(std::memory_order_relaxed) != entry.handle) [[unlikely]] {
      place = find(entry.handle);
      if (place == nullptr) return false;
    }
    std::uint64_t word = place->words[kState].load(std::memory_order_acquire);
    for (int turns = 0;;) {
      if (word == kClaimed) [[unlikely]] {
        wait(turns);
        word = place->words[kState].load(std::memory_order_acquire);
        continue;
      }
      RequestState state = std::bit_cast<RequestState>(word);
      if (state.id != entry.info.id || state.kind != entry.info.kind || is_over(word)) return false;
      change(state);
      if (!shared()) [[likely]] {
        place->words[kState].store(word_of(state), std::memory_order_relaxed);
        return true;
      }
      if (place->words[kState].compare_exchange_strong(word, word_of(state), std::memory_order_acq_rel,
                                                       std::memory_order_acquire))
        return true;
    }
  }

  // The request of ENTRY is over. false: it was already, or its handle is another one's by now. Who gets true gives
  // back what entry.info has.
  [[gnu::always_inline]] bool end(const Entry& entry) noexcept {
    return change(entry, [](RequestState& state) { state.kind = RequestKind::kUnknown; });
  }

  // visit(const RequestInfo&) of all that are not over, in no order, with the locks that the caller holds. REQUIRES: no
  // other thread changes the table.
  template <class Visit>
  void for_each(Visit visit) noexcept NO_THREAD_SAFETY_ANALYSIS {
    for (std::size_t i = 0; i <= mask_; ++i) {
      const std::uint64_t state = places_[i].words[kState].load(std::memory_order_acquire);
      if (is_over(state)) continue;
      RequestInfo info;
      copy(places_[i], state, info);
      visit(info);
    }
  }

 private:
  enum Word : std::uint8_t { kState, kPeerAndTag, kComm, kBytes, kWords };
  struct alignas(64) Place {
    std::atomic<Handle> handle;
    std::atomic<std::uint64_t> words[kWords];  // RequestInfo
    std::atomic<std::uint64_t> born;           // where shared: mark_ when it was put
  };
  static_assert(kWords * sizeof(std::uint64_t) == sizeof(RequestInfo));
  static constexpr std::uint64_t kClaimed = ~std::uint64_t{0};  // no kind of request
  static constexpr int kLooks = 64;

  bool shared() const noexcept { return shared_.load(std::memory_order_relaxed); }
  [[gnu::always_inline]] static std::uint64_t word_of(const RequestState& state) noexcept {
    std::uint32_t rest;
    __builtin_memcpy(&rest, reinterpret_cast<const std::byte*>(&state) + sizeof(state.id), sizeof(rest));
    return state.id | static_cast<std::uint64_t>(rest) << 32;
  }
  static bool is_over(std::uint64_t state) noexcept {
    return std::bit_cast<RequestState>(state).kind == RequestKind::kUnknown;
  }
  std::size_t home(Handle handle) const noexcept { return (handle * 0x9e3779b97f4a7c15u) >> shift_; }

  // Word by word, and not by bit_cast: what was just stored in other parts than it is loaded in has to be waited for.
  [[gnu::always_inline]] static void copy(const Place& place, std::uint64_t state, RequestInfo& info) noexcept {
    auto* const to = reinterpret_cast<std::byte*>(&info);
    __builtin_memcpy(to, &state, sizeof(state));
    for (const Word word : {kPeerAndTag, kComm, kBytes}) {
      const std::uint64_t value = place.words[word].load(std::memory_order_relaxed);
      __builtin_memcpy(to + word * sizeof(value), &value, sizeof(value));
    }
  }
  [[gnu::always_inline]] static void publish(Place& place, const RequestInfo& info) noexcept {
    static_assert(std::endian::native == std::endian::little);
    place.words[kPeerAndTag].store(static_cast<std::uint32_t>(info.peer) | static_cast<std::uint64_t>(info.tag) << 32,
                                   std::memory_order_relaxed);
    place.words[kComm].store(reinterpret_cast<std::uintptr_t>(info.comm), std::memory_order_relaxed);
    place.words[kBytes].store(info.bytes, std::memory_order_relaxed);
    place.words[kState].store(word_of(info), std::memory_order_release);
  }

  // A place never becomes free again: behind a free one there is nothing to be found.
  Place* find(Handle handle) noexcept {
    std::size_t i = home(handle);
    for (int looks = 0; looks < kLooks; ++looks, i = (i + 1) & mask_) {
      const Handle here = places_[i].handle.load(std::memory_order_relaxed);
      if (here == handle) return &places_[i];
      if (here == 0) break;
    }
    return nullptr;
  }

  [[gnu::always_inline]] Place* place_for(Handle handle) noexcept {
    Place* const place = find(handle);
    return place != nullptr ? place : new_place(handle);
  }

  // A free place, else one whose request is over; nullptr: there is none.
  [[gnu::noinline]] Place* new_place(Handle handle) noexcept {
    std::size_t i = home(handle);
    for (int looks = 0; looks < kLooks; ++looks, i = (i + 1) & mask_) {
      Handle here = places_[i].handle.load(std::memory_order_relaxed);
      if (here == 0 && places_[i].handle.compare_exchange_strong(here, handle, std::memory_order_relaxed))
        return &places_[i];
      if (here == handle) return &places_[i];
    }
    for (int looks = 0; looks < kLooks; ++looks, i = (i - 1) & mask_) {
      Place& place = places_[(i - 1) & mask_];
      std::uint64_t state = place.words[kState].load(std::memory_order_acquire);
      if (state == kClaimed || !is_over(state) ||
          !place.words[kState].compare_exchange_strong(state, kClaimed, std::memory_order_acq_rel))
        continue;
      place.handle.store(handle, std::memory_order_relaxed);
      place.words[kState].store(state, std::memory_order_release);
      return &place;
    }
    return nullptr;
  }

  // The caller alone may write the place, which was in STATE. false: another thread has it, or it is another handle's
  // by now.
  [[gnu::always_inline]] static bool claim(Place& place, Handle handle, std::uint64_t& state) noexcept {
    if (state == kClaimed || !place.words[kState].compare_exchange_strong(state, kClaimed, std::memory_order_acq_rel))
      return false;
    if (place.handle.load(std::memory_order_relaxed) != handle) {
      place.words[kState].store(state, std::memory_order_release);
      return false;
    }
    std::atomic_thread_fence(std::memory_order_release);  // who sees what is written now sees that it is claimed
    return true;
  }

  struct Claimed {
    Place* place;
    std::uint64_t state;
  };
  [[gnu::noinline]] Claimed claim_again(Handle handle) noexcept {
    for (int turns = 0;; wait(turns)) {
      Place* const place = place_for(handle);
      if (place == nullptr) return {nullptr, 0};
      std::uint64_t state = place->words[kState].load(std::memory_order_relaxed);
      if (claim(*place, handle, state)) return {place, state};
    }
  }

  // The handle of BEFORE, which is not over, gets another meaning. REQUIRES: the caller has claimed the place.
  [[gnu::noinline]] void renew(Place& place, Handle handle, const RequestInfo& before) noexcept {
    const std::uint64_t now = mark_.load(std::memory_order_relaxed);
    replaced_.add({handle, place.born.load(std::memory_order_relaxed), now, before});
    place.born.store(now, std::memory_order_relaxed);
  }

  [[gnu::noinline]] bool read_again(Entry& entry) noexcept {
    std::uint64_t born = 0;
    return read_again(entry, born);
  }
  [[gnu::noinline]] bool read_again(Entry& entry, std::uint64_t& born) noexcept {
    for (int turns = 0;; wait(turns)) {
      entry.place = find(entry.handle);
      if (entry.place == nullptr) {
        entry.info.kind = RequestKind::kUnknown;
        return false;
      }
      const std::uint64_t state = entry.place->words[kState].load(std::memory_order_acquire);
      if (state == kClaimed) continue;
      copy(*entry.place, state, entry.info);
      born = entry.place->born.load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (entry.place->words[kState].load(std::memory_order_relaxed) != state ||
          entry.place->handle.load(std::memory_order_relaxed) != entry.handle)
        continue;
      return !is_over(state);
    }
  }

  // Another thread has claimed the place: for some nanoseconds, unless it lost its processor.
  static void wait(int& turns) noexcept {
    if (++turns > 64) sched_yield();
  }

  Place* places_ = nullptr;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
  std::atomic<bool> shared_{false};
  // What follows is for those who look up what they completed after their call (mark()).
  alignas(64) std::atomic<std::uint64_t> mark_{0};
  ReplacedRequests<RequestInfo> replaced_;
};

}  // namespace lbf::capture
