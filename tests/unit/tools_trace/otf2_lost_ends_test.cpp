// lbf-trace import of archives as EZTrace 2.0 writes them: no record of how most requests end, clocks that begin with
// each rank, the world's group defined twice, numbers of requests used again.
#include <filesystem>
#include <functional>

#include "tests/unit/tools_trace/fixture.h"
#include "tests/unit/tools_trace/otf2_writer.h"

namespace lbf::trace_test::otf2_lost_ends_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kMs = 1'000'000;

class Otf2LostEnds : public TraceCommand {
 protected:
  void write_archive(std::uint32_t ranks, const std::function<void(Otf2Writer&)>& write) {
    std::filesystem::remove_all(dir_ + "/archive");
    Otf2Writer out(dir_ + "/archive", ranks, {.creator = "", .as_eztrace = true});
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      out.enter(rank, 0, "Working");
      out.collective(rank, 100, 200, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
    }
    write(out);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      out.leave(rank, 1000 * kMs, "Working");
      out.enter(rank, 1000 * kMs, "EZTrace finalize");
      out.leave(rank, 1000 * kMs + 1, "EZTrace finalize");
    }
    out.close();
  }
  std::vector<Lines> imported(Rank ranks, const std::string& says) {
    const test::Outcome result = run("import archive/traces.otf2 --to text");
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    return lines_of_ranks(result.out, ranks);
  }
  void refused(const std::string& says) { expect_error(1, "import archive/traces.otf2 -o refused.lbfw", says); }

  static void irecv(Otf2Writer& out, std::uint32_t rank, std::uint64_t ns, std::uint64_t request) {
    out.enter(rank, ns, "MPI_Irecv");
    OTF2_EvtWriter_MpiIrecvRequest(out.events(rank), nullptr, ns, request);
    out.leave(rank, ns, "MPI_Irecv");
  }
  static void isend(Otf2Writer& out, std::uint32_t rank, std::uint64_t ns, std::uint64_t request, std::uint32_t to,
                    std::uint32_t tag, std::uint64_t bytes) {
    out.enter(rank, ns, "MPI_Isend");
    OTF2_EvtWriter_MpiIsend(out.events(rank), nullptr, ns, to, 0, tag, bytes, request);
    out.leave(rank, ns, "MPI_Isend");
  }
  static void call(Otf2Writer& out, std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns,
                   const std::string& function) {
    out.enter(rank, begin_ns, function);
    out.leave(rank, end_ns, function);
  }
};

TEST_F(Otf2LostEnds, WaitallEndsAllThatIsOpen) {
  write_archive(2, [](Otf2Writer& out) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint64_t i = 0; i < 2; ++i) {  // the same numbers again
        const std::uint64_t at = (10 + 20 * i) * kMs;
        irecv(out, rank, at, 500);
        isend(out, rank, at + kMs, 501, 1 - rank, 6, 100 + i);
        call(out, rank, at + 2 * kMs, at + 3 * kMs, "MPI_Waitall");
      }
    }
  });
  EXPECT_THAT(imported(2, "8 requests have no record of their end")[0].size(), 10u);
  EXPECT_THAT(
      imported(2, "")[0],
      ElementsAre("0 coll 0.0000001 op=barrier", "0 startRecv 0.0099998 from=1 tag=6 req=0",
                  "0 isend 0.001 to=1 tag=6 bytes=100 req=1", "0 endRecv 0.001 from=1 tag=6 bytes=100 req=0",
                  "0 wait 0 req=1", "0 startRecv 0.017 from=1 tag=6 req=0", "0 isend 0.001 to=1 tag=6 bytes=101 req=1",
                  "0 endRecv 0.001 from=1 tag=6 bytes=101 req=0", "0 wait 0 req=1", "0 exit 0.967"));
}

TEST_F(Otf2LostEnds, AsManyWaitsAsRequestsEndThem) {
  write_archive(2, [](Otf2Writer& out) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      irecv(out, rank, 10 * kMs, 500);
      isend(out, rank, 11 * kMs, 501, 1 - rank, 6, 100);
      call(out, rank, 12 * kMs, 13 * kMs, "MPI_Wait");
      call(out, rank, 14 * kMs, 15 * kMs, "MPI_Wait");
    }
  });
  EXPECT_THAT(imported(2, "4 requests")[1],
              ElementsAre(HasSubstr("barrier"), HasSubstr("startRecv"), HasSubstr("isend"),
                          "1 endRecv 0.001 from=0 tag=6 bytes=100 req=0", "1 wait 0.001 req=1", "1 exit 0.985"));
  write_archive(2, [](Otf2Writer& out) {
    irecv(out, 0, 10 * kMs, 500);
    isend(out, 0, 11 * kMs, 501, 1, 6, 100);
    call(out, 0, 12 * kMs, 13 * kMs, "MPI_Wait");
    out.send(0, 14 * kMs, 15 * kMs, 1, 7, 8);
  });
  refused("rank 0, event 12 (MPI_Wait): ends one of 2 requests, and the archive does not say which");
}

