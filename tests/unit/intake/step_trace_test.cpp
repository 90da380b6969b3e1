// StepTrace: acknowledged means durable, every batch exactly once, whatever is torn off at the end of a file.
#include "predictor/daemon/intake/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "predictor/daemon/intake/file_io.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/intake/batches.h"

namespace lbf::step_trace_test {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::describe;
using test::make_batch;

class StepTraceTest : public testing::Test {
 protected:
  std::shared_ptr<daemon::StepTrace> create(int nodes = 1) {
    auto trace = daemon::StepTrace::create(key_, path_, describe(0, nodes), 1000);
    EXPECT_TRUE(trace.ok());
    EXPECT_TRUE((*trace)->register_stream(describe(0, nodes)).ok());
    return std::move(trace).value();
  }
  std::shared_ptr<daemon::StepTrace> reopen() {
    auto trace = daemon::StepTrace::open(key_, path_);
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    return std::move(trace).value();
  }
  std::string file() const { return path_ + "/stream-0.lbfw"; }
  static daemon::AppendResult append(daemon::StepTrace& trace, std::uint64_t sequence, const std::string& batch) {
    const auto result = trace.append(0, sequence, bytes_of(batch));
    EXPECT_TRUE(result.ok()) << result.error().message;
    return *result;
  }

  test::TemporaryDirectory directory_;
  const daemon::StepKey key_{"c", 7, 0, 0};
  const std::string path_ = directory_.path() + "/7.0.0";
};

TEST_F(StepTraceTest, TakesEachBatchExactlyOnce) {
  auto trace = create();
  const std::string first = make_batch(0, 1);
  const std::string second = make_batch(0, 2);
  EXPECT_EQ(append(*trace, 1, first).outcome, daemon::AppendOutcome::kStored);
  EXPECT_EQ(append(*trace, 1, first).outcome, daemon::AppendOutcome::kDuplicate);
  const daemon::AppendResult gap = append(*trace, 3, make_batch(0, 3));
  EXPECT_EQ(gap.outcome, daemon::AppendOutcome::kGap);
  EXPECT_EQ(gap.next_sequence, 2u);
  EXPECT_EQ(append(*trace, 2, second).next_sequence, 3u);
  EXPECT_EQ(append(*trace, 1, first).outcome, daemon::AppendOutcome::kDuplicate);
  EXPECT_EQ(*daemon::read_whole_file(file(), 1 << 20), first + second);
}

TEST_F(StepTraceTest, GoesOnAfterReopening) {
  {
    auto trace = create(2);
    append(*trace, 1, make_batch(0, 1));
    append(*trace, 2, make_batch(0, 2));
  }
  auto trace = reopen();
  EXPECT_EQ(trace->owner(), uid_t{1000});
  EXPECT_EQ(trace->stream(0)->next_sequence, 3u);
  EXPECT_FALSE(trace->stream(1).has_value());
  EXPECT_EQ(*trace->register_stream(describe(0, 2)), 3u);
  EXPECT_EQ(*trace->register_stream(describe(1, 2)), 1u);
  EXPECT_EQ(append(*trace, 2, make_batch(0, 2)).outcome, daemon::AppendOutcome::kDuplicate);
  EXPECT_EQ(append(*trace, 3, make_batch(0, 3)).outcome, daemon::AppendOutcome::kStored);
  std::string batch;
  ASSERT_TRUE(trace->read_batch(0, 2, batch).ok());
  EXPECT_EQ(batch, make_batch(0, 2));
  const auto streams = reopen()->stream_descriptions();
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams.at(1).task_ids, std::vector<Rank>{1});  // its own, not the first stream's
}

