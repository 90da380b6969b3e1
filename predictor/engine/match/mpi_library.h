// Which MPI library's decision rules a collective follows.
//
// Place in the event's way: match (collective_rules.h chooses by it). The library that ran tells its name
// through MPI_Get_library_version; a control record or the text trace's `library` line carries it here.
// Documented in docs/collectives.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lbf::engine {

enum class MpiLibrary : std::uint8_t { kOpenMpi4, kOpenMpi5, kMpich4 };
inline constexpr int kMpiLibraryCount = 3;

// The rules that come closest to a library's own.
struct MpiRules {
  MpiLibrary library = MpiLibrary::kOpenMpi4;
  bool exact = true;         // false: the library is another one, or of another version; its collectives count as
                             // approximated
  bool family_only = false;  // the capture's self-test told of which family the library is, and that is all
};

// From the text of MPI_Get_library_version ("Open MPI v4.1.4, package: ...", "MPICH Version: 4.0.2 ...").
// Exact for Open MPI 4.1.x and 5.0.x and MPICH 4.0.x. Other versions of Open MPI and MPICH, and libraries
// that are derived from MPICH, get the nearest rules, and so do those of a family by self-test (base/library_name.h);
// everything else Open MPI 4.1's.
MpiRules mpi_rules_of(std::string_view library_version);

// "openmpi-4.1", "openmpi-5.0", "mpich-4.0": what commands take and print.
const char* mpi_library_name(MpiLibrary library);
std::optional<MpiLibrary> mpi_library_named(std::string_view name);

// What the library knew when it chose its algorithms.
struct MpiSetup {
  MpiRules rules;
  // Node of each rank of the world, where the library goes by it. Empty: not known; every rank is taken to be
  // on a node of its own, where the libraries send straight from rank to rank.
  std::vector<std::uint32_t> node_of_rank;
};

// Of a run that `library_version` (empty: not known, Open MPI 4.1 is taken) and `node_of_rank` are known of.
MpiSetup mpi_setup(std::string_view library_version, std::vector<std::uint32_t> node_of_rank);

// One line for people when the rules are not those of the library that ran; empty when they are.
std::string mpi_rules_note(const MpiRules& rules, std::string_view library_version);

}  // namespace lbf::engine
