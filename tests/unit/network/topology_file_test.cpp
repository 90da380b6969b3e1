// Slurm's topology files on disk: what they include, several topologies in one, partitions.
#include "predictor/engine/network/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::topology_file_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFlatFirst =
    "- topology: plain\n  cluster_default: true\n  flat: true\n"
    "- topology: ib\n  cluster_default: false\n  tree:\n    switches:\n"
    "      - {switch: leaf1, nodes: \"n[1-2]\"}\n      - {switch: leaf2, nodes: \"n[3-4]\"}\n"
    "      - {switch: root, children: \"leaf[1-2]\"}\n"
    "- topology: racks\n  block:\n    blocks:\n      - {block: b1, nodes: \"n[1-4]\"}\n"
    "- topology: cube\n  torus3d: {toruses: []}\n";

class TopologyFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() + "/" + name) << text;
    return directory_.path() + "/" + name;
  }
  engine::TopologyFile loaded(const std::string& path) {
    Result<engine::TopologyFile> file = engine::TopologyFile::load(path);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return file.ok() ? std::move(*file) : engine::TopologyFile();
  }
  // "FILE, N nodes", "flat", or the error.
  std::string topology_of(const engine::TopologyFile& file, const std::string& partition) {
    const auto topology = file.of_partition(partition);
    if (!topology) return topology.error().message;
    if (*topology == nullptr) return "flat";
    return (*topology)->file().substr(directory_.path().size() + 1) + ", " + std::to_string((*topology)->nodes());
  }

  test::TemporaryDirectory directory_;
};

TEST_F(TopologyFiles, AFileForEachRack) {
  write("rack1.conf", "SwitchName=r1 Nodes=n[1-4]\n");
  const std::string path = write("topology.conf", "# generated\nInclude rack1.conf\nSwitchName=core Switches=r1\n");
  const engine::TopologyFile file = loaded(path);
  EXPECT_THAT(file.warnings(), IsEmpty());
  EXPECT_EQ(topology_of(file, "any"), "topology.conf, 4");
  EXPECT_EQ((*file.of_partition(""))->levels(), 2U);
  write("rack1.conf", "\nSwitchName=core Nodes=n[1-4]\n");
  EXPECT_THAT(topology_of(loaded(path), ""), HasSubstr("topology.conf:3: switch 'core' is defined twice, first in " +
                                                       directory_.path() + "/rack1.conf:2"));
}

TEST_F(TopologyFiles, AFlatDefaultIsSaidOnceAndOthersAreChosenByName) {
  const std::string path = write("topology.yaml", kFlatFirst);
  const engine::TopologyFile file = loaded(path);
  EXPECT_EQ(topology_of(file, ""), "flat");
  EXPECT_THAT(file.warnings(), ElementsAre(AllOf(HasSubstr("topology.yaml#plain: this topology is flat"),
                                                 HasSubstr("#NAME; there are plain, ib, racks, cube"))));
  EXPECT_EQ(topology_of(loaded(path + "#ib"), "any"), "topology.yaml#ib, 4");
  EXPECT_THAT(loaded(path + "#ib").warnings(), IsEmpty());
  EXPECT_THAT(topology_of(loaded(path + "#cube"), ""), HasSubstr("topology 'cube' has none of 'tree' and 'block'"));
  const auto none = engine::TopologyFile::load(path + "#opa");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("has no topology 'opa': there are plain, ib, racks, cube"));
}

TEST_F(TopologyFiles, SlurmConfSaysWhichPartitionHasWhich) {
  const std::string path = write("topology.yaml", kFlatFirst);
  write("slurm.conf", "ClusterName=c\nNodeName=n[1-4]\nInclude partitions.conf\nPartitionName=last Nodes=ALL\n");
  write("partitions.conf",
        "PartitionName=first Nodes=ALL Default=YES\nPARTITIONNAME=fast topology=ib Nodes=n[1-4]\n"
        "PartitionName=cubes Topology=cube\nPartitionName=lost Topology=opa\nPartitionName=default Topology=racks\n");
  engine::TopologyFile file = loaded(path);
  EXPECT_EQ(topology_of(file, "fast"), "flat");
  file.read_neighbours();
  EXPECT_EQ(topology_of(file, "first"), "flat");
  EXPECT_EQ(topology_of(file, "fast"), "topology.yaml#ib, 4");
  EXPECT_EQ(topology_of(file, "last"), "topology.yaml#racks, 4");
  EXPECT_EQ(topology_of(file, "unheard"), "flat");
  EXPECT_THAT(topology_of(file, "cubes"), HasSubstr("topology 'cube' has none of"));
  EXPECT_THAT(topology_of(file, "lost"), HasSubstr("has no topology 'opa', which slurm.conf gives partition 'lost'"));
  std::filesystem::remove(directory_.path() + "/slurm.conf");
  file = loaded(path);
  file.read_neighbours();
  EXPECT_THAT(file.warnings()[1], AllOf(HasSubstr("/slurm.conf: cannot open the slurm.conf"),
                                        HasSubstr("every partition is taken to have the topology 'plain'")));
}

TEST_F(TopologyFiles, SlurmReadsTopologyYamlFirst) {
  engine::TopologyFile file = loaded(write("topology.conf", "SwitchName=a Nodes=n1\n"));
  file.read_neighbours();
  EXPECT_THAT(file.warnings(), IsEmpty());
  write("topology.yaml", kFlatFirst);
  file.read_neighbours();
  EXPECT_THAT(file.warnings(), ElementsAre(HasSubstr("Slurm reads topology.yaml in the same folder")));
}

TEST_F(TopologyFiles, LoadSaysWhatIsWrongWithTheFile) {
  const auto none = engine::TopologyFile::load("/nonexistent/topology.conf");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("/nonexistent/topology.conf"));
  EXPECT_FALSE(engine::TopologyFile::load("/").ok());
  EXPECT_THAT(engine::TopologyFile::load(write("big.conf", std::string((1 << 20) + 1, '#'))).error().message,
              HasSubstr("over 1 MiB"));
}

}  // namespace
}  // namespace lbf::topology_file_test
