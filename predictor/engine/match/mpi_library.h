// Which MPI library's decision rules a collective follows.
//
// Place in the event's way: match (collective_rules.h chooses by it). The library that ran tells its name
// through MPI_Get_library_version; a control record or the text trace's `library` line carries it here.
// Documented in docs/collectives.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.h"

namespace lbf::engine {

enum class MpiLibrary : std::uint8_t { kOpenMpi4, kOpenMpi5, kOpenMpi6, kMpich4, kMpich5 };
inline constexpr int kMpiLibraryCount = 5;
constexpr bool is_mpich(MpiLibrary library) {
  return library >= MpiLibrary::kMpich4;
}
// Open MPI's coll/han collects on the nodes first.
constexpr bool has_han(MpiLibrary library) {
  return library == MpiLibrary::kOpenMpi5 || library == MpiLibrary::kOpenMpi6;
}

// The rules that come closest to a library's own.
struct MpiRules {
  MpiLibrary library = MpiLibrary::kOpenMpi4;
  bool exact = true;         // false: the library is another one, or of another version; its collectives count as
                             // approximated
  bool family_only = false;  // the capture's self-test told of which family the library is, and that is all
};

// From the text of MPI_Get_library_version ("Open MPI v4.1.4, package: ...", "MPICH Version: 4.0.2 ...").
// Exact for Open MPI 4.1.x, 5.0.x and 6.0.x and MPICH 4.0.x and 5.0.x. Other versions of Open MPI and MPICH, and
// libraries that are derived from MPICH, get the nearest rules, and so do those of a family by self-test
// (base/library_name.h); everything else Open MPI 4.1's.
MpiRules mpi_rules_of(std::string_view library_version);

// "openmpi-4.1" ... "mpich-5.0": what commands take and print.
const char* mpi_library_name(MpiLibrary library);
std::optional<MpiLibrary> mpi_library_named(std::string_view name);
std::vector<std::string> mpi_library_names();

// What a site's or a user's settings in the run's environment make of the library's choices.
struct MpiSettings {
  // By CollectiveOp: what blocking calls are forced to, 1 more than collective::Algorithm; 0: the library chooses.
  std::array<std::uint8_t, kCollectiveOpCount> forced{};
  bool without_han = false;
  // "NAME=VALUE" of those that are modelled, and of those that are not.
  std::vector<std::string> followed{};
  std::vector<std::string> ignored{};
};
// From "NAME=VALUE" words of the environment. Names of the other family, and what has no effect on messages, are in
// neither list. The words are hostile: print them with mpi_settings_note().
MpiSettings mpi_settings(MpiLibrary library, std::span<const std::string> environment);

// What the library knew when it chose its algorithms.
struct MpiSetup {
  MpiRules rules;
  // Node of each rank of the world, where the library goes by it. Empty: not known; every rank is taken to be
  // on a node of its own, where the libraries send straight from rank to rank.
  std::vector<std::uint32_t> node_of_rank{};
  MpiSettings settings{};
  // Whether the algorithms are the library's own; else all collectives count as approximated.
  bool is_exact() const { return rules.exact && settings.ignored.empty(); }
};

// Of a run that `library_version` (empty: not known, Open MPI 4.1 is taken), `node_of_rank` and the settings in its
// environment are known of.
MpiSetup mpi_setup(std::string_view library_version, std::vector<std::uint32_t> node_of_rank,
                   std::span<const std::string> environment = {});
// The same nodes with another library, whose settings nobody has made.
void replace_library(MpiSetup& setup, MpiLibrary library);

// One line for people when the rules are not those of the library that ran; empty when they are.
std::string mpi_rules_note(const MpiRules& rules, std::string_view library_version);
// One line that names the settings; empty where there are none that matter.
std::string mpi_settings_note(const MpiSettings& settings);
// Both in one.
std::string mpi_note(const MpiSetup& setup, std::string_view library_version);

}  // namespace lbf::engine
