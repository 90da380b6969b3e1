// lbf-trace import and export of SimGrid's time-independent traces.
#include <filesystem>
#include <sstream>

#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::ti_test {
namespace {

using testing::HasSubstr;

TEST_F(TraceCommand, TiActionsBecomeEvents) {
  write("0.txt",
        "# rank 0 counts in bytes\n"
        "0 init\n"
        "0 compute 2e9\n"
        "0 irecv 1 5 100 0\n"
        "0 isend 1 6 10\n"
        "0 test 1 0 5\n"
        "0 wait 1 0 5\n"
        "0 wait 0 1 6\n"
        "0 bcast 3 1 1\n"
        "0 allreduce 4 1e9 1\n"
        "0 reducescatter 5 5 0\n"
        "0 sleep 0.5\n"
        "0 location t.c 12\n"
        "0 comm_split\n"
        "0 finalize\n");
  write("1.txt",
        "1 init 1\n"  // rank 1 in doubles
        "1 recv 0 6 2\n"
        "1 send 0 5 100\n"
        "1 bcast 3 1 1\n"
        "1 allreduce 4 0 1\n"
        "1 reducescatter 5 5 0 6\n");
  write("list", "0.txt\n\n1.txt\n");
  const test::Outcome result = run("import list --to text");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(
      lines_of_ranks(result.out, 2),
      (std::vector<std::vector<std::string>>{
          {"0 startRecv 2 from=1 tag=5 req=0", "0 isend 0 to=1 tag=6 bytes=10 req=1",
           "0 endRecv 0 from=1 tag=5 bytes=800 req=0", "0 wait 0 req=1", "0 coll 0 op=bcast bytes=12 root=1",
           "0 coll 0 op=allreduce bytes=16", "0 coll 1 op=reduce_scatter bytes=5", "0 blocked 0 off=0.5", "0 exit 0"},
          {"1 startRecv 0 from=0 tag=6", "1 endRecv 0 from=0 tag=6 bytes=16", "1 send 0 to=0 tag=5 bytes=800",
           "1 coll 0 op=bcast bytes=12 root=1", "1 coll 0 op=allreduce bytes=16", "1 coll 0 op=reduce_scatter bytes=5",
           "1 exit 0"}}));
  EXPECT_THAT(result.err, HasSubstr("1 test actions"));
  EXPECT_THAT(result.err, HasSubstr("1 ranks have no finalize"));
  EXPECT_THAT(result.err, HasSubstr("1 actions without a meaning"));
  EXPECT_THAT(result.err, HasSubstr("1 comm_split actions"));
  EXPECT_THAT(run("import list --to text --flops-per-second 4e9").out, HasSubstr("0 startRecv 0.5 from=1"));
}

TEST_F(TraceCommand, TiInOneFile) {
  const std::string actions =
      "0 init\n1 init\n2 init\n"
      "0 irecv 1 0 2000\n1 isend 0 0 2000\n2 irecv 1 1 3000\n"
      "0 irecv 2 2 3000\n1 isend 2 1 3000\n2 isend 0 2 3000\n"
      "0 waitall\n1 waitall 2\n2 waitall\n"
      "0 sendRecv 8 1 4 2 6 6\n1 sendRecv 8 2 8 0 6 6\n2 sendRecv 4 0 8 1 6 6\n"
      "0 gatherv 1 1 2 3 1\n1 gatherv 2 1 2 3 1\n2 gatherv 3 1 2 3 1\n"
      "0 scatterv 1 2 3 1 2\n1 scatterv 1 2 3 2 2\n2 scatterv 1 2 3 3 2\n"
      "0 allgatherv 1 1 2 3 1 1\n1 allgatherv 2 1 2 3 1 1\n2 allgatherv 3 1 2 3 1 1\n"
      "0 reducescatter 1 2 3 0\n1 reducescatter 1 2 3 0\n2 reducescatter 1 2 3 0\n"
      "0 alltoallv 100 1 40 30 1000 1 80 100\n1 alltoallv 1000 80 1 40 1000 40 1 30\n"
      "2 alltoallv 1000 100 30 1 1000 30 40 1\n"
      "0 Ssend 1 7 1\n1 recv 0 7 -1\n0 bsend 1 7 2\n1 recv 0 7 -1\n"
      "0 finalize\n1 finalize\n2 finalize\n";
  write("one.txt", actions);
  write("list", "one.txt\n");
  output_of("import list -o t.lbfw");
  const std::string rank0 = output_of("dump t.lbfw --rank 0");
  EXPECT_EQ(rank0,
            "0 startRecv 0 from=1 tag=0 req=0\n"
            "0 startRecv 0 from=2 tag=2 req=1\n"
            "0 endRecv 0 from=1 tag=0 bytes=2000 req=0\n"
            "0 endRecv 0 from=2 tag=2 bytes=3000 req=1\n"
            "0 startRecv 0 from=2 tag=0 req=4294967295\n"
            "0 send 0 to=1 tag=0 bytes=8\n"
            "0 endRecv 0 from=2 tag=0 bytes=4 req=4294967295\n"
            "0 coll 0 op=gatherv bytes=1 root=1\n"
            "0 coll 0 op=scatterv bytes=1 root=2\n"
            "0 coll 0 op=allgatherv bytes=4 root=0 counts=4,8,12\n"
            "0 coll 0 op=reduce_scatter bytes=6 root=0 counts=1,2,3\n"
            "0 coll 0 op=alltoallv bytes=71 root=0 counts=1,40,30,1,80,100\n"
            "0 send 0 to=1 tag=7 bytes=1 sync=1\n"
            "0 send 0 to=1 tag=7 bytes=2 buffered=1\n"
            "0 exit 0\n");
  EXPECT_THAT(output_of("dump t.lbfw --rank 1"),
              testing::AllOf(HasSubstr("1 isend 0 to=0 tag=0 bytes=2000 req=0\n1 isend 0 to=2 tag=1 bytes=3000 req=1\n"
                                       "1 wait 0 reqs=0,1\n"),
                             HasSubstr("1 coll 0 op=gatherv bytes=2 root=1 counts=1,2,3\n")));
  EXPECT_EQ(output_of("import one.txt --to stored -o -"), read("t.lbfw"));
  EXPECT_EQ(predicted_s("t.lbfw", "--nodes 3"), 0);  // and it runs to its end
  expect_error(1, "import one.txt --to text -o out", "--to stored");
}

TEST_F(TraceCommand, TiThereAndBackTakesAsLong) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Rank ranks = 2 + static_cast<Rank>(seed % 5);
    const bool communicators = seed % 2 == 0;
    write("t.lbf", random_program(seed, ranks, communicators, 50));
    output_of("export t.lbf --format ti -o t.ti");
    output_of("import t.ti -o back.lbfw");
    for (const std::string& options : {"--nodes " + std::to_string(ranks), std::string("--nodes 1 --cores 1")}) {
      EXPECT_NEAR(predicted_s("t.lbf", options), predicted_s("back.lbfw", options), 1e-9) << "seed " << seed;
    }
    const nlohmann::json before = nlohmann::json::parse(output_of("info --json t.lbf"));
    const nlohmann::json after = nlohmann::json::parse(output_of("info --json back.lbfw"));
    if (!communicators) {
      for (const char* key : {"messages", "message_bytes", "receives", "collectives"}) {
        EXPECT_EQ(before[key], after[key]) << key << " of seed " << seed;
      }
      EXPECT_EQ(after["wildcard_receives"], 0);  // the match that happened
    }
    output_of("export back.lbfw --format ti -o again.ti");
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::string file = ".ti_files/" + std::to_string(rank) + ".txt";
      // Neighbouring compute actions become one, and times are rounded to ns on the way.
      const auto without_compute = [this](const std::string& name) {
        std::vector<std::string> lines;
        std::istringstream in(read(name));
        for (std::string line; std::getline(in, line);) {
          if (line.find(" compute ") == std::string::npos) lines.push_back(line);
        }
        return lines;
      };
      EXPECT_EQ(without_compute("t" + file), without_compute("again" + file)) << "seed " << seed << ", " << file;
    }
  }
}

