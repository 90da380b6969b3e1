// lbf-advise as users run it: advice, JSON keys, flags and host files, exit statuses and messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::advise_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Advise : public testing::Test {
 protected:
  test::Outcome run(const std::string& arguments, const std::string& environment = "") {
    // A cache of its own, and no Slurm.
    return test::run_command("cd " + dir_ + " && XDG_CACHE_HOME=" + dir_ + " SLURM_CONF=/nonexistent " + environment +
                             " " LBF_ADVISE " " + arguments);
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  void expect_refused(int status, const std::string& arguments, const std::string& says) {
    const test::Outcome result = run(arguments);
    EXPECT_EQ(result.status, status) << arguments << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(testing::StartsWith("lbf-advise: error: "), HasSubstr(says)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  nlohmann::json json_of(const std::string& arguments) {
    const test::Outcome result = run(arguments + " --json");
    EXPECT_EQ(result.status, 0) << result.err;
    return result.status == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
  }

  // Ranks 0 and 2 exchange two messages, 1 and 3 as well: 1 s each between nodes, nothing within one. Blocks
  // of two on two nodes cut both: 1 s of work + 2 messages = 3 s; the pairs on one node: 1 s.
  static std::string pairs() {
    std::string text = "lbf-trace 1\nranks 4\n";
    for (const auto& [a, b] : {std::pair{"0", "2"}, std::pair{"1", "3"}}) {
      const std::string x = a;
      const std::string y = b;
      text += x + " send 1 to=" + y + " tag=0 bytes=8\n" + y + " startRecv 0 from=" + x + " tag=0\n" + y +
              " endRecv 0 from=" + x + " tag=0 bytes=8\n" + y + " send 0 to=" + x + " tag=0 bytes=8\n" + x +
              " startRecv 0 from=" + y + " tag=0\n" + x + " endRecv 0 from=" + y + " tag=0 bytes=8\n" + x +
              " exit 0\n" + y + " exit 0\n";
    }
    return text;
  }

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
  const std::string trace_ = write("pairs.lbf", pairs());
  const std::string cluster_ = write("c.toml",
                                     "lbf_cluster = 1\n[[node]]\nname = \"n[1-2]\"\ncores_per_socket = 2\n"
                                     "[[partition]]\nname = \"main\"\nnodes = \"n[1-2]\"\ndefault = true\n");
  const std::string network_ = write("lan.toml",
                                     "name = \"lan\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n"
                                     "[[path]]\nlocality = \"remote\"\ntable = [[0, 1000000.0]]\n");
  const std::string usual_ = trace_ + " --cluster " + cluster_ + " --network " + network_;
};

TEST_F(Advise, PairsComeTogether) {
  const nlohmann::json json = json_of(usual_);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["messages"], 4);
  EXPECT_EQ(json["message_bytes"], 32);
  EXPECT_EQ(json["longest_chain_messages"], 2);
  EXPECT_EQ(json["now"]["lbf_s"], 3.0);
  EXPECT_EQ(json["now"]["is_what_ran"], false);
  EXPECT_EQ(json["now"]["placement"], "block");
  const nlohmann::json& advice = json["advice"];
  ASSERT_TRUE(advice.is_object()) << json["why_no_advice"];
  const nlohmann::json& chosen = json["candidates"][advice["candidate"].get<std::size_t>()];
  EXPECT_EQ(chosen["lbf_s"], 1.0);
  EXPECT_EQ(chosen["placement"], "cyclic") << "as good as a computed mapping, and simpler";
  EXPECT_EQ(advice["flags"], "--partition=main -N2 -n4 --distribution=cyclic --ntasks-per-node=2");
  EXPECT_NEAR(advice["gain_percent"].get<double>(), 100 * (1 - 1.0 / 3), 1e-9);
  EXPECT_LT(advice["gain_low_percent"], advice["gain_percent"]);
  EXPECT_GT(advice["gain_high_percent"], advice["gain_percent"]);
  EXPECT_FALSE(advice["reasons"].empty());
  EXPECT_EQ(json["sensitivity"]["bound_by"], "latency");
  EXPECT_NEAR(json["sensitivity"]["latency_share"].get<double>(), 2.0 / 3, 1e-9);
}

// Both send before they receive: inside a node the messages are above the eager limit, and wait for each other.
TEST_F(Advise, ACandidateOnWhichTheProgramWouldNotEndIsStuck) {
  const std::string network =
      write("strict.toml",
            "name = \"strict\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\neager_limit_bytes = 10\n"
            "[[path]]\nlocality = \"remote\"\ntable = [[0, 1000000.0]]\n");
  const std::string trace = write("buffers.lbf",
                                  "lbf-trace 1\nranks 2\n0 send 1 to=1 tag=1 bytes=11\n1 send 1 to=0 tag=1 bytes=11\n"
                                  "0 startRecv 0 from=1 tag=1\n0 endRecv 0 from=1 tag=1 bytes=11\n"
                                  "1 startRecv 0 from=0 tag=1\n1 endRecv 0 from=0 tag=1 bytes=11\n"
                                  "0 exit 0\n1 exit 0\n");
  const nlohmann::json json = json_of(trace + " --cluster " + cluster_ + " --network " + network +
                                      " --nodes 1 --placement block --ran-nodes 2 --ran-placement block");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["now"]["lbf_s"], 2.0);
  ASSERT_EQ(json["candidates"].size(), 1U) << json["candidates"];
  EXPECT_EQ(json["candidates"][0]["verdict"], "stuck");
  EXPECT_THAT(json["candidates"][0]["why_stuck"].get<std::string>(), testing::StartsWith("cyclic wait: "));
}

