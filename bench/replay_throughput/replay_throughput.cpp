// bench/replay_throughput: events per second and peak memory of the replay core, on one core, from the stored
// form: decoding (zstd, checksums, varints), matching and replay included. docs/performance.md has the
// figures.
//
// "dedicated": a processor for each rank. "events": the same without rounds (event/rounds.h). "composed", "followed":
// the same with clocks that know what a time is made of, and where it passed (engine::Clocks). "shared": 8 ranks on a
// node with 1 processor. An event-target is one event replayed on one target.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/replay_throughput/synth.h"
#include "event/wire.h"
#include "predictor/daemon/intake/stream_merge.h"
#include "predictor/engine/metric/predictor.h"

namespace engine = lbf::engine;

namespace {

using lbf::Rank;
using lbf::Result;

constexpr std::uint32_t kRanksPerSharedNode = 8;

// Peak resident memory since reset_peak(), in MiB.
void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}
double status_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  return 0;
}

std::shared_ptr<const engine::Network> make_network(std::size_t number) {
  const double us = 2.0 + static_cast<double>(number);
  const std::string toml = "name = \"net" + std::to_string(number) +
                           "\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, " + std::to_string(us) + "], [1024, " +
                           std::to_string(us + 1) + "], [65536, " + std::to_string(us + 30) +
                           "]]\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.5], [65536, 10.0]]\n";
  return std::make_shared<const engine::Network>(*engine::Network::parse(toml, "bench"));
}

std::vector<engine::Target> make_targets(Rank ranks, std::size_t count, bool shared) {
  std::vector<engine::Target> targets;
  for (std::size_t t = 0; t < count; ++t) {
    engine::Target target;
    const std::uint32_t all = static_cast<std::uint32_t>(ranks);
    target.nodes = shared ? std::max(1u, all / kRanksPerSharedNode) : all;
    target.cores_per_node = 1;
    target.placement = t % 2 == 0 ? "block" : "cyclic";
    target.node_of_rank = *engine::place_ranks(target.placement, ranks, target.nodes);
    target.network = make_network(t);
    targets.push_back(std::move(target));
  }
  return targets;
}

class StreamOf final : public lbf::daemon::BatchSource {
 public:
  explicit StreamOf(const std::vector<std::string>& batches) : batches_(batches) {}
  Result<std::span<const std::byte>> next() override {
    if (at_ == batches_.size()) return std::span<const std::byte>();
    return std::as_bytes(std::span<const char>(batches_[at_++]));
  }

 private:
  const std::vector<std::string>& batches_;
  std::size_t at_ = 0;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double run(const lbf::bench::StoredTrace& trace, std::size_t targets, const std::string& mode, clockid_t clock,
           double& lbf_s) {
  const double start = seconds_of(clock);
  const engine::Clocks clocks = mode == "composed"   ? engine::Clocks::kComposed
                                : mode == "followed" ? engine::Clocks::kFollowed
                                                     : engine::Clocks::kPlain;
  std::unique_ptr<engine::Predictor> predictor =
      *engine::Predictor::make(trace.ranks, make_targets(trace.ranks, targets, mode == "shared"), {}, clocks);
  lbf::CommunicatorTable communicators;
  std::vector<std::unique_ptr<lbf::daemon::BatchSource>> sources;
  for (const auto& stream : trace.streams) sources.push_back(std::make_unique<StreamOf>(stream));
  lbf::daemon::StreamMerge merge(communicators, trace.ranks, std::move(sources));
  lbf::BatchSink sink;
  sink.on_events = [&](Rank rank, std::span<const lbf::Event> events) { return predictor->feed(rank, events); };
  if (mode != "events")
    sink.on_rounds = [&](Rank rank, const lbf::Rounds& rounds) { return predictor->feed_rounds(rank, rounds); };
  for (bool more = true; more;) {
    const Result<bool> read = merge.next(sink);
    if (!read) {
      std::fprintf(stderr, "replay_throughput: %s\n", read.error().message.c_str());
      std::exit(1);
    }
    more = *read;
  }
  for (Rank rank = 0; rank < trace.ranks; ++rank) predictor->close(rank);
  (void)predictor->advance();
  if (const Result<void> whole = predictor->diagnosis(); !whole) {
    std::fprintf(stderr, "replay_throughput: %s\n", whole.error().message.c_str());
    std::exit(1);
  }
  lbf_s = predictor->predictions().front().lbf_s;
  return seconds_of(clock) - start;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t events = 1000000;
  std::vector<std::string> patterns{"ring", "stencil2d", "alltoall"};
  std::vector<Rank> ranks{4, 64, 1024};
  std::vector<std::size_t> targets{1, 16};
  std::vector<std::string> modes{"dedicated", "shared"};
  CLI::App app{"Events per second and peak memory of the replay core.", "replay_throughput"};
  app.add_option("--events", events, "about this many per trace")->check(CLI::Range(1u, 1u << 30));
  app.add_option("--pattern", patterns, "ring, stencil2d, alltoall, allreduce")
      ->delimiter(',')
      ->check(CLI::IsMember({"ring", "stencil2d", "alltoall", "allreduce"}));
  app.add_option("--ranks", ranks)->delimiter(',')->check(CLI::Range(2, 1 << 20));
  app.add_option("--targets", targets)->delimiter(',')->check(CLI::Range(1, 1024));
  app.add_option("--mode", modes, "dedicated, events, composed, followed, shared (default dedicated, shared)")
      ->delimiter(',')
      ->check(CLI::IsMember({"dedicated", "events", "composed", "followed", "shared"}));
  bool processor_time = false;
  app.add_flag("--cpu-time", processor_time, "processor time instead of wall time: for a machine that others use");
  CLI11_PARSE(app, argc, argv);

  std::printf("%-10s %6s %8s %8s %-10s %7s %10s %12s %10s %-22s\n", "pattern", "ranks", "events", "B/event", "mode",
              "targets", "Mevents/s", "Mev-targ/s", "peak MiB", "predicted_s");
  for (const std::string& pattern : patterns) {
    for (Rank count : ranks) {
      const lbf::bench::StoredTrace trace = lbf::bench::make_trace(pattern, count, events);
      double stored_bytes_per_event = 0;
      for (const auto& stream : trace.streams) {
        for (const auto& batch : stream) {
          stored_bytes_per_event += static_cast<double>(batch.size()) / static_cast<double>(trace.events);
        }
      }
      for (const std::string& mode : modes) {
        for (std::size_t k : targets) {
          reset_peak();
          const double before_mib = status_mib("VmRSS:");
          double lbf_s = 0;
          const double seconds =
              run(trace, k, mode, processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, lbf_s);
          const double peak_mib = status_mib("VmHWM:") - before_mib;
          const double rate = static_cast<double>(trace.events) / seconds / 1e6;
          std::printf("%-10s %6d %8llu %8.2f %-10s %7zu %10.2f %12.2f %10.1f %-22.17g\n", pattern.c_str(), count,
                      static_cast<unsigned long long>(trace.events), stored_bytes_per_event, mode.c_str(), k, rate,
                      rate * static_cast<double>(k), peak_mib, lbf_s);
          std::fflush(stdout);
        }
      }
    }
  }
  return 0;
}
