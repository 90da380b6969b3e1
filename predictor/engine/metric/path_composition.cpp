#include "predictor/engine/metric/path_composition.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lbf::engine {
namespace {

std::int64_t id_of(std::uint32_t number) {
  if (number == PathPlace::kNone) return PathShare::kNone;
  return number == PathPlace::kOthers ? PathShare::kOthers : std::int64_t{number};
}

std::int64_t id_of(const PathPlace& place, PathBy by) {
  switch (by) {
    case PathBy::kCall:
      return place.function == PathPlace::kOtherFunctions ? PathShare::kOthers : std::int64_t{place.function};
    case PathBy::kRank:
      return place.rank == PathPlace::kOtherRanks ? PathShare::kOthers : std::int64_t{place.rank};
    case PathBy::kCommunicator:
      return id_of(place.comm);
    case PathBy::kProcedure:
      return id_of(place.procedure);
  }
  return PathShare::kNone;
}

}  // namespace

std::vector<PathShare> path_shares(const PathComposition& composition, PathBy by) {
  const bool of_calls = by == PathBy::kCall || by == PathBy::kCommunicator;
  std::map<std::int64_t, PathShare> shares;
  for (const PathPart& part : composition.parts) {
    for (std::size_t term = 0; term < kTerms; ++term) {
      if (part.terms[term] == 0) continue;
      const bool is_between_calls = of_calls && term == static_cast<std::size_t>(Term::kWork);
      shares[is_between_calls ? PathShare::kNone : id_of(part.place, by)].terms[term] += part.terms[term];
    }
  }
  std::vector<PathShare> sorted;
  for (auto& [id, share] : shares) {
    share.id = id;
    share.seconds = std::accumulate(share.terms.begin(), share.terms.end(), 0.0);
    sorted.push_back(share);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PathShare& a, const PathShare& b) { return a.seconds > b.seconds; });
  return sorted;
}

}  // namespace lbf::engine
