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

bool write_words(Thread& thread, ring::ProcedureWord word, std::uint32_t id, const char* name,
                 const char* text) noexcept {
  const std::size_t name_bytes = least(strlen(name), ring::kMaxProcedureTextBytes);
  const std::size_t text_bytes = least(strlen(text), ring::kMaxProcedureTextBytes - name_bytes);
  return thread.ring.write_procedure(word, id, name, name_bytes, text, text_bytes);
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
    const auto word =
        remark.kind == LBF_PROCEDURE_REFUSED ? ring::ProcedureWord::kRefused : ring::ProcedureWord::kNote;
    if (!write_words(thread, word, 0, remark.name, remark.text)) return;
  }
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
    if (!write_words(thread, ring::ProcedureWord::kOff, id, loaded.name(id), line)) return;
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
  if (process.rank == 0) dprintf(STDERR_FILENO, "lbf: %s\n", line);
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

// Samples are enough: the best are measured from here on.
void select(Thread& thread) noexcept {
  if (procedure_times.lock.test_and_set(std::memory_order_acquire)) return;
  if (!procedure_times.measuring && procedures_library()->wants_select() != 0) {
    procedure_times.measuring = procedures_library()->select() > 0;
    say_words(thread);
  }
  procedure_times.lock.clear(std::memory_order_release);
}

// What writing took counts as cost of the procedures, not of the call.
void charge(Thread& thread, std::uint64_t calls, std::uint64_t ticks) noexcept {
  ring::ProcedureUse& use = thread.header->procedures;
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  };
  const double call_ticks = procedures_library()->call_ticks();
  use.call_ticks_256.store(static_cast<std::uint64_t>(call_ticks * 256), std::memory_order_relaxed);
  add(use.calls, calls);
  add(use.record_ticks, ticks);
  thread.estimate_beside_calls += ticks + static_cast<std::uint64_t>(call_ticks * static_cast<double>(calls));
}

}  // namespace

void start_procedures(Thread& thread) noexcept {
  const char* const list = getenv("LBF_CAPTURE_PROCEDURES");
  if (list == nullptr || *list == '\0') return;
#if defined(__x86_64__)
  if (!tick_clock.tsc) return give_up(thread, list, "this processor's tick counter is not constant", "");
  const lbf_procedures* const loaded = load(thread, list);
  if (loaded == nullptr) return;
  const std::uint32_t measured = loaded->start(list, limit_of_environment(), process.rank != 0);
  procedure_times.measuring = measured > 0;
  procedure_times.library.store(loaded, std::memory_order_release);
  say_words(thread);
  if (measured == 0 && strcmp(list, "auto") != 0) {
    procedure_times.library.store(nullptr, std::memory_order_release);  // calls go their usual way
    return;
  }
  thread.intervals_stale = false;  // nothing was measured before
#else
  give_up(thread, list, "this is not an x86-64 processor", "");
#endif
}

void end_procedure_interval(Thread& thread, std::uint64_t enter, std::uint64_t gap,
                            std::uint16_t function) noexcept {
  const std::uint64_t begin = ticks_now();
  const lbf_procedures& loaded = *procedures_library();
  if (!procedure_times.measuring) {
    thread.gap_off_ticks = 0;
    if (loaded.wants_select() != 0) select(thread);
    return;
  }
  // What the ring had no room for before, and what was switched off since.
  if (procedure_times.names_said < loaded.procedures() || procedure_times.remarks_said < loaded.remarks() ||
      procedure_times.switch_offs_said != loaded.switch_offs()) {
    if (!procedure_times.lock.test_and_set(std::memory_order_acquire)) {
      if (procedure_times.switch_offs_said != loaded.switch_offs()) {
        say_off(thread);
        if (loaded.refine() > 0) procedure_times.names_said = 0;
      }
      say_words(thread);
      procedure_times.lock.clear(std::memory_order_release);
      thread.ring.begin_call(enter, function);
    }
  }
  if (thread.intervals == nullptr) {
    thread.intervals = static_cast<ProcedureIntervals*>(map_pages(sizeof(ProcedureIntervals)));
  }
  lbf_procedure_sums sums[procedures::kMostIntervalSums];
  const std::uint32_t count = loaded.take(enter, sums, procedures::kMostIntervalSums);
  std::uint64_t calls = 0;
  for (std::uint32_t i = 0; i < count; ++i) calls += sums[i].calls;
  // A gap between two polls that found nothing is waiting, whatever ran in it (Call::without_record); of this call
  // nobody knows yet what it will find.
  const bool waits = thread.last_was_failed_poll && gap < tick_clock.pure_loop;
  ProcedureIntervals* const kept = thread.intervals;
  if (thread.intervals_stale) {
    thread.intervals_stale = false;  // of calls that were counted only, or of before the thread had a ring
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
    const std::uint64_t off = least(thread.gap_off_ticks, gap);
    procedures::write_interval_records(thread.ring, {sums, all}, enter, function,
                                       procedures::process_share({sums, count}, gap, off));
  }
  thread.gap_off_ticks = 0;
  charge(thread, calls, ticks_now() - begin);
}

void say_last_of_procedures(Thread& thread) noexcept {
  const lbf_procedures* const loaded = procedures_library();
  if (loaded == nullptr) return;
  if (procedure_times.measuring) return say_off(thread);
  if (loaded->remarks() > 0) return;  // why not was said
  write_words(thread, ring::ProcedureWord::kRefused, 0, "auto",
              "the run ended before there were enough samples to choose by (about a second of processor time)");
}

void stop_procedures() noexcept {
  const lbf_procedures* const loaded = procedures_library();
  if (loaded == nullptr) return;
  procedure_times.library.store(nullptr, std::memory_order_release);
  loaded->stop();
}

}  // namespace lbf::capture
