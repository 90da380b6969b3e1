#include "skeleton/rank_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace lbf::skeleton {
namespace {

bool is_collective(const Operation& o) {
  return o.kind == OperationKind::kCollective || o.kind == OperationKind::kIcollective;
}

class Items {
 public:
  Items(const ProgramTrace& trace, double threshold) : trace_(trace), threshold_(threshold) {}

  std::uint32_t add(const Operation& operation) {
    const auto values = trace_.values_of(operation);
    std::vector<std::uint64_t> slots;
    if (operation.kind == OperationKind::kWait) slots.assign(values.begin(), values.end());
    std::sort(slots.begin(), slots.end());
    std::vector<std::uint64_t> sizes;
    if (is_collective(operation)) sizes.assign(values.begin(), values.end());
    // Wildcards are kept as the match that happened.
    const auto key =
        std::tuple(operation.kind, operation.flags & (kFlagSync | kFlagBuffered), operation.op,
                   operation.peer, operation.tag, operation.comm, operation.root, operation.slot, slots);
    std::vector<std::uint32_t>& alike = known_[key];
    for (const std::uint32_t each : alike) {
      if (!is_similar(found[each], operation, sizes)) continue;
      count(found[each], operation);
      return each;
    }
    const auto index = static_cast<std::uint32_t>(found.size());
    RankItem item;
    item.operation = operation;
    item.slots.assign(slots.begin(), slots.end());
    item.sizes = std::move(sizes);
    count(item, operation);
    found.push_back(std::move(item));
    alike.push_back(index);
    return index;
  }

  std::vector<RankItem> found;

 private:
  bool near(std::uint64_t a, std::uint64_t b) const {
    if (a == b) return true;
    const auto low = static_cast<double>(std::min(a, b));
    const auto high = static_cast<double>(std::max(a, b));
    return high - low <= threshold_ * high;
  }
  bool is_similar(const RankItem& item, const Operation& operation,
                  const std::vector<std::uint64_t>& sizes) const {
    return near(item.operation.bytes, operation.bytes) &&
           std::equal(sizes.begin(), sizes.end(), item.sizes.begin(), item.sizes.end(),
                      [&](std::uint64_t a, std::uint64_t b) { return near(a, b); });
  }
  static void count(RankItem& item, const Operation& operation) {
    ++item.occurrences;
    item.bytes_sum += static_cast<double>(operation.bytes);
    item.idle_sum_s += operation.idle_s;
    item.computation.add(operation.process_s);
  }

  using Key = std::tuple<OperationKind, int, CollectiveOp, Rank, std::int32_t, std::uint32_t, Rank,
                         std::uint32_t, std::vector<std::uint64_t>>;
  const ProgramTrace& trace_;
  const double threshold_;
  std::map<Key, std::vector<std::uint32_t>> known_;
};

class Unfolder {
 public:
  Unfolder(const RankProgram& program, std::uint64_t least_count, std::size_t most)
      : program_(program), least_count_(least_count), left_(most) {}

  std::vector<RankPart> run(const Elements& elements) {
    std::vector<RankPart> parts(1);
    append(elements, parts);
    return parts;
  }
  bool is_too_long() const { return too_long_; }

 private:
  void append(const Elements& elements, std::vector<RankPart>& parts) {
    for (const Element& element : elements) {
      if (too_long_) return;
      if (!element.is_loop) {
        too_long_ = left_ == 0;
        if (!too_long_) --left_;
        parts.back().run.push_back(element.value);
      } else if (element.count < least_count_) {
        for (std::uint64_t i = 0; i < element.count; ++i) append(program_.bodies[element.value], parts);
      } else {
        RankPart loop;
        loop.is_loop = true;
        loop.count = element.count;
        loop.body = run(program_.bodies[element.value]);
        parts.push_back(std::move(loop));
        parts.emplace_back();
      }
    }
  }

  const RankProgram& program_;
  const std::uint64_t least_count_;
  std::size_t left_;
  bool too_long_ = false;
};

}  // namespace

RankProgram fold_rank(const ProgramTrace& trace, Rank rank, double threshold) {
  RankProgram program;
  Items items(trace, threshold);
  LoopFolder folder(program.bodies);
  for (const Operation& operation : trace.ranks[static_cast<std::size_t>(rank)])
    folder.push_symbol(items.add(operation));
  program.elements = folder.finish();
  program.items = std::move(items.found);
  return program;
}

std::vector<RankPart> parts_of(const RankProgram& program, std::uint64_t least_count, std::size_t most) {
  Unfolder unfolder(program, least_count, most);
  std::vector<RankPart> parts = unfolder.run(program.elements);
  if (unfolder.is_too_long()) return {};
  return parts;
}

}  // namespace lbf::skeleton