TEST_F(Advise, TextForPeople) {
  const test::Outcome result = run(usual_);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("Advice: 2 nodes of main, cyclic, lan"),
                    HasSubstr("srun --partition=main -N2 -n4 --distribution=cyclic"), HasSubstr("% of the bytes"),
                    HasSubstr("bound by latency"), HasSubstr("the trace does not say where it ran")));
}

TEST_F(Advise, FlagsAloneAndTheHostFile) {
  test::Outcome result = run(usual_ + " --flags");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "--partition=main -N2 -n4 --distribution=cyclic --ntasks-per-node=2\n");
  EXPECT_EQ(result.err, "");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/lbf-advise.hosts"));
  result = run(usual_ + " --placement block,map --flags");
  EXPECT_EQ(result.out, "--partition=main -N2 -n4 --distribution=arbitrary --nodelist=./lbf-advise.hosts\n");
  const std::string hosts = read(dir_ + "/lbf-advise.hosts");
  EXPECT_TRUE(hosts == "n1\nn2\nn1\nn2\n" || hosts == "n2\nn1\nn2\nn1\n") << hosts;
  // In the text the flags are for a shell.
  EXPECT_THAT(run(usual_ + " --placement map --hostfile 'h(1)'").out, HasSubstr(" '--nodelist=./h(1)' ..."));
  result = run(usual_ + " --placement map --flags --hostfile h");
  EXPECT_THAT(result.out, HasSubstr("--nodelist=./h\n"));
  EXPECT_EQ(read(dir_ + "/h"), hosts);
  // Nothing is better than blocks here: srun still gets flags, people the reason.
  result = run(usual_ + " --placement block --flags");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "--partition=main -N2 -n4 --distribution=block --ntasks-per-node=2\n");
  EXPECT_THAT(result.err, AllOf(testing::StartsWith("lbf-advise: no advice: "), HasSubstr("keep it")));
  EXPECT_THAT(run(usual_ + " --flags --hostfile /nonexistent/h --placement map").err,
              HasSubstr("cannot write the host file"));
}

