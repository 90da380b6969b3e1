// CostStore, see cost_store.h.
#include "db/cost_store.h"
#include "db/statement_values.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lbf::db {
namespace {

using nlohmann::json;

json json_of(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

std::string nodes_text(const std::vector<NodeCostRecord>& nodes) {
  json list = json::array();
  for (const NodeCostRecord& node : nodes) {
    list.push_back({node.node, node.state, node.program_cpu_s, node.direct_s, node.ideal_s, node.relay_cpu_s,
                    node.open_s, node.regulated_s, node.pressed_s, node.windows, json_of(node.once_capture_s),
                    json_of(node.once_relay_s), node.held_up_s});
  }
  return text_of(list);
}

std::string ranks_text(const std::vector<RankCostRecord>& ranks) {
  json list = json::array();
  for (const RankCostRecord& rank : ranks) {
    list.push_back({rank.rank, rank.direct_s, rank.ideal_s, rank.recorded_calls, rank.counted_calls,
                    rank.program_cpu_s});
  }
  return list.dump();
}

// Written by this file alone: what is not as above is left out.
void read_parts(const std::string& nodes, const std::string& ranks, CostRecord& cost) {
  const json node_list = json::parse(nodes, nullptr, false);
  if (node_list.is_array()) {
    for (const json& n : node_list) {
      // Ten before migration 0010, twelve before 0013.
      if (!n.is_array() || (n.size() != 10 && n.size() != 12 && n.size() != 13) || !n[1].is_string()) continue;
      cost.nodes.push_back({n[0].get<std::uint32_t>(), n[1].get<std::string>(), n[2].get<double>(),
                            n[3].get<double>(), n[4].get<double>(), n[5].get<double>(), n[6].get<double>(),
                            n[7].get<double>(), n[8].get<double>(), n[9].get<std::uint64_t>()});
      if (n.size() == 10) continue;
      cost.nodes.back().once_capture_s = optional_of(n[10]);
      cost.nodes.back().once_relay_s = optional_of(n[11]);
      if (n.size() == 13 && n[12].is_number()) cost.nodes.back().held_up_s = n[12].get<double>();
    }
  }
  const json rank_list = json::parse(ranks, nullptr, false);
  if (rank_list.is_array()) {
    for (const json& r : rank_list) {
      if (!r.is_array() || r.size() != 6) continue;
      cost.ranks.push_back({r[0].get<Rank>(), r[1].get<double>(), r[2].get<double>(), r[3].get<std::uint64_t>(),
                            r[4].get<std::uint64_t>(), r[5].get<double>()});
    }
  }
}

}  // namespace

void CostStore::replace(SQLite::Database& connection, StepRow step, const std::optional<CostRecord>& cost) {
  SQLite::Statement remove(connection, "DELETE FROM cost WHERE step_row = ?");
  remove.bind(1, step);
  remove.exec();
  if (!cost) return;
  SQLite::Statement insert(
      connection,
      "INSERT INTO cost (step_row, limit_percent, predicted_percent, corrected_percent, state, program_cpu_s, "
      "direct_s, ideal_s, relay_cpu_s, recorded_calls, counted_calls, disbelieved, windows, seen_share, nodes_json, "
      "ranks_json, once_capture_s, once_relay_s, recording_s, held_up_s) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, step);
  bind_optional(insert, 2, cost->limit_percent);
  bind_optional(insert, 3, cost->predicted_percent);
  bind_optional(insert, 4, cost->corrected_percent);
  insert.bind(5, cost->state);
  insert.bind(6, cost->program_cpu_s);
  insert.bind(7, cost->direct_s);
  insert.bind(8, cost->ideal_s);
  insert.bind(9, cost->relay_cpu_s);
  insert.bind(10, static_cast<std::int64_t>(cost->recorded_calls));
  insert.bind(11, static_cast<std::int64_t>(cost->counted_calls));
  insert.bind(12, static_cast<std::int64_t>(cost->disbelieved));
  insert.bind(13, static_cast<std::int64_t>(cost->windows));
  insert.bind(14, cost->seen_share);
  insert.bind(15, nodes_text(cost->nodes));
  insert.bind(16, ranks_text(cost->ranks));
  bind_optional(insert, 17, cost->once_capture_s);
  bind_optional(insert, 18, cost->once_relay_s);
  bind_optional(insert, 19, cost->recording_s);
  insert.bind(20, cost->held_up_s);
  insert.exec();
}

CostStore::Reader::Reader(SQLite::Database& connection)
    : query_(
          connection,
          "SELECT limit_percent, predicted_percent, corrected_percent, state, program_cpu_s, direct_s, ideal_s, "
          "relay_cpu_s, recorded_calls, counted_calls, disbelieved, windows, seen_share, nodes_json, ranks_json, "
          "once_capture_s, once_relay_s, recording_s, held_up_s FROM cost WHERE step_row = ?") {}

std::optional<CostRecord> CostStore::Reader::of_step(StepRow step, bool with_parts) {
  SQLite::Statement& query = query_;
  query.reset();
  query.bind(1, step);
  if (!query.executeStep()) return std::nullopt;
  CostRecord cost;
  cost.limit_percent = optional_of(query.getColumn(0));
  cost.predicted_percent = optional_of(query.getColumn(1));
  cost.corrected_percent = optional_of(query.getColumn(2));
  cost.state = query.getColumn(3).getString();
  cost.program_cpu_s = query.getColumn(4).getDouble();
  cost.direct_s = query.getColumn(5).getDouble();
  cost.ideal_s = query.getColumn(6).getDouble();
  cost.relay_cpu_s = query.getColumn(7).getDouble();
  cost.recorded_calls = static_cast<std::uint64_t>(query.getColumn(8).getInt64());
  cost.counted_calls = static_cast<std::uint64_t>(query.getColumn(9).getInt64());
  cost.disbelieved = static_cast<std::uint64_t>(query.getColumn(10).getInt64());
  cost.windows = static_cast<std::uint64_t>(query.getColumn(11).getInt64());
  cost.seen_share = query.getColumn(12).getDouble();
  cost.once_capture_s = optional_of(query.getColumn(15));
  cost.once_relay_s = optional_of(query.getColumn(16));
  cost.recording_s = optional_of(query.getColumn(17));
  cost.held_up_s = query.getColumn(18).getDouble();
  if (with_parts) read_parts(query.getColumn(13).getString(), query.getColumn(14).getString(), cost);
  return cost;
}

}  // namespace lbf::db