// MPI_Waitall of a part of the requests is ordinary. It ended those whose numbers are used again before the next call
// that may end them.
TEST_F(Otf2LostEnds, WaitallMayHaveLeftRequestsOpen) {
  const auto halves = [](const std::string& second) {
    return [second](Otf2Writer& out) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        irecv(out, rank, 10 * kMs, 500);
        isend(out, rank, 11 * kMs, 501, 1 - rank, 6, 100);
        call(out, rank, 12 * kMs, 13 * kMs, "MPI_Waitall");
        out.collective(rank, 20 * kMs, 21 * kMs, "MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, 0, 0);
        call(out, rank, 30 * kMs, 31 * kMs, second);
      }
    };
  };
  for (const std::string second : {"MPI_Waitall", "MPI_Wait", "MPI_Waitany", "MPI_Test", "MPI_Testsome"}) {
    write_archive(2, halves(second));
    refused("rank 0, event 12 (MPI_Waitall): may have ended 2 requests, and so may " + second +
            " (event 18): the archive does not say which");
  }
  // Two in a row, and two sets of requests that overlap.
  write_archive(1, [](Otf2Writer& out) {
    isend(out, 0, 11 * kMs, 501, 0, 6, 100);
    call(out, 0, 12 * kMs, 13 * kMs, "MPI_Waitall");
    call(out, 0, 14 * kMs, 15 * kMs, "MPI_Waitall");
  });
  refused("(MPI_Waitall): may have ended 1 request, and so may MPI_Waitall");
  write_archive(1, [](Otf2Writer& out) {
    isend(out, 0, 10 * kMs, 501, 0, 6, 100);
    isend(out, 0, 11 * kMs, 502, 0, 6, 100);
    call(out, 0, 12 * kMs, 13 * kMs, "MPI_Waitall");
    isend(out, 0, 14 * kMs, 501, 0, 6, 100);
    call(out, 0, 15 * kMs, 16 * kMs, "MPI_Waitall");
  });
  refused("(MPI_Waitall): may have ended 1 request, and so may MPI_Waitall");
  // A look before it, too.
  write_archive(1, [](Otf2Writer& out) {
    isend(out, 0, 10 * kMs, 501, 0, 6, 100);
    call(out, 0, 11 * kMs, 12 * kMs, "MPI_Test");
    call(out, 0, 13 * kMs, 14 * kMs, "MPI_Waitall");
  });
  refused("(MPI_Waitall): may have ended 1 request, and so may MPI_Test");
}

TEST_F(Otf2LostEnds, TheLastLookFoundIt) {
  write_archive(2, [](Otf2Writer& out) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      const std::uint64_t at = (10 + 20 * i) * kMs;
      irecv(out, 1, at, 500);
      call(out, 1, at + kMs, at + 2 * kMs, "MPI_Test");
      call(out, 1, at + 3 * kMs, at + 4 * kMs, "MPI_Test");
      out.send(1, at + 5 * kMs, at + 5 * kMs, 0, 1, 8);
      out.send(0, at, at + kMs, 1, 6, 100 + i);
      out.recv(0, at + 2 * kMs, at + 6 * kMs, 1, 1, 8);
    }
  });
  // Work: 1 ms before the first look, 1 between the two, 1 behind.
  EXPECT_THAT(
      imported(2, "2 requests")[1],
      ElementsAre(HasSubstr("barrier"), HasSubstr("startRecv"), "1 endRecv 0.002 from=0 tag=6 bytes=100 req=0",
                  "1 send 0.001 to=0 tag=1 bytes=8", HasSubstr("startRecv"),
                  "1 endRecv 0.002 from=0 tag=6 bytes=101 req=0", "1 send 0.001 to=0 tag=1 bytes=8", "1 exit 0.965"));
}

TEST_F(Otf2LostEnds, SeveralMessagesMayHaveCome) {
  const auto program = [](std::uint64_t second_ns) {
    return [second_ns](Otf2Writer& out) {
      irecv(out, 0, 10 * kMs, 500);
      out.send(1, 11 * kMs, 12 * kMs, 0, 6, 100);
      out.send(2, second_ns, second_ns + kMs, 0, 6, 100);
      call(out, 0, 20 * kMs, 30 * kMs, "MPI_Wait");
      out.recv(0, 60 * kMs, 61 * kMs, 2, 6, 100);
    };
  };
  // The second message is sent when the wait is over, then before.
  write_archive(3, program(50 * kMs));
  EXPECT_THAT(imported(3, "1 requests")[0], testing::Contains("0 endRecv 0.01 from=1 tag=6 bytes=100 req=0"));
  write_archive(3, program(15 * kMs));
  refused("rank 0, event 9 (MPI_Wait): 1 receive ends here without a record, and may have taken 2 messages");
  // On one channel the first one comes first.
  write_archive(2, [](Otf2Writer& out) {
    irecv(out, 0, 10 * kMs, 500);
    out.send(1, 11 * kMs, 12 * kMs, 0, 6, 100);
    out.send(1, 12 * kMs, 13 * kMs, 0, 6, 200);
    call(out, 0, 20 * kMs, 30 * kMs, "MPI_Wait");
    out.recv(0, 60 * kMs, 61 * kMs, 1, 6, 200);
  });
  EXPECT_THAT(imported(2, "1 requests")[0], testing::Contains("0 endRecv 0.01 from=1 tag=6 bytes=100 req=0"));
  write_archive(2, [](Otf2Writer& out) {
    irecv(out, 0, 10 * kMs, 500);
    call(out, 0, 20 * kMs, 30 * kMs, "MPI_Wait");
  });
  refused("1 receive ends here without a record, and 0 messages are on the way");
}

