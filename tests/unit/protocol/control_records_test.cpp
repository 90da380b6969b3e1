// Control records: the bytes that relays write, what comes back, and what hostile input does.
#include "protocol/control_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lbf::control_records_test {
namespace {

using namespace protocol;
using testing::ElementsAre;
using testing::IsEmpty;

template <typename Record>
Record decoded(const std::string& text) {
  const auto record = decode_control(text);
  EXPECT_TRUE(record.ok()) << text;
  const Record* one = record ? std::get_if<Record>(&*record) : nullptr;
  EXPECT_NE(one, nullptr) << text;
  return one == nullptr ? Record() : *one;
}

// BYTES are those that RECORD is, and encoding what was decoded gives them again.
template <typename Record>
void expect_bytes(const Record& record, const std::string& bytes) {
  EXPECT_EQ(encode(record), bytes);
  EXPECT_EQ(encode(decoded<Record>(bytes)), bytes);
}

TEST(ControlRecords, EachHasItsBytes) {
  expect_bytes(
      ProcessRecord{1, 4, 77, 0, 1, "/usr/bin/lmp", "Open MPI v4.1.4", "gnu:4c0f", "run.py:812-1a", 3, 5, 0.25, 100000},
      R"({"build_id":"gnu:4c0f","cpu_threshold_ns":100000,"executable":"/usr/bin/lmp","init_s":0.25,)"
      R"("library":"Open MPI v4.1.4","node_index":0,"pid":77,"rank":1,"script":"run.py:812-1a","slurm_procid":1,)"
      R"("start_realtime_ns":5,"thread_level":3,"type":"process","world_size":4})");
  expect_bytes(
      StatsRecord{2, 1.5, {{{12, 10, 0.5}, {13, 1, 0.0}}}, 1, 2, 3, 4, 0.125, 0.0625},
      R"({"abandoned_calls":3,"calls":[[12,10,0.5],[13,1,0.0]],"capture_s":0.0625,"elapsed_s":1.5,)"
      R"("events_without_communicator":4,"failed_polls":1,"lost_records":2,"rank":2,"type":"stats","unread_gap_s":0.125})");
  expect_bytes(StatsRecord{.rank = 0, .calls = std::vector<FunctionTotal>()},
               R"({"abandoned_calls":0,"calls":[],"capture_s":0.0,"elapsed_s":0.0,"events_without_communicator":0,)"
               R"("failed_polls":0,"lost_records":0,"rank":0,"type":"stats","unread_gap_s":0.0})");
  expect_bytes(StatsRecord{.rank = 1, .delayed_s = 2.5, .others_s = 2.0, .limited_s = 0.25},
               R"({"abandoned_calls":0,"capture_s":0.0,"delayed_s":2.5,"elapsed_s":0.0,)"
               R"("events_without_communicator":0,"failed_polls":0,"limited_s":0.25,"lost_records":0,"others_s":2.0,)"
               R"("rank":1,"type":"stats","unread_gap_s":0.0})");
  ProcessRecord tuned;
  tuned.mpi_settings = {"OMPI_MCA_coll=^han", "A=\"b\""};
  expect_bytes(tuned,
               R"({"build_id":"","cpu_threshold_ns":0,"executable":"","init_s":0.0,"library":"",)"
               R"("mpi_settings":["OMPI_MCA_coll=^han","A=\"b\""],"pid":0,"rank":-1,"script":"","slurm_procid":-1,)"
               R"("start_realtime_ns":0,"thread_level":0,"type":"process"})");
  expect_bytes(StatsRecord{.rank = 1, .devices = {"CUDA", "HIP"}},
               R"({"abandoned_calls":0,"capture_s":0.0,"devices":["CUDA","HIP"],"elapsed_s":0.0,)"
               R"("events_without_communicator":0,"failed_polls":0,"lost_records":0,"rank":1,"type":"stats",)"
               R"("unread_gap_s":0.0})");
  expect_bytes(ProcessorsRecord{1, 2, 16.5, 4.25, 0.5, 0.125, 1.0},
               R"({"node_index":1,"others_s":4.25,"passed_s":16.5,"processors":2,"softirq_s":0.125,"stolen_s":0.5,)"
               R"("throttled_s":1.0,"type":"processors"})");
  expect_bytes(ProcessEndRecord{0, std::string(kFinalized), 1.5},
               R"({"elapsed_s":1.5,"how":"finalized","rank":0,"type":"process_end"})");
  expect_bytes(TaskExitRecord{1, 7, {}}, R"({"exit_code":7,"rank":1,"type":"task_exit"})");
  expect_bytes(TaskExitRecord{1, {}, 9}, R"({"rank":1,"signal":9,"type":"task_exit"})");
  expect_bytes(StepKilledRecord{"scancel"}, R"({"by":"scancel","type":"step_killed"})");
  expect_bytes(ProcedureRecord{3, 0, "servBusy1", 38.5},
               R"({"call_ns":38.5,"id":0,"name":"servBusy1","rank":3,"type":"procedure"})");
  expect_bytes(ProcedureRecord{3, 7, "a b", 0}, R"({"id":7,"name":"a b","rank":3,"type":"procedure"})");
  expect_bytes(
      ProcedureCandidateRecord{0, 1, 2, 130, 200, {"leaf", "caller"}, 0},
      R"({"names":["leaf","caller"],"number":1,"of":2,"own_samples":200,"rank":0,"samples":130,"type":"procedure_candidate"})");
  expect_bytes(
      ProcedureListRecord{0, {1, {"solve", "pack(int, long)"}, "why"}},
      R"j({"generation":1,"names":["solve","pack(int, long)"],"rank":0,"text":"why","type":"procedure_list"})j");
  expect_bytes(ProcedureSamplesRecord{0, "tiny", 10, 7, 640},
               R"({"exclusive":7,"inclusive":10,"name":"tiny","of":640,"rank":0,"type":"procedure_samples"})");
  expect_bytes(
      ProcedureRemarkRecord{0, std::string(kSwitchedOff), "memcpy", "too often", 2e6},
      R"({"calls_per_s":2000000.0,"kind":"off","name":"memcpy","rank":0,"text":"too often","type":"procedure_remark"})");
  expect_bytes(ProcedureRemarkRecord{0, std::string(kRefused), "x", "", 0},
               R"({"kind":"refused","name":"x","rank":0,"text":"","type":"procedure_remark"})");
  expect_bytes(NoteRecord{"one line", 0}, R"({"text":"one line","type":"note"})");
  expect_bytes(NoteRecord{"stopped", 10.5}, R"({"stopped_s":10.5,"text":"stopped","type":"note"})");
  expect_bytes(RelayRecord{1, 0.01, 2, 3, 4, 5, 6, 7, 8, 9},
               R"({"batches":4,"bytes_sent":3,"cpu_s":0.01,"discarded_events":7,"lost_batches":6,"max_rss_bytes":2,)"
               R"("node_index":1,"processes":8,"processes_left_out":9,"spooled_batches":5,"type":"relay"})");
}

