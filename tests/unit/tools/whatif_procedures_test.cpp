// lbf-whatif and procedures: what is asked and answered, from text traces and stored ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "event/wire.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::whatif_procedures_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Rank 1: 2 s, servBusy1 for 3 s, 1 s, then the message; rank 0 is ready after 2 s and works 1 s more.
constexpr const char* kTrace =
    "lbf-trace 1\nranks 2\n"
    "1 enter 2 proc=servBusy1\n1 leave 3 proc=servBusy1\n1 enter 0 proc=servBusy2\n1 leave 0 proc=servBusy2\n"
    "1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n"
    "0 startRecv 2 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 exit 1\n";

class WhatIfProcedures : public testing::Test {
 protected:
  test::Outcome run(const std::string& arguments) { return test::run_command(LBF_WHATIF " " + arguments); }
  nlohmann::json ask(const std::string& arguments) {
    const test::Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static double lbf(const nlohmann::json& answer, const std::string& kind, const std::string& what, int percent = 100) {
    for (const nlohmann::json& scenario : answer["scenarios"]) {
      if (scenario["kind"] == kind && scenario["what"] == what && scenario["percent"] == percent) {
        return scenario["lbf_s"];
      }
    }
    ADD_FAILURE() << "no " << kind << " of " << what;
    return -1;
  }
  test::TemporaryDirectory directory_;
  std::string dir_ = directory_.path();
};

TEST_F(WhatIfProcedures, LbfZeroingAndPath) {
  const nlohmann::json answer = ask(write("t.lbf", kTrace) + " --procedures 'serv*'");
  EXPECT_EQ(answer["predictions"].size(), 1u);
  EXPECT_EQ(answer["predictions"][0]["lbf_s"], 7);
  EXPECT_EQ(lbf(answer, "procedure_lbf", "servBusy1"), 6);
  EXPECT_EQ(lbf(answer, "critical_path_zeroing", "servBusy1"), 4);
  EXPECT_EQ(lbf(answer, "procedure_lbf", "servBusy2"), 7);
  EXPECT_EQ(answer["procedures"][0]["name"], "servBusy1");
  EXPECT_EQ(answer["procedures"][0]["calls"], 1);
  EXPECT_EQ(answer["procedures"][0]["critical_path_s"], 3);
  EXPECT_EQ(answer["critical_path"]["length_s"], 7);
}

TEST_F(WhatIfProcedures, MoveFasterShareAndCurve) {
  const std::string trace = write("t.lbf", kTrace);
  nlohmann::json answer = ask(trace + " --move servBusy1 --share 0.5");
  EXPECT_EQ(lbf(answer, "asked", "servBusy1 moved to the receiver by 50 %"), 5.5);
  answer = ask(trace + " --move servBusy1 --to rank:1");
  EXPECT_EQ(lbf(answer, "asked", "servBusy1 moved to rank 1"), 7);
  answer = ask(trace + " --faster servBusy1=50 --curve --procedures servBusy1");
  EXPECT_EQ(lbf(answer, "asked", "servBusy1 faster by 50 %"), 5.5);
  EXPECT_EQ(lbf(answer, "curve_faster", "servBusy1", 50), 5.5);
  EXPECT_EQ(lbf(answer, "curve_moved", "servBusy1", 100), 6);
  EXPECT_EQ(lbf(answer, "curve_asked", "servBusy1 faster by 50 %", 100), 5.5);
  const test::Outcome table = run(trace + " --procedures servBusy1 --curve --nodes 1,2 --placement block");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("14.3%"));  // 1 - 6 / 7 on two nodes
  EXPECT_THAT(table.out, HasSubstr("servBusy1:moved"));
}

// What rank 0 does with rank 1's message, done by rank 1 before it sends: 1 + 4, and 1 more (golden, ToTheSender).
TEST_F(WhatIfProcedures, ToTheSenderAndWhatStays) {
  const std::string trace =
      write("t.lbf",
            "lbf-trace 1\nranks 2\n1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n0 startRecv 3 from=1 tag=0\n"
            "0 endRecv 0 from=1 tag=0 bytes=0\n0 enter 0 proc=F\n0 leave 4 proc=F\n0 exit 1\n");
  nlohmann::json answer = ask(trace + " --move F --to sender");
  EXPECT_EQ(answer["predictions"][0]["lbf_s"], 8);
  EXPECT_EQ(lbf(answer, "asked", "F moved to the sender"), 6);
  EXPECT_EQ(answer["scenarios"][0]["moved_s"], 4);
  EXPECT_EQ(answer["scenarios"][0]["stayed_s"], 0);
  answer = ask(trace + " --move F --to receiver");
  EXPECT_EQ(lbf(answer, "asked", "F moved to the receiver"), 8);
  EXPECT_EQ(answer["scenarios"][0]["stayed_s"], 4);
  EXPECT_THAT(run(trace + " --move F --to receiver").out, HasSubstr("4.000000 s of it stayed"));
  EXPECT_EQ(lbf(ask(trace + " --move F --to rank:1"), "asked", "F moved to rank 1"), 6);
  EXPECT_THAT(run(trace + " --move F --to sender --html -").out,
              HasSubstr("F moved to the sender: 6 s, 25.0 % shorter."));
}

