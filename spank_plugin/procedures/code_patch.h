// Code patch: puts the jump into a procedure's entry, and takes it out again, while the program runs.
//
// Place in the event's way: prologue -> *code patch* -> running program; the stubs call lbf_procedures_entry
// (call_hooks.S). Stubs are never freed: a thread may stand in one at any time. Memory is never writable and
// executable at once but for the page of the program's code in the moment of the write. docs/procedures.md,
// "While threads run".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "spank_plugin/procedures/code_write.h"
#include "spank_plugin/procedures/prologue.h"
#include "spank_plugin/procedures/stopped_threads.h"

namespace lbf::procedures {

// One entry that can be patched.
struct PatchSite {
  Prologue prologue;
  std::uint32_t procedure = 0;
  std::uintptr_t stub = 0;       // where the jump leads
  std::uintptr_t relocated = 0;  // the replaced instructions' copy
  std::vector<Move> moves;       // from each replaced instruction but the first to its copy
  EntryJump jump;
};

// Makes the stubs of `sites`, all in one module's code [begin, end). A site that could not be done has stub
// 0, and its reason stands in `reasons` (same index).
void make_stubs(std::vector<PatchSite*>& sites, std::uintptr_t begin, std::uintptr_t end,
                std::vector<std::string>& reasons);

// Patches what is not patched yet, all or none; threads are stopped for it where there are others. kUnavailable:
// nothing was changed; kPermission: neither, as far as the system allows what was written to be taken back.
Result<std::uint32_t> patch(std::span<PatchSite* const> sites);

// Takes jumps out. Threads need not stop where one atomic store does it, because the jump is one instruction.
Result<std::uint32_t> unpatch(std::span<PatchSite* const> sites);

}  // namespace lbf::procedures
