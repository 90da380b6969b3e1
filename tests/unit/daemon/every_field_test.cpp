// A step with every field set goes through SQL, JSON and rows, byte for byte as http-v1.md promises. The files are in
// tests/unit/report/data: tests/unit/report/every_field_test.cpp reads them again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "db/prediction_store.h"
#include "db/step_list.h"
#include "db/step_store.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/http/step_rows.h"
#include "predictor/daemon/http/step_text.h"
#include "tests/support/temporary_directory.h"

namespace lbf::every_field_test {
namespace {

db::StepRecord step_record() {
  db::StepRecord step;
  step.cluster = "c";
  step.job = 4294967295;
  step.step = 4294967291;
  step.restart = 2;
  step.submit_s = 1699999999;
  step.array_job = 7;
  step.array_task = 8;
  step.het_job = 9;
  step.het_offset = 10;
  step.user_name = "alice";
  step.uid = 1000;
  step.account = "physics";
  step.partition = "main";
  step.job_name = "a \"b\" \\ \t \xff \xc3\xa9";
  step.command = "./a b x";
  step.command_words = std::vector<std::string>{"./a b", "x"};
  step.command_cut = true;
  step.state = db::StepState::kPartial;
  step.why_partial = "rank 3 was lost";
  step.nodes = {"n1", "n2"};
  step.ranks = 3;
  step.node_of_rank = {0, 0, 1};
  step.network = "lan";
  step.start_s = 1.7e9;
  step.end_s = 1700000123.125;
  step.measured_s = 100.25;
  step.events = 9223372036854775807;
  step.messages = 11;
  step.collectives = 12;
  step.wire_bytes = 13000;
  step.stored_bytes = 14000000;
  step.wildcard_receives = 15;
  step.lost_events = 16;
  step.delayed_s = 16.5;
  step.others_s = 16.25;
  step.limited_s = 0.375;
  step.stolen_percent = 3.5;
  step.softirq_percent = 4.5;
  step.mpi_s = 17.5;
  step.unmodelled_s = 1.25;
  step.threads = 8;
  step.regions_s = 2.5;
  step.region_work_s = 17.25;
  step.library = "MPICH family by self-test: Some MPI 1.0";
  step.devices = "CUDA,HIP";
  step.device_s = 12.5;
  step.device_busy_s = 11.25;
  step.ranks_per_domain = 2;
  step.memory_demand_MBps = 9500.5;
  step.memory_most_MBps = 9600.5;
  step.program_id = "gnu:1234";
  step.program.emplace().build_id = "gnu:1234";
  step.path_work_s = 8.5;
  step.path_rank_work_s = 7.5;
  step.path_copies_s = 0.5;
  step.path_overhead_s = 0.75;
  step.path_latency_inside_s = 0.25;
  step.path_latency_between_s = 1.25;
  step.path_bytes_inside_s = 0.125;
  step.path_bytes_between_s = 2.125;
  step.path_kept_s = 0.375;
  step.path_unseen_s = 1.375;
  step.capture_s = 0.0625;
  step.relay_cpu_s = 1e-7;
  step.lbfd_cpu_s = 21.5;
  step.calls = {{"MPI_Send", 500, 0.4}, {"MPI_Recv", 2, 0}};
  step.unmodelled_calls = {{"MPI_Win_fence", 1, 2}};
  step.notes = {"one", "two"};
  db::CostRecord& cost = step.cost.emplace();
  cost.limit_percent = 2;
  cost.predicted_percent = 0.5;
  cost.corrected_percent = 0.75;
  cost.state = "counting";
  cost.program_cpu_s = 100;
  cost.direct_s = 0.75;
  cost.ideal_s = 0.5;
  cost.relay_cpu_s = 0.25;
  cost.held_up_s = 0.125;
  cost.once_capture_s = 0.03125;
  cost.once_relay_s = 0.015625;
  cost.recording_s = 0.25;
  cost.recorded_calls = 21;
  cost.counted_calls = 22;
  cost.disbelieved = 23;
  cost.windows = 24;
  cost.seen_share = 0.25;
  cost.nodes = {{0, "open", 1, 2, 3, 4, 5, 6, 7, 8, 9.5, 10.5, 11}};
  cost.ranks = {{0, 1, 2, 3, 4, 5}};
  db::ProcedureRecord& procedure = step.procedures.emplace().procedures.emplace_back();
  procedure.name = "servBusy1";
  procedure.state = "off";
  procedure.note = "switched off";
  procedure.ranks = 3;
  procedure.calls = 24;
  procedure.inclusive_s = 2;
  procedure.exclusive_s = 1.5;
  procedure.critical_path_s = 1.25;
  procedure.receiver_s = 6.5;
  procedure.sender_s = 8.5;
  procedure.zeroed_s = 6.25;
  procedure.stayed_receiver_s = 0;
  procedure.stayed_sender_s = 2;
  procedure.predicted_cost = 0.0004;
  procedure.predicted_from = "history";
  procedure.observed_cost = 0.0005;
  procedure.calls_per_s = 12;
  procedure.samples = 25;
  procedure.sampled_s = 3;
  procedure.sampled_low_s = 2.5;
  procedure.sampled_high_s = 3.5;
  db::ProcedureRecord& refused = step.procedures->procedures.emplace_back();
  refused.name = "memcpy";
  refused.state = "refused";
  step.procedures->path = {{8.5, 8.25, 2, 1, 0.125, 0.25, 0.5, true}, {{0, 8.4}, {-1, 0.1}}, {{"MPI_Recv", 0.1}}};
  step.procedures->why_deferred = "no room";
  return step;
}

db::PredictionRecord prediction(const char* kind, double predicted_s) {
  db::PredictionRecord made;
  made.target = "2 nodes, block";
  made.nodes = 2;
  made.cores_per_node = 8;
  made.threads = 4;
  made.placement = "block";
  made.network = "lan-100";
  made.contention = "nic";
  made.speed = 0.5;
  made.kind = kind;
  made.predicted_s = predicted_s;
  made.speedup = 1.5;
  made.self_error_percent = -1.25;
  made.progress_s = 13;
  made.measured_at_progress_s = 14.5;
  made.topology = {"/etc/slurm/topology.conf", {"n1", "n7"}};
  made.seen_share = 0.5;
  made.low_s = 11;
  made.memory_percent = 66.5;
  made.exchange_percent = 7.5;
  made.high_s = 1e20;
  made.rank_finish_s = {1, 2.5, 1e-9};
  return made;
}

std::vector<db::PredictionRecord> predictions() {
  std::vector<db::PredictionRecord> made{prediction("self", 12.25), prediction("LBF", 9), prediction("NF", 9),
                                         prediction("LBF+NF", 20)};
  made[0].partial = true;
  made[1].why_stuck = "it waits";
  made[2].why_deferred = "no room";
  made[2].deferred_for_good = true;
  made[3].taken_up = true;
  return made;
}

std::string path_of(const std::string& name) {
  return std::string(LBF_REPORT_FIXTURES) + "/every_field/" + name;
}

std::string file_text(const std::string& name) {
  std::ifstream in(path_of(name));
  return {std::istreambuf_iterator<char>(in), {}};
}

// With LBF_WRITE_GOLDEN in the environment the files are written, not compared.
bool writes_files() {
  return std::getenv("LBF_WRITE_GOLDEN") != nullptr;
}

void expect_file(const std::string& name, const std::string& text) {
  if (writes_files()) std::ofstream(path_of(name)) << text;
  EXPECT_EQ(text, file_text(name)) << name;
}

class EveryField : public testing::Test {
 protected:
  EveryField() {
    auto database = db::Database::open(directory_.path() + "/lbf.db");
    if (database) database_ = std::move(database).value();
    row_ = db::StepStore(*database_).put(step_record(), predictions()).value();
    // As the daemon's threads do: it is put again when more is known.
    row_ = db::StepStore(*database_).put(step_record(), predictions()).value();
  }

