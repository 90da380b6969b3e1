// lbf-advise --probe as users run it, with an srun and an mpicc that only pretend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::probe_test {
namespace {

using testing::HasSubstr;

class Probe : public testing::Test {
 protected:
  // Ranks 0 and 2 exchange two messages, 1 and 3 as well: by replay cyclic takes 1 s on two nodes, blocks 3
  // s.
  void SetUp() override {
    std::string text = "lbf-trace 1\nranks 4\n";
    for (const auto& [x, y] : {std::pair<std::string, std::string>{"0", "2"}, {"1", "3"}}) {
      text += x + " send 1 to=" + y + " tag=0 bytes=8\n" + y + " startRecv 0 from=" + x + " tag=0\n" + y +
              " endRecv 0 from=" + x + " tag=0 bytes=8\n" + y + " send 0 to=" + x + " tag=0 bytes=8\n" + x +
              " startRecv 0 from=" + y + " tag=0\n" + x + " endRecv 0 from=" + y + " tag=0 bytes=8\n" + x +
              " exit 0\n" + y + " exit 0\n";
    }
    write("pairs.lbf", text);
    write("c.toml",
          "lbf_cluster = 1\n[[node]]\nname = \"n[1-2]\"\ncores_per_socket = 2\n"
          "[[partition]]\nname = \"main\"\nnodes = \"n[1-2]\"\ndefault = true\n");
    write("lan.toml",
          "name = \"lan\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n"
          "[[path]]\nlocality = \"remote\"\ntable = [[0, 1000000.0]]\n");
    script("mpicc", "cp \"$2\" \"$4\"\n");
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir_ + "/" + name) << text; }
  void script(const std::string& name, const std::string& body) {
    write(name, "#!/bin/sh\n" + body);
    ::chmod((dir_ + "/" + name).c_str(), 0755);
  }
  // Skeletons take so long with the distributions block, cyclic and arbitrary.
  void skeletons_take(const std::string& block, const std::string& cyclic, const std::string& arbitrary) {
    script("srun", "echo \"$*\" >>calls\ncase \"$*\" in *=cyclic*) t=" + cyclic + ";; *=arbitrary*) t=" + arbitrary +
                       ";; *) t=" + block + ";; esac\n" +
                       "[ $t = fails ] && { echo 'srun: error: node n1 is down' >&2; exit 1; }\n" +
                       "echo \"skeleton_s=$t factor=1 application_s=1 rate=1e8\"\n");
  }
  test::Outcome run(const std::string& arguments) { return run_in(dir_, arguments); }
  test::Outcome run_in(const std::string& folder, const std::string& arguments) {
    return test::run_command("cd '" + folder + "' && PATH=" + dir_ + ":$PATH MPICC=mpicc XDG_CACHE_HOME=" + dir_ +
                             " SLURM_CONF=/nonexistent LBF_ADVISE_CONFIG=" + dir_ + "/advise.toml " + LBF_ADVISE + " " +
                             dir_ + "/pairs.lbf --cluster " + dir_ + "/c.toml --network " + dir_ + "/lan.toml " +
                             arguments);
  }
  nlohmann::json json_of(const std::string& arguments) {
    const test::Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json::object();
  }
  std::string chosen(const nlohmann::json& json) {
    if (json["advice"].is_null()) return "";
    return json["candidates"][json["advice"]["candidate"].get<std::size_t>()]["placement"];
  }

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
};

TEST_F(Probe, DecidesByTheSkeleton) {
  // By replay a gain of two thirds, 3 s instead of 1 s; the skeleton sees more.
  skeletons_take("2.0", "0.5", "1.0");
  const nlohmann::json json = json_of("--probe");
  EXPECT_EQ(chosen(json), "cyclic");
  EXPECT_NEAR(json["advice"]["gain_percent"].get<double>(), 75, 1e-6);
  const nlohmann::json& probe = json["probe"];
  EXPECT_EQ(probe["budget_node_s"], 600);
  EXPECT_GT(probe["spent_node_s"], 0);
  ASSERT_EQ(probe["rows"].size(), 2u) << "the computed mapping is the cyclic one";
  EXPECT_EQ(probe["rows"][0]["times_s"], nlohmann::json({0.5, 0.5, 0.5}));
  EXPECT_THAT(probe["decision"], HasSubstr("the skeleton decides for"));
  for (const auto& entry : std::filesystem::directory_iterator(dir_))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith(".lbf-probe"))) << "nothing is left";
  const test::Outcome text = run("--probe");
  EXPECT_THAT(text.out, HasSubstr("Probes: "));
  EXPECT_THAT(text.out, HasSubstr("Probe: the skeleton decides for"));
}

