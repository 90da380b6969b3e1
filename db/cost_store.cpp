// CostStore, see cost_store.h.
#include "db/cost_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>
#include <string>

#include "db/field_sql.h"

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
    list.push_back(
        {rank.rank, rank.direct_s, rank.ideal_s, rank.recorded_calls, rank.counted_calls, rank.program_cpu_s});
  }
  return list.dump();
}

// Written by this file alone: what is not as above is left out.
void read_parts(std::string_view nodes, std::string_view ranks, CostRecord& cost) {
  const json node_list = json::parse(nodes, nullptr, false);
  if (node_list.is_array()) {
    for (const json& n : node_list) {
      // Ten before migration 0010, twelve before 0013.
      if (!n.is_array() || (n.size() != 10 && n.size() != 12 && n.size() != 13) || !n[1].is_string()) continue;
      cost.nodes.push_back({n[0].get<std::uint32_t>(), n[1].get<std::string>(), n[2].get<double>(), n[3].get<double>(),
                            n[4].get<double>(), n[5].get<double>(), n[6].get<double>(), n[7].get<double>(),
                            n[8].get<double>(), n[9].get<std::uint64_t>()});
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
  static const std::string sql = "INSERT INTO cost (step_row, nodes_json, ranks_json" +
                                 each_column(kCostFields, [](std::string_view name) { return name; }) +
                                 ") VALUES (?, ?, ?" + each_column(kCostFields, [](std::string_view) { return "?"; }) +
                                 ")";
  SQLite::Statement insert(connection, sql);
  insert.bind(1, step);
  insert.bind(2, nodes_text(cost->nodes));
  insert.bind(3, ranks_text(cost->ranks));
  bind_fields(insert, 4, kCostFields, *cost);
  insert.exec();
}

CostStore::PartsReader::PartsReader(SQLite::Database& connection)
    : rows_(connection, "SELECT nodes_json, ranks_json FROM cost WHERE step_row = ?") {}

void CostStore::PartsReader::add_to(CostRecord& cost, StepRow step) {
  rows_.reset();
  rows_.bind(1, step);
  if (rows_.next()) read_parts(rows_.text(0), rows_.text(1), cost);
}

}  // namespace lbf::db
