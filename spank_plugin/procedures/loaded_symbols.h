// Loaded symbols: the procedures of the program and of the shared objects that it has loaded.
//
// Place in the event's way: running program -> *loaded symbols* -> selection -> patch. Read with elfutils'
// libdwfl from .symtab and .dynsym, of a separate debug file where one lies under /usr/lib/debug by build id.
// Nothing is fetched over a network. docs/procedures.md, "Names".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spank_plugin/procedures/procedure_names.h"

namespace lbf::procedures {

struct LoadedModule {
  std::string file;  // path
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool executable = false;  // the program itself
  bool stripped = false;    // no .symtab, here or in a debug file
  bool system = false;      // C library, loader, compiler's run-time libraries: not where a user's procedures are
};

struct LoadedSymbol {
  std::string linkage;
  std::uintptr_t address = 0;
  std::uint64_t size = 0;
  std::uint32_t module = 0;     // index
  bool chosen_at_load = false;  // IFUNC: the address is that of the function that chooses
};

struct InlinedPlaces {
  std::uint64_t places = 0;
  std::vector<std::string> in;  // procedures that hold them, at most 3
  bool known = false;           // there was debug information to look in
};

class LoadedSymbols {
 public:
  LoadedSymbols();
  ~LoadedSymbols();
  LoadedSymbols(const LoadedSymbols&) = delete;
  LoadedSymbols& operator=(const LoadedSymbols&) = delete;

  // Reads everything that is loaded now but for what `skip` is part of the path of (lbf's own libraries).
  Result<std::size_t> read(std::string_view skip);

  const std::vector<LoadedModule>& modules() const { return modules_; }
  // Procedures only, sorted by address; several symbols may have one address.
  const std::vector<LoadedSymbol>& symbols() const { return symbols_; }
  // Linkage names that are called from here but defined nowhere.
  const std::vector<std::string>& undefined() const { return undefined_; }

  // Where the compiler has put each pattern's procedure into its callers (DW_TAG_inlined_subroutine), in the
  // program and in libraries that are not the system's. Takes a second per 100 MB of debug information.
  std::vector<InlinedPlaces> inlined_places(std::span<const NamePattern> patterns);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
  std::vector<LoadedModule> modules_;
  std::vector<LoadedSymbol> symbols_;
  std::vector<std::string> undefined_;
};

}  // namespace lbf::procedures
