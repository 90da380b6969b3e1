// RecordConverter: regions and waits for a device, which are parts of the gap before a call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/mpi_function_table.h"
#include "event/wire.h"
#include "spank_plugin/relay/record_converter.h"
#include "tests/unit/relay/recorded.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::record_converter_parts_test {
namespace {

// No MPI call begins with it.
ring::Record part_of_gap(EventKind kind, std::uint64_t enter) {
  ring::Record record = RingFile::record(kind, enter, enter);
  record.flags = 0;
  return record;
}

ring::Record in_regions(std::uint64_t enter) {
  return part_of_gap(EventKind::kRegions, enter);
}

std::vector<std::uint64_t> values_of(const ring::Regions& regions) {
  std::vector<std::uint64_t> values(ring::kRegionWords);
  ring::write_regions(values.data(), regions);
  return values;
}

// The gap of 2,000 ticks was preempted for 100: of the other 1,900 regions had 1,200, and the call's record the rest.
TEST(RecordConverter, RegionsHaveTheirPartOfTheGap) {
  constexpr Seconds kTick = 0.5e-9;
  RecordConverter converter(1000, 2);
  Recorded out;
  std::vector<std::uint64_t> told;
  const RelayEventSink sink = [&](const Event& event) {
    if (event.kind == EventKind::kRegions) told.assign(event.values.begin(), event.values.end());
    out.events.push_back(event);
  };
  ASSERT_TRUE(converter.convert(adjust(100, 0, 0), {}, kTick, sink).ok());
  ASSERT_TRUE(converter.convert(in_regions(3000), values_of({3, 4, 4400, 1180, 20, 1200}), kTick, sink).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 3000, 3010), {}, kTick, sink).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 3110, 3120), {}, kTick, sink).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_EQ(out.events[0].kind, EventKind::kRegions);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 1200 * kTick);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{3, 4, 2200, 590, 10}));
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 700 * kTick);
  EXPECT_DOUBLE_EQ(out.events[1].call_s, 10 * kTick);
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 100 * kTick);
}

// A keep-alive gave 1,000 ticks of the first gap in advance. Once it is known that there are regions none is given.
TEST(RecordConverter, RegionsWithoutWhatKeepAlivesGave) {
  RecordConverter converter(0, 2);
  Recorded out;
  std::vector<std::uint64_t> told;
  const RelayEventSink sink = [&](const Event& event) {
    told.assign(event.values.begin(), event.values.end());
    out.events.push_back(event);
  };
  converter.keep_alive(1000e-9, sink);
  ASSERT_TRUE(converter.convert(in_regions(4000), values_of({1, 2, 4000, 2000, 0, 2000}), kNs, sink).ok());
  EXPECT_EQ(told, (std::vector<std::uint64_t>{1, 2, 2000, 1000, 0}));
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 4000, 4000), {}, kNs, sink).ok());
  converter.keep_alive(1000e-9, sink);
  EXPECT_EQ(out.events.size(), 3U);
  EXPECT_DOUBLE_EQ(out.process_s(), 4000e-9);
}

ring::Record in_device(std::uint64_t enter) {
  return part_of_gap(EventKind::kDevice, enter);
}

std::vector<std::uint64_t> values_of(const ring::DeviceWaits& waits) {
  std::vector<std::uint64_t> values(ring::kDeviceWords);
  ring::write_device_waits(values.data(), waits);
  return values;
}

// A gap of 3,000 ticks with regions of 1,000 and waits of 1,500, of which 1,200 on the processor: 500 are work.
TEST(RecordConverter, WaitsForADeviceHaveTheirPartOfTheGap) {
  constexpr Seconds kTick = 0.5e-9;
  RecordConverter converter(0, 2);
  Recorded out;
  std::vector<std::uint64_t> told;
  const RelayEventSink sink = [&](const Event& event) {
    if (event.kind == EventKind::kDevice) told.assign(event.values.begin(), event.values.end());
    out.events.push_back(event);
  };
  ASSERT_TRUE(
      converter.convert(in_regions(3000), values_of(ring::Regions{1, 2, 1800, 900, 0, 1000}), kTick, sink).ok());
  ASSERT_TRUE(converter.convert(in_device(3000), values_of(ring::DeviceWaits{7, 1200, 1500}), kTick, sink).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 3000, 3010), {}, kTick, sink).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_EQ(out.events[1].kind, EventKind::kDevice);
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 1500 * kTick);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{7, 600}));
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 500 * kTick);
  converter.keep_alive(1000e-9, sink);
  EXPECT_EQ(out.events.size(), 3U) << "the next gap may be a wait, too";
}

