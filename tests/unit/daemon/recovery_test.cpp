// kill -9 at any moment: nothing that was acknowledged is lost, and predictions complete as if nothing had
// been.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::recovery_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Recovery : public DaemonTest {
 protected:
  // What must be equal with and without a crash.
  static json essence(const json& step) {
    json out;
    for (const char* name : {"state", "why_partial", "events", "messages", "measured_s", "node_of_rank", "calls",
                             "mpi_s", "bytes_stored", "notes", "predictions"}) {
      out[name] = step[name];
    }
    return out;
  }
  // A kill may fall into a replay; twice, and the step is set aside (docs/lbfd.md, "After a crash"), which other tests
  // show.
  void kill_between_replays() {
    stop(SIGKILL);
    std::filesystem::remove(path("state/lbfd.replays"));
  }
};

TEST_F(Recovery, KilledAfterEachAcknowledgementTheResultsAreThoseOfAnUndisturbedRun) {
  RingProgram program;
  program.rounds = 400;
  start();
  send_all(program, 7);
  const json undisturbed = wait_until_final(7);
  ASSERT_EQ(undisturbed["state"], "complete") << undisturbed["why_partial"];

  put(program, 8, 0);
  put(program, 8, 1);
  const auto first = program.batches_of(0);
  const auto second = program.batches_of(1);
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    post(8, 0, sequence, first[sequence - 1]);
    kill_between_replays();
    start();
    EXPECT_EQ(json_request("PUT", stream(8, 0), program.description(0, 8).dump())["next_sequence"], sequence + 1);
    EXPECT_EQ(json_request("PUT", stream(8, 1), program.description(1, 8).dump())["next_sequence"], sequence);
    post(8, 1, sequence, second[sequence - 1]);
  }
  end(8, 0, 4);
  kill_between_replays();
  start();
  end(8, 1, 4);
  const json disturbed = wait_until_final(8);
  EXPECT_EQ(essence(disturbed), essence(undisturbed));
}

TEST_F(Recovery, KilledBetweenTheEndAndTheDatabase) {
  RingProgram program;
  program.rounds = 4000;  // the replay takes longer than the kill
  start();
  send_all(program, 7);
  stop(SIGKILL);
  start();
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  EXPECT_EQ(step["messages"], 4 * 4 * 4000);
  stop(SIGKILL);
  start();  // now from the database
  EXPECT_EQ(essence(wait_until_final(7)), essence(step));
}

TEST_F(Recovery, ALostDatabaseIsMadeAgainFromTheTraces) {
  const RingProgram program;
  start();
  for (const std::uint32_t job : {1u, 2u, 3u, 4u, 5u, 6u}) send_all(program, job);
  const json before = wait_until_final(6);
  stop(SIGTERM);
  for (const char* name : {"state/lbf.db", "state/lbf.db-wal", "state/lbf.db-shm"}) {
    std::filesystem::remove(path(name));
  }
  start();
  EXPECT_THAT(log(), HasSubstr("predicted anew"));
  for (int i = 0; i < 300; ++i) {
    const json steps = json_request("GET", "/v1/steps");
    std::size_t complete = 0;
    for (const json& step : steps["steps"]) complete += step["state"] == "complete" ? 1 : 0;
    if (complete == 6) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const json after = wait_until_final(6);
  EXPECT_EQ(essence(after), essence(before));
  EXPECT_EQ(after["end"], before["end"]);
}

TEST_F(Recovery, KilledInTheMiddleOfRequests) {
  RingProgram program;
  program.ranks_of_node = {{0, 1, 2, 3}};
  program.rounds = 300;
  program.batches = 30;
  const auto batches = program.batches_of(0);
  start();
  put(program, 7, 0);
  std::uint64_t acknowledged = 0;
  for (int kill_number = 0; kill_number < 4; ++kill_number) {
    // A second thread would race with the fixture's process; the child posts, this one kills.
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t relay = ::fork();
    if (relay == 0) {
      auto client = HttpClient::make("unix:" + socket());
      for (std::uint64_t sequence = acknowledged + 1; client && sequence <= batches.size(); ++sequence) {
        const auto answer = client->request("POST", stream(7, 0) + "/batches/" + std::to_string(sequence),
                                            batches[sequence - 1], "application/x-lbf-batch");
        if (!answer || answer->status != 200 || ::write(told[1], "x", 1) != 1) break;
      }
      ::_exit(0);
    }
    ::close(told[1]);
    char one = 0;
    for (int i = 0; i < 3 + kill_number && ::read(told[0], &one, 1) == 1; ++i) ++acknowledged;
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * kill_number));
    kill_between_replays();
    while (::read(told[0], &one, 1) == 1) ++acknowledged;
    ::close(told[0]);
    ::waitpid(relay, nullptr, 0);
    start();
    const std::uint64_t next =
        json_request("PUT", stream(7, 0), program.description(0, 7).dump())["next_sequence"].get<std::uint64_t>();
    EXPECT_GE(next, acknowledged + 1);
    EXPECT_LE(next, acknowledged + 2);
    acknowledged = next - 1;
  }
  for (std::uint64_t sequence = acknowledged + 1; sequence <= batches.size(); ++sequence) {
    post(7, 0, sequence, batches[sequence - 1]);
  }
  end(7, 0, batches.size());
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  EXPECT_EQ(step["messages"], 4 * 300 * 30);
}