TEST_F(Probe, AdvisesNothingWhereTheSkeletonIsFastestNow) {
  skeletons_take("0.5", "1.0", "1.0");
  EXPECT_EQ(chosen(json_of("")), "cyclic");
  const nlohmann::json json = json_of("--probe");
  EXPECT_TRUE(json["advice"].is_null());
  EXPECT_THAT(json["why_no_advice"], HasSubstr("fastest as it runs now"));
}

TEST_F(Probe, KeepsTheReplaysAdviceWhereNoSkeletonRan) {
  skeletons_take("fails", "fails", "fails");
  const nlohmann::json json = json_of("--probe");
  EXPECT_EQ(chosen(json), "cyclic");
  EXPECT_THAT(json["probe"]["decision"], HasSubstr("no probe succeeded"));
  EXPECT_THAT(json["probe"]["rows"][0]["error"], HasSubstr("node n1 is down"));
}

TEST_F(Probe, BesideWhatRunsNowByReplayOnlyWhereThatIsANumber) {
  skeletons_take("fails", "0.5", "1.0");
  EXPECT_EQ(chosen(json_of("--probe")), "cyclic");
  write("lan.toml",
        "name = \"zero\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n"
        "[[path]]\nlocality = \"remote\"\ntable = [[0, 1000000.0]]\n");
  const nlohmann::json json = json_of("--probe");
  EXPECT_TRUE(json["advice"].is_null());
  EXPECT_THAT(json["why_no_advice"], HasSubstr("by replay there is no number"));
}

TEST_F(Probe, InAFolderWhoseNameHasABlank) {
  // As srun does it: what it is named must be a file.
  script(
      "srun",
      "t=2.0\nfor word; do case $word in --nodelist=*)\n"
      "[ -f \"${word#--nodelist=}\" ] || { echo 'srun: error: no such host file' >&2; exit 1; }\nt=0.5;; esac; done\n"
      "echo \"skeleton_s=$t factor=1 application_s=1 rate=1e8\"\n");
  std::filesystem::create_directory(dir_ + "/a b");
  const test::Outcome outcome = run_in(dir_ + "/a b", "--placement block,map --probe --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(chosen(json), "map");
  ASSERT_EQ(json["probe"]["rows"].size(), 2u);
  for (const nlohmann::json& row : json["probe"]["rows"]) EXPECT_FALSE(row.contains("error")) << row;
}

TEST_F(Probe, StaysWithinWhatTheSiteAllows) {
  skeletons_take("2.0", "1.0", "0.5");
  write("advise.toml", "probe_node_seconds = 5\n");
  const nlohmann::json little = json_of("--probe");
  EXPECT_EQ(little["probe"]["budget_node_s"], 5);
  EXPECT_EQ(little["probe"]["spent_node_s"], 0);
  EXPECT_THAT(little["probe"]["decision"], HasSubstr("nothing was probed"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/calls"));
  write("advise.toml", "probe_node_seconds = 500\n");
  EXPECT_EQ(json_of("--probe --probe-budget 300")["probe"]["budget_node_s"], 300);
  EXPECT_EQ(json_of("--probe --probe-budget 3000")["probe"]["budget_node_s"], 500);
}

TEST_F(Probe, RefusesInOneLine) {
  skeletons_take("1", "1", "1");
  const auto refuses = [&](int status, const std::string& arguments, const std::string& says) {
    const test::Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refuses(2, "--probe-budget 5", "--probe");
  refuses(2, "--probe --probe-budget 0", "--probe-budget");
  script("mpicc", "echo 'mpi.h: no such file' >&2; exit 1\n");
  refuses(1, "--probe", "could not compile");
  write("advise.toml", "probe_node_seconds = 0\n");
  refuses(1, "--probe", "this site allows no probes");
  write("advise.toml", "probe_node_seconds = \"many\"\n");
  refuses(1, "--probe", "must be a number of node-seconds");
  write("advise.toml", "probe_nodes = 5\n");
  refuses(1, "--probe", "unknown key probe_nodes");
  write("advise.toml", "probe_node_seconds = \n");
  refuses(1, "--probe", "advise.toml: ");
}

}  // namespace
}  // namespace lbf::probe_test