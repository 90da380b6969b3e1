// See library.h. Also works alone: with LBF_PROCEDURES_ALONE in the environment and this library preloaded,
// procedures are measured from the program's start, and a table is written to LBF_PROCEDURES_REPORT when it
// ends (docs/procedures.md, "Alone").
#include "spank_plugin/procedures/library.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spank_plugin/procedures/auto_selection.h"
#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/code_write.h"
#include "spank_plugin/procedures/procedures.h"
#include "spank_plugin/procedures/sampler.h"

// The one is what `take` promises, the other what it writes.
static_assert(sizeof(lbf_procedure_sums) == sizeof(lbf::procedures::IntervalSums));
static_assert(offsetof(lbf_procedure_sums, calls) == offsetof(lbf::procedures::IntervalSums, sums));
static_assert(offsetof(lbf_procedure_sums, processor_time) == offsetof(lbf::procedures::IntervalSums, processor_time));

namespace lbf::procedures {
namespace {

Procedures* procedures = nullptr;  // never freed: threads may be in the stubs at the program's end
double ticks_of_a_call = 0;
std::uint64_t start_ticks = 0;
timespec start_time{};

void say(const std::string& line) {
  std::fprintf(stderr, "lbf: procedures: %s\n", line.c_str());
}

// Whatever goes wrong in here, the program runs on as if nothing had been asked for.
template <class Body>
auto guarded(Body body, decltype(body()) otherwise) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "lbf: procedures are not measured: %s\n", problem.what());
  } catch (...) {
    std::fprintf(stderr, "lbf: procedures are not measured: unknown error\n");
  }
  return otherwise;
}

// What is said once of procedures, and kept for whoever asks.
struct Remark {
  std::uint32_t kind;
  std::string name;
  std::string text;
};
std::vector<Remark>* remarks = nullptr;  // as `procedures`: never freed

void remark(std::uint32_t kind, const std::string& name, const std::string& text, bool quiet) {
  if (remarks == nullptr) remarks = new std::vector<Remark>;
  remarks->push_back({kind, name, text});
  if (!quiet) say(text);
}

double limit_share = 0;
bool is_quiet = false;
AutoSelection* choosing = nullptr;  // as long as samples are taken

double ticks_per_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double passed = static_cast<double>(now.tv_sec - start_time.tv_sec) +
                        1e-9 * static_cast<double>(now.tv_nsec - start_time.tv_nsec);
  return passed > 0 ? static_cast<double>(__builtin_ia32_rdtsc() - start_ticks) / passed : 1;
}

// "auto": chains of procedures of which one is measured, and the callers behind it that may come in its place.
struct Chain {
  std::vector<std::string> names;
  std::size_t at = 0;  // which of them is measured
};
std::vector<Chain>* chains = nullptr;  // as `procedures`: never freed

// Patches what has that name; how many.
std::uint32_t patch_named(Procedures& all, const std::string& name) {
  std::uint32_t patched = 0;
  for (const SelectedProcedure& procedure : all.selection().selected) {
    if (procedure.name == name && procedure.entries > 0 && all.patch(procedure.id)) ++patched;
  }
  return patched;
}

// Patches what a chain is about, or the first caller of it that can be. False: none can.
bool begin_chain(Procedures& all, Chain& chain) {
  for (; chain.at < chain.names.size(); ++chain.at) {
    if (patch_named(all, chain.names[chain.at]) > 0) return true;
  }
  return false;
}

// Finds the procedures of LIST and makes them ready; nullptr: none can be measured, and why is said. `asked`: whether
// what is said of a name concerns anybody.
template <class Asked>
Procedures* open_list(const std::string& list, Asked asked) {
  auto* const made = new Procedures;
  const Result<std::size_t> opened = made->open(list);
  if (!opened) return remark(LBF_PROCEDURE_REFUSED, list, opened.error().message, is_quiet), nullptr;
  for (const RefusedProcedure& refused : made->selection().refused) {
    if (asked(refused.name)) remark(LBF_PROCEDURE_REFUSED, refused.name, refused.reason, is_quiet);
  }
  for (const std::string& note : made->selection().notes) remark(LBF_PROCEDURE_NOTE, "", note, is_quiet);
  if (*opened == 0) return nullptr;
  start_ticks = __builtin_ia32_rdtsc();
  clock_gettime(CLOCK_MONOTONIC, &start_time);
  ticks_of_a_call = Procedures::measure_call_ticks();
  made->limit_cost(limit_share, ticks_of_a_call);
  pthread_atfork(nullptr, nullptr, [] { forked(); });
  // The clocks are read within some 100 ns of each other.
  constexpr timespec kBaseline{0, 2'000'000};
  nanosleep(&kBaseline, nullptr);
  ticks_per_2_20_ns.store(static_cast<std::uint64_t>(ticks_per_s() * 1e-9 * (1 << 20)), std::memory_order_relaxed);
  return made;
}

