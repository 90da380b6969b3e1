// See library.h and measuring.h.
#include "spank_plugin/procedures/library.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/code_write.h"
#include "spank_plugin/procedures/measuring.h"
#include "spank_plugin/procedures/sampler.h"

// The one is what `take` promises, the other what it writes.
static_assert(sizeof(lbf_procedure_sums) == sizeof(lbf::procedures::IntervalSums));
static_assert(offsetof(lbf_procedure_sums, calls) == offsetof(lbf::procedures::IntervalSums, sums));
static_assert(offsetof(lbf_procedure_sums, processor_time) == offsetof(lbf::procedures::IntervalSums, processor_time));

namespace lbf::procedures {
namespace {

// How many procedures anybody may ask about: other threads do, while more are opened.
constinit std::atomic<std::uint32_t> published{0};
std::uint64_t start_ticks = 0;
timespec start_time{};

// What is said once of procedures, and kept for whoever asks.
struct Remark {
  std::uint32_t kind;
  std::string name;
  std::string text;
};
std::vector<Remark>* remarks = nullptr;  // never freed

}  // namespace

constinit Measuring measuring;

void say(const std::string& line) {
  std::fprintf(stderr, "lbf: procedures: %s\n", line.c_str());
}

void remark(std::uint32_t kind, const std::string& name, const std::string& text) {
  if (remarks == nullptr) remarks = new std::vector<Remark>;
  remarks->push_back({kind, name, text});
  if (!measuring.quiet) say(text);
}

double ticks_per_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double passed = static_cast<double>(now.tv_sec - start_time.tv_sec) +
                        1e-9 * static_cast<double>(now.tv_nsec - start_time.tv_nsec);
  return passed > 0 ? static_cast<double>(__builtin_ia32_rdtsc() - start_ticks) / passed : 1;
}

void calibrate() {
  if (measuring.call_ticks > 0) return;
  start_ticks = __builtin_ia32_rdtsc();
  clock_gettime(CLOCK_MONOTONIC, &start_time);
  measuring.call_ticks = Procedures::measure_call_ticks();
  Procedures::limit_cost(measuring.limit, measuring.call_ticks);
  pthread_atfork(nullptr, nullptr, [] { forked(); });
  // The clocks are read within some 100 ns of each other.
  constexpr timespec kBaseline{0, 2'000'000};
  nanosleep(&kBaseline, nullptr);
  ticks_per_2_20_ns.store(static_cast<std::uint64_t>(ticks_per_s() * 1e-9 * (1 << 20)), std::memory_order_relaxed);
}

std::size_t open_list(const std::string& list, const std::function<bool(const RefusedProcedure&)>& asked) {
  if (measuring.opened == nullptr) measuring.opened = new Procedures;
  const std::size_t refused_before = measuring.opened->selection().refused.size();
  const std::size_t notes_before = measuring.opened->selection().notes.size();
  const Result<std::size_t> ready = measuring.opened->open(list);
  if (!ready) return remark(LBF_PROCEDURE_REFUSED, list, ready.error().message), 0;
  const auto& selection = measuring.opened->selection();
  for (std::size_t i = refused_before; i < selection.refused.size(); ++i) {
    if (asked(selection.refused[i]))
      remark(LBF_PROCEDURE_REFUSED, selection.refused[i].name, selection.refused[i].reason);
  }
  for (std::size_t i = notes_before; i < selection.notes.size(); ++i)
    remark(LBF_PROCEDURE_NOTE, "", selection.notes[i]);
  calibrate();
  if (*ready > 0) {
    measuring.procedures = measuring.opened;
    published.store(static_cast<std::uint32_t>(selection.selected.size()), std::memory_order_release);
  }
  return *ready;
}

bool is_off(const SelectedProcedure& one) {
  return measuring.procedures != nullptr && one.entries > 0 &&
         measuring.procedures->state(one.id) == ProcedureState::kSwitchedOffByCost;
}

