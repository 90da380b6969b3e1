// TSE Fig. 5, row by row: what the replay holds after each arrival and each report of the example of Fig. 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "predictor/engine/metric/predictor.h"
#include "predictor/engine/replay/observer.h"

namespace lbf::fig5_test {
namespace {

class Rows : public engine::ReplayObserver {
 public:
  void on_row(const engine::ObservedRow& row) override { rows.push_back(row); }
  std::vector<engine::ObservedRow> rows;
};

// An entry of the table: "earliest (remaining) {wait}", as text so that a difference reads well.
std::string entry(const engine::ObservedEvent& event) {
  const auto number = [](double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? std::string("0") : text;
  };
  std::string text = event.earliest_s == kNeverS ? "inf" : number(event.earliest_s);
  text += " (" + number(event.remaining_process_s) + ")";
  if (event.end_recv) text += " {" + number(event.wait_s) + "}";
  return text;
}

std::string event_name(Rank rank, std::uint64_t number) {
  return "E" + std::to_string(rank + 1) + std::to_string(number);
}

struct PaperRow {
  std::string arrived;   // the event of an arrival row
  std::string reported;  // the event of a report row
  double g1;
  double g2;
  std::map<std::string, std::string> events;
  std::set<std::string> exited;  // processes
};

// Rows 1 to 15 of the table. A process that exited is written in its last event's column there.
const std::vector<PaperRow>& fig5() {
  static const std::vector<PaperRow> kRows{
      {"", "", 0, 0, {}, {}},
      {"E11", "", 0, 0, {{"E11", "1 (1)"}}, {}},
      {"E21", "", 0, 0, {{"E11", "2 (1)"}, {"E21", "4 (2)"}}, {}},
      {"E12", "", 0, 0, {{"E11", "2 (1)"}, {"E12", "inf (0) {0}"}, {"E21", "4 (2)"}}, {}},
      {"E31", "", 0, 0, {{"E11", "2 (1)"}, {"E12", "inf (0) {0}"}, {"E21", "4 (2)"}, {"E31", "5 (5)"}}, {}},
      {"", "E11", 2, 0, {{"E12", "inf (0) {0}"}, {"E21", "3 (1)"}, {"E31", "5 (5)"}}, {}},
      {"", "E21", 3, 0, {{"E12", "inf (0) {-1}"}, {"E31", "5 (5)"}}, {}},
      {"E22", "", 3, 0, {{"E12", "inf (0) {-1}"}, {"E22", "4 (1)"}, {"E31", "5 (5)"}}, {}},
      {"", "E22", 4, 0, {{"E12", "inf (0) {-2}"}, {"E31", "5 (5)"}}, {"P2"}},
      {"", "E31", 4, 5, {{"E12", "5 (0) {1}"}}, {"P2"}},
      {"E32", "", 4, 5, {{"E12", "5 (0) {1}"}, {"E32", "6 (1)"}}, {"P2"}},
      {"", "E12", 5, 5, {{"E32", "6 (1)"}}, {"P2"}},
      {"E13", "", 5, 5, {{"E13", "7 (2)"}, {"E32", "6 (1)"}}, {"P2"}},
      {"", "E32", 5, 6, {{"E13", "7 (2)"}}, {"P2", "P3"}},
      {"", "E13", 7, 6, {}, {"P1", "P2", "P3"}},
  };
  return kRows;
}

Event event_of(EventKind kind, Seconds process_s, Rank peer = kAnyRank) {
  Event event;
  event.kind = kind;
  event.process_s = process_s;
  event.peer = peer;
  event.tag = peer == kAnyRank ? kAnyTag : 0;
  return event;
}

TEST(Fig5, EveryRow) {
  engine::Target target;
  target.node_of_rank = *engine::place_ranks("map=0,0,1", 3, 2);
  target.nodes = 2;
  target.network = std::make_shared<const engine::Network>(engine::Network::zero());
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(3, {target});
  ASSERT_TRUE(made.ok()) << made.error().message;
  engine::Predictor& predictor = **made;
  Rows observed;
  ASSERT_TRUE(predictor.observe(&observed));

  const std::vector<std::pair<Rank, Event>> arrivals{
      {0, event_of(EventKind::kStartRecv, 1, 2)}, {1, event_of(EventKind::kCompute, 2)},
      {0, event_of(EventKind::kEndRecv, 0, 2)},   {2, event_of(EventKind::kSend, 5, 0)},
      {1, event_of(EventKind::kExit, 1)},         {2, event_of(EventKind::kExit, 1)},
      {0, event_of(EventKind::kExit, 2)}};
  for (const auto& [rank, event] : arrivals) {
    const Result<void> fed = predictor.feed(rank, event);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  }

  const std::vector<PaperRow>& paper = fig5();
  ASSERT_EQ(observed.rows.size(), paper.size());
  for (std::size_t i = 0; i < paper.size(); ++i) {
    SCOPED_TRACE("row " + std::to_string(i + 1));
    const engine::ObservedRow& row = observed.rows[i];
    const std::string event = row.rank == kAnyRank ? "" : event_name(row.rank, row.number);
    EXPECT_EQ(row.cause == engine::ObservedRow::Cause::kArrival ? event : "", paper[i].arrived);
    EXPECT_EQ(row.cause == engine::ObservedRow::Cause::kReport ? event : "", paper[i].reported);
    EXPECT_THAT(row.group_time_s, testing::ElementsAre(paper[i].g1, paper[i].g2));
    std::map<std::string, std::string> events;
    for (const engine::ObservedEvent& e : row.events) events[event_name(e.rank, e.number)] = entry(e);
    EXPECT_EQ(events, paper[i].events);
    std::set<std::string> exited;
    for (std::size_t rank = 0; rank < row.exited.size(); ++rank) {
      if (row.exited[rank] != 0) exited.insert("P" + std::to_string(rank + 1));
    }
    EXPECT_EQ(exited, paper[i].exited);
  }
  const engine::Prediction prediction = predictor.predictions().front();
  EXPECT_EQ(prediction.lbf_s, 7.0);
  EXPECT_TRUE(prediction.complete);
  EXPECT_THAT(prediction.rank_finish_s, testing::ElementsAre(7.0, 4.0, 6.0));
  EXPECT_THAT(prediction.rank_measured_s, testing::ElementsAre(3.0, 3.0, 6.0));
}

}  // namespace
}  // namespace lbf::fig5_test