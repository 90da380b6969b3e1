// Samples in the place of procedures that are not measured, or no more (docs/procedures.md, "Sampled instead").
#include <algorithm>
#include <utility>
#include <vector>

#include "spank_plugin/procedures/measuring.h"
#include "spank_plugin/procedures/memory_map.h"
#include "spank_plugin/procedures/sampler.h"

namespace lbf::procedures {
namespace {

constinit std::atomic<bool> sampling{false};
// Procedures that samples stand in for, by their number in the sampler; as `procedures`: never freed.
std::vector<std::string>* watched_names = nullptr;

std::uint32_t watched_number(const std::string& name) {
  const auto number = static_cast<std::uint32_t>(std::find(watched_names->begin(), watched_names->end(), name) -
                                                 watched_names->begin());
  if (number == watched_names->size()) watched_names->push_back(name);
  return number;
}

std::vector<lbf_procedure_samples>* sampled_now = nullptr;  // as the last sampled() found them

}  // namespace

void sample_what_is_not_measured() {
  if (measuring.opened == nullptr || measuring.alone) return;
  const Selection& selection = measuring.opened->selection();
  const auto is_missing = [](const RefusedProcedure& one) { return one.is_here; };
  if (std::none_of(selection.refused.begin(), selection.refused.end(), is_missing) &&
      std::none_of(selection.selected.begin(), selection.selected.end(), is_off))
    return;
  if (watched_names == nullptr) watched_names = new std::vector<std::string>;
  std::vector<WatchedCode> code;
  std::vector<ProcedurePiece> pieces = selection.code;
  std::sort(pieces.begin(), pieces.end(),
            [](const ProcedurePiece& a, const ProcedurePiece& b) { return a.begin < b.begin; });
  std::uintptr_t end = 0;
  for (const ProcedurePiece& piece : pieces) {
    if (piece.begin < end) continue;  // another name of the same code
    end = piece.end;
    if (const std::uint32_t number = watched_number(piece.name); number < kMostWatched)
      code.push_back({piece.begin, piece.end, number});
  }
  // Inside MPI calls, and in hooks: nobody's time.
  for (const Mapping& mapping : read_memory_map()) {
    if (mapping.executable && mapping.file.find("/liblbf_") != std::string::npos)
      code.push_back({mapping.begin, mapping.end, kNotCounted});
  }
  const Result<std::size_t> watched = Sampler::watch(std::move(code));
  if (!watched) remark(LBF_PROCEDURE_NOTE, "", watched.error().message);
  sampling.store(watched.ok(), std::memory_order_relaxed);
}

bool is_sampling() noexcept {
  return sampling.load(std::memory_order_relaxed);
}

std::uint32_t sampled() noexcept {
  return guarded(
      []() -> std::uint32_t {
        if (watched_names == nullptr || measuring.opened == nullptr) return 0;
        if (sampled_now == nullptr) sampled_now = new std::vector<lbf_procedure_samples>;
        sampled_now->clear();
        const Selection& selection = measuring.opened->selection();
        for (std::uint32_t number = 0; number < watched_names->size(); ++number) {
          const std::string& name = (*watched_names)[number];
          const auto named = [&](const auto& one) { return one.name == name; };
          const bool missing = std::any_of(selection.refused.begin(), selection.refused.end(),
                                           [&](const RefusedProcedure& one) { return one.is_here && named(one); }) ||
                               std::any_of(selection.selected.begin(), selection.selected.end(),
                                           [&](const SelectedProcedure& one) { return named(one) && is_off(one); });
          if (!missing) continue;
          const WatchedSamples samples = Sampler::watched(number);
          if (samples.of > 0) sampled_now->push_back({name.c_str(), samples.inclusive, samples.exclusive, samples.of});
        }
        return static_cast<std::uint32_t>(sampled_now->size());
      },
      0);
}

lbf_procedure_samples samples_of(std::uint32_t number) noexcept {
  return sampled_now != nullptr && number < sampled_now->size() ? (*sampled_now)[number]
                                                                : lbf_procedure_samples{"", 0, 0, 0};
}

}  // namespace lbf::procedures
