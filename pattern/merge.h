// Trees of all ranks of all runs -> one tree: the program, of whose statements each rank executes some.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pattern/grid.h"
#include "pattern/rank_tree.h"
#include "pattern/relation.h"

namespace lbf::pattern {

// A rank of a run.
struct Place {
  Rank ranks = 1;
  Rank me = 0;
};
using PlaceId = std::uint32_t;

struct Sample {
  PlaceId place = 0;
  std::uint32_t step = 0;  // kSteps
  Rank peer = kAnyRank;
  Rank root = 0;
  Bytes bytes = 0;
  double idle_s = 0;
  std::vector<float> times_s;  // Step::times_s
  std::vector<std::uint64_t> values;
};

struct Node {
  enum class Kind : std::uint8_t {
    kStatement,
    kLoop,       // the same again
    kSteps,      // the same with other peers: relations go on from step to step
    kStepsBack,  // ... the last step first
  };
  Kind kind = Kind::kStatement;
  std::vector<Node> body;
  std::int32_t tag_per_step = 0;                          // of a statement in steps
  std::vector<std::pair<PlaceId, std::uint64_t>> counts;  // iterations of a loop
  Key key;
  std::vector<Sample> samples;      // of a statement, in the order in which trees were added
  std::vector<Relation> relations;  // that all samples have
  std::vector<Relation> alone;      // of a statement in steps: that it has at its first step
  std::uint8_t wait_forms = 0;      // likewise
  std::vector<std::uint32_t> positions;
};

class Merger {
 public:
  // REQUIRES: the arguments outlive this.
  Merger(const Grids& grids, std::span<const Place> places) : grids_(grids), places_(places) {}

  // Best the ranks of most statements first: what others execute is a part of it.
  void add(PlaceId place, const std::vector<Step>& tree);
  std::vector<Node> finish() { return std::move(program_); }

 private:
  int likeness(const Node& node, const Step& step, PlaceId place) const;
  bool fits(const std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place) const;
  // Scores of aligning the nodes from i on with the steps from j on, [i][j].
  std::vector<int> scores(const std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place) const;
  void merge(std::vector<Node>& nodes, const std::vector<Step>& steps, PlaceId place);
  void take(Node& node, const Step& step, PlaceId place);
  Node made(const Step& step, PlaceId place) const;
  bool has_relation(const Relation& relation, PlaceId place, Rank peer) const;

  const Grids& grids_;
  std::span<const Place> places_;
  std::vector<Node> program_;
};

// Makes kSteps of what is repeated with other peers: a butterfly's stages, a message to each other rank.
void find_steps(std::vector<Node>& nodes, const Grids& grids, std::span<const Place> places);

}  // namespace lbf::pattern
