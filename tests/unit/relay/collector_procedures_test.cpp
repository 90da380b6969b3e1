// Collector: what rings say of procedures, and what lbfd wants to have measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/relay/collector_fixture.h"

namespace lbf::relay::collector_procedures_test {
namespace {

class CollectorProcedures : public CollectorTest {};

// A kRecordProcedure as the capture writes it, or nearly.
void append_words(RingFile& file, ring::ProcedureWord word, std::uint32_t id, const std::string& name,
                  const std::string& text, std::uint64_t bytes) {
  const ring::Record record =
      ring::record_of(ring::ProcedureText{word, id, static_cast<std::uint32_t>(name.size()), bytes});
  std::vector<std::uint64_t> values((name.size() + text.size() + 7) / 8, 0);
  std::memcpy(values.data(), (name + text).data(), name.size() + text.size());
  EXPECT_TRUE(file.append(record, values));
}
void append_words(RingFile& file, ring::ProcedureWord word, std::uint32_t id, const std::string& name,
                  const std::string& text = {}) {
  append_words(file, word, id, name, text, name.size() + text.size());
}

TEST_F(CollectorProcedures, ProceduresAreNamedBeforeTheirTimes) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kName, 4, "grid::Solver::step(double)");
  append_words(file, ring::ProcedureWord::kRefused, 0, "memcpy", "other code jumps into it");
  append_words(file, ring::ProcedureWord::kName, 4, "another name of it");  // the first one holds
  ring::Record spent = RingFile::record(EventKind::kProcedure, 3000, 3000);
  spent.flags = 0;
  file.append(spent, {4, 1500, 700, 3});
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  append_words(file, ring::ProcedureWord::kOff, 4, "grid::Solver::step(double)", "too often\n");
  pass();
  const auto decoded = finish();
  const auto names = of_type(decoded, "procedure");
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0]["rank"], 0);
  EXPECT_EQ(names[0]["id"], 4);
  EXPECT_EQ(names[0]["name"], "grid::Solver::step(double)");
  const auto remarks = of_type(decoded, "procedure_remark");
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_EQ(remarks[0]["kind"], "refused");
  EXPECT_EQ(remarks[0]["name"], "memcpy");
  EXPECT_EQ(remarks[0]["text"], "other code jumps into it");
  EXPECT_EQ(remarks[1]["kind"], "off");
  EXPECT_EQ(remarks[1]["text"], "too often?") << "one line";
  ASSERT_GE(decoded.events.size(), 2U);
  EXPECT_EQ(decoded.events[0].second.kind, EventKind::kProcedure);
  EXPECT_NEAR(decoded.events[0].second.process_s, 2000e-9, 1e-12);
  EXPECT_EQ(decoded.events[1].second.kind, EventKind::kSend);
  EXPECT_NEAR(decoded.events[1].second.process_s, 0, 1e-12) << "words and times take no time of their own";
}

TEST_F(CollectorProcedures, BrokenWordsAboutProceduresAreNotBelieved) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kName, 1, "f", "", 4000);           // longer than what is there
  append_words(file, static_cast<ring::ProcedureWord>(9), 1, "f");            // no such word
  append_words(file, ring::ProcedureWord::kName, 1u << 20, "f");              // no such number
  append_words(file, ring::ProcedureWord::kName, 2, std::string(8, '\xff'));  // no UTF-8
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto decoded = finish();
  EXPECT_EQ(of_type(decoded, "procedure").size(), 1U);
  EXPECT_EQ(of_type(decoded, "note").size(), 2U);
  EXPECT_EQ(decoded.events.size(), 2U) << "and the process's events go on";
}

TEST_F(CollectorProcedures, CandidatesAndSamplesBecomeRecords) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kCandidate, 0, "grid::Solver::step(double)",
               "0 2 130 200\nsolve\ngrid::run()\n");
  append_words(file, ring::ProcedureWord::kCandidate, 0, "pack", "1 2 20 200\n");
  append_words(file, ring::ProcedureWord::kSamples, 0, "tiny", "10 7 640");
  {
    // 4,096 calls in a millisecond
    const ring::Record off = ring::record_of(ring::ProcedureText{ring::ProcedureWord::kOff, 0, 4, 4, 4096, 1'000'000});
    std::uint64_t name = 0;
    std::memcpy(&name, "tiny", 4);
    ASSERT_TRUE(file.append(off, {name}));
  }
  append_words(file, ring::ProcedureWord::kCandidate, 0, "f", "0 2 many");  // broken
  append_words(file, ring::ProcedureWord::kSamples, 0, "tiny", "10");       // broken
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto decoded = finish();
  const auto candidates = of_type(decoded, "procedure_candidate");
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0]["names"], nlohmann::json({"grid::Solver::step(double)", "solve", "grid::run()"}));
  EXPECT_EQ(candidates[0]["samples"], 130);
  EXPECT_EQ(candidates[0]["own_samples"], 200);
  EXPECT_EQ(candidates[1]["number"], 1);
  EXPECT_EQ(candidates[1]["of"], 2);
  EXPECT_EQ(candidates[1]["names"], nlohmann::json({"pack"}));
  const auto samples = of_type(decoded, "procedure_samples");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0]["inclusive"], 10);
  EXPECT_EQ(samples[0]["exclusive"], 7);
  EXPECT_EQ(samples[0]["of"], 640);
  const auto remarks = of_type(decoded, "procedure_remark");
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0]["kind"], "off");
  EXPECT_NEAR(remarks[0]["calls_per_s"].get<double>(), 4.096e6, 1);
  EXPECT_EQ(of_type(decoded, "note").size(), 2U);
}

// What lbfd wants all ranks to measure goes into the rings of processes that are there and that come, and into the
// stream once.
TEST_F(CollectorProcedures, AListOfProceduresReachesTheRings) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto give = [&](std::uint64_t generation, std::vector<std::string> names) {
    auto list = std::make_shared<protocol::ProcedureList>();
    *list = {generation, std::move(names), "why"};
    collector_->give_procedure_list(std::move(list));
    pass();
  };
  const auto generation = [&] { return file.get<std::uint64_t>(offsetof(ring::Header, list_generation)); };
  EXPECT_EQ(generation(), 0U);
  give(2, {"solve", "pack"});
  EXPECT_EQ(generation(), 2U);
  EXPECT_EQ(file.get<std::uint64_t>(offsetof(ring::Header, list_begun)), 2U);
  EXPECT_EQ(file.get<std::uint32_t>(offsetof(ring::Header, list_bytes)), 11U);
  EXPECT_EQ(std::string(file.get<std::array<char, 11>>(offsetof(ring::Header, list)).data(), 11), "solve\npack\n");
  give(1, {"older"});
  EXPECT_EQ(generation(), 2U);
  const auto decoded = finish();
  const auto lists = of_type(decoded, "procedure_list");
  ASSERT_EQ(lists.size(), 1U);
  EXPECT_EQ(lists[0]["generation"], 2);
  EXPECT_EQ(lists[0]["rank"], 0);
  EXPECT_EQ(lists[0]["names"], nlohmann::json({"solve", "pack"}));
}

}  // namespace
}  // namespace lbf::relay::collector_procedures_test