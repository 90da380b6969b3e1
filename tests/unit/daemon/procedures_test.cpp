// Procedures of a step: names from its ranks, procedure LBF in both directions, zeroing and the critical path while it
// runs, and what is said where there is no room or no measuring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "event/wire.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/sampled_times.h"
#include "predictor/daemon/steps/step_procedures.h"
#include "predictor/daemon/steps/step_run.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/intake/batches.h"

namespace lbf::procedures_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Two ranks on two nodes, messages without time. Rank 0 computes 4 s, 3 of them in F, and sends; rank 1 computes 0.5 s,
// receives, computes 2 s, all in G, 0.5 of them in H inside it, and sends back; rank 0 receives.
//   as it ran: 4 + 2 = 6. F to the receiver: rank 0 sends at 1, rank 1 does F until 3.5, 2 more: 5.5.
//   F to the sender: nothing was received before it: it stays.
//   F zeroed: max(1, 0.5) + 2 = 3.
//   G to the receiver: rank 1 sends at 4; rank 0 has done G's 2 s before it receives, since 4: 6.
//   G to the sender: rank 0 does G before its send: 6, rank 1 sends at once: 6. Zeroed: 4.
// The numbers of the procedures differ from rank to rank.
class ProceduresTest : public testing::Test {
 protected:
  ProceduresTest() {
    std::ofstream(directory_.path() + "/zero.toml")
        << "name = \"zero-like\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0]]\n";
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    networks_ = std::make_unique<daemon::NetworkCatalog>(std::move(catalog).value());
  }

  static protocol::StepDescription description(std::uint32_t node) {
    const json text = {{"job", 7},   {"step", 0},          {"node_index", node}, {"nodes", {"n0", "n1"}},
                       {"tasks", 2}, {"task_ids", {node}}, {"cpus_on_node", 1}};
    return protocol::decode_step_description(text.dump()).value();
  }
  std::shared_ptr<daemon::StepTrace> make_trace(const std::string& name) {
    auto trace =
        std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/" + name, description(0), 1)).value();
    for (const std::uint32_t node : {0U, 1U}) EXPECT_TRUE(trace->register_stream(description(node)).ok());
    return trace;
  }

  // One rank's stream.
  class Rank_ {
   public:
    explicit Rank_(Rank rank) : rank_(rank) {
      control(
          {{"type", "process"}, {"rank", rank}, {"world_size", 2}, {"pid", 10 + rank}, {"library", "Open MPI v4.1.4"}});
    }
    void control(const json& record) { encoder_.add_control(record.dump()); }
    void name(std::uint32_t id, const std::string& name) {
      control({{"type", "procedure"}, {"rank", rank_}, {"id", id}, {"name", name}});
    }
    void remark(const std::string& kind, const std::string& name, const std::string& text) {
      control({{"type", "procedure_remark"}, {"rank", rank_}, {"kind", kind}, {"name", name}, {"text", text}});
    }
    void procedure(double process_s, std::uint64_t id, double inclusive_s, double exclusive_s, std::uint64_t calls) {
      Event event;
      event.kind = EventKind::kProcedure;
      event.process_s = process_s;
      const std::vector<std::uint64_t> values{id, static_cast<std::uint64_t>(inclusive_s * 1e9),
                                              static_cast<std::uint64_t>(exclusive_s * 1e9), calls};
      event.values = values;
      encoder_.add(rank_, event);
    }
    void event(EventKind kind, double process_s) {
      Event event;
      event.kind = kind;
      event.process_s = process_s;
      event.peer = kind == EventKind::kExit ? kAnyRank : 1 - rank_;
      event.tag = 1;
      encoder_.add(rank_, event);
    }
    // Only counted for so long, then recorded again.
    void counted(double away_s) {
      Event close;
      close.kind = EventKind::kWindowClose;
      encoder_.add(rank_, close);
      Event open;
      open.kind = EventKind::kWindowOpen;
      open.bytes = 2;
      open.call_s = away_s;
      encoder_.add(rank_, open);
    }
    void ends() {
      event(EventKind::kExit, 0);
      control({{"type", "process_end"}, {"rank", rank_}, {"how", "finalized"}, {"elapsed_s", 6.0}});
    }
    void append_to(daemon::StepTrace& trace) {
      const auto stream = static_cast<std::uint32_t>(rank_);
      const std::string batch = encoder_.finish(stream, ++sequence_);
      EXPECT_TRUE(trace.append(stream, sequence_, test::bytes_of(batch)).ok());
    }
    void end(daemon::StepTrace& trace) {
      EXPECT_TRUE(trace.end_stream(static_cast<std::uint32_t>(rank_), {sequence_, 0, "step_end"}).ok());
    }

