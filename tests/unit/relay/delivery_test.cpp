// Delivery and the spool: in order, exactly once, whatever lbfd does.
#include "spank_plugin/relay/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/crc32c.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/relay/fake_lbfd.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::delivery_test {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
const char* const kTarget = "/v1/steps/test/7/0/0/streams/0";

class DeliveryTest : public testing::Test {
 protected:
  DeliveryOptions options(Bytes limit = 1 << 20) {
    return {{"test/7/0/0", 0, "unix:/nowhere", R"({"job":7})"}, spool_.path(), limit};
  }
  RequestFunction request() {
    return [this](std::string_view method, std::string_view target, std::string_view body,
                  std::string_view) -> Result<HttpResponse> {
      if (!reachable_) return Error{ErrorCode::kUnavailable, "nobody listens"};
      return lbfd_.handle(method, target, body);
    };
  }
  // One event whose bytes say its number; random values keep zstd from making it small.
  std::unique_ptr<BatchEncoder> batch(std::uint64_t number, std::size_t values = 0) {
    auto encoder = std::make_unique<BatchEncoder>();
    std::vector<std::uint64_t> words(values);
    for (auto& word : words) word = random_();
    Event event;
    event.kind = values > 0 ? EventKind::kWait : EventKind::kSend;
    event.peer = values > 0 ? kAnyRank : 1;
    event.tag = values > 0 ? kAnyTag : 0;
    event.bytes = number;
    event.process_s = 1e-6;
    event.values = words;
    encoder->add(0, event);
    return encoder;
  }
  void run(Delivery& delivery, std::uint64_t until_ns) {
    for (; now_ns_ < until_ns && delivery.outcome() == Outcome::kUnderWay; now_ns_ += 10'000'000) {
      while (delivery.advance(now_ns_)) {
      }
    }
  }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> out;
    for (const auto& [rank, event] : lbfd_.decode(kTarget).events) out.push_back(event.bytes);
    return out;
  }
  std::vector<std::uint64_t> first(std::uint64_t count) {
    std::vector<std::uint64_t> out(count);
    for (std::uint64_t i = 0; i < count; ++i) out[i] = i;
    return out;
  }

  test::TemporaryDirectory spool_;
  FakeLbfd lbfd_;
  bool reachable_ = true;
  std::uint64_t now_ns_ = kSecondNs;
  std::mt19937_64 random_{11};
};

TEST_F(DeliveryTest, BatchesArriveInOrderAndTheStreamEnds) {
  Delivery delivery(options(), request());
  for (std::uint64_t i = 0; i < 5; ++i) delivery.submit(batch(i));
  delivery.end("step_end");
  run(delivery, 2 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(5));
  EXPECT_EQ(lbfd_.ends[kTarget], (nlohmann::json{{"last_sequence", 5}, {"lost_batches", 0}, {"reason", "step_end"}}));
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
  EXPECT_EQ(delivery.totals().batches, 5U);
}

// Which procedures all ranks measure comes with the answers; what makes no sense changes nothing.
TEST_F(DeliveryTest, AnAnswerBringsTheListOfProcedures) {
  Delivery delivery(options(), request());
  EXPECT_EQ(delivery.procedure_list(), nullptr);
  delivery.submit(batch(0));
  run(delivery, 2 * kSecondNs);
  EXPECT_EQ(delivery.procedure_list(), nullptr);
  const auto answered = [&](const nlohmann::json& procedures) {
    lbfd_.procedures = procedures;
    delivery.submit(batch(1));
    run(delivery, now_ns_ + kSecondNs / 10);
    return delivery.procedure_list();
  };
  const auto first_list =
      answered({{"generation", 3}, {"names", {"solve", "grid::pack(int, long)"}}, {"text", "solve 40 %"}});
  ASSERT_NE(first_list, nullptr);
  EXPECT_EQ(first_list->generation, 3U);
  EXPECT_EQ(protocol::lines_of(*first_list), "solve\ngrid::pack(int, long)\n");
  EXPECT_EQ(first_list->text, "solve 40 %");
  for (const nlohmann::json& bad : std::initializer_list<nlohmann::json>{
           {{"generation", 2}, {"names", {"older"}}},
           {{"generation", 4}, {"names", {"two\nlines"}}},
           {{"generation", 4}, {"names", {""}}},
           {{"generation", 4}, {"names", {1}}},
           {{"generation", 4}, {"names", {std::string(ring::kMaxProcedureListBytes, 'x')}}},
           {{"generation", 4}},
           nlohmann::json(7)}) {
    EXPECT_EQ(answered(bad)->generation, 3U) << bad;
  }
  EXPECT_EQ(answered({{"generation", 4}, {"names", nlohmann::json::array()}})->names.size(), 0U)
      << "none is a list, too";
}

