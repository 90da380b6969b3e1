#include "spank_plugin/procedures/auto_selection.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "spank_plugin/procedures/loaded_symbols.h"

namespace lbf::procedures {
namespace {

// The kernel's tick is 4 ms as a rule: about a second of the thread's processor time.
constexpr std::uint64_t kEnoughSamples = 250;
constexpr std::uint64_t kLeastSamples = 50;
constexpr std::int64_t kPatience_ns = 3'000'000'000;
constexpr std::int64_t kEnd_ns = 20'000'000'000;

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// MPI libraries poll while they wait, and what they are made of is nobody's to move.
bool is_mpi(const std::string& file) {
  const std::string_view base = std::string_view(file).substr(file.rfind('/') + 1);
  constexpr std::array<std::string_view, 12> kBeginnings{"libmpi",  "libmpich", "libopen-", "libmca_", "mca_",  "libpmi",
                                                         "libucp", "libucs",   "libuct",   "libfabric", "libevent", "liblbf_"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return base.starts_with(beginning); });
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

}  // namespace

Chosen choose_candidates(const SampleProfile& profile, const LoadedSymbols& symbols) {
  const auto is_users = [&](const SampledProcedure& procedure) {
    if (procedure.module.empty() || is_mpi(procedure.module)) return false;
    return std::none_of(symbols.modules().begin(), symbols.modules().end(), [&](const LoadedModule& module) {
      return module.system && module.file == procedure.module;
    });
  };
  std::vector<const SampledProcedure*> candidates;
  std::uint64_t samples = 0;
  for (const SampledProcedure& procedure : profile.procedures) {
    if (!is_users(procedure)) continue;
    samples += procedure.exclusive;
    // What spans the whole run cannot run in another process.
    if (procedure.name != "main" && procedure.name != "_start" && procedure.name != "MAIN__")
      candidates.push_back(&procedure);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const SampledProcedure* a, const SampledProcedure* b) {
    return a->exclusive > b->exclusive;
  });
  Chosen out;
  std::string shares;
  std::size_t chosen = 0;
  for (const SampledProcedure* candidate : candidates) {
    const double share =
        samples == 0 ? 0 : static_cast<double>(candidate->exclusive) / static_cast<double>(samples);
    if (chosen == kMostChosen || share < kLeastShare) break;
    out.list += (chosen == 0 ? "" : ",") + candidate->name;
    shares += (chosen == 0 ? "" : ", ") + candidate->name + " " + percent(share);
    ++chosen;
  }
  const std::string of = "of " + std::to_string(profile.samples) + " samples, " + std::to_string(samples) +
                         " in the program's own procedures";
  out.notes.push_back(chosen == 0 ? "auto: no procedure of the program is worth measuring (" + of + ")"
                                  : "auto: measured from now on, by their share " + of + ": " + shares);
  return out;
}

Result<std::unique_ptr<AutoSelection>> AutoSelection::begin() {
  if (const Result<std::size_t> started = Sampler::start(); !started) return started.error();
  std::unique_ptr<AutoSelection> begun(new AutoSelection);
  begun->began_ns_ = now_ns();
  return begun;
}

AutoSelection::~AutoSelection() {
  Sampler::stop();
}

bool AutoSelection::is_due() const noexcept {
  const std::uint64_t samples = Sampler::taken();
  if (samples >= kEnoughSamples) return true;
  const std::int64_t passed_ns = now_ns() - began_ns_;
  return (samples >= kLeastSamples && passed_ns > kPatience_ns) || passed_ns > kEnd_ns;
}

Chosen AutoSelection::choose() {
  Sampler::stop();
  LoadedSymbols symbols;
  const Result<std::size_t> read = symbols.read("liblbf_procedures");
  if (!read) return {"", {"auto: " + read.error().message}};
  return choose_candidates(Sampler::profile(symbols), symbols);
}

}  // namespace lbf::procedures
