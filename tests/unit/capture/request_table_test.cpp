// The table of requests against std::map, and with threads that hand handles to each other as an MPI library does. A
// request's fields all follow from its number here, so that one which is put together of two shows.
#include "spank_plugin/capture/request_table.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace lbf::capture::request_table_test {
namespace {

using Entry = RequestTable::Entry;

RequestInfo request(std::uint32_t id) {
  RequestInfo info;
  info.id = id;
  info.kind = id % 2 == 0 ? RequestKind::kSend : RequestKind::kRecv;
  info.active = true;
  info.peer = static_cast<std::int32_t>(id * 3) - 7;
  info.tag = static_cast<std::int32_t>(id * 5);
  info.comm = reinterpret_cast<Communicator*>(std::uintptr_t{id} * 64);
  info.bytes = std::uint64_t{id} << 20 | 1;
  return info;
}

bool is_request(const RequestInfo& info, std::uint32_t id) {
  const RequestInfo all = request(id);
  return info.id == id && info.kind == all.kind && info.active && info.peer == all.peer && info.tag == all.tag &&
         info.comm == all.comm && info.bytes == all.bytes;
}

std::uint64_t handle(std::uint64_t i) {
  return 0x7f0000000000u + i * 64;
}  // as pointers are

class RequestTableOf : public testing::TestWithParam<bool> {
 protected:
  RequestTableOf() { table_.share(GetParam()); }
  bool put(std::uint64_t key, std::uint32_t id) {
    replaced_ = 0;
    return table_.put(key, request(id), [&](const RequestInfo& before) {
      EXPECT_TRUE(is_request(before, before.id));
      replaced_ = before.id;
    });
  }
  RequestTable table_;
  std::uint32_t replaced_ = 0;  // by the last put; 0: nothing was
};

INSTANTIATE_TEST_SUITE_P(Threads, RequestTableOf, testing::Values(false, true),
                         [](const auto& instance) { return instance.param ? "Shared" : "Alone"; });

TEST_P(RequestTableOf, DoesWhatAMapDoes) {
  ASSERT_TRUE(table_.open(8));
  std::map<std::uint64_t, std::uint32_t> model;
  std::mt19937 random(4);
  for (std::uint32_t step = 1; step < 200'000; ++step) {
    // More handles than places, of which at most as many are in use as the table takes surely.
    const std::uint64_t key = handle(random() % 1'000);
    Entry entry;
    const bool known = table_.read(key, entry);
    ASSERT_EQ(known, model.contains(key));
    if (known) {
      ASSERT_TRUE(is_request(entry.info, model[key]));
    }
    if (random() % 2 == 0 && (known || model.size() < 60)) {
      ASSERT_TRUE(put(key, step));
      ASSERT_EQ(replaced_, known ? model[key] : 0);
      model[key] = step;
    } else if (known) {
      ASSERT_TRUE(table_.end(entry));
      ASSERT_FALSE(table_.end(entry)) << "it is over";
      model.erase(key);
    }
    if (step % 64 == 0) {
      std::map<std::uint32_t, int> seen, expected;
      table_.for_each([&](const RequestInfo& info) { ++seen[info.id]; });
      for (const auto& [k, id] : model) ++expected[id];
      ASSERT_EQ(seen, expected);
    }
  }
}

TEST_P(RequestTableOf, ChangesTheRequestThatWasReadAndNoOther) {
  ASSERT_TRUE(table_.open(4));
  ASSERT_TRUE(put(handle(1), 10));
  Entry old;
  ASSERT_TRUE(table_.read(handle(1), old));
  EXPECT_TRUE(table_.change(old, [](RequestState& state) { state.cancelled = true; }));
  Entry now;
  ASSERT_TRUE(table_.read(handle(1), now));
  EXPECT_TRUE(now.info.cancelled);
  EXPECT_TRUE(is_request(now.info, 10));

  ASSERT_TRUE(put(handle(1), 11));  // MPI gave the handle to another one
  EXPECT_EQ(replaced_, 10u);
  EXPECT_FALSE(table_.change(old, [](RequestState& state) { state.cancelled = true; }));
  EXPECT_FALSE(table_.end(old));
  ASSERT_TRUE(table_.read(handle(1), now));
  EXPECT_TRUE(is_request(now.info, 11));
  EXPECT_FALSE(now.info.cancelled);
}

TEST_P(RequestTableOf, FindsARequestWhosePlaceWasGivenAway) {
  ASSERT_TRUE(table_.open(4));
  ASSERT_TRUE(put(handle(1), 1));
  Entry first;
  ASSERT_TRUE(table_.read(handle(1), first));
  ASSERT_TRUE(table_.end(first));
  for (std::uint32_t i = 2; i < 200; ++i) {  // takes all places over
    ASSERT_TRUE(put(handle(i), i));
    Entry entry;
    ASSERT_TRUE(table_.read(handle(i), entry));
    ASSERT_TRUE(table_.end(entry));
  }
  ASSERT_TRUE(put(handle(1), 1));  // perhaps elsewhere
  EXPECT_TRUE(table_.end(first));
}

TEST_P(RequestTableOf, RefusesOnlyWhenItIsFullOfRequestsAndGoesOnAfterwards) {
  ASSERT_TRUE(table_.open(4));
  std::uint32_t kept = 0;
  while (put(handle(kept + 1), kept + 1)) ++kept;
  EXPECT_EQ(kept, 16u);
  Entry entry;
  EXPECT_FALSE(table_.read(handle(99'999), entry));
  EXPECT_EQ(entry.info.kind, RequestKind::kUnknown);
  EXPECT_TRUE(put(handle(1), 77)) << "its handle has a place";
  for (std::uint32_t i = 1; i <= kept; ++i) {
    ASSERT_TRUE(table_.read(handle(i), entry));
    ASSERT_TRUE(table_.end(entry));
  }
  EXPECT_TRUE(put(handle(500), 500));
  EXPECT_TRUE(table_.read(handle(500), entry));
}

// Each thread takes a handle that is free, makes a request of it, and completes it or leaves that to another thread.
// The table is small: places are given away all the time.
// A thread that looks up what it completed only when its call is over (5,000 requests are tested again and again) must
// not take another thread's request for its own: MPI gives the handle out again inside the call.
TEST(RequestTableMarks, TellWhatAHandleStoodForBeforeTheCall) {
  RequestTable table;
  table.share(true);
  ASSERT_TRUE(table.open(8));
  const auto put = [&](std::uint64_t key, std::uint32_t id) {
    return table.put(key, request(id), [](const RequestInfo&) {});
  };
  Entry entry;
  ASSERT_TRUE(put(handle(1), 10));
  ASSERT_TRUE(put(handle(2), 20));
  const std::uint64_t mark = table.mark();
  ASSERT_TRUE(put(handle(1), 11));  // twice, as a fast thread does
  ASSERT_TRUE(put(handle(1), 12));
  ASSERT_TRUE(put(handle(3), 30));

  EXPECT_TRUE(table.read_at(handle(1), mark, entry));
  EXPECT_TRUE(is_request(entry.info, 10));
  EXPECT_FALSE(table.end(entry)) << "the handle is another one's";
  EXPECT_TRUE(table.read_at(handle(2), mark, entry));
  EXPECT_TRUE(is_request(entry.info, 20));
  EXPECT_TRUE(table.end(entry));
  EXPECT_FALSE(table.read_at(handle(3), mark, entry)) << "nothing was known of the handle then";
  EXPECT_FALSE(table.read_at(handle(4), mark, entry));
  EXPECT_TRUE(table.read(handle(1), entry));
  EXPECT_TRUE(is_request(entry.info, 12));

  // What was over, or replaced, before the mark is none of what the handle stood for at it.
  ASSERT_TRUE(table.end(entry));
  const std::uint64_t later = table.mark();
  ASSERT_TRUE(put(handle(1), 13));
  EXPECT_FALSE(table.read_at(handle(1), later, entry));
  EXPECT_EQ(entry.info.kind, RequestKind::kUnknown);
}

TEST(RequestTableThreads, EachFindsWhatWasPutAndEndsItOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 40'000;
  constexpr std::uint32_t kHandles = 400;
  RequestTable table;
  ASSERT_TRUE(table.open(8));
  table.share(true);
  std::mutex mutex;
  std::vector<std::uint64_t> free;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> under_way;
  for (std::uint64_t i = 0; i < kHandles; ++i) free.push_back(handle(i));
  std::atomic<std::uint64_t> wrong{0}, made{0}, ended{0}, replaced{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          std::uint64_t key = 0;
          std::uint32_t id = 0;
          {
            const std::lock_guard lock(mutex);
            if (under_way.size() < 64 && random() % 2 == 0) {
              std::swap(free[random() % free.size()], free.back());
              key = free.back();
              free.pop_back();
            } else if (!under_way.empty()) {
              std::swap(under_way[random() % under_way.size()], under_way.back());
              std::tie(key, id) = under_way.back();
              under_way.pop_back();
            } else {
              continue;
            }
          }
          if (id == 0) {
            id = 1 + round * kThreads + t;
            ++made;
            const bool kept = table.put(key, request(id), [&](const RequestInfo& before) {
              ++replaced;
              if (!is_request(before, before.id)) ++wrong;
            });
            if (!kept) ++wrong;
            const std::lock_guard lock(mutex);
            under_way.emplace_back(key, id);
            continue;
          }
          Entry entry;
          if (!table.read(key, entry) || !is_request(entry.info, id)) ++wrong;
          {  // MPI lets go of the handle before the capture hears of it: another thread may have it now
            const std::lock_guard lock(mutex);
            free.push_back(key);
          }
          table.change(entry, [](RequestState& state) { state.cancelled = true; });
          ended += table.end(entry) ? 1 : 0;
        }
      });
    }
  }
  std::uint64_t left = 0;
  table.for_each([&](const RequestInfo& info) {
    ++left;
    if (!is_request(info, info.id)) ++wrong;
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(left, under_way.size());
  EXPECT_EQ(made, ended + replaced + left) << "each ends once, and not for its handle's next one";
  EXPECT_GT(ended, made / 2);
  EXPECT_GT(made, 10'000u);
}

}  // namespace
}  // namespace lbf::capture::request_table_test