TEST_F(TraceCommand, TiOfASmallTrace) {
  write("t.lbf",
        "lbf-trace 1\nranks 2\n"
        "0 startRecv 0.000001 from=any tag=any req=4\n"
        "0 isend 0 to=1 tag=4 bytes=10 req=1\n"
        "0 isend 0 to=1 tag=4 bytes=0 req=2\n"
        "0 endRecv 0.5 from=1 tag=5 bytes=20 req=4\n"
        "0 wait 0 req=1,2\n"
        "0 send 0 to=1 tag=6 bytes=30 buffered=1\n"
        "0 coll 0.25 op=allreduce bytes=16\n"
        "0 blocked 0 off=0.125\n"
        "0 exit 0\n"
        "1 startRecv 0 from=0 tag=4\n1 endRecv 0 from=0 tag=4 bytes=10\n"
        "1 startRecv 0 from=0 tag=4\n1 endRecv 0 from=0 tag=4 bytes=0\n"
        "1 send 0 to=0 tag=5 bytes=20\n"
        "1 startRecv 0 from=0 tag=6\n1 endRecv 0 from=0 tag=6 bytes=30\n"
        "1 coll 0 op=allreduce bytes=16\n1 exit 0\n");
  output_of("export t.lbf --format ti -o sub.ti --flops-per-second 2e9");
  EXPECT_EQ(read("sub.ti"), "sub.ti_files/0.txt\nsub.ti_files/1.txt\n");
  EXPECT_EQ(read("sub.ti_files/0.txt"),
            "0 init\n0 compute 2000\n"
            "0 irecv 1 5 20\n"  // the message that it took
            "0 isend 1 4 10\n"
            "0 send 1 4 0\n"  // SimGrid would keep the request of a wait that takes no time
            "0 compute 1e+09\n0 wait 1 0 5\n0 wait 0 1 4\n"
            "0 send 1 6 30\n"  // buffered: no request either
            "0 compute 5e+08\n0 allreduce 16 0\n0 sleep 0.125\n0 finalize\n");
  EXPECT_EQ(read("sub.ti_files/1.txt"),
            "1 init\n1 irecv 0 4 10\n1 wait 0 1 4\n1 irecv 0 4 0\n1 wait 0 1 4\n1 send 0 5 20\n1 irecv 0 6 "
            "30\n1 wait 0 1 6\n1 allreduce 16 0\n"
            "1 finalize\n");
  // The list can be read from elsewhere, too.
  EXPECT_EQ(run("cd / && " LBF_TRACE, "import " + dir_ + "/sub.ti --to text").status, 0);
}

