#include "pattern/merge.h"

#include <algorithm>
#include <map>
#include <optional>

namespace lbf::pattern {
namespace {

// A statement that may be the same counts so much, one of the same size one more; less if its message then goes around
// the ends of a grid.
constexpr int kAlike = 4;
constexpr int kAlikeAround = 2;
constexpr int kSameSize = 1;
constexpr int kSameCount = 2;

}  // namespace

bool Merger::has_relation(const Relation& relation, PlaceId place, Rank peer) const {
  const auto [ranks, me] = places_[place];
  return peer_of(relation, grids_, ranks, me) == peer;
}

// 0: they cannot be the same.
int Merger::likeness(const Node& node, const Step& step, PlaceId place) const {
  if ((node.kind == Node::Kind::kLoop) != step.is_loop) return 0;
  if (step.is_loop) {
    const int inner = scores(node.body, step.body, place).front();
    const bool same = !node.counts.empty() && node.counts.back().second == step.count;
    return inner == 0 ? 0 : inner + (same ? kSameCount : 0);
  }
  if (node.key != step.key) return 0;
  if (step.key.kind == skeleton::OperationKind::kWait) {
    const std::uint8_t forms = node.wait_forms & step.wait_forms;
    const bool alike = (forms & ~kWaitsForPositions) != 0 || node.positions == step.positions;
    return alike ? kAlike : 0;
  }
  int alike = skeleton::has_peer(step.key.kind) ? 0 : kAlike;
  for (const Relation& relation : node.relations) {
    if (!has_relation(relation, place, step.peer)) continue;
    const auto [ranks, me] = places_[place];
    const bool inside = relation.kind != Relation::Kind::kShift || stays_inside(relation, grids_, ranks, me);
    alike = std::max(alike, inside ? kAlike : kAlikeAround);
  }
  return alike == 0 ? 0 : alike + (node.samples.back().bytes == step.bytes ? kSameSize : 0);
}

bool Merger::fits(const std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place) const {
  if (nodes.size() != steps.size()) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((nodes[i].kind == Node::Kind::kLoop) != steps[i].is_loop) return false;
    if (steps[i].is_loop ? !fits(nodes[i].body, steps[i].body, place) : likeness(nodes[i], steps[i], place) == 0)
      return false;
  }
  return true;
}

std::vector<int> Merger::scores(const std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place) const {
  const std::size_t width = steps.size() + 1;
  std::vector<int> best((nodes.size() + 1) * width, 0);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    for (std::size_t j = steps.size(); j-- > 0;) {
      const int alike = likeness(nodes[i], steps[j], place);
      best[i * width + j] = std::max(
          {best[(i + 1) * width + j], best[i * width + j + 1], alike > 0 ? alike + best[(i + 1) * width + j + 1] : 0});
    }
  }
  return best;
}

void Merger::take(Node& node, const Step& step, PlaceId place) {
  if (step.is_loop) {
    node.counts.emplace_back(place, step.count);
    merge(node.body, step.body, place);
    return;
  }
  node.samples.push_back({place, 0, step.peer, step.root, step.bytes, step.idle_s, step.times_s, step.values});
  node.wait_forms &= step.wait_forms;
  if (node.positions != step.positions) node.wait_forms &= static_cast<std::uint8_t>(~kWaitsForPositions);
  std::erase_if(node.relations, [&](const Relation& relation) { return !has_relation(relation, place, step.peer); });
}

Node Merger::made(const Step& step, PlaceId place) const {
  Node node;
  if (step.is_loop) {
    node.kind = Node::Kind::kLoop;
    node.counts.emplace_back(place, step.count);
    for (const Step& inner : step.body) node.body.push_back(made(inner, place));
    return node;
  }
  node.key = step.key;
  node.samples.push_back({place, 0, step.peer, step.root, step.bytes, step.idle_s, step.times_s, step.values});
  node.wait_forms = step.wait_forms;
  node.positions = step.positions;
  if (skeleton::has_peer(step.key.kind)) {
    const auto [ranks, me] = places_[place];
    node.relations = relations_between(grids_, ranks, me, step.peer);
  }
  return node;
}

void Merger::merge(std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place) {
  if (fits(nodes, steps, place)) {
    for (std::size_t i = 0; i < nodes.size(); ++i) take(nodes[i], steps[i], place);
    return;
  }
  const std::vector<int> best = scores(nodes, steps, place);
  const std::size_t width = steps.size() + 1;
  std::vector<Node> merged;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < nodes.size() && j < steps.size()) {
    const int here = best[i * width + j];
    const int alike = likeness(nodes[i], steps[j], place);
    if (alike > 0 && here == alike + best[(i + 1) * width + j + 1]) {
      take(nodes[i], steps[j++], place);
      merged.push_back(std::move(nodes[i++]));
    } else if (here == best[(i + 1) * width + j]) {
      merged.push_back(std::move(nodes[i++]));
    } else {
      merged.push_back(made(steps[j++], place));
    }
  }
  for (; i < nodes.size(); ++i) merged.push_back(std::move(nodes[i]));
  for (; j < steps.size(); ++j) merged.push_back(made(steps[j], place));
  nodes = std::move(merged);
}

