// lbf-trace export --format otf2: read back with the OTF2 library; what it says is what the prediction says.
#include <otf2/otf2.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "event/mpi_function_table.h"
#include "tests/unit/tools_trace/fixture.h"
#include "tests/unit/tools_trace/otf2_reader.h"

namespace lbf::trace_test::otf2_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Otf2Record::Kind;

class Otf2Command : public TraceCommand {
 protected:
  // Exports without a word and reads what came out.
  Otf2Trace exported(const std::string& trace, const std::string& options) {
    std::filesystem::remove_all(dir_ + "/out");
    EXPECT_EQ(output_of("export " + trace + " --format otf2 -o out " + options), "");
    Otf2Trace read = read_otf2(dir_ + "/out/traces.otf2");
    EXPECT_TRUE(read.read) << options;
    check(read, trace + " " + options);
    return read;
  }

  // "MPI_Send@5 ..." of one rank: what it entered and did, without times of waiting and work.
  static std::vector<std::string> story(const Otf2Trace& trace, std::uint64_t rank) {
    std::vector<std::string> lines;
    for (const Otf2Record& r : trace.ranks.at(rank)) {
      const std::string time = " @" + std::to_string(r.time_ns);
      const std::string what = std::to_string(r.peer) + " comm " + std::to_string(r.comm) + " tag " +
                               std::to_string(r.tag) + " bytes " + std::to_string(r.bytes);
      const std::string request = " req " + std::to_string(r.request);
      switch (r.kind) {
        case Kind::kEnter:
          lines.push_back("enter " + r.region + time);
          break;
        case Kind::kLeave:
          lines.push_back("leave " + r.region + time);
          break;
        case Kind::kSend:
          lines.push_back("send " + what + time);
          break;
        case Kind::kIsend:
          lines.push_back("isend " + what + request + time);
          break;
        case Kind::kRecv:
          lines.push_back("recv " + what + time);
          break;
        case Kind::kIrecv:
          lines.push_back("irecv " + what + request + time);
          break;
        case Kind::kIsendComplete:
          lines.push_back("sent" + request + time);
          break;
        case Kind::kIrecvRequest:
          lines.push_back("posted" + request + time);
          break;
        case Kind::kCancelled:
          lines.push_back("cancelled" + request + time);
          break;
        case Kind::kCollectiveBegin:
          lines.push_back("collective" + time);
          break;
        case Kind::kCollectiveEnd:
          lines.push_back("collective " + what + " received " + std::to_string(r.received) + time);
          break;
        case Kind::kNonblockingRequest:
          lines.push_back("started" + request + time);
          break;
        case Kind::kNonblockingComplete:
          lines.push_back("completed " + what + " received " + std::to_string(r.received) + request + time);
          break;
      }
    }
    return lines;
  }

 private:
  // What must hold for every archive.
  static void check(const Otf2Trace& trace, const std::string& what) {
    using Channel = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;
    std::map<Channel, std::vector<std::pair<std::uint64_t, std::uint64_t>>> sends, receives;  // time, bytes
    std::uint64_t last = 0;
    for (const auto& [rank, records] : trace.ranks) {
      EXPECT_EQ(records.size(), trace.events_defined.at(rank)) << what;
      std::uint64_t now = 0;
      std::vector<std::string> regions;
      std::set<std::uint64_t> requests;
      const auto world = [&](const Otf2Record& r) {
        const auto& groups = trace.communicators.at(r.comm);
        const bool mine_first = std::find(groups[0].begin(), groups[0].end(), rank) != groups[0].end();
        return groups.at(groups.size() > 1 && mine_first ? 1 : 0).at(r.peer);
      };
      for (const Otf2Record& r : records) {
        EXPECT_GE(r.time_ns, now) << what << ", rank " << rank;
        now = r.time_ns;
        switch (r.kind) {
          case Kind::kEnter:
            regions.push_back(r.region);
            break;
          case Kind::kLeave:
            ASSERT_FALSE(regions.empty()) << what;
            EXPECT_EQ(regions.back(), r.region) << what;
            regions.pop_back();
            break;
          case Kind::kSend:
          case Kind::kIsend:
            sends[{rank, world(r), r.comm, r.tag}].emplace_back(r.time_ns, r.bytes);
            if (r.kind == Kind::kIsend) {
              EXPECT_TRUE(requests.insert(r.request).second) << what;
            }
            break;
          case Kind::kRecv:
          case Kind::kIrecv:
            receives[{world(r), rank, r.comm, r.tag}].emplace_back(r.time_ns, r.bytes);
            if (r.kind == Kind::kIrecv) {
              EXPECT_EQ(requests.erase(r.request), 1u) << what;
            }
            break;
          case Kind::kIrecvRequest:
          case Kind::kNonblockingRequest:
            EXPECT_TRUE(requests.insert(r.request).second) << what;
            break;
          case Kind::kIsendComplete:
          case Kind::kNonblockingComplete:
          case Kind::kCancelled:
            EXPECT_EQ(requests.erase(r.request), 1u) << what;
            break;
          default:
            break;
        }
        const bool is_region = r.kind == Kind::kEnter || r.kind == Kind::kLeave;
        EXPECT_TRUE(is_region || !regions.empty()) << what << ": a record outside every region";
      }
      EXPECT_TRUE(regions.empty()) << what << ", rank " << rank << " is still in " << regions.size();
      EXPECT_TRUE(requests.empty()) << what << ", rank " << rank;
      last = std::max(last, now);
    }
    EXPECT_EQ(trace.length_ns, last) << what;
    EXPECT_EQ(sends.size(), receives.size()) << what;
    for (const auto& [channel, sent] : sends) {
      const auto& received = receives[channel];
      ASSERT_EQ(sent.size(), received.size()) << what;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(sent[i].second, received[i].second) << what;
        EXPECT_GE(received[i].first, sent[i].first) << what << ": a message arrives before it leaves";
      }
    }
  }
};

