// lbfd's start with Slurm's topology file as it may be: an edit of it costs the switches, not the predictions.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::topology_start_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class TopologyStart : public DaemonTest {
 protected:
  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  json step_in(const std::string& partition, std::uint32_t job) {
    const RingProgram program;
    for (std::uint32_t node = 0; node < 2; ++node) {
      json description = program.description(node, job);
      description["partition"] = partition;
      json_request("PUT", stream(job, node), description.dump());
      const auto batches = program.batches_of(node);
      for (std::size_t i = 0; i < batches.size(); ++i) post(job, node, i + 1, batches[i]);
    }
    end(job, 0, 4);
    end(job, 1, 4);
    return wait_until_final(job);
  }
};

TEST_F(TopologyStart, AFileThatCannotBeReadIsSaidAndTakenUpWhenItIsMended) {
  write("topology.conf", "SwitchName=a Switches=b\n");
  write_config("topology = \"" + path("topology.conf") + "\"\n");
  start();
  const std::string what = path("topology.conf") +
                           ":1: switch 'a' has the child 'b', which no line defines: add SwitchName=b, or remove it "
                           "here: all nodes are taken to be equally far apart";
  EXPECT_THAT(log(), HasSubstr(what + "; mend the file and restart lbfd"));
  const json step = step_in("p", 7);
  EXPECT_EQ(step["state"], "complete");
  EXPECT_THAT(step["notes"], Contains(what));
  EXPECT_EQ(log().find(what), log().rfind(what));
  stop(SIGTERM);

  write("topology.conf", "SwitchName=a Nodes=n0,n1,\nSwitchName=b Nodes=n1\n");
  start();
  EXPECT_THAT(log(), HasSubstr("2 nodes on 1 levels of switches"));
  EXPECT_THAT(log(), HasSubstr("topology.conf:2: node 'n1' is on 'b' and in line 1 on 'a': the first one counts"));
  const json mended = step_in("p", 8);
  EXPECT_EQ(mended["predictions"][0]["topology"]["nodes"], (json{"n0", "n1"}));
  EXPECT_THAT(mended["notes"], Contains(HasSubstr("n1 on several switches")));
  EXPECT_THAT(mended["notes"], Not(Contains(HasSubstr("all nodes are taken"))));
}

TEST_F(TopologyStart, EachPartitionHasTheTopologyThatSlurmConfGivesIt) {
  write("topology.yaml",
        "- topology: plain\n  cluster_default: on\n  flat: yes\n"
        "- topology: ib\n  tree: {switches: [{switch: s, nodes: \"n[0-1]\"}]}\n");
  write("slurm.conf", "PartitionName=slow Nodes=ALL\nPartitionName=fast Nodes=ALL Topology=ib\n");
  write_config("topology = \"" + path("topology.yaml") + "\"\n");
  start();
  EXPECT_THAT(log(), HasSubstr("topology.yaml#plain: this topology is flat"));
  EXPECT_EQ(step_in("fast", 7)["predictions"][0]["topology"]["file"], path("topology.yaml#ib"));
  EXPECT_FALSE(step_in("slow", 8)["predictions"][0].contains("topology"));
}

}  // namespace
}  // namespace lbf::test::topology_start_test
