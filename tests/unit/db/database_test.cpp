// Database: migrations, damage, locks.
#include "db/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "db/migrations.h"
#include "db/prediction_store.h"
#include "db/step_store.h"
#include "tests/support/temporary_directory.h"

namespace lbf::db::database_test {
namespace {

namespace fs = std::filesystem;

class DatabaseTest : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/lbf.db";
};

TEST_F(DatabaseTest, IsCreatedWithTheNewestSchemaAndReopened) {
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database.ok()) << database.error().message;
    EXPECT_TRUE((*database)->created());
    EXPECT_EQ((*database)->schema_version(), migrations().back().number);
  }
  auto database = Database::open(path_);
  ASSERT_TRUE(database.ok());
  EXPECT_FALSE((*database)->created());
  std::string mode;
  int foreign_keys = 0;
  SQLite::Database other(path_, SQLite::OPEN_READONLY);
  mode = other.execAndGet("PRAGMA journal_mode").getString();
  ASSERT_TRUE((*database)
                  ->read([&](SQLite::Database& connection) {
                    foreign_keys = connection.execAndGet("PRAGMA foreign_keys").getInt();
                  })
                  .ok());
  EXPECT_EQ(mode, "wal");
  EXPECT_EQ(foreign_keys, 1);
}

TEST_F(DatabaseTest, MigrationsAreInOrderAndEachMovesTheVersion) {
  // Version 0 with nothing in it is what an empty file is: the first migration must do all of it.
  { SQLite::Database empty(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE); }
  auto database = Database::open(path_);
  ASSERT_TRUE(database.ok());
  EXPECT_EQ((*database)->schema_version(), migrations().back().number);
  int before = 0;
  for (const Migration& migration : migrations()) {
    EXPECT_EQ(std::stoi(std::string(migration.name).substr(0, 4)), migration.number) << migration.name;
    EXPECT_GT(migration.number, before) << migration.name;
    before = migration.number;
  }
}

// A database of the first lbf: its steps are there, what was not kept then is not known.
TEST_F(DatabaseTest, StepsOfTheFirstSchemaAreKept) {
  {
    SQLite::Database old(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    old.exec(migrations().front().sql);
    old.exec("PRAGMA user_version = 1");
    old.exec(
        "INSERT INTO step VALUES (1, 'c', 7, 0, 0, 'u', 1000, 'name', './app a b', 'complete', '', "
        "'[\"n1\"]', 1, "
        "'[0]', 'zero', 1.0, 2.0, 1.0, 10, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, '[]')");
    old.exec(
        "INSERT INTO prediction VALUES (1, 0, '1 node', 1, 1, 'block', 'zero', 'none', 1.0, 'self', 1.5, "
        "NULL, NULL, "
        "0, 1.0, 1.0, '[1.5]')");
  }
  auto database = Database::open(path_);
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_EQ((*database)->schema_version(), migrations().back().number);
  const auto steps = StepStore(**database).find({}, true);
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 1u);
  const StepRecord& step = steps->front().record;
  EXPECT_EQ(step.job, 7u);
  EXPECT_EQ(step.command, "./app a b");
  EXPECT_FALSE(step.command_words);
  EXPECT_FALSE(step.command_cut);
  EXPECT_FALSE(step.array_job || step.array_task || step.het_job || step.het_offset);
  EXPECT_EQ(PredictionStore(**database).of_step(1)->at(0).predicted_s, 1.5);
}

TEST_F(DatabaseTest, AFailedMigrationChangesNothing) {
  {
    SQLite::Database other(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    other.exec("CREATE TABLE prediction (in_the_way TEXT)");  // the last table of 0001: the ones before are made
  }
  const auto database = Database::open(path_);
  ASSERT_FALSE(database.ok());
  EXPECT_THAT(database.error().message, testing::HasSubstr("0001_steps.sql"));
  SQLite::Database other(path_);
  EXPECT_EQ(other.execAndGet("PRAGMA user_version").getInt(), 0);
  EXPECT_EQ(other.execAndGet("SELECT count(*) FROM sqlite_schema WHERE name = 'step'").getInt(), 0);
}

TEST_F(DatabaseTest, ANewerSchemaIsRefusedAndLeftAlone) {
  { ASSERT_TRUE(Database::open(path_).ok()); }
  {
    SQLite::Database other(path_, SQLite::OPEN_READWRITE);
    other.exec("PRAGMA user_version = 999");
  }
  const auto database = Database::open(path_);
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(database.error().message, testing::HasSubstr("999"));
  SQLite::Database other(path_);
  EXPECT_EQ(other.execAndGet("PRAGMA user_version").getInt(), 999);
}

TEST_F(DatabaseTest, DamageIsNamedWithTheRemedy) {
  std::ofstream(path_) << std::string(8192, 'x');
  const auto database = Database::open(path_);
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(database.error().message, testing::HasSubstr("move it away"));
}

TEST_F(DatabaseTest, DamagedPagesAreFoundAtTheStart) {
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database.ok());
  }
  fs::remove(path_ + "-wal");
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(static_cast<std::size_t>(fs::file_size(path_)) - 4096, '\x5a');
  file.close();
  EXPECT_FALSE(Database::open(path_).ok());
}

TEST_F(DatabaseTest, WaitsForALockAndThenSaysWhoHoldsIt) {
  auto database = Database::open(path_, std::chrono::milliseconds(100));
  ASSERT_TRUE(database.ok());
  SQLite::Database backup(path_, SQLite::OPEN_READWRITE);
  backup.exec("BEGIN IMMEDIATE");
  const auto nothing = [](SQLite::Database&) {};
  const auto locked = (*database)->write(nothing);
  ASSERT_FALSE(locked.ok());
  EXPECT_EQ(locked.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE((*database)->read(nothing).ok());  // readers go on
  backup.exec("COMMIT");
  EXPECT_TRUE((*database)->write(nothing).ok());
}

TEST_F(DatabaseTest, AFailedWriteIsRolledBack) {
  auto database = Database::open(path_);
  ASSERT_TRUE(database.ok());
  const auto failed = (*database)->write([](SQLite::Database& connection) {
    connection.exec("CREATE TABLE half (x INTEGER)");
    connection.exec("INSERT INTO no_such_table VALUES (1)");
  });
  EXPECT_FALSE(failed.ok());
  int tables = -1;
  ASSERT_TRUE((*database)
                  ->read([&](SQLite::Database& connection) {
                    tables = connection.execAndGet("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").getInt();
                  })
                  .ok());
  EXPECT_EQ(tables, 0);
}

}  // namespace
}  // namespace lbf::db::database_test