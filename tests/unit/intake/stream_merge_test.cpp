#include "predictor/daemon/intake/stream_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/intake/batches.h"

namespace lbf::stream_merge_test {
namespace {

class Batches final : public daemon::BatchSource {
 public:
  explicit Batches(std::vector<std::string> batches) : batches_(std::move(batches)) {}
  Result<std::span<const std::byte>> next() override {
    if (at_ == batches_.size()) return std::span<const std::byte>();
    return test::bytes_of(batches_[at_++]);
  }
  Error located(const Error& error) const override {
    return {error.code, "here " + std::to_string(at_) + ": " + error.message};
  }

 private:
  std::vector<std::string> batches_;
  std::size_t at_ = 0;
};

// A batch of `events` events of `rank`, each `seconds` long.
std::string batch(std::uint32_t stream, std::uint64_t sequence, Rank rank, int events, Seconds seconds) {
  BatchEncoder encoder;
  for (int i = 0; i < events; ++i) {
    Event event;
    event.process_s = seconds / 2;
    event.call_s = seconds / 2;
    encoder.add(rank, event);
  }
  return encoder.finish(stream, sequence);
}

class Merge : public testing::Test {
 protected:
  void add(std::vector<std::string> batches) { sources_.push_back(std::make_unique<Batches>(std::move(batches))); }
  // Ranks of the blocks, in the order in which they came.
  Result<std::vector<Rank>> run() {
    daemon::StreamMerge merge(communicators_, 4, std::move(sources_));
    std::vector<Rank> blocks;
    BatchSink sink;
    Rank last = kAnyRank;
    sink.on_events = one_by_one([&](Rank rank, const Event&) -> Result<void> {
      last = rank;
      ++events_;
      return {};
    });
    sink.on_control = [&](std::string_view) -> Result<void> {
      EXPECT_TRUE(blocks.empty());
      ++records_;
      return {};
    };
    for (;;) {
      const Result<bool> more = merge.next(sink);
      if (!more) return more.error();
      if (!*more) return blocks;
      blocks.push_back(last);
    }
  }
  CommunicatorTable communicators_;
  std::vector<std::unique_ptr<daemon::BatchSource>> sources_;
  int events_ = 0;
  int records_ = 0;
};

TEST_F(Merge, TheRankThatIsFurthestBehindGoesOn) {
  // 3 batches of 10 s each against 6 of 4 s.
  add({batch(0, 1, 0, 10, 1), batch(0, 2, 0, 10, 1), batch(0, 3, 0, 10, 1)});
  std::vector<std::string> short_ones;
  for (std::uint64_t i = 1; i <= 6; ++i) short_ones.push_back(batch(1, i, 1, 4, 1));
  add(std::move(short_ones));
  const Result<std::vector<Rank>> blocks = run();
  ASSERT_TRUE(blocks.ok());
  EXPECT_THAT(*blocks, testing::ElementsAre(0, 1, 1, 1, 0, 1, 1, 0, 1));
  EXPECT_EQ(events_, 54);
}

TEST_F(Merge, RanksOfOneBatchTakeTurns) {
  BatchEncoder encoder;
  constexpr int kSlices = 5;
  for (const Rank rank : {0, 1}) {
    for (std::uint64_t i = 0; i < kSlices * daemon::StreamMerge::kMostEvents; ++i) {
      Event event;
      event.process_s = 1;
      encoder.add(rank, event);
    }
  }
  add({encoder.finish(0, 1)});
  const Result<std::vector<Rank>> blocks = run();
  ASSERT_TRUE(blocks.ok()) << blocks.error().message;
  int ahead = 0;  // slices of rank 0 before those of rank 1
  for (const Rank rank : *blocks) {
    ahead += rank == 0 ? 1 : -1;
    EXPECT_LE(std::abs(ahead), 1);
  }
  EXPECT_GE(blocks->size(), 2U * kSlices);
}

TEST_F(Merge, ControlRecordsComeBeforeEvents) {
  add({batch(0, 1, 0, 3, 1)});
  add({test::make_batch(1, 1)});
  const Result<std::vector<Rank>> blocks = run();
  ASSERT_TRUE(blocks.ok());
  EXPECT_THAT(*blocks, testing::ElementsAre(0, 0));
  EXPECT_EQ(records_, 1);
}

TEST_F(Merge, NothingAndEmptyBatchesAreFine) {
  add({});
  add({BatchEncoder().finish(1, 1), batch(1, 2, 2, 1, 1)});
  const Result<std::vector<Rank>> blocks = run();
  ASSERT_TRUE(blocks.ok()) << blocks.error().message;
  EXPECT_THAT(*blocks, testing::ElementsAre(2));
}

TEST_F(Merge, AnErrorSaysWhere) {
  std::string damaged = batch(0, 2, 0, 10, 1);
  damaged.back() = static_cast<char>(damaged.back() + 1);
  add({batch(0, 1, 0, 10, 1), damaged});
  const Result<std::vector<Rank>> blocks = run();
  ASSERT_FALSE(blocks.ok());
  EXPECT_THAT(blocks.error().message, testing::StartsWith("here 2: batch 2 of stream 0: damaged"));
}

}  // namespace
}  // namespace lbf::stream_merge_test