  daemon::StepView stored() {
    auto found = db::StepStore(*database_).find({}, true);
    daemon::StepView view;
    view.record = found->at(0).record;
    view.predictions = db::PredictionStore(*database_).of_step(row_).value();
    return view;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<db::Database> database_;
  db::StepRow row_ = 0;
};

TEST_F(EveryField, AsADocument) {
  expect_file("full.json", daemon::json_text(daemon::step_json(stored(), daemon::StepDetail::kFull)));
}

TEST_F(EveryField, AsText) {
  const auto text = [&](daemon::StepDetail detail) {
    std::string out;
    daemon::append_step_text(stored(), detail, out);
    return out;
  };
  expect_file("brief.json", text(daemon::StepDetail::kBrief));
  expect_file("summary.json", text(daemon::StepDetail::kSummary));
  expect_file("list.json", text(daemon::StepDetail::kList));
}

TEST_F(EveryField, AsARow) {
  std::vector<std::string> all;
  if (writes_files()) {
    for (const std::string_view name : daemon::all_row_names()) all.emplace_back(name);
  } else {  // in the order of the file
    const nlohmann::json expected = nlohmann::json::parse(file_text("rows.json"));
    for (const std::string name : expected["keys"]) all.push_back(name);
    for (const std::string name : expected["prediction_keys"]) all.push_back("predictions." + name);
  }
  std::string names;
  for (const std::string& name : all) (names += names.empty() ? "" : ",") += name;
  EXPECT_THAT(daemon::all_row_names(), testing::UnorderedElementsAreArray(all));
  const auto columns = daemon::parse_rows(names).value();
  db::ListValues values = columns.values();
  values.every_target = true;
  auto listed = db::list_steps(*database_, {}, values).value();
  ASSERT_TRUE(db::read_predictions(*database_, values, listed).ok());
  std::string out;
  daemon::append_rows_head(columns, out);
  daemon::append_row(listed.at(0), columns, out);
  expect_file("rows.json", out + "]}");
}

}  // namespace
}  // namespace lbf::every_field_test
