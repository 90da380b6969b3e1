// One lbfd for several clusters: each has the networks and the switches of its section in lbfd.toml, jobs of one number
// are told apart by the cluster's name.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::clusters_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

class Clusters : public DaemonTest {
 protected:
  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  // Job 7 of CLUSTER, until it is complete.
  json run_on(const std::string& cluster) {
    cluster_ = cluster;
    send_all({}, 7);
    return wait_until_final(7);
  }
};

TEST_F(Clusters, EachHasItsOwnNetworksAndSwitches) {
  write("a.conf", "SwitchName=s Nodes=n0,n1\n");
  write_config("network = \"lan\"\n[cluster.alpha]\nnetwork = \"fast\"\ntopology = \"" + path("a.conf") +
               "\"\n[cluster.beta]\nnetworks_dir = \"" + path("beta.d") + "\"\n");
  write("networks.d/fast.toml", "name = \"fast\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n");
  std::filesystem::create_directory(path("beta.d"));
  write("beta.d/own.toml", "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 2.0]]\n");
  start();
  EXPECT_EQ(json_request("GET", "/v1/health")["clusters"], (json{"alpha", "beta"}));
  EXPECT_THAT(json_request("GET", "/v1/networks")["networks"], Contains("own"));

  const json other = run_on("c");
  EXPECT_EQ(other["network"], "lan");
  EXPECT_TRUE(other["predictions"][0].value("topology", json()).is_null());
  const json alpha = run_on("alpha");
  EXPECT_EQ(alpha["network"], "fast");
  EXPECT_EQ(alpha["predictions"][0]["topology"]["nodes"], (json{"n0", "n1"}));
  const json beta = run_on("beta");
  EXPECT_EQ(beta["network"], "own");
  for (const json& one : beta["predictions"]) EXPECT_EQ(one["network"], "own");

  // Jobs of one number.
  EXPECT_EQ(json_request("GET", "/v1/steps?job=7")["steps"].size(), 3u);
  const json of_one = json_request("GET", "/v1/steps?job=7&cluster=beta")["steps"];
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_EQ(of_one[0]["cluster"], "beta");
}

TEST_F(Clusters, ASectionThatIsWrongKeepsLbfdFromStartingAndIsNamed) {
  write_config("[cluster.alpha]\nnetwork = \"nowhere\"\n");
  EXPECT_NE(start_and_wait_for_end(), -1);
  EXPECT_THAT(log(), HasSubstr("cluster.alpha: network = \"nowhere\": no file in"));
}

}  // namespace
}  // namespace lbf::test::clusters_test