Event event_of(EventKind kind, const char* function, bool begins = true) {
  Event event;
  event.kind = kind;
  if (const MpiFunction* found = mpi_function(std::string_view(function))) event.function = found->id;
  event.flags = begins ? kFlagCallBegin : 0;
  return event;
}
Event exit_event() {
  return event_of(EventKind::kExit, "");
}

TEST_F(Otf2Command, TheWorkedExample) {
  const Otf2Trace trace = exported(fig3_, "--placement map=0,0,1");
  EXPECT_EQ(trace.length_ns, 7'000'000'000u);
  EXPECT_EQ(trace.node_of_rank, (std::map<std::uint64_t, std::string>{{0, "node 0"}, {1, "node 0"}, {2, "node 1"}}));
  EXPECT_THAT(story(trace, 0),
              ElementsAre("enter work @0", "leave work @2000000000", "enter startRecv @2000000000",
                          "leave startRecv @2000000000", "enter endRecv @2000000000", "enter waiting @2000000000",
                          "leave waiting @5000000000", "recv 2 comm 0 tag 0 bytes 0 @5000000000",
                          "leave endRecv @5000000000", "enter work @5000000000", "leave work @7000000000"));
  EXPECT_THAT(story(trace, 2), ElementsAre("enter work @0", "leave work @5000000000", "enter send @5000000000",
                                           "send 0 comm 0 tag 0 bytes 0 @5000000000", "leave send @5000000000",
                                           "enter work @5000000000", "leave work @6000000000"));
}

TEST_F(Otf2Command, SaysWhatThePredictionAndTheTraceSay) {
  write("slow.toml",
        "name = \"slow\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 20.0], [65536, 200.0]]\n"
        "send_cpu = [[0, 2.0]]\nrecv_cpu = [[0, 3.0], [65536, 30.0]]\neager_limit_bytes = 4096\n");
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Rank ranks = 2 + static_cast<Rank>(seed % 4);
    write("t.lbf", random_program(seed, ranks, true, 40));
    for (const std::string& options : {"--nodes " + std::to_string(ranks), std::string("--nodes 1 --cores 1"),
                                       "--nodes " + std::to_string(ranks) + " --network ./slow.toml",
                                       std::string("--nodes 2 --cores 1 --network ./slow.toml")}) {
      if (!run(LBF_WHATIF, "t.lbf " + options).err.empty()) continue;  // needs buffers that are not there
      const Otf2Trace trace = exported("t.lbf", options);
      EXPECT_NEAR(static_cast<double>(trace.length_ns) * 1e-9, predicted_s("t.lbf", options), 1e-9);
      const nlohmann::json info = nlohmann::json::parse(output_of("info --json t.lbf"));
      std::uint64_t messages = 0;
      std::uint64_t collectives = 0;
      for (const auto& [rank, records] : trace.ranks) {
        for (const Otf2Record& r : records) {
          messages += r.kind == Kind::kSend || r.kind == Kind::kIsend ? 1 : 0;
          collectives += r.kind == Kind::kCollectiveEnd ? 1 : 0;
        }
      }
      EXPECT_EQ(messages, info["messages"].get<std::uint64_t>()) << "seed " << seed;
      EXPECT_EQ(collectives, info["collectives"].get<std::uint64_t>()) << "seed " << seed;
      EXPECT_EQ(trace.communicators.size(), 1 + info["communicators"].get<std::size_t>());
    }
  }
}