TEST_F(DeliveryTest, ARetryAfterALostAnswerIsAppliedOnce) {
  Delivery delivery(options(), request());
  lbfd_.lose_answers = 2;
  for (std::uint64_t i = 0; i < 4; ++i) delivery.submit(batch(i));
  delivery.end("step_end");
  run(delivery, 10 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(4));
}

TEST_F(DeliveryTest, ErrorsOfTheServerAreRetriedWithBackOff) {
  Delivery delivery(options(), request());
  lbfd_.status_for_all = 503;
  delivery.submit(batch(0));
  run(delivery, now_ns_ + 10 * kSecondNs);
  EXPECT_GT(lbfd_.requests, 3);
  EXPECT_LT(lbfd_.requests, 15);  // 0.1, 0.2 ... 2 s
  lbfd_.status_for_all = 0;
  delivery.end("step_end");
  run(delivery, now_ns_ + 3 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(1));
}

TEST_F(DeliveryTest, AnLbfdThatForgotTheStreamIsAskedAnew) {
  Delivery delivery(options(), request());
  delivery.submit(batch(0));
  run(delivery, now_ns_ + kSecondNs / 10);
  lbfd_.known.clear();  // restarted: the batches are durable, the stream is to be opened again
  delivery.submit(batch(1));
  delivery.end("step_end");
  run(delivery, now_ns_ + 3 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(2));
}

TEST_F(DeliveryTest, GoesOnBehindWhatAnEarlierRelayOfTheStepDelivered) {
  {
    Delivery earlier(options(), request());
    earlier.submit(batch(0));
    run(earlier, now_ns_ + kSecondNs);
  }
  Delivery delivery(options(), request());
  delivery.submit(batch(1));
  delivery.end("step_end");
  run(delivery, now_ns_ + kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(2));
}

// 60 batches of about 0.4 MB do not fit in the queue: most wait in the file until lbfd is back.
TEST_F(DeliveryTest, SpoolsWhileLbfdIsAwayAndCatchesUpInOrder) {
  Delivery delivery(options(Bytes{100} << 20), request());
  delivery.submit(batch(0));
  run(delivery, now_ns_ + kSecondNs / 10);
  reachable_ = false;
  for (std::uint64_t i = 1; i < 60; ++i) {
    delivery.submit(batch(i, 50000));
    run(delivery, now_ns_ + kSecondNs / 10);
  }
  EXPECT_GT(delivery.totals().spooled_batches, 20U);
  EXPECT_FALSE(std::filesystem::is_empty(spool_.path()));
  reachable_ = true;
  lbfd_.lose_answers = 1;
  delivery.submit(batch(60));
  delivery.end("step_end");
  run(delivery, now_ns_ + 20 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kDelivered);
  EXPECT_EQ(numbers(), first(61));
  EXPECT_EQ(lbfd_.ends[kTarget]["lost_batches"], 0);
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

TEST_F(DeliveryTest, WhatIsLeftAtTheEndIsDeliveredByTheNextRelay) {
  {
    Delivery delivery(options(), request());
    delivery.submit(batch(0));
    run(delivery, now_ns_ + kSecondNs / 10);
    lbfd_.lose_answers = 1;
    delivery.submit(batch(1));  // durable, though the relay does not know
    run(delivery, now_ns_ + kSecondNs / 100);
    reachable_ = false;
    delivery.submit(batch(2));
    delivery.submit(batch(3));
    delivery.end("step_end");
    run(delivery, now_ns_ + kSecondNs);
    delivery.give_up();
    EXPECT_EQ(delivery.outcome(), Outcome::kSpooled);
  }
  reachable_ = true;
  const auto files = list_spool_files(spool_.path());
  ASSERT_EQ(files.size(), 1U);
  auto file = SpoolFile::open(files[0]);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->header().key, "test/7/0/0");
  EXPECT_EQ(file->header().server, "unix:/nowhere");
  SpoolDelivery leftover(std::move(*file), request());
  for (int i = 0; i < 100; ++i) {
    auto done = leftover.deliver_next();
    ASSERT_TRUE(done.ok()) << done.error().message;
    if (*done) break;
  }
  EXPECT_EQ(numbers(), first(4));
  EXPECT_EQ(lbfd_.ends[kTarget]["last_sequence"], 4);
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
}

