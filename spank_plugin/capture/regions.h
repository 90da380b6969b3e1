// Regions: parallel regions of OpenMP while the program runs; who measures them and what the recorder is told.
//
// Place in the event's way: OpenMP entry (region_entries.cpp) -> *regions* -> sums of the thread that enters ->
// recorder (recorder_regions.cpp) -> ring. In the preload; docs/adr/0012-threads.md. Only regions of threads that the
// recorder attached are measured, and what other threads do in these. A thread writes its own part of a region, and
// reads those of the others when the region is over. noexcept, no heap, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/clock.h"
#include "spank_plugin/capture/region_times.h"
#include "spank_plugin/capture/wait_meter.h"

namespace lbf::capture {

// What the recorder gives of a thread, and what it looks at.
struct RegionWatch {
  std::uint64_t* attention = nullptr;         // becomes 0 with each region; nullptr: none are measured
  const std::uint64_t* last_leave = nullptr;  // when its last MPI call was over
};

// What the preload offers the recorder (dispatch.h).
struct RegionHost {
  // Measures what the measuring of a region takes. CLOCK: the recorder's. Returns it in ticks.
  std::uint64_t (*start)(const TickClock& clock, std::uint32_t processors);
  void (*watch)(const RegionWatch& watch);  // the calling thread
  void (*stop)();                           // for all threads, and for good: the capture is over
  RegionSums* (*sums)();                    // of the calling thread; valid as long as the thread
  RegionTimes* (*seen)();                   // all that it took, for regions that are not measured
};
extern constinit RegionHost region_host;

// Whether no thread measures any more, whatever it was told to watch: neither regions nor waits for a device.
extern constinit std::atomic<bool> measuring_is_over;
inline bool is_measuring_over() noexcept {
  return measuring_is_over.load(std::memory_order_relaxed);
}

// A region whose bodies are measured, on the stack of the thread that enters it.
class Region {
 public:
  static constexpr std::uint32_t kMostMembers = 128;  // of more the others are taken to be like these

  Region(const void* body, void* data, std::uint64_t begin) noexcept;
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const void* body() const noexcept { return body_; }
  void* data() const noexcept { return data_; }
  // The runtime takes this for the program's data, and reads and writes its first word (GOMP_parallel_reductions).
  void lend_first_word() noexcept { first_word_ = *static_cast<void**>(data_); }
  void return_first_word() noexcept { *static_cast<void**>(data_) = first_word_; }

 private:
  friend class Member;

  void* first_word_ = nullptr;
  const void* body_;
  void* data_;
  const void* entered_by_;
  std::uint64_t begin_;
  std::uint64_t cpu_begin_ns_ = 0;
  bool reads_cpu_;
  std::uint64_t own_busy_ = 0;  // of the entering thread's body
  alignas(64) std::atomic<std::uint32_t> members_{0};
  MemberTimes times_[kMostMembers];
};

// A thread's body of a region, as long as this lives.
class Member {
 public:
  explicit Member(Region& region) noexcept;
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

 private:
  Region& region_;
  std::uint32_t number_;
  struct Outer {
    Region* region;
    BodyTimes body;
    WaitMeter meter;
    bool waits;
    bool passes;
  } outer_;
  std::uint64_t begin_;
  std::uint64_t cpu_begin_ns_ = 0;
};

// A wait for other threads of the team.
class TeamWait {
 public:
  TeamWait() noexcept;
  ~TeamWait();
  TeamWait(const TeamWait&) = delete;
  TeamWait& operator=(const TeamWait&) = delete;

 private:
  bool is_bodys_;  // of a region that is measured, and in no other wait
  bool outer_waits_;
};

// The measured region that the calling thread is in, by its body or by a task; nullptr: none.
Region* current_region() noexcept;
// The calling thread has made a task that is wrapped.
void charge_task() noexcept;
// Whether the calling thread is in a region, measured or not.
bool is_in_region() noexcept;

// A task of REGION that runs in this thread: work, also where the thread waits, or is done with its body. A region
// lasts longer than its tasks.
class TeamTask {
 public:
  explicit TeamTask(Region* region) noexcept;
  ~TeamTask();
  TeamTask(const TeamTask&) = delete;
  TeamTask& operator=(const TeamTask&) = delete;

 private:
  enum class Place : std::uint8_t { kInWait, kAfterBody, kElsewhere };
  void note(WaitMeter::Part ended) const noexcept;

  Region* outer_task_of_;
  Place place_;
  bool outer_waits_;
};

enum class RegionMeasure : std::uint8_t { kNot, kWall, kWhole };
struct RegionDecision {
  RegionMeasure measure;
  std::uint64_t begin;  // ticks; with kNot none
};
// How the region with this body is measured, which the calling thread is about to enter.
RegionDecision decide_region(const void* body) noexcept;

// A region of which the wall time alone is read.
class PassedRegion {
 public:
  PassedRegion(const void* body, std::uint64_t begin) noexcept;
  ~PassedRegion();
  PassedRegion(const PassedRegion&) = delete;
  PassedRegion& operator=(const PassedRegion&) = delete;

 private:
  const void* body_;
  std::uint64_t begin_;
};

}  // namespace lbf::capture
