#include "spank_plugin/capture/procedure_times.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank_plugin/procedures/interval_records.h"

namespace lbf::capture {

constinit ProcedureTimes procedure_times;

namespace {

constexpr const char* kLibrary = "liblbf_procedures.so";
using LibraryEntry = const lbf_procedures* (*)();

std::size_t least(std::size_t a, std::size_t b) noexcept {
  return a < b ? a : b;
}

bool write_words(Thread& thread, ring::ProcedureWord word, std::uint32_t id, const char* name, const char* text,
                 std::uint64_t calls = 0, std::uint64_t ticks = 0) noexcept {
  const std::size_t name_bytes = least(strlen(name), ring::kMaxProcedureTextBytes);
  const std::size_t text_bytes = least(strlen(text), ring::kMaxProcedureTextBytes - name_bytes);
  return thread.ring.write_procedure(word, id, name, name_bytes, text, text_bytes, calls, ticks);
}

// What "auto" found, of which a list for all ranks is made. REQUIRES: the lock is held.
void say_candidates(Thread& thread) noexcept {
  if (!procedure_times.candidates_known) return;
  const lbf_procedures& loaded = *procedures_library();
  const std::uint32_t count = loaded.candidates();
  while (procedure_times.candidates_said < (count == 0 ? 1 : count)) {
    const lbf_procedure_candidate one = loaded.candidate(procedure_times.candidates_said);
    char text[ring::kMaxProcedureTextBytes];
    const int bytes =
        snprintf(text, sizeof(text), "%u %u %llu %llu\n%s", procedure_times.candidates_said, count,
                 static_cast<unsigned long long>(one.samples), static_cast<unsigned long long>(one.own), one.callers);
    if (bytes < 0 || !write_words(thread, ring::ProcedureWord::kCandidate, 0, one.name, text)) return;
    ++procedure_times.candidates_said;
  }
}

constexpr std::uint64_t kFirstSamplesSaid = 64;

// The samples of what is not measured, at each doubling of their number and at the end. REQUIRES: the lock is held, or
// no other thread records.
void say_samples(Thread& thread) noexcept {
  const lbf_procedures& loaded = *procedures_library();
  const std::uint32_t count = loaded.sampled();
  for (std::uint32_t number = 0; number < count; ++number) {
    const lbf_procedure_samples one = loaded.samples(number);
    char text[80];
    snprintf(text, sizeof(text), "%llu %llu %llu", static_cast<unsigned long long>(one.inclusive),
             static_cast<unsigned long long>(one.exclusive), static_cast<unsigned long long>(one.of));
    if (!write_words(thread, ring::ProcedureWord::kSamples, 0, one.name, text)) return;
  }
}

// Names and remarks that the ring does not have yet, as far as there is room. REQUIRES: the lock is held.
void say_words(Thread& thread) noexcept {
  const lbf_procedures& loaded = *procedures_library();
  for (; procedure_times.names_said < loaded.procedures(); ++procedure_times.names_said) {
    const char* const name = loaded.name(procedure_times.names_said);
    const std::uint32_t id = procedure_times.names_said;
    // Refused, or ready to be measured in another's place.
    if (name == nullptr || loaded.state(id) == 0 || (procedure_times.named[id / 64] >> id % 64 & 1) != 0) continue;
    if (!write_words(thread, ring::ProcedureWord::kName, id, name, "")) return;
    procedure_times.named[id / 64] |= std::uint64_t{1} << id % 64;
  }
  for (; procedure_times.remarks_said < loaded.remarks(); ++procedure_times.remarks_said) {
    const lbf_procedure_remark remark = loaded.remark(procedure_times.remarks_said);
    const auto word = remark.kind == LBF_PROCEDURE_REFUSED ? ring::ProcedureWord::kRefused : ring::ProcedureWord::kNote;
    if (!write_words(thread, word, 0, remark.name, remark.text)) return;
  }
  say_candidates(thread);
}

double limit_of_environment() noexcept {
  const char* const text = getenv("LBF_CAPTURE_PROCEDURES_LIMIT");
  if (text == nullptr || *text == '\0') return kDefaultProcedureLimit;
  char* end = nullptr;
  const double value = strtod(text, &end);
  return *end == '\0' && value > 0 && value <= 1 ? value : kDefaultProcedureLimit;
}

// Procedures that cost switched off, as far as the ring does not know. REQUIRES: the lock is held, or no other thread
// records.
void say_off(Thread& thread) noexcept {
  const lbf_procedures& loaded = *procedures_library();
  const std::uint32_t happened = loaded.switch_offs();
  for (std::uint32_t id = 0; id < loaded.procedures(); ++id) {
    constexpr int kOffByCost = 2;
    if (loaded.state(id) != kOffByCost || (procedure_times.off_said[id / 64] >> id % 64 & 1) != 0) continue;
    char line[256];
    snprintf(line, sizeof(line),
             "it is called too often to be measured all the time (limit %.2g %%): its calls and times are those until "
             "it was switched off",
             100 * limit_of_environment());
    std::uint64_t calls = 0;
    std::uint64_t ticks = 0;
    loaded.off_rate(id, &calls, &ticks);
    if (!write_words(thread, ring::ProcedureWord::kOff, id, loaded.name(id), line, calls, ticks)) return;
    procedure_times.off_said[id / 64] |= std::uint64_t{1} << id % 64;
    // A jump that lies across two lines of 16 bytes could not be taken out in the hook: it came back at once instead.
    (void)loaded.unpatch(id);
  }
  procedure_times.switch_offs_said = happened;
}

// Why procedures that were asked for are not measured at all: on stderr, and to the relay.
void give_up(Thread& thread, const char* list, const char* why, const char* detail) noexcept {
  char line[512];
  snprintf(line, sizeof(line), "procedures are not measured: %s%s", why, detail);
  if (process.run.rank == 0) dprintf(STDERR_FILENO, "lbf: %s\n", line);
  write_words(thread, ring::ProcedureWord::kRefused, 0, list, line);
}

const lbf_procedures* load(Thread& thread, const char* list) noexcept {
  Dl_info self{};
  char path[4096];
  const char* const slash = dladdr(&procedure_times, &self) != 0 ? strrchr(self.dli_fname, '/') : nullptr;
  const int directory = slash != nullptr ? static_cast<int>(slash - self.dli_fname) + 1 : 0;
  if (snprintf(path, sizeof(path), "%.*s%s", directory, self.dli_fname, kLibrary) >= static_cast<int>(sizeof(path)))
    return give_up(thread, list, "the capture's path is too long", ""), nullptr;
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return give_up(thread, list, "", dlerror()), nullptr;
  const auto entry = reinterpret_cast<LibraryEntry>(dlsym(handle, "lbf_procedures_library"));
  const lbf_procedures* const loaded = entry != nullptr ? entry() : nullptr;
  if (loaded == nullptr || loaded->version != LBF_PROCEDURES_VERSION ||
      loaded->max_procedures > lbf::procedures::kMostIntervalSums) {
    return give_up(thread, list, "of another release than the capture: ", path), nullptr;
  }
  return loaded;
}

bool has_new_list(const Thread& thread) noexcept {
  return thread.header->list_generation.load(std::memory_order_acquire) >
         procedure_times.list_followed.load(std::memory_order_relaxed);
}

// The list of all ranks into TEXT, with a zero behind it. 0: it is just being written; else its generation.
std::uint64_t copy_list(const ring::Header& header, char (&text)[ring::kMaxProcedureListBytes + 1]) noexcept {
  const std::uint64_t generation = header.list_generation.load(std::memory_order_acquire);
  const std::size_t bytes = least(header.list_bytes, ring::kMaxProcedureListBytes);
  memcpy(text, header.list, bytes);
  text[bytes] = '\0';
  std::atomic_thread_fence(std::memory_order_acquire);
  return header.list_begun.load(std::memory_order_relaxed) == generation ? generation : 0;
}

// Work in a call that may take many milliseconds. By the thread's processor clock: on a shared processor its wall time
// would have others' turns in it.
class LongWork {
 public:
  std::uint64_t cpu_ns() const noexcept { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns_; }