// Neither traces nor the database can grow: nothing is acknowledged, and all goes on when there is room
// again.
TEST_F(Recovery, AFullDiskIsSaidAndGotOver) {
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  start();
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  limit_file_size(batches[0].size() + 10);
  const json full = json_request("POST", stream(7, 0) + "/batches/2", batches[1], 507);
  EXPECT_EQ(full["code"], "limit");
  EXPECT_EQ(std::filesystem::file_size(path("state/traces/c/7.0.0/stream-0.lbfw")), batches[0].size());
  // The database was due to be written. That it failed is not in the log, which is such a file, too.
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(json_request("GET", "/v1/health")["disk_full"], true);
  limit_file_size(RLIM_INFINITY);
  EXPECT_EQ(json_request("PUT", stream(7, 0), program.description(0, 7).dump())["next_sequence"], 2);
  for (std::uint64_t sequence = 2; sequence <= 4; ++sequence) post(7, 0, sequence, batches[sequence - 1]);
  end(7, 0, 4);
  const json step = wait_until_final(7);
  EXPECT_EQ(step["state"], "complete") << step["why_partial"];
  for (int i = 0; i < 100 && json_request("GET", "/v1/health")["steps_running"] != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  stop(SIGTERM);
  start();
  EXPECT_EQ(essence(wait_until_final(7)), essence(step));  // it did get into the database
}

// The same on a file system that is really full: everything that lbfd writes is on it, the database and its
// log too. Whatever was acknowledged is there in the end, and lbfd says once, not for every batch, what is
// wrong.
class FullDisk : public Recovery {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (IsSkipped()) return;
    // A mount namespace of its own: what is mounted goes when this process goes.
    std::filesystem::create_directory(path("state"));
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", path("state").c_str(), "tmpfs", 0, "size=2m,mode=700") != 0) {
      GTEST_SKIP() << "no file system can be mounted here: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    DaemonTest::TearDown();
    if (mounted_) ::umount2(path("state").c_str(), MNT_DETACH);
  }
  // A file that takes all the room there is but `left_bytes`.
  void fill(std::uint64_t left_bytes) {
    std::ofstream file(path("state/filler"), std::ios::binary);
    const std::string page(4096, 'f');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
    file.close();
    const std::uint64_t size = std::filesystem::file_size(path("state/filler"));
    std::filesystem::resize_file(path("state/filler"), size - std::min(size, left_bytes));
  }
  void make_room() { std::filesystem::remove(path("state/filler")); }
  std::size_t lines_with(const std::string& text) const {
    std::istringstream lines(log());
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) count += line.find(text) != std::string::npos ? 1 : 0;
    return count;
  }
  void wait_for_log(const std::string& text) {
    for (int i = 0; i < 400 && lines_with(text) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_GE(lines_with(text), 1u) << text;
  }

  bool mounted_ = false;
};

