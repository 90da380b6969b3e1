// NetworkCatalog: which network is the cluster's own, and which are predicted.
#include "predictor/daemon/network_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::network_catalog_test {
namespace {

using testing::HasSubstr;

class NetworkCatalogTest : public testing::Test {
 protected:
  void add(const std::string& file, const std::string& name) {
    std::ofstream(directory_.path() + "/" + file)
        << "name = \"" << name << "\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n";
  }
  daemon::NetworkCatalog load(const std::string& own = "") {
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), own);
    EXPECT_TRUE(catalog.ok()) << catalog.error().message;
    return std::move(catalog).value();
  }
  test::TemporaryDirectory directory_;
};

TEST_F(NetworkCatalogTest, WithoutFilesItIsZeroWithANote) {
  const auto catalog = daemon::NetworkCatalog::load(directory_.path() + "/none", "");
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog->own()->name(), "zero");
  EXPECT_FALSE(catalog->own_note().empty());
  EXPECT_EQ(catalog->select({}).networks.size(), 1u);
}

TEST_F(NetworkCatalogTest, OwnIsTheNamedElseTheDefaultElseTheOnlyOne) {
  add("a.toml", "alpha");
  EXPECT_EQ(load().own()->name(), "alpha");
  EXPECT_TRUE(load().own_note().empty());
  add("b.toml", "beta");
  EXPECT_EQ(load().own()->name(), "zero");
  EXPECT_THAT(load().own_note(), HasSubstr("key network"));
  EXPECT_EQ(load("beta").own()->name(), "beta");
  EXPECT_EQ(load("zero").own()->name(), "zero");
  add("c.toml", "default");
  EXPECT_EQ(load().own()->name(), "default");
  add("default.toml", "gamma");
  EXPECT_EQ(load().own()->name(), "gamma");
  const auto unknown = daemon::NetworkCatalog::load(directory_.path(), "delta");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("delta"));
}

TEST_F(NetworkCatalogTest, TwoFilesWithOneNameAreRefused) {
  add("a.toml", "same");
  add("b.toml", "same");
  const auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
  ASSERT_FALSE(catalog.ok());
  EXPECT_THAT(catalog.error().message, HasSubstr("b.toml"));
}

TEST_F(NetworkCatalogTest, TakesNetworksWithContention) {
  add("a.toml", "alpha");
  add("b.toml", "beta");
  std::ofstream(directory_.path() + "/b.toml", std::ios::app)
      << "[contention]\nmodel = \"nic\"\nbandwidth_MBps = 10.0\n";
  EXPECT_EQ(load("beta").own()->contention(), engine::Contention::kNic);
  const auto selection = load("alpha").select({});
  ASSERT_EQ(selection.networks.size(), 2u);
  EXPECT_EQ(selection.networks[1]->name(), "beta");
  EXPECT_TRUE(selection.notes.empty());
}

TEST_F(NetworkCatalogTest, SelectsByName) {
  add("a.toml", "alpha");
  add("b.toml", "beta");
  const auto catalog = load("beta");
  const auto all = catalog.select({});
  ASSERT_EQ(all.networks.size(), 2u);
  EXPECT_EQ(all.networks[0]->name(), "beta");  // its own first
  const auto some = catalog.select({"alpha", "zero", "alpha", "nowhere"});
  ASSERT_EQ(some.networks.size(), 2u);
  EXPECT_EQ(some.networks[0]->name(), "alpha");
  ASSERT_EQ(some.notes.size(), 1u);
  EXPECT_THAT(some.notes[0], HasSubstr("'nowhere' is not known here: there are zero, alpha, beta"));
  EXPECT_THAT(catalog.names(), testing::ElementsAre("zero", "alpha", "beta"));
}

TEST_F(NetworkCatalogTest, NominalOnesAreUsedWhereTheyAreNamed) {
  std::filesystem::create_directory(directory_.path() + "/nominal");
  add("nominal/x.toml", "nominal-x");
  EXPECT_EQ(load().own()->name(), "zero") << "the only one, but nobody named it";
  EXPECT_EQ(load("nominal-x").own()->name(), "nominal-x");
  add("a.toml", "alpha");
  const auto catalog = load();
  EXPECT_EQ(catalog.own()->name(), "alpha");
  EXPECT_EQ(catalog.select({}).networks.size(), 1u);
  ASSERT_EQ(catalog.select({"nominal-x"}).networks.size(), 1u);
  EXPECT_EQ(catalog.select({"nominal-x"}).networks[0]->name(), "nominal-x");
  EXPECT_THAT(catalog.select({"other"}).notes[0], HasSubstr("there are zero, alpha, nominal-x"));
  add("nominal/y.toml", "nominal-x");
  EXPECT_THAT(daemon::NetworkCatalog::load(directory_.path(), "").error().message, HasSubstr("y.toml"));
}

TEST_F(NetworkCatalogTest, ThreeNominalOnesStandInWhereNoneIsDescribed) {
  const auto selected = [](const daemon::NetworkCatalog& catalog, const std::vector<std::string>& wanted = {}) {
    std::vector<std::string> names;
    for (const auto& network : catalog.select(wanted).networks) names.push_back(network->name());
    return names;
  };
  using testing::ElementsAre;
  EXPECT_THAT(selected(load()), ElementsAre("zero")) << "they are not installed";
  std::filesystem::copy(LBF_NOMINAL_DIR, directory_.path() + "/nominal");
  EXPECT_THAT(selected(load()), ElementsAre("zero", "nominal-1gbe", "nominal-25gbe", "nominal-hdr"));
  EXPECT_THAT(selected(load(), {"zero"}), ElementsAre("zero")) << "as it was asked for";
  EXPECT_THAT(selected(load("nominal-ndr")), ElementsAre("nominal-ndr")) << "lbfd.toml says what the cluster has";
  add("a.toml", "alpha");
  EXPECT_THAT(selected(load("zero")), ElementsAre("zero", "alpha")) << "one is described";
}

}  // namespace
}  // namespace lbf::network_catalog_test