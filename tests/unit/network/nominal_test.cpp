// The nominal networks that are shipped (etc/networks.d/nominal).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "predictor/engine/network/network.h"

namespace lbf::nominal_test {
namespace {

using testing::HasSubstr;

TEST(NominalNetworks, EachIsWhatItsNameAndItsLinkSay) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(LBF_NOMINAL_DIR)) {
    SCOPED_TRACE(entry.path().string());
    ASSERT_EQ(entry.path().extension(), ".toml");
    const Result<engine::Network> network = engine::Network::load(entry.path().string());
    ASSERT_TRUE(network.ok()) << network.error().message;
    EXPECT_EQ(network->name(), entry.path().stem().string());
    EXPECT_TRUE(network->nominal());
    names.insert(network->name());
    for (const char* says : {"kind: nominal: ", "latency: ", "rate: ", "self_node: assumed: ", "local: assumed: "}) {
      EXPECT_THAT(network->description(), HasSubstr(says));
    }
    const std::string& about = network->description();
    const double copied = std::stod(about.substr(about.find("us and ", about.find("local: ")) + 7));
    EXPECT_NEAR(1e-9 / network->local().copy.tail_slope_s_per_byte(), copied, 0.005 * copied);
    // Through shared memory a message is copied at least once; two operands are read where a copy reads one.
    EXPECT_LE(network->local().copy.at(1 << 20), network->path(0).flight.at(1 << 20));
    EXPECT_GT(network->local().reduce.at(1 << 20), network->local().copy.at(1 << 20));
    EXPECT_EQ(network->contention(), engine::Contention::kNic);
    const double rate = network->contention_bytes_per_s();
    for (const std::uint32_t hops : {1U, 2U, 3U, 4U, engine::kUnknownHops}) {
      const engine::CostCurve& flight = network->path(hops).flight;
      EXPECT_NEAR(1.0 / flight.tail_slope_s_per_byte(), rate, 0.005 * rate) << hops << " hops";
      // The figure that `rate` begins with: "12200 MB/s: ...".
      const std::string& text = network->description();
      EXPECT_NEAR(std::stod(text.substr(text.find("rate: ") + 6)), rate / 1e6, 0.005 * rate / 1e6);
      const std::string latency = text.substr(text.find("latency: ") + 9);
      const std::string figure = latency.starts_with("assumed: ") ? latency.substr(9) : latency;
      if (hops == 1) {
        EXPECT_NEAR(flight.at(0), std::stod(figure) * 1e-6, 1e-12);
      }
      EXPECT_GT(flight.at(0), network->path(0).flight.at(0));
      EXPECT_GE(network->path(3).flight.at(0), network->path(2).flight.at(0));
      EXPECT_GE(network->path(2).flight.at(0), network->path(1).flight.at(0));
    }
    EXPECT_EQ(network->path(engine::kUnknownHops).flight.at(0), network->path(2).flight.at(0));
  }
  EXPECT_THAT(names,
              testing::ElementsAre("nominal-100gbe", "nominal-10gbe", "nominal-1gbe", "nominal-200gbe", "nominal-25gbe",
                                   "nominal-hdr", "nominal-ndr", "nominal-opa100", "nominal-slingshot11"));
}

}  // namespace
}  // namespace lbf::nominal_test