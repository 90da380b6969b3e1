// A stored trace whose capture ended before the program: lbfd, lbf-whatif and lbf-advise say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/step_run.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"
#include "tools/advise/advise_trace.h"

namespace lbf::ended_capture_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EndedCapture : public testing::Test {
 protected:
  EndedCapture() {
    std::ofstream(network_path())
        << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 50.0], [1000, 90.0]]\n"
           "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0]]\n";
    std::filesystem::create_directory(directory_.path() + "/cluster");  // not beside the networks
    std::ofstream(cluster_path()) << "lbf_cluster = 1\n[[node]]\nname = \"n[1-2]\"\ncores_per_socket = 4\n";
    program_.rounds = 400;
    program_.more_work = 0;  // their windows end together
    program_.unseen_s = 60;
    program_.cost = {{"recording_s", 0.4}, {"direct_s", 0.6}, {"recorded_calls", 3200}, {"state", "off"}};
  }

  // As lbfd has it; the trace stays in trace_path().
  std::shared_ptr<const daemon::StepView> lbfd() {
    const auto describe = [&](std::uint32_t node) {
      return protocol::decode_step_description(program_.description(node, 7).dump()).value();
    };
    auto trace = std::move(daemon::StepTrace::create({"c", 7, 0, 0}, trace_path(), describe(0), 1)).value();
    const auto nodes = static_cast<std::uint32_t>(program_.ranks_of_node.size());
    for (std::uint32_t node = 0; node < nodes; ++node) EXPECT_TRUE(trace->register_stream(describe(node)).ok());
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    for (std::uint32_t node = 0; node < nodes; ++node) {
      std::uint64_t sequence = 0;
      for (const std::string& batch : program_.batches_of(node))
        EXPECT_TRUE(trace->append(node, ++sequence, test::bytes_of(batch)).ok());
      EXPECT_TRUE(trace->end_stream(node, {sequence, 0, "step_end"}).ok());
    }
    daemon::StepRun step(trace, *catalog, {});
    daemon::StepRun::Progress progress = daemon::StepRun::Progress::kMore;
    while (progress == daemon::StepRun::Progress::kMore) progress = step.work();
    EXPECT_EQ(progress, daemon::StepRun::Progress::kFinished);
    return step.view();
  }
  std::string network_path() const { return directory_.path() + "/default.toml"; }
  std::string trace_path() const { return directory_.path() + "/trace"; }
  std::string cluster_path() const { return directory_.path() + "/cluster/cluster.toml"; }
  std::string whatif() const {
    return LBF_WHATIF " " + trace_path() + " --nodes 2 --cores 2 --placement block --network " + network_path();
  }
  std::string advise() const {
    return LBF_ADVISE " " + trace_path() + " --cluster " + cluster_path() + " --network " + network_path();
  }

  test::TemporaryDirectory directory_;
  test::RingProgram program_;
};

TEST_F(EndedCapture, WhatIfSaysWhatLbfdSays) {
  const auto view = lbfd();
  ASSERT_EQ(view->record.state, db::StepState::kComplete) << view->record.why_partial;
  const db::PredictionRecord& self = view->predictions.at(0);
  ASSERT_TRUE(self.low_s && self.high_s) << "the program is long enough for an interval";
  ASSERT_LT(self.seen_share, 0.5);
  const test::Outcome out = test::run_command(whatif() + " --json");
  ASSERT_EQ(out.status, 0) << out.err;
  const nlohmann::json said = nlohmann::json::parse(out.out).at("predictions").at(0);
  EXPECT_EQ(said.at("lbf_s").get<double>(), self.predicted_s);
  EXPECT_EQ(said.at("low_s").get<double>(), *self.low_s);
  EXPECT_EQ(said.at("high_s").get<double>(), *self.high_s);
  EXPECT_EQ(said.at("seen_share").get<double>(), self.seen_share);
}

// The test above would pass, too, if nobody knew what the capture took.
TEST_F(EndedCapture, WhatTheCaptureTookMatters) {
  const Seconds with_s = lbfd()->predictions.at(0).predicted_s;
  std::filesystem::remove_all(trace_path());
  program_.cost = nullptr;
  EXPECT_NE(lbfd()->predictions.at(0).predicted_s, with_s);
}

