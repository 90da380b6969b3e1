// Procedure names: what a user may write for a symbol, and which symbols he means.
//
// Place in the event's way: `--lbf-procedures=F,G` -> *procedure names* -> symbols -> patch. Pure text.
// docs/procedures.md, "Names".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lbf::procedures {

// All the ways to write one symbol. `linkage` is the name in the symbol table.
struct Spellings {
  std::string display;           // for people: C++ with parameters, Fortran as module::procedure
  std::vector<std::string> all;  // display among them; without parameters, without template arguments ...
  bool fortran = false;          // upper and lower case are the same
  // Of a copy that the compiler made ("f.constprop.0"): what kind. "part", "cold": a piece of the procedure
  // only.
  std::string clone;
};
Spellings spellings_of(std::string_view linkage);

// One item of the list.
struct NamePattern {
  std::string text;    // as it was written
  std::string module;  // "libfoo.so" of "libfoo.so:sym"; empty: any
  std::string name;
  bool wildcards = false;  // ?, or * outside of brackets, where it is no pointer's
};
// Commas inside (), <> and [] are part of a name.
std::vector<NamePattern> parse_patterns(std::string_view list);

bool matches(const NamePattern& pattern, const Spellings& spellings);
// Whether a file ("/usr/lib/libfoo.so.1.2") is the pattern's module: the name of the file, or its beginning
// up to a dot or a dash; wildcards.
bool matches_module(const NamePattern& pattern, std::string_view file);
// * any characters, ? one; nothing else is special ("operator[]").
bool glob(std::string_view pattern, std::string_view text);

// The most similar of `candidates` (no doubles), best first: edit distance (with swaps of neighbours), names
// without their qualification too, at most a third of the name away.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& candidates,
                                    std::size_t most = 3);
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t give_up_above);

// Why this symbol is never measured; nullptr: it may be.
const char* never_measured(std::string_view linkage);

}  // namespace lbf::procedures
