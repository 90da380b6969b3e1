// Another program (a backup) has lbfd's database locked while a step ends: lbfd waits, and nothing is lost.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::locked_database_test {
namespace {

using nlohmann::json;

using LockedDatabase = DaemonTest;

TEST_F(LockedDatabase, NothingIsLost) {
  start();
  SQLite::Database backup(path("state/lbf.db"), SQLite::OPEN_READWRITE, 5000);
  backup.exec("BEGIN EXCLUSIVE");
  send_all(RingProgram(), 7);  // acknowledged: it is in the trace store
  // Longer than lbfd takes to want to write; shorter than its patience (10 s).
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const auto rows = [&] {
    return backup.execAndGet("SELECT count(*) FROM step WHERE job = 7 AND state = 'complete'").getInt();
  };
  backup.exec("COMMIT");
  EXPECT_EQ(wait_until_final(7)["state"], "complete");
  for (int tries = 0; rows() == 0 && tries < 100; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(rows(), 1);
  ASSERT_EQ(stop(SIGTERM), 0);
  start();
  EXPECT_EQ(json_request("GET", key(7))["state"], "complete");
}

}  // namespace
}  // namespace lbf::test::locked_database_test