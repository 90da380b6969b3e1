// ProcedureList: which procedures all ranks of a step measure, as lbfd decides it from what all of them say.
//
// Place in the event's way, backwards: lbfd -> answer to a batch -> relay -> ring -> capture; the relay stores it as a
// control record too. docs/formats/http-v1.md, LIST; docs/procedures.md, "One list for all ranks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lbf::protocol {

inline constexpr std::size_t kMaxProcedureListBytes = 4096;  // of a list's lines(): what a ring has room for
inline constexpr std::size_t kMaxRecordNames = 512;          // procedures that one control record may name

struct ProcedureList {
  std::uint64_t generation = 0;    // a later list has a higher one; from 1
  std::vector<std::string> names;  // best first
  std::string text;                // one line for people: why these
};

// As the rings have it: a line for each name.
std::string lines_of(const ProcedureList& list);

// LIST of an answer.
nlohmann::json json_of(const ProcedureList& list);

// LIST of one of lbfd's answers. Nothing: it is none that the ranks could use. Names are printable, and lines_of() has
// at most kMaxProcedureListBytes.
std::optional<ProcedureList> procedure_list_of(const nlohmann::json& list);

}  // namespace lbf::protocol