 private:
  std::uint64_t begin_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
};

// "auto", between two calls: what is found is told, the list of all ranks is followed, or, without one, an own choice
// made. Ticks of it that count against the limit. What is done once in a run whatever comes (the end of sampling with
// its look at all symbols, the first list, the first own choice) does not: it is told as once_cpu_ns, as what MPI_Init
// does is.
std::uint64_t choose(Thread& thread) noexcept {
  if (procedure_times.lock.test_and_set(std::memory_order_acquire)) return 0;
  const LongWork work;
  bool is_once = false;
  const lbf_procedures& loaded = *procedures_library();
  const auto measures = [](std::uint32_t count) {
    if (count > 0) procedure_times.measuring.store(true, std::memory_order_relaxed);
    procedure_times.names_said = 0;
  };
  char list[ring::kMaxProcedureListBytes + 1];
  if (const std::uint64_t generation = has_new_list(thread) ? copy_list(*thread.header, list) : 0; generation != 0) {
    is_once = procedure_times.list_followed.load(std::memory_order_relaxed) == 0;
    measures(loaded.follow(list));
    procedure_times.list_followed.store(generation, std::memory_order_relaxed);
    procedure_times.candidates_known = true;
  } else if (loaded.wants() == LBF_PROCEDURES_WANT_CANDIDATES) {
    is_once = true;
    loaded.end_sampling();
    procedure_times.candidates_known = true;
  } else if (loaded.wants() == LBF_PROCEDURES_WANT_CHOICE) {
    is_once = !procedure_times.measuring.load(std::memory_order_relaxed);
    measures(loaded.choose());
  }
  say_words(thread);
  const std::uint64_t cpu_ns = work.cpu_ns();
  procedure_times.lock.clear(std::memory_order_release);
  if (!is_once) return ticks_from_ns(cpu_ns);
  std::atomic<std::uint64_t>& once_ns = thread.header->once_cpu_ns;
  once_ns.store(once_ns.load(std::memory_order_relaxed) + cpu_ns, std::memory_order_relaxed);
  return 0;
}

// Of what the whole process has of something, the part that no thread has charged yet.
std::uint64_t take_uncharged(std::atomic<std::uint64_t>& charged, std::uint64_t all) noexcept {
  std::uint64_t before = charged.load(std::memory_order_relaxed);
  while (before < all) {
    if (charged.compare_exchange_weak(before, all, std::memory_order_relaxed)) return all - before;
  }
  return 0;
}

// What writing took counts as cost of the procedures, not of the call.
void charge(Thread& thread, std::uint64_t calls, std::uint64_t ticks) noexcept {
  ring::ProcedureUse& use = thread.header->procedures;
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  };
  const double call_ticks = procedures_library()->call_ticks();
  // Samples were taken in whatever thread, calls made in some that have no ring: both are charged once.
  ticks += take_uncharged(procedure_times.sample_ticks_charged, procedures_library()->sample_ticks());
  calls += take_uncharged(procedure_times.calls_beside_charged, procedures_library()->calls_beside());
  use.call_ticks_256.store(static_cast<std::uint64_t>(call_ticks * 256), std::memory_order_relaxed);
  add(use.calls, calls);
  add(use.record_ticks, ticks);
  thread.cost.beside_calls_ticks += ticks + static_cast<std::uint64_t>(call_ticks * static_cast<double>(calls));
}

}  // namespace

