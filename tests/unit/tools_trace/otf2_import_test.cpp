// lbf-trace import of OTF2 archives as Score-P writes them, and of what the export writes.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/unit/tools_trace/fixture.h"
#include "tests/unit/tools_trace/otf2_writer.h"

namespace lbf::trace_test::otf2_import_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Lines = std::vector<std::string>;

class Otf2Import : public TraceCommand {
 protected:
  std::string folder() const { return dir_ + "/archive"; }
  // As text, by rank.
  std::vector<Lines> imported(Rank ranks, const std::string& says = "") {
    const test::Outcome result = run("import archive/traces.otf2 --to text");
    EXPECT_EQ(result.status, 0) << result.err;
    if (says.empty()) {
      EXPECT_EQ(result.err, "");
    } else {
      EXPECT_THAT(result.err, HasSubstr(says));
    }
    return lines_of_ranks(result.out, ranks);
  }
  // As lbf-trace dump shows them: what text cannot say, too.
  std::vector<Lines> dumped(Rank ranks, const std::string& says = "") {
    const test::Outcome result = run("import archive/traces.otf2 -o t.lbfw");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    return lines_of_ranks(output_of("dump t.lbfw"), ranks);
  }
  void refused(const std::string& says) {
    expect_error(1, "import archive/traces.otf2 -o refused.lbfw", says);
    std::filesystem::remove_all(folder());
  }
};

TEST_F(Otf2Import, RecordsBecomeEvents) {
  Otf2Writer out(folder(), 3);
  const OTF2_CommRef part = out.communicator({2, 0});
  for (std::uint32_t rank = 0; rank < 3; ++rank) out.init(rank, 0, 1000);
  out.send(0, 3000, 3500, 1, 5, 100);
  out.enter(0, 4000, "MPI_Irecv");
  OTF2_EvtWriter_MpiIrecvRequest(out.events(0), nullptr, 4100, 1);
  out.leave(0, 4100, "MPI_Irecv");
  out.enter(0, 4200, "MPI_Isend");
  OTF2_EvtWriter_MpiIsend(out.events(0), nullptr, 4200, 2, 0, 6, 200, 2);
  out.leave(0, 4300, "MPI_Isend");
  out.enter(0, 5000, "MPI_Waitall");
  OTF2_EvtWriter_MpiIsendComplete(out.events(0), nullptr, 5500, 2);
  OTF2_EvtWriter_MpiIrecv(out.events(0), nullptr, 6000, 2, 0, 7, 300, 1);
  out.leave(0, 6000, "MPI_Waitall");
  out.collective(0, 7000, 7100, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 128, 64, 1, part);
  out.recv(1, 1500, 3600, 0, 5, 100);
  out.recv(2, 2000, 4400, 0, 6, 200);
  out.send(2, 5000, 5900, 0, 7, 300, 0, "MPI_Ssend");
  out.collective(2, 6000, 7100, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 0, 64, 1, part);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    out.collective(rank, 8000, 8200, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 21, 21);
    out.enter(rank, 9000, "MPI_Finalize");
    out.leave(rank, 9500, "MPI_Finalize");
  }
  out.close();
  EXPECT_THAT(
      imported(3),
      ElementsAre(
          ElementsAre("0 send 0.000002 to=1 tag=5 bytes=100", "0 startRecv 0.0000005 from=2 tag=7 req=0",
                      "0 isend 0.0000001 to=2 tag=6 bytes=200 req=1", "0 wait 0.0000007 req=1",
                      "0 endRecv 0 from=2 tag=7 bytes=300 req=0", "0 coll 0.000001 op=bcast bytes=64 root=1 comm=1",
                      "0 coll 0.0000009 op=allreduce bytes=7", "0 exit 0.0000008"),
          ElementsAre("1 startRecv 0.0000005 from=0 tag=5", "1 endRecv 0 from=0 tag=5 bytes=100",
                      "1 coll 0.0000044 op=allreduce bytes=7", "1 exit 0.0000008"),
          ElementsAre("2 startRecv 0.000001 from=0 tag=6", "2 endRecv 0 from=0 tag=6 bytes=200",
                      "2 send 0.0000006 to=0 tag=7 bytes=300 sync=1",
                      "2 coll 0.0000001 op=bcast bytes=64 root=1 comm=1", "2 coll 0.0000009 op=allreduce bytes=7",
                      "2 exit 0.0000008")));
  // Rank 0 works until it sends at 2 us, rank 2 until 3.6 us after its receive ...
  EXPECT_NEAR(predicted_s("archive/traces.otf2", "--nodes 3 --cores 1 --network zero"),
              predicted_s("archive", "--nodes 3 --cores 1 --network zero"), 0);
}

