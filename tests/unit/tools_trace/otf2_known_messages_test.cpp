// An archive as Score-P writes it of a program of known messages.
#include <algorithm>
#include <array>

#include "tests/unit/tools_trace/fixture.h"
#include "tests/unit/tools_trace/otf2_writer.h"

namespace lbf::trace_test::otf2_known_messages_test {
namespace {

class Otf2KnownMessages : public TraceCommand {};

// tests/mpi/known_messages.c as Score-P would write it, with the numbers that mpi.eztrace has beside the capture's.
TEST_F(Otf2KnownMessages, AreThoseOfTheCapture) {
  constexpr std::uint32_t kRanks = 4;
  Otf2Writer out(dir_ + "/archive", kRanks);
  const std::array<OTF2_CommRef, 2> half{out.communicator({2, 0}), out.communicator({3, 1})};
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const std::uint32_t after = (rank + 1) % kRanks;
    const std::uint32_t before = (rank + kRanks - 1) % kRanks;
    out.init(rank, 0, 100);
    out.collective(rank, 200, 300, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
    if (rank % 2 == 0) out.send(rank, 400, 410, after, 5, 100);
    out.recv(rank, 420, rank % 2 == 0 ? 600 : 450, before, 5, 100);
    if (rank % 2 == 1) out.send(rank, 500, 510, after, 5, 100);
    for (std::uint64_t round = 0; round < 5; ++round) {
      const std::uint64_t at = 1000 * (round + 1);
      out.enter(rank, at, "MPI_Irecv");
      OTF2_EvtWriter_MpiIrecvRequest(out.events(rank), nullptr, at, 2 * round);
      out.leave(rank, at, "MPI_Irecv");
      out.enter(rank, at, "MPI_Isend");
      OTF2_EvtWriter_MpiIsend(out.events(rank), nullptr, at, after, 0, 6, 1000 + round, 2 * round + 1);
      out.leave(rank, at, "MPI_Isend");
      out.enter(rank, at + 10, "MPI_Waitall");
      OTF2_EvtWriter_MpiIrecv(out.events(rank), nullptr, at + 20, before, 0, 6, 1000 + round, 2 * round);
      OTF2_EvtWriter_MpiIsendComplete(out.events(rank), nullptr, at + 20, 2 * round + 1);
      out.leave(rank, at + 20, "MPI_Waitall");
      out.collective(rank, at + 100, at + 200, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
    }
    // Score-P's sums: what a rank moves to all ranks and gets of them.
    const bool is_first = rank >= 2;  // of its half
    out.collective(rank, 7000, 7100, "MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, is_first ? 0 : 128, 64, 1, half[rank % 2]);
    out.collective(rank, 7200, 7300, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 256, 256);
    out.collective(rank, 7400, 7500, "MPI_Reduce", OTF2_COLLECTIVE_OP_REDUCE, 32, is_first ? 64 : 0, 0, half[rank % 2]);
    out.collective(rank, 7600, 7700, "MPI_Gather", OTF2_COLLECTIVE_OP_GATHER, 16, rank == 2 ? 64 : 0, 2);
    out.collective(rank, 7800, 7900, "MPI_Alltoall", OTF2_COLLECTIVE_OP_ALLTOALL, 96, 96);
  }
  out.close();
  EXPECT_EQ(run("import archive/traces.otf2 -o t.lbfw").status, 0);
  const nlohmann::json info = nlohmann::json::parse(output_of("info t.lbfw --json"));
  EXPECT_EQ(info["messages"], 24);
  EXPECT_EQ(info["receives"], 24);
  EXPECT_EQ(info["message_bytes"], 4 * (100 + 1000 + 1001 + 1002 + 1003 + 1004));
  const std::vector<std::pair<std::string, int>> each{
      {"MPI_Bcast", 64}, {"MPI_Allreduce", 64}, {"MPI_Reduce", 32}, {"MPI_Gather", 16}, {"MPI_Alltoall", 24}};
  for (const auto& [call, bytes] : each) EXPECT_EQ(info["calls"][call]["bytes"], 4 * bytes) << call;
}

// Whatever byte of it is wrong: events, or one line that says what is.
TEST_F(Otf2KnownMessages, DamagedBytesEndInOneLine) {
  overlook_memory_of_otf2();
  {
    Otf2Writer out(dir_ + "/archive", 2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      out.init(rank, 0, 100);
      if (rank == 0) out.send(rank, 200, 300, 1, 5, 100);
      if (rank == 1) out.recv(rank, 200, 400, 0, 5, 100);
      out.collective(rank, 500, 600, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 16, 16);
    }
    out.close();
  }
  const std::string events = "archive/traces/" + std::to_string(Otf2Writer::location(1)) + ".evt";
  for (const std::string& name : {std::string("archive/traces.otf2"), std::string("archive/traces.def"), events}) {
    const std::string whole = read(name);
    const std::size_t step = whole.size() / 40 + 1;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(~damaged[at]);
      write(name, damaged);
      const test::Outcome result = run("import archive/traces.otf2 -o t.lbfw");
      ASSERT_TRUE(result.status == 0 || result.status == 1) << name << ' ' << at << ": " << result.err;
      if (result.status == 1) {
        ASSERT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << name << ' ' << at << ": " << result.err;
      }
    }
    write(name, whole);
  }
}

}  // namespace
}  // namespace lbf::trace_test::otf2_known_messages_test