TEST_F(EndedCapture, AdviseReplaysItAlike) {
  const auto view = lbfd();
  const db::PredictionRecord& self = view->predictions.at(0);
  auto opened = tools::open_trace(trace_path(), "");
  ASSERT_TRUE(opened.ok());
  tools::AdviseTrace trace(std::move(*opened), "", 1, [](double) {});
  engine::Target ran;
  ran.node_of_rank = {0, 0, 1, 1};
  ran.nodes = 2;
  ran.cores_per_node = 2;
  ran.placement = "block";
  auto network = engine::Network::load(network_path());
  ASSERT_TRUE(network.ok());
  ran.network = std::make_shared<const engine::Network>(std::move(*network));
  for (int pass = 0; pass < 2; ++pass) {  // it is read again for each
    const auto replayed = trace.replay({ran});
    ASSERT_TRUE(replayed.ok());
    EXPECT_EQ(replayed->predictions.at(0).lbf_s, self.predicted_s);
    EXPECT_EQ(replayed->predictions.at(0).low_s, self.low_s);
    EXPECT_EQ(replayed->predictions.at(0).high_s, self.high_s);
  }
}

// Every trace in windows was refused, as an export refuses it.
TEST_F(EndedCapture, AdviseTakesIt) {
  const db::PredictionRecord self = lbfd()->predictions.at(0);
  const test::Outcome out = test::run_command(advise() + " --json");
  ASSERT_EQ(out.status, 0) << out.err;
  const nlohmann::json now = nlohmann::json::parse(out.out).at("now");
  EXPECT_EQ(now.at("lbf_s").get<double>(), self.predicted_s);
  EXPECT_EQ(now.at("low_s").get<double>(), *self.low_s);
  EXPECT_EQ(now.at("high_s").get<double>(), *self.high_s);
}

// Less than 1 % of a run of 60 s: each program says that this is too little, and none a number.
class SeenForAMoment : public EndedCapture {
 protected:
  SeenForAMoment() {
    program_.rounds = 8;
    program_.cost.update({{"limit_percent", 2}, {"predicted_percent", 100}, {"corrected_percent", 100}});
    view_ = lbfd();
    seen_ = {view_->predictions.at(0).seen_share, false, 2, 100};
    why_ = seen_.why_no_prediction();
  }
  static std::string output_of(const std::string& command) {
    const test::Outcome out = test::run_command(command);
    EXPECT_EQ(out.status, 0) << out.err;
    return out.out;
  }

  std::shared_ptr<const daemon::StepView> view_;
  protocol::SeenRun seen_;
  std::string why_;
};

TEST_F(SeenForAMoment, Lbfd) {
  const db::PredictionRecord& self = view_->predictions.at(0);
  ASSERT_LT(self.seen_share, 0.01);
  ASSERT_FALSE(self.high_s);
  const nlohmann::json said = daemon::step_json(*view_, daemon::StepDetail::kFull).at("predictions").at(0);
  for (const char* const key : {"predicted_s", "speedup", "self_error_percent"}) EXPECT_TRUE(said.at(key).is_null());
  EXPECT_EQ(said.at("seen_share").get<double>(), self.seen_share);
  EXPECT_EQ(said.at("trust"), "cannot_tell");
  EXPECT_EQ(said.at("why_no_number"), why_);
  EXPECT_TRUE(said.at("interval_low_s").is_null());
}

TEST_F(SeenForAMoment, WhatIf) {
  EXPECT_THAT(output_of(whatif()), AllOf(HasSubstr("  no prediction: " + why_ + "\n"), HasSubstr(" cannot tell  "),
                                         Not(HasSubstr("extrapolated"))));
  const nlohmann::json said = nlohmann::json::parse(output_of(whatif() + " --json")).at("predictions").at(0);
  EXPECT_TRUE(said.at("lbf_s").is_null());
  EXPECT_TRUE(said.at("low_s").is_null());
  EXPECT_EQ(said.at("why_unknown"), why_);
  EXPECT_EQ(said.at("trust"), "cannot_tell");
  EXPECT_EQ(said.at("why_no_number"), why_);
  EXPECT_THAT(output_of(whatif() + " --html -"),
              AllOf(HasSubstr("No prediction: " + why_), HasSubstr(">cannot tell<")));
}

TEST_F(SeenForAMoment, Advise) {
  EXPECT_THAT(output_of(advise()),
              AllOf(HasSubstr("No advice: " + seen_.in_words()), Not(HasSubstr("Predicted")), Not(HasSubstr("bound"))));
  const nlohmann::json said = nlohmann::json::parse(output_of(advise() + " --json"));
  EXPECT_TRUE(said.at("advice").is_null());
  EXPECT_EQ(said.at("why_no_advice"), why_);
  EXPECT_EQ(said.at("now").at("verdict"), "unknown");
  EXPECT_FALSE(said.at("now").contains("lbf_s"));
  EXPECT_TRUE(said.at("candidates").empty());
  EXPECT_FALSE(said.contains("sensitivity"));
}

}  // namespace
}  // namespace lbf::ended_capture_test