void start_procedures(Thread& thread) noexcept {
  const char* const list = getenv("LBF_CAPTURE_PROCEDURES");
  if (list == nullptr || *list == '\0') return;
#if defined(__x86_64__)
  if (!tick_clock.tsc) return give_up(thread, list, "this processor's tick counter is not constant", "");
  const lbf_procedures* const loaded = load(thread, list);
  if (loaded == nullptr) return;
  const std::uint32_t measured = loaded->start(list, limit_of_environment(), process.run.rank != 0);
  procedure_times.measuring = measured > 0;
  if (loaded->sampling() != 0) procedure_times.samples_next = kFirstSamplesSaid;
  thread.header->procedures.call_ticks_256.store(static_cast<std::uint64_t>(loaded->call_ticks() * 256),
                                                 std::memory_order_relaxed);
  procedure_times.library.store(loaded, std::memory_order_release);
  say_words(thread);
  if (measured == 0 && loaded->sampling() == 0 && strcmp(list, "auto") != 0) {
    procedure_times.library.store(nullptr, std::memory_order_release);  // calls go their usual way
    return;
  }
  thread.procedures.stale = false;  // nothing was measured before
#else
  give_up(thread, list, "this is not an x86-64 processor", "");
#endif
}

void end_procedure_interval(Thread& thread, std::uint64_t enter, std::uint64_t gap, std::uint16_t function) noexcept {
  std::uint64_t begin = ticks_now();
  std::uint64_t long_ticks = 0;
  const lbf_procedures& loaded = *procedures_library();
  if (has_new_list(thread) || loaded.wants() != LBF_PROCEDURES_WANT_NOTHING) {
    long_ticks = choose(thread);
    thread.ring.begin_call(enter, function);
    begin = ticks_now();
  }
  if (const std::uint64_t next = procedure_times.samples_next.load(std::memory_order_relaxed);
      next != 0 && loaded.samples_taken() >= next && !procedure_times.lock.test_and_set(std::memory_order_acquire)) {
    procedure_times.samples_next.store(2 * loaded.samples_taken(), std::memory_order_relaxed);
    say_samples(thread);
    procedure_times.lock.clear(std::memory_order_release);
    thread.ring.begin_call(enter, function);
  }
  if (!procedure_times.measuring.load(std::memory_order_relaxed)) {
    thread.procedures.gap_off_ticks = 0;
    (void)loaded.take(enter, nullptr, 0);
    return charge(thread, 0, long_ticks + (ticks_now() - begin));
  }
  // What the ring had no room for before, and what was switched off since.
  if (procedure_times.names_said < loaded.procedures() || procedure_times.remarks_said < loaded.remarks() ||
      procedure_times.switch_offs_said != loaded.switch_offs()) {
    if (!procedure_times.lock.test_and_set(std::memory_order_acquire)) {
      const LongWork work;
      if (procedure_times.switch_offs_said != loaded.switch_offs()) {
        say_off(thread);
        loaded.after_switch_off();
        if (loaded.sampling() != 0 && procedure_times.samples_next == 0)
          procedure_times.samples_next = kFirstSamplesSaid;
      }
      say_words(thread);
      long_ticks += ticks_from_ns(work.cpu_ns());
      procedure_times.lock.clear(std::memory_order_release);
      thread.ring.begin_call(enter, function);
      begin = ticks_now();
    }
  }
  if (thread.procedures.intervals == nullptr) {
    thread.procedures.intervals = static_cast<ProcedureIntervals*>(map_pages(sizeof(ProcedureIntervals)));
  }
  lbf_procedure_sums sums[procedures::kMostIntervalSums];
  const std::uint32_t count = loaded.take(enter, sums, procedures::kMostIntervalSums);
  std::uint64_t calls = 0;
  for (std::uint32_t i = 0; i < count; ++i) calls += sums[i].calls;
  // A gap between two polls that found nothing is waiting, whatever ran in it (Call::without_record); of this call
  // nobody knows yet what it will find.
  const bool waits = thread.mode.last_was_failed_poll && gap < tick_clock.pure_loop;
  ProcedureIntervals* const kept = thread.procedures.intervals;
  if (thread.procedures.stale) {
    thread.procedures.stale = false;  // of calls that were counted only, or of before the thread had a ring
  } else if (waits) {
    for (std::uint32_t i = 0; kept != nullptr && i < count; ++i) {
      kept->calls_carried[sums[i].procedure] += sums[i].calls;
      kept->any_carried |= sums[i].calls != 0;
    }
  } else {
    std::uint32_t all = count;
    if (kept != nullptr && kept->any_carried) {
      for (std::uint32_t i = 0; i < count; ++i) {
        sums[i].calls += kept->calls_carried[sums[i].procedure];
        kept->calls_carried[sums[i].procedure] = 0;
      }
      for (std::uint32_t id = 0; id < procedures::kMostIntervalSums; ++id) {
        if (kept->calls_carried[id] == 0 || all == procedures::kMostIntervalSums) continue;
        sums[all++] = {id, 0, kept->calls_carried[id], 0, 0, 0};
        kept->calls_carried[id] = 0;
      }
      kept->any_carried = false;
    }
    const std::uint64_t off = least(thread.procedures.gap_off_ticks, gap);
    procedures::write_interval_records(thread.ring, {sums, all}, enter, function,
                                       procedures::process_share({sums, count}, gap, off));
  }
  thread.procedures.gap_off_ticks = 0;
  charge(thread, calls, long_ticks + (ticks_now() - begin));
}

void say_last_of_procedures(Thread& thread, ProceduresEnd end) noexcept {
  const lbf_procedures* const loaded = procedures_library();
  if (loaded == nullptr) return;
  if (loaded->sampling() != 0) say_samples(thread);
  if (procedure_times.measuring) return say_off(thread);
  if (loaded->remarks() > 0) return;  // why not was said
  const char* const what = end == ProceduresEnd::kRun ? "the run ended" : "the overhead limit ended the capture";
  char line[256];
  snprintf(line, sizeof(line), "%s before %s", what,
           procedure_times.candidates_known
               ? "the list of procedures for all ranks came"
               : "there were enough samples to choose by (about a second of processor time)");
  write_words(thread, ring::ProcedureWord::kRefused, 0, "auto", line);
}

void stop_procedures() noexcept {
  const lbf_procedures* const loaded = procedures_library();
  if (loaded == nullptr) return;
  procedure_times.library.store(nullptr, std::memory_order_release);
  loaded->stop();
}

}  // namespace lbf::capture