TEST_F(Otf2Import, TimesInCallsAreMeasured) {
  Otf2Writer out(folder(), 2, {.node_of_rank = {0, 1}});
  out.enter(0, 0, "main");
  out.send(0, 10, 30, 1, 0, 8);
  out.leave(0, 100, "main");
  out.enter(1, 0, "main");
  out.recv(1, 5, 45, 0, 0, 8);
  out.leave(1, 100, "main");
  out.close();
  run("import archive -o t.lbfw");
  const nlohmann::json info = nlohmann::json::parse(output_of("info t.lbfw --json"));
  EXPECT_DOUBLE_EQ(info["duration_s"]["max"].get<double>(), 100e-9);
  EXPECT_DOUBLE_EQ(info["call_s"].get<double>(), 60e-9);
  EXPECT_DOUBLE_EQ(info["process_s"].get<double>(), 140e-9);
  EXPECT_EQ(info["node_of_rank"], nlohmann::json({0, 1}));
}

TEST_F(Otf2Import, SizesAreThoseOfOneRank) {
  Otf2Writer out(folder(), 4);
  std::uint64_t now = 100;
  using Bytes = std::pair<std::uint64_t, std::uint64_t>;  // sent, received
  const auto each = [&](const std::string& function, OTF2_CollectiveOp op, auto bytes_of,
                        std::uint32_t root = OTF2_COLLECTIVE_ROOT_NONE) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const Bytes bytes = bytes_of(rank);
      out.collective(rank, now, now + 50, function, op, bytes.first, bytes.second, root);
    }
    now += 100;
  };
  const auto rooted = [&](const std::string& function, OTF2_CollectiveOp op, Bytes of_root, Bytes of_others) {
    each(
        function, op, [&](std::uint32_t rank) { return rank == 2 ? of_root : of_others; }, 2);
  };
  each("MPI_Allgather", OTF2_COLLECTIVE_OP_ALLGATHER, [](std::uint32_t) { return Bytes{40, 40}; });
  // 3 of each other rank: MPI_IN_PLACE
  each("MPI_Alltoall", OTF2_COLLECTIVE_OP_ALLTOALL, [](std::uint32_t) { return Bytes{9, 9}; });
  rooted("MPI_Scatter", OTF2_COLLECTIVE_OP_SCATTER, {80, 20}, {0, 20});
  rooted("MPI_Gather", OTF2_COLLECTIVE_OP_GATHER, {0, 60}, {20, 0});  // in place at the root
  rooted("MPI_Reduce", OTF2_COLLECTIVE_OP_REDUCE, {5, 20}, {5, 0});
  each("MPI_Scan", OTF2_COLLECTIVE_OP_SCAN, [](std::uint32_t rank) { return Bytes{(4 - rank) * 6, (rank + 1) * 6}; });
  each("MPI_Exscan", OTF2_COLLECTIVE_OP_EXSCAN, [](std::uint32_t rank) { return Bytes{(3 - rank) * 6, rank * 6}; });
  rooted("MPI_Gatherv", OTF2_COLLECTIVE_OP_GATHERV, {7, 22}, {5, 0});
  each("MPI_Allgatherv", OTF2_COLLECTIVE_OP_ALLGATHERV, [](std::uint32_t rank) { return Bytes{4 * (rank + 1), 10}; });
  each("MPI_Reduce_scatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER, [](std::uint32_t rank) {
    return Bytes{10, 4 * (rank + 1)};
  });
  each("MPI_Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV, [](std::uint32_t rank) { return Bytes{6 * rank, 9}; });
  out.close();
  Lines rank2 = dumped(4, "alltoallv and alltoallw have a sum")[2];
  for (std::string& line : rank2) line = line.substr(0, line.find(" call="));
  EXPECT_THAT(
      rank2,
      ElementsAre("2 coll 0 op=allgather bytes=10 root=0", HasSubstr("op=alltoall bytes=3 root=0 inPlace=1"),
                  HasSubstr("op=scatter bytes=20 root=2"), HasSubstr("op=gather bytes=20 root=2 inPlace=1"),
                  HasSubstr("op=reduce bytes=5 root=2"), HasSubstr("op=scan bytes=6"), HasSubstr("op=exscan bytes=6"),
                  HasSubstr("op=gatherv bytes=7 root=2"), HasSubstr("op=allgatherv bytes=3"),
                  HasSubstr("op=reduce_scatter bytes=10"), HasSubstr("op=alltoallv bytes=12"), HasSubstr("exit")));
  const std::string dump = output_of("dump t.lbfw --rank 2");
  EXPECT_THAT(dump, HasSubstr("counts=5,5,7,5"));
  EXPECT_THAT(dump, HasSubstr("counts=1,2,3,4"));
  EXPECT_THAT(dump, HasSubstr("counts=3,3,3,3,0,1,3,4"));  // 12 bytes to all; of 0, 6, 12 and 18 those for rank 2
}