TEST_F(DeliveryTest, AFullSpoolLosesBatchesAndSaysSo) {
  Delivery delivery(options(Bytes{2} << 20), request());
  reachable_ = false;
  for (std::uint64_t i = 0; i < 60; ++i) {
    delivery.submit(batch(i, 50000));
    run(delivery, now_ns_ + kSecondNs / 10);
  }
  EXPECT_GT(delivery.totals().lost_batches, 0U);
  reachable_ = true;
  delivery.end("step_end");
  run(delivery, now_ns_ + 10 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kLost);
  // What arrived is a whole beginning, without holes: nothing after a hole can be matched.
  const auto arrived = numbers();
  EXPECT_GT(arrived.size(), 1U);
  EXPECT_EQ(arrived, first(arrived.size()));
  EXPECT_EQ(lbfd_.ends[kTarget]["last_sequence"], arrived.size());
  EXPECT_EQ(lbfd_.ends[kTarget]["lost_batches"], 60 - arrived.size());
}

// The batch that was being sent does not fit into the spool, the next ones do: they are of no use without it, the end
// is.
TEST_F(DeliveryTest, BehindABatchThatIsLostAtTheEndNothingIsDelivered) {
  {
    DeliveryOptions small = options(200'000);
    small.queue_limit_bytes = 0;
    Delivery delivery(small, request());
    delivery.submit(batch(0));
    run(delivery, now_ns_ + kSecondNs / 10);
    reachable_ = false;
    delivery.submit(batch(1, 50000));
    run(delivery, now_ns_ + kSecondNs / 10);
    delivery.submit(batch(2));
    delivery.submit(batch(3));
    run(delivery, now_ns_ + kSecondNs);
    EXPECT_EQ(delivery.totals().spooled_batches, 2U);
    delivery.end("step_end");
    delivery.give_up();
    EXPECT_EQ(delivery.outcome(), Outcome::kLost);
    EXPECT_EQ(delivery.totals().lost_batches, 3U);
  }
  reachable_ = true;
  const auto files = list_spool_files(spool_.path());
  ASSERT_EQ(files.size(), 1U);
  auto file = SpoolFile::open(files[0]);
  ASSERT_TRUE(file.ok()) << file.error().message;
  SpoolDelivery leftover(std::move(*file), request());
  for (int i = 0; i < 100; ++i) {
    auto done = leftover.deliver_next();
    ASSERT_TRUE(done.ok()) << done.error().message;
    if (*done) break;
  }
  EXPECT_EQ(numbers(), first(1));
  EXPECT_EQ(lbfd_.ends[kTarget]["last_sequence"], 1);
  EXPECT_EQ(lbfd_.ends[kTarget]["lost_batches"], 3);
  EXPECT_THAT(lbfd_.ends[kTarget]["why"].get<std::string>(), testing::MatchesRegex("nobody listens; spool .* is full"));
}

TEST_F(DeliveryTest, NoSpoolDirectoryLosesTheRestAtTheEnd) {
  DeliveryOptions without = options();
  without.spool_dir = spool_.path() + "/absent";
  Delivery delivery(without, request());
  reachable_ = false;
  delivery.submit(batch(0));
  delivery.end("step_end");
  run(delivery, now_ns_ + kSecondNs);
  delivery.give_up();
  EXPECT_EQ(delivery.outcome(), Outcome::kLost);
  EXPECT_EQ(delivery.totals().lost_batches, 1U);
  EXPECT_THAT(delivery.trouble(), testing::MatchesRegex("nobody listens; spool .*/absent: No such file or directory"));
}

TEST_F(DeliveryTest, ARefusedBatchEndsTheStreamWithoutAnEndlessLoop) {
  Delivery delivery(options(), request());
  lbfd_.refuse_batch = 2;
  for (std::uint64_t i = 0; i < 4; ++i) delivery.submit(batch(i));
  delivery.end("step_end");
  run(delivery, now_ns_ + 5 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kLost);
  EXPECT_EQ(numbers(), first(1));
  EXPECT_EQ(
      lbfd_.ends[kTarget],
      (nlohmann::json{{"last_sequence", 1}, {"lost_batches", 3}, {"reason", "step_end"}, {"why", delivery.trouble()}}));
  EXPECT_LT(lbfd_.requests, 10);
}

// Of each of them the user read "lbfd was not reached" or "spool full".
TEST_F(DeliveryTest, ARefusalIsSaidByItsOwnName) {
  for (const auto& [status, message] :
       {std::pair(401, "the credential has expired"), std::pair(403, "step c/1/0/0 belongs to user eve, not to bob"),
        std::pair(400, "version 9 of the wire format is not known"), std::pair(429, "too many requests"),
        std::pair(503, "lbfd is out of memory: try again later"), std::pair(507, "user bob has 9 steps under way"),
        std::pair(507, "cannot write /t: No space left on device")}) {
    DeliveryOptions without_spool = options();
    without_spool.spool_dir.clear();
    Delivery delivery(without_spool, [&](std::string_view, std::string_view, std::string_view, std::string_view) {
      return Result<HttpResponse>(HttpResponse{status, nlohmann::json{{"error", message}}.dump()});
    });
    delivery.submit(batch(0));
    delivery.end("step_end");
    run(delivery, now_ns_ + kSecondNs);
    delivery.give_up();
    EXPECT_EQ(delivery.outcome(), Outcome::kLost);
    EXPECT_THAT(delivery.trouble(), testing::StartsWith(std::string("lbfd refused: ") + message));
  }
}

// The end's own refusal ("the stream is not registered") is no cause.
TEST_F(DeliveryTest, TheFirstRefusalIsTheCause) {
  Delivery delivery(options(), [](std::string_view method, std::string_view, std::string_view, std::string_view) {
    return Result<HttpResponse>(method == "PUT" ? HttpResponse{403, R"({"error":"of eve"})"}
                                                : HttpResponse{404, R"({"error":"not registered"})"});
  });
  delivery.submit(batch(0));
  delivery.end("step_end");
  run(delivery, now_ns_ + kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kLost);
  EXPECT_EQ(delivery.trouble(), "lbfd refused: of eve");
}

TEST_F(DeliveryTest, ARemovedTraceStoreIsNoticed) {
  Delivery delivery(options(), request());
  delivery.submit(batch(0));
  delivery.submit(batch(1));
  run(delivery, now_ns_ + kSecondNs / 10);
  lbfd_.known.clear();
  lbfd_.batches.clear();
  delivery.submit(batch(2));
  delivery.end("step_end");
  run(delivery, now_ns_ + 5 * kSecondNs);
  EXPECT_EQ(delivery.outcome(), Outcome::kLost);
  EXPECT_THAT(delivery.trouble(), testing::HasSubstr("trace store"));
}

TEST_F(DeliveryTest, TargetKeepsTheKeyAndEncodesTheRest) {
  EXPECT_EQ(stream_target({"a b%/1/2/0", 3, "", ""}), "/v1/steps/a%20b%25/1/2/0/streams/3");
}

class SpoolTest : public testing::Test {
 protected:
  std::string make(int records) {
    auto file = SpoolFile::create(dir_.path(), {"c/1/0/0", 2, "unix:/x", "{}"}, 1 << 20);
    EXPECT_TRUE(file.ok());
    for (int i = 0; i < records; ++i) {
      EXPECT_TRUE(file->append(SpoolRecordKind::kBatch, std::string(100, static_cast<char>('a' + i))).ok());
    }
    return file->path();
  }
  static int whole_records(const std::string& path) {
    auto file = SpoolFile::open(path);
    if (!file) return -1;
    int count = 0;
    for (;;) {
      auto record = file->next();
      if (!record.ok() || !*record) return count;
      EXPECT_EQ((*record)->bytes, std::string(100, static_cast<char>('a' + count)));
      ++count;
    }
  }
  test::TemporaryDirectory dir_;
};

TEST_F(SpoolTest, EveryCutAndEveryFlippedByteIsNoticed) {
  const std::string path = make(3);
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(whole_records(path), 3);
  const auto rewrite = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    rewrite(whole.substr(0, bytes));
    EXPECT_LT(whole_records(path), 3) << "cut to " << bytes;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const std::size_t in_record = (whole.size() - at - 1) % 116;
    if (in_record >= 100 && in_record < 104) continue;  // the reserved word of a record's header
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    rewrite(changed);
    EXPECT_LT(whole_records(path), 3) << "flipped " << at;
  }
}