// What came before a start is looked at when the next batch comes: its communicators are known then.
TEST_F(StepTraceTest, CommunicatorsAreKnownAfterReopening) {
  const auto batch_on = [](std::uint64_t sequence, std::uint32_t comm, bool defines) {
    const std::vector<std::uint64_t> members = {77 + sequence, 0, 0, 1};
    BatchEncoder encoder;
    Event event;
    event.comm = comm;
    event.kind = defines ? EventKind::kCommCreate : EventKind::kCollective;
    if (defines) event.values = members;
    encoder.add(0, event);
    return encoder.finish(0, sequence);
  };
  append(*create(), 1, batch_on(1, 1, true));
  EXPECT_EQ(append(*reopen(), 2, batch_on(2, 1, false)).outcome, daemon::AppendOutcome::kStored);
  auto trace = reopen();
  EXPECT_FALSE(trace->append(0, 3, bytes_of(batch_on(3, 2, false))).ok());  // nobody has defined it
  EXPECT_FALSE(trace->append(0, 3, bytes_of(batch_on(3, 1, true))).ok());   // taken
  EXPECT_EQ(append(*trace, 3, batch_on(3, 1, false)).outcome, daemon::AppendOutcome::kStored);
}

// A crash may leave any prefix of the batch that was being written.
TEST_F(StepTraceTest, CutsATornTailAtEveryByte) {
  const std::string first = make_batch(0, 1);
  const std::string second = make_batch(0, 2, 5);
  create();
  for (std::size_t kept = 0; kept < second.size(); ++kept) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << first << second.substr(0, kept);
    auto trace = reopen();
    ASSERT_EQ(trace->stream(0)->next_sequence, 2u) << kept;
    ASSERT_EQ(fs::file_size(file()), first.size()) << kept;
    ASSERT_EQ(append(*trace, 2, second).outcome, daemon::AppendOutcome::kStored);
    ASSERT_EQ(*daemon::read_whole_file(file(), 1 << 20), first + second);
  }
}

// After a power failure the file may have its length, but zeros or old data in it.
TEST_F(StepTraceTest, CutsATailWithAnyWrongByte) {
  const std::string first = make_batch(0, 1);
  const std::string second = make_batch(0, 2, 5);
  create();
  for (std::size_t at = 0; at < second.size(); ++at) {
    std::string damaged = second;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << first << damaged;
    auto trace = reopen();
    ASSERT_EQ(trace->stream(0)->next_sequence, 2u) << at;
    ASSERT_EQ(fs::file_size(file()), first.size()) << at;
  }
}

TEST_F(StepTraceTest, DamageInTheMiddleIsReportedAndNothingIsCut) {
  const std::string batches[] = {make_batch(0, 1), make_batch(0, 2), make_batch(0, 3)};
  create();
  for (const std::size_t at : {std::size_t{10}, batches[1].size() - 3}) {  // header, payload
    std::string damaged = batches[1];
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << batches[0] << damaged << batches[2];
    auto trace = reopen();
    EXPECT_THAT(trace->stream(0)->damage, testing::HasSubstr("batch 2 of stream 0 is damaged"));
    EXPECT_EQ(fs::file_size(file()), batches[0].size() + batches[1].size() + batches[2].size());
    EXPECT_FALSE(trace->append(0, 2, bytes_of(batches[1])).ok());
  }
}

TEST_F(StepTraceTest, RefusesBadBatchesAndStoresNothing) {
  auto trace = create();
  const std::string good = make_batch(0, 1);
  const auto refused = [&](const std::string& batch) {
    const auto result = trace->append(0, 1, bytes_of(batch));
    return !result.ok() && result.error().code == ErrorCode::kInvalidInput && fs::file_size(file()) == 0;
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_TRUE(refused(damaged)) << "byte " << at;
    EXPECT_TRUE(refused(good.substr(0, at))) << "cut at " << at;
  }
  EXPECT_TRUE(refused(good + "x"));
  EXPECT_TRUE(refused(good + good));
  EXPECT_TRUE(refused(make_batch(1, 1)));  // another stream's
  EXPECT_TRUE(refused(make_batch(0, 2)));  // another sequence than the request's
  BatchEncoder encoder;
  encoder.add_control("not json");
  EXPECT_TRUE(refused(encoder.finish(0, 1)));
  EXPECT_EQ(append(*trace, 1, good).outcome, daemon::AppendOutcome::kStored);
}

