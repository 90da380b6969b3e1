// lbf-advise where ranks share memory bandwidth: four ranks of 10 s that never wait, on nodes of two processors. One
// gets 10 GB/s, two 12 GB/s together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "advisor/candidate/cluster.h"
#include "tests/support/temporary_directory.h"
#include "tools/advise/advise_session.h"

namespace lbf::advise_memory_test {
namespace {

using testing::HasSubstr;

class AdviseMemory : public testing::Test {
 protected:
  AdviseMemory() { std::ofstream(path_) << "lbf-trace 1\nranks 4\n0 exit 10\n1 exit 10\n2 exit 10\n3 exit 10\n"; }
  // It ran in blocks on two nodes.
  tools::AdviseResult advise(const engine::KnownDemand& demand) {
    auto trace = tools::open_trace(path_, "");
    EXPECT_TRUE(trace.ok());
    (*trace)->set_memory({demand, 2, "m"});
    tools::AdviseTrace passes(std::move(*trace), "", 1, nullptr);
    const auto cluster = advisor::parse_cluster(
        "lbf_cluster = 1\n[[node]]\nname = \"n[1-4]\"\ncores_per_socket = 2\n"
        "[[partition]]\nname = \"main\"\nnodes = \"n[1-4]\"\ndefault = true\n",
        "c.toml");
    EXPECT_TRUE(cluster.ok());
    tools::AdviseOptions options;
    options.candidates.networks = {network_};
    options.ran.nodes = 2;
    options.ran.cores = 2;
    options.ran.network = network_;
    options.ran.measured_s = 10;
    auto result = tools::advise(passes, *cluster, options);
    EXPECT_TRUE(result.ok()) << (result ? "" : result.error().message);
    return result ? std::move(*result) : tools::AdviseResult{};
  }
  static advisor::Ranked on_four_nodes(const tools::AdviseResult& result) {
    const auto& ranked = result.ranking.ranked;
    const auto found =
        std::ranges::find_if(ranked, [](const advisor::Ranked& one) { return one.candidate.target.nodes == 4; });
    EXPECT_NE(found, ranked.end());
    return found == ranked.end() ? advisor::Ranked{} : *found;
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/t.lbf";
  const std::shared_ptr<const engine::Network> network_ = std::make_shared<const engine::Network>(
      engine::Network::parse("name = \"m\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0]]\n"
                             "[memory]\nbandwidth_MBps = [[1, 10000.0], [2, 12000.0]]\n",
                             "m.toml")
          .value());
};

TEST_F(AdviseMemory, RanksWithADomainForThemselvesAreAsFastAsLbfWhatifSays) {
  const tools::AdviseResult result = advise({10e9, 10e9});
  EXPECT_NEAR(result.baseline.now.time_s, 10, 1e-9);
  const advisor::Ranked sparse = on_four_nodes(result);
  EXPECT_EQ(sparse.verdict, advisor::Verdict::kReplayed);
  EXPECT_NEAR(sparse.time_s, 6, 1e-9);
  EXPECT_LE(sparse.bound.at_least_s(), 6 + 1e-9) << "a bound above it would rule it out";
  EXPECT_EQ(sparse.memory_percent, 0);
  ASSERT_TRUE(result.advice.chosen);
  EXPECT_EQ(result.ranking.ranked[*result.advice.chosen].candidate.target.nodes, 4u);
  EXPECT_EQ(result.memory_note, "memory: a rank alone in its memory domain demands 10 GB/s");
}

TEST_F(AdviseMemory, WithoutADemandTheIntervalIsWider) {
  const tools::AdviseResult result = advise({});
  const advisor::Ranked sparse = on_four_nodes(result);
  EXPECT_NEAR(sparse.memory_percent, 40, 1e-9);
  EXPECT_NEAR(result.baseline.say(result.trust, sparse).half_width_percent, result.trust.half_width_percent(1) + 40,
              1e-6);
  EXPECT_THAT(result.memory_note, HasSubstr("is not known: times with other numbers of ranks per memory domain may be "
                                            "off by up to 40 %"));
  EXPECT_EQ(advise({0, 6e9}).memory_note, "") << "two runs say that there is enough for both";
}

}  // namespace
}  // namespace lbf::advise_memory_test