TEST_F(Otf2Command, OneRegionForOneCall) {
  std::vector<RankEvent> events;
  for (Rank rank = 0; rank < 2; ++rank) {
    Event post = event_of(EventKind::kStartRecv, "MPI_Sendrecv");
    post.peer = 1 - rank;
    post.tag = 4;
    post.process_s = 1e-6;
    events.push_back({rank, post});
    Event send = event_of(EventKind::kSend, "MPI_Sendrecv", false);
    send.peer = 1 - rank;
    send.tag = 4;
    send.bytes = 32;
    events.push_back({rank, send});
    Event receive = event_of(EventKind::kEndRecv, "MPI_Sendrecv", false);
    receive.peer = 1 - rank;
    receive.tag = 4;
    receive.bytes = 32;
    events.push_back({rank, receive});
    Event again = event_of(EventKind::kSend, "MPI_Send");
    again.peer = 1 - rank;
    again.tag = 5;
    events.push_back({rank, again});
    Event last = event_of(EventKind::kRecv, "MPI_Recv");
    last.peer = 1 - rank;
    last.tag = 5;
    events.push_back({rank, last});
    events.push_back({rank, exit_event()});
  }
  write("t.lbfw", stored(2, events));
  EXPECT_THAT(
      story(exported("t.lbfw", "--nodes 2"), 0),
      ElementsAre("enter work @0", "leave work @1000", "enter MPI_Sendrecv @1000", "send 1 comm 0 tag 4 bytes 32 @1000",
                  "recv 1 comm 0 tag 4 bytes 32 @1000", "leave MPI_Sendrecv @1000", "enter MPI_Send @1000",
                  "send 1 comm 0 tag 5 bytes 0 @1000", "leave MPI_Send @1000", "enter MPI_Recv @1000",
                  "recv 1 comm 0 tag 5 bytes 0 @1000", "leave MPI_Recv @1000"));
}

TEST_F(Otf2Command, RequestsAndCollectivesInTheBackground) {
  std::vector<RankEvent> events;
  for (Rank rank = 0; rank < 2; ++rank) {
    Event start = event_of(EventKind::kIcollective, "MPI_Iallreduce");
    set_op(start, CollectiveOp::kAllreduce);
    start.flags |= kFlagHasRequest;
    start.bytes = 64;
    start.request = 7;
    start.process_s = 1e-6;
    events.push_back({rank, start});
    Event post = event_of(EventKind::kStartRecv, "MPI_Irecv");
    post.flags |= kFlagHasRequest;
    post.peer = 1 - rank;
    post.tag = 9;
    post.request = 8;
    events.push_back({rank, post});
    Event cancel = event_of(EventKind::kCancel, "MPI_Cancel");
    cancel.flags |= kFlagHasRequest;
    cancel.request = 8;
    events.push_back({rank, cancel});
    Event wait = event_of(EventKind::kWait, "MPI_Wait");
    wait.flags |= kFlagHasRequest;
    wait.request = 7;
    wait.process_s = 1e-5;
    events.push_back({rank, wait});
    Event bcast = event_of(EventKind::kCollective, "MPI_Bcast");
    set_op(bcast, CollectiveOp::kBcast);
    bcast.root = 1;
    bcast.bytes = 100;
    events.push_back({rank, bcast});
    events.push_back({rank, exit_event()});
  }
  write("t.lbfw", stored(2, events));
  const Otf2Trace trace = exported("t.lbfw", "--nodes 2");
  const std::string allreduce = std::to_string(OTF2_COLLECTIVE_OP_ALLREDUCE);
  const std::string bcast = std::to_string(OTF2_COLLECTIVE_OP_BCAST);
  const std::string none = std::to_string(OTF2_COLLECTIVE_ROOT_NONE);
  EXPECT_THAT(
      story(trace, 0),
      ElementsAre("enter work @0", "leave work @1000", "enter MPI_Iallreduce @1000", "started req 1 @1000",
                  "leave MPI_Iallreduce @1000", "enter MPI_Irecv @1000", "posted req 2 @1000", "leave MPI_Irecv @1000",
                  "enter MPI_Cancel @1000", "cancelled req 2 @1000", "leave MPI_Cancel @1000", "enter work @1000",
                  "leave work @11000", "enter MPI_Wait @11000",
                  "completed " + none + " comm 0 tag " + allreduce + " bytes 128 received 128 req 1 @11000",
                  "leave MPI_Wait @11000", "enter MPI_Bcast @11000", "collective @11000",
                  "collective 1 comm 0 tag " + bcast + " bytes 0 received 100 @11000", "leave MPI_Bcast @11000"));
  EXPECT_THAT(story(trace, 1),
              testing::Contains("collective 1 comm 0 tag " + bcast + " bytes 200 received 100 @11000"));
}