namespace {

// The procedures of LIST, from now on.
std::uint32_t measure(const std::string& list) {
  const std::size_t ready = open_list(list, [](const RefusedProcedure&) { return true; });
  if (ready == 0) return sample_what_is_not_measured(), 0;
  const Result<std::uint32_t> patched = measuring.procedures->patch_all();
  if (!patched) {
    measuring.procedures = nullptr;
    return remark(LBF_PROCEDURE_REFUSED, list, patched.error().message), 0;
  }
  sample_what_is_not_measured();
  const auto& selected = measuring.procedures->selection().selected;
  return static_cast<std::uint32_t>(
      std::count_if(selected.begin(), selected.end(), [](const SelectedProcedure& one) { return one.entries > 0; }));
}

}  // namespace

std::uint32_t start(const char* list, double limit, int quiet) noexcept {
  if (measuring.opened != nullptr || is_auto()) return 0;
  return guarded(
      [&]() -> std::uint32_t {
        measuring.limit = limit;
        measuring.quiet = quiet != 0;
        return std::strcmp(list, "auto") == 0 ? begin_auto() : measure(list);
      },
      0);
}

namespace {

void after_switch_off() noexcept {
  guarded(
      [] {
        sample_what_is_not_measured();
        if (is_auto()) want_another();
        return true;
      },
      false);
}

void stop() noexcept {
  stop_auto();
  Sampler::stop();
  if (measuring.procedures == nullptr) return;
  guarded(
      [] {
        for (const SelectedProcedure& procedure : measuring.procedures->selection().selected)
          (void)measuring.procedures->unpatch(procedure.id);
        return true;
      },
      false);
}

const lbf_procedures kLibrary = {
    LBF_PROCEDURES_VERSION,
    kMaxProcedures,
    start,
    wants,
    end_sampling,
    candidates,
    candidate,
    choose,
    follow,
    []() -> std::uint32_t { return published.load(std::memory_order_acquire); },
    [](std::uint32_t id) -> const char* {
      return measuring.procedures != nullptr && id < measuring.procedures->selection().selected.size()
                 ? measuring.procedures->selection().selected[id].name.c_str()
                 : nullptr;
    },
    []() -> std::uint32_t { return remarks == nullptr ? 0 : static_cast<std::uint32_t>(remarks->size()); },
    [](std::uint32_t number) -> lbf_procedure_remark {
      if (remarks == nullptr || number >= remarks->size()) return {LBF_PROCEDURE_NOTE, "", ""};
      const Remark& one = (*remarks)[number];
      return {one.kind, one.name.c_str(), one.text.c_str()};
    },
    [](std::uint64_t now, lbf_procedure_sums* out, std::uint32_t room) -> std::uint32_t {
      return take_interval(now, reinterpret_cast<IntervalSums*>(out), room);
    },
    [](std::uint64_t now) { resume(now); },
    []() -> std::uint64_t { return calls_beside(); },
    [](std::uint32_t id) -> int {
      if (measuring.procedures == nullptr || id >= measuring.procedures->selection().selected.size()) return 0;
      const ProcedureState state = measuring.procedures->state(id);
      return state == ProcedureState::kMeasured ? 1 : state == ProcedureState::kSwitchedOffByCost ? 2 : 0;
    },
    []() -> std::uint32_t { return __atomic_load_n(&switch_offs, __ATOMIC_RELAXED); },
    [](std::uint32_t id, std::uint64_t* calls, std::uint64_t* ticks) {
      *calls = id < kMaxProcedures ? switch_off_rates[id].calls : 0;
      *ticks = id < kMaxProcedures ? switch_off_rates[id].ticks : 0;
    },
    after_switch_off,
    []() -> int { return is_sampling() ? 1 : 0; },
    []() -> std::uint64_t { return Sampler::watched_samples(); },
    []() -> std::uint64_t { return Sampler::ticks(); },
    sampled,
    samples_of,
    [](std::uint32_t id) -> int {
      return measuring.procedures != nullptr && guarded([&] { return measuring.procedures->patch(id).ok(); }, false)
                 ? 0
                 : -1;
    },
    [](std::uint32_t id) -> int {
      return measuring.procedures != nullptr && guarded([&] { return measuring.procedures->unpatch(id).ok(); }, false)
                 ? 0
                 : -1;
    },
    stop,
    []() -> std::uint64_t { return missed_calls(); },
    []() -> double { return measuring.call_ticks; },
};

}  // namespace
}  // namespace lbf::procedures

extern "C" const lbf_procedures* lbf_procedures_library(void) {
  return &lbf::procedures::kLibrary;
}
