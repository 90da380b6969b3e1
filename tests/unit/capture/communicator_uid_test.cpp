// Communicator numbers: the same on all members, different for different communicators.
#include "spank_plugin/capture/communicator_uid.h"

#include <gtest/gtest.h>

#include <set>

namespace lbf::capture::communicator_uid_test {
namespace {

TEST(CommunicatorUidTest, DiffersByParentCreationAndLeader) {
  std::set<std::uint64_t> uids = {0, 1};
  std::size_t made = 2;
  for (std::uint64_t parent : {std::uint64_t{1}, child_uid(1, 1, 0), child_uid(1, 2, 0)}) {
    for (std::uint32_t nth = 1; nth <= 50; ++nth) {
      for (std::int32_t leader = 0; leader < 50; ++leader) {
        uids.insert(child_uid(parent, nth, leader));
        ++made;
      }
    }
  }
  // (1, 1, 0) and (1, 2, 0) were parents and are made again as children of the world.
  EXPECT_EQ(uids.size(), made);
}

TEST(CommunicatorUidTest, MembersAndTheirOrderCount) {
  const std::int32_t a[] = {1, 2, 3};
  const std::int32_t b[] = {1, 3, 2};
  EXPECT_NE(mix_ranks(5, a, 3), mix_ranks(5, b, 3));
  EXPECT_NE(mix_ranks(5, a, 3), mix_ranks(5, a, 2));
  EXPECT_NE(mix_ranks(5, a, 3), mix_ranks(6, a, 3));
  EXPECT_EQ(mix_ranks(5, a, 3), mix_ranks(5, a, 3));
}

// Stored in traces: a change of the function would split communicators between an old and a new library.
TEST(CommunicatorUidTest, IsFixed) {
  EXPECT_EQ(as_uid(0), 2u);
  EXPECT_EQ(as_uid(1), 3u);
  EXPECT_EQ(child_uid(1, 1, 0), 0x3f6b8bda7f36cb32u);
}

}  // namespace
}  // namespace lbf::capture::communicator_uid_test