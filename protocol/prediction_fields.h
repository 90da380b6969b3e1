// One target's prediction: PREDICTION of docs/formats/http-v1.md. A new field is a member, its line in the table, and,
// if it is stored, a migration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "protocol/field.h"
#include "protocol/seen_run.h"

namespace lbf::protocol {

// Where a target's nodes are in Slurm's topology.
struct Topology {
  std::string file;                // empty: no topology; all nodes are equally far apart
  std::vector<std::string> nodes;  // names, in the order of the target's nodes
  bool operator==(const Topology&) const = default;
};

inline constexpr auto kTopologyTable = std::tuple{
    Field{&Topology::file, "file", kNotStored, Unit::kNone, kNoColumn, ""},
    Field{&Topology::nodes, "nodes", kNotStored, Unit::kNodes, {"Topology", 15, Align::kLeft}, ""},
};

template <Side kSide>
struct PredictionFields {
  std::string target;
  Known<kSide, std::uint32_t> nodes{};
  Known<kSide, std::uint32_t> cores_per_node{};
  Known<kSide, std::uint64_t> threads{};  // of each rank's parallel regions; 0: none was seen
  std::string placement;
  std::string network;
  std::string contention;
  Known<kSide, double> speed = at_first<kSide>(1.0);
  std::string kind;
  Known<kSide, Seconds> predicted_s{};  // lbfd, where it is stuck: until then
  std::string why_stuck;                // not empty: on this target the program would wait for ever; not in advice
  std::optional<double> speedup;
  std::optional<double> self_error_percent;
  bool partial = false;
  Known<kSide, Seconds> progress_s{};
  // Of the rank that came furthest, what had passed in the run at its last replayed event, by the clock. While it runs,
  // of a rank whose capture window is open: without what it was preempted and what passed in failed polls since the
  // relay told of that last (2 s at most while it records), and since its last record. Of one whose calls are only
  // counted: until its window closed.
  Known<kSide, Seconds> measured_at_progress_s{};
  Known<kSide, double> seen_share = at_first<kSide>(1.0);
  std::optional<Seconds> low_s;
  std::optional<Seconds> high_s;
  // The target's memory domains have other numbers of ranks than where it ran, and the demand is not known: by so much
  // of predicted_s the run time may differ for that.
  Known<kSide, double> memory_percent{};
  Known<kSide, double> exchange_percent{};
  Topology topology;
  std::string why_deferred;        // not empty: not all of the run was replayed for it, for want of room
  bool deferred_for_good = false;  // with why_deferred: it will not be taken up any more
  bool taken_up = false;           // it was deferred when the step ended, and replayed later
  std::vector<Seconds> rank_finish_s;