TEST_F(Otf2Command, RanksOfIntercommunicators) {
  // Ranks 2, 0 and 1: the sides list themselves first.
  const std::vector<std::uint64_t> of_first{77, 2, 2, 0, 1};
  const std::vector<std::uint64_t> of_second{77, 1, 1, 2, 0};
  std::vector<RankEvent> events;
  for (Rank rank = 0; rank < 3; ++rank) {
    Event made = event_of(EventKind::kCommCreate, "MPI_Intercomm_create");
    made.comm = 1;
    made.values = rank == 1 ? of_second : of_first;
    events.push_back({rank, made});
  }
  Event send = event_of(EventKind::kSend, "MPI_Send");
  send.comm = 1;
  send.peer = 1;
  send.tag = 3;
  events.push_back({0, send});
  Event receive = event_of(EventKind::kRecv, "MPI_Recv");
  receive.comm = 1;
  receive.peer = 0;
  receive.tag = 3;
  events.push_back({1, receive});
  for (Rank rank = 0; rank < 3; ++rank) events.push_back({rank, exit_event()});
  write("t.lbfw", stored(3, events));
  const Otf2Trace trace = exported("t.lbfw", "--nodes 3");
  EXPECT_THAT(trace.communicators.at(1), ElementsAre(std::vector<std::uint64_t>{2, 0}, std::vector<std::uint64_t>{1}));
  EXPECT_THAT(story(trace, 0), testing::Contains("send 0 comm 1 tag 3 bytes 0 @0"));
  EXPECT_THAT(story(trace, 1), testing::Contains("recv 1 comm 1 tag 3 bytes 0 @0"));
}

TEST_F(Otf2Command, BlockedTimeIsARegion) {
  write("t.lbf", "lbf-trace 1\nranks 1\n0 blocked 0.000001 off=0.00005\n0 exit 0.000002\n");
  EXPECT_THAT(story(exported("t.lbf", "--nodes 1"), 0),
              ElementsAre("enter work @0", "leave work @1000", "enter blocked @1000", "leave blocked @51000",
                          "enter work @51000", "leave work @53000"));
}

TEST_F(Otf2Command, AFolderThatIsThereStaysAsItIs) {
  std::filesystem::create_directory(dir_ + "/out");
  write("out/mine", "x");
  expect_error(1, "export " + fig3_ + " --format otf2 --nodes 1 -o out", "out is there already");
  EXPECT_EQ(read("out/mine"), "x");
  std::filesystem::remove(dir_ + "/out/mine");
  EXPECT_EQ(output_of("export " + fig3_ + " --format otf2 --nodes 1 -o out/"), "");
  EXPECT_TRUE(read_otf2(dir_ + "/out/traces.otf2").read);
}

TEST_F(Otf2Command, NothingIsLeftOfAFailure) {
  write("t.lbf", "lbf-trace 1\nranks 2\n0 send 1 to=1 tag=0 bytes=1\n0 send 1 to=7 tag=0 bytes=1\n");
  expect_error(1, "export t.lbf --format otf2 --nodes 2 -o out", "t.lbf:4: ");
  expect_error(1, "export " + fig3_ + " --format otf2 --nodes 1,2 -o out", "shows one target");
  expect_error(1, "export " + fig3_ + " --format otf2 --nodes 1 -o nowhere/out", "cannot be made");
  expect_error(2, "export " + fig3_ + " --format otf2 --nodes 1", "name it with -o DIR");
  expect_error(2, "export " + fig3_ + " --format otf2 -o out", "--nodes is missing");
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("t.lbf", "stderr"));
  }
}

TEST_F(Otf2Command, ARunThatCannotEndSaysSo) {
  write("t.lbf",
        "lbf-trace 1\nranks 2\n0 startRecv 1 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=4\n0 exit 1\n1 "
        "exit 1\n");
  const test::Outcome result = run("export t.lbf --format otf2 --nodes 2 -o out");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("lbf-trace: warning: the timeline is partial: rank 0 waits"));
  EXPECT_TRUE(read_otf2(dir_ + "/out/traces.otf2").read);
}

}  // namespace
}  // namespace lbf::trace_test::otf2_test