// event/text_trace.h: what docs/formats/text-trace-v1.md says, read and written; every bad input is an error
// that names its line.
#include "event/text_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lbf::text_trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Recorded {
  Rank rank;
  Event event;
  std::vector<std::uint64_t> values;
};

struct ReadBack {
  Result<TraceInfo> info = TraceInfo{};
  std::vector<Recorded> events;
};

ReadBack read(const std::string& text) {
  ReadBack back;
  std::istringstream in(text);
  back.info = read_text_trace(in, "t.lbf", [&](Rank rank, const Event& event) -> Result<void> {
    back.events.push_back({rank, event, {event.values.begin(), event.values.end()}});
    back.events.back().event.values = {};
    return {};
  });
  return back;
}

std::string write(const ReadBack& back) {
  std::ostringstream out;
  TextTraceWriter writer(out, back.info->ranks, back.info->procedures);
  for (const Recorded& recorded : back.events) {
    Event event = recorded.event;
    event.values = recorded.values;
    const Result<void> done = writer.add(recorded.rank, event);
    EXPECT_TRUE(done.ok()) << done.error().message;
  }
  return out.str();
}

TEST(TextTraceLibrary, IsReadWrittenAndChecked) {
  const std::string header = "lbf-trace 1\nranks 2\n";
  const std::string library = "library \"Open MPI v4.1.4, package: Debian\"\n";
  EXPECT_EQ(read(header + "0 exit 1\n").info->library, "");
  EXPECT_EQ(read(header + library + "0 exit 1\n").info->library, "Open MPI v4.1.4, package: Debian");
  std::istringstream in(header + "# a comment\n" + library + "0 nonsense\n");
  const Result<TraceInfo> start = read_text_trace_header(in, "t.lbf");  // stops before the events
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->ranks, 2);
  EXPECT_EQ(start->library, "Open MPI v4.1.4, package: Debian");

  const auto says = [&](const std::string& text, const char* what) {
    const ReadBack back = read(text);
    ASSERT_FALSE(back.info.ok()) << text;
    EXPECT_THAT(back.info.error().message, HasSubstr(what)) << text;
  };
  says("lbf-trace 1\n" + library + "ranks 2\n", "t.lbf:2: the line 'library' belongs behind 'ranks N'");
  says(header + "0 compute 1\n" + library, "t.lbf:4: the line 'library' belongs");
  says(header + library + library, "t.lbf:4: a second 'library' line");
  says(header + "library\n", "between quotes");
  says(header + "library Open MPI\n", "between quotes");
  says(header + "library \"Open\n", "between quotes");
  says(header + "library \"\"\n", "between quotes");
  says(header + "library \"a\"b\"\n", "cannot be printed");
  says(header + "library \"a\x1b[2J\"\n", "cannot be printed");
  says(header + "library \"" + std::string(1025, 'x') + "\"\n", "longer than 1024 bytes");
  says(header + std::string((std::size_t{17} << 20), 'x'), "the line is longer than 16 MiB");

  std::ostringstream out;
  TextTraceWriter writer(out, 2, {}, "MPICH \"#4\"\nVersion");
  EXPECT_EQ(out.str(), header + "library \"MPICH ??4??Version\"\n");
  EXPECT_EQ(read(out.str()).info->library, "MPICH ??4??Version");
}

TEST(TextTrace, NodesOfTheRanks) {
  const std::string header = "lbf-trace 1\nranks 3\n";
  const ReadBack back = read(header + "nodes 0,16777215,0  # a comment\nlibrary \"x\"\n0 exit 1\n");
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_EQ(back.info->node_of_rank, (std::vector<std::uint32_t>{0, 16777215, 0}));
  EXPECT_TRUE(read(header).info->node_of_rank.empty());
  std::istringstream in(header + "nodes 1,1,1\n0 nonsense\n");
  const Result<TraceInfo> start = read_text_trace_header(in, "t.lbf");
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->node_of_rank.size(), 3u);

  const auto says = [&](const std::string& text, const char* what) {
    const ReadBack bad = read(text);
    ASSERT_FALSE(bad.info.ok()) << text;
    EXPECT_THAT(bad.info.error().message, HasSubstr(what)) << text;
  };
  says("lbf-trace 1\nnodes 0\nranks 1\n", "t.lbf:2: the line 'nodes' belongs behind 'ranks N'");
  says(header + "0 compute 1\nnodes 0,0,0\n", "t.lbf:4: the line 'nodes' belongs");
  says(header + "nodes 0,0,0\nnodes 0,0,0\n", "t.lbf:4: a second 'nodes' line");
  says(header + "nodes 0,0\n", "one number for each rank: 3");
  says(header + "nodes 0,0,0,0\n", "one number for each rank: 3");
  says(header + "nodes\n", "node");
  says(header + "nodes 0,0,\n", "node");
  says(header + "nodes 0, 0, 0\n", "blanks");
  says(header + "nodes 0,-1,0\n", "node");
  says(header + "nodes 0,16777216,0\n", "node");

  std::ostringstream out;
  TextTraceWriter writer(out, 3, {}, "", {4, 4, 5});
  EXPECT_EQ(out.str(), header + "nodes 4,4,5\n");
}

