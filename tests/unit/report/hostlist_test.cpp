#include "base/hostlist.h"

#include <gtest/gtest.h>

namespace lbf::report::hostlist_test {
namespace {

TEST(Hostlist, JoinsNumbersThatFollow) {
  EXPECT_EQ(hostlist({}), "");
  EXPECT_EQ(hostlist({"node1"}), "node1");
  EXPECT_EQ(hostlist({"node1", "node2", "node3"}), "node[1-3]");
  EXPECT_EQ(hostlist({"node1", "node2", "node7"}), "node[1-2,7]");
  EXPECT_EQ(hostlist({"n9", "n10"}), "n[9-10]");
}

TEST(Hostlist, KeepsOrderPrefixesAndLeadingZeros) {
  EXPECT_EQ(hostlist({"b2", "a1"}), "b2,a1");
  EXPECT_EQ(hostlist({"n2", "n1"}), "n[2,1]") << "the order tells the node index";
  EXPECT_EQ(hostlist({"n08", "n09", "n10"}), "n[08-10]");
  EXPECT_EQ(hostlist({"n09", "n010"}), "n[09,010]");
  EXPECT_EQ(hostlist({"login", "login"}), "login,login");
  EXPECT_EQ(hostlist({"99999999999999999999", "99999999999999999999"}).find("-"), std::string::npos);
}

}  // namespace
}  // namespace lbf::report::hostlist_test