TEST(ControlRecords, CostHasWhatIsSet) {
  CostRecord cost;
  cost.node_index = 2;
  cost.program_cpu_s = 60.0;
  cost.recorded_calls = 1000;
  cost.primitives_ns = PrimitiveTimes{70, 6, 80, 9000};
  expect_bytes(cost,
               R"({"node_index":2,"primitives_ns":{"counted":6.0,"looked":9000.0,"recorded":70.0,"relayed":80.0},)"
               R"("program_cpu_s":60.0,"recorded_calls":1000,"type":"cost"})");
  cost = {};
  cost.limit_percent = 2.0;
  cost.state = "open";
  cost.windows = 1;
  cost.ranks = {{{3, 0.5, 0.25, 10, 20, 30.0}}};
  expect_bytes(cost,
               R"({"limit_percent":2.0,"ranks":[[3,0.5,0.25,10,20,30.0]],"state":"open","type":"cost","windows":1})");
}

TEST(ControlRecords, BytesThatAreNoTextBecomeReplacementCharacters) {
  EXPECT_EQ(encode(NoteRecord{"a\xff", 0}), "{\"text\":\"a\xef\xbf\xbd\",\"type\":\"note\"}");
}

TEST(ControlRecords, NeedATypeAndNoMore) {
  for (const char* text :
       {"", "[]", "1", "\"process\"", "null", "{", "{}", R"({"type":1})", R"({"type":null})", "{\"type\":\"note\"}x"}) {
    const auto record = decode_control(text);
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_EQ(record.error().code, ErrorCode::kInvalidInput);
  }
  const auto later = decoded<UnknownRecord>(R"({"type":"of_tomorrow","rank":3})");
  EXPECT_EQ(later.type, "of_tomorrow");
  EXPECT_EQ(later.rank, 3);
  EXPECT_EQ(rank_of(*decode_control(R"({"type":"of_tomorrow"})")), kNoRank);
  EXPECT_EQ(rank_of(*decode_control(R"({"type":"stats","rank":5})")), 5);
  EXPECT_FALSE(rank_of(*decode_control(R"({"type":"cost","rank":5})")));
}

