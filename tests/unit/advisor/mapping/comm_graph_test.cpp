// Communication graphs.
#include "advisor/mapping/comm_graph.h"

#include <gtest/gtest.h>

namespace lbf::advisor::comm_graph_test {
namespace {

TEST(CommGraph, BothSidesOfAPairSeeTheSame) {
  CommGraphBuilder builder(4);
  builder.add_message(0, 1, 100);
  builder.add_message(0, 1, 50);
  builder.add_message(1, 0, 7);
  builder.add_message(3, 0, 5);
  builder.add_message(2, 2, 1000);  // to itself: needs no placement
  builder.add_process_time(2, 1.5);
  builder.add_process_time(2, 0.5);
  builder.add_blocked_time(1, 0.25);
  const CommGraph graph = builder.finish();
  EXPECT_EQ(graph.ranks(), 4);
  EXPECT_EQ(graph.pairs(), 2U);
  EXPECT_EQ(graph.bytes(), 162U);
  EXPECT_EQ(graph.messages(), 4U);
  ASSERT_EQ(graph.arcs(0).size(), 2U);
  EXPECT_EQ(graph.arcs(0)[0].peer, 1);
  EXPECT_EQ(graph.arcs(0)[0].bytes_out, 150U);
  EXPECT_EQ(graph.arcs(0)[0].bytes_in, 7U);
  EXPECT_EQ(graph.arcs(0)[0].messages_out, 2U);
  EXPECT_EQ(graph.arcs(0)[0].messages_in, 1U);
  EXPECT_EQ(graph.arcs(0)[1].peer, 3);
  EXPECT_EQ(graph.arcs(0)[1].bytes_in, 5U);
  EXPECT_EQ(graph.arcs(0)[1].bytes_out, 0U);
  ASSERT_EQ(graph.arcs(1).size(), 1U);
  EXPECT_EQ(graph.arcs(1)[0].bytes_out, 7U);
  EXPECT_EQ(graph.arcs(1)[0].bytes_in, 150U);
  EXPECT_TRUE(graph.arcs(2).empty());
  EXPECT_EQ(graph.arcs(3)[0].messages_out, 1U);
  EXPECT_EQ(graph.process_s(2), 2.0);
  EXPECT_EQ(graph.total_process_s(), 2.0);
  EXPECT_EQ(graph.blocked_s(1), 0.25);
}

}  // namespace
}  // namespace lbf::advisor::comm_graph_test