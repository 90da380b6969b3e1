// CommunicatorTable (event/wire.h): one number for the communicator that each rank numbered for itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "event/wire.h"

namespace lbf::communicator_table_test {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<std::uint64_t>;

TEST(CommunicatorTable, WorldIsAlwaysThere) {
  CommunicatorTable table;
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(*table.translate(5, 0), 0u);
}

TEST(CommunicatorTable, JoinsByUid) {
  CommunicatorTable table;
  EXPECT_EQ(*table.define(0, 1, Values{77, 0, 0, 2}), 1u);
  EXPECT_EQ(*table.define(1, 1, Values{78, 0, 1, 3}), 2u);
  EXPECT_EQ(*table.define(2, 4, Values{77, 0, 0, 2}), 1u);
  EXPECT_EQ(*table.define(3, 1, Values{78, 0, 1, 3}), 2u);
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(*table.translate(2, 4), 1u);
  EXPECT_EQ(*table.translate(3, 1), 2u);
}

TEST(CommunicatorTable, SameDefinitionAgainIsFine) {
  CommunicatorTable table;
  EXPECT_EQ(*table.define(0, 1, Values{77, 0, 0, 2}), 1u);
  EXPECT_EQ(*table.define(0, 1, Values{77, 0, 0, 2}), 1u);
  EXPECT_EQ(table.size(), 2u);
}

TEST(CommunicatorTable, IntercommunicatorSidesListTheGroupsInOppositeOrder) {
  CommunicatorTable table;
  EXPECT_EQ(*table.define(0, 1, Values{9, 1, 0, 1, 2}), 1u);
  EXPECT_EQ(*table.define(1, 1, Values{9, 2, 1, 2, 0}), 1u);
  EXPECT_EQ(*table.define(2, 1, Values{9, 2, 1, 2, 0}), 1u);
  EXPECT_EQ(table.size(), 2u);
}

struct BadDefinition {
  Rank rank;
  std::uint32_t local;
  Values values;
  const char* message;
};

TEST(CommunicatorTable, RefusesBadDefinitions) {
  const std::vector<BadDefinition> cases = {
      {0, 0, {5, 0, 0, 1}, "MPI_COMM_WORLD"},
      {-1, 1, {5, 0, 0, 1}, "negative"},
      {0, 1, {}, "no members"},
      {0, 1, {5, 0}, "no members"},
      {3, 1, {5, 0, 0, 1}, "not a member"},
      {1, 1, {5, 1, 0, 1}, "not a member"},  // in the remote group
      {0, 1, {5, 2, 0, 1}, "remote group"},
      {0, 1, {5, ~std::uint64_t{0}, 0, 1}, "remote group"},
      {0, 1, {5, 0, 0, 1, 0}, "twice"},
      {0, 1, {5, 0, 0, std::uint64_t{1} << 40}, "not a rank"},
      {2, 2, {77, 0, 0, 2, 1}, "other members"},
      {2, 2, {77, 0, 2, 0}, "other members"},
      {2, 2, {77, 1, 2, 0}, "other members"},  // was no intercommunicator
      {1, 1, {88, 1, 1, 2, 0}, "other members"},
      {1, 1, {88, 2, 2, 1, 0}, "other members"},
      {0, 1, {99, 0, 0, 1}, "taken by another"},
      {0, 1, {88, 1, 0, 1, 2}, "taken by another"},
  };
  for (const BadDefinition& bad : cases) {
    CommunicatorTable table;
    ASSERT_TRUE(table.define(0, 1, Values{77, 0, 0, 2}).ok());
    ASSERT_TRUE(table.define(0, 2, Values{88, 1, 0, 1, 2}).ok());
    // The first ones concern a table that has local index 1 of rank 0 free.
    CommunicatorTable empty;
    const bool about_earlier = std::string_view(bad.message).find("other") != std::string_view::npos ||
                               std::string_view(bad.message).find("taken") != std::string_view::npos;
    CommunicatorTable& used = about_earlier ? table : empty;
    const std::uint32_t size_before = used.size();
    const auto result = used.define(bad.rank, bad.local, bad.values);
    ASSERT_FALSE(result.ok()) << bad.message;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(result.error().message, HasSubstr(bad.message));
    EXPECT_EQ(used.size(), size_before);
  }
}

TEST(CommunicatorTable, TranslateNeedsADefinitionOfThatRank) {
  CommunicatorTable table;
  ASSERT_TRUE(table.define(0, 1, Values{77, 0, 0, 2}).ok());
  const auto result = table.translate(2, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("communicator 1 of rank 2 is not defined"));
  EXPECT_FALSE(table.translate(0, 4000000000u).ok());
}

TEST(CommunicatorTable, FarLocalIndexCostsNothing) {
  CommunicatorTable table;
  EXPECT_EQ(*table.define(0, 4294967295u, Values{77, 0, 0, 2}), 1u);
  EXPECT_EQ(*table.translate(0, 4294967295u), 1u);
}

TEST(CommunicatorTable, GapsAreThoseOfARank) {
  CommunicatorTable table;
  EXPECT_FALSE(table.has_gap(0));
  table.note_gap(2);
  table.note_gap(-1);
  EXPECT_TRUE(table.has_gap(2));
  for (const Rank other : {-1, 0, 1, 3, 1 << 24}) EXPECT_FALSE(table.has_gap(other)) << other;
}

}  // namespace
}  // namespace lbf::communicator_table_test