// The procedures of LIST, from now on.
std::uint32_t measure(const std::string& list) {
  Procedures* const made = open_list(list, [](const std::string&) { return true; });
  if (made == nullptr) return 0;
  const Result<std::uint32_t> patched = made->patch_all();
  if (!patched) return remark(LBF_PROCEDURE_REFUSED, list, patched.error().message, is_quiet), 0;
  procedures = made;
  const auto& selected = made->selection().selected;
  return static_cast<std::uint32_t>(
      std::count_if(selected.begin(), selected.end(), [](const SelectedProcedure& one) { return one.entries > 0; }));
}

// What "auto" chose, from now on; callers are made ready only.
std::uint32_t measure(const Chosen& chosen) {
  Procedures* const made = open_list(chosen.list(), [&](const std::string& name) {
    return std::any_of(chosen.chains.begin(), chosen.chains.end(),
                       [&](const std::vector<std::string>& chain) { return chain.front() == name; });
  });
  if (made == nullptr) return 0;
  auto* const made_chains = new std::vector<Chain>;
  std::uint32_t begun = 0;
  for (const std::vector<std::string>& names : chosen.chains) {
    Chain& chain = made_chains->emplace_back(Chain{names});
    begun += begin_chain(*made, chain) ? 1 : 0;
  }
  chains = made_chains;
  procedures = made;
  return begun;
}

// In the place of each procedure of "auto" that is switched off its caller, from now on. How many.
std::uint32_t refine() noexcept {
  if (chains == nullptr) return 0;
  return guarded(
      []() -> std::uint32_t {
        const NotMeasured no_times;
        std::uint32_t begun = 0;
        for (Chain& chain : *chains) {
          if (chain.at >= chain.names.size()) continue;
          const std::string off = chain.names[chain.at];
          const auto& selected = procedures->selection().selected;
          const bool is_off = std::any_of(selected.begin(), selected.end(), [&](const SelectedProcedure& one) {
            return one.name == off && procedures->state(one.id) == ProcedureState::kSwitchedOffByCost;
          });
          if (!is_off) continue;
          ++chain.at;
          const bool instead = begin_chain(*procedures, chain);
          begun += instead ? 1 : 0;
          remark(LBF_PROCEDURE_NOTE, "auto",
                 "auto: " + off + " is called too often: " +
                     (instead ? chain.names[chain.at] + ", which calls it, is measured in its place from now on"
                              : "nothing that calls it can be measured in its place"),
                 is_quiet);
        }
        return begun;
      },
      0);
}

std::uint32_t start(const char* list, double limit, int quiet) noexcept {
  if (procedures != nullptr || choosing != nullptr) return 0;
  return guarded(
      [&]() -> std::uint32_t {
        limit_share = limit;
        is_quiet = quiet != 0;
        if (std::strcmp(list, "auto") != 0) return measure(list);
        Result<std::unique_ptr<AutoSelection>> begun = AutoSelection::begin();
        if (!begun) return remark(LBF_PROCEDURE_REFUSED, list, begun.error().message, is_quiet), 0;
        choosing = begun->release();
        return 0;
      },
      0);
}

int wants_select() noexcept {
  return choosing != nullptr && choosing->is_due() ? 1 : 0;
}

std::uint32_t select() noexcept {
  AutoSelection* const over = std::exchange(choosing, nullptr);
  if (over == nullptr) return 0;
  return guarded(
      [&]() -> std::uint32_t {
        const std::unique_ptr<AutoSelection> owned(over);
        const Chosen chosen = [&] {
          const NotMeasured no_times;  // not further on: what a call costs is measured there
          return owned->choose();
        }();
        for (const std::string& note : chosen.notes) remark(LBF_PROCEDURE_NOTE, "auto", note, is_quiet);
        return chosen.chains.empty() ? 0 : measure(chosen);
      },
      0);
}

void stop() noexcept {
  delete std::exchange(choosing, nullptr);
  if (procedures == nullptr) return;
  guarded(
      [] {
        for (const SelectedProcedure& procedure : procedures->selection().selected) (void)procedures->unpatch(procedure.id);
        return true;
      },
      false);
}

