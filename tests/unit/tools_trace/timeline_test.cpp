// lbf-trace export --format timeline: JSON in Chrome's trace event format, and times that are the
// prediction's.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::timeline_test {
namespace {

using testing::HasSubstr;

struct Slice {
  double begin, end;
  std::string name, category;
};
struct Arrow {
  int row;
  double ts;
};

struct Timeline {
  std::map<int, std::vector<Slice>> rows;
  std::map<int, int> node_of_row;
  std::map<int, std::string> name_of_row;
  std::map<std::string, std::vector<Arrow>> starts, ends;

  explicit Timeline(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    EXPECT_TRUE(json.is_object());
    for (const nlohmann::json& e : json.at("traceEvents")) {
      const std::string phase = e.at("ph");
      const int row = e.at("tid");
      if (phase == "M") {
        if (e.at("name") == "thread_name") name_of_row[row] = e["args"].at("name");
        if (e.at("name") == "thread_name") node_of_row[row] = e.at("pid");
        continue;
      }
      EXPECT_EQ(node_of_row.at(row), e.at("pid"));
      const double ts = e.at("ts");
      if (phase == "X") {
        // In whole nanoseconds, as a viewer takes them: rounded apart, slices overlapped by one.
        const auto end_ns = std::llround(ts * 1000) + std::llround(e.at("dur").get<double>() * 1000);
        rows[row].push_back({ts, static_cast<double>(end_ns) / 1000, e.at("name"), e.at("cat")});
      } else if (phase == "s") {
        starts[e.at("id")].push_back({row, ts});
      } else {
        EXPECT_EQ(phase, "f");
        EXPECT_EQ(e.at("bp"), "e");
        ends[e.at("id")].push_back({row, ts});
      }
    }
  }
  double last() const {
    double last = 0;
    for (const auto& [row, slices] : rows) {
      for (const Slice& slice : slices) last = std::max(last, slice.end);
    }
    return last;
  }
  // What must hold for every timeline.
  void check(const std::string& what) {
    constexpr double kRounding = 0.0025;  // of two times in us with three decimals
    for (auto& [row, slices] : rows) {
      std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
      double end = 0;
      for (const Slice& slice : slices) {
        EXPECT_GE(std::llround(slice.begin * 1000), std::llround(end * 1000))
            << what << ", row " << row << ": slices overlap";
        end = std::max(end, slice.end);
      }
    }
    const auto in_a_slice = [&](const Arrow& arrow) {
      const auto& slices = rows[arrow.row];
      return std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
        return slice.begin - kRounding <= arrow.ts && arrow.ts <= slice.end + kRounding;
      });
    };
    EXPECT_EQ(starts.size(), ends.size()) << what;
    for (const auto& [id, arrows] : starts) {
      ASSERT_EQ(arrows.size(), 1u) << what << ", arrow " << id;
      ASSERT_EQ(ends[id].size(), 1u) << what << ", arrow " << id;
      EXPECT_GE(ends[id].front().ts, arrows.front().ts - kRounding) << what << ": a message arrives before it leaves";
      EXPECT_TRUE(in_a_slice(arrows.front()) && in_a_slice(ends[id].front())) << what;
    }
  }
};

TEST_F(TraceCommand, TimelineOfTheWorkedExample) {
  Timeline timeline(output_of("export " + fig3_ + " --format timeline --placement map=0,0,1"));
  timeline.check("fig3");
  EXPECT_EQ(timeline.last(), 7e6);
  EXPECT_EQ(timeline.name_of_row, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}, {2, "rank 2"}}));
  EXPECT_EQ(timeline.node_of_row, (std::map<int, int>{{0, 0}, {1, 0}, {2, 1}}));
  // Rank 0: 1 s of work on half a processor, then it waits until 5, then 2 s.
  ASSERT_EQ(timeline.rows[0].size(), 3u);
  EXPECT_EQ(timeline.rows[0][0].end, 2e6);
  EXPECT_EQ(timeline.rows[0][1].category, "waiting");
  EXPECT_EQ(timeline.rows[0][1].name, "endRecv");
  EXPECT_EQ(timeline.rows[0][1].begin, 2e6);
  EXPECT_EQ(timeline.rows[0][1].end, 5e6);
  EXPECT_EQ(timeline.rows[0][2].end, 7e6);
  ASSERT_EQ(timeline.starts.size(), 1u);
  EXPECT_EQ(timeline.starts.begin()->second.front().row, 2);
  EXPECT_EQ(timeline.starts.begin()->second.front().ts, 5e6);
  EXPECT_EQ(timeline.ends.begin()->second.front().row, 0);
}

