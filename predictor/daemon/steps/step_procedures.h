// StepProcedures: what a step's stream says of procedures, and what was predicted of them.
//
// Place in the event's way: control records `procedure`, `procedure_remark` and kProcedure events -> *StepProcedures*
// -> db, reports. Names come while the step runs, and may come late (`--lbf-procedures=auto`). What of them is
// predicted, and the replay for it, is ProcedurePass. docs/lbfd.md, "Procedures".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/procedure_record.h"
#include "event/event.h"
#include "event/procedure_table.h"
#include "event/rounds.h"

namespace lbf::daemon {

// Calls of a procedure that the user named per second of a rank's time, before anything is known of it
// (docs/procedures.md, "Predicted and observed cost"): as cost/predicted_cost.h's for MPI calls.
inline constexpr double kDefaultProcedureCallsPerS = 10'000;
inline constexpr double kDefaultProcedureCallNs = 40;  // what measuring one costs, until a rank has said it

// Of the process time of one rank, by the samples between its MPI calls.
struct SampledShare {
  std::uint32_t procedure = 0;  // ProcedurePass's number
  double inclusive = 0;
  double exclusive = 0;
};

class StepProcedures {
 public:
  // From the record `procedure`; `call_ns`: what measuring a call costs there, 0: not said. Errors: as
  // ProcedureTable::define.
  Result<void> define(Rank rank, std::uint64_t own, std::string_view name, double call_ns = 0);
  // Names beyond these are refused (kLimit).
  void set_bounds(std::size_t most_names, std::size_t most_name_bytes) {
    most_names_ = most_names;
    most_name_bytes_ = most_name_bytes;
  }
  std::size_t memory_bytes() const;
  // Calls per second of a rank that earlier runs of the program let expect, by name.
  void expect(std::map<std::string, double> calls_per_s) { history_ = std::move(calls_per_s); }
  void say_call_ns(double call_ns);
  // `auto` chose it by samples, which do not say how often it is called. All that is known before is what measured
  // calls may cost at most, a share of a rank's time: the measuring itself ends there.
  void expect_within(const std::string& name, double cost_limit);
  // The list that all ranks measure from now on: of what is not on it times end.
  void take_list(const std::vector<std::string>& names);
  // From the record `procedure_samples`.
  void take_samples(Rank rank, std::string_view name, std::uint64_t inclusive, std::uint64_t exclusive,
                    std::uint64_t of);
  // From the record `procedure_remark`; `kind` is refused, note or off.
  // `calls_per_s`: of one that was switched off, how often it was called then; 0: not said.
  void remark(Rank rank, std::string_view kind, std::string_view name, std::string_view text, double calls_per_s = 0);
  void take_events(Rank rank, std::span<const Event> events);
  // The same. REQUIRES: no procedures are among them.
  void take_rounds(Rank rank, const Rounds& rounds);

  // Share of a rank's time that measuring it costs: as observed where it was long enough, else as earlier runs say.
  // Nothing: nobody knows yet.
  std::optional<double> known_cost(const std::string& name) const;

  // Names of procedures that samples stand in for and can be predicted from; behind names(). What keeps one from being
  // predicted stands in its record's note.
  std::vector<std::string> sampled_names() const;
  // Of each rank, their numbers by ALL (names() and those behind them).
  std::map<Rank, std::vector<SampledShare>> sampled_shares(const std::vector<std::string>& all) const;

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
    std::map<Rank, Seconds> began;  // the rank's time when it was named
    std::map<Rank, Seconds> ended;  // ... when it was switched off
  };
  struct RankTime {
    Seconds all_s = 0;
    Seconds process_s = 0;
  };
  struct Samples {
    std::uint64_t inclusive = 0;
    std::uint64_t exclusive = 0;
    std::uint64_t of = 0;
  };
  struct Expected {
    double cost = 0;  // share of a rank's time
    std::string from;
  };
  // Time of the ranks that measured it, while they did.
  Seconds measured_s(const Total& total) const;
  Seconds call_s() const;  // of measuring one
  Expected expected(const std::string& name) const;
  RankTime time_of(Rank rank) const;
  RankTime& time_to_add_to(Rank rank);
  void end_on(std::uint32_t number, Rank rank);
  // It is measured by ranks that do so no more, or by single ones: a list of all ranks does not have it.
  bool is_off_list(const std::string& name) const { return listed_ && !listed_->contains(name); }
  // Why samples cannot stand in for it; empty: they can. REQUIRES: there are some.
  std::string why_not_sampled(const std::string& name) const;
  void describe_samples(db::ProcedureRecord& record) const;
  struct Remark {
    std::string kind;
    std::string name;
    std::string text;
    bool operator<(const Remark& other) const;
  };
  std::vector<std::uint32_t> ranked() const;

  std::size_t most_names_ = kMaxProcedures;
  std::size_t most_name_bytes_ = std::size_t{kMaxProcedures} * kMaxProcedureNameBytes;
  std::size_t name_bytes_ = 0;
  std::size_t entries_ = 0;  // of ranks, in the maps and sets below
  ProcedureTable table_;
  std::vector<Total> totals_;                 // by the table's number
  std::map<Remark, std::set<Rank>> remarks_;  // by whom each was said
  std::vector<RankTime> times_;               // by rank
  std::map<std::string, double> history_;
  std::map<std::string, double> within_;  // `auto`: what measured calls may cost at most
  std::map<std::string, std::map<Rank, Samples>> samples_;
  std::optional<std::set<std::string>> listed_;  // the newest list of all ranks
  std::map<std::string, double> off_rates_;      // calls per second when it was switched off
  double call_ns_ = 0;                           // the dearest that a rank said
};

}  // namespace lbf::daemon
