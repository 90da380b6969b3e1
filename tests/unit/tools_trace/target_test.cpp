// lbf-trace export --topology: the hops between the nodes of the predicted run.
#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::target_test {
namespace {

constexpr const char* kTopology =
    "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=top Switches=leaf[1-2]\n";
constexpr const char* kNetwork =
    "name = \"hops\"\n[[path]]\nlocality = \"hop:1\"\ntable = [[0, 10.0]]\n"
    "[[path]]\nlocality = \"hop:3\"\ntable = [[0, 70.0]]\n";
constexpr const char* kProgram =
    "lbf-trace 1\nranks 2\n0 send 0 to=1 tag=0 bytes=8\n0 exit 0\n1 startRecv 0 from=0 tag=0\n"
    "1 endRecv 0 from=0 tag=0 bytes=8\n1 exit 0\n";

class ExportTarget : public TraceCommand {
 protected:
  void SetUp() override {
    write("topology.conf", kTopology);
    write("net.toml", kNetwork);
    write("t.lbf", kProgram);
  }
  // End of the last slice, in microseconds.
  double end_us(const std::string& options) {
    const nlohmann::json json = nlohmann::json::parse(
        output_of("export t.lbf --format timeline --nodes 2 --network ./net.toml " + options), nullptr, false);
    double end = -1;
    for (const nlohmann::json& e : json.at("traceEvents")) {
      if (e.at("ph") == "X") end = std::max(end, e.at("ts").get<double>() + e.at("dur").get<double>());
    }
    return end;
  }
};

TEST_F(ExportTarget, HopsOfTheNodesThatAreNamedOrChosen) {
  EXPECT_NEAR(end_us("--topology topology.conf --nodelist n[1-2]"), 10, 0.001);
  EXPECT_NEAR(end_us("--topology topology.conf --nodelist n2,n3"), 70, 0.001);
  EXPECT_NEAR(end_us("--topology topology.conf"), 10, 0.001);  // Slurm fills one leaf first
  EXPECT_NEAR(end_us(""), 70, 0.001);
}

TEST_F(ExportTarget, WhatIsWrongIsSaid) {
  const std::string timeline = "export t.lbf --format timeline --nodes 2 -o out ";
  expect_error(2, timeline + "--nodelist n[1-2]", "--nodelist needs --topology");
  expect_error(2, timeline + "--topology ''", "--topology is empty");
  expect_error(1, timeline + "--topology topology.conf --nodelist n9,n1", "--nodelist: node 'n9' is not in");
  expect_error(1, timeline + "--topology topology.conf --nodelist n1", "--nodelist names 1 nodes");
}

}  // namespace
}  // namespace lbf::trace_test::target_test