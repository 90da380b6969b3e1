#include "event/procedure_table.h"

namespace lbf {
namespace {

std::uint64_t key_of(Rank rank, std::uint64_t own) {
  return static_cast<std::uint64_t>(rank) << 16 | own;
}

}  // namespace

std::uint32_t ProcedureTable::number_of(std::string_view name) {
  if (const auto found = number_of_name_.find(std::string(name)); found != number_of_name_.end()) {
    return found->second;
  }
  if (names_.size() == kMaxProcedures) return kNoProcedure;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  number_of_name_.emplace(names_.back(), number);
  return number;
}

std::optional<std::uint32_t> ProcedureTable::find(std::string_view name) const {
  const auto found = number_of_name_.find(std::string(name));
  if (found == number_of_name_.end()) return std::nullopt;
  return found->second;
}

Result<void> ProcedureTable::define(Rank rank, std::uint64_t own, std::string_view name) {
  const std::string whose = "procedure " + std::to_string(own) + " of rank " + std::to_string(rank);
  if (own >= kMaxProcedures) return invalid_input(whose + ": numbers go up to 65535");
  if (name.empty() || name.size() > kMaxProcedureNameBytes) {
    return invalid_input(whose + ": its name must have 1 to 4096 bytes");
  }
  const std::uint32_t number = number_of(name);
  if (number == kNoProcedure) return invalid_input(whose + ": the trace has 65536 procedures already");
  const auto [found, is_new] = number_of_own_.emplace(key_of(rank, own), number);
  if (!is_new && found->second != number) {
    return invalid_input(whose + " is named twice: " + names_[found->second] + " and " + std::string(name));
  }
  return {};
}

std::optional<std::uint32_t> ProcedureTable::translate(Rank rank, std::uint64_t own) const {
  if (own >= kMaxProcedures) return std::nullopt;
  const auto found = number_of_own_.find(key_of(rank, own));
  if (found == number_of_own_.end()) return std::nullopt;
  return found->second;
}

}  // namespace lbf
