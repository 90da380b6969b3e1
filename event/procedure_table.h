// ProcedureTable: the procedures of a trace, by name and by number.
//
// On the wire each rank numbers its procedures itself and names them in control records (docs/formats/wire-v1.md,
// "Procedures"); here name -> dense number of the trace, in the order in which names came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace lbf {

inline constexpr std::size_t kMaxProcedureNameBytes = 4096;
inline constexpr std::uint32_t kMaxProcedures = 65536;  // of a trace, and of a rank

class ProcedureTable {
 public:
  // The procedure's number; a new name gets the next one. kNoProcedure: there are kMaxProcedures already.
  static constexpr std::uint32_t kNoProcedure = ~std::uint32_t{0};
  std::uint32_t number_of(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }

  // From a control record: `rank` calls the procedure `own`. Errors: a number of 2^16 or more, an empty or too long
  // name, a number that the rank has given to another name, too many procedures.
  Result<void> define(Rank rank, std::uint64_t own, std::string_view name);
  // The trace's number of the rank's procedure; nothing: it was not named.
  std::optional<std::uint32_t> translate(Rank rank, std::uint64_t own) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> number_of_name_;
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_own_;  // rank << 16 | own
};

// Does the event say something about a procedure?
constexpr bool is_procedure_event(EventKind kind) {
  return kind == EventKind::kEnter || kind == EventKind::kLeave || kind == EventKind::kProcedure;
}

}  // namespace lbf