   private:
    Rank rank_;
    BatchEncoder encoder_;
    std::uint64_t sequence_ = 0;
  };

  static void first_half(Rank_& zero, Rank_& one, bool names) {
    if (names) {
      zero.name(3, "F");
      one.name(0, "G");
      one.name(1, "H");
      one.name(2, "F");
    }
    zero.procedure(4.0, 3, 3.0, 3.0, 5);
    zero.event(EventKind::kSend, 0);
    one.event(EventKind::kRecv, 0.5);
  }
  static void second_half(Rank_& zero, Rank_& one) {
    one.procedure(2.0, 0, 2.0, 1.5, 1);
    one.procedure(0, 1, 0.5, 0.5, 2);
    one.event(EventKind::kSend, 0);
    zero.event(EventKind::kRecv, 0);
    zero.ends();
    one.ends();
  }
  static daemon::StepRun::Progress drain(daemon::StepRun& run) {
    daemon::StepRun::Progress progress = daemon::StepRun::Progress::kMore;
    while (progress == daemon::StepRun::Progress::kMore) progress = run.work();
    return progress;
  }
  static const db::ProcedureRecord& named(const daemon::StepView& view, const std::string& name) {
    static const db::ProcedureRecord none;
    EXPECT_TRUE(view.record.procedures.has_value());
    if (!view.record.procedures) return none;
    for (const db::ProcedureRecord& record : view.record.procedures->procedures) {
      if (record.name == name) return record;
    }
    ADD_FAILURE() << "no procedure " << name;
    return none;
  }
  static void expect_predicted(const daemon::StepView& view) {
    ASSERT_TRUE(view.record.procedures && view.record.procedures->path);
    const db::CriticalPathRecord& path = *view.record.procedures->path;
    EXPECT_NEAR(path.as_it_ran_s, 6, 1e-6);
    EXPECT_NEAR(path.length_s, 6, 1e-6);
    EXPECT_NEAR(path.other_work_s, 1, 1e-6);
    EXPECT_FALSE(path.partial);
    const db::ProcedureRecord& f = named(view, "F");
    EXPECT_EQ(f.calls, 5u);
    EXPECT_EQ(f.ranks, 2u);
    EXPECT_NEAR(f.inclusive_s, 3, 1e-9);
    EXPECT_NEAR(f.critical_path_s.value_or(-1), 3, 1e-6);
    EXPECT_NEAR(f.receiver_s.value_or(-1), 5.5, 1e-6);
    EXPECT_NEAR(f.sender_s.value_or(-1), 6, 1e-6);
    EXPECT_NEAR(f.stayed_sender_s.value_or(-1), 3, 1e-6);
    EXPECT_NEAR(f.stayed_receiver_s.value_or(-1), 0, 1e-6);
    EXPECT_NEAR(f.zeroed_s.value_or(-1), 3, 1e-6);
    const db::ProcedureRecord& g = named(view, "G");
    EXPECT_NEAR(g.exclusive_s, 1.5, 1e-9);
    EXPECT_NEAR(g.critical_path_s.value_or(-1), 1.5, 1e-6);
    EXPECT_NEAR(g.receiver_s.value_or(-1), 6, 1e-6);
    EXPECT_NEAR(g.sender_s.value_or(-1), 6, 1e-6);
    EXPECT_NEAR(g.zeroed_s.value_or(-1), 4, 1e-6);
    EXPECT_NEAR(named(view, "H").zeroed_s.value_or(-1), 5.5, 1e-6);
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<daemon::NetworkCatalog> networks_;
};

TEST_F(ProceduresTest, ArePredictedWhileTheStepRunsAndAtItsEnd) {
  auto trace = make_trace("whole");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  first_half(zero, one, true);
  zero.append_to(*trace);
  one.append_to(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  {
    const auto view = run.view();
    ASSERT_TRUE(view->record.procedures && view->record.procedures->path);
    EXPECT_TRUE(view->record.procedures->path->partial);
    EXPECT_NEAR(view->record.procedures->path->as_it_ran_s, 4, 1e-6);
    EXPECT_NEAR(named(*view, "F").zeroed_s.value_or(-1), 1, 1e-6);
  }
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  EXPECT_EQ(view->record.state, db::StepState::kComplete) << view->record.why_partial;
  expect_predicted(*view);
  EXPECT_EQ(view->record.procedures->why_deferred, "");
  EXPECT_EQ(view->record.procedures->procedures.front().name, "F") << "most exclusive time first";

  const json full = daemon::step_json(*view, daemon::StepDetail::kFull)["procedures"];
  EXPECT_NEAR(full["procedures"][0]["receiver_s"].get<double>(), 5.5, 1e-6);
  EXPECT_NEAR(full["critical_path"]["length_s"].get<double>(), 6, 1e-6);
  EXPECT_EQ(full["critical_path"]["partial"], false);
  EXPECT_FALSE(daemon::step_json(*view, daemon::StepDetail::kBrief).contains("procedures"));
  EXPECT_FALSE(daemon::step_json(*view, daemon::StepDetail::kSummary).contains("procedures"));
}

TEST_F(ProceduresTest, NamesThatComeLateBeginAnotherReplay) {  // --lbf-procedures=auto
  auto trace = make_trace("late");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  zero.name(3, "F");
  first_half(zero, one, false);
  zero.append_to(*trace);
  one.append_to(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  EXPECT_NEAR(named(*run.view(), "F").receiver_s.value_or(-1), 3.5, 1e-6);
  one.name(0, "G");
  one.name(1, "H");
  one.name(2, "F");
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  expect_predicted(*run.view());
}

TEST_F(ProceduresTest, WithoutRoomTheyAreDeferredAndTakenUpFromTheStoredTrace) {
  auto trace = make_trace("dear");
  daemon::StepRunOptions options;
  options.budget.cpu_percent = 1;
  options.budget.free_cpu_s = 0;
  double now_s = 0;
  options.cpu_clock = [&now_s] { return now_s += 1000; };
  daemon::StepRun run(trace, *networks_, options);
  Rank_ zero(0), one(1);
  first_half(zero, one, true);
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  EXPECT_EQ(view->record.state, db::StepState::kComplete);
  EXPECT_THAT(view->record.procedures->why_deferred, HasSubstr("step_cpu_percent"));
  EXPECT_THAT(view->record.notes, testing::Contains(testing::StartsWith("procedures are deferred: ")));
  EXPECT_EQ(named(*view, "F").calls, 5u) << "what was measured is known all the same";
  EXPECT_FALSE(named(*view, "F").receiver_s);
  EXPECT_TRUE(
      daemon::step_json(*view, daemon::StepDetail::kFull)["procedures"]["procedures"][0]["receiver_s"].is_null());
  daemon::StepRun again(trace, *networks_, {});
  EXPECT_EQ(drain(again), daemon::StepRun::Progress::kFinished);
  expect_predicted(*again.view());
}

TEST_F(ProceduresTest, WhatIsNotMeasuredSaysWhy) {
  auto trace = make_trace("remarks");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  for (Rank_* const rank : {&zero, &one}) {
    rank->remark("refused", "memcpy", "'memcpy' cannot be measured");
    rank->remark("note", "F", "'F' is also inlined at 2 places");
  }
  one.remark("off", "G", "it is called too often");
  one.remark("nonsense", "X", "is ignored");
  first_half(zero, one, true);
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  const db::ProcedureRecord& refused = named(*view, "memcpy");
  EXPECT_EQ(refused.state, "refused");
  EXPECT_EQ(refused.note, "'memcpy' cannot be measured");
  EXPECT_FALSE(refused.receiver_s);
  EXPECT_EQ(named(*view, "G").state, "off");
  EXPECT_THAT(named(*view, "G").note,
              testing::StartsWith("1 rank: it is called too often; what moving it would gain is not"));
  EXPECT_NEAR(named(*view, "G").exclusive_s, 1.5, 1e-9) << "what was measured of it is known";
  for (const auto& predicted : {named(*view, "G").receiver_s, named(*view, "G").sender_s, named(*view, "G").zeroed_s,
                                named(*view, "G").critical_path_s, named(*view, "G").stayed_receiver_s}) {
    EXPECT_FALSE(predicted) << "its times end where it was switched off, here or in any other rank";
  }
  EXPECT_TRUE(named(*view, "F").receiver_s && named(*view, "H").receiver_s) << "the others go on";
  EXPECT_THAT(view->record.notes, testing::Contains("procedures: 'F' is also inlined at 2 places"));
  EXPECT_EQ(view->record.procedures->procedures.size(), 4u);
}

TEST_F(ProceduresTest, AStepWithoutProceduresSaysNothingOfThem) {
  auto trace = make_trace("none");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  zero.event(EventKind::kSend, 1);
  one.event(EventKind::kRecv, 1);
  for (Rank_* const rank : {&zero, &one}) {
    rank->ends();
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  EXPECT_FALSE(run.view()->record.procedures);
  EXPECT_TRUE(daemon::step_json(*run.view(), daemon::StepDetail::kFull)["procedures"].is_null());
}

// --lbf-procedures=auto: two ranks that would measure other procedures get one list; what is not on it any more is not
// predicted.
TEST_F(ProceduresTest, TwoRanksWithOtherHotProceduresEndOnOneList) {
  auto trace = make_trace("auto");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  const auto candidate = [](Rank_& rank, std::int32_t number, const json& names, std::uint64_t samples) {
    rank.control({{"type", "procedure_candidate"},
                  {"rank", number},
                  {"number", 0},
                  {"of", 1},
                  {"samples", samples},
                  {"own_samples", 100},
                  {"names", names},
                  {"call_ns", 38.5}});
  };
  first_half(zero, one, false);
  candidate(zero, 0, {"F", "caller_of_F"}, 80);
  zero.append_to(*trace);
  one.append_to(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  EXPECT_EQ(run.procedure_list(), nullptr) << "rank 1 has said nothing yet";
  candidate(one, 1, {"G"}, 90);
  one.append_to(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  auto list = run.procedure_list();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->generation, 1u);
  // So far the path runs through rank 0 only: 4 s, of which its samples say 80 % F.
  EXPECT_THAT(list->names, testing::ElementsAre("F"));
  EXPECT_THAT(list->text, HasSubstr("F 80.0 %"));
  const auto given = [&](Rank_& rank, std::int32_t number, const protocol::ProcedureList& what) {
    rank.control({{"type", "procedure_list"},
                  {"rank", number},
                  {"generation", what.generation},
                  {"names", what.names},
                  {"text", what.text}});
  };
  given(zero, 0, *list);
  given(one, 1, *list);
  zero.name(0, "F");
  zero.remark("off", "F", "it is called too often");
  zero.append_to(*trace);
  one.append_to(*trace);
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kIdle);
  list = run.procedure_list();
  EXPECT_EQ(list->generation, 2u);
  EXPECT_THAT(list->names, testing::ElementsAre("caller_of_F"));
  given(zero, 0, *list);
  zero.name(1, "caller_of_F");
  one.name(0, "caller_of_F");
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const auto view = run.view();
  EXPECT_EQ(named(*view, "F").state, "off");
  EXPECT_FALSE(named(*view, "F").receiver_s);
  EXPECT_EQ(named(*view, "caller_of_F").state, "measured");
  EXPECT_TRUE(named(*view, "caller_of_F").receiver_s);
  EXPECT_THAT(view->record.notes, testing::Contains(HasSubstr("auto: list 1 of all ranks")));
  EXPECT_THAT(view->record.notes, testing::Contains(HasSubstr("auto: list 2 of all ranks")));
  // Samples do not say how often it is called: half of the default limit at most.
  EXPECT_EQ(named(*view, "caller_of_F").predicted_from, "limit");
  EXPECT_EQ(named(*view, "caller_of_F").predicted_cost, 0.01);

  // Replayed anew from the stored batches, as after a crash: the same lists, and no further one.
  daemon::StepRun again(trace, *networks_, {});
  EXPECT_EQ(drain(again), daemon::StepRun::Progress::kFinished);
  EXPECT_EQ(again.procedure_list(), nullptr);
  EXPECT_EQ(named(*again.view(), "F").state, "off");
  EXPECT_EQ(named(*again.view(), "F").predicted_from, "limit");
  EXPECT_EQ(again.view()->record.notes, view->record.notes);
}

// What could not be patched: its time by samples, 75 % of rank 0's 4 s; what moving it would gain from these.
TEST_F(ProceduresTest, SamplesStandInForWhatIsNotMeasured) {
  auto trace = make_trace("sampled");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  for (Rank_* const rank : {&zero, &one})
    rank->remark("refused", "F", "'F' cannot be measured: it is shorter than 5 bytes");
  const auto samples = [](Rank_& rank, std::int32_t number, std::uint64_t inclusive, std::uint64_t of) {
    rank.control({{"type", "procedure_samples"},
                  {"rank", number},
                  {"name", "F"},
                  {"inclusive", inclusive},
                  {"exclusive", inclusive},
                  {"of", of}});
  };
  samples(zero, 0, 20, 64);
  zero.event(EventKind::kCompute, 1.0);
  zero.event(EventKind::kSend, 3.0);
  one.event(EventKind::kRecv, 0.5);
  one.event(EventKind::kSend, 2.0);
  zero.event(EventKind::kRecv, 0);
  samples(zero, 0, 750, 1000);
  samples(one, 1, 0, 625);
  zero.ends();
  one.ends();
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const db::ProcedureRecord& f = named(*run.view(), "F");
  EXPECT_EQ(f.state, "refused");
  EXPECT_EQ(f.samples, 750u);
  EXPECT_NEAR(f.sampled_s.value_or(-1), 3, 1e-9);
  // 1.96 * 4 s * sqrt(.75 * .25 / 1004)
  EXPECT_NEAR(f.sampled_low_s.value_or(-1), 2.89, 0.01);
  EXPECT_NEAR(f.sampled_high_s.value_or(-1), 3.11, 0.02);
  EXPECT_THAT(f.note, HasSubstr("sampled: 3 s (2.8"));
  // As with its measured time above: rank 0 sends at 1, rank 1 does F until 3.5, 2 more.
  EXPECT_NEAR(f.receiver_s.value_or(-1), 5.5, 1e-6);
  EXPECT_NEAR(f.zeroed_s.value_or(-1), 3, 1e-6);
  EXPECT_NEAR(f.critical_path_s.value_or(-1), 3, 1e-6);
}

TEST_F(ProceduresTest, TooFewSamplesAreRefused) {
  for (const auto& [name, inclusive, of, why] :
       std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t, std::string>>{
           {"few", 3, 1000, "too few samples"},
           {"part", 300, 400, "was sampled in 40 % of its time"},
           {"none", 0, 1000, "no sample was in it"}}) {
    auto trace = make_trace(name);
    daemon::StepRun run(trace, *networks_, {});
    Rank_ zero(0), one(1);
    zero.name(0, "F");
    if (name == "part") {  // switched off after 2.4 of 4 s
      zero.event(EventKind::kCompute, 2.4);
      zero.append_to(*trace);
      one.append_to(*trace);
      drain(run);
    }
    zero.remark("off", "F", "it is called too often");
    zero.procedure(0.001, 0, 0.001, 0.001, 4096);
    zero.event(EventKind::kSend, name == "part" ? 1.599 : 3.999);
    one.event(EventKind::kRecv, 0.5);
    zero.control({{"type", "procedure_samples"},
                  {"rank", 0},
                  {"name", "F"},
                  {"inclusive", inclusive},
                  {"exclusive", 0},
                  {"of", of}});
    for (Rank_* const rank : {&zero, &one}) {
      rank->ends();
      rank->append_to(*trace);
      rank->end(*trace);
    }
    EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
    const db::ProcedureRecord& f = named(*run.view(), "F");
    EXPECT_EQ(f.state, "off");
    EXPECT_FALSE(f.receiver_s) << name;
    EXPECT_THAT(f.note, HasSubstr(why));
  }
}

TEST_F(ProceduresTest, CostsArePredictedFromHistoryAndObserved) {
  auto trace = make_trace("cost");
  daemon::StepRunOptions options;
  options.procedure_history = {{"F", 2e6}};
  daemon::StepRun run(trace, *networks_, options);
  Rank_ zero(0), one(1);
  zero.control({{"type", "procedure"}, {"rank", 0}, {"id", 3}, {"name", "F"}, {"call_ns", 50.0}});
  one.name(0, "G");
  one.name(1, "H");
  one.control({{"type", "procedure_remark"},
               {"rank", 1},
               {"kind", "off"},
               {"name", "H"},
               {"text", "too often"},
               {"calls_per_s", 6e6}});
  first_half(zero, one, false);
  second_half(zero, one);
  for (Rank_* const rank : {&zero, &one}) {
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  EXPECT_NEAR(named(*run.view(), "H").observed_cost.value_or(-1), 6e6 * 50e-9, 1e-12)
      << "as often as it was called when it was switched off";
  const db::ProcedureRecord& f = named(*run.view(), "F");
  EXPECT_EQ(f.predicted_from, "history");
  EXPECT_NEAR(f.predicted_cost.value_or(-1), 2e6 * 50e-9, 1e-12);
  EXPECT_NEAR(f.calls_per_s.value_or(-1), 5 / 4.0, 1e-9) << "5 calls in rank 0's 4 s";
  EXPECT_NEAR(f.observed_cost.value_or(-1), 5 / 4.0 * 50e-9, 1e-15);
  const db::ProcedureRecord& g = named(*run.view(), "G");
  EXPECT_EQ(g.predicted_from, "default");
  EXPECT_NEAR(g.predicted_cost.value_or(-1), daemon::kDefaultProcedureCallsPerS * 50e-9, 1e-12)
      << "what a call costs, any rank says";
}

// 2 s of each rank's 8 were recorded, a quarter of that was the recording itself. What is predicted is of the whole
// run, without it, as every other prediction of the step is; times and the path are of what was recorded.
TEST_F(ProceduresTest, OfARunThatWasCapturedInPartTheRestIsNobodys) {
  auto trace = make_trace("windows");
  daemon::StepRun run(trace, *networks_, {});
  Rank_ zero(0), one(1);
  for (Rank_* const rank : {&zero, &one}) {
    rank->name(0, "F");
    rank->procedure(1.0, 0, 0.5, 0.5, 1);
    rank->counted(6);
    rank->procedure(1.0, 0, 0.5, 0.5, 1);
    rank->ends();
    if (rank == &zero) {
      zero.control({{"type", "cost"},
                    {"node_index", 0},
                    {"limit_percent", 2.0},
                    {"predicted_percent", 0.5},
                    {"corrected_percent", 4},
                    {"state", "open"},
                    {"program_cpu_s", 16.0},
                    {"direct_s", 1.0},
                    {"ideal_s", 1.0},
                    {"relay_cpu_s", 0.0},
                    {"recorded_calls", 1000},
                    {"counted_calls", 3000},
                    {"disbelieved", 0},
                    {"windows", 2},
                    {"open_s", 2.0},
                    {"regulated_s", 8.0},
                    {"pressed_s", 0.0},
                    {"recording_s", 1.0},
                    {"ranks", {{0, 0.5, 0.5, 500, 1500, 8.0}, {1, 0.5, 0.5, 500, 1500, 8.0}}}});
    }
    rank->append_to(*trace);
    rank->end(*trace);
  }
  EXPECT_EQ(drain(run), daemon::StepRun::Progress::kFinished);
  const daemon::StepView& view = *run.view();
  ASSERT_TRUE(view.record.procedures && view.record.procedures->path);
  const db::CriticalPathRecord& path = *view.record.procedures->path;
  ASSERT_FALSE(view.predictions.empty());
  EXPECT_NEAR(path.as_it_ran_s, 8, 1e-6);
  EXPECT_NEAR(path.length_s, 8, 1e-6);
  EXPECT_NEAR(path.unseen_s, 6, 1e-6);
  EXPECT_NEAR(path.mpi_s, 0, 1e-6);
  EXPECT_NEAR(path.other_work_s, 1, 1e-6);
  const db::ProcedureRecord& f = named(view, "F");
  EXPECT_NEAR(f.inclusive_s, 2, 1e-9) << "of both ranks, where it was recorded";
  EXPECT_NEAR(f.critical_path_s.value_or(-1), 1, 1e-6);
  EXPECT_NEAR(f.zeroed_s.value_or(9), 1 + 6 * 0.25 / 0.75, 1e-6)
      << "of 1 s the program took 0.75 s, 0.25 s of it not in F";
}

// What is known of a procedure's cost: observed, when it was measured for half a second on each rank; before that what
// earlier runs say; else nothing.
TEST(StepProcedures, CostsAreKnownFromHistoryThenObserved) {
  daemon::StepProcedures procedures;
  procedures.expect({{"F", 2e6}});
  EXPECT_EQ(procedures.known_cost("G"), std::nullopt);
  for (const Rank rank : {0, 1}) ASSERT_TRUE(procedures.define(rank, 0, "F", 50).ok());
  EXPECT_NEAR(procedures.known_cost("F").value_or(-1), 2e6 * 50e-9, 1e-12);
  const auto run = [&](Rank rank, Seconds process_s, std::uint64_t calls) {
    const std::vector<std::uint64_t> values{0, 1, 1, calls};
    Event event;
    event.kind = EventKind::kProcedure;
    event.process_s = process_s;
    event.values = values;
    procedures.take_events(rank, {&event, 1});
  };
  run(0, 0.6, 600'000);
  EXPECT_NEAR(procedures.known_cost("F").value_or(-1), 2e6 * 50e-9, 1e-12) << "too short, for two ranks";
  run(1, 0.4, 0);
  EXPECT_NEAR(procedures.known_cost("F").value_or(-1), 600'000 * 50e-9, 1e-12);
  ASSERT_TRUE(procedures.define(0, 1, "G").ok());
  EXPECT_EQ(procedures.known_cost("G"), std::nullopt);
}

// Sampled and measured together: no time is two procedures' own, and a procedure's own share is in its whole one.
TEST(SampledTimes, GiveNoMoreThanTheIntervalHas) {
  using Shares = std::map<Rank, std::vector<daemon::SampledShare>>;
  daemon::SampledTimes times(Shares{{3, {{1, 0.9, 0.9}, {2, 0.5, 0.25}}}});
  const auto event = [](EventKind kind, Seconds process_s, std::span<const std::uint64_t> values = {}) {
    Event out;
    out.kind = kind;
    out.process_s = process_s;
    out.values = values;
    return out;
  };
  const std::vector<std::uint64_t> measured{0, 1'000'000'000, 1'000'000'000, 7};
  const std::vector<std::uint64_t> also_sampled{1, 500'000'000, 500'000'000, 9};
  const std::vector<Event> events{event(EventKind::kProcedure, 1, measured),
                                  event(EventKind::kProcedure, 1, also_sampled), event(EventKind::kSend, 2),
                                  event(EventKind::kSend, 0), event(EventKind::kSend, 1)};
  EXPECT_EQ(times.put_into(2, events).data(), events.data()) << "a rank without samples";
  const std::span<const Event> out = times.put_into(3, events);
  ASSERT_EQ(out.size(), 9u);
  const auto values = [&](std::size_t i) {
    return std::vector<std::uint64_t>(out[i].values.begin(), out[i].values.end());
  };
  const auto expect_times = [&](std::size_t i, std::uint64_t procedure, double inclusive_s, double exclusive_s) {
    ASSERT_EQ(out[i].values.size(), kProcedureValues);
    EXPECT_EQ(out[i].values[0], procedure);
    EXPECT_NEAR(static_cast<double>(out[i].values[1]), inclusive_s * 1e9, 1);
    EXPECT_NEAR(static_cast<double>(out[i].values[2]), exclusive_s * 1e9, 1);
    EXPECT_EQ(out[i].values[3], 0u);
  };
  EXPECT_EQ(values(0), measured);
  EXPECT_EQ(values(1), (std::vector<std::uint64_t>{1, 0, 0, 9})) << "its calls, no time: that is the samples'";
  EXPECT_EQ(out[1].process_s, 1);
  // The interval has 4 s, of which 1 is the measured one's: 0.9 * 4, but only 3 are left; then nothing is.
  expect_times(2, 1, 3.6, 3);
  expect_times(3, 2, 2, 0);
  EXPECT_EQ(out[4].kind, EventKind::kSend);
  EXPECT_EQ(out[5].kind, EventKind::kSend) << "an interval without process time has none to give";
  // The next interval begins anew.
  expect_times(6, 1, 0.9, 0.9);
  expect_times(7, 2, 0.5, 0.1);
  EXPECT_EQ(out[8].process_s, 1);
}

TEST(StepProcedures, TheForemostHaveMostTime) {
  daemon::StepProcedures procedures;
  for (std::uint64_t id = 0; id < 5; ++id) ASSERT_TRUE(procedures.define(0, id, "p" + std::to_string(id)).ok());
  EXPECT_FALSE(procedures.define(0, 1, "another").ok());
  const auto spend = [&](std::uint64_t id, std::uint64_t ns) {
    const std::vector<std::uint64_t> values{id, ns, ns, 1};
    Event event;
    event.kind = EventKind::kProcedure;
    event.values = values;
    procedures.take_events(0, {&event, 1});
  };
  EXPECT_EQ(procedures.foremost(2), (std::vector<std::uint32_t>{0, 1}));
  spend(4, 10);
  spend(2, 20);
  spend(9, 100);  // nobody named it
  EXPECT_EQ(procedures.foremost(2), (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ(procedures.records().front().name, "p2");
}

}  // namespace
}  // namespace lbf::procedures_test