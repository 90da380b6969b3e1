// One question to the advisor: a trace and a cluster in, advice out. What lbf-advise and bench/advisor run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advisor/advice/advice.h"
#include "advisor/advice/sensitivity.h"
#include "advisor/candidate/candidate.h"
#include "advisor/candidate/cluster.h"
#include "tools/advise/advise_trace.h"
#include "tools/advise/probe_result.h"

namespace lbf::tools {

// The run that was captured, where the trace does not say it.
struct RunDescription {
  std::optional<std::uint32_t> nodes;
  std::string placement = "block";
  std::string partition;                           // empty: not known
  std::optional<std::uint32_t> cores;              // processors per node
  std::shared_ptr<const engine::Network> network;  // nullptr: the first of the candidates'
  std::optional<Seconds> measured_s;
};

// Whom to ask when candidates would start, and with which limit.
struct AskForStarts {
  advisor::StartSource* slurm = nullptr;  // nullptr: nobody
  std::string time_limit;                 // empty: from each candidate's predicted time
  std::function<void(double share)> progress;
};

// A rank count that did not run as what is advised.
struct OtherCount {
  Rank ranks = 0;
  std::shared_ptr<AdviseTrace> trace;                  // of the program with so many ranks; nullptr: there is none
  advisor::Source source = advisor::Source::kPattern;  // of `trace`
  std::string why_no_trace;
  std::vector<advisor::Ranked> by_law;  // where there is no trace, or the budget does not reach it
  std::string why_no_law;               // why by_law is empty; empty: nobody asked
};

// Rank counts, and what is said of them.
struct CountReason {
  std::vector<Rank> ranks;
  std::string why;
  // "8, 16 ranks: WHY"
  std::string in_words() const;
};

struct AdviseOptions {
  advisor::CandidateOptions candidates;  // the session fills in the ranks
  bool maps = true;                      // computed mappings, too
  advisor::Objective objective;
  Seconds budget_s = 5;  // of processor time
  bool sensitivity = true;
  RunDescription ran;
  AskForStarts starts;
  // Where other rank counts than that of the trace were asked for: all that count, and those others (advise_ranks.h).
  std::vector<std::uint32_t> rank_counts;
  std::vector<OtherCount> other_counts;
  advisor::OutcomeErrors program;  // what lbfd says of the run's program
  advisor::OutcomeErrors site;
};

struct AdviseResult {
  Rank ranks = 0;
  Bytes bytes = 0;  // of all messages between ranks
  std::uint64_t messages = 0;
  std::uint64_t chain_messages = 0;  // of the longest chain
  advisor::Baseline baseline;
  // Where the capture saw a part of the run only: that part, and the 95 % interval of the baseline's predicted time
  // (nothing: it cannot be told). From too little nothing is replayed but the baseline, and nothing advised.
  protocol::SeenRun seen;
  std::optional<std::pair<Seconds, Seconds>> now_interval_s;
  bool has_several_counts = false;            // rank counts were asked for
  std::vector<CountReason> counts_by_laws;    // why they were not replayed
  std::vector<CountReason> counts_not_known;  // neither replayed, nor by laws
  std::string memory_note;                    // what is assumed of the program's memory demand; empty: nothing
  advisor::Trust trust;
  advisor::Ranking ranking;
  std::uint32_t mappings_computed = 0;
  std::uint32_t mappings_deferred = 0;        // node sets for which none was computed: the budget was over
  std::string why_no_mapping;                 // not empty: none is worth computing
  std::optional<advisor::Schedule> schedule;  // where starts were asked for
  advisor::Advice advice;
  std::optional<advisor::Sensitivity> sensitivity;
  std::optional<ProbeResult> probe;  // where probes were asked for
};

// Errors: those of the trace; no partition of a name, nothing that fits (advisor::node_sets); starts were to
// be asked for and Slurm cannot be asked.
Result<AdviseResult> advise(AdviseTrace& trace, const advisor::Cluster& cluster, AdviseOptions options);

}  // namespace lbf::tools