TEST_F(StepTraceTest, EndsOnceAndRemembers) {
  auto trace = create();
  append(*trace, 1, make_batch(0, 1));
  const auto early = trace->end_stream(0, {2, 0, "step_end"});
  ASSERT_TRUE(early.ok());
  EXPECT_EQ(early->outcome, daemon::AppendOutcome::kGap);  // batch 2 is neither here nor lost
  EXPECT_FALSE(trace->all_ended());
  EXPECT_EQ(trace->end_stream(0, {1, 0, "step_end"})->outcome, daemon::AppendOutcome::kStored);
  EXPECT_EQ(trace->end_stream(0, {1, 0, "again"})->outcome, daemon::AppendOutcome::kDuplicate);
  EXPECT_EQ(append(*trace, 1, make_batch(0, 1)).outcome, daemon::AppendOutcome::kDuplicate);
  EXPECT_EQ(append(*trace, 2, make_batch(0, 2)).outcome, daemon::AppendOutcome::kEnded);
  EXPECT_TRUE(trace->all_ended());
  trace = reopen();
  EXPECT_TRUE(trace->all_ended());
  EXPECT_EQ(trace->stream(0)->end->reason, "step_end");
  EXPECT_EQ(trace->stream(0)->next_sequence, 2u);
  EXPECT_GT(trace->stream(0)->end->realtime_ns, 0);
}

TEST_F(StepTraceTest, OnlyLbfdsOwnEndIsTakenBack) {
  auto trace = create(2);
  append(*trace, 1, make_batch(0, 1));
  ASSERT_TRUE(trace->end_stream(0, {1, 0, std::string(daemon::kReasonStreamTimeout)}).ok());
  ASSERT_TRUE(trace->end_missing_stream(1).ok());
  EXPECT_TRUE(trace->all_ended());
  trace = reopen();
  EXPECT_TRUE(trace->all_ended());
  ASSERT_TRUE(trace->reopen_stream(0).ok());
  EXPECT_FALSE(trace->all_ended());
  EXPECT_EQ(append(*trace, 2, make_batch(0, 2)).outcome, daemon::AppendOutcome::kStored);
  EXPECT_EQ(reopen()->stream(0)->next_sequence, 3u);
  ASSERT_TRUE(trace->reopen_stream(1).ok());
  EXPECT_EQ(*trace->register_stream(describe(1, 2)), 1u);
  EXPECT_EQ(reopen()->stream_descriptions().at(1).task_ids, std::vector<Rank>{1});
  ASSERT_TRUE(trace->end_stream(0, {2, 0, "step_end"}).ok());
  ASSERT_TRUE(trace->reopen_stream(0).ok());
  EXPECT_TRUE(trace->stream(0)->end.has_value());
}

TEST_F(StepTraceTest, AStreamThatComesBackGoesOnBeingRead) {
  auto trace = create(1);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) append(*trace, sequence, make_batch(0, sequence));
  ASSERT_TRUE(trace->end_stream(0, {3, 0, std::string(daemon::kReasonStreamTimeout)}).ok());
  trace = reopen();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::string batch;
    while (!done) {
      for (std::uint64_t sequence = 1; sequence <= 3; ++sequence)
        EXPECT_TRUE(trace->read_batch(0, sequence, batch).ok()) << sequence;
    }
  });
  EXPECT_TRUE(trace->reopen_stream(0).ok());
  EXPECT_EQ(append(*trace, 4, make_batch(0, 4)).outcome, daemon::AppendOutcome::kStored);
  done = true;
  reader.join();
  // What is damaged is found out when it is read again.
  ASSERT_TRUE(trace->end_stream(0, {4, 0, std::string(daemon::kReasonStreamTimeout)}).ok());
  trace = reopen();
  fs::resize_file(file(), fs::file_size(file()) - 1);
  ASSERT_TRUE(trace->reopen_stream(0).ok());
  EXPECT_NE(trace->stream(0)->damage, "");
  EXPECT_FALSE(trace->append(0, 5, bytes_of(make_batch(0, 5))).ok());
}

TEST_F(StepTraceTest, OpenedToReadNothingIsCut) {
  const std::string first = make_batch(0, 1);
  const std::string second = make_batch(0, 2, 5);
  create();
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << first << second.substr(0, second.size() - 1);
  const auto copy = daemon::StepTrace::open_to_read(key_, path_);
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ((*copy)->stream(0)->durable_bytes, first.size());
  EXPECT_EQ(fs::file_size(file()), first.size() + second.size() - 1);
}

