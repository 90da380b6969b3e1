// A procedure of a step, and the longest path through the step: PROCEDURES of docs/formats/http-v1.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "protocol/field.h"

namespace lbf::protocol {

template <Side kSide>
struct MeasuredProcedureFields {
  std::string name;
  // measured; off: until it was switched off; refused: not at all
  std::string state = kSide == Side::kLbfd ? "measured" : "";
  std::string note;                     // why; what else is to be known
  Known<kSide, std::uint32_t> ranks{};  // that measured it
  Known<kSide, std::uint64_t> calls{};  // of all ranks, as the times
  Known<kSide, Seconds> inclusive_s{};
  Known<kSide, Seconds> exclusive_s{};
  // On the configuration that ran. Nothing: not predicted (yet), or off.
  std::optional<Seconds> critical_path_s;  // exclusive
  std::optional<Seconds> receiver_s;       // predicted run time if it ran in the receiver of each message
  std::optional<Seconds> sender_s;
  std::optional<Seconds> zeroed_s;           // Critical Path Zeroing
  std::optional<Seconds> stayed_receiver_s;  // of its time, what had no message to go with
  std::optional<Seconds> stayed_sender_s;
  std::string predicted_from;         // history, limit (at most so much), default; empty: its cost was not predicted
  std::optional<double> calls_per_s;  // of a rank, observed; the next run's history
  // Of what is not measured, or no more: its time as statistical samples say, with its 95 % interval. What is predicted
  // of such a procedure is predicted from these.
  Known<kSide, std::uint64_t> samples{};
  std::optional<Seconds> sampled_s;
  std::optional<Seconds> sampled_low_s;
  std::optional<Seconds> sampled_high_s;
};

// What measuring it costs, of the time of the ranks that do, while they do (docs/procedures.md, "Predicted and observed
// cost").
template <Side kSide>
struct ProcedureFields : MeasuredProcedureFields<kSide> {
  std::optional<double> predicted_cost_percent;  // before it was patched
  std::optional<double> observed_cost_percent;
};

template <>
struct ProcedureFields<Side::kLbfd> : MeasuredProcedureFields<Side::kLbfd> {
  std::optional<double> predicted_cost;  // shares
  std::optional<double> observed_cost;

  std::optional<double> predicted_cost_percent() const { return percent_of(predicted_cost); }
  std::optional<double> observed_cost_percent() const { return percent_of(observed_cost); }

