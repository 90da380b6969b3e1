// StoredTraceReader: which stream comes next, whose events they are, and what a damaged stream does to the others.
#include "predictor/daemon/intake/stored_trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/intake/batches.h"

namespace lbf::stored_trace_reader_test {
namespace {

using daemon::StoredTraceReader;
using testing::ElementsAre;

class ReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/reader_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    auto made = daemon::StepTrace::create({"c", 7, 0, 0}, directory_, test::describe(0, 2), 1000);
    ASSERT_TRUE(made.ok()) << made.error().message;
    trace_ = std::move(made).value();
    ASSERT_TRUE(trace_->register_stream(test::describe(0, 2)).ok());
    ASSERT_TRUE(trace_->register_stream(test::describe(1, 2)).ok());
    reader_.emplace(trace_, 4);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void append(std::uint32_t stream, Rank rank, Seconds seconds) {
    BatchEncoder encoder;
    encoder.add_control(R"({"type":"stats","rank":)" + std::to_string(rank) + "}");
    Event event;
    event.process_s = seconds;
    encoder.add(rank, event);
    const std::uint64_t sequence = trace_->stream(stream)->next_sequence;
    const std::string batch = encoder.finish(stream, sequence);
    ASSERT_TRUE(trace_->append(stream, sequence, test::bytes_of(batch)).ok());
  }
  StoredTraceReader::Next next() const { return reader_->next(trace_->streams()); }
  Result<void> read(std::uint32_t stream) {
    return reader_->read(stream,
                         {[this](std::uint32_t, Rank rank, std::span<const Event>, StoredTraceReader::Origin origin) {
                            ranks_.push_back(rank);
                            origins_.push_back(origin);
                          },
                          [this](std::uint32_t from, const protocol::ControlRecord& record) {
                            records_.emplace_back(from, protocol::rank_of(record));
                          }});
  }

  std::string directory_;
  std::shared_ptr<daemon::StepTrace> trace_;
  std::optional<StoredTraceReader> reader_;
  std::vector<Rank> ranks_;
  std::vector<StoredTraceReader::Origin> origins_;
  std::vector<std::pair<std::uint32_t, std::optional<std::int64_t>>> records_;
};

TEST_F(ReaderTest, TheStreamThatIsFurthestBehindComesNext) {
  EXPECT_FALSE(next().stream) << "nothing is here";
  append(0, 0, 3);
  append(0, 0, 3);
  append(1, 1, 1);
  append(1, 1, 1);
  ASSERT_EQ(next().stream, 0u);
  ASSERT_TRUE(read(0).ok());
  EXPECT_EQ(next().stream, 1u) << "0 s against 3 s";
  ASSERT_TRUE(read(1).ok());
  EXPECT_EQ(next().stream, 1u) << "1 s against 3 s";
  EXPECT_FALSE(next().is_ahead);
  ASSERT_TRUE(read(1).ok());
  EXPECT_EQ(next().stream, 0u);
  EXPECT_TRUE(next().is_ahead) << "stream 1 is at 2 s and has more to come";
  ASSERT_TRUE(trace_->end_stream(1, {2, 0, "step_end"}).ok());
  EXPECT_FALSE(next().is_ahead);
  EXPECT_EQ(reader_->replayed_s(), 5);
  EXPECT_THAT(records_,
              ElementsAre(std::pair(0u, std::optional<std::int64_t>(0)), std::pair(1u, std::optional<std::int64_t>(1)),
                          std::pair(1u, std::optional<std::int64_t>(1))));
}

TEST_F(ReaderTest, ARankBelongsToTheStreamThatCarriedItFirst) {
  append(0, 2, 1);
  append(1, 2, 1);
  append(1, 9, 1);
  append(0, 2, 1);
  EXPECT_FALSE(reader_->stream_of(2));
  for (const std::uint32_t stream : {0u, 1u, 1u, 0u}) ASSERT_TRUE(read(stream).ok());
  using Origin = StoredTraceReader::Origin;
  EXPECT_THAT(origins_, ElementsAre(Origin::kFirst, Origin::kOtherStream, Origin::kNoRankOfStep, Origin::kAsBefore));
  EXPECT_EQ(reader_->stream_of(2), 0u);
  EXPECT_FALSE(reader_->stream_of(9));
  EXPECT_EQ(reader_->replayed_s(), 2) << "of the step's ranks only";
}

TEST_F(ReaderTest, ADamagedStreamStopsAlone) {
  append(0, 0, 1);
  append(1, 1, 1);
  {
    std::fstream file(directory_ + "/stream-0.lbfw", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(60);
    file.put('\x55');
    file.put('\x55');
  }
  const auto read_0 = read(0);
  ASSERT_FALSE(read_0.ok());
  EXPECT_THAT(read_0.error().message, testing::StartsWith("stream 0, batch 1: "));
  EXPECT_EQ(next().stream, 1u);
  ASSERT_TRUE(read(1).ok());
  EXPECT_FALSE(next().stream);
  EXPECT_THAT(ranks_, ElementsAre(1));
}

TEST_F(ReaderTest, AStreamThatIsGivenUpIsReadNoMore) {
  append(0, 0, 1);
  append(0, 0, 1);
  ASSERT_TRUE(read(0).ok());
  EXPECT_EQ(reader_->give_up(0, "no memory"), "the replay of stream 0 stopped at batch 2: no memory");
  EXPECT_FALSE(next().stream);
}

TEST_F(ReaderTest, RoundsAreMeasuredAsTheirEvents) {
  BatchEncoder encoder;
  for (int i = 1; i <= 100; ++i) {
    Event event;
    event.process_s = 1e-6 * i;
    event.call_s = 1e-7;
    encoder.add(1, event);
  }
  const std::string batch = encoder.finish(0, 1);
  ASSERT_TRUE(trace_->append(0, 1, test::bytes_of(batch)).ok());
  ASSERT_TRUE(read(0).ok());
  StoredTraceReader by_rounds(trace_, 4);
  std::uint64_t events = 0;
  std::uint64_t in_rounds = 0;
  const Result<void> done = by_rounds.read(
      0, {[&](std::uint32_t, Rank, std::span<const Event> some, StoredTraceReader::Origin) { events += some.size(); },
          [](std::uint32_t, const protocol::ControlRecord&) {},
          [&](Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin) -> Result<bool> {
            EXPECT_EQ(rank, 1);
            EXPECT_EQ(origin, StoredTraceReader::Origin::kAsBefore);
            in_rounds += rounds.times.size();
            return true;
          }});
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(events + in_rounds, 100u);
  EXPECT_GT(in_rounds, 90u);
  EXPECT_EQ(by_rounds.replayed_s(), reader_->replayed_s());
}

}  // namespace
}  // namespace lbf::stored_trace_reader_test