// 17,179,869,177 bytes became 17,179,869,176.
TEST_F(TraceCommand, TiOfHugeMessages) {
  const auto of = [](std::uint64_t bytes) {
    return "lbf-trace 1\nranks 2\n0 send 0 to=1 tag=0 bytes=" + std::to_string(bytes) +
           "\n1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=" + std::to_string(bytes) +
           "\n0 exit 0\n1 exit 0\n";
  };
  const auto sent = [&](std::uint64_t bytes) {
    write("t.lbf", of(bytes));
    const test::Outcome exported = run("export t.lbf --format ti -o t.ti");
    EXPECT_EQ(exported.status, 0) << exported.err;
    output_of("import t.ti -o back.lbfw");
    return std::pair(nlohmann::json::parse(output_of("info --json back.lbfw"))["message_bytes"].get<std::uint64_t>(),
                     exported.err);
  };
  for (const std::uint64_t bytes : {2147483647ULL, 2147483648ULL, 17179869176ULL, 17179869184ULL, 68719476704ULL}) {
    EXPECT_EQ(sent(bytes), std::pair(bytes, std::string())) << bytes;
  }
  const auto [rounded, said] = sent(17179869177);
  EXPECT_EQ(rounded, 17179869184U);
  EXPECT_THAT(said, HasSubstr("rounded up"));
  write("t.lbf", of(68719476705));
  expect_error(1, "export t.lbf --format ti -o t.ti", "a message has 68719476705 bytes");
}

