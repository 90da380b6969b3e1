// Prologue: whether the first instructions of a procedure can make room for a jump, and the same instructions
// for another address.
//
// Place in the event's way: symbols -> *prologue* -> code patch. Pure: bytes in, bytes out; nothing is
// executed or written. Decoding is Zydis's. docs/procedures.md, "What is patched".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lbf::procedures {

inline constexpr std::size_t kJumpBytes = 5;  // jmp rel32

// A procedure's code as it stands in memory. `code` may go on behind the procedure's end (`size`), where
// nothing but padding is known to be needed; addresses are those of the running program.
struct CodePiece {
  std::uint64_t address = 0;
  std::span<const std::uint8_t> code;
};
struct ProcedureCode {
  std::uint64_t address = 0;
  std::size_t size = 0;
  std::span<const std::uint8_t> code;
  // Entries of other symbols inside or right behind, as offsets from `address`, sorted.
  std::span<const std::uint64_t> other_entries{};
  std::span<const CodePiece> pieces{};  // of the same procedure elsewhere ("f.cold")
};

// What a jump at `address` replaces.
struct Prologue {
  std::uint64_t address = 0;           // behind an endbr64, which stays
  std::vector<std::uint8_t> replaced;  // whole instructions, at least kJumpBytes (or with padding)
  std::vector<std::uint8_t> starts;    // offsets of the instructions in `replaced`
  bool loops_to_entry = false;         // the procedure jumps to its own entry
};

// An error's message says why not, as the end of a sentence "F cannot be measured: ...".
Result<Prologue> plan_prologue(const ProcedureCode& procedure);

// The bytes behind the first one that a jump there replaces.
struct PatchedRange {
  std::uint64_t first = 0;  // where the patched procedure's jump is
  std::uint64_t last = 0;   // behind what it replaces
  bool is_target = false;   // some code jumps in between
};
// Marks the ranges (sorted by `first`, not overlapping) that a 32-bit jump or call in `code` leads into:
// assembly jumps across procedures (the C library's memcpy family). Looks at every byte, so that it needs no
// symbols; a constant that looks like such a jump is taken for one.
void mark_jump_targets(std::span<const std::uint8_t> code, std::uint64_t address, std::span<PatchedRange> ranges);
// The same for jumps of any size in one procedure's instructions, as far as they can be decoded.
void mark_short_jump_targets(std::span<const std::uint8_t> code, std::uint64_t address, std::span<PatchedRange> ranges);

struct RelocatedPrologue {
  std::vector<std::uint8_t> bytes;    // ends with a jump to behind the replaced bytes, where that is reached
  std::vector<std::uint16_t> starts;  // offset in `bytes` of each instruction of Prologue::starts
};
// The replaced instructions as they have to stand at `target` to do the same. kLimit: something is out of
// reach from there.
Result<RelocatedPrologue> relocate(const Prologue& prologue, std::uint64_t target);

// jmp rel32 at `from`. kLimit: out of reach.
Result<std::vector<std::uint8_t>> jump(std::uint64_t from, std::uint64_t to);

}  // namespace lbf::procedures