TEST_F(Otf2Import, ClocksAreSetByTheFirstCollectiveOfAll) {
  // Rank 1's clock is 200 ms behind; it began 1 ms later, and ends with rank 0.
  constexpr std::uint64_t kBehind = 200'000'000;
  const auto make_archive = [&](std::vector<std::int64_t> clock_offsets_ns) {
    Otf2Writer out(folder(), 2, {.clock_offsets_ns = std::move(clock_offsets_ns)});
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::uint64_t off = rank == 0 ? kBehind : 0;
      out.enter(rank, off + rank * 1'000'000, "main");
      out.collective(rank, off + 3'000'000, off + 3'000'500, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
      out.leave(rank, off + 4'000'000, "main");
    }
    out.close();
  };
  const auto set = ElementsAre(ElementsAre("0 coll 0.003 op=barrier", "0 exit 0.0009995"),
                               ElementsAre("1 blocked 0 off=0.001", "1 coll 0.002 op=barrier", "1 exit 0.0009995"));
  make_archive({});
  EXPECT_THAT(
      imported(2, "the ranks' clocks are up to 0.200000 s apart: they are set by the end of the first collective"),
      set);
  std::filesystem::remove_all(folder());
  make_archive({0, kBehind});  // the archive itself says so
  EXPECT_THAT(imported(2), set);
}