TEST_F(TraceCommand, TiCountsThatDoNotFit) {
  const auto said = [this](const std::string& actions) {
    write("one.txt", actions);
    return run("import one.txt -o t.lbfw").err;
  };
  const std::string init = "0 init\n1 init\n";
  EXPECT_EQ(said(init + "0 alltoallv 3 1 2 3 1 3\n1 alltoallv 7 3 4 6 2 4\n0 gatherv 5 5 6\n1 gatherv 6 5 6\n"
                        "0 scatterv 5 6 5 1\n1 scatterv 5 6 6 1\n0 bcast 7\n1 bcast 7\n0 finalize\n1 finalize\n"),
            "");
  EXPECT_THAT(said(init + "0 barrier\n1 barrier\n0 alltoallv 3 1 2 3 1 3\n1 alltoallv 7 3 4 6 1 4\n"
                          "0 bcast 7\n1 bcast 8\n0 finalize\n1 finalize\n"),
              testing::AllOf(HasSubstr("2 collectives have counts that do not fit"),
                             HasSubstr("the first: alltoallv, number 2 of each rank")));
  for (const char* actions :
       {"0 gatherv 5 5 6\n1 gatherv 7 5 6\n", "0 scatterv 5 6 7 1\n1 scatterv 5 6 6 1\n",
        "0 reducescatter 1 2 0\n1 reducescatter 2 1 0\n", "0 allgatherv 1 1 2\n1 allgatherv 2 2 1\n",
        "0 allreduce 1 0\n1 allreduce 2 0\n", "0 reducescatter 2 2 0\n1 reducescatter 2 1 0\n"}) {
    EXPECT_THAT(said(init + actions + "0 finalize\n1 finalize\n"), HasSubstr("1 collectives have counts")) << actions;
  }
}

// A master takes what comes first: rank 2's answer, then rank 1's. The specific receive that is posted before a
// wildcard has the first message of its rank, and what is sent after a barrier comes after what is sent before it.
TEST_F(TraceCommand, TiReceivesWithWildcards) {
  write("one.txt",
        "0 init\n1 init\n2 init\n"
        "0 recv -555 -444 8\n0 recv -1 7 8\n"
        "0 irecv -555 1 8\n0 irecv 1 2 8\n0 irecv -555 -444 8\n0 wait -555 0 1\n0 waitall\n"
        "0 barrier\n0 recv -555 5 8\n0 finalize\n"
        "1 compute 2e9\n1 send 0 7 8\n1 send 0 2 8\n1 send 0 2 16\n1 barrier\n1 compute 1e9\n1 send 0 5 8\n1 finalize\n"
        "2 compute 1e9\n2 send 0 9 8\n2 send 0 1 8\n2 barrier\n2 send 0 5 8\n2 finalize\n");
  write("list", "one.txt\n");
  const test::Outcome result = run("import list --to text");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("5 receives with a wildcard take the message that comes first"));
  EXPECT_EQ(
      lines_of_ranks(result.out, 3)[0],
      (std::vector<std::string>{
          "0 startRecv 0 from=any tag=any", "0 endRecv 0 from=2 tag=9 bytes=8", "0 startRecv 0 from=any tag=7",
          "0 endRecv 0 from=1 tag=7 bytes=8", "0 startRecv 0 from=any tag=1 req=0", "0 startRecv 0 from=1 tag=2 req=1",
          "0 startRecv 0 from=any tag=any req=2", "0 endRecv 0 from=2 tag=1 bytes=8 req=0",
          "0 endRecv 0 from=1 tag=2 bytes=8 req=1", "0 endRecv 0 from=1 tag=2 bytes=8 req=2", "0 coll 0 op=barrier",
          "0 startRecv 0 from=any tag=5", "0 endRecv 0 from=2 tag=5 bytes=8", "0 exit 0"}));
  write("two.lbf", result.out);
  EXPECT_EQ(predicted_s("two.lbf", "--nodes 3"), 3);
}