constexpr const char* kFig3 =
    "lbf-trace 1\n"
    "ranks 3\n"
    "0 startRecv 1 from=2 tag=0\n"
    "1 compute 2\n"
    "0 endRecv 0 from=2 tag=0 bytes=0\n"
    "2 send 5 to=0 tag=0 bytes=0\n"
    "1 exit 1\n"
    "2 exit 1\n"
    "0 exit 2\n";

TEST(TextTrace, ReadsTheExampleOfTseFig3) {
  const ReadBack back = read(kFig3);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_EQ(back.info->ranks, 3);
  ASSERT_EQ(back.events.size(), 7u);
  EXPECT_EQ(back.events[0].rank, 0);
  EXPECT_EQ(back.events[0].event.kind, EventKind::kStartRecv);
  EXPECT_EQ(back.events[0].event.peer, 2);
  EXPECT_EQ(back.events[0].event.tag, 0);
  EXPECT_EQ(back.events[0].event.flags, 0);
  EXPECT_EQ(back.events[0].event.process_s, 1.0);
  EXPECT_EQ(back.events[1].event.kind, EventKind::kCompute);
  EXPECT_EQ(back.events[2].event.kind, EventKind::kEndRecv);
  EXPECT_EQ(back.events[3].rank, 2);
  EXPECT_EQ(back.events[3].event.kind, EventKind::kSend);
  EXPECT_EQ(back.events[3].event.peer, 0);
  EXPECT_EQ(back.events[3].event.process_s, 5.0);
  EXPECT_EQ(back.events[6].event.kind, EventKind::kExit);
  EXPECT_EQ(back.events[6].event.process_s, 2.0);
  EXPECT_EQ(write(back), kFig3);
}

TEST(TextTrace, WritesBackWhatItRead) {
  const std::string text =
      "lbf-trace 1\n"
      "ranks 4\n"
      "comm 1 3,1\n"
      "0 isend 0.1 to=1 tag=7 bytes=1024 req=5 sync=1\n"
      "1 startRecv 0.000000123 from=any tag=any req=9\n"
      "1 startRecv 0 from=0 tag=3 req=10 comm=1\n"
      "1 endRecv 2.5 from=0 tag=7 bytes=1024 req=9\n"
      "3 send 1 to=1 tag=3 bytes=64 comm=1\n"
      "0 isend 0 to=2 tag=1 bytes=1125899906842624 req=6\n"
      "0 wait 0.25 req=6,5\n"
      "0 isend 0 to=2 tag=1 bytes=2 req=6\n"
      "0 wait 0 req=6\n"
      "0 coll 0.5 op=barrier\n"
      "3 coll 0.5 op=reduce bytes=8 root=1 comm=1\n"
      "2 coll 1 op=reduce_scatter bytes=80\n"
      "2 blocked 0.125 off=3.75\n"
      "2 blocked 0.125 off=3.75 every=1.25\n"
      "2 preempted 0.125 off=3.75 delay=0.25\n"
      "2 enter 0 proc=solve\xC3\xA9\n"
      "2 compute 0.5 looks=12 time=0.25\n"
      "2 enter 0 proc=main\n"
      "2 leave 1 proc=main\n"
      "1 oneSided 0 op=get_accumulate to=0 bytes=8 comm=1 req=11\n"
      "1 wait 0 req=11\n"
      "1 oneSidedSync 0.5 to=0 comm=1\n"
      "2 oneSided 1 op=lock to=3 bytes=0\n"
      "2 oneSidedSync 0\n"
      "2 exit 0.30000000000000004\n";
  const ReadBack back = read(text);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_THAT(back.info->procedures, ElementsAre("solve\xC3\xA9", "main"));
  // `comm` lines become kCommCreate at each member; the writer says them once, where the first of them came.
  const std::string again = write(back);
  const ReadBack twice = read(again);
  ASSERT_TRUE(twice.info.ok()) << twice.info.error().message;
  EXPECT_EQ(write(twice), again);
  std::vector<std::string> lines;
  std::vector<std::string> lines_again;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::istringstream in_again(again);
  for (std::string line; std::getline(in_again, line);) lines_again.push_back(line);
  // Keys come in one order: comm before req.
  EXPECT_NE(std::find(lines_again.begin(), lines_again.end(), "1 startRecv 0 from=0 tag=3 comm=1 req=10"),
            lines_again.end());
  for (const std::string& line : lines) {
    if (line.find("oneSided") == std::string::npos && line.find("every=") == std::string::npos &&
        line.find("delay=") == std::string::npos && line.find("looks=") == std::string::npos) {
      continue;
    }
    EXPECT_NE(std::find(lines_again.begin(), lines_again.end(), line), lines_again.end()) << line;
  }
  EXPECT_EQ(lines.size(), lines_again.size());
}

