// Procedures: the selected procedures of this process, measured while it runs.
//
// Place in the event's way: --lbf-procedures -> *procedures* (names, patch, cost) -> sums by procedure at
// each MPI call. This is the C++ face of liblbf_procedures.so inside the program; library.cpp is its C face
// for the capture. Uses the heap and reads files: at start only. Not thread-safe: one caller at a time.
// docs/procedures.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spank_plugin/procedures/loaded_symbols.h"

namespace lbf::procedures {

enum class ProcedureState : std::uint8_t { kMeasured, kSwitchedOff, kSwitchedOffByCost };

struct SelectedProcedure {
  std::uint32_t id = 0;
  std::string name;                    // for people
  std::string module;                  // path
  std::vector<std::string> same_code;  // other names of the same code: aliases, or identical procedures folded into one
  std::uint32_t entries = 0;  // that are measured: copies which the compiler made have one each; 0: it is refused
  bool partial = false;       // pieces of it are measured only where they are called ("part" copies)
};

struct RefusedProcedure {
  std::string name;      // as it was asked for, or as it was found by a wildcard
  std::string reason;    // a whole line for the user
  bool is_here = false;  // its code is in this process: samples can be counted in it (sampler.h)
};

// One piece of a procedure's code, measured or not. Copies that the compiler made and cold parts have pieces of their
// own.
struct ProcedurePiece {
  std::string name;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

struct Selection {
  std::vector<SelectedProcedure> selected;
  std::vector<RefusedProcedure> refused;
  std::vector<std::string> notes;    // lines: inlined places of what was selected, aliases
  std::vector<ProcedurePiece> code;  // of `selected` and of `refused` that are here
};

class Procedures {
 public:
  Procedures();
  ~Procedures();

  // Looks at everything that is loaded now, if it was not done before. Takes tens of milliseconds and more.
  Result<void> read();
  const LoadedSymbols& symbols() const;  // what it found

  // Finds the procedures of `list` (as a user writes them) in everything that is loaded now, and makes their
  // stubs. Nothing is patched yet. How many of all so far can be measured. Called again: further procedures, in what
  // was loaded at the first time.
  Result<std::size_t> open(std::string_view list);
  const Selection& selection() const;

  // Measures procedure `id` from now on, or no more. All: every selected one.
  Result<std::uint32_t> patch(std::uint32_t id);
  Result<std::uint32_t> patch_all();
  Result<std::uint32_t> unpatch(std::uint32_t id);
  ProcedureState state(std::uint32_t id) const;

  // One call of a measured procedure that does nothing, in TSC ticks: measured here and now. 0: it could not
  // be.
  static double measure_call_ticks();
  // Share of a thread's time that its measured calls may cost: 0.02 is 2 %. Beyond it the procedure that is
  // called most is switched off, whatever the program is doing. 0: no limit.
  static void limit_cost(double share, double call_ticks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What calls_per_s calls cost a thread, as a share of its time (predicted cost).
double predicted_share(double calls_per_s, double call_ns);

}  // namespace lbf::procedures