TEST_F(TraceCommand, TimelineEndsWhereThePredictionEnds) {
  write("slow.toml",
        "name = \"slow\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 20.0], [65536, 200.0]]\n"
        "send_cpu = [[0, 2.0]]\nrecv_cpu = [[0, 3.0], [65536, 30.0]]\neager_limit_bytes = 4096\n"
        "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0], [65536, 10.0]]\n"
        "[contention]\nmodel = \"none\"\nbandwidth_MBps = 1000.0\n");
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Rank ranks = 2 + static_cast<Rank>(seed % 4);
    write("t.lbf", random_program(seed, ranks, true, 40));
    for (const std::string& options :
         {"--nodes " + std::to_string(ranks), std::string("--nodes 1 --cores 1"),
          "--nodes " + std::to_string(ranks) + " --network ./slow.toml",
          std::string("--nodes 2 --cores 1 --network ./slow.toml"),
          "--nodes " + std::to_string(ranks) + " --network ./slow.toml --contention nic"}) {
      // A program may rely on buffers that the target does not have: then lbf-whatif says so, and the
      // timeline.
      const test::Outcome prediction = run(LBF_WHATIF, "t.lbf --json " + options);
      const double predicted = nlohmann::json::parse(prediction.out)["predictions"][0]["lbf_s"];
      const test::Outcome result = run("export t.lbf --format timeline " + options);
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_EQ(result.err.empty(), prediction.err.empty()) << result.err << prediction.err;
      if (!result.err.empty()) continue;
      Timeline timeline(result.out);
      timeline.check("seed " + std::to_string(seed) + " " + options);
      EXPECT_NEAR(timeline.last() * 1e-6, predicted, 2e-9) << "seed " << seed << " " << options;
      const nlohmann::json info = nlohmann::json::parse(output_of("info --json t.lbf"));
      EXPECT_GE(timeline.starts.size(), info["messages"].get<std::size_t>());
    }
  }
}

TEST_F(TraceCommand, TimelineSaysWhatWaits) {
  write("net.toml", "name = \"net\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 100.0]]\nrecv_cpu = [[0, 7.0]]\n");
  write("t.lbf",
        "lbf-trace 1\nranks 2\n0 send 0.00001 to=1 tag=3 bytes=8\n0 blocked 0 off=0.00005\n0 exit 0\n"
        "1 startRecv 0 from=0 tag=3\n1 endRecv 0 from=0 tag=3 bytes=8\n1 exit 0\n");
  Timeline timeline(output_of("export t.lbf --format timeline --nodes 2 --network ./net.toml"));
  timeline.check("two ranks");
  const auto categories = [&](int row) {
    std::vector<std::string> found;
    for (const Slice& slice : timeline.rows[row]) {
      if (slice.end > slice.begin) found.push_back(slice.category + ' ' + slice.name);
    }
    return found;
  };
  EXPECT_EQ(categories(0), (std::vector<std::string>{"process process", "blocked blocked"}));
  EXPECT_EQ(categories(1), (std::vector<std::string>{"waiting endRecv", "protocol endRecv"}));
  EXPECT_NEAR(timeline.rows[1][0].end, 110, 0.001);  // 10 us of work, 100 us of flight
  EXPECT_NEAR(timeline.rows[1][1].end, 117, 0.001);
}

TEST_F(TraceCommand, TimelineOfCollectivesInTheBackground) {
  std::vector<RankEvent> events;
  for (Rank rank = 0; rank < 2; ++rank) {
    Event start;
    start.kind = EventKind::kIcollective;
    set_op(start, CollectiveOp::kAllreduce);
    start.flags = kFlagHasRequest;
    start.bytes = 64;
    start.process_s = 1e-6;
    events.push_back({rank, start});
    Event wait;
    wait.kind = EventKind::kWait;
    wait.flags = kFlagHasRequest;
    wait.process_s = 1e-5;
    events.push_back({rank, wait});
    Event end;
    end.kind = EventKind::kExit;
    events.push_back({rank, end});
  }
  write("t.lbfw", stored(2, events));
  for (const char* options : {"--nodes 2", "--nodes 1 --cores 1"}) {
    Timeline timeline(output_of("export t.lbfw --format timeline " + std::string(options)));
    timeline.check(options);
    ASSERT_EQ(timeline.name_of_row.size(), 4u) << options;
    EXPECT_THAT(timeline.name_of_row.at(2), HasSubstr("collectives under way")) << options;
    EXPECT_GE(timeline.starts.size(), 2u) << options;
  }
}

TEST_F(TraceCommand, OneTargetEach) {
  expect_error(1, "export " + fig3_ + " --format timeline --nodes 1,2 -o out", "a timeline shows one target");
  expect_error(1, "export " + fig3_ + " --format timeline --nodes 4 -o out", "at most 3");
  expect_error(1, "export " + fig3_ + " --format timeline --nodes 1 --network nowhere --networks-dir . -o out",
               "no network 'nowhere'");
}

TEST_F(TraceCommand, TimelineOfAProgramThatCannotEndSaysSo) {
  write("t.lbf",
        "lbf-trace 1\nranks 2\n0 startRecv 1 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=4\n0 exit 1\n1 "
        "exit 1\n");
  const test::Outcome result = run("export t.lbf --format timeline --nodes 2");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("lbf-trace: warning: the timeline is partial: rank 0 waits"));
  Timeline(result.out).check("stuck");
}

}  // namespace
}  // namespace lbf::trace_test::timeline_test