// lbf-trace export --format goal: the text of a small trace, and that a schedule means what the trace means:
// run with messages that cost nothing, it takes as long as the prediction on the network `zero`.
#include <algorithm>
#include <deque>
#include <map>
#include <sstream>
#include <tuple>

#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::goal_test {
namespace {

using testing::HasSubstr;

constexpr const char* kTwoRanks =
    "lbf-trace 1\n"
    "ranks 2\n"
    "0 startRecv 0.000001 from=1 tag=5 req=0\n"
    "0 isend 0 to=1 tag=4 bytes=10 req=1\n"
    "0 compute 0.000002\n"
    "0 endRecv 0 from=1 tag=5 bytes=20 req=0\n"
    "0 wait 0 req=1\n"
    "0 exit 0.000003\n"
    "1 startRecv 0 from=0 tag=4\n"
    "1 endRecv 0 from=0 tag=4 bytes=10\n"
    "1 send 0.000004 to=0 tag=5 bytes=20\n"
    "1 blocked 0 off=0.000001\n"
    "1 exit 0\n";

TEST_F(TraceCommand, GoalOfTwoRanks) {
  write("t.lbf", kTwoRanks);
  EXPECT_EQ(output_of("export t.lbf --format goal"),
            "num_ranks 2\n"
            "\n"
            "rank 0 {\n"
            "l1: calc 1000\n"
            "l2: send 10b to 1 tag 4\n"
            "l2 requires l1\n"
            "l3: calc 2000\n"
            "l3 irequires l2\n"  // the send goes on by itself
            "l4: recv 20b from 1 tag 5\n"
            "l4 requires l1\n"  // posted there
            "l5: calc 3000\n"
            "l5 requires l3\n"
            "l5 requires l4\n"
            "l5 requires l2\n"  // its wait
            "}\n"
            "\n"
            "rank 1 {\n"
            "l1: recv 10b from 0 tag 4\n"
            "l2: calc 4000\n"
            "l2 requires l1\n"
            "l3: send 20b to 0 tag 5\n"
            "l3 requires l2\n"
            "l4: calc 1000\n"
            "l4 requires l3\n"
            "}\n");
}

TEST_F(TraceCommand, GoalCarriesPartsOfNanoseconds) {
  // 3 x 0.4 ns, 3 x 0.4 ns: 2.4 ns together.
  write("t.lbf",
        "lbf-trace 1\nranks 1\n0 compute 0.0000000004\n0 compute 0.0000000004\n0 compute 0.0000000004\n"
        "0 compute 0.0000000004\n0 compute 0.0000000004\n0 exit 0.0000000004\n");
  EXPECT_EQ(output_of("export t.lbf --format goal"),
            "num_ranks 1\n\nrank 0 {\nl1: calc 1\nl2: calc 1\nl2 requires l1\n}\n");
}

// A schedule, run with an unlimited number of processors and messages without cost.
class Schedule {
 public:
  explicit Schedule(const std::string& text) {
    std::istringstream in(text);
    std::string line;
    int rank = -1;
    while (std::getline(in, line)) {
      if (line.empty() || line == "}") continue;
      std::istringstream words(line);
      std::string first;
      words >> first;
      if (first == "num_ranks") {
        words >> ranks_;
        operations_.resize(static_cast<std::size_t>(ranks_));
      } else if (first == "rank") {
        words >> rank;
      } else if (first.back() == ':') {
        Operation operation;
        std::string ignored;
        words >> operation.action;
        if (operation.action == "calc") {
          words >> operation.amount;
        } else {
          words >> operation.amount >> ignored >> ignored >> operation.peer >> ignored >> operation.tag;
          EXPECT_FALSE(words.fail()) << line;
        }
        auto& mine = operations_.at(static_cast<std::size_t>(rank));
        mine.push_back(operation);
        EXPECT_EQ(first, "l" + std::to_string(mine.size()) + ":");
      } else {
        std::string how;
        std::string other;
        words >> how >> other;
        auto& mine = operations_.at(static_cast<std::size_t>(rank));
        const std::size_t before = std::stoul(other.substr(1));
        const std::size_t after = std::stoul(first.substr(1));
        // txt2bin wants both labels above.
        EXPECT_LT(before, after);
        EXPECT_EQ(after, mine.size());
        EXPECT_TRUE(how == "requires" || how == "irequires") << line;
        mine.at(after - 1).before.emplace_back(before - 1, how == "irequires");
      }
    }
  }

