// "auto": procedures that this process found by sampling, and those that a list of all ranks names (docs/procedures.md,
// "Automatic selection").
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "spank_plugin/procedures/auto_selection.h"
#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/measuring.h"

namespace lbf::procedures {
namespace {

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

// "auto": what the samples said; as `procedures`: never freed. And whether the list of all ranks was followed.
Chosen* chosen = nullptr;
// As long as samples are taken; never freed: other threads ask it.
constinit std::atomic<AutoSelection*> choosing{nullptr};
bool has_followed = false;
constinit std::atomic<std::int64_t> waits_since_ns{0};  // for a list; 0: for none
std::int64_t patience_ns = 0;

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// How long a process waits for the list of all ranks before it chooses for itself.
std::int64_t patience_of_environment() {
  constexpr double kDefaultS = 8;
  const char* const text = std::getenv("LBF_CAPTURE_PROCEDURES_WAIT");
  char* end = nullptr;
  const double seconds = text == nullptr || *text == '\0' ? kDefaultS : std::strtod(text, &end);
  const bool is_number = end == nullptr || *end == '\0';
  return static_cast<std::int64_t>((is_number && seconds >= 0 && seconds <= 3600 ? seconds : kDefaultS) * 1e9);
}

bool is_known(const std::string& name) {
  if (measuring.opened == nullptr) return false;
  const auto& selected = measuring.opened->selection().selected;
  return std::any_of(selected.begin(), selected.end(), [&](const SelectedProcedure& one) { return one.name == name; });
}

// What the samples of this process say is best, from now on; callers are made ready only.
std::uint32_t measure_chosen() {
  const std::size_t most = std::min(chosen->chains.size(), kMostChosen);
  const std::size_t ready = open_list(chosen->list(), [&](const RefusedProcedure& refused) {
    return std::any_of(chosen->chains.begin(), chosen->chains.begin() + static_cast<std::ptrdiff_t>(most),
                       [&](const std::vector<std::string>& chain) { return chain.front() == refused.name; });
  });
  if (ready == 0) return 0;
  for (const std::string& note : chosen->notes) remark(LBF_PROCEDURE_NOTE, "auto", note);
  auto* const made_chains = new std::vector<Chain>;
  std::uint32_t begun = 0;
  for (std::size_t i = 0; i < most; ++i) {
    Chain& chain = made_chains->emplace_back(Chain{chosen->chains[i]});
    begun += begin_chain(*measuring.procedures, chain) ? 1 : 0;
  }
  chains = made_chains;
  return begun;
}

// In the place of each procedure of "auto" that is switched off its caller, from now on. How many.
std::uint32_t measure_callers() {
  const NotMeasured no_times;
  if (chains == nullptr) {  // what is measured came from a list
    if (chosen == nullptr || open_list(chosen->list(), [](const RefusedProcedure&) { return false; }) == 0) return 0;
    chains = new std::vector<Chain>;
    for (const std::vector<std::string>& names : chosen->chains) chains->push_back(Chain{names});
  }
  std::uint32_t begun = 0;
  for (Chain& chain : *chains) {
    if (chain.at >= chain.names.size()) continue;
    const std::string off = chain.names[chain.at];
    const auto& selected = measuring.procedures->selection().selected;
    if (std::none_of(selected.begin(), selected.end(),
                     [&](const SelectedProcedure& one) { return one.name == off && is_off(one); }))
      continue;
    ++chain.at;
    const bool instead = begin_chain(*measuring.procedures, chain);
    begun += instead ? 1 : 0;
    remark(LBF_PROCEDURE_NOTE, "auto",
           "auto: " + off + " is called too often: " +
               (instead ? chain.names[chain.at] + ", which calls it, is measured in its place from now on"
                        : "nothing that calls it can be measured in its place"));
  }
  return begun;
}

}  // namespace

std::uint32_t begin_auto() {
  patience_ns = patience_of_environment();
  calibrate();
  Result<std::unique_ptr<AutoSelection>> begun = AutoSelection::begin();
  if (!begun) return remark(LBF_PROCEDURE_REFUSED, "auto", begun.error().message), 0;
  choosing.store(begun->release(), std::memory_order_release);
  return 0;
}

int wants() noexcept {
  if (AutoSelection* const sampling = choosing.load(std::memory_order_acquire))
    return sampling->is_due() ? LBF_PROCEDURES_WANT_CANDIDATES : LBF_PROCEDURES_WANT_NOTHING;
  const std::int64_t since_ns = waits_since_ns.load(std::memory_order_relaxed);
  if (since_ns == 0) return LBF_PROCEDURES_WANT_NOTHING;
  return now_ns() - since_ns >= patience_ns ? LBF_PROCEDURES_WANT_CHOICE : LBF_PROCEDURES_WANT_NOTHING;
}

std::uint32_t candidates() noexcept {
  return chosen == nullptr ? 0 : static_cast<std::uint32_t>(chosen->chains.size());
}

std::uint32_t end_sampling() noexcept {
  AutoSelection* const over = choosing.exchange(nullptr);
  if (over == nullptr) return candidates();
  return guarded(
      [&]() -> std::uint32_t {
        const NotMeasured no_times;
        if (measuring.opened == nullptr) measuring.opened = new Procedures;
        chosen = new Chosen(over->choose(*measuring.opened));
        if (!has_followed && !chosen->chains.empty()) {
          waits_since_ns = now_ns();
        } else if (!has_followed) {
          for (const std::string& note : chosen->notes) remark(LBF_PROCEDURE_NOTE, "auto", note);
        }
        return candidates();
      },
      0);
}

lbf_procedure_candidate candidate(std::uint32_t number) noexcept {
  static std::string callers;
  if (number >= candidates()) return {"", "", 0, 0};
  return guarded(
      [&]() -> lbf_procedure_candidate {
        const std::vector<std::string>& chain = chosen->chains[number];
        callers.clear();
        for (std::size_t i = 1; i < chain.size(); ++i) callers += chain[i] + '\n';
        return {chain.front().c_str(), callers.c_str(), chosen->samples[number], chosen->own_samples};
      },
      {"", "", 0, 0});
}

std::uint32_t choose() noexcept {
  waits_since_ns = 0;
  if (chosen == nullptr) return 0;
  return guarded(
      []() -> std::uint32_t { return measuring.procedures == nullptr ? measure_chosen() : measure_callers(); }, 0);
}

std::uint32_t follow(const char* names) noexcept {
  end_sampling();
  waits_since_ns = 0;
  has_followed = true;
  return guarded(
      [&]() -> std::uint32_t {
        std::vector<std::string> wanted;
        std::string unknown;
        for (std::string_view rest = names; !rest.empty();) {
          const std::size_t end = std::min(rest.find('\n'), rest.size());
          const std::string name(rest.substr(0, end));
          rest.remove_prefix(std::min(end + 1, rest.size()));
          if (name.empty()) continue;
          wanted.push_back(name);
          if (!is_known(name)) unknown += (unknown.empty() ? "" : ",") + name;
        }
        // Another program's procedures (MPMD) are not here, and nobody need be told.
        if (!unknown.empty()) open_list(unknown, [](const RefusedProcedure& refused) { return refused.is_here; });
        if (measuring.procedures == nullptr) return 0;
        std::uint32_t measured = 0;
        for (const SelectedProcedure& one : measuring.procedures->selection().selected) {
          if (one.entries == 0) continue;
          const bool is_wanted = std::find(wanted.begin(), wanted.end(), one.name) != wanted.end();
          const ProcedureState state = measuring.procedures->state(one.id);
          if (is_wanted && state != ProcedureState::kSwitchedOffByCost) {
            measured += measuring.procedures->patch(one.id) ? 1 : 0;
          } else if (state == ProcedureState::kMeasured) {
            (void)measuring.procedures->unpatch(one.id);
          }
        }
        return measured;
      },
      0);
}

bool is_auto() noexcept {
  return chosen != nullptr || has_followed || choosing.load(std::memory_order_relaxed) != nullptr;
}

void want_another() noexcept {
  // Where no list ever came, none will.
  waits_since_ns.store(has_followed ? now_ns() : now_ns() - patience_ns, std::memory_order_relaxed);
}

void stop_auto() noexcept {
  choosing.store(nullptr);
  waits_since_ns.store(0);
}

}  // namespace lbf::procedures
