#include "spank_plugin/procedures/interval_records.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace lbf::procedures::interval_records_test {
namespace {

std::vector<lbf_procedure_sums> given;

class IntervalRecords : public testing::Test {
 protected:
  static constexpr std::uint64_t kCapacity = 1 << 14;
  void SetUp() override {
    header_ = std::make_unique<ring::Header>();
    data_.resize(kCapacity);
    writer_.attach(header_.get(), data_.data(), kCapacity, kCapacity);
  }
  const ring::Record& record_at(std::uint64_t offset) const {
    return *reinterpret_cast<const ring::Record*>(data_.data() + offset);
  }
  const std::uint64_t* values_at(std::uint64_t offset) const {
    return reinterpret_cast<const std::uint64_t*>(data_.data() + offset + sizeof(ring::Record));
  }
  std::unique_ptr<ring::Header> header_;
  std::vector<std::byte> data_;
  capture::RingWriter writer_;
};

constexpr std::uint64_t kRecordBytes = sizeof(ring::Record) + 8 * kProcedureValues;

TEST_F(IntervalRecords, OneForEachProcedureBeforeTheCallsOwn) {
  given = {{3, 0, 10, 4000, 1000, 0}, {5, 0, 2, 600, 600, 1}};
  writer_.begin_call(90'000, 17);
  EXPECT_EQ(write_interval_records(writer_, given, 90'000, 17, 1.0), 2u);
  ASSERT_NE(writer_.append(EventKind::kSend), nullptr);
  writer_.commit(91'000);

  const ring::Record& first = record_at(0);
  EXPECT_EQ(first.kind, static_cast<std::uint8_t>(EventKind::kProcedure));
  EXPECT_EQ(first.flags, 0);
  EXPECT_EQ(first.function, 0);
  EXPECT_EQ(first.enter, 90'000u);
  EXPECT_EQ(first.leave, 90'000u);
  EXPECT_EQ(std::vector<std::uint64_t>(values_at(0), values_at(0) + 4),
            (std::vector<std::uint64_t>{3, 4000, 1000, 10}));
  EXPECT_EQ(std::vector<std::uint64_t>(values_at(kRecordBytes), values_at(kRecordBytes) + 4),
            (std::vector<std::uint64_t>{5, 600, 600, 2}));
  const ring::Record& call = record_at(2 * kRecordBytes);
  EXPECT_EQ(call.kind, static_cast<std::uint8_t>(EventKind::kSend));
  EXPECT_EQ(call.function, 17);
  EXPECT_EQ(call.flags, kFlagCallBegin);
  EXPECT_EQ(call.enter, 90'000u);
  EXPECT_EQ(call.leave, 91'000u);
  EXPECT_EQ(header_->head.load(), 2 * kRecordBytes + sizeof(ring::Record));
}

TEST_F(IntervalRecords, OnlyProcessTimeCounts) {
  given = {{0, 0, 1, 1000, 1200, 0}};
  writer_.begin_call(5'000, 1);
  write_interval_records(writer_, given, 5'000, 1, 0.25);
  EXPECT_EQ(values_at(0)[1], 250u);
  EXPECT_EQ(values_at(0)[2], 250u);  // never more than the inclusive time
}

TEST(ProcessShare, ProcessorTimeOnlyHasToFitIn) {
  const std::vector<lbf_procedure_sums> of_tsc{{0, 0, 1, 600, 600, 0}, {1, 0, 1, 300, 200, 0}};
  const std::vector<lbf_procedure_sums> of_processor{{0, 1, 1, 600, 600, 0}, {1, 1, 1, 300, 200, 0}};
  EXPECT_EQ(process_share(of_tsc, 1000, 0), 1.0);
  EXPECT_EQ(process_share(of_tsc, 1000, 750), 0.25) << "whose it was nobody knows";
  EXPECT_EQ(process_share(of_processor, 4000, 3000), 1.0) << "the rest was none of theirs";
  EXPECT_EQ(process_share(of_processor, 1000, 600), 0.5) << "800 of 400";
  EXPECT_EQ(process_share({}, 1000, 500), 0.5);
  EXPECT_EQ(process_share(of_processor, 0, 0), 1.0);
}

TEST_F(IntervalRecords, NothingRanNothingIsWritten) {
  given = {{4, 0, 0, 0, 0, 0}};  // it is active, but no time passed
  writer_.begin_call(5'000, 1);
  EXPECT_EQ(write_interval_records(writer_, given, 5'000, 1, 1.0), 0u);
  EXPECT_EQ(header_->head.load(), 0u);
}

TEST_F(IntervalRecords, FullRingCountsThemAsLost) {
  given.assign(kMostIntervalSums, {1, 0, 1, 1, 1, 0});
  writer_.begin_call(5'000, 1);
  EXPECT_EQ(write_interval_records(writer_, given, 5'000, 1, 1.0), kMostIntervalSums);
  EXPECT_GT(header_->lost_records.load(), 0u);
}

}  // namespace
}  // namespace lbf::procedures::interval_records_test