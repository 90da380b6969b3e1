#include "skeleton/exchanges.h"

#include <algorithm>
#include <array>

namespace lbf::skeleton {
namespace {

// Where an operation that concerns nobody else belongs: the start of a receive to what follows, the end of
// sends to what went before. Both leave the order of exchanges as it is.
enum Glue : std::uint8_t { kFree = 0, kToNext = 1, kToPrevious = 2, kFirstOfRank = 4 };

std::vector<std::uint8_t> glue_of(const ProgramTrace& trace, const OperationLinks& links) {
  std::vector<std::uint8_t> glue(links.begin.size() - 1, kFree);
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    const OperationId first = links.first_of_rank[rank];
    for (OperationId i = 0; i < trace.ranks[rank].size(); ++i) {
      const OperationId id = first + i;
      if (i == 0) glue[id] |= kFirstOfRank;
      const OperationKind kind = trace.ranks[rank][i].kind;
      const bool ends_or_starts = kind == OperationKind::kIrecv || kind == OperationKind::kProbe ||
                                  kind == OperationKind::kCancel || kind == OperationKind::kWait ||
                                  kind == OperationKind::kRequestFree;
      if (!links.of(id).empty() || !ends_or_starts) continue;
      const bool ends = kind == OperationKind::kWait || kind == OperationKind::kRequestFree;
      glue[id] |= ends && i > 0 && (glue[id - 1] & kToNext) == 0 ? kToPrevious : kToNext;
    }
  }
  return glue;
}

// Operations as roots of the search: the ranks side by side, each by its share of the way to its end, so that
// the iterations of a loop come out one after the other.
std::vector<OperationId> roots_of(const ProgramTrace& trace, const OperationLinks& links) {
  std::uint64_t longest = 1;
  for (const auto& operations : trace.ranks) longest = std::max<std::uint64_t>(longest, operations.size());
  std::vector<std::uint32_t> next(longest + 1, 0);
  const auto each = [&](const auto& visit) {
    for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
      const std::uint64_t operations = trace.ranks[rank].size();
      for (std::uint64_t i = 0; i < operations; ++i) {
        visit(i * longest / operations, links.first_of_rank[rank] + static_cast<OperationId>(i));
      }
    }
  };
  each([&](std::uint64_t when, OperationId) { ++next[when + 1]; });
  for (std::uint64_t i = 0; i < longest; ++i) next[i + 1] += next[i];
  std::vector<OperationId> roots(links.begin.size() - 1);
  each([&](std::uint64_t when, OperationId id) { roots[next[when]++] = id; });
  return roots;
}

class Search {
 public:
  Search(const ProgramTrace& trace, const OperationLinks& links)
      : links_(links), glue_(glue_of(trace, links)), low_(glue_.size(), 0) {}

  Exchanges run(const std::vector<OperationId>& roots) {
    found_.begin.push_back(0);
    found_.operations.reserve(low_.size());
    for (const OperationId root : roots) {
      if (low_[root] == 0) visit(root);
    }
    return std::move(found_);
  }

 private:
  struct Frame {
    OperationId id;
    std::uint32_t edge;   // the next one to follow
    std::uint32_t index;  // of id
  };
  static constexpr std::uint32_t kDone = ~0u;

  // The edges of an operation: its predecessor, what it is glued to, its links. kDone: there are no more.
  OperationId target(OperationId id, std::uint32_t edge) const {
    const std::uint32_t links = links_.begin[id + 1] - links_.begin[id];
    if (edge < links) return links_.other[links_.begin[id] + edge];
    const bool previous = (glue_[id] & kFirstOfRank) == 0;
    // What follows is glued to this one, or this one to what follows.
    const bool next = (glue_[id] & kToNext) != 0 || (id + 1 < glue_.size() && (glue_[id + 1] & kToPrevious) != 0);
    edge -= links;
    if (previous && edge == 0) return id - 1;
    if (next && edge == (previous ? 1u : 0u)) return id + 1;
    return kDone;
  }

  void enter(OperationId id) {
    low_[id] = ++indices_;
    open_.push_back(id);
    frames_.push_back({id, 0, indices_});
  }

  void visit(OperationId root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const OperationId to = target(frame.id, frame.edge);
      if (to != kDone) {
        ++frame.edge;
        if (low_[to] == 0) {
          enter(to);
        } else if (low_[to] != kDone) {
          low_[frame.id] = std::min(low_[frame.id], low_[to]);
        }
        continue;
      }
      const Frame done = frame;
      frames_.pop_back();
      if (low_[done.id] == done.index) close(done.id);
      if (!frames_.empty() && low_[done.id] != kDone) {
        low_[frames_.back().id] = std::min(low_[frames_.back().id], low_[done.id]);
      }
    }
  }

  void close(OperationId id) {
    const std::size_t begin = found_.operations.size();
    OperationId popped = kDone;
    do {
      popped = open_.back();
      open_.pop_back();
      low_[popped] = kDone;
      found_.operations.push_back(popped);
    } while (popped != id);
    std::sort(found_.operations.begin() + static_cast<std::ptrdiff_t>(begin), found_.operations.end());
    found_.begin.push_back(static_cast<std::uint32_t>(found_.operations.size()));
  }

  const OperationLinks& links_;
  std::vector<std::uint8_t> glue_;
  std::vector<std::uint32_t> low_;  // 0: not seen; kDone: in an exchange
  std::vector<OperationId> open_;
  std::vector<Frame> frames_;
  Exchanges found_;
  std::uint32_t indices_ = 0;
};

}  // namespace

Exchanges find_exchanges(const ProgramTrace& trace, const OperationLinks& links) {
  return Search(trace, links).run(roots_of(trace, links));
}

}  // namespace lbf::skeleton