// A master that looks, sleeps 10 ms, works with its threads for 5 ms and waits 3 ms for its GPU before it looks again:
// the sleep had no period where such records come before the look.
TEST(RecordConverter, SleepBetweenLooksStaysWhatItIsBeforeRegionsAndWaits) {
  RecordConverter converter(0, 2);
  Recorded out;
  const ring::Adjustment sleep{0, 12'000'000, 0, 10'000'000, 1};
  ASSERT_TRUE(converter.convert(ring::record_of(sleep), {}, kNs, out.sink()).ok());
  constexpr std::uint64_t kEnter = 21'000'000;
  ASSERT_TRUE(converter
                  .convert(in_regions(kEnter), values_of(ring::Regions{1, 2, 8'000'000, 5'000'000, 0, 5'000'000}), kNs,
                           out.sink())
                  .ok());
  ASSERT_TRUE(
      converter.convert(in_device(kEnter), values_of(ring::DeviceWaits{1, 0, 3'000'000}), kNs, out.sink()).ok());
  ring::Record found = RingFile::record(EventKind::kProbe, kEnter, kEnter + 1);
  found.function = mpi_function("MPI_Iprobe")->id;
  ASSERT_TRUE(converter.convert(found, {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 5U);
  EXPECT_DOUBLE_EQ(out.events[0].off_s, 2e-3);
  EXPECT_EQ(look_period_ns(out.events[0]), 0);
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 5e-3);
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 3e-3);
  EXPECT_DOUBLE_EQ(out.events[3].off_s, 10e-3);
  EXPECT_NEAR(static_cast<double>(look_period_ns(out.events[3])), 10e6, 0.02 * 10e6);
  EXPECT_DOUBLE_EQ(out.events[4].process_s, 1e-3);
}

// More than the gap has, as where the thread's clock says that it was preempted meanwhile.
TEST(RecordConverter, WaitsForADeviceAreAtMostTheGap) {
  RecordConverter converter(0, 2);
  Recorded out;
  ASSERT_TRUE(converter.convert(adjust(400, 0, 0), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(in_device(1000), values_of(ring::DeviceWaits{1, 900, 900}), kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1000, 1000), {}, kNs, out.sink()).ok());
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 600e-9);
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 0);
}

TEST(RecordConverter, WaitsForADeviceThatCannotBeAreRefused) {
  RecordConverter converter(0, 2);
  Recorded out;
  for (const ring::DeviceWaits& bad : {ring::DeviceWaits{0, 1, 2}, {1, 3, 2}})
    EXPECT_FALSE(converter.convert(in_device(100), values_of(bad), kNs, out.sink()).ok());
  EXPECT_FALSE(converter.convert(in_device(100), std::vector<std::uint64_t>{1, 2}, kNs, out.sink()).ok());
}

TEST(RecordConverter, RegionsThatCannotBeAreRefused) {
  RecordConverter converter(0, 2);
  Recorded out;
  for (const ring::Regions& bad : {ring::Regions{0, 2, 10, 5, 0, 5}, {1, 0, 10, 5, 0, 5}, {1, 2, 4, 5, 0, 5}}) {
    EXPECT_FALSE(converter.convert(in_regions(100), values_of(bad), kNs, out.sink()).ok());
  }
  EXPECT_FALSE(converter.convert(in_regions(100), std::vector<std::uint64_t>{1, 2, 3}, kNs, out.sink()).ok());
  // More than the gap has, or than the wire: cut.
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  ASSERT_TRUE(converter.convert(in_regions(100), values_of({kAll, kAll, kAll, kAll, kAll, 50}), kNs, out.sink()).ok());
  EXPECT_DOUBLE_EQ(out.process_s(), 50e-9);
}

}  // namespace
}  // namespace lbf::relay::record_converter_parts_test