void Merger::add(PlaceId place, const std::vector<Step>& tree) {
  merge(program_, tree, place);
}

namespace {

constexpr std::size_t kLongestStep = 8;  // statements

class StepFinder {
 public:
  StepFinder(const Grids& grids, std::span<const Place> places) : grids_(grids), places_(places) {}

  void run(std::vector<Node>& nodes) {
    for (Node& node : nodes) run(node.body);
    for (std::size_t begin = 0; begin < nodes.size(); ++begin) {
      for (std::size_t length = 1; length <= kLongestStep && begin + length <= nodes.size(); ++length) {
        if (find(nodes, begin, length)) break;
      }
    }
  }

 private:
  static bool same_statement(const Node& a, const Node& b) {
    if (a.kind != Node::Kind::kStatement || b.kind != Node::Kind::kStatement) return false;
    Key key = a.key;
    key.tag = b.key.tag;
    return key == b.key && (a.key.kind != skeleton::OperationKind::kWait || (a.wait_forms & b.wait_forms) != 0);
  }

  bool find(std::vector<Node>& nodes, std::size_t begin, std::size_t length) const {
    bool has_peer = false;
    for (std::size_t offset = 0; offset < length; ++offset) {
      if (nodes[begin + offset].kind != Node::Kind::kStatement) return false;
      has_peer = has_peer || skeleton::has_peer(nodes[begin + offset].key.kind);
    }
    std::size_t groups = 1;
    const auto goes_on = [&] {
      if (begin + (groups + 1) * length > nodes.size()) return false;
      for (std::size_t offset = 0; offset < length; ++offset) {
        if (!same_statement(nodes[begin + offset], nodes[begin + groups * length + offset])) return false;
      }
      return true;
    };
    while (has_peer && goes_on()) ++groups;
    for (; groups >= 2; --groups) {
      for (const Node::Kind kind : {Node::Kind::kSteps, Node::Kind::kStepsBack}) {
        std::optional<Node> steps = made({&nodes[begin], groups * length}, length, kind);
        if (!steps) continue;
        nodes[begin] = std::move(*steps);
        const auto from = nodes.begin() + static_cast<std::ptrdiff_t>(begin);
        nodes.erase(from + 1, from + static_cast<std::ptrdiff_t>(groups * length));
        return true;
      }
    }
    return false;
  }

  // Of groups of LENGTH nodes. Nothing: they do not go on from each other.
  std::optional<Node> made(std::span<const Node> nodes, std::size_t length, Node::Kind kind) const {
    const std::size_t groups = nodes.size() / length;
    Node steps;
    steps.kind = kind;
    for (std::size_t offset = 0; offset < length; ++offset) {
      const auto at_step = [&](std::size_t step) -> const Node& {
        return nodes[(kind == Node::Kind::kSteps ? step : groups - 1 - step) * length + offset];
      };
      Node node = at_step(0);
      node.alone = node.relations;
      const bool has_peer = skeleton::has_peer(node.key.kind);
      node.tag_per_step = at_step(1).key.tag - node.key.tag;
      for (std::size_t step = 1; step < groups; ++step) {
        const Node& later = at_step(step);
        if (later.key.tag != node.key.tag + node.tag_per_step * static_cast<std::int32_t>(step)) return std::nullopt;
        node.wait_forms &= later.wait_forms;
        for (Sample sample : later.samples) {
          sample.step = static_cast<std::uint32_t>(step);
          node.samples.push_back(std::move(sample));
        }
      }
      if (has_peer) {
        std::erase_if(node.relations, [&](const Relation& relation) { return !goes_on(relation, node); });
        if (node.relations.empty()) return std::nullopt;
      }
      steps.body.push_back(std::move(node));
    }
    return steps;
  }

  // Each place has the peers that the relation has at its steps, and as many of them.
  bool goes_on(const Relation& relation, const Node& node) const {
    if (!relation.has_steps()) return false;
    std::map<PlaceId, std::uint32_t> counts;
    for (const Sample& sample : node.samples) {
      const auto [ranks, me] = places_[sample.place];
      if (peer_of(relation, grids_, ranks, me, sample.step) != sample.peer) return false;
      ++counts[sample.place];
    }
    return std::all_of(counts.begin(), counts.end(), [&](const auto& count) {
      return steps_of(relation, grids_, places_[count.first].ranks) == count.second;
    });
  }

  const Grids& grids_;
  std::span<const Place> places_;
};

}  // namespace

void find_steps(std::vector<Node>& nodes, const Grids& grids, std::span<const Place> places) {
  StepFinder(grids, places).run(nodes);
}

}  // namespace lbf::pattern