TEST_F(WhatIfProcedures, ThePageHasTablesAndCurves) {
  const std::string trace = write("t<b>.lbf", kTrace);
  const std::string page = dir_ + "/page.html";
  test::Outcome outcome =
      run("'" + trace + "' --procedures servBusy1 --move servBusy1 --to rank:0 --share 0.5 --curve --html " + page);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::ifstream in(page);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(text, HasSubstr("t&lt;b&gt;.lbf"));
  EXPECT_THAT(text, HasSubstr("<td class=\"text\">servBusy1</td><td>6</td><td>14.3 %</td><td>4</td><td>42.9 %</td>"));
  EXPECT_THAT(text, HasSubstr("servBusy1 moved to rank 0 by 50 %: 5.5 s, 21.4 % shorter."));
  EXPECT_THAT(text, HasSubstr("<td>50 %</td>"));
  // Three curves: moved, faster, what was asked; and no other file is needed.
  std::size_t curves = 0;
  for (std::size_t at = text.find("<polyline"); at != std::string::npos; at = text.find("<polyline", at + 1)) ++curves;
  EXPECT_EQ(curves, 3u);
  EXPECT_THAT(text, testing::Not(HasSubstr("http")));
  outcome = run("'" + trace + "' --nodes 1 --html -");
  EXPECT_THAT(outcome.out, HasSubstr("Predicted run time"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("critical path")));
  EXPECT_EQ(run("'" + trace + "' --nodes 1 --html /no/such/folder/page").status, 1);
  EXPECT_EQ(run("'" + trace + "' --nodes 1 --json --html -").status, 2);
}

TEST_F(WhatIfProcedures, UnknownNamesAndWrongOptions) {
  const std::string trace = write("t.lbf", kTrace);
  test::Outcome outcome = run(trace + " --procedures servbusi1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no procedure 'servbusi1' in the trace; near: servBusy1"));
  outcome = run(trace + " --move servBusy1 --to nowhere");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--to nowhere"));
  EXPECT_EQ(run(trace + " --faster servBusy1").status, 2);
  EXPECT_EQ(run(trace + " --curve --nodes 2").status, 2);
  EXPECT_EQ(run(trace + " --move servBusy1 --to rank:2").status, 1);
  EXPECT_EQ(run(trace + " --move servBusy1 --faster servBusy1=5").status, 1);
  const std::string without = write("u.lbf", "lbf-trace 1\nranks 1\n0 exit 1\n");
  outcome = run(without + " --procedures F");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the trace has no procedure times"));
}

// Events of two ranks that send to each other.
auto adds_to(BatchEncoder& encoder) {
  return [&encoder](Rank rank, EventKind kind, double process_s, const std::vector<std::uint64_t>& values = {}) {
    Event event;
    event.kind = kind;
    event.process_s = process_s;
    event.values = values;
    if (kind == EventKind::kSend || kind == EventKind::kRecv) {
      event.peer = 1 - rank;
      event.tag = 1;
    }
    encoder.add(rank, event);
  };
}

// Each rank numbers its procedures itself; names of templates hold commas and blanks.
TEST_F(WhatIfProcedures, StoredTraces) {
  BatchEncoder encoder;
  encoder.add_control(R"({"type":"process","rank":0,"world_size":2,"library":""})");
  encoder.add_control(R"x({"type":"procedure","rank":1,"id":5,"name":"solve<int, 3>(a, b)"})x");
  encoder.add_control(R"({"type":"procedure","rank":0,"id":0,"name":"other"})");
  encoder.add_control(R"x({"type":"procedure","rank":0,"id":1,"name":"solve<int, 3>(a, b)"})x");
  const auto add = adds_to(encoder);
  add(1, EventKind::kProcedure, 0, {5, 3000000000u, 3000000000u, 10});
  add(1, EventKind::kSend, 6);
  add(1, EventKind::kExit, 0);
  add(0, EventKind::kProcedure, 0, {1, 500000000u, 500000000u, 1});
  add(0, EventKind::kProcedure, 0, {2, 500000000u, 500000000u, 1});  // not named: time like any other
  add(0, EventKind::kRecv, 2);
  add(0, EventKind::kExit, 1);
  const std::string trace = write("t.lbfw", encoder.finish(0, 1));
  const nlohmann::json answer = ask(trace + " --procedures 'solve<int, 3>(a, b),other'");
  EXPECT_EQ(answer["procedures"].size(), 2u);
  EXPECT_EQ(answer["procedures"][0]["calls"], 11);
  EXPECT_EQ(answer["procedures"][0]["inclusive_s"], 3.5);
  EXPECT_EQ(lbf(answer, "procedure_lbf", "solve<int, 3>(a, b)"), 6);
  EXPECT_EQ(lbf(answer, "critical_path_zeroing", "solve<int, 3>(a, b)"), 4);
}