TEST(TextTrace, CommLinesAreDefinedAtEveryMemberBeforeItsNextEvent) {
  const ReadBack back = read(
      "lbf-trace 1\nranks 3\n0 compute 1\ncomm 7 2,0\n1 compute 1\n0 coll 0 op=barrier comm=7\n"
      "2 send 0 to=1 tag=0 bytes=8 comm=7\n");
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  ASSERT_EQ(back.events.size(), 6u);
  EXPECT_EQ(back.events[2].event.kind, EventKind::kCommCreate);
  EXPECT_EQ(back.events[2].rank, 0);
  EXPECT_EQ(back.events[2].event.comm, 1u);  // dense, whatever the file calls it
  EXPECT_EQ(back.events[2].event.process_s, 0.0);
  ASSERT_EQ(back.events[2].values.size(), 4u);
  EXPECT_EQ(back.events[2].values[1], 0u);
  EXPECT_EQ(back.events[2].values[2], 2u);
  EXPECT_EQ(back.events[2].values[3], 0u);
  EXPECT_EQ(back.events[3].event.kind, EventKind::kCollective);
  EXPECT_EQ(back.events[3].event.comm, 1u);
  EXPECT_EQ(back.events[4].event.kind, EventKind::kCommCreate);
  EXPECT_EQ(back.events[4].rank, 2);
  EXPECT_EQ(back.events[4].values, back.events[2].values);
  EXPECT_EQ(back.events[5].event.peer, 0);  // rank 1 of (2, 0) is world rank 0
}

TEST(TextTrace, WildcardsRequestsAndWaits) {
  const ReadBack back = read(
      "lbf-trace 1\nranks 2\n0 startRecv 0 from=any tag=3 req=1\n0 isend 0 to=1 tag=1 bytes=1 req=2\n"
      "0 isend 0 to=1 tag=1 bytes=1 req=3\n0 isend 0 to=1 tag=1 bytes=1 req=4\n0 wait 0 req=2\n0 wait 0 "
      "req=4,3\n"
      "0 endRecv 0 from=1 tag=3 bytes=9 req=1\n0 startRecv 0 from=1 tag=any\n0 endRecv 0 from=1 tag=5 "
      "bytes=9\n");
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  const auto& events = back.events;
  EXPECT_EQ(events[0].event.flags, kFlagWildcardSource | kFlagHasRequest);
  EXPECT_EQ(events[0].event.peer, kAnyRank);
  EXPECT_EQ(events[0].event.request, 1u);
  EXPECT_EQ(events[4].event.flags, kFlagHasRequest);
  EXPECT_EQ(events[4].event.request, 2u);
  EXPECT_TRUE(events[4].values.empty());
  EXPECT_EQ(events[5].event.flags, 0);
  EXPECT_THAT(events[5].values, ElementsAre(4u, 3u));
  EXPECT_EQ(events[6].event.bytes, 9u);
  EXPECT_EQ(events[7].event.flags, kFlagWildcardTag);
  EXPECT_EQ(events[8].event.flags, 0);
}

