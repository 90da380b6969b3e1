// ProgramStore, see program_store.h.
#include "db/program_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>

#include "base/network_name.h"
#include "cost/predicted_cost.h"
#include "db/statement_values.h"

namespace lbf::db {
namespace {

using nlohmann::json;

// Inputs of one program that are compared with a new run, and earlier runs that are looked at for an outcome: the
// latest ones.
constexpr int kMostInputs = 256;
constexpr int kMostEarlierRuns = 200;
// What is older does not show in an estimate any more.
constexpr int kMostRunsOfEstimate = 32;
constexpr int kMostRunsOfSite = 64;
constexpr int kMostProceduresOfHistory = 1024;

std::string profile_text(const CallProfile& profile) {
  json out = json::object();
  for (const auto& [function, calls] : profile) out[function] = calls;
  return text_of(out);
}

CallProfile profile_of(const std::string& text) {
  CallProfile profile;
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return profile;
  for (const auto& [function, calls] : value.items()) {
    if (calls.is_number()) profile.emplace_back(function, calls.get<double>());
  }
  return profile;
}

// Of a row `c` of the table cost, of a step of so many `ranks`; NULL: it does not tell. Costs of a few calls are
// scatter, a relay's first second is its beginning.
constexpr const char* kCallCost = "CASE WHEN c.recorded_calls >= 1000 THEN c.recording_s / c.recorded_calls END";
// lbfd has no word of what one recorded call takes in the relay: the same number everywhere.
std::string relay_share_of_row(const char* ranks) {
  return std::string(
             "CASE WHEN c.state = 'open' AND c.windows = 1 AND c.counted_calls = 0 AND c.once_relay_s IS NOT NULL "
             "AND ") +
         "c.program_cpu_s >= " + ranks + " AND json_array_length(c.nodes_json) > 0 THEN max(c.relay_cpu_s - " +
         std::to_string(cost::kDefaultRelayedCallS * 1e9) +
         "e-9 * c.recorded_calls, 0) / json_array_length(c.nodes_json) * " + ranks + " / c.program_cpu_s END";
}

// The latest first. 0: none.
double corrected_by(const std::vector<double>& seen) {
  double expected = 0;
  unsigned runs = 0;
  for (auto one = seen.rbegin(); one != seen.rend(); ++one) expected = cost::corrected(expected, *one, ++runs);
  return expected;
}

// Of the latest runs of all programs.
double relay_share_of_the_site(SQLite::Database& connection) {
  SQLite::Statement query(connection,
                          "SELECT " + relay_share_of_row("s.ranks") +
                              " FROM (SELECT step_row, start_s, ranks FROM step WHERE end_s IS NOT NULL ORDER BY "
                              "start_s DESC LIMIT ?) s JOIN cost c ON c.step_row = s.step_row "
                              "ORDER BY s.start_s DESC");
  query.bind(1, kMostRunsOfSite);
  std::vector<double> shares;
  while (query.executeStep()) {
    if (!query.getColumn(0).isNull()) shares.push_back(query.getColumn(0).getDouble());
  }
  if (shares.empty()) return 0;
  // Programs differ: not what the last four did, but what most do.
  std::nth_element(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2), shares.end());
  return shares[shares.size() / 2];
}

// |a - b| / max(a, b)
double relative_distance(double a, double b) {
  const double most = std::max(a, b);
  return most > 0 ? std::fabs(a - b) / most : 0;
}

// The program of this run; a new one where it never ran with an input like that.
std::int64_t program_row_of(SQLite::Database& connection, const StepRecord& step) {
  const ProgramRun& run = *step.program;
  SQLite::Statement known(connection,
                          "SELECT program_row, calls_per_rank_json, work_s, sent_bytes FROM program "
                          "WHERE identity = ? AND ranks = ? ORDER BY program_row DESC LIMIT ?");
  known.bind(1, run.identity());
  known.bind(2, step.ranks);
  known.bind(3, kMostInputs);
  std::optional<std::pair<double, std::int64_t>> nearest;
  while (known.executeStep()) {
    ProgramRun first;
    first.calls_per_rank = profile_of(known.getColumn(1).getString());
    first.work_s = known.getColumn(2).getDouble();
    if (!known.getColumn(3).isNull()) first.sent_bytes = known.getColumn(3).getDouble();
    if (!is_same_input(first, run)) continue;
    const double distance =
        profile_distance(first.calls_per_rank, run.calls_per_rank) + relative_distance(first.work_s, run.work_s);
    if (!nearest || distance < nearest->first) nearest = {distance, known.getColumn(0).getInt64()};
  }
  if (nearest) return nearest->second;
  SQLite::Statement insert(connection,
                           "INSERT INTO program (identity, name, ranks, calls_per_rank_json, work_s, sent_bytes) "
                           "VALUES (?, ?, ?, ?, ?, ?)");
  insert.bind(1, run.identity());
  insert.bind(2, run.name);
  insert.bind(3, step.ranks);
  insert.bind(4, profile_text(run.calls_per_rank));
  insert.bind(5, run.work_s);
  if (run.sent_bytes) {
    insert.bind(6, *run.sent_bytes);
  } else {
    insert.bind(6);
  }
  insert.exec();
  return connection.getLastInsertRowid();
}

void insert_outcome(SQLite::Database& connection, StepRow row, StepRow from, std::int64_t program,
                    const StepRecord& step, TargetDistance distance, Seconds predicted_s) {
  const Seconds measured_s = *step.measured_s;
  SQLite::Statement insert(connection, "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, row);
  insert.bind(2, from);
  insert.bind(3, program);
  insert.bind(4, name_of(distance));
  insert.bind(5, predicted_s);
  insert.bind(6, measured_s);
  insert.bind(7, 100 * (predicted_s - measured_s) / measured_s);
  insert.bind(8, step.end_s.value_or(step.start_s));
  insert.exec();
}

// Of "map=0,0,1", "plane=2", and of block and cyclic, which are even.
std::uint32_t most_ranks_of_a_node(const PredictionRecord& ran, Rank ranks) {
  const auto all = static_cast<std::uint32_t>(std::max<Rank>(ranks, 1));
  const std::uint32_t nodes = std::max<std::uint32_t>(ran.nodes, 1);
  constexpr std::string_view kMap = "map=";
  constexpr std::string_view kPlane = "plane=";
  if (ran.placement.starts_with(kMap)) {
    std::map<std::string, std::uint32_t> ranks_of_node;
    std::istringstream map(ran.placement.substr(kMap.size()));
    std::uint32_t most = 1;
    for (std::string node; std::getline(map, node, ',');) most = std::max(most, ++ranks_of_node[node]);
    return most;
  }
  if (ran.placement.starts_with(kPlane)) {
    const std::uint32_t plane = std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(std::strtoul(ran.placement.c_str() + kPlane.size(), nullptr, 10)));
    const std::uint32_t planes = (all + plane - 1) / plane;
    return std::min(all, (planes + nodes - 1) / nodes * plane);
  }
  return (all + nodes - 1) / nodes;
}

bool is_whole(const PredictionRecord& prediction) {
  return !prediction.partial && prediction.why_stuck.empty() && prediction.why_deferred.empty() &&
         prediction.predicted_s > 0;
}

// What is compared of a prediction.
constexpr const char* kConfiguration =
    "p.nodes, p.cores_per_node, p.placement, p.network, p.contention, p.speed, p.threads";

PredictionRecord configuration_of(SQLite::Statement& query, int column) {
  PredictionRecord out;
  out.nodes = static_cast<std::uint32_t>(query.getColumn(column).getInt64());
  out.cores_per_node = static_cast<std::uint32_t>(query.getColumn(column + 1).getInt64());
  out.placement = query.getColumn(column + 2).getString();
  out.network = query.getColumn(column + 3).getString();
  out.contention = query.getColumn(column + 4).getString();
  out.speed = query.getColumn(column + 5).getDouble();
  out.threads = static_cast<std::uint64_t>(query.getColumn(column + 6).getInt64());
  return out;
}

// What the run `from` was predicted to take where `ran` ran.
std::optional<Seconds> predicted_there(SQLite::Database& connection, StepRow from, const PredictionRecord& ran,
                                       Rank ranks) {
  SQLite::Statement query(connection, std::string("SELECT p.predicted_s, ") + kConfiguration +
                                          " FROM prediction p WHERE step_row = ? AND partial = 0 AND why_stuck = '' "
                                          "AND why_deferred = '' AND predicted_s > 0 ORDER BY position");
  query.bind(1, from);
  while (query.executeStep()) {
    if (is_same_configuration(ran, configuration_of(query, 1), ranks)) return query.getColumn(0).getDouble();
  }
  return std::nullopt;
}

// The predictions of each earlier configuration's latest run that has one for where this step ran.
void insert_outcomes(SQLite::Database& connection, StepRow row, std::int64_t program, const StepRecord& step,
                     const PredictionRecord& ran) {
  SQLite::Statement earlier(connection, std::string("SELECT r.step_row, ") + kConfiguration +
                                            " FROM run r JOIN step s ON s.step_row = r.step_row JOIN prediction p ON "
                                            "p.step_row = r.step_row AND p.position = 0 WHERE r.program_row = ? AND "
                                            "r.step_row <> ? AND s.start_s <= ? AND s.cluster = ? "
                                            "ORDER BY s.start_s DESC, r.step_row DESC LIMIT ?");
  earlier.bind(1, program);
  earlier.bind(2, row);
  earlier.bind(3, step.start_s);
  earlier.bind(4, step.cluster);
  earlier.bind(5, kMostEarlierRuns);
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string, std::string, std::uint64_t>> seen;
  while (earlier.executeStep()) {
    const StepRow from = earlier.getColumn(0).getInt64();
    const PredictionRecord there = configuration_of(earlier, 1);
    const auto key = std::make_tuple(there.nodes, there.cores_per_node, there.placement, there.network, there.threads);
    if (seen.contains(key)) continue;
    if (const auto predicted_s = predicted_there(connection, from, ran, step.ranks)) {
      seen.insert(key);
      insert_outcome(connection, row, from, program, step, distance_between(there, ran), *predicted_s);
    }
  }
}

std::string command_text(const StepRecord& step) {
  return step.command_words ? text_of(*step.command_words) : std::string();
}

void put_run(SQLite::Database& connection, StepRow row, const StepRecord& step, std::optional<std::int64_t> program) {
  SQLite::Statement put(connection, "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(1, row);
  if (program) {
    put.bind(2, *program);
  } else {
    put.bind(2);
  }
  const ProgramRun run = step.program.value_or(ProgramRun{});
  put.bind(3, static_cast<std::int64_t>(step.uid));
  put.bind(4, step.ranks);
  put.bind(5, step.command_words && !step.command_words->empty() ? step.command_words->front() : std::string());
  put.bind(6, command_text(step));
  put.bind(7, run.build_id);
  put.bind(8, run.script);
  put.bind(9, static_cast<std::int64_t>(run.calls));
  put.bind(10, run.rank_s);
  put.bind(11, step.lbfd_cpu_s);
  if (run.seen_process_s) {
    put.bind(12, *run.seen_process_s);
  } else {
    put.bind(12);
  }
  // The wall time of a region of several threads, or of a wait for a device, is no work of the rank.
  const bool whole = program && run.sent_bytes && step.longest_stop_s <= 0 && !step.is_disturbed && step.threads <= 1 &&
                     step.device_s <= 0;
  put.bind(13, whole ? run.work_s : 0);
  put.exec();
}

}  // namespace

double profile_distance(const CallProfile& a, const CallProfile& b) {
  std::map<std::string, std::pair<double, double>> both;
  for (const auto& [function, calls] : a) both[function].first += calls;
  for (const auto& [function, calls] : b) both[function].second += calls;
  double differs = 0;
  double most = 0;
  for (const auto& [function, calls] : both) {
    differs += std::fabs(calls.first - calls.second);
    most += std::max(calls.first, calls.second);
  }
  return most > 0 ? differs / most : 0;
}

bool is_same_input(const ProgramRun& a, const ProgramRun& b) {
  if (profile_distance(a.calls_per_rank, b.calls_per_rank) > kMostProfileDistance) return false;
  if (a.sent_bytes && b.sent_bytes && relative_distance(*a.sent_bytes, *b.sent_bytes) > kMostProfileDistance) {
    return false;
  }
  return std::max(a.work_s, b.work_s) <= kMostWorkRatio * std::min(a.work_s, b.work_s) + kLeastWorkS;
}

const char* name_of(TargetDistance distance) {
  switch (distance) {
    case TargetDistance::kSelf:
      return "self";
    case TargetDistance::kNodes:
      return "nodes";
    case TargetDistance::kPlacement:
      return "placement";
    case TargetDistance::kNetwork:
      return "network";
    case TargetDistance::kSeveral:
      return "several";
  }
  return "several";
}

TargetDistance distance_between(const PredictionRecord& ran, const PredictionRecord& target) {
  const bool nodes = ran.nodes != target.nodes;
  // Other threads on other nodes are what fills these.
  const bool placement = (ran.placement != target.placement && ran.nodes > 1 && target.nodes > 1) ||
                         (!nodes && ran.threads != target.threads);
  const bool network = ran.network != target.network || ran.contention != target.contention;
  if (int{nodes} + int{placement} + int{network} > 1) return TargetDistance::kSeveral;
  if (nodes) return TargetDistance::kNodes;
  if (placement) return TargetDistance::kPlacement;
  return network ? TargetDistance::kNetwork : TargetDistance::kSelf;
}

bool is_same_configuration(const PredictionRecord& ran, const PredictionRecord& target, Rank ranks) {
  const std::uint64_t usable = most_ranks_of_a_node(ran, ranks) * std::max<std::uint64_t>(ran.threads, 1);
  const auto used = [&](const PredictionRecord& of) { return std::min<std::uint64_t>(of.cores_per_node, usable); };
  return ran.nodes == target.nodes && used(ran) == used(target) && ran.threads == target.threads &&
         (ran.placement == target.placement || ran.nodes == 1) && ran.network == target.network &&
         ran.contention == target.contention && ran.speed == target.speed;
}

void ProgramStore::record(SQLite::Database& connection, StepRow row, const StepRecord& step,
                          const std::vector<PredictionRecord>& predictions) {
  SQLite::Statement remove(connection, "DELETE FROM outcome WHERE step_row = ?");
  remove.bind(1, row);
  remove.exec();
  const bool known = step.state == StepState::kComplete && step.program && !step.program->build_id.empty() &&
                     !step.program->seen_process_s;
  if (!known) return put_run(connection, row, step, std::nullopt);
  const std::int64_t program = program_row_of(connection, step);
  put_run(connection, row, step, program);
  // How long a suspended job ran is known to half a second only; who else ran says nothing about predictions.
  if (predictions.empty() || step.measured_s.value_or(0) <= 0 || step.longest_stop_s > 0 || step.is_disturbed) return;
  const PredictionRecord& ran = predictions.front();
  if (ran.kind != "self" || is_bound(ran.network, ran.nodes)) return;
  if (is_whole(ran)) insert_outcome(connection, row, row, program, step, TargetDistance::kSelf, ran.predicted_s);
  insert_outcomes(connection, row, program, step, ran);
}

Result<std::optional<double>> ProgramStore::expected_calls_per_s(const ProgramHint& hint) const {
  auto expected = expected_cost(hint);
  if (!expected) return expected.error();
  return expected->calls_per_s > 0 ? std::optional<double>(expected->calls_per_s) : std::nullopt;
}

Result<cost::CostHistory> ProgramStore::expected_cost(const ProgramHint& hint) const {
  cost::CostHistory expected;
  auto done = database_.read([&](SQLite::Database& connection) {
    bool found = false;
    // Runs of this `condition` on the second parameter.
    const auto look = [&](const std::string& condition, const std::string& value) {
      if (found || value.empty()) return;
      SQLite::Statement query(
          connection,
          std::string("SELECT q.calls, CASE WHEN q.seen_process_s IS NULL AND c.program_cpu_s > 0 THEN c.program_cpu_s "
                      "ELSE q.rank_s END, ") +
              kCallCost + ", " + relay_share_of_row("q.ranks") +
              " FROM (SELECT r.step_row, r.calls, r.rank_s, r.seen_process_s, r.ranks, s.start_s FROM run r JOIN step "
              "s ON s.step_row = r.step_row "
              "WHERE r.uid = ? AND (r.program_row IS NOT NULL OR r.seen_process_s IS NOT NULL) AND r.rank_s > 0 AND " +
              condition +
              " ORDER BY s.start_s DESC, r.step_row DESC LIMIT ?) q LEFT JOIN cost c ON c.step_row = q.step_row "
              "ORDER BY q.start_s DESC, q.step_row DESC");
      query.bind(1, static_cast<std::int64_t>(hint.uid));
      query.bind(2, value);
      query.bind(3, kMostRunsOfEstimate);
      std::vector<double> rates;  // the latest first
      std::vector<double> call_costs;
      std::vector<double> relay_shares;
      while (query.executeStep()) {
        rates.push_back(static_cast<double>(query.getColumn(0).getInt64()) / query.getColumn(1).getDouble());
        if (!query.getColumn(2).isNull()) call_costs.push_back(query.getColumn(2).getDouble());
        if (!query.getColumn(3).isNull()) relay_shares.push_back(query.getColumn(3).getDouble());
      }
      found = !rates.empty();
      expected = {corrected_by(rates), corrected_by(call_costs), corrected_by(relay_shares)};
    };
    const std::string ranks = " AND r.ranks = " + std::to_string(hint.ranks);
    const std::string command = hint.command.empty() ? std::string() : text_of(hint.command);
    for (const std::string& alike : {ranks, std::string()}) {
      look("r.build_id = ?" + alike, hint.build_id);
      look("r.command_json = ?" + alike, command);
    }
    if (!hint.command.empty()) look("r.program_word = ? AND r.script = ''", hint.command.front());
    if (expected.relay_share == 0) expected.relay_share = relay_share_of_the_site(connection);
  });
  if (!done) return done.error();
  return expected;
}

Result<std::map<std::uint32_t, double>> ProgramStore::work_by_density(const ProgramHint& hint) const {
  std::map<std::uint32_t, double> medians;
  if (hint.command.empty()) return medians;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement query(connection,
                            "SELECT s.ranks_per_domain, r.work_s FROM run r JOIN step s ON s.step_row = r.step_row "
                            "WHERE r.uid = ? AND r.command_json = ? AND r.ranks = ? AND s.cluster = ? AND r.work_s > 0 "
                            "AND s.ranks_per_domain > 0 AND (? = '' OR r.build_id = '' OR r.build_id = ?) "
                            "AND (? = 0 OR s.start_s < ?) ORDER BY s.start_s DESC, r.step_row DESC LIMIT ?");
    query.bind(1, static_cast<std::int64_t>(hint.uid));
    query.bind(2, text_of(hint.command));
    query.bind(3, hint.ranks);
    query.bind(4, hint.cluster);
    query.bind(5, hint.build_id);
    query.bind(6, hint.build_id);
    query.bind(7, hint.before_s);
    query.bind(8, hint.before_s);
    query.bind(9, kMostRunsOfEstimate);
    std::map<std::uint32_t, std::vector<double>> works;
    while (query.executeStep())
      works[static_cast<std::uint32_t>(query.getColumn(0).getInt64())].push_back(query.getColumn(1).getDouble());
    for (auto& [density, of_density] : works) {
      const auto middle = of_density.begin() + static_cast<std::ptrdiff_t>(of_density.size() / 2);
      std::nth_element(of_density.begin(), middle, of_density.end());
      medians[density] = *middle;
    }
  });
  if (!done) return done.error();
  return medians;
}