TEST_F(Advise, AScriptThatAsksForIt) {
  const std::string before = "#!/bin/sh\n#SBATCH -N 4 -n 4\nsrun ./app\n";
  const std::string script = write("job.sh", before);
  ::chmod(script.c_str(), 0750);
  test::Outcome result = run(usual_ + " --script job.sh");
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string after =
      "#!/bin/sh\n#SBATCH -N 2 -n 4\n#SBATCH --partition=main\n#SBATCH --distribution=cyclic\n"
      "#SBATCH --ntasks-per-node=2\nsrun ./app\n";
  EXPECT_EQ(result.out, after);
  EXPECT_THAT(result.err, testing::StartsWith("lbf-advise: job.sh:2: --nodes=4 becomes -N 2\n"));
  EXPECT_EQ(read(script), before);
  result = run(usual_ + " --script job.sh -o job.sh");
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(read(script), after);
  EXPECT_EQ(std::filesystem::status(script).permissions(), std::filesystem::perms(0750));
  // Nothing is better than blocks here: the script stays.
  result = run(usual_ + " --script job.sh --placement block");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, after);
  EXPECT_THAT(result.err, testing::StartsWith("lbf-advise: no advice: "));
  expect_refused(1, usual_ + " --script nowhere.sh", "nowhere.sh: cannot be read");
  expect_refused(2, usual_ + " --script job.sh --flags", "exclude each other");
  expect_refused(2, usual_ + " --script job.sh --placement map", "needs a host file");
}

// Two ranks share the run's one processor: 2 s. On two nodes of a network that nobody described it is 1 s at best.
TEST_F(Advise, ABoundIsNotAdvisedButTheCommandThatMeasures) {
  const std::string options = trace_ + " --cluster " + cluster_ + " --network zero --ran-nodes 1 --ran-cores 1";
  const nlohmann::json json = json_of(options);
  EXPECT_TRUE(json["advice"].is_null());
  EXPECT_THAT(json["why_no_advice"], HasSubstr("bound"));
  EXPECT_THAT(json["not_advised"],
              AllOf(HasSubstr("2 nodes of main"), HasSubstr("at best"), HasSubstr("lbf-calibrate")));
  ASSERT_FALSE(json["candidates"].empty());
  for (const nlohmann::json& one : json["candidates"]) {
    EXPECT_EQ(one["trust"], "at_best");
    EXPECT_FALSE(one.contains("flags"));
  }
  EXPECT_EQ(json["now"]["trust"], "number");
  EXPECT_THAT(run(options).out, AllOf(ContainsRegex("0\\.8[0-9]* s +- +2 block"), ContainsRegex("=  +2.000 s +1.8"),
                                      HasSubstr("No advice: every"), HasSubstr("Not advised: 2 nodes of main")));
  EXPECT_EQ(run(options + " --flags").out, "-N1 -n4 --overcommit\n");
}

TEST_F(Advise, WhatRanIsWhatTheUserSays) {
  nlohmann::json json = json_of(usual_ + " --ran-nodes 2 --ran-placement cyclic");
  EXPECT_EQ(json["now"]["is_what_ran"], true);
  EXPECT_EQ(json["now"]["lbf_s"], 1.0);
  EXPECT_TRUE(json["advice"].is_null());
  EXPECT_THAT(json["why_no_advice"], HasSubstr("keep it"));
  json = json_of(usual_ + " --ran-nodes 1 --ran-cores 1");
  EXPECT_EQ(json["now"]["lbf_s"], 2.0) << "two ranks compute 1 s each on one processor";
  EXPECT_FALSE(json["advice"].is_null());
}

TEST_F(Advise, Objectives) {
  // One node with overcommit takes 1 s there too (two ranks compute, it has two processors): half the
  // node-hours.
  nlohmann::json json = json_of(usual_ + " --overcommit --objective node-hours");
  ASSERT_FALSE(json["advice"].is_null());
  EXPECT_EQ(json["candidates"][json["advice"]["candidate"].get<std::size_t>()]["nodes"], 1);
  EXPECT_THAT(json["advice"]["flags"], HasSubstr("--overcommit --cpus-per-task=2"));
  json = json_of(usual_ + " --deadline 0.5");
  EXPECT_TRUE(json["advice"].is_null());
  EXPECT_THAT(json["why_no_advice"], HasSubstr("limits"));
  EXPECT_EQ(json["objective"], "time within 0.5 s");
}

