#include "spank_plugin/procedures/auto_selection.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

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
  constexpr std::array<std::string_view, 12> kBeginnings{"libmpi", "libmpich",  "libopen-", "libmca_",
                                                         "mca_",   "libpmi",    "libucp",   "libucs",
                                                         "libuct", "libfabric", "libevent", "liblbf_"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return base.starts_with(beginning); });
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

// What spans the whole run cannot run in another process.
bool spans_the_run(const std::string& name) {
  return name == "main" || name == "_start" || name == "MAIN__";
}

// Of one profile: whose a procedure is, and who calls it.
class Callers {
 public:
  Callers(const SampleProfile& profile, const LoadedSymbols& symbols) : symbols_(symbols) {
    for (const SampledProcedure& procedure : profile.procedures) {
      by_name_.emplace(std::pair(procedure.module, procedure.name), &procedure);
    }
  }

  bool is_users(const std::string& module) const {
    if (module.empty() || is_mpi(module)) return false;
    return std::none_of(symbols_.modules().begin(), symbols_.modules().end(),
                        [&](const LoadedModule& loaded) { return loaded.system && loaded.file == module; });
  }

  // The procedure, then the user's own that were on the stack above it, each the most frequent caller of the one
  // before. A library's procedures between them (qsort) are passed over.
  std::vector<std::string> chain_of(const SampledProcedure& procedure) const {
    std::vector<std::string> chain{procedure.name};
    std::set<const SampledProcedure*> passed{&procedure};
    for (const SampledProcedure* at = &procedure; chain.size() <= kMostCallers && !at->callers.empty();) {
      const SampledCaller& caller = at->callers.front();
      const auto found = by_name_.find(std::pair(caller.module, caller.name));
      if (found == by_name_.end() || !passed.insert(found->second).second) break;
      at = found->second;
      if (spans_the_run(at->name)) break;
      if (is_users(at->module)) chain.push_back(at->name);
    }
    return chain;
  }

 private:
  const LoadedSymbols& symbols_;
  std::map<std::pair<std::string, std::string>, const SampledProcedure*> by_name_;
};

}  // namespace

std::string Chosen::list() const {
  std::set<std::string> named;
  std::string all;
  for (std::size_t i = 0; i < std::min(chains.size(), kMostChosen); ++i) {
    for (const std::string& name : chains[i]) {
      if (named.insert(name).second) all += (all.empty() ? "" : ",") + name;
    }
  }
  return all;
}

Chosen choose_candidates(const SampleProfile& profile, const LoadedSymbols& symbols) {
  const Callers callers(profile, symbols);
  std::vector<const SampledProcedure*> candidates;
  std::uint64_t samples = 0;
  for (const SampledProcedure& procedure : profile.procedures) {
    if (!callers.is_users(procedure.module)) continue;
    samples += procedure.exclusive;
    if (!spans_the_run(procedure.name)) candidates.push_back(&procedure);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const SampledProcedure* a, const SampledProcedure* b) { return a->exclusive > b->exclusive; });
  Chosen out;
  out.own_samples = samples;
  std::string shares;
  for (const SampledProcedure* candidate : candidates) {
    const double share = samples == 0 ? 0 : static_cast<double>(candidate->exclusive) / static_cast<double>(samples);
    if (out.chains.size() == kMostCandidates || share < kLeastShare) break;
    if (out.chains.size() < kMostChosen)
      shares += (out.chains.empty() ? "" : ", ") + candidate->name + " " + percent(share);
    out.chains.push_back(callers.chain_of(*candidate));
    out.samples.push_back(candidate->exclusive);
  }
  const std::string of = "of " + std::to_string(profile.samples) + " samples, " + std::to_string(samples) +
                         " in the program's own procedures";
  out.notes.push_back(out.chains.empty() ? "auto: no procedure of the program is worth measuring (" + of + ")"
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

Chosen AutoSelection::choose(Procedures& all) {
  Sampler::stop();
  const Result<void> read = all.read();
  if (!read) return {{}, {}, 0, {"auto: " + read.error().message}};
  return choose_candidates(Sampler::profile(all.symbols()), all.symbols());
}

}  // namespace lbf::procedures
