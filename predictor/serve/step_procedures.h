// StepProcedures: what a step's stream says of procedures, and what was predicted of them.
//
// Place in the event's way: control records `procedure`, `procedure_remark` and kProcedure events -> *StepProcedures*
// -> db, reports. Names come while the step runs, and may come late (`--lbf-procedures=auto`). What of them is
// predicted, and the replay for it, is ProcedurePass. docs/lbfd.md, "Procedures".
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/procedure_record.h"
#include "event/event.h"
#include "event/procedure_table.h"

namespace lbf {

class StepProcedures {
 public:
  // From the record `procedure`. Errors: as ProcedureTable::define.
  Result<void> define(Rank rank, std::uint64_t own, std::string_view name);
  // From the record `procedure_remark`; `kind` is refused, note or off.
  void remark(Rank rank, std::string_view kind, std::string_view name, std::string_view text);
  void take_events(Rank rank, std::span<const Event> events);

  // Nothing was asked for, or nothing was said of it yet.
  bool empty() const { return totals_.empty() && remarks_.empty(); }
  const std::vector<std::string>& names() const { return table_.names(); }
  // The numbers (of `names`) of those with most exclusive time so far, at most `most`, ascending. The order in which
  // they were named decides among equal ones.
  std::vector<std::uint32_t> foremost(std::size_t most) const;

  // Everything but what is predicted: those with most exclusive time first, then those that are refused.
  std::vector<db::ProcedureRecord> records() const;
  // Lines about no procedure of its own, for the step's notes.
  std::vector<std::string> notes() const;

 private:
  struct Total {
    std::uint64_t calls = 0;
    Seconds inclusive_s = 0;
    Seconds exclusive_s = 0;
    std::set<Rank> ranks;
  };
  struct Remark {
    std::string kind;
    std::string name;
    std::string text;
    bool operator<(const Remark& other) const;
  };
  std::vector<std::uint32_t> ranked() const;

  ProcedureTable table_;
  std::vector<Total> totals_;               // by the table's number
  std::map<Remark, std::set<Rank>> remarks_;  // by whom each was said
};

}  // namespace lbf
