// StepConditions, see step_conditions.h.
#include "db/step_conditions.h"

#include <string>

namespace lbf::db {
namespace {

// A list with one element after the other in it: (?, ?, ?).
std::string placeholders(std::size_t count) {
  std::string out = "(";
  for (std::size_t i = 0; i < count; ++i) out += i == 0 ? "?" : ", ?";
  return out + ')';
}

// A window with more steps than that is read from its end on, by start, until there are enough.
constexpr std::int64_t kWideWindow = 4000;

bool is_wide(SQLite::Database& connection, const StepQuery& query) {
  std::string sql = "SELECT count(*) FROM (SELECT 1 FROM step WHERE ifnull(end_s, 1e300) >= ?";
  if (query.uid) sql += " AND uid = ?";
  SQLite::Statement statement(connection, sql + " LIMIT ?)");
  int index = 0;
  statement.bind(++index, *query.since_s);
  if (query.uid) statement.bind(++index, *query.uid);
  statement.bind(++index, kWideWindow);
  return statement.executeStep() && statement.getColumn(0).getInt64() >= kWideWindow;
}

}  // namespace

StepConditions conditions_of(SQLite::Database& connection, const StepQuery& query) {
  StepConditions where;
  const bool few = query.row || query.job || query.job_group || !query.nodes.empty();
  if (query.row) where.add(" AND step_row = ?", *query.row);
  if (query.cluster) where.add(" AND +cluster = ?", *query.cluster);
  if (query.job) where.add(" AND job = ?", *query.job);
  if (query.job_group) {
    where.sql +=
        " AND step_row IN (SELECT step_row FROM step WHERE job = ? UNION ALL SELECT step_row FROM step WHERE "
        "array_job = ? UNION ALL SELECT step_row FROM step WHERE het_job = ?)";
    for (int i = 0; i < 3; ++i) where.bind(*query.job_group);
  }
  if (!query.nodes.empty()) {
    where.sql +=
        " AND step_row IN (SELECT step_row FROM step_node WHERE node IN " + placeholders(query.nodes.size()) + ')';
    for (const std::string& node : query.nodes) where.bind(node);
  }
  if (query.array_task) where.add(" AND +array_task = ?", *query.array_task);
  if (query.het_offset) where.add(" AND +het_offset = ?", *query.het_offset);
  if (query.step) where.add(" AND +step = ?", *query.step);
  if (query.restart) where.add(" AND +restart = ?", *query.restart);
  if (query.submit_s) where.add(" AND +submit_s = ?", *query.submit_s);
  const bool narrow = query.since_s && !few && !is_wide(connection, query);
  const bool by_end = narrow;
  if (query.uid) where.add(few ? " AND +uid = ?" : " AND uid = ?", *query.uid);
  if (query.account) where.add(few || by_end ? " AND +account = ?" : " AND account = ?", *query.account);
  if (query.partition) {
    where.add(few || by_end ? " AND +partition_name = ?" : " AND partition_name = ?", *query.partition);
  }
  if (query.job_name) where.add(" AND +job_name = ?", *query.job_name);
  if (!query.states.empty()) {
    // One state has an index in the order that is asked for, several have none.
    where.sql += (few || by_end || query.states.size() > 1 ? " AND +state IN " : " AND state IN ") +
                 placeholders(query.states.size());
    for (const StepState state : query.states) where.bind(std::string(name_of(state)));
  }
  if (query.since_s) {
    where.add(by_end ? " AND ifnull(end_s, 1e300) >= ?" : " AND +ifnull(end_s, 1e300) >= ?", *query.since_s);
  }
  if (query.until_s) {
    where.add(few || by_end ? " AND +start_s <= ?" : " AND start_s <= ?", *query.until_s);
  }
  where.sql += few || by_end ? " ORDER BY +start_s DESC, step_row DESC" : " ORDER BY start_s DESC, step_row DESC";
  where.sql += " LIMIT ?";
  where.bind(query.limit);
  return where;
}

void StepConditions::bind_to(SQLite::Statement& statement) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::visit([&](const auto& value) { statement.bind(static_cast<int>(i) + 1, value); }, values[i]);
  }
}

}  // namespace lbf::db