TEST(ControlRecords, AWrongTypeIsAsIfAbsent) {
  for (const char* wrong : {"null", "true", "{}", "[]", "\"7\""}) {
    const std::string of(wrong);
    const auto process =
        decoded<ProcessRecord>(R"({"type":"process","rank":)" + of + R"(,"world_size":)" + of + R"(,"pid":)" + of +
                               R"(,"node_index":)" + of + R"(,"init_s":)" + of + R"(,"thread_level":)" + of + "}");
    EXPECT_EQ(process.rank, kNoRank);
    EXPECT_FALSE(process.world_size);
    EXPECT_FALSE(process.node_index);
    EXPECT_EQ(process.pid, 0);
    EXPECT_EQ(process.init_s, 0);
    EXPECT_EQ(process.thread_level, 0);
    const auto relay = decoded<RelayRecord>(R"({"type":"relay","cpu_s":)" + of + R"(,"bytes_sent":)" + of + "}");
    EXPECT_EQ(relay.cpu_s, 0);
    EXPECT_EQ(relay.bytes_sent, 0u);
    const auto cost =
        decoded<CostRecord>(R"({"type":"cost","direct_s":)" + of + R"(,"windows":)" + of + R"(,"primitives_ns":)" +
                            (of == "{}" ? "1" : of) + R"(,"ranks":)" + (of == "[]" ? "1" : of) + "}");
    EXPECT_FALSE(cost.direct_s);
    EXPECT_FALSE(cost.windows);
    EXPECT_FALSE(cost.primitives_ns);
    EXPECT_FALSE(cost.ranks);
  }
  EXPECT_EQ(decoded<ProcessRecord>(R"({"type":"process","library":5,"executable":["x"]})").library, "");
  EXPECT_EQ(decoded<ProcessRecord>(R"({"type":"process","rank":1.5})").rank, kNoRank) << "no whole number";
}

TEST(ControlRecords, NumbersKeepWithinTheirBounds) {
  const auto stats = decoded<StatsRecord>(
      R"({"type":"stats","rank":-7,"elapsed_s":-1,"lost_records":-3,"abandoned_calls":18446744073709551615,"unread_gap_s":2})");
  EXPECT_EQ(stats.rank, -7);
  EXPECT_EQ(stats.elapsed_s, 0);
  EXPECT_EQ(stats.lost_records, 0u);
  EXPECT_EQ(stats.abandoned_calls, 0u) << "more than 63 bits";
  EXPECT_EQ(stats.unread_gap_s, 2);
  const auto procedure = decoded<ProcedureRecord>(R"({"type":"procedure","id":18446744073709551615,"call_ns":-5})");
  EXPECT_EQ(procedure.id, ~std::uint64_t{0});
  EXPECT_FALSE(decoded<ProcedureRecord>(R"({"type":"procedure","id":-1})").id);
  const auto cost = decoded<CostRecord>(
      R"({"type":"cost","direct_s":1e300,"ideal_s":-1,"recorded_calls":18446744073709551615,"counted_calls":-1})");
  EXPECT_EQ(cost.direct_s, 1e12);
  EXPECT_EQ(cost.ideal_s, 0);
  EXPECT_EQ(cost.recorded_calls, std::uint64_t{1} << 62);
  EXPECT_FALSE(cost.counted_calls);
}

TEST(ControlRecords, BrokenEntriesOfListsAreLeftOut) {
  const auto stats = decoded<StatsRecord>(
      R"({"type":"stats","calls":[[1,2,3.5],[1,2],[1,-2,3],["a",2,3],[1,2,"b"],{},7,[99999999999,1,-4]]})");
  ASSERT_TRUE(stats.calls);
  ASSERT_EQ(stats.calls->size(), 2u);
  EXPECT_EQ((*stats.calls)[0].total_s, 3.5);
  EXPECT_EQ((*stats.calls)[1].function, 99999999999u) << "the reader knows which functions there are";
  EXPECT_EQ((*stats.calls)[1].total_s, 0);
  const auto cost = decoded<CostRecord>(
      R"({"type":"cost","ranks":[[0,1,2,3,4,5],[1,1,2,3,4],[2,-1,2,3,4,5],[3,1,2,3.5,4,5],[-1,1,2,3,4,5],["x",1,2,3,4,5],7]})");
  ASSERT_TRUE(cost.ranks);
  ASSERT_EQ(cost.ranks->size(), 1u);
  EXPECT_EQ(cost.ranks->front().program_cpu_s, 5);
  EXPECT_THAT(decoded<ProcedureListRecord>(R"({"type":"procedure_list","names":["a",1,null,"b"]})").list.names,
              ElementsAre("a", "b"));
  EXPECT_THAT(decoded<ProcedureListRecord>(R"({"type":"procedure_list","names":"a"})").list.names, IsEmpty());
  nlohmann::json many{{"type", "procedure_candidate"}, {"names", std::vector<std::string>(kMaxRecordNames + 9, "f")}};
  EXPECT_EQ(decoded<ProcedureCandidateRecord>(many.dump()).names.size(), kMaxRecordNames);
}

}  // namespace
}  // namespace lbf::control_records_test