// Ranks that the system kept in every collective have clocks that are off by more than messages show.
TEST_F(Otf2LostEnds, TheNextMessageCountsWhereClocksAreOff) {
  const auto program = [](std::uint64_t first_ns, std::uint64_t second_ns) {
    return [first_ns, second_ns](Otf2Writer& out) {
      irecv(out, 0, 10 * kMs, 500);
      call(out, 0, 20 * kMs, 30 * kMs, "MPI_Wait");
      out.send(1, first_ns, first_ns + kMs, 0, 6, 100);
      out.send(2, second_ns, second_ns + kMs, 0, 6, 200);
    };
  };
  write_archive(3, program(35 * kMs, 40 * kMs));
  EXPECT_THAT(imported(3, "1 of these calls end before the message is sent, by the clocks")[0],
              testing::Contains("0 endRecv 0.01 from=1 tag=6 bytes=100 req=0"));
  write_archive(3, program(35 * kMs, 35 * kMs + 1000));
  refused("may have taken 2 messages");
  write_archive(3, program(500 * kMs, 550 * kMs));
  refused("1 receive ends here without a record, and 0 messages are on the way");
}

TEST_F(Otf2LostEnds, WhatNoCallEndsIsRefused) {
  write_archive(2, [](Otf2Writer& out) {
    irecv(out, 0, 10 * kMs, 500);
    out.send(1, 11 * kMs, 12 * kMs, 0, 6, 100);
  });
  refused("rank 0, event 7: request 500 is over, and no record or call says where it ended");
  for (const std::string function : {"MPI_Cancel", "MPI_Request_free"}) {
    write_archive(2, [&](Otf2Writer& out) {
      isend(out, 0, 10 * kMs, 500, 1, 6, 100);
      call(out, 0, 11 * kMs, 12 * kMs, function);
    });
    refused("rank 0, event 9 (" + function + "): may be of one of 1 open requests");
  }
  write_archive(2, [](Otf2Writer& out) { call(out, 0, 10 * kMs, 11 * kMs, "MPI_Sendrecv"); });
  refused("rank 0, event 6 (MPI_Sendrecv): has no record of its messages");
  write_archive(2, [](Otf2Writer& out) {
    out.enter(0, 10 * kMs, "MPI_Ibarrier");
    OTF2_EvtWriter_MpiCollectiveBegin(out.events(0), nullptr, 10 * kMs);
    out.leave(0, 11 * kMs, "MPI_Ibarrier");
  });
  refused("rank 0, event 6 (MPI_Ibarrier): has no record of its end");
  write_archive(2, [](Otf2Writer& out) {
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      out.collective(rank, 10 * kMs, 11 * kMs, "MPI_Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV, 8, 8);
  });
  refused("say no count of each rank");
}

// A persistent send's end is written as a receive's.
TEST_F(Otf2LostEnds, FalseReceives) {
  write_archive(2, [](Otf2Writer& out) {
    out.enter(0, 10 * kMs, "MPI_Start");
    OTF2_EvtWriter_MpiIsend(out.events(0), nullptr, 10 * kMs, 1, 0, 6, 100, 500);
    out.leave(0, 11 * kMs, "MPI_Start");
    out.enter(0, 12 * kMs, "MPI_Wait");
    OTF2_EvtWriter_MpiIrecv(out.events(0), nullptr, 13 * kMs, 77, 0, 6, 100, 500);
    out.leave(0, 13 * kMs, "MPI_Wait");
    out.recv(1, 10 * kMs, 15 * kMs, 0, 6, 100);
  });
  EXPECT_THAT(imported(2, "1 records of a receive end the request of a send")[0],
              ElementsAre(HasSubstr("barrier"), HasSubstr("isend"), "0 wait 0.001 req=0", HasSubstr("exit")));
}

// What EZTrace counts is what the call names, not the sum over the ranks.
TEST_F(Otf2LostEnds, SizesAreThoseOfTheCall) {
  write_archive(2, [](Otf2Writer& out) {
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      out.collective(rank, 10 * kMs, 11 * kMs, "MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, 64, 64);
  });
  EXPECT_THAT(imported(2, "")[0], testing::Contains(HasSubstr("op=allreduce bytes=64")));
}

}  // namespace
}  // namespace lbf::trace_test::otf2_lost_ends_test