TEST_F(TraceCommand, TiOfMoreRanksThanFilesMayBeOpen) {
  output_of("synth --pattern ring --ranks 300 --iterations 20 -o t.lbfw");
  output_of("export t.lbfw --format ti -o t.ti");
  output_of("import t.ti -o back.lbfw");
  EXPECT_NEAR(predicted_s("t.lbfw", "--nodes 300"), predicted_s("back.lbfw", "--nodes 300"), 1e-9);
}

TEST_F(TraceCommand, BadTiNamesTheLine) {
  const auto refuses = [this](const std::string& actions, const std::string& says) {
    write("bad.txt", actions);
    expect_error(1, "import bad.txt -o out", says);
    EXPECT_FALSE(std::filesystem::exists(dir_ + "/out"));
  };
  refuses("0 init\n0 dance 1\n", "bad.txt:2: 'dance' is no action");
  refuses("0 init\n0 iallreduce 1 0\n", "non-blocking collectives");
  refuses("0 send 1 0 5\n", "destination 1: there are 1 ranks");
  refuses("0 recv -555 0 5\n", "bad.txt:1: no message is left for this receive with a wildcard");
  refuses("0 irecv 0 -444 5\n", "no message is left");
  refuses("0 send -555 0 5\n", "'-555' is no destination");
  refuses("0 send 0 -444 5\n", "'-444' is no tag");
  refuses("0 send 0 0\n", "bad.txt:1: send needs at least 3 parameters");
  refuses("0 send 0 0 -4\n", "'-4' is no count");
  refuses("0 send 0 0 1e30\n", "'1e30' is no count");
  refuses("0 send 0 0 nan\n", "'nan' is no count");
  refuses("0 send 0 0 4 99\n", "'99' is no datatype");
  refuses("0 compute -1\n", "'-1' is no amount");
  refuses("0 compute x\n", "'x' is no amount");
  refuses("0 compute 1e300\n", "--flops-per-second");
  refuses("0 bcast 4 7\n", "root 7");
  refuses("0 finalize\n0 compute 1\n", "bad.txt:2: an action after finalize");
  // The roots of two halves of MPI_COMM_WORLD: as one bcast of all it would be a wrong number.
  refuses("0 bcast 4 0\n1 bcast 4 1\n", "bad.txt:2: bcast: root 1, but rank 0 names root 0 in the same collective");
  refuses("0 barrier\n0 gather 4 4 1\n1 barrier\n1 gather 4 4 0\n",
          "bad.txt:4: gather: root 0, but rank 0 names root 1");
  refuses("-1 init\n", "'-1' is no rank");
  refuses("99999999 init\n", "'99999999' is no rank");
  refuses("", "bad.txt: has no action");
  refuses("nothing.txt\n", "nothing.txt: no such file");
  refuses("\x1f\x8b\x08 and more", "bad.txt: is compressed (gzip); first: gunzip bad.txt");
  refuses(std::string(100, '\x80') + "\n", "no such file");
  refuses("0 init\nnothing.txt\n", "bad.txt:2: 'nothing.txt' is no action");
  refuses("# itself\nbad.txt\n", "bad.txt:2: bad.txt is this list itself");
  refuses("./bad.txt\n", "bad.txt:1: ./bad.txt is this list itself");
  write("back.txt", "bad.txt\n");
  refuses("back.txt\n", "back.txt:1: bad.txt is a list that leads here");
  refuses("bad.txt\nbad.txt\n", "bad.txt:1: 'bad.txt' is no action");
  write("0.txt", "1 init\n");
  write("1.txt", "1 init\n");
  refuses("0.txt\n1.txt\n", "0.txt:1: an action of rank 1 in the file of rank 0");
  expect_error(1, "import /nonexistent", "/nonexistent: cannot open");
}

}  // namespace
}  // namespace lbf::trace_test::ti_test