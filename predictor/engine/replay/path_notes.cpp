#include "predictor/engine/replay/path_notes.h"

#include <numeric>

namespace lbf::engine {
namespace {

// What passed from `before` to `at`.
PathPart passed(const Composed& before, const Composed& at, const PathPlace& place) {
  PathPart part{place, at.terms};
  for (std::size_t i = 0; i < kTerms; ++i) part.terms[i] -= before.terms[i];
  return part;
}

// One part for each place, in order.
void sum_up(std::vector<PathPart>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const PathPart& a, const PathPart& b) { return a.place < b.place; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].place != parts[last].place) {
      parts[++last] = parts[i];
      continue;
    }
    for (std::size_t term = 0; term < kTerms; ++term) parts[last].terms[term] += parts[i].terms[term];
  }
  parts.resize(std::min(parts.size(), last + 1));
}

// The places with least time become what CHANGE makes of them, half of MOST stay. REQUIRES: more than MOST.
template <typename Change>
void fold(std::vector<PathPart>& parts, std::size_t most, Change change) {
  const auto kept = parts.begin() + static_cast<std::ptrdiff_t>(most / 2);
  std::nth_element(parts.begin(), kept, parts.end(), [](const PathPart& a, const PathPart& b) {
    return a.sum_s() != b.sum_s() ? a.sum_s() > b.sum_s() : a.place < b.place;
  });
  std::for_each(kept, parts.end(), [&](PathPart& part) { change(part.place); });
  sum_up(parts);
}

}  // namespace

Seconds PathPart::sum_s() const {
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

PathPart PathNotes::part_of(const Note& note) const {
  return passed(notes_[note.at.note].at, note.at, note.place);
}

std::vector<std::uint32_t> PathNotes::keep(std::vector<std::uint32_t> followers, std::size_t clocks) {
  followers[0] = kMany;
  for (std::size_t i = notes_.size() - 1; i > 0; --i) {
    std::uint32_t& before = followers[notes_[i].at.note];
    if (followers[i] != 0) before = before == 0 ? 1 : kMany;
  }
  const auto goes = [&](std::size_t i) { return followers[i] == 1; };  // into its only follower
  std::vector<std::uint32_t> moved_to(notes_.size(), 0);
  std::vector<Note> kept;
  kept.push_back(std::move(notes_[0]));
  for (std::size_t i = 1; i < notes_.size(); ++i) {
    if (followers[i] == 0) continue;
    Note& note = notes_[i];
    const std::uint32_t at_before = note.at.note;
    if (note.parts.empty() && (goes(i) || goes(at_before))) note.parts.push_back(part_of(note));
    if (goes(at_before)) {
      Note& before = notes_[at_before];
      before.parts.insert(before.parts.end(), note.parts.begin(), note.parts.end());
      note.parts = std::move(before.parts);
      note.at.note = before.at.note;
    } else {
      note.at.note = moved_to[at_before];
    }
    if (goes(i)) continue;
    sum_up(note.parts);
    moved_to[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(note));
  }
  notes_ = std::move(kept);
  bound_parts();
  full_at_ = notes_.size() + std::max({limits_.notes_between, notes_.size(), clocks});
  notes_.reserve(full_at_);
  return moved_to;
}

void PathNotes::bound_parts() {
  const auto count = [this] {
    parts_ = 0;
    for (const Note& note : notes_) parts_ += note.parts.size();
  };
  count();
  if (parts_ <= limits_.most_parts) return;
  const std::size_t most = std::max(limits_.least_parts, limits_.most_parts / notes_.size());
  for (Note& note : notes_) {
    if (note.parts.size() > most) fold(note.parts, most, [](PathPlace& place) { place.rank = PathPlace::kOtherRanks; });
    if (note.parts.size() > most) {
      fold(note.parts, most, [](PathPlace& place) {
        place = {PathPlace::kOtherRanks, PathPlace::kOtherFunctions, PathPlace::kOthers, PathPlace::kOthers};
      });
    }
    note.parts.shrink_to_fit();
  }
  count();
}

std::vector<PathPart> PathNotes::parts(const Composed& clock, const PathPlace& place) const {
  std::vector<PathPart> parts{passed(notes_[clock.note].at, clock, place)};
  for (std::uint32_t i = clock.note; i != 0; i = notes_[i].at.note) {
    const Note& note = notes_[i];
    if (note.parts.empty()) {
      parts.push_back(part_of(note));
    } else {
      parts.insert(parts.end(), note.parts.begin(), note.parts.end());
    }
  }
  sum_up(parts);
  return parts;
}

}  // namespace lbf::engine
