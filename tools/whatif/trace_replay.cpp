#include "tools/whatif/trace_replay.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include "predictor/engine/replay/replay_groups.h"

namespace lbf::tools {
namespace {

constexpr std::uint32_t kMostThreads = 8;

std::vector<engine::Target> targets_of(const std::vector<std::size_t>& group,
                                       const std::vector<engine::Target>& targets) {
  std::vector<engine::Target> out;
  out.reserve(group.size());
  for (const std::size_t number : group) out.push_back(targets[number]);
  return out;
}

Result<ReplayedTrace> replay_group(WhatIfTrace& trace, std::vector<engine::Target> targets, const engine::MpiSetup& mpi,
                                   const std::function<void(double)>& progress) {
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(trace.ranks(), std::move(targets));
  if (!made) return made.error();
  engine::Predictor& predictor = **made;
  predictor.set_mpi(mpi);
  const auto sink = [&](Rank rank, std::span<const Event> events) { return predictor.feed(rank, events); };
  const auto rounds = [&](Rank rank, const Rounds& of_rank) { return predictor.feed_rounds(rank, of_rank); };
  if (const Result<void> read = trace.read(sink, rounds, progress); !read) return read.error();
  return finish_replay(trace, predictor);
}

}  // namespace

std::uint32_t default_replay_threads() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::min(static_cast<std::uint32_t>(CPU_COUNT(&set)), kMostThreads);
}

void add_replay_threads_option(CLI::App& command, std::uint32_t& threads) {
  command
      .add_option("--replay-threads", threads,
                  "replay targets on so many processors at once (default: those that it may use, at most 8)")
      ->check(CLI::Range(1u, 1024u));
}

ReplayedTrace finish_replay(const WhatIfTrace& trace, engine::Predictor& predictor) {
  ReplayedTrace replayed;
  replayed.costs = trace.costs();
  predictor.set_capture_cost(daemon::capture_cost_of(replayed.costs));
  for (Rank rank = 0; rank < trace.ranks(); ++rank) predictor.close(rank);
  (void)predictor.advance();
  if (const Result<void> whole = predictor.diagnosis(); !whole) replayed.why_partial = whole.error().message;
  replayed.predictions = predictor.predictions();
  replayed.stats = predictor.stats();
  return replayed;
}

Result<ReplayedTrace> replay_targets(WhatIfTrace& trace, const std::vector<engine::Target>& targets,
                                     const engine::MpiSetup& mpi, std::uint32_t threads,
                                     const std::function<void(double)>& progress) {
  std::vector<std::vector<std::size_t>> groups = engine::replay_groups(targets, threads);
  std::vector<std::unique_ptr<WhatIfTrace>> readers;
  while (readers.size() + 1 < groups.size()) {
    readers.push_back(trace.another_reader());
    if (readers.back() != nullptr) continue;
    readers.clear();
    groups = engine::replay_groups(targets, 1);
  }
  std::vector<std::future<Result<ReplayedTrace>>> others;
  for (std::size_t g = 1; g < groups.size(); ++g) {
    others.push_back(std::async(std::launch::async,
                                [&reader = *readers[g - 1], &mpi, part = targets_of(groups[g], targets)]() mutable {
                                  return replay_group(reader, std::move(part), mpi, [](double) {});
                                }));
  }
  Result<ReplayedTrace> first = replay_group(trace, targets_of(groups.front(), targets), mpi, progress);
  std::vector<Result<ReplayedTrace>> replayed;
  replayed.push_back(std::move(first));
  for (auto& other : others) replayed.push_back(other.get());

  for (const Result<ReplayedTrace>& each : replayed) {
    if (!each) return each.error();
  }
  ReplayedTrace all = std::move(*replayed.front());
  std::vector<engine::Prediction> of_first = std::exchange(all.predictions, {});
  all.predictions.resize(targets.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<engine::Prediction>& predictions = g == 0 ? of_first : replayed[g]->predictions;
    for (std::size_t i = 0; i < groups[g].size(); ++i) all.predictions[groups[g][i]] = std::move(predictions[i]);
    // A target on which the program ends has seen all of the trace.
    if (g > 0 && replayed[g]->why_partial.empty()) all.why_partial.clear();
  }
  return all;
}

}  // namespace lbf::tools
