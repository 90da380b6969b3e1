// lbf-trace info, dump, synth, and what it says to wrong usage and bad input.
#include <filesystem>
#include <sstream>

#include "event/synth.h"
#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::command_test {
namespace {

using testing::HasSubstr;

TEST_F(TraceCommand, SynthMakesWhatItSays) {
  struct Case {
    const char* pattern;
    std::uint64_t messages;
    std::uint64_t collectives;
    double message_bytes;
  };
  // 6 ranks, 5 iterations. stencil2d: 2 x 3, four neighbours each (some of them twice).
  for (const Case& c : {Case{"ring", 30, 0, 30 * 1024.0}, Case{"stencil2d", 120, 0, 120 * 8192.0},
                        Case{"alltoall", 150, 0, 150 * 512.0}, Case{"allreduce", 0, 30, 0}}) {
    for (const std::string form : {"stored", "text"}) {
      const std::string file = std::string(c.pattern) + "." + form;
      output_of("synth --pattern " + std::string(c.pattern) + " --ranks 6 --iterations 5 --to " + form + " -o " + file);
      const nlohmann::json json = nlohmann::json::parse(output_of("info --json " + file));
      EXPECT_EQ(json.at("ranks"), 6) << file;
      EXPECT_EQ(json.at("messages"), c.messages) << file;
      EXPECT_EQ(json.at("collectives"), c.collectives) << file;
      EXPECT_EQ(json.at("message_bytes"), c.message_bytes) << file;
      EXPECT_EQ(json.at("bytes_stored"), std::filesystem::file_size(dir_ + "/" + file)) << file;
      EXPECT_EQ(json.at("form"), form);
      EXPECT_EQ(json.at("ranks_without_exit"), 0);
      if (form == "stored") {
        EXPECT_EQ(json.at("events"), 5 * synth_events_per_iteration(c.pattern, 6) + 6) << file;
      }
      EXPECT_GT(predicted_s(file, "--nodes 2 --cores 2"), 0) << file;
    }
  }
}

TEST_F(TraceCommand, SynthIsTheSameEachTime) {
  const std::string once = output_of("synth --pattern stencil2d --ranks 4 --iterations 3");
  EXPECT_EQ(once, output_of("synth --pattern stencil2d --ranks 4 --iterations 3"));
  EXPECT_NE(once, output_of("synth --pattern stencil2d --ranks 4 --iterations 4"));
}

// What ran with 4, 6 and 9 ranks, with 12.
TEST_F(TraceCommand, AnExtrapolatedTraceIsThatOfTheRankCount) {
  for (const std::string pattern : {"ring", "allreduce"}) {
    std::string runs;
    for (const std::string ranks : {"4", "6", "9", "12"}) {
      const std::string file = pattern + ranks;
      output_of("synth --pattern " + pattern + " --ranks " + ranks + " --iterations 5 -o " + file);
      if (ranks != "12") runs += " " + file;
    }
    output_of("extrapolate" + runs + " --ranks 12 -o made");
    nlohmann::json made = nlohmann::json::parse(output_of("info --json made"));
    nlohmann::json truth = nlohmann::json::parse(output_of("info --json " + pattern + "12"));
    for (const char* key : {"ranks", "events", "messages", "message_bytes", "collectives", "communicators"})
      EXPECT_EQ(made.at(key), truth.at(key)) << pattern << ": " << key;
    EXPECT_GT(predicted_s(runs + " --ranks 12", "--nodes 12"), 0) << pattern;
  }
  expect_error(2, "extrapolate ring4 --ranks 8", "TRACES");
  expect_error(2, "extrapolate ring4 ring6 --ranks 1", "--ranks");
  expect_error(1, "extrapolate ring4 ring4 --ranks 8", "all runs have 4 ranks: run it once with 8");
}

TEST_F(TraceCommand, InfoCounts) {
  const std::string trace =
      write("t.lbf",
            "lbf-trace 1\nranks 3\ncomm 1 0,2\n"
            "0 send 1 to=1 tag=0 bytes=100 comm=1\n"
            "1 compute 2\n"
            "2 startRecv 0.5 from=any tag=0 comm=1\n"
            "2 endRecv 0 from=0 tag=0 bytes=100 comm=1\n"
            "0 startRecv 0 from=1 tag=4\n"
            "1 send 0 to=0 tag=4 bytes=11\n"
            "0 endRecv 0 from=1 tag=4 bytes=11\n"
            "0 coll 0.25 op=bcast bytes=64\n1 coll 0 op=bcast bytes=64\n2 coll 0 op=bcast bytes=64\n"
            "2 blocked 1 off=4\n"
            "0 exit 0\n1 exit 0\n");
  const nlohmann::json json = nlohmann::json::parse(output_of("info " + trace + " --json"));
  EXPECT_EQ(json.at("ranks"), 3);
  EXPECT_EQ(json.at("messages"), 2);
  EXPECT_EQ(json.at("message_bytes"), 111);
  EXPECT_EQ(json.at("receives"), 2);
  EXPECT_EQ(json.at("wildcard_receives"), 1);
  EXPECT_EQ(json.at("collectives"), 3);
  EXPECT_EQ(json.at("communicators"), 1);
  EXPECT_EQ(json.at("ranks_without_exit"), 1);
  // 13 lines, and the communicator at its two members.
  EXPECT_EQ(json.at("events"), 15);
  EXPECT_EQ(json.at("duration_s").at("min"), 1.25);    // rank 0: 1 + 0.25
  EXPECT_EQ(json.at("duration_s").at("median"), 2.0);  // rank 1
  EXPECT_EQ(json.at("duration_s").at("max"), 5.5);     // rank 2: 0.5 + 1 + 4
  EXPECT_EQ(json.at("calls").at("bcast").at("count"), 3);
  EXPECT_EQ(json.at("calls").at("bcast").at("bytes"), 192);
  const std::string table = output_of("info " + trace);
  EXPECT_THAT(table, HasSubstr("Ranks            3, 1 of them without their end"));
  EXPECT_THAT(table, HasSubstr("50.0 % of them with a wildcard"));
  EXPECT_THAT(table, HasSubstr("1 beside MPI_COMM_WORLD, of 2 to 2 ranks"));
  EXPECT_THAT(table, HasSubstr("min 1.250000, median 2.000000, max 5.500000"));
}

// A sum above 2^64 began at 0 again.
TEST_F(TraceCommand, InfoCountsBytesOfAnyNumber) {
  std::vector<RankEvent> events;
  for (int i = 0; i < 3; ++i) {
    Event send;
    send.kind = EventKind::kSend;
    send.peer = 0;
    send.bytes = Bytes{1} << 63;
    events.push_back({0, send});
  }
  write("t.lbfw", stored(1, events));
  EXPECT_THAT(output_of("info t.lbfw"), testing::AllOf(HasSubstr("3 point-to-point, 27670116110564327424 bytes"),
                                                       HasSubstr(" 27670116110564327424 ")));
  const nlohmann::json info = nlohmann::json::parse(output_of("info --json t.lbfw"));
  EXPECT_DOUBLE_EQ(info["message_bytes"].get<double>(), 27670116110564327424.0);
}

TEST_F(TraceCommand, DumpSaysAllThatIsKnown) {
  Event send;
  send.kind = EventKind::kIsend;
  send.flags = kFlagHasRequest | kFlagSync;
  send.peer = 1;
  send.tag = 7;
  send.bytes = 512;
  send.request = 3;
  send.process_s = 0.5;
  send.call_s = 0.25;
  Event gather;
  gather.kind = EventKind::kIcollective;
  set_op(gather, CollectiveOp::kAllgatherv);
  gather.flags = kFlagHasRequest;
  gather.request = 9;
  gather.bytes = 8;
  const std::vector<std::uint64_t> counts{8, 24};
  gather.values = counts;
  Event gap;
  gap.kind = EventKind::kGap;
  gap.bytes = 17;
  const std::string trace = write("t.lbfw", stored(2, {{0, send}, {1, gather}, {0, gap}}));
  EXPECT_EQ(output_of("dump " + trace),
            "0 isend 0.5 to=1 tag=7 bytes=512 req=3 sync=1 call=0.25\n"
            "0 gap 0 lost=17\n"
            "1 icoll 0 op=allgatherv bytes=8 root=0 req=9 counts=8,24\n");
  EXPECT_EQ(output_of("dump " + trace + " --rank 1"), "1 icoll 0 op=allgatherv bytes=8 root=0 req=9 counts=8,24\n");
  EXPECT_EQ(output_of("dump " + trace + " --limit 1"), "0 isend 0.5 to=1 tag=7 bytes=512 req=3 sync=1 call=0.25\n");
  expect_error(1, "dump " + trace + " --rank 2", "ranks 0 to 1");
}

TEST_F(TraceCommand, UsageErrorsExit2) {
  expect_error(2, "", "subcommand");
  expect_error(2, "nonsense", "lbf-trace --help");
  expect_error(2, "info", "TRACE");
  expect_error(2, "convert " + fig3_ + " --to xml", "--to");
  expect_error(2, "export " + fig3_, "--format");
  expect_error(2, "export " + fig3_ + " --format otf2", "--format");
  expect_error(2, "export " + fig3_ + " --format ti", "-o FILE");
  expect_error(2, "export " + fig3_ + " --format timeline", "--nodes is missing");
  expect_error(2, "import x --flops-per-second 0", "'0' is no number above 0");
  expect_error(2, "import x --flops-per-second -1", "'-1' is no number above 0");
  expect_error(2, "synth --pattern star --ranks 4 --iterations 1", "--pattern");
  expect_error(2, "synth --pattern ring --ranks 1 --iterations 1", "--ranks");
  expect_error(2, "synth --pattern ring --ranks 4", "--iterations");
  expect_error(2, "info 12 --server lbfd.sock", "'lbfd.sock' is no address of lbfd");
  for (const char* command : {"", "info", "dump", "convert", "import", "export", "synth", "extrapolate"}) {
    EXPECT_EQ(run(std::string(command) + " --help").status, 0) << command;
  }
  EXPECT_THAT(run("--version").out, HasSubstr("lbf-trace "));
}

TEST_F(TraceCommand, BadInputIsNamedAndLeavesNothing) {
  const std::string bad = write("bad.lbf", "lbf-trace 1\nranks 2\n0 compute 1\n0 dance 1\n");
  const std::string noise = write("noise.bin", std::string(100, 'x'));
  const std::string whole = stored(1, {{0, Event{}}});
  const std::string cut = write("cut.lbfw", whole.substr(0, whole.size() - 1));
  std::string flipped_bytes = whole;
  flipped_bytes[whole.size() - 3] = static_cast<char>(flipped_bytes[whole.size() - 3] ^ 16);
  const std::string flipped = write("flipped.lbfw", flipped_bytes);
  for (const std::string command :
       {"info TRACE", "dump TRACE -o out", "convert TRACE --to text -o out", "convert TRACE --to stored -o out",
        "export TRACE --format goal -o out", "export TRACE --format timeline --nodes 1 -o out"}) {
    const auto with = [&](const std::string& trace) {
      std::string arguments = command;
      return arguments.replace(arguments.find("TRACE"), 5, trace);
    };
    expect_error(1, with(bad), "bad.lbf:4");
    expect_error(1, with(noise), "noise.bin");
    expect_error(1, with(cut), "cut.lbfw");
    expect_error(1, with(flipped), "flipped.lbfw");
    expect_error(1, with("/nonexistent.lbf"), "/nonexistent.lbf");
    EXPECT_FALSE(std::filesystem::exists(dir_ + "/out")) << command;
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("new-"))) << "a half written file is left";
  }
  // Some bytes that announce the most ranks there may be: minutes without a word.
  expect_error(1, "import " + write("huge.ti", "16777215 barrier\n"), "announces 16777216 ranks and has 17 bytes");
  expect_error(1, "info " + write("huge.lbf", "lbf-trace 1\nranks 16777216\n"),
               "announces 16777216 ranks and has 27 bytes");
  write("it's.lbf.zst", "\x28\xb5\x2f\xfd and more");
  expect_error(1, R"(info "it's.lbf.zst")", R"(is compressed (zstd); first: unzstd 'it'\''s.lbf.zst')");
  expect_error(1, "convert " + fig3_ + " -o " + dir_, "is a folder");
  expect_error(1, "convert " + fig3_ + " -o " + dir_ + "/no/such/folder", "cannot be written");
  if (std::filesystem::exists("/dev/full")) {
    expect_error(1, "convert " + fig3_ + " -o /dev/full", "/dev/full: cannot be written");
    expect_error(1, "export " + fig3_ + " --format goal -o /dev/full", "/dev/full: cannot be written");
  }
}

}  // namespace
}  // namespace lbf::trace_test::command_test