TEST_F(Advise, LoadIsBalancedWhereRanksShareProcessors) {
  // Two nodes of one processor: blocks compute 4 + 3 s on one of them, cyclic 4 + 2 s, the best is 4 + 1 and
  // 3 + 2.
  std::string text = "lbf-trace 1\nranks 4\n";
  for (const auto& [rank, work] : {std::pair{"0", "4"}, std::pair{"1", "3"}, std::pair{"2", "2"}, std::pair{"3", "1"}})
    text += std::string(rank) + " compute " + work + "\n" + rank + " exit 0\n";
  write("uneven.lbf", text);
  write("two.toml", "lbf_cluster = 1\n[[node]]\nname = \"n[1-2]\"\n");
  const nlohmann::json json =
      json_of("uneven.lbf --cluster two.toml --overcommit --ran-nodes 2 --ran-cores 1 --network " + network_);
  EXPECT_EQ(json["now"]["lbf_s"], 7.0);
  ASSERT_TRUE(json["advice"].is_object()) << json["why_no_advice"];
  const nlohmann::json& chosen = json["candidates"][json["advice"]["candidate"].get<std::size_t>()];
  EXPECT_EQ(chosen["lbf_s"], 5.0);
  EXPECT_EQ(chosen["hosts"][0], chosen["hosts"][3]);
  EXPECT_EQ(chosen["hosts"][1], chosen["hosts"][2]);
  EXPECT_NE(chosen["hosts"][0], chosen["hosts"][1]);
  EXPECT_EQ(json["advice"]["hosts"], chosen["hosts"]);
}

TEST_F(Advise, NodesOfDifferentSizesNeedAHostFile) {
  write("unlike.toml",
        "lbf_cluster = 1\n[[node]]\nname = \"thin1\"\n[[node]]\nname = \"fat1\"\ncores_per_socket = 3\n"
        "[[partition]]\nname = \"main\"\nnodes = \"thin1,fat1\"\ndefault = true\n");
  const nlohmann::json json =
      json_of(trace_ + " --cluster unlike.toml --network " + network_ + " --placement block --nodes 2");
  ASSERT_EQ(json["candidates"].size(), 1U);
  const nlohmann::json& only = json["candidates"][0];
  EXPECT_EQ(only["placement"], "block");
  EXPECT_EQ(only["flags"], "--partition=main -N2 -n4 --distribution=arbitrary --nodelist=./lbf-advise.hosts");
  EXPECT_EQ(only["hosts"], nlohmann::json({"thin1", "fat1", "fat1", "fat1"})) << "in the cluster's order";
  EXPECT_EQ(json["now"]["flags"], "--partition=main -N2 -n4");
}

TEST_F(Advise, AMappingIsComputedForEachKindOfNodes) {
  write("kinds.toml",
        "lbf_cluster = 1\n[[node]]\nname = \"n[1-2]\"\ncores_per_socket = 2\n"
        "[[node]]\nname = \"f[1-2]\"\ncores_per_socket = 2\nspeed = 2.0\n"
        "[[partition]]\nname = \"main\"\nnodes = \"n[1-2],f[1-2]\"\ndefault = true\n");
  const nlohmann::json json =
      json_of(trace_ + " --cluster kinds.toml --network " + network_ + " --placement block,map --nodes 2");
  std::string kinds;
  for (const nlohmann::json& one : json["candidates"]) {
    if (one["placement"] == "map") kinds += one["hosts"][0].get<std::string>()[0];
  }
  EXPECT_THAT(kinds, AllOf(HasSubstr("f"), HasSubstr("n"))) << "the same mapping, but other nodes";
}

TEST_F(Advise, PartialTrace) {
  std::string cut = pairs();
  cut.resize(cut.find("3 startRecv"));  // rank 1 sent, rank 3 never came
  write("cut.lbf", cut);
  const nlohmann::json json = json_of("cut.lbf --cluster " + cluster_ + " --network " + network_);
  EXPECT_EQ(json["partial"], true);
  EXPECT_THAT(json["notes"].dump(), HasSubstr("the trace is partial"));
}