TEST_F(FullDisk, NothingAcknowledgedIsLostAndAllGoesOnOnceThereIsRoom) {
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  program.batches = 60;  // more than fit into the last page of the trace
  const auto batches = program.batches_of(0);
  start();
  send_all(program, 6);
  const json undisturbed = wait_until_final(6);
  put(program, 7, 0);
  post(7, 0, 1, batches[0]);
  EXPECT_EQ(json_request("GET", "/v1/health")["disk_full"], false);

  fill(0);
  std::uint64_t sequence = 2;
  for (int refused = 0; refused < 20;) {  // as a relay does; the last page of the file takes some
    const HttpResponse answer =
        request("POST", stream(7, 0) + "/batches/" + std::to_string(sequence), batches[sequence - 1]);
    if (answer.status == 200) {
      ASSERT_LT(++sequence, batches.size()) << "it was not full";
      continue;
    }
    ++refused;
    ASSERT_EQ(answer.status, 507) << answer.body;
    EXPECT_EQ(json::parse(answer.body)["code"], "limit");
  }
  EXPECT_EQ(request("PUT", stream(9, 0), program.description(0, 9).dump()).status,
            507);  // another job begins
  EXPECT_EQ(json_request("GET", "/v1/health")["disk_full"], true);
  EXPECT_EQ(json_request("GET", key(6))["state"], "complete");  // what is known is still told
  EXPECT_EQ(json_request("GET", "/v1/steps")["steps"].size(), 2u);
  wait_for_log("no room for the database");  // when it is due to be written
  EXPECT_EQ(lines_with("no room for traces"), 1u);
  EXPECT_EQ(lines_with("no room for the database"), 1u);

  make_room();
  EXPECT_EQ(json_request("PUT", stream(7, 0), program.description(0, 7).dump())["next_sequence"], sequence);
  for (; sequence <= batches.size(); ++sequence) post(7, 0, sequence, batches[sequence - 1]);
  end(7, 0, batches.size());
  const json step = wait_until_final(7);
  EXPECT_EQ(essence(step), essence(undisturbed));
  wait_for_log("there is room for traces again");
  wait_for_log("there is room for the database again");
  EXPECT_EQ(json_request("GET", "/v1/health")["disk_full"], false);
  stop(SIGTERM);
  start();
  EXPECT_EQ(essence(wait_until_final(7)), essence(undisturbed));
}

TEST_F(FullDisk, KilledWhileItIsFullItGoesOnWhereItWas) {
  RingProgram program;
  program.ranks_of_node = {{0, 1}};
  const auto batches = program.batches_of(0);
  start();
  send_all(program, 6);
  const json undisturbed = wait_until_final(6);
  put(program, 7, 0);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) post(7, 0, sequence, batches[sequence - 1]);
  fill(0);
  // Its batches are all here, and its end can be written no more than its prediction.
  (void)request("POST", stream(7, 0) + "/batches/4", batches[3]);
  EXPECT_EQ(request("POST", stream(7, 0) + "/end", R"({"last_sequence":3,"lost_batches":1})").status, 507);
  stop(SIGKILL);
  make_room();
  start();
  const auto next =
      json_request("PUT", stream(7, 0), program.description(0, 7).dump())["next_sequence"].get<std::uint64_t>();
  EXPECT_GE(next, 4u);
  for (std::uint64_t sequence = next; sequence <= 4; ++sequence) post(7, 0, sequence, batches[sequence - 1]);
  end(7, 0, 4);
  EXPECT_EQ(essence(wait_until_final(7)), essence(undisturbed));
}

// Started again while it is full (by systemd, say): it either serves or says in one line that there is no
// room.
TEST_F(FullDisk, StartedOnAFullDiskItSaysWhatToDo) {
  start();
  stop(SIGTERM);
  fill(0);
  const int status = start_and_wait_for_end();
  if (status == -1) return;  // it serves
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(lines_with("lbfd: error: "), 1u) << log();
  EXPECT_EQ(lines_with("free space"), 1u) << log();
}

}  // namespace
}  // namespace lbf::test::recovery_test