Result<std::map<std::string, double>> ProgramStore::procedure_calls_per_s(const ProgramHint& hint) const {
  std::map<std::string, double> expected;
  auto done = database_.read([&](SQLite::Database& connection) {
    const auto look = [&](const std::string& condition, const std::string& value) {
      if (!expected.empty() || value.empty()) return;
      SQLite::Statement query(connection,
                              "SELECT p.name, p.calls_per_s FROM run r JOIN step s ON s.step_row = r.step_row "
                              "JOIN procedure p ON p.step_row = r.step_row "
                              "WHERE r.uid = ? AND " +
                                  condition +
                                  " = ? AND p.calls_per_s IS NOT NULL AND s.state <> 'running' "
                                  "AND (? = 0 OR s.start_s < ?) ORDER BY s.start_s DESC, r.step_row DESC LIMIT ?");
      query.bind(1, static_cast<std::int64_t>(hint.uid));
      query.bind(2, value);
      query.bind(3, hint.before_s);
      query.bind(4, hint.before_s);
      query.bind(5, kMostProceduresOfHistory);
      // The latest first: emplace keeps it.
      while (query.executeStep()) expected.emplace(query.getColumn(0).getString(), query.getColumn(1).getDouble());
    };
    look("r.build_id", hint.build_id);
    if (!hint.command.empty()) look("r.command_json", text_of(hint.command));
  });
  if (!done) return done.error();
  return expected;
}

}  // namespace lbf::db