  bool seen_too_little() const {
    return SeenRun{std::optional<double>(seen_share).value_or(1), low_s && high_s, {}, {}}.is_too_little();
  }
  // There is a run time that is worth saying.
  bool is_known() const { return why_stuck.empty() && why_deferred.empty() && !seen_too_little(); }
  bool is_self() const { return kind == "self"; }
};

// In the order of the document. A key of `topology` in ROWS is `topology.KEY`.
template <Side kSide>
inline constexpr auto kPredictionTable = [] {
  using P = PredictionFields<kSide>;
  // clang-format off
  return std::tuple{
      Field{&P::target, "target", "target", Unit::kNone, {"Target", 24, Align::kLeft}, "nodes and placement in words"},
      Field{&P::nodes, "nodes", "nodes", Unit::kCount, {"Nodes", 5}, "how many"},
      Field{&P::cores_per_node, "cores", "cores_per_node", Unit::kCount, {"Cores", 5}, "processors per node"},
      Field{&P::threads, "threads", "threads", Unit::kCount, {"Threads", 7}, "only if the run had parallel regions (in ROWS always, else 0): threads of each rank's. On other node counts, and in a target of its own, as many as fill the nodes", In::kEverywhere, When::kSet},
      Field{&P::placement, "placement", "placement", Unit::kNone, {"Placement", 12, Align::kLeft}, "`block`, `cyclic`, `plane=K` or `map=N0,N1,...`"},
      Field{&P::network, "network", "network", Unit::kNone, {"Network", 14, Align::kLeft}, "name of the network file"},
      Field{&P::contention, "contention", "contention", Unit::kNone, {"Contention", 10, Align::kLeft}, "the network file's: `none`, `bus` or `nic`"},
      Field{&P::speed, "speed", "speed", Unit::kFactor, {"Speed", 5}, "of the processors, relative to those that ran"},
      Field{&P::kind, "kind", "kind", Unit::kNone, {"Kind", 6, Align::kLeft}, "*self*: the configuration that ran; *LBF*: another placement on the same network; *NF*: the same placement on another network; *LBF+NF*: both (TSE Sec. 2 and 3)"},
      Field{&P::predicted_s, "predicted_s", "predicted_s", Unit::kSeconds, kNoColumn, "predicted run time; null if the target is stuck or deferred, or if less than 1 % of the run was seen and there is no interval", In::kEverywhere, When::kKnown},
      Field{&P::why_stuck, "why_stuck", "why_stuck", Unit::kNone, kNoColumn, "not empty if a complete step would wait for ever on this target, because it relies on buffers that the target's network does not have. `predicted_s` and `speedup` are null, `progress_s` says how far it came, a note counts such targets, and the step stays complete"},
      Field{&P::speedup, "speedup", "speedup", Unit::kFactor, kNoColumn, "measured_s / predicted_s; null while there is nothing to compare", In::kEverywhere, When::kSeen},
      Field{&P::self_error_percent, "self_error_percent", "self_error_percent", Unit::kPercent, kNoColumn, "100 (predicted - measured) / measured of the self target, the same in every prediction of the step; null likewise", In::kEverywhere, When::kSeen},
      Field{&P::partial, "partial", "partial", Unit::kNone, kNoColumn, "the prediction is of a part of the run"},
      Field{&P::progress_s, "progress_s", "progress_s", Unit::kSeconds, {"Progress", 10}, "the latest predicted time of any rank's last replayed event"},
      Field{&P::measured_at_progress_s, "measured_at_progress_s", "measured_at_progress_s", Unit::kSeconds, kNoColumn, "the latest measured time at those events, by the clock. While the step runs, in the open capture window, without what ranks were preempted or polled in vain since their last record and since their relay told of it (every 2 s)"},
      Field{&P::seen_share, "seen_share", "seen_share", Unit::kShare, kNoColumn, "below 1: the run was captured in part, and `predicted_s` is extrapolated"},
      Field{&P::low_s, "low_s", "low_s", Unit::kSeconds, kNoColumn, "with `high_s` the 95 % interval of an extrapolated `predicted_s`; null if it cannot be told or everything was seen"},
      Field{&P::high_s, "high_s", "high_s", Unit::kSeconds, kNoColumn, "likewise"},
      Field{&P::memory_percent, "memory_percent", "memory_percent", Unit::kPercent, {"MemoryPct", 9}, "of `predicted_s`: what memory bandwidth may add or save at most, because the program's demand is unknown and the ranks per memory domain differ; 0 if neither"},
      Field{&P::exchange_percent, "exchange_percent", "exchange_percent", Unit::kPercent, {"ExchangePct", 11}, "of `predicted_s`: what exchanges of large messages would add if all took turns; 0 where contention is not `nic`"},
      Field{&P::topology, "topology", "topology_json", Unit::kNone, kNoColumn, "`{\"file\":\"/etc/slurm/topology.conf\",\"nodes\":[\"n1\",\"n2\"]}`: the nodes of Slurm's topology that the target's nodes are, in order, if lbfd.toml names one and it has the step's nodes; absent: all nodes are equally far apart", In::kEverywhere, When::kSet},
      Field{&P::why_deferred, "why_deferred", "why_deferred", Unit::kNone, {"Deferred", 24, Align::kLeft}, "of deferred targets only: why lbfd had no room to replay the whole run. `predicted_s` and `speedup` are null, `progress_s` says how far it came", In::kEverywhere, When::kDeferred},
      Field{&P::deferred_for_good, "deferred_for_good", "deferred_for_good", Unit::kNone, kNoColumn, "of deferred targets only. false: lbfd will take the target up; true: it will not, and `why_deferred` says why", In::kEverywhere, When::kDeferred},
      Field{&P::taken_up, "taken_up", "taken_up", Unit::kNone, kNoColumn, "only if true (in ROWS always): deferred when the step ended, and replayed later", In::kEverywhere, When::kSet},
      Field{&P::rank_finish_s, "rank_finish_s", "rank_finish_s_json", Unit::kSeconds, kNoColumn, "each rank's predicted end; of a single step and with `detail=1`", In::kFull},
  };
  // clang-format on
}();

}  // namespace lbf::protocol