TEST_F(Advise, WhatCannotBeDone) {
  expect_refused(2, "", "give one of TRACE and -j");
  expect_refused(2, usual_ + " -j 12", "give one of TRACE and -j");
  expect_refused(2, usual_ + " --objective money", "--objective");
  expect_refused(2, usual_ + " --ranks 8", "--ranks needs -j JOB");
  expect_refused(2, "-j 12 --ranks 8 --script job.sh",
                 "--ranks: a skeleton, and the batch script, have the ranks that ran");
  expect_refused(2, usual_ + " --json --flags", "exclude each other");
  expect_refused(2, usual_ + " --budget 0", "--budget");
  expect_refused(2, usual_ + " --hostfile 'a b'", "blanks");
  expect_refused(1, dir_ + "/none --cluster " + cluster_, "no such trace");
  expect_refused(1, trace_ + " --cluster " + cluster_, "which network is between the nodes?");
  expect_refused(1, trace_ + " --cluster " + dir_ + "/none.toml --network zero", "no such file");
  expect_refused(1, usual_ + " --partition mian", "no partition 'mian'");
  expect_refused(1, usual_ + " --nodes 1", "no candidate fits: 4 ranks on the node counts asked for");
  expect_refused(1, usual_ + " --mem-per-rank 1 --nodes 7", "no candidate fits");
  const std::string broken = write("broken.lbf", pairs() + "0 send\n");
  expect_refused(1, broken + " --cluster " + cluster_ + " --network zero", "broken.lbf:");
  const std::string bytes = write("broken.lbfw", std::string(200, 'x'));
  expect_refused(1, bytes + " --cluster " + cluster_ + " --network zero", "not a stored trace");
}

TEST_F(Advise, NoSlurm) {
  expect_refused(1, trace_ + " --network " + network_, "--cluster FILE describes the nodes without Slurm");
}

// lbf-advise with a program in its inventory's place: what Slurm says of the cluster, and how it changes.
class AdviseSlurm : public Advise {
 protected:
  AdviseSlurm() {
    std::filesystem::create_directory(dir_ + "/bin");
    std::filesystem::copy_file(LBF_ADVISE, dir_ + "/bin/lbf-advise");
    const std::string inventory = write("bin/lbf-cluster-inventory", "#!/bin/sh\ncat " + dir_ + "/slurm.json\n");
    std::filesystem::permissions(inventory, std::filesystem::perms::owner_all);
  }
  // `old` has the faster node.
  void slurm_has(const std::string& partitions) {
    write("slurm.json", R"({"lbf_cluster":1,"source":"slurm","node":[{"name":"n[1-2]","cores_per_socket":2},)"
                        R"({"name":"o1","cores_per_socket":4,"speed":2.0}],"partition":[)" +
                            partitions + "]}");
  }
  test::Outcome ask(const std::string& arguments) {
    return test::run_command("cd " + dir_ + " && XDG_CACHE_HOME=" + dir_ + " SLURM_CONF=/nonexistent " + dir_ +
                             "/bin/lbf-advise " + trace_ + " --network " + network_ + " " + arguments);
  }
  const std::string main_ = R"({"name":"main","nodes":"n[1-2]","default":true})";
  const std::string old_ = R"({"name":"old","nodes":"o1"})";
};

TEST_F(AdviseSlurm, APartitionThatVanished) {
  slurm_has(main_ + "," + old_);
  test::Outcome result = ask("--flags");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("--partition=old"));

  slurm_has(main_);
  result = ask("");
  EXPECT_THAT(result.out, AllOf(HasSubstr("Advice: 1 node of old"), HasSubstr("--refresh")))
      << "the picture is kept, and says so";
  result = ask("--refresh --flags");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("--partition=main"));
  result = ask("--flags");
  EXPECT_THAT(result.out, HasSubstr("--partition=main")) << "what was asked anew is kept";
  result = ask("--partition old");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "lbf-advise: error: no partition 'old' in Slurm: there are main\n");
}

TEST_F(AdviseSlurm, APartitionThatIsNewIsAskedFor) {
  slurm_has(main_);
  ASSERT_EQ(ask("--flags").status, 0);
  slurm_has(main_ + "," + old_);
  const test::Outcome result = ask("--flags --partition old");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("--partition=old"));
}

TEST_F(AdviseSlurm, AllItsPartitionsVanished) {
  slurm_has("");
  const test::Outcome result = ask("--flags --partition main");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("no partition 'main' in Slurm: there are none"));
}