 private:
  static std::optional<double> percent_of(const std::optional<double>& share) {
    return share ? std::optional(100 * *share) : std::nullopt;
  }
};

// In the order of the document.
template <Side kSide>
inline constexpr auto kProcedureTable = [] {
  using P = ProcedureFields<kSide>;
  // clang-format off
  constexpr auto fields = std::tuple{
      Field{&P::name, "name", "name", Unit::kNone, kNoColumn, ""},
      Field{&P::state, "state", "state", Unit::kNone, kNoColumn, "`measured`, `off` or `refused`. *off*: measured until it was switched off; nothing is predicted of it, unless from samples"},
      Field{&P::note, "note", "note", Unit::kNone, kNoColumn, "why; what else is to be known"},
      Field{&P::ranks, "ranks", "ranks", Unit::kCount, kNoColumn, "how many ranks measured it; calls and times are of all ranks together"},
      Field{&P::calls, "calls", "calls", Unit::kCount, kNoColumn, ""},
      Field{&P::inclusive_s, "inclusive_s", "inclusive_s", Unit::kSeconds, kNoColumn, "with the procedures that it calls"},
      Field{&P::exclusive_s, "exclusive_s", "exclusive_s", Unit::kSeconds, kNoColumn, "without other measured procedures"},
      Field{&P::critical_path_s, "critical_path_s", "critical_path_s", Unit::kSeconds, kNoColumn, "exclusive; null: not predicted"},
      Field{&P::receiver_s, "receiver_s", "receiver_s", Unit::kSeconds, kNoColumn, "predicted run time of the configuration that ran if the procedure ran in the receiver of its messages (procedures.md); compare with `as_it_ran_s`; null: not predicted"},
      Field{&P::sender_s, "sender_s", "sender_s", Unit::kSeconds, kNoColumn, "the same in the sender of its messages"},
      Field{&P::zeroed_s, "zeroed_s", "zeroed_s", Unit::kSeconds, kNoColumn, "the same if it took no time"},
      Field{&P::stayed_receiver_s, "stayed_receiver_s", "stayed_receiver_s", Unit::kSeconds, kNoColumn, "of `receiver_s`: its time that had no message to go with"},
      Field{&P::stayed_sender_s, "stayed_sender_s", "stayed_sender_s", Unit::kSeconds, kNoColumn, "the same of `sender_s`"},
      Field{&P::predicted_cost_percent, "predicted_cost_percent", kNotStored, Unit::kPercent, kNoColumn, "of the ranks' time, before it was patched"},
      Field{&P::predicted_from, "predicted_from", "predicted_from", Unit::kNone, kNoColumn, "`history`, `limit` (at most so much) or `default`; \"\": not predicted"},
      Field{&P::observed_cost_percent, "observed_cost_percent", kNotStored, Unit::kPercent, kNoColumn, "of the ranks' time"},
      Field{&P::calls_per_s, "calls_per_s", "calls_per_s", Unit::kNone, kNoColumn, "of a rank"},
      Field{&P::samples, "samples", "samples", Unit::kCount, kNoColumn, ""},
      Field{&P::sampled_s, "sampled_s", "sampled_s", Unit::kSeconds, kNoColumn, "its time as samples say; what is predicted of it rests on them"},
      Field{&P::sampled_low_s, "sampled_low_s", "sampled_low_s", Unit::kSeconds, kNoColumn, "with `sampled_high_s` the 95 % interval of `sampled_s`"},
      Field{&P::sampled_high_s, "sampled_high_s", "sampled_high_s", Unit::kSeconds, kNoColumn, "likewise"},
  };
  if constexpr (kSide == Side::kReader) {
    return fields;
  } else {
    return std::tuple_cat(fields, std::tuple{
      Field{&P::predicted_cost, kNoKey, "predicted_cost", Unit::kShare, kNoColumn, ""},
      Field{&P::observed_cost, kNoKey, "observed_cost", Unit::kShare, kNoColumn, ""},
    });
  }
  // clang-format on
}();

// Without the ranks and functions on it.
struct CriticalPathFields {
  Seconds as_it_ran_s = 0;  // predicted run time of the configuration that ran, without any change
  Seconds length_s = 0;
  Rank ends_at = 0;
  Seconds other_work_s = 0;  // process time in none of the procedures
  Seconds mpi_s = 0;
  Seconds blocked_s = 0;
  Seconds unseen_s = 0;  // between capture windows
  bool partial = false;  // the times are those of a part of the run
};

// The database has it as the same JSON.
inline constexpr auto kCriticalPathTable = [] {
  using P = CriticalPathFields;
  // clang-format off
  return std::tuple{
      Field{&P::as_it_ran_s, "as_it_ran_s", kNotStored, Unit::kSeconds, kNoColumn, "predicted run time of the configuration that ran, without any change"},
      Field{&P::length_s, "length_s", kNotStored, Unit::kSeconds, kNoColumn, ""},
      Field{&P::ends_at, "ends_at", kNotStored, Unit::kNone, kNoColumn, "rank"},
      Field{&P::other_work_s, "other_work_s", kNotStored, Unit::kSeconds, kNoColumn, "process time in none of the procedures"},
      Field{&P::mpi_s, "mpi_s", kNotStored, Unit::kSeconds, kNoColumn, ""},
      Field{&P::blocked_s, "blocked_s", kNotStored, Unit::kSeconds, kNoColumn, ""},
      Field{&P::unseen_s, "unseen_s", kNotStored, Unit::kSeconds, kNoColumn, "of its length, what lies between capture windows"},
      Field{&P::partial, "partial", kNotStored, Unit::kNone, kNoColumn, "of a part of the run"},
  };
  // clang-format on
}();

}  // namespace lbf::protocol