// 16 MiB of brackets became 1 GiB of values.
TEST_F(SpoolTest, WhatAHeaderHasBesideItsTextsIsNotBuilt) {
  const auto open = [&](const std::string& json) {
    const std::string path = dir_.path() + "/x.lbfspool";
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << "LBFSPL01";
    for (const auto word : {static_cast<std::uint32_t>(json.size()), crc32c(json)})
      file.write(reinterpret_cast<const char*>(&word), sizeof word);
    file << json << std::flush;
    return SpoolFile::open(path);
  };
  const std::string deep(100'000, '[');
  const auto sound = open(R"({"key":"c/1/0/0","more":)" + deep + std::string(deep.size(), ']') +
                          R"(,"more too":{"key":{}},"stream":3,"server":"unix:/x","description":"{}"})");
  ASSERT_TRUE(sound.ok()) << sound.error().message;
  EXPECT_EQ(sound->header().key, "c/1/0/0");
  EXPECT_EQ(sound->header().stream, 3U);
  EXPECT_EQ(sound->header().description, "{}");
  for (const std::string& json : {deep, deep + std::string(deep.size(), ']'), std::string("[1,2]"), std::string("{}")})
    EXPECT_FALSE(open(json).ok());
}

TEST_F(SpoolTest, AFileInUseIsLeftAlone) {
  auto writer = SpoolFile::create(dir_.path(), {"c/1/0/0", 0, "unix:/x", "{}"}, 1 << 20);
  ASSERT_TRUE(writer.ok());
  auto reader = SpoolFile::open(writer->path());
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, ErrorCode::kUnavailable);
}

TEST_F(SpoolTest, TheLimitCountsAllFilesOfTheUser) {
  auto first = SpoolFile::create(dir_.path(), {"c/1/0/0", 0, "unix:/x", "{}"}, 4096);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->append(SpoolRecordKind::kBatch, std::string(3000, 'x')).ok());
  auto full = first->append(SpoolRecordKind::kBatch, std::string(3000, 'x'));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(first->append(SpoolRecordKind::kEnd, "{}").ok());  // the end always fits
  auto second = SpoolFile::create(dir_.path(), {"c/2/0/0", 0, "unix:/x", "{}"}, 4096);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->append(SpoolRecordKind::kBatch, std::string(3000, 'x')).ok());
  auto third = SpoolFile::create(dir_.path(), {"c/3/0/0", 0, "unix:/x", "{}"}, 3000);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kLimit);
}

TEST_F(SpoolTest, AFullDiskIsTheSameAsAFullSpool) {
  // /dev/full cannot hold a directory; a file size limit gives EFBIG, which is treated alike.
  auto file = SpoolFile::create(dir_.path(), {"c/1/0/0", 0, "unix:/x", "{}"}, 1 << 20);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(SpoolRecordKind::kBatch, std::string(100, 'a')).ok());
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{2000, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto appended = file->append(SpoolRecordKind::kBatch, std::string(5000, 'b'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().code, ErrorCode::kLimit);
  ASSERT_TRUE(file->append(SpoolRecordKind::kBatch, std::string(100, 'b')).ok());
  const std::string path = file->path();
  file = Error{ErrorCode::kNotFound, ""};  // unlocks it
  EXPECT_EQ(whole_records(path), 2);
}

}  // namespace
}  // namespace lbf::relay::delivery_test