  // When the last operation ends, in ns; -1: they cannot all be run.
  double run() {
    std::map<std::tuple<int, int, std::uint64_t>, std::pair<std::deque<Operation*>, std::deque<Operation*>>> channels;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (Operation& operation : operations_[static_cast<std::size_t>(rank)]) {
        if (operation.action == "send") channels[{rank, operation.peer, operation.tag}].first.push_back(&operation);
        if (operation.action == "recv") channels[{operation.peer, rank, operation.tag}].second.push_back(&operation);
      }
    }
    for (auto& [channel, ends] : channels) {
      auto& [sends, receives] = ends;
      EXPECT_EQ(sends.size(), receives.size()) << "messages from " << std::get<0>(channel);
      for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) {
        EXPECT_EQ(sends[i]->amount, receives[i]->amount);
        receives[i]->send = sends[i];
        ++messages;
      }
    }
    double last = 0;
    for (bool more = true; more;) {
      more = false;
      for (auto& mine : operations_) {
        for (Operation& operation : mine) {
          if (operation.end < 0 && execute(operation, mine)) {
            more = true;
            last = std::max(last, operation.end);
          }
        }
      }
    }
    for (const auto& mine : operations_) {
      for (const Operation& operation : mine) {
        if (operation.end < 0) return -1;
      }
    }
    return last;
  }

  std::uint64_t messages = 0;

 private:
  struct Operation {
    std::string action;
    double amount = 0;
    int peer = 0;
    std::uint64_t tag = 0;
    std::vector<std::pair<std::size_t, bool>> before;  // operation, its start only
    Operation* send = nullptr;
    double start = -1;
    double end = -1;
  };

  static bool execute(Operation& operation, const std::vector<Operation>& mine) {
    double start = 0;
    for (const auto& [other, start_only] : operation.before) {
      const double when = start_only ? mine[other].start : mine[other].end;
      if (when < 0) return false;
      start = std::max(start, when);
    }
    operation.start = start;
    operation.end = start + (operation.action == "calc" ? operation.amount : 0);
    if (operation.action != "recv") return true;
    operation.end = -1;
    if (operation.send == nullptr || operation.send->end < 0) return false;
    operation.end = std::max(start, operation.send->end);
    return true;
  }

  int ranks_ = 0;
  std::vector<std::vector<Operation>> operations_;
};

TEST_F(TraceCommand, GoalTakesAsLongAsThePrediction) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rank ranks = 2 + static_cast<Rank>(seed % 6);
    write("t.lbf", random_program(seed, ranks, true, 50));
    Schedule schedule(output_of("export t.lbf --format goal"));
    const double predicted = predicted_s("t.lbf", "--nodes " + std::to_string(ranks));
    EXPECT_GT(predicted, 0);
    EXPECT_NEAR(schedule.run() * 1e-9, predicted, 1e-12) << "seed " << seed;
    EXPECT_GT(schedule.messages, 0u);
  }
}

TEST_F(TraceCommand, GoalOfCollectivesThatGoOnInTheBackground) {
  std::vector<RankEvent> events;
  for (Rank rank = 0; rank < 3; ++rank) {
    Event start;
    start.kind = EventKind::kIcollective;
    set_op(start, CollectiveOp::kAllreduce);
    start.flags = kFlagHasRequest;
    start.bytes = 64;
    start.process_s = 1e-6 * (rank + 1);
    events.push_back({rank, start});
    Event work;
    work.process_s = 1e-5 * (3 - rank);
    events.push_back({rank, work});
    Event wait;
    wait.kind = EventKind::kWait;
    wait.flags = kFlagHasRequest;
    events.push_back({rank, wait});
    Event end;
    end.kind = EventKind::kExit;
    end.process_s = 1e-6;
    events.push_back({rank, end});
  }
  write("t.lbfw", stored(3, events));
  Schedule schedule(output_of("export t.lbfw --format goal"));
  const double predicted = predicted_s("t.lbfw", "--nodes 3");
  EXPECT_NEAR(predicted, 32e-6, 1e-12);  // rank 0: 1 + 30 + 1
  EXPECT_NEAR(schedule.run() * 1e-9, predicted, 1e-12);
  EXPECT_GE(schedule.messages, 4u);
}

TEST_F(TraceCommand, GoalOfAPartialTraceSaysSo) {
  write("t.lbf",
        "lbf-trace 1\nranks 2\n0 startRecv 1 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=4\n0 exit 1\n1 "
        "exit 1\n");
  const test::Outcome result = run("export t.lbf --format goal");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("lbf-trace: warning: 1 receives are left out"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("recv")));
  EXPECT_GT(Schedule(result.out).run(), 0);
}

}  // namespace
}  // namespace lbf::trace_test::goal_test