void write_report(std::FILE* out) {
  const double rate = ticks_per_s();
  std::fprintf(out, "# procedure\tcalls\tinclusive_s\tself_s\tleft_by_jump\tstate\n");
  for (const SelectedProcedure& procedure : procedures->selection().selected) {
    if (procedure.entries == 0) continue;
    const CallSums sums = sums_of(procedure.id);
    static constexpr const char* kStates[] = {"measured", "off", "off-by-cost"};
    std::fprintf(
        out, "%s\t%llu\t%.9f\t%.9f\t%llu\t%s\n", procedure.name.c_str(),
        static_cast<unsigned long long>(sums.calls), static_cast<double>(sums.inclusive_ticks) / rate,
        static_cast<double>(sums.self_ticks) / rate, static_cast<unsigned long long>(sums.left_by_jump),
        kStates[static_cast<int>(procedures->state(procedure.id))]);
  }
  std::fprintf(out, "# missed\t%llu\n# call_ns\t%.2f\n", static_cast<unsigned long long>(missed_calls()),
               ticks_of_a_call / rate * 1e9);
}

void write_samples(std::FILE* out) {
  LoadedSymbols symbols;
  const Result<std::size_t> read = symbols.read("liblbf_procedures");
  if (!read) return say(read.error().message);
  const SampleProfile profile = Sampler::profile(symbols);
  std::fprintf(out, "# samples\t%llu\tdropped\t%llu\n# procedure\tinclusive\texclusive\n",
               static_cast<unsigned long long>(profile.samples),
               static_cast<unsigned long long>(profile.dropped));
  for (const SampledProcedure& procedure : profile.procedures) {
    const auto samples = static_cast<double>(profile.samples);
    std::fprintf(out, "%s\t%.4f\t%.4f\n", procedure.name.c_str(),
                 static_cast<double>(procedure.inclusive) / samples,
                 static_cast<double>(procedure.exclusive) / samples);
  }
}

std::FILE* report_file(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  std::FILE* file = std::fopen(path, "we");
  if (file == nullptr) say(std::string("the report ") + path + " cannot be written: " + std::strerror(errno));
  return file;
}

pid_t own_process = 0;
bool sampling = false;

[[gnu::constructor]] void begin_alone() {
  const char* list = std::getenv("LBF_PROCEDURES_ALONE");
  const char* samples = std::getenv("LBF_PROCEDURES_SAMPLES");
  own_process = getpid();
  if (samples != nullptr && *samples != '\0') {
    guarded(
        [] {
          const Result<std::size_t> started = Sampler::start();
          if (!started) say(started.error().message);
          return sampling = started.ok();
        },
        false);
  }
  if (list == nullptr || *list == '\0') return;
  const char* limit = std::getenv("LBF_PROCEDURES_LIMIT");
  start(list, limit != nullptr ? std::atof(limit) : 0, 0);
}

[[gnu::destructor]] void end_alone() {
  if (getpid() != own_process) return;
  guarded(
      [] {
        const NotMeasured no_times;
        if (sampling) {
          Sampler::stop();
          if (std::FILE* out = report_file("LBF_PROCEDURES_SAMPLES")) {
            write_samples(out);
            std::fclose(out);
          }
        }
        if (procedures != nullptr) {
          if (std::FILE* out = report_file("LBF_PROCEDURES_REPORT")) {
            write_report(out);
            std::fclose(out);
          }
        }
        return true;
      },
      false);
}

const lbf_procedures kLibrary = {
    LBF_PROCEDURES_VERSION,
    kMaxProcedures,
    start,
    wants_select,
    select,
    []() -> std::uint32_t {
      return procedures == nullptr ? 0 : static_cast<std::uint32_t>(procedures->selection().selected.size());
    },
    [](std::uint32_t id) -> const char* {
      return procedures != nullptr && id < procedures->selection().selected.size()
                 ? procedures->selection().selected[id].name.c_str()
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
    [](std::uint32_t id) -> int {
      if (procedures == nullptr || id >= procedures->selection().selected.size()) return 0;
      const ProcedureState state = procedures->state(id);
      return state == ProcedureState::kMeasured ? 1 : state == ProcedureState::kSwitchedOffByCost ? 2 : 0;
    },
    []() -> std::uint32_t { return __atomic_load_n(&switch_offs, __ATOMIC_RELAXED); },
    refine,
    [](std::uint32_t id) -> int {
      return procedures != nullptr && guarded([&] { return procedures->patch(id).ok(); }, false) ? 0 : -1;
    },
    [](std::uint32_t id) -> int {
      return procedures != nullptr && guarded([&] { return procedures->unpatch(id).ok(); }, false) ? 0 : -1;
    },
    stop,
    []() -> std::uint64_t { return missed_calls(); },
    []() -> double { return ticks_of_a_call; },
};

}  // namespace
}  // namespace lbf::procedures

extern "C" const lbf_procedures* lbf_procedures_library(void) {
  return &lbf::procedures::kLibrary;
}
