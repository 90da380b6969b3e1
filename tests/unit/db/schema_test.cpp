// A database of every earlier schema, as it was written then (data/schema-N.sql, make_dump), is brought up to date and
// loses nothing.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "db/database.h"
#include "db/migrations.h"
#include "db/prediction_store.h"
#include "db/step_store.h"
#include "tests/support/temporary_directory.h"

namespace lbf::db::schema_test {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstVersions = 9;  // that have to have a dump

std::string dump_of(int version) {
  std::ifstream in(std::string(LBF_SCHEMAS) + "/schema-" + std::to_string(version) + ".sql");
  return {std::istreambuf_iterator<char>(in), {}};
}

class SchemaTest : public testing::Test {
 protected:
  void write_dump(int version) {
    fs::remove(path_);
    SQLite::Database old(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    old.exec(dump_of(version));
    ASSERT_EQ(old.execAndGet("PRAGMA user_version").getInt(), version);
  }
  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/lbf.db";
};

TEST_F(SchemaTest, EveryEarlierOneIsBroughtUpToDate) {
  const int newest = migrations().back().number;
  for (int version = 1; version < newest; ++version) {
    SCOPED_TRACE(version);
    if (version > kFirstVersions && dump_of(version).empty()) continue;
    ASSERT_FALSE(dump_of(version).empty()) << "no golden database: tests/unit/db/make_dump makes one";
    write_dump(version);
    auto database = Database::open(path_);
    ASSERT_TRUE(database.ok()) << database.error().message;
    EXPECT_EQ((*database)->schema_version(), newest);

    const auto steps = StepStore(**database).find({}, true);
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    ASSERT_EQ(steps->size(), 2U);
    const StepRecord& step = steps->front().record;
    EXPECT_EQ(step.job, 7U);
    EXPECT_EQ(step.command, "./app a b");
    EXPECT_EQ(step.state, StepState::kComplete);
    EXPECT_EQ(step.nodes, (std::vector<std::string>{"n1", "n2"}));
    EXPECT_EQ(step.measured_s, 7.5);
    EXPECT_EQ(step.notes, std::vector<std::string>{"a note"});
    ASSERT_EQ(step.calls.size(), 1U);
    EXPECT_EQ(step.account, "");
    EXPECT_EQ(steps->back().record.state, StepState::kRunning);

    const PredictionStore predictions(**database);
    const auto all = predictions.of_step(steps->front().row);
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ(all->front().rank_finish_s, (std::vector<Seconds>{7.6, 7.0}));
    EXPECT_EQ(all->front().why_stuck, "");
    // What 0007 worked out for the steps that were there.
    const auto shown = predictions.summary_of_step(steps->front().row);
    ASSERT_TRUE(shown.ok());
    ASSERT_EQ(shown->size(), 2U);
    EXPECT_EQ(shown->back().predicted_s, 5.5);
    StepQuery on_node;
    on_node.nodes = {"n2"};
    on_node.job = 7;
    EXPECT_EQ(StepStore(**database).find(on_node, false)->size(), 1U);
  }
}

TEST_F(SchemaTest, AnOldFileGivesNoRoomBackBeforeItIsRebuilt) {
  write_dump(1);
  auto database = Database::open(path_);
  ASSERT_TRUE(database.ok());
  const auto grow_and_shrink = [&] {
    ASSERT_TRUE((*database)
                    ->write([](SQLite::Database& connection) {
                      connection.exec("CREATE TABLE big (bytes BLOB); INSERT INTO big VALUES (zeroblob(4000000))");
                      connection.exec("DROP TABLE big");
                    })
                    .ok());
  };
  const auto pages = [&] {
    std::int64_t count = 0;
    EXPECT_TRUE(
        (*database)
            ->read([&](SQLite::Database& connection) { count = connection.execAndGet("PRAGMA page_count").getInt64(); })
            .ok());
    return count;
  };
  grow_and_shrink();
  const auto left = (*database)->give_back(1 << 20);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(*left, 0U);
  EXPECT_GT(pages(), 900);

  const auto rebuilt = (*database)->rebuild();
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().message;
  EXPECT_LT(pages(), 100);
  grow_and_shrink();
  EXPECT_GT(pages(), 900);
  ASSERT_TRUE((*database)->give_back(100).ok());
  EXPECT_GT(pages(), 700);  // no more than was asked for
  EXPECT_EQ(*(*database)->give_back(1 << 20), 0U);
  EXPECT_LT(pages(), 100);
}

}  // namespace
}  // namespace lbf::db::schema_test