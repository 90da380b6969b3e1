#include "tools/advise/slurm_releases.h"

#include <gtest/gtest.h>

namespace lbf::slurm_releases_test {
namespace {

TEST(SlurmReleases, LinesOfPrintAreTopologyConf) {
  const std::string switches =
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=node[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1\n"
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=node[1-2] Switches=s0, s1\n";
  EXPECT_EQ(tools::switch_lines_of_print(switches), switches);
}

TEST(SlurmReleases, WhatIsNoSwitchIsLeftOut) {
  EXPECT_EQ(tools::switch_lines_of_print(""), "");
  EXPECT_EQ(
      tools::switch_lines_of_print("BlockName=b1 Nodes=node[1-2]\nSwitchName=empty Level=0 LinkSpeed=1\nno words\n"),
      "");
}

// As 22.05 has it, and as 26.05 does.
TEST(SlurmReleases, EitherDeclarationIsTaken) {
  topo_info_response_msg_t* message = nullptr;
  EXPECT_EQ(tools::load_topology([](topo_info_response_msg_t**) { return 1; }, &message), 1);
  EXPECT_EQ(
      tools::load_topology([](topo_info_response_msg_t**, char* name) { return name == nullptr ? 2 : 0; }, &message),
      2);
  struct Opaque {
    void* topo_info;
  } opaque{nullptr};
  const auto print = [](std::FILE* out, Opaque*, char*, char*, int) {
    std::fputs("SwitchName=a Level=0 Nodes=n1\n", out);
  };
  EXPECT_EQ(tools::topology_conf(opaque, print), "SwitchName=a Level=0 Nodes=n1\n");
}

}  // namespace
}  // namespace lbf::slurm_releases_test