// What could not be measured, but sampled: lbfd's answer (tests/unit/daemon/procedures_test.cpp,
// SamplesStandInForWhatIsNotMeasured). Rank 0 works 4 s, 75 % of it in F, and sends; rank 1 is ready after 0.5 s, works
// 2 s and answers.
TEST_F(WhatIfProcedures, SamplesStandInForWhatWasNotMeasured) {
  for (const std::uint64_t inclusive : {750U, 3U}) {
    BatchEncoder encoder;
    for (const int rank : {0, 1}) {
      encoder.add_control(
          nlohmann::json{{"type", "process"}, {"rank", rank}, {"world_size", 2}, {"library", ""}}.dump());
      encoder.add_control(nlohmann::json{
          {"type", "procedure_remark"}, {"rank", rank}, {"kind", "refused"}, {"name", "F"}, {"text", "too short"}}
                              .dump());
    }
    // G was switched off at the beginning, and sampled from then on: a quarter of the time. H late.
    const auto say = [&](const std::string& kind, const std::string& name, const std::string& rest) {
      encoder.add_control(R"({"type":")" + kind + R"(","rank":0,"name":")" + name + "\"," + rest + "}");
    };
    say("procedure", "G", R"("id":0)");
    say("procedure", "H", R"("id":1)");
    say("procedure_remark", "G", R"("kind":"off","text":"too often")");
    const auto add = adds_to(encoder);
    add(0, EventKind::kProcedure, 0, {0, 1'000'000, 1'000'000, 4096});
    add(0, EventKind::kCompute, 1);
    add(0, EventKind::kSend, 3);
    add(1, EventKind::kRecv, 0.5);
    add(1, EventKind::kSend, 2);
    add(0, EventKind::kRecv, 0);
    for (const auto& [rank, in_it, of] : {std::tuple{0, inclusive, 1000}, std::tuple{1, std::uint64_t{0}, 625}}) {
      encoder.add_control(nlohmann::json{
          {"type", "procedure_samples"},
          {"rank", rank},
          {"name", "F"},
          {"inclusive", in_it},
          {"exclusive", in_it},
          {"of", of}}.dump());
    }
    add(0, EventKind::kExit, 0);
    add(1, EventKind::kExit, 0);
    say("procedure_samples", "G", R"("inclusive":250,"exclusive":250,"of":1000)");
    say("procedure_remark", "H", R"("kind":"off","text":"too often")");
    say("procedure_samples", "H", R"("inclusive":250,"exclusive":250,"of":1000)");
    const std::string trace = write("t.lbfw", encoder.finish(0, 1));
    if (inclusive < 10) {  // known too badly
      const test::Outcome outcome = run(trace + " --procedures F");
      EXPECT_EQ(outcome.status, 1);
      EXPECT_THAT(outcome.err, HasSubstr("no procedure 'F' in the trace"));
      continue;
    }
    const test::Outcome outcome = run(trace + " --procedures F,G --move F --json");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.err, HasSubstr("the time of F is sampled"));
    const nlohmann::json answer = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_EQ(answer["procedures"].size(), 2U) << outcome.out;
    EXPECT_EQ(answer["procedures"][0]["sampled"], true);
    EXPECT_NEAR(answer["procedures"][0]["inclusive_s"].get<double>(), 3, 1e-6);
    EXPECT_EQ(answer["procedures"][1]["sampled"], true);
    EXPECT_NEAR(answer["procedures"][1]["inclusive_s"].get<double>(), 1, 1e-6)
        << "not what was measured until then, too";
    EXPECT_EQ(answer["procedures_left_out"], nlohmann::json::array());
    EXPECT_EQ(ask(trace + " --procedures '*'")["procedures_left_out"], nlohmann::json::array({"H"}));
    EXPECT_THAT(run(trace + " --procedures H").err, HasSubstr("H was switched off while it ran"));
    EXPECT_NEAR(lbf(answer, "procedure_lbf", "F"), 5.5, 1e-6);
    EXPECT_NEAR(lbf(answer, "asked", "F moved to the receiver"), 5.5, 1e-6);
    EXPECT_NEAR(lbf(answer, "critical_path_zeroing", "F"), 3, 1e-6);
    EXPECT_THAT(run(trace + " --procedures F").out, testing::ContainsRegex("\nF +sampled +3\\.0"));
    EXPECT_THAT(run(trace + " --procedures F --html -").out, HasSubstr("<td>sampled</td>"));
  }
}