// A program in srun's place: says when by the number of nodes.
class AdviseWhen : public Advise {
 protected:
  void srun_says(const std::string& script) {
    const std::string path = write("srun", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  test::Outcome when(const std::string& arguments) {
    return run(usual_ + " --overcommit --ran-nodes 2 --ran-placement cyclic --when " + arguments,
               "PATH=" + dir_ + ":$PATH");
  }
  // Two nodes in an hour, one now.
  static std::string held() {
    return R"(case "$*" in *-N1*) at=$(date +%s);; *) at=$(($(date +%s) + 3600));; esac
echo "srun: Job 7 to start at $at using 4 processors on nodes n1 in partition main" >&2)";
  }
};

TEST_F(AdviseWhen, TheOneThatEndsFirst) {
  srun_says(held());
  const test::Outcome result = when("--json");
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  ASSERT_TRUE(json["advice"].is_object()) << json["why_no_advice"];
  EXPECT_EQ(json["advice"]["candidate"], 0);
  EXPECT_THAT(json["advice"]["flags"], HasSubstr("-N1 -n4 --overcommit --cpus-per-task=2 --time=2"));
  const nlohmann::json& first = json["candidates"][0];
  EXPECT_NEAR(first["end"].get<double>() - first["start"].get<double>(), first["lbf_s"], 1e-6);
  EXPECT_NEAR(first["start"].get<double>(), json["when"]["asked_at"], 1.5);
  EXPECT_GT(json["now"]["start"].get<double>(), first["end"]);
  EXPECT_GT(json["advice"]["gain_percent"], 99);
  EXPECT_LE(json["when"]["questions"], 4);
}

TEST_F(AdviseWhen, TextAndFlags) {
  srun_says(held());
  test::Outcome result = when("");
  EXPECT_THAT(result.out, AllOf(ContainsRegex("Start +End"), HasSubstr("objective: time, by the"),
                                HasSubstr("Advice: 1 node of main"), ContainsRegex("%[ \n]sooner"),
                                HasSubstr("srun --partition=main -N1 -n4"), HasSubstr("Slurm was asked")));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  result = when("--time 1:00:00 --flags");
  EXPECT_EQ(result.out, "--partition=main -N1 -n4 --overcommit --cpus-per-task=2 --time=1:00:00\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(AdviseWhen, SlurmsOwnWordsWhereItRefuses) {
  srun_says("echo 'srun: error: Unable to allocate resources: Invalid partition name specified' >&2; exit 1");
  test::Outcome result = when("");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("Slurm does not start what runs now: Invalid partition name specified."),
                                HasSubstr("No start is known")));
  result = when("--flags");
  EXPECT_THAT(result.err, HasSubstr("Slurm does not say when"));
  result = when("--json");
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["when"]["starts_known"], 0);
  EXPECT_EQ(json["now"]["why_no_start"], "Invalid partition name specified");
  EXPECT_FALSE(json["now"].contains("start"));
}

TEST_F(AdviseWhen, WithoutSlurm) {
  srun_says("echo 'srun: error: Unable to contact slurm controller (connect failure)' >&2; exit 1");
  const test::Outcome result = when("");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("lbf-advise: error: Slurm cannot be asked: Unable to contact slurm controller"));
}

TEST_F(AdviseWhen, WrongUsage) {
  expect_refused(2, usual_ + " --time 3", "--time goes with --when");
  expect_refused(2, usual_ + " --when --time 'x y'", "--time: MINUTES");
  expect_refused(2, usual_ + " --when --objective node-hours", "--node-hours-limit");
}

TEST_F(Advise, WhenTheBudgetIsOverTheRestIsDeferred) {
  std::string many = "lbf_cluster = 1\n[[node]]\nname = \"n[1-4]\"\ncores_per_socket = 4\n";
  for (int p = 0; p < 12; ++p) many += "[[partition]]\nname = \"p" + std::to_string(p) + "\"\nnodes = \"n[1-4]\"\n";
  write("many.toml", many);
  const nlohmann::json json = json_of(trace_ + " --cluster many.toml --network " + network_ + " --budget 0.000001");
  EXPECT_EQ(json["passes"], 2);
  std::size_t deferred = 0;
  std::size_t replayed = 0;
  for (const nlohmann::json& one : json["candidates"]) {
    deferred += one["verdict"] == "deferred" ? 1 : 0;
    replayed += one["verdict"] == "replayed" ? 1 : 0;
  }
  EXPECT_EQ(replayed, 8U);
  EXPECT_GT(deferred, 8U);
  EXPECT_GT(json["mappings_deferred"], 0);
}

}  // namespace
}  // namespace lbf::advise_test