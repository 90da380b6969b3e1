// TraceStore: finding, making and removing traces.
#include "predictor/daemon/intake/trace_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.h"
#include "tests/unit/intake/batches.h"

namespace lbf::trace_store_test {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::describe;
using test::make_batch;

class TraceStoreTest : public testing::Test {
 protected:
  std::unique_ptr<daemon::TraceStore> open() {
    auto store = daemon::TraceStore::open(path_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(store).value();
  }
  // A stored step whose files are `age` old.
  void add(daemon::TraceStore& store, const daemon::StepKey& key, std::chrono::hours age) {
    {
      auto trace = store.create(key, describe(), 1000);
      ASSERT_TRUE(trace.ok()) << trace.error().message;
      ASSERT_TRUE((*trace)->register_stream(describe()).ok());
      ASSERT_TRUE((*trace)->append(0, 1, bytes_of(make_batch(0, 1, 3000))).ok());
      ASSERT_TRUE((*trace)->end_stream(0, {1, 0, "step_end"}).ok());
    }
    for (const auto& entry : fs::directory_iterator(path_ + "/" + key.cluster + "/" + key.directory_name())) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - age);
    }
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/traces";
};

TEST_F(TraceStoreTest, ListsWhatIsThere) {
  auto store = open();
  EXPECT_TRUE(store->list().empty());
  add(*store, {"b", 2, 0, 0}, std::chrono::hours(0));
  add(*store, {"a", 10, 1, 0}, std::chrono::hours(0));
  fs::create_directories(path_ + "/a/not-a-step");
  std::ofstream(path_ + "/stray") << "x";
  EXPECT_EQ(open()->list(), (std::vector<daemon::StepKey>{{"a", 10, 1, 0}, {"b", 2, 0, 0}}));
}

// Slurm's job number came again: the second job has a folder of its own. One of version 1 is read as well.
TEST_F(TraceStoreTest, JobsOfOneNumberAndFoldersOfVersion1) {
  const daemon::StepKey old{"a", 7, 0, 0};
  const daemon::StepKey first{"a", 7, 0, 0, 1700000000};
  const daemon::StepKey second{"a", 7, 0, 0, 1700000060};
  {
    auto store = open();
    for (const auto& key : {old, first, second}) add(*store, key, std::chrono::hours(0));
  }
  const std::string step = path_ + "/a/7.0.0/step.json";
  std::ifstream in(step);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  ASSERT_NE(text.find(R"("version":2)"), std::string::npos);
  text.replace(text.find(R"("version":2)"), 11, R"("version":1)");
  std::ofstream(step) << text;
  auto store = open();
  EXPECT_EQ(store->list(), (std::vector<daemon::StepKey>{old, first, second}));
  for (const auto& key : {old, first, second}) {
    const auto trace = store->open_step(key);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ((*trace)->key(), key);
  }
  text.replace(text.find(R"("version":1)"), 11, R"("version":3)");
  std::ofstream(step) << text;
  EXPECT_FALSE(store->open_step(old).ok());
}

TEST_F(TraceStoreTest, HostileClusterNamesLeaveTheStoreAlone) {
  auto store = open();
  EXPECT_FALSE(store->create({"../../x", 1, 0, 0}, describe(), 1).ok());
  EXPECT_FALSE(fs::exists(directory_.path() + "/x"));
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(TraceStoreTest, RemovesByAgeButNotWhatIsInUse) {
  auto store = open();
  add(*store, {"c", 1, 0, 0}, std::chrono::hours(48));
  add(*store, {"c", 2, 0, 0}, std::chrono::hours(48));
  add(*store, {"c", 3, 0, 0}, std::chrono::hours(1));
  daemon::Retention retention;
  retention.age = std::chrono::hours(24);
  const auto pruned = store->prune(
      retention, [](const daemon::StepKey& key) { return key.job == 2; },
      [](const Error& error) { FAIL() << error.message; });
  EXPECT_EQ(pruned.removed, (std::vector<daemon::StepKey>{{"c", 1, 0, 0}}));
  EXPECT_EQ(store->list(), (std::vector<daemon::StepKey>{{"c", 2, 0, 0}, {"c", 3, 0, 0}}));
}

TEST_F(TraceStoreTest, RemovesTheOldestAboveTheLimit) {
  auto store = open();
  add(*store, {"c", 1, 0, 0}, std::chrono::hours(1));
  add(*store, {"c", 2, 0, 0}, std::chrono::hours(3));
  add(*store, {"c", 3, 0, 0}, std::chrono::hours(2));
  daemon::Retention retention;
  retention.age = std::chrono::hours(0);
  const auto nothing_in_use = [](const daemon::StepKey&) { return false; };
  const auto no_error = [](const Error& error) { FAIL() << error.message; };
  const auto all = store->prune(retention, nothing_in_use, no_error);
  EXPECT_TRUE(all.removed.empty());
  retention.limit_bytes = all.stored_bytes / 3 + 1;
  const auto pruned = store->prune(retention, nothing_in_use, no_error);
  EXPECT_EQ(pruned.removed, (std::vector<daemon::StepKey>{{"c", 2, 0, 0}, {"c", 3, 0, 0}}));
  EXPECT_LE(pruned.stored_bytes, retention.limit_bytes);
}

TEST_F(TraceStoreTest, KnowsWhoseStreamsHaveNotEnded) {
  const auto store = open();
  const daemon::StepKey key{"c", 1, 0, 0};
  auto trace = store->create(key, describe(0, 2), 1000);
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(store->has_open_stream(key));
  ASSERT_TRUE((*trace)->register_stream(describe(0, 2)).ok());
  ASSERT_TRUE((*trace)->end_missing_stream(1).ok());
  EXPECT_TRUE(store->has_open_stream(key));
  ASSERT_TRUE((*trace)->end_stream(0, {0, 0, std::string(daemon::kReasonStreamTimeout)}).ok());
  EXPECT_FALSE(store->has_open_stream(key));
  ASSERT_TRUE((*trace)->reopen_stream(1).ok());
  EXPECT_TRUE(store->has_open_stream(key));
}

TEST_F(TraceStoreTest, FinishesInterruptedRemovals) {
  auto store = open();
  add(*store, {"c", 1, 0, 0}, std::chrono::hours(1));
  fs::rename(path_ + "/c/1.0.0", path_ + "/c/.removed-1.0.0");
  store = open();
  EXPECT_FALSE(fs::exists(path_ + "/c/.removed-1.0.0"));
  EXPECT_TRUE(store->list().empty());
}

TEST_F(TraceStoreTest, ADirectoryWithoutAStepIsRemoved) {
  auto store = open();
  fs::create_directories(path_ + "/c/5.0.0");
  const auto trace = store->open_step({"c", 5, 0, 0});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::kNotFound);
  store->remove_empty({"c", 5, 0, 0});
  EXPECT_TRUE(store->list().empty());
  add(*store, {"c", 6, 0, 0}, std::chrono::hours(0));
  store->remove_empty({"c", 6, 0, 0});
  EXPECT_EQ(store->list().size(), 1u);
}

TEST_F(TraceStoreTest, CountsDeathsInARowAtOnePlace) {
  auto store = open();
  const daemon::StepKey key{"c", 7, 0, 0};
  add(*store, key, std::chrono::hours(0));
  EXPECT_EQ(store->deaths_in_replay(key).all, 0u);
  for (const char* at : {"0.1", "0.2", "0.2", ""}) ASSERT_TRUE(store->count_death(key, at).ok());
  EXPECT_EQ(store->deaths_in_replay(key).all, 4u);
  EXPECT_EQ(store->deaths_in_replay(key).in_a_row, 1u);
  ASSERT_TRUE(store->count_death(key, "").ok());
  EXPECT_EQ(store->deaths_in_replay(key).in_a_row, 2u) << "it had nothing at hand yet, again";
  EXPECT_FALSE(store->is_retried(key));
  ASSERT_TRUE(store->request_retry(key).ok());
  EXPECT_TRUE(store->is_retried(key));
  EXPECT_EQ(store->deaths_in_replay(key).all, 0u);
  store->forget_retry(key);
  EXPECT_FALSE(store->is_retried(key));
  ASSERT_TRUE(store->forget_deaths(key).ok());
}

TEST_F(TraceStoreTest, TheOwnerIsFoundInADamagedStep) {
  auto store = open();
  const daemon::StepKey key{"c", 7, 0, 0};
  add(*store, key, std::chrono::hours(0));
  EXPECT_EQ(store->owner_of(key), 1000u);
  std::ofstream(path_ + "/c/7.0.0/step.json") << R"({"description":{"owner_uid":5},"owner_uid":77,"version":)";
  EXPECT_EQ(store->owner_of(key), 77u);
  EXPECT_FALSE(store->owner_of({"c", 8, 0, 0}));
}

}  // namespace
}  // namespace lbf::trace_store_test