// Fuzzes what is behind the decoder: events -> matcher -> expansion of collectives -> replays, under each library's
// rules, on targets of every kind. An input is a list of operations (tests/fuzz/event_script.h), which make mostly
// valid events with wild numbers. What holds for every input: nothing crashes, errors are one line, memory stays below
// the limit, and who is stopped stops.
#include <algorithm>
#include <cmath>

#include "predictor/engine/metric/predictor.h"
#include "tests/fuzz/event_script.h"
#include "tests/fuzz/fuzz_target.h"

namespace engine = lbf::engine;

namespace {

using lbf::Rank;
using lbf::fuzz::EventScript;
using lbf::fuzz::Step;

constexpr std::uint64_t kMostLooks = 2000;
// The steps of one collective, before anybody looks; containers that double.
constexpr lbf::Bytes kSlackBytes = lbf::Bytes{160} << 20;

std::shared_ptr<const engine::Network> network(const std::string& more) {
  static const std::string kPaths = R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 10], [1024, 20], [1048576, 1000]]
send_cpu = [[0, 1]]
recv_cpu = [[0, 2]]
eager_limit_bytes = 4096
first_message_us = 5
first_peer_us = 7
[[path]]
locality = "self-node"
table = [[0, 1], [1024, 2]]
eager_limit_bytes = 512
turn_us = 1
switch_us = 2
)";
  auto parsed = engine::Network::parse(kPaths + more, "fuzz.toml");
  fuzz_require(parsed.ok(), parsed.ok() ? "" : parsed.error().message.c_str());
  return std::make_shared<const engine::Network>(std::move(*parsed));
}

std::vector<engine::Target> targets(Rank ranks, const std::vector<std::uint32_t>& node_of_rank) {
  static const auto plain = network("");
  static const auto local = network("[local]\ncopy = [[0, 0], [1024, 1]]\nreduce = [[0, 0], [1024, 2]]\n");
  static const auto nic = network("[contention]\nbandwidth_MBps = 100\nmodel = \"nic\"\n");
  static const auto bus = network("[contention]\nbandwidth_MBps = 100\nmodel = \"bus\"\n");
  static const auto zero = std::make_shared<const engine::Network>(engine::Network::zero());
  std::vector<engine::Target> made;
  const auto add = [&](std::shared_ptr<const engine::Network> on, std::vector<std::uint32_t> map, std::uint32_t cores,
                       engine::Waiting waiting) {
    engine::Target& target = made.emplace_back();
    target.nodes = 1 + *std::max_element(map.begin(), map.end());
    target.node_of_rank = std::move(map);
    target.cores_per_node = cores;
    target.network = std::move(on);
    target.waiting = waiting;
  };
  std::vector<std::uint32_t> apart;
  for (Rank rank = 0; rank < ranks; ++rank) apart.push_back(static_cast<std::uint32_t>(rank));
  const auto many = static_cast<std::uint32_t>(ranks);
  add(plain, apart, 1, engine::Waiting::kYield);
  add(local, node_of_rank, many, engine::Waiting::kYield);
  add(zero, std::vector<std::uint32_t>(apart.size(), 0), 1, engine::Waiting::kBlock);
  add(local, node_of_rank, 1, engine::Waiting::kYield);
  add(nic, node_of_rank, 2, engine::Waiting::kSpin);
  add(bus, apart, 1, engine::Waiting::kYield);
  return made;
}

void check_error(const lbf::Error& error) {
  fuzz_require(!error.message.empty(), "an error says something");
  fuzz_require(error.message.find('\n') == std::string::npos, "an error is one line");
}

void check_predictions(const engine::Predictor& predictor, Rank ranks) {
  const auto predictions = predictor.predictions();
  fuzz_require(predictions.size() == predictor.targets().size(), "each target has a prediction");
  for (const engine::Prediction& prediction : predictions) {
    fuzz_require(prediction.rank_finish_s.size() == static_cast<std::size_t>(ranks), "each rank has a time");
    fuzz_require(!std::isnan(prediction.lbf_s), "a time is a number");
  }
  if (const auto diagnosis = predictor.diagnosis(); !diagnosis) check_error(diagnosis.error());
  (void)predictor.stats();
}

// What a script does to a predictor.
class Run {
 public:
  explicit Run(EventScript& script) : script_(script), ranks_(script.ranks()) {
    auto made = engine::Predictor::make(ranks_, targets(ranks_, script.node_of_rank()));
    fuzz_require(made.ok(), "the targets are possible");
    predictor_ = std::move(*made);
    predictor_->set_mpi(engine::mpi_setup(script.library(), script.node_of_rank()));
    limits_.memory_bytes = script.memory_bytes();
    limits_.stop = [this] {
      fuzz_require(!stopped_, "who was stopped asks no more");
      return stopped_ = ++looks_ > kMostLooks;
    };
    predictor_->set_limits(limits_);
  }

  void all() {
    while (const Step* step = script_.next()) {
      if (step->closes) predictor_->close(step->rank);
      const lbf::Result<void> done = step->closes || step->advances ? predictor_->advance() : fed(*step);
      fuzz_require(predictor_->memory_bytes() <= limits_.memory_bytes + kSlackBytes, "memory stays below the limit");
      if (!done) {
        check_error(done.error());
        fuzz_require(!predictor_->feed(0, lbf::Event{}).ok(), "after an error no event is taken");
        break;
      }
    }
    check_predictions(*predictor_, ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) predictor_->close(rank);
    if (const auto done = predictor_->advance(); !done) check_error(done.error());
    check_predictions(*predictor_, ranks_);
  }

 private:
  lbf::Result<void> fed(const Step& step) { return predictor_->feed(step.rank, step.event); }

  EventScript& script_;
  Rank ranks_;
  std::unique_ptr<engine::Predictor> predictor_;
  engine::EngineLimits limits_;
  std::uint64_t looks_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return lbf::fuzz::script_seeds();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  EventScript script({data, size});
  Run(script).all();
  return 0;
}