TEST(TextTrace, CommentsBlanksAndLineEnds) {
  const ReadBack back = read(
      "# a trace\n\n  lbf-trace 1   # version\r\nranks\t1 #one\r\n\r\n 0 enter 1 proc=a#b # the rest\n#0 "
      "compute 1\n"
      "0 exit 1");
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_THAT(back.info->procedures, ElementsAre("a#b"));
  EXPECT_EQ(back.events.size(), 2u);
}

TEST(TextTrace, TimesAreWholeNanoseconds) {
  const std::vector<double> times = {0, 1e-9, 0.1, 0.3, 0.333333333, 1234567.123456789, 1e-7, 1e9};
  std::ostringstream out;
  TextTraceWriter writer(out, 1);
  for (const double time : times) {
    Event event;
    event.process_s = time;
    ASSERT_TRUE(writer.add(0, event).ok());
  }
  EXPECT_THAT(out.str(), ::testing::Not(HasSubstr("e-")));  // decimal, as the format says
  const ReadBack back = read(out.str());
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  ASSERT_EQ(back.events.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(back.events[i].event.process_s, times[i]);
  EXPECT_EQ(read("lbf-trace 1\nranks 1\n0 compute 1e-3\n").events.at(0).event.process_s, 1e-3);
}

TEST(TextTrace, PartsOfANanosecondAreTheNextEvents) {
  std::string text = "lbf-trace 1\nranks 2\n0 compute 5e-324\n";
  Nanoseconds sum_ns = 0;
  for (int i = 0; i < 3000; ++i) text += "0 compute 0.000000000333333333333\n1 blocked 0 off=1.75e-9\n";
  Nanoseconds off_ns = 0;
  for (const auto& made : read(text).events) {
    EXPECT_GE(made.event.process_s.ns(), 0);
    sum_ns += made.event.process_s.ns();
    off_ns += made.event.off_s.ns();
  }
  EXPECT_NEAR(static_cast<double>(sum_ns), 1000, 1);
  EXPECT_NEAR(static_cast<double>(off_ns), 3000 * 1.75, 1);
}

TEST(TextTrace, ManyActiveRequestsComeAndGo) {
  std::string text = "lbf-trace 1\nranks 2\n";
  for (int round = 0; round < 3; ++round) {
    for (int q = 0; q < 5000; ++q) {
      text += "0 isend 0 to=1 tag=0 bytes=1 req=" + std::to_string(q * 7919 % 5003) + "\n";
    }
    for (int q = 0; q < 5000; ++q) text += "0 wait 0 req=" + std::to_string(q * 7919 % 5003) + "\n";
  }
  const ReadBack good = read(text);
  ASSERT_TRUE(good.info.ok()) << good.info.error().message;
  EXPECT_EQ(good.events.size(), 30000u);
  EXPECT_FALSE(read(text + "0 wait 0 req=1\n").info.ok());
}

TEST(TextTrace, ALineLongerThanTheReadBuffer) {
  std::string text = "lbf-trace 1\nranks 200000\ncomm 1 0";
  for (int member = 1; member < 200000; ++member) text += "," + std::to_string(member);
  text += "\n199999 send 0 to=5 tag=0 bytes=1 comm=1\n";
  const ReadBack back = read(text);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  ASSERT_EQ(back.events.size(), 2u);
  EXPECT_EQ(back.events[0].values.size(), 200002u);
  EXPECT_EQ(back.events[1].event.peer, 5);
}

TEST(TextTrace, TheSinksErrorStopsTheReader) {
  std::istringstream in(kFig3);
  int events = 0;
  const auto result = read_text_trace(in, "t.lbf", [&](Rank, const Event&) -> Result<void> {
    if (++events == 3) return Error{ErrorCode::kLimit, "enough"};
    return {};
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
  EXPECT_EQ(result.error().message, "enough");
  EXPECT_EQ(events, 3);
}

struct Bad {
  const char* body;  // after "lbf-trace 1\nranks 3\n"
  int line;
  const char* message;
};

class TextTraceErrors : public ::testing::TestWithParam<Bad> {};

TEST_P(TextTraceErrors, NamesLineAndReason) {
  const ReadBack back = read(std::string("lbf-trace 1\nranks 3\n") + GetParam().body);
  ASSERT_FALSE(back.info.ok());
  EXPECT_EQ(back.info.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(back.info.error().message, HasSubstr("t.lbf:" + std::to_string(GetParam().line) + ": "));
  EXPECT_THAT(back.info.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, TextTraceErrors,
    ::testing::Values(Bad{"0 think 1\n", 3, "unknown event kind 'think'"}, Bad{"0\n", 3, "unknown event kind ''"},
                      Bad{"foo 0 compute 1\n", 3, "'foo' is neither a rank"},
                      Bad{"-1 compute 1\n", 3, "neither a rank"},
                      Bad{"3 compute 1\n", 3, "rank 3 is out of range: ranks go from 0 to 2"},
                      Bad{"99999999999999999999 compute 1\n", 3, "too large"},
                      Bad{"0x compute 1\n", 3, "not a whole number"}, Bad{"\n0 compute\n", 4, "process time ''"},
                      Bad{"0 compute -1\n", 3, "is not a time"}, Bad{"0 compute nan\n", 3, "is not a time"},
                      Bad{"0 compute inf\n", 3, "is not a time"}, Bad{"0 compute 1s\n", 3, "is not a time"},
                      Bad{"0 compute .\n", 3, "is not a time"}, Bad{"0 compute 1.2.3\n", 3, "is not a time"},
                      Bad{"0 compute 0x10\n", 3, "is not a time"}, Bad{"0 compute 1e10\n", 3, "more than 1e9"},
                      Bad{"0 compute 1e400\n", 3, "out of range"}, Bad{"0 compute 10000000000\n", 3, "more than 1e9"},
                      Bad{"0 compute 1 to=1\n", 3, "has no key 'to'"},
                      Bad{"0 compute 1 2\n", 3, "not of the form key=value"},
                      Bad{"0 send 1 to=1 tag=0 bytes=1 color=3\n", 3, "unknown key 'color'"},
                      Bad{"0 send 1 to=1 tag=0 bytes=1 req=3\n", 3, "has no key 'req'"},
                      Bad{"0 send 1 to=1 to=2 tag=0 bytes=1\n", 3, "given twice"},
                      Bad{"0 send 1 tag=0 bytes=1\n", 3, "needs the key 'to='"},
                      Bad{"0 send 1 to=1 bytes=1\n", 3, "needs the key 'tag='"},
                      Bad{"0 send 1 to=1 tag=0\n", 3, "needs the key 'bytes='"},
                      Bad{"0 send 1 to=3 tag=0 bytes=1\n", 3, "to=3 is out of range"},
                      Bad{"0 send 1 to=any tag=0 bytes=1\n", 3, "not a whole number"},
                      Bad{"0 send 1 to=1 tag=-1 bytes=1\n", 3, "not a whole number"},
                      Bad{"0 send 1 to=1 tag=2147483648 bytes=1\n", 3, "too large"},
                      Bad{"0 send 1 to=1 tag=0 bytes=-1\n", 3, "not a whole number"},
                      Bad{"0 send 1 to=1 tag=0 bytes=1125899906842625\n", 3, "too large"},
                      Bad{"0 send 1 to=1 tag=0 bytes=1 sync=2\n", 3, "sync must be 0 or 1"},
                      Bad{"0 oneSided 1 op=steal to=1 bytes=1\n", 3, "unknown op 'steal'"},
                      Bad{"0 oneSided 1 op=put bytes=1\n", 3, "needs the key 'to='"},
                      Bad{"0 oneSided 1 op=put to=3 bytes=1\n", 3, "to=3 is out of range"},
                      Bad{"0 oneSidedSync 1 to=1 comm=1\n", 3, "communicator 1 is not defined"},
                      Bad{"0 oneSidedSync 1 bytes=1\n", 3, "has no key 'bytes'"},
                      Bad{"0 send 1 to=1 tag=0 bytes=1 comm=1\n", 3, "communicator 1 is not defined"}));

INSTANTIATE_TEST_SUITE_P(
    Requests, TextTraceErrors,
    ::testing::Values(
        Bad{"0 isend 1 to=1 tag=0 bytes=1\n", 3, "needs the key 'req='"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=1\n0 isend 1 to=1 tag=0 bytes=1 req=1\n", 4, "active already"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=1\n0 startRecv 1 from=1 tag=0 req=1\n", 4, "active already"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=4294967296\n", 3, "too large"},
        Bad{"0 wait 1 req=1\n", 3, "request 1 of rank 0 is not active"},
        Bad{"1 isend 1 to=0 tag=0 bytes=1 req=1\n0 wait 1 req=1\n", 4, "request 1 of rank 0 is not active"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=1\n0 wait 1 req=1,1\n", 4, "not active"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=1\n0 wait 1 req=1,\n", 4, "not a whole number"},
        Bad{"0 startRecv 1 from=1 tag=0 req=1\n0 wait 1 req=1\n", 4, "is a receive"},
        Bad{"0 isend 1 to=1 tag=0 bytes=1 req=1\n0 endRecv 1 from=1 tag=0 bytes=1 req=1\n", 4, "is a send"},
        Bad{"0 endRecv 1 from=1 tag=0 bytes=1 req=1\n", 3, "not active"},
        Bad{"0 endRecv 1 from=1 tag=0 bytes=1\n", 3, "did not start"},
        Bad{"0 startRecv 1 from=1 tag=0 req=1\n0 endRecv 1 from=1 tag=0 bytes=1\n", 4, "did not start"},
        Bad{"0 startRecv 1 from=1 tag=0\n0 startRecv 1 from=1 tag=0\n", 4, "blocking receive already"},
        Bad{"0 startRecv 1 from=1 tag=0\n0 exit 1\n", 4, "endRecv is missing"},
        Bad{"0 startRecv 1 from=1 tag=0\n0 endRecv 1 from=2 tag=0 bytes=1\n", 4, "does not match"},
        Bad{"0 startRecv 1 from=1 tag=0\n0 endRecv 1 from=1 tag=1 bytes=1\n", 4, "does not match"},
        Bad{"comm 1 0,1\n0 startRecv 1 from=1 tag=0 comm=1\n0 endRecv 1 from=1 tag=0 bytes=1\n", 5,
            "another communicator"},
        Bad{"0 endRecv 1 from=any tag=0 bytes=1\n", 3, "not a whole number"}));

INSTANTIATE_TEST_SUITE_P(
    Others, TextTraceErrors,
    ::testing::Values(Bad{"0 coll 1\n", 3, "needs the key 'op='"}, Bad{"0 coll 1 op=gossip\n", 3, "unknown op"},
                      Bad{"0 coll 1 op=bcast root=3\n", 3, "root=3 is out of range"},
                      Bad{"comm 1 0,1\n0 coll 1 op=bcast root=2 comm=1\n", 4, "root=2 is out of range"},
                      Bad{"comm 1 0,1\n2 coll 1 op=bcast comm=1\n", 4, "rank 2 is not a member"},
                      Bad{"comm 1 0,1\ncomm 1 0,2\n", 4, "defined already"},
                      Bad{"comm 0 0,1\n", 3, "communicator 0 is the world"},
                      Bad{"comm 1 0,3\n", 3, "member 3 of communicator 1 is not a rank"},
                      Bad{"comm 1 0,0\n", 3, "twice"}, Bad{"comm 1\n", 3, "not a whole number"},
                      Bad{"comm 1 0, 1\n", 3, "separated by commas"}, Bad{"comm x 0,1\n", 3, "not a whole number"},
                      Bad{"0 blocked 1\n", 3, "needs the key 'off='"}, Bad{"0 blocked 1 off=-1\n", 3, "off '-1'"},
                      Bad{"0 enter 1 proc=\n", 3, "needs a name"}, Bad{"0 enter 1 proc=\xff\n", 3, "UTF-8"},
                      Bad{"0 exit 1\n0 compute 1\n", 4, "rank 0 has an event after its exit"},
                      Bad{"0 exit 1\n0 exit 1\n", 4, "after its exit"}, Bad{"ranks 3\n", 3, "second 'ranks'"},
                      Bad{"lbf-trace 1\n", 3, "second 'lbf-trace'"}));

TEST(TextTraceHeader, IsNeeded) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "t.lbf:1: the header is missing"},
      {"# only this\n", "the header is missing"},
      {"ranks 3\n", "t.lbf:1: this is not a text trace"},
      {std::string("LBFBATCH\0\1\2", 11), "not a text trace"},
      {"lbf-trace 2\nranks 3\n", "t.lbf:1: text trace version '2' is not known"},
      {"lbf-trace\n", "version '' is not known"},
      {"lbf-trace 1\n", "ranks N"},
      {"lbf-trace 1\n0 compute 1\n", "t.lbf:2: the line 'ranks N' must come before"},
      {"lbf-trace 1\ncomm 1 0\n", "t.lbf:2: the line 'ranks N' must come before"},
      {"lbf-trace 1\nranks 0\n", "at least 1"},
      {"lbf-trace 1\nranks -3\n", "not a whole number"},
      {"lbf-trace 1\nranks 16777217\n", "too large"},
      {"lbf-trace 1\nranks 3 4\n", "more than one number"},
  };
  for (const auto& [text, message] : cases) {
    const ReadBack back = read(text);
    ASSERT_FALSE(back.info.ok()) << message;
    EXPECT_EQ(back.info.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(back.info.error().message, HasSubstr(message));
  }
}

TEST(TextTraceHeader, TheLargestTraceIsAllowed) {
  const ReadBack back = read("lbf-trace 1\nranks 16777216\n16777215 exit 1\n");
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_EQ(back.events.at(0).rank, 16777215);
}

TEST(TextTraceHeader, AStreamThatBreaksIsAnIoError) {
  class Broken : public std::streambuf {
    int_type underflow() override { throw std::runtime_error("disk"); }
  } buffer;
  std::istream in(&buffer);
  const auto result = read_text_trace(in, "t.lbf", [](Rank, const Event&) -> Result<void> { return {}; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
}

Event event_of(EventKind kind) {
  Event event;
  event.kind = kind;
  return event;
}

TEST(TextTraceWriter, ABlockingReceiveIsTwoLines) {
  std::ostringstream out;
  TextTraceWriter writer(out, 4);
  Event recv = event_of(EventKind::kRecv);
  recv.flags = kFlagWildcardSource;
  recv.peer = 3;
  recv.tag = 5;
  recv.bytes = 16;
  recv.process_s = 0.5;
  ASSERT_TRUE(writer.add(1, recv).ok());
  EXPECT_EQ(out.str(), "lbf-trace 1\nranks 4\n1 startRecv 0.5 from=any tag=5\n1 endRecv 0 from=3 tag=5 bytes=16\n");
}

TEST(TextTrace, ProcedureLinesReadAndWrite) {
  const std::string text =
      "lbf-trace 1\nranks 1\n0 procedure 0.5 proc=F time=0.25 self=0.125 calls=3\n"
      "0 procedure 0 proc=G time=0.125 self=0.125 calls=1\n0 exit 0\n";
  const ReadBack back = read(text);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  EXPECT_EQ(back.info->procedures, (std::vector<std::string>{"F", "G"}));
  ASSERT_EQ(back.events.size(), 3u);
  EXPECT_EQ(back.events[0].values, (std::vector<std::uint64_t>{0, 250000000, 125000000, 3}));
  std::ostringstream out;
  TextTraceWriter writer(out, 1, back.info->procedures);
  for (const auto& made : back.events) {
    Event event = made.event;
    event.values = made.values;
    ASSERT_TRUE(writer.add(0, event).ok());
  }
  EXPECT_EQ(out.str(), text);
  EXPECT_EQ(read("lbf-trace 1\nranks 1\n0 procedure 0 proc=F time=1\n").events.at(0).values,
            (std::vector<std::uint64_t>{0, 1000000000, 1000000000, 1}));
  EXPECT_FALSE(read("lbf-trace 1\nranks 1\n0 procedure 0 proc=F\n").info.ok());
  EXPECT_FALSE(read("lbf-trace 1\nranks 1\n0 procedure 0 proc=F time=1 self=2\n").info.ok());
}

TEST(TextTrace, RegionLinesReadAndWrite) {
  const std::string text =
      "lbf-trace 1\nranks 1\n0 regions 0.5 count=3 threads=4 work=1.5 critical=0.45 fork=0.03\n0 exit 0\n";
  const ReadBack back = read(text);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  ASSERT_EQ(back.events.size(), 2u);
  EXPECT_EQ(back.events[0].values, (std::vector<std::uint64_t>{3, 4, 1500000000, 450000000, 30000000}));
  std::ostringstream out;
  TextTraceWriter writer(out, 1);
  for (const auto& made : back.events) {
    Event event = made.event;
    event.values = made.values;
    ASSERT_TRUE(writer.add(0, event).ok());
  }
  EXPECT_EQ(out.str(), text);
  for (const char* const bad : {"count=3 threads=4 work=1", "count=0 threads=4 work=1 critical=1",
                                "count=1 threads=0 work=1 critical=1", "count=1 threads=2 work=1 critical=2"}) {
    EXPECT_FALSE(read("lbf-trace 1\nranks 1\n0 regions 1 " + std::string(bad) + "\n").info.ok()) << bad;
  }
}

TEST(TextTrace, DeviceLinesReadAndWrite) {
  const std::string text = "lbf-trace 1\nranks 1\n0 device 0.5 calls=3 busy=0.125\n0 exit 0\n";
  const ReadBack back = read(text);
  ASSERT_TRUE(back.info.ok()) << back.info.error().message;
  ASSERT_EQ(back.events.size(), 2u);
  EXPECT_EQ(back.events[0].values, (std::vector<std::uint64_t>{3, 125000000}));
  std::ostringstream out;
  TextTraceWriter writer(out, 1);
  for (const auto& made : back.events) {
    Event event = made.event;
    event.values = made.values;
    ASSERT_TRUE(writer.add(0, event).ok());
  }
  EXPECT_EQ(out.str(), text);
  EXPECT_EQ(read("lbf-trace 1\nranks 1\n0 device 0.5 calls=1\n").events.at(0).values,
            (std::vector<std::uint64_t>{1, 500000000}));
  for (const char* const bad : {"", "calls=0", "calls=1 busy=0.6"}) {
    EXPECT_FALSE(read("lbf-trace 1\nranks 1\n0 device 0.5 " + std::string(bad) + "\n").info.ok()) << bad;
  }
}

TEST(TextTraceWriter, KeepsTheTimeOfWhatHasNoLine) {
  std::ostringstream out;
  TextTraceWriter writer(out, 1);
  Event keep_alive = event_of(EventKind::kKeepAlive);
  keep_alive.process_s = 2;
  ASSERT_TRUE(writer.add(0, keep_alive).ok());
  ASSERT_TRUE(writer.add(0, event_of(EventKind::kPhase)).ok());
  Event create = event_of(EventKind::kCollective);
  set_op(create, CollectiveOp::kCommCreate);
  ASSERT_TRUE(writer.add(0, create).ok());
  EXPECT_EQ(out.str(), "lbf-trace 1\nranks 1\n0 compute 2\n0 coll 0 op=allreduce bytes=8\n");
}

TEST(TextTraceWriter, RefusesWhatVersion1CannotSay) {
  std::ostringstream out;
  TextTraceWriter writer(out, 4);
  const std::string header = out.str();
  for (const EventKind kind : {EventKind::kProbe, EventKind::kIcollective, EventKind::kUnmodelled, EventKind::kCancel,
                               EventKind::kRequestFree, EventKind::kGap}) {
    EXPECT_FALSE(writer.add(0, event_of(kind)).ok()) << static_cast<int>(kind);
  }
  for (const CollectiveOp op : {CollectiveOp::kExscan, CollectiveOp::kGatherv, CollectiveOp::kNeighborAlltoall}) {
    Event event = event_of(EventKind::kCollective);
    set_op(event, op);
    EXPECT_FALSE(writer.add(0, event).ok());
  }
  EXPECT_FALSE(writer.add(4, event_of(EventKind::kExit)).ok());
  EXPECT_FALSE(writer.add(-1, event_of(EventKind::kExit)).ok());
  EXPECT_FALSE(writer.add(0, event_of(EventKind::kSend)).ok());   // no peer
  EXPECT_FALSE(writer.add(0, event_of(EventKind::kWait)).ok());   // no request
  EXPECT_FALSE(writer.add(0, event_of(EventKind::kEnter)).ok());  // no procedure
  Event not_finite = event_of(EventKind::kCompute);
  not_finite.process_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(writer.add(0, not_finite).ok());
  Event elsewhere = event_of(EventKind::kCollective);
  elsewhere.comm = 1;
  EXPECT_FALSE(writer.add(0, elsewhere).ok());
  Event create = event_of(EventKind::kCommCreate);
  create.comm = 1;
  const std::vector<std::uint64_t> inter = {5, 1, 0, 1};
  create.values = inter;
  EXPECT_FALSE(writer.add(0, create).ok());
  const std::vector<std::uint64_t> outside = {5, 0, 0, 4};
  create.values = outside;
  EXPECT_FALSE(writer.add(0, create).ok());
  EXPECT_EQ(out.str(), header);  // nothing of all that left a trace
}

}  // namespace
}  // namespace lbf::text_trace_test