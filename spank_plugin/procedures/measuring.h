// Measuring: what is measured in this process, as the parts of liblbf_procedures.so share it: procedures that were
// named (library.cpp), that "auto" chose or a list of all ranks names (auto_measuring.cpp), that samples stand in for
// (sampled_measuring.cpp), and measuring without a capture (alone.cpp).
//
// Place in the event's way: library.h -> *measuring* -> procedures, sampler. One caller at a time, but for what is
// marked.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "spank_plugin/procedures/library.h"
#include "spank_plugin/procedures/procedures.h"

namespace lbf::procedures {

struct Measuring {
  // Never freed: threads may be in the stubs at the program's end. `opened`: those that were asked for, whether one of
  // them can be measured or none; `procedures`: the same from when one can.
  Procedures* opened = nullptr;
  Procedures* procedures = nullptr;
  double limit = 0;  // share of a thread's time
  bool quiet = false;
  bool alone = false;     // without a capture: nobody says when a thread is between MPI calls
  double call_ticks = 0;  // one call; 0: not calibrated
};
extern constinit Measuring measuring;

// What is said once of procedures, and kept for whoever asks.
void say(const std::string& line);
void remark(std::uint32_t kind, const std::string& name, const std::string& text);

double ticks_per_s();  // of the TSC, since calibrate()
// What a call costs, before anything is patched; the limit counts from here on.
void calibrate();

// Finds the procedures of LIST and makes them ready, beside those that are. How many of all can be measured. `asked`:
// whether what is said of a name concerns anybody.
std::size_t open_list(const std::string& list, const std::function<bool(const RefusedProcedure&)>& asked);
// Switched off by cost.
bool is_off(const SelectedProcedure& one);

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

// "auto": library.h. `begin_auto`: sampling begins; 0 in any case.
std::uint32_t begin_auto();
int wants() noexcept;  // any thread
std::uint32_t end_sampling() noexcept;
std::uint32_t candidates() noexcept;
lbf_procedure_candidate candidate(std::uint32_t number) noexcept;
std::uint32_t choose() noexcept;
std::uint32_t follow(const char* names) noexcept;
bool is_auto() noexcept;
// One of its procedures was switched off: another list, or an own choice, is wanted.
void want_another() noexcept;
void stop_auto() noexcept;

// Samples are counted from the first time on that something is not measured which is here.
void sample_what_is_not_measured();
bool is_sampling() noexcept;  // any thread
std::uint32_t sampled() noexcept;
lbf_procedure_samples samples_of(std::uint32_t number) noexcept;

// library.h's `start`.
std::uint32_t start(const char* list, double limit, int quiet) noexcept;

}  // namespace lbf::procedures