TEST_F(StepTraceTest, StreamsMustDescribeTheSameStep) {
  auto trace = create(2);
  EXPECT_FALSE(trace->register_stream(describe(1, 3)).ok());
  const auto result = trace->append(1, 1, bytes_of(make_batch(1, 1)));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
}

// A full disk, made with a file size limit: nothing is acknowledged, nothing half stays, and it goes on
// later.
TEST_F(StepTraceTest, FullDiskStoresNothingAndRecovers) {
  const std::string first = make_batch(0, 1);
  const std::string second = make_batch(0, 2, 2000);
  auto trace = create();
  append(*trace, 1, first);
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit full { first.size() + second.size() / 2, old.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto refused = trace->append(0, 2, bytes_of(second));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_EQ(fs::file_size(file()), first.size());
  EXPECT_EQ(trace->stream(0)->next_sequence, 2u);
  EXPECT_EQ(append(*trace, 2, second).outcome, daemon::AppendOutcome::kStored);
  EXPECT_EQ(*daemon::read_whole_file(file(), 1 << 24), first + second);
}

// SIGKILL between and inside writes: what was acknowledged (told through a pipe) is there.
TEST_F(StepTraceTest, WhatWasAcknowledgedSurvivesSigkill) {
  create();
  int acknowledged[2];
  ASSERT_EQ(::pipe(acknowledged), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto trace = daemon::StepTrace::open(key_, path_);
    for (std::uint64_t sequence = 1; trace.ok(); ++sequence) {
      if (!trace.value()->append(0, sequence, bytes_of(make_batch(0, sequence, 200))).ok()) break;
      if (::write(acknowledged[1], "x", 1) != 1) break;
    }
    ::_exit(1);
  }
  char one = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(::read(acknowledged[0], &one, 1), 1);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(acknowledged[1]);
  std::uint64_t told = 20;
  while (::read(acknowledged[0], &one, 1) == 1) ++told;
  ::close(acknowledged[0]);
  auto trace = reopen();
  EXPECT_GE(trace->stream(0)->next_sequence, told + 1);
  EXPECT_LE(trace->stream(0)->next_sequence, told + 2);
  std::string expected;
  for (std::uint64_t sequence = 1; sequence < trace->stream(0)->next_sequence; ++sequence) {
    expected += make_batch(0, sequence, 200);
  }
  EXPECT_EQ(*daemon::read_whole_file(file(), 1 << 26), expected);
}

TEST_F(StepTraceTest, ANewerStoreIsRefused) {
  create();
  auto text = *daemon::read_whole_file(path_ + "/step.json", 1 << 20);
  const std::size_t at = text.find("\"version\":2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "\"version\":3");
  ASSERT_TRUE(daemon::write_file_durably(path_ + "/step.json", text).ok());
  const auto trace = daemon::StepTrace::open(key_, path_);
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.error().message, testing::HasSubstr("version 3"));
}

// One user's steps held a descriptor for each stream: nobody else could register.
TEST_F(StepTraceTest, StreamsHoldNoDescriptorsBetweenTheirBatches) {
  const auto open_now = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  const auto before = open_now();
  auto trace = create(4);
  for (std::uint32_t node = 0; node < 4; ++node) ASSERT_TRUE(trace->register_stream(describe(node, 4)).ok());
  for (std::uint32_t node = 0; node < 4; ++node)
    ASSERT_TRUE(trace->append(node, 1, bytes_of(make_batch(node, 1))).ok());
  EXPECT_EQ(open_now(), before);
  const auto again = reopen();
  std::string batch;
  ASSERT_TRUE(again->read_batch(3, 1, batch).ok());
  EXPECT_EQ(open_now(), before);
}

// What a full disk is answered with made relays try for ever.
TEST_F(StepTraceTest, AStepThatIsTooLongToReadIsDamagedNotFull) {
  create();
  fs::resize_file(path_ + "/step.json", 3 * protocol::kMaxDescriptionBytes);
  const auto opened = daemon::StepTrace::open(key_, path_);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace lbf::step_trace_test