// EZTrace's clocks begin with each rank: its first barrier ends when the last rank came, and does not say who that was.
// A rank that the system kept from leaving it is set by its messages.
TEST_F(Otf2Import, ClocksAreSetByMessagesBehindTheFirstCollective) {
  constexpr std::uint64_t kWaited = 30'000'000;
  constexpr std::uint64_t kKept = 4'000'000;
  Otf2Writer out(folder(), 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    out.enter(rank, 0, "main");
    out.collective(rank, 1000, rank == 0 ? 1500 : kWaited + kKept, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
  }
  out.send(0, 2000, 2500, 1, 0, 8);
  out.recv(1, kWaited + kKept + 100, kWaited + kKept + 200, 0, 0, 8);
  out.send(1, kWaited + kKept + 1000, kWaited + kKept + 1100, 0, 0, 8);
  out.recv(0, 3000, kKept + 4000, 1, 0, 8);
  out.send(0, kKept + 5000, kKept + 6000, 1, 1, 8);
  out.recv(1, kWaited + kKept + 2000, kWaited + kKept + 6000, 0, 1, 8);
  out.close();
  // By the barrier's end rank 1 would receive the last message 4 ms before it is sent.
  EXPECT_THAT(imported(2, "are up to 0.030001 s apart: they are set by the end of the first")[0],
              testing::Contains("0 blocked 0 off=0.030001"));
}

TEST_F(Otf2Import, ClocksAreSetByMessages) {
  Otf2Writer out(folder(), 2);
  out.enter(0, 5'000'000, "main");
  out.send(0, 5'000'100, 5'000'200, 1, 0, 8);
  out.enter(1, 0, "main");
  out.recv(1, 50, 1'000, 0, 0, 8);  // ends 5 ms before it was sent
  out.close();
  EXPECT_THAT(imported(2, "are up to 0.004999 s apart: they are set by messages")[1],
              ElementsAre("1 startRecv 0.00000005 from=0 tag=0", "1 endRecv 0 from=0 tag=0 bytes=8", "1 exit 0"));
  std::filesystem::remove_all(folder());
  Otf2Writer both(folder(), 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    both.enter(rank, 0, "main");
    both.recv(rank, 10, 20, 1 - rank, 0, 8);
    both.send(rank, 50'000, 50'010, 1 - rank, 0, 8);
  }
  both.close();
  refused("the ranks' clocks contradict each other");
}

TEST_F(Otf2Import, SendrecvPostsFirst) {
  Otf2Writer out(folder(), 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    out.enter(rank, 0, "main");
    out.enter(rank, 10, "MPI_Sendrecv");
    OTF2_EvtWriter_MpiSend(out.events(rank), nullptr, 10, 1 - rank, 0, 3, 1000);
    OTF2_EvtWriter_MpiRecv(out.events(rank), nullptr, 20, 1 - rank, 0, 3, 1000);
    out.leave(rank, 20, "MPI_Sendrecv");
    out.enter(rank, 30, "MPI_Sendrecv");  // to and from MPI_PROC_NULL
    out.leave(rank, 31, "MPI_Sendrecv");
    out.leave(rank, 40, "main");
  }
  out.close();
  EXPECT_THAT(imported(2)[0], ElementsAre("0 startRecv 0.00000001 from=1 tag=3", "0 send 0 to=1 tag=3 bytes=1000",
                                          "0 endRecv 0 from=1 tag=3 bytes=1000", "0 exit 0.00000002"));
}

TEST_F(Otf2Import, LooksThatFindNothingAreNoWork) {
  Otf2Writer out(folder(), 2);
  out.enter(0, 0, "main");
  out.send(0, 90, 100, 1, 0, 8);
  out.leave(0, 200, "main");
  out.enter(1, 0, "main");
  out.enter(1, 10, "MPI_Irecv");
  OTF2_EvtWriter_MpiIrecvRequest(out.events(1), nullptr, 12, 77);
  out.leave(1, 12, "MPI_Irecv");
  for (std::uint64_t at : {20, 40, 60}) {
    out.enter(1, at, "MPI_Test");
    OTF2_EvtWriter_MpiRequestTest(out.events(1), nullptr, at, 77);
    out.leave(1, at + 15, "MPI_Test");
  }
  out.enter(1, 95, "MPI_Test");
  OTF2_EvtWriter_MpiIrecv(out.events(1), nullptr, 99, 0, 0, 0, 8, 77);
  out.leave(1, 99, "MPI_Test");
  out.enter(1, 120, "MPI_Iprobe");
  out.leave(1, 130, "MPI_Iprobe");
  out.leave(1, 200, "main");
  out.close();
  // Work: 10, 8 + 5 + 5 + 20, 21 + 70.
  EXPECT_THAT(dumped(2)[1], ElementsAre(HasSubstr("startRecv 1e-08 from=0"), HasSubstr("endRecv 3.8e-08 from=0"),
                                        HasSubstr("compute 9.1e-08 looks=1"), HasSubstr("exit 0")));
}

TEST_F(Otf2Import, ProbeWaitsForTheNextReceive) {
  Otf2Writer out(folder(), 2);
  out.enter(0, 0, "main");
  out.send(0, 50, 60, 1, 9, 8);
  out.enter(1, 0, "main");
  out.enter(1, 10, "MPI_Probe");
  out.leave(1, 55, "MPI_Probe");
  out.recv(1, 60, 70, 0, 9, 8);
  out.close();
  EXPECT_THAT(dumped(2, "1 probes wait for the message")[1],
              ElementsAre(HasSubstr("probe 1e-08 from=0 tag=9"), HasSubstr("recv 5e-09 from=0 tag=9 bytes=8"),
                          HasSubstr("exit")));
}

TEST_F(Otf2Import, NonblockingCollectives) {
  Otf2Writer out(folder(), 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    out.enter(rank, 0, "main");
    out.enter(rank, 10, "MPI_Ibcast");
    OTF2_EvtWriter_NonBlockingCollectiveRequest(out.events(rank), nullptr, 11, 5);
    out.leave(rank, 12, "MPI_Ibcast");
    out.enter(rank, 30, "MPI_Wait");
    OTF2_EvtWriter_NonBlockingCollectiveComplete(out.events(rank), nullptr, 35, OTF2_COLLECTIVE_OP_BCAST, 0, 1,
                                                 rank == 1 ? 80 : 0, 40, 5);
    out.leave(rank, 36, "MPI_Wait");
  }
  out.close();
  EXPECT_THAT(dumped(2)[0], ElementsAre(HasSubstr("icoll 1e-08 op=bcast bytes=40 root=1 req=0"),
                                        HasSubstr("wait 1.8e-08 req=0"), HasSubstr("exit")));
}

TEST_F(Otf2Import, CommunicatorsOfOneRankAndOfTwoGroups) {
  Otf2Writer out(folder(), 3);
  const OTF2_CommRef self = out.self();
  const OTF2_CommRef inter = out.intercommunicator({0}, {2, 1});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    out.enter(rank, 0, "main");
    out.collective(rank, 10, 20, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 8, 8, OTF2_COLLECTIVE_ROOT_NONE, self);
  }
  out.send(0, 30, 40, 1, 0, 16, inter);  // rank 1 of the other group
  out.recv(1, 30, 50, 0, 0, 16, inter);
  out.collective(0, 60, 70, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 64, 0, OTF2_COLLECTIVE_ROOT_SELF, inter);
  out.collective(1, 60, 70, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 0, 32, 0, inter);
  out.collective(2, 60, 70, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 0, 32, 0, inter);
  out.close();
  const std::vector<Lines> ranks = dumped(3);
  EXPECT_THAT(ranks[0], testing::Contains(HasSubstr("send 1e-08 to=1")));
  EXPECT_THAT(ranks[0], testing::Contains(HasSubstr("op=bcast bytes=32 root=-4")));
  EXPECT_THAT(ranks[1], testing::Contains(HasSubstr("recv 1e-08 from=0 tag=0 bytes=16")));
  EXPECT_GT(predicted_s("archive/traces.otf2", "--nodes 3 --cores 1 --network zero"), 0);
}

TEST_F(Otf2Import, OneSidedCommunication) {
  Otf2Writer out(folder(), 2);
  const OTF2_RmaWinRef window = out.window(0);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    OTF2_EvtWriter* const events = out.events(rank);
    out.enter(rank, 0, "main");
    out.enter(rank, 10, "MPI_Win_create");
    OTF2_EvtWriter_RmaCollectiveBegin(events, nullptr, 10);
    OTF2_EvtWriter_RmaCollectiveEnd(events, nullptr, 20, OTF2_COLLECTIVE_OP_CREATE_HANDLE, OTF2_RMA_SYNC_LEVEL_PROCESS,
                                    window, OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
    out.leave(rank, 20, "MPI_Win_create");
    if (rank == 0) {
      out.enter(0, 30, "MPI_Put");
      OTF2_EvtWriter_RmaPut(events, nullptr, 30, window, 1, 500, 1);
      out.leave(0, 31, "MPI_Put");
      out.enter(0, 32, "MPI_Rget");
      OTF2_EvtWriter_RmaGet(events, nullptr, 32, window, 1, 600, 2);
      out.leave(0, 33, "MPI_Rget");
      out.enter(0, 34, "MPI_Wait");
      OTF2_EvtWriter_RmaOpCompleteNonBlocking(events, nullptr, 35, window, 2);
      out.leave(0, 35, "MPI_Wait");
      out.enter(0, 36, "MPI_Win_lock");
      OTF2_EvtWriter_RmaRequestLock(events, nullptr, 36, window, 1, 0, OTF2_LOCK_EXCLUSIVE);
      out.leave(0, 37, "MPI_Win_lock");
      out.enter(0, 38, "MPI_Fetch_and_op");
      OTF2_EvtWriter_RmaAtomic(events, nullptr, 38, window, 1, OTF2_RMA_ATOMIC_TYPE_FETCH_AND_ADD, 8, 8, 3);
      out.leave(0, 39, "MPI_Fetch_and_op");
      out.enter(0, 40, "MPI_Win_unlock");
      OTF2_EvtWriter_RmaOpCompleteRemote(events, nullptr, 41, window, 3);
      OTF2_EvtWriter_RmaReleaseLock(events, nullptr, 41, window, 1, 0);
      out.leave(0, 41, "MPI_Win_unlock");
    }
    out.enter(rank, 50, "MPI_Win_fence");
    OTF2_EvtWriter_RmaCollectiveBegin(events, nullptr, 50);
    OTF2_EvtWriter_RmaCollectiveEnd(events, nullptr, 60, OTF2_COLLECTIVE_OP_BARRIER, OTF2_RMA_SYNC_LEVEL_PROCESS,
                                    window, OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
    out.leave(rank, 60, "MPI_Win_fence");
  }
  out.close();
  Lines rank0 = dumped(2)[0];
  EXPECT_THAT(rank0, ElementsAre(HasSubstr("op=comm_create bytes=8"), HasSubstr("commCreate"),
                                 HasSubstr("op=put to=1 bytes=500"), HasSubstr("op=get to=1 bytes=600"),
                                 HasSubstr("wait"), HasSubstr("op=lock to=1 bytes=0"),
                                 HasSubstr("op=fetch_and_op to=1 bytes=8"), HasSubstr("oneSidedSync 1e-09 to=1"),
                                 HasSubstr("oneSidedSync 9e-09 to=all"), HasSubstr("op=barrier"), HasSubstr("exit")));
}

TEST_F(Otf2Import, ThreadsBecomeRegions) {
  Otf2Writer out(folder(), 1, {.threads = 2});
  const std::string barrier = "!$omp implicit barrier";
  out.enter(0, 0, "main");
  OTF2_EvtWriter_ThreadFork(out.events(0), nullptr, 1000, OTF2_PARADIGM_OPENMP, 2);
  for (std::uint32_t thread = 0; thread < 2; ++thread) {
    // Both begin at 1.1 us; one works until 3.1 us, the other until 5.1 us.
    const std::uint64_t done = thread == 0 ? 3100 : 5100;
    OTF2_EvtWriter_ThreadTeamBegin(out.events(0, thread), nullptr, 1100, 0);
    out.enter(0, done, barrier, thread);
    out.leave(0, 5150, barrier, thread);
    OTF2_EvtWriter_ThreadTeamEnd(out.events(0, thread), nullptr, 5150, 0);
  }
  OTF2_EvtWriter_ThreadJoin(out.events(0), nullptr, 5300, OTF2_PARADIGM_OPENMP);
  out.collective(0, 6000, 6100, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
  out.leave(0, 7000, "main");
  out.close();
  EXPECT_THAT(imported(1)[0],
              ElementsAre("0 regions 0.0000043 count=1 threads=2 work=0.000006 critical=0.000004 fork=0.0000003",
                          "0 coll 0.0000017 op=barrier", "0 exit 0.0000009"));
}

TEST_F(Otf2Import, FilesAndTheMeasurementsOwnTime) {
  Otf2Writer out(folder(), 2);
  out.enter(0, 0, "main");
  out.enter(0, 10, "MPI_File_read");
  out.leave(0, 40, "MPI_File_read");
  OTF2_EvtWriter_BufferFlush(out.events(0), nullptr, 50, 80);
  out.enter(0, 90, "MPI_Comm_split");
  out.leave(0, 95, "MPI_Comm_split");
  OTF2_EvtWriter_MeasurementOnOff(out.events(0), nullptr, 100, OTF2_MEASUREMENT_OFF);
  OTF2_EvtWriter_MeasurementOnOff(out.events(0), nullptr, 150, OTF2_MEASUREMENT_ON);
  out.leave(0, 160, "main");
  out.close();
  const std::vector<Lines> ranks = dumped(2, "1 calls without a record of what they do (the first: MPI_Comm_split)");
  EXPECT_THAT(ranks[0], ElementsAre(HasSubstr("io 1e-08"), HasSubstr("unmodelled 2e-08"), HasSubstr("gap 5e-09"),
                                    HasSubstr("unmodelled 0"), HasSubstr("exit 1e-08")));
  EXPECT_THAT(ranks[1], ElementsAre("1 exit 0"));
}

TEST_F(Otf2Import, AReceiveThatEndsLateIsPostedThere) {
  constexpr int kSends = 70'000;
  Otf2Writer out(folder(), 2);
  out.enter(0, 0, "main");
  out.enter(1, 0, "main");
  out.enter(1, 1, "MPI_Irecv");
  OTF2_EvtWriter_MpiIrecvRequest(out.events(1), nullptr, 1, 1);
  out.leave(1, 2, "MPI_Irecv");
  for (std::uint64_t i = 0; i < kSends; ++i) {
    out.send(0, 100 + 10 * i, 105 + 10 * i, 1, 0, 8);
    out.recv(1, 101 + 10 * i, 106 + 10 * i, 0, 0, 8);
  }
  out.send(0, 2'000'000, 2'000'010, 1, 99, 16);
  out.enter(1, 2'000'000, "MPI_Wait");
  OTF2_EvtWriter_MpiIrecv(out.events(1), nullptr, 2'000'020, 0, 0, 99, 16, 1);
  out.leave(1, 2'000'020, "MPI_Wait");
  out.close();
  const std::vector<Lines> ranks = imported(2, "1 receives and non-blocking collectives end so late");
  ASSERT_EQ(ranks[1].size(), 2u * kSends + 4);
  EXPECT_THAT(ranks[1][ranks[1].size() - 3], HasSubstr("startRecv"));
  EXPECT_THAT(ranks[1][ranks[1].size() - 2], HasSubstr("endRecv 0 from=0 tag=99 bytes=16"));
}

TEST_F(Otf2Import, RefusesWhatHasSeveralReadings) {
  const auto each = [&](const std::function<void(Otf2Writer&)>& write, const std::string& says,
                        const std::string& creator = "Score-P 8.4") {
    {
      Otf2Writer out(folder(), 2, {.creator = creator});
      out.enter(0, 0, "main");
      out.enter(1, 0, "main");
      write(out);
      out.leave(0, 1000, "main");
      out.leave(1, 1000, "main");
      out.close();
    }
    refused(says);
  };
  each([](Otf2Writer& out) { OTF2_EvtWriter_MpiSend(out.events(1), nullptr, 5, 0, 0, 0, 8); },
       "archive/traces.otf2: rank 1, event 2: a record of a message outside of an MPI region");
  each(
      [](Otf2Writer& out) {
        out.enter(1, 5, "MPI_Sendrecv");
        out.leave(1, 6, "MPI_Sendrecv");
      },
      "rank 1, event 2 (MPI_Sendrecv): has no record of its messages", "Other 1.0");
  each(
      [](Otf2Writer& out) {
        for (std::uint32_t rank = 0; rank < 2; ++rank)
          out.collective(rank, 5, 6, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, 0, 8, rank);
      },
      "root 1, but rank 0 has root 0 as its collective number 1");
  each(
      [](Otf2Writer& out) {
        out.collective(0, 5, 6, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
        out.collective(1, 5, 6, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 16, 16);
      },
      "but rank 0 has barrier as its collective number 1");
  each([](Otf2Writer& out) { out.collective(0, 5, 6, "MPI_Scan", OTF2_COLLECTIVE_OP_SCAN, 5, 3); },
       "say no count of each rank");
  each(
      [](Otf2Writer& out) {
        out.enter(0, 5, "MPI_Wait");
        OTF2_EvtWriter_MpiIrecv(out.events(0), nullptr, 6, 1, 0, 0, 8, 33);
        out.leave(0, 6, "MPI_Wait");
      },
      "rank 0, event 3 (MPI_Wait): ends request 33, which no record before it has posted");
  each(
      [](Otf2Writer& out) {
        out.enter(0, 5, "MPI_Irecv");
        OTF2_EvtWriter_MpiIrecvRequest(out.events(0), nullptr, 6, 1);
        out.leave(0, 6, "MPI_Irecv");
        out.send(1, 5, 6, 0, 0, 8);
      },
      "rank 0 has receives without an end, and 1 messages to it are received by no record");
  each([](Otf2Writer& out) { out.send(0, 5, 6, 2, 0, 8); }, "rank 2 of communicator 0, which has 2");
  each([](Otf2Writer& out) { out.send(0, 5, 6, 1, 0, 8, 7); }, "communicator 7 is not defined");
  each(
      [](Otf2Writer& out) {
        out.enter(0, 5, "MPI_Iallreduce");
        OTF2_EvtWriter_NonBlockingCollectiveRequest(out.events(0), nullptr, 6, 1);
        out.leave(0, 6, "MPI_Iallreduce");
      },
      "a non-blocking collective has no end");
  each([](Otf2Writer& out) { out.collective(0, 5, 6, "MPI_Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV, 8, 8); },
       "waits for a record for ever: alltoallv number 1 of a communicator, which rank 0 calls, has records of 1 of its "
       "2");
}

TEST_F(Otf2Import, TwoThreadsInMpiAtOnceAreRefused) {
  {
    Otf2Writer out(folder(), 2, {.threads = 2});
    out.enter(0, 0, "main");
    out.enter(0, 10, "MPI_Barrier");
    out.enter(0, 15, "MPI_Probe", 1);
    out.leave(0, 20, "MPI_Probe", 1);
    out.leave(0, 30, "MPI_Barrier");
    out.close();
  }
  refused("two threads are in MPI at once");
}

TEST_F(Otf2Import, UnknownWritersAreNamed) {
  {
    Otf2Writer out(folder(), 2, {.creator = "", .has_locations_group = false});
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      out.enter(rank, 0, "main");
      out.collective(rank, 5, 6, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 16, 16);
    }
    out.close();
  }
  EXPECT_THAT(imported(2, "the archive's writer (not named) does not say how it counts bytes")[0],
              ElementsAre("0 coll 0.000000005 op=allreduce bytes=8", "0 exit 0"));
}

// EZTrace 2.1 has no region of its own any more.
TEST_F(Otf2Import, EztraceIsKnownByTheNamesOfItsLocations) {
  {
    Otf2Writer out(folder(), 2, {.creator = "", .as_eztrace = true});
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      out.enter(rank, 0, "main");
      out.collective(rank, 5, 6, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 16, 16);
    }
    out.close();
  }
  EXPECT_THAT(imported(2)[0], ElementsAre("0 coll 0.000000005 op=allreduce bytes=16", "0 exit 0"));
}

TEST_F(Otf2Import, DamagedArchivesAreRefused) {
  overlook_memory_of_otf2();
  {
    Otf2Writer out(folder(), 1);
    out.enter(0, 0, "main");
    out.leave(0, std::uint64_t{1} << 62, "main");
    out.close();
  }
  refused("rank 0 (location 1000): has times beyond 73 years; is the archive whole?");
  {
    Otf2Writer out(folder(), 2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      out.enter(rank, 0, "main");
      for (std::uint64_t i = 0; i < 100; ++i) out.enter(rank, i, "main");
    }
    out.close();
  }
  const std::string events = folder() + "/traces/" + std::to_string(Otf2Writer::location(1)) + ".evt";
  std::filesystem::resize_file(events, std::filesystem::file_size(events) / 2);
  expect_error(1, "import archive/traces.otf2 -o x.lbfw", "is the archive whole?");
  std::filesystem::remove(events);
  expect_error(1, "import archive/traces.otf2 -o x.lbfw", "rank 1");
  std::filesystem::remove(folder() + "/traces.def");
  expect_error(1, "import archive/traces.otf2 -o x.lbfw", "archive/traces.otf2: its definitions cannot be read");
  write("no.otf2", "no archive");
  expect_error(1, "import no.otf2 -o x.lbfw", "no.otf2: is no anchor file of an OTF2 archive");
  expect_error(1, "import nothing.otf2 --format otf2", "nothing.otf2");
}

// What the export writes is the program: on the network `zero` with a processor for each rank its times are the
// trace's.
TEST_F(Otf2Import, OwnExportPredictsTheSame) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Rank ranks = seed % 2 == 0 ? 4 : 5;
    const std::string nodes = std::to_string(ranks);
    write("p.lbf", random_program(seed, ranks, seed % 2 == 0, 80));
    std::filesystem::remove_all(dir_ + "/out");
    ASSERT_EQ(run("export p.lbf --format otf2 -o out --nodes " + nodes + " --cores 1 --network zero").status, 0);
    const test::Outcome result = run("import out/traces.otf2 -o q.lbfw");
    ASSERT_EQ(result.status, 0) << seed << ": " << result.err;
    const nlohmann::json before = nlohmann::json::parse(output_of("info p.lbf --json"));
    const nlohmann::json after = nlohmann::json::parse(output_of("info q.lbfw --json"));
    for (const char* key : {"ranks", "messages", "message_bytes", "receives", "collectives"})
      EXPECT_EQ(before[key], after[key]) << seed << " " << key;
    for (const std::string& target :
         {"--nodes " + nodes + " --cores 1 --network zero",
          "--nodes " + nodes +
              " --cores 1 --network nominal-1gbe --networks-dir " LBF_GOLDEN_DIR "/../../etc/networks.d/nominal",
          std::string("--nodes 1 --cores 2 --network zero")}) {
      const double expected = predicted_s("p.lbf", target);
      EXPECT_NEAR(predicted_s("q.lbfw", target), expected, 1e-7 + 1e-6 * expected) << seed << " " << target;
      EXPECT_EQ(predicted_s("out/traces.otf2", target), predicted_s("q.lbfw", target)) << seed << " " << target;
    }
  }
}

}  // namespace
}  // namespace lbf::trace_test::otf2_import_test