// One rank switched it off, the list of all ranks left it off the others': their time of it is in no sample.
TEST_F(WhatIfProcedures, WhatLeftTheListIsNotPredictedFromSamples) {
  for (const char* const listed : {"G", "other"}) {
    BatchEncoder encoder;
    encoder.add_control(R"({"type":"process","rank":0,"world_size":1,"library":""})");
    encoder.add_control(R"({"type":"procedure","rank":0,"id":0,"name":"G"})");
    encoder.add_control(R"({"type":"procedure_remark","rank":0,"kind":"off","name":"G","text":"called too often"})");
    encoder.add_control(
        nlohmann::json{{"type", "procedure_list"}, {"rank", 0}, {"generation", 2}, {"names", {listed}}, {"text", ""}}
            .dump());
    Event event;
    event.kind = EventKind::kCompute;
    event.process_s = 4;
    encoder.add(0, event);
    encoder.add_control(
        R"({"type":"procedure_samples","rank":0,"name":"G","inclusive":500,"exclusive":500,"of":1000})");
    event.kind = EventKind::kExit;
    event.process_s = 0;
    encoder.add(0, event);
    const test::Outcome outcome = run(write("t.lbfw", encoder.finish(0, 1)) + " --procedures G --json");
    if (std::string(listed) == "G") {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("the time of G is sampled"));
    } else {
      EXPECT_EQ(outcome.status, 1);
      EXPECT_THAT(outcome.err, HasSubstr("G was switched off while it ran"));
    }
  }
}

// What the limit switched off has a part of its times in the trace: no number can be told from it.
TEST_F(WhatIfProcedures, WhatWasSwitchedOffIsNotPredicted) {
  BatchEncoder encoder;
  encoder.add_control(R"({"type":"process","rank":0,"world_size":1,"library":""})");
  encoder.add_control(R"({"type":"procedure","rank":0,"id":0,"name":"leaf"})");
  encoder.add_control(R"({"type":"procedure","rank":0,"id":1,"name":"level"})");
  for (const std::uint64_t id : {0U, 1U}) {
    Event event;
    event.kind = EventKind::kProcedure;
    event.process_s = 1;
    const std::vector<std::uint64_t> values{id, 500000000u, 500000000u, 1};
    event.values = values;
    encoder.add(0, event);
  }
  encoder.add_control(R"({"type":"procedure_remark","rank":0,"kind":"note","name":"level","text":"inlined"})");
  encoder.add_control(R"({"type":"procedure_remark","rank":0,"kind":"off","name":"leaf","text":"called too often"})");
  Event exit;
  exit.kind = EventKind::kExit;
  encoder.add(0, exit);
  const std::string stored = write("t.lbfw", encoder.finish(0, 1));
  const std::string again = dir_ + "/again.lbfw";
  const test::Outcome converted = test::run_command(LBF_TRACE " convert " + stored + " --to stored -o " + again);
  ASSERT_EQ(converted.status, 0) << converted.err;
  for (const std::string& trace : {stored, again}) {
    test::Outcome outcome = run(trace + " --procedures leaf");
    EXPECT_EQ(outcome.status, 1) << trace;
    EXPECT_THAT(outcome.err, HasSubstr("leaf was switched off while it ran"));
    EXPECT_EQ(run(trace + " --move leaf").status, 1);
    EXPECT_EQ(run(trace + " --faster leaf=10").status, 1);
    outcome = run(trace + " --procedures 'le*' --json");
    EXPECT_THAT(outcome.err, HasSubstr("leaf is left out"));
    const nlohmann::json answer = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_EQ(answer["procedures"].size(), 1u) << outcome.out;
    EXPECT_EQ(answer["procedures"][0]["name"], "level");
    EXPECT_EQ(answer["procedures_left_out"], nlohmann::json::array({"leaf"}));
  }
}

}  // namespace
}  // namespace lbf::whatif_procedures_test