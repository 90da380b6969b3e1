// What the global definitions of an OTF2 archive say: ranks and their locations, regions, communicators, windows,
// clock. No file but the import needs it.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/mpi_function_table.h"

namespace lbf::tools::otf2 {

// Whose habits an archive has where the format leaves a choice (docs/formats/interchange.md, "OTF2, reading").
enum class Writer : std::uint8_t { kScoreP, kLbf, kEztrace, kOther };

enum class RegionKind : std::uint8_t {
  kWork,     // its time is process time
  kCall,     // an MPI function
  kOff,      // off the processor: file I/O, what the export calls blocked
  kBarrier,  // a thread waits for its team
  kEnd,      // nothing of the program comes after its beginning
};
struct Region {
  std::string name;
  RegionKind kind = RegionKind::kWork;
  const MpiFunction* function = nullptr;  // nullptr: not in the table
};

// A communicator, or a window on one.
struct Communicator {
  std::uint32_t index = 0;       // Event::comm; a communicator of one rank each: of rank 0, the others' follow
  std::vector<Rank> members;     // world ranks; empty with `is_self`
  std::vector<Rank> remote;      // of an intercommunicator: the other group
  bool is_self = false;          // each rank has one of its own
  bool has_world_ranks = false;  // records name world ranks
  std::unordered_map<Rank, std::uint32_t> places;  // of members and remote, where `members` is not the whole world

  bool is_inter() const { return !remote.empty(); }
  bool in_remote(Rank rank) const;
  // Its ranks, of both groups.
  std::size_t size() const { return is_self ? 1 : members.size() + remote.size(); }
  // Ranks that `rank` talks to.
  std::size_t peers(Rank rank) const;
  // The world rank that a record of `rank` means by NUMBER; nothing: it has none.
  std::optional<Rank> peer(Rank rank, std::uint32_t number) const;
  // Of a member, in its own group; nothing: it is none.
  std::optional<std::uint32_t> place(Rank rank) const;
  std::uint32_t index_of(Rank rank) const { return is_self ? index + static_cast<std::uint32_t>(rank) : index; }
};

struct Location {
  OTF2_LocationRef ref = 0;
  Rank rank = 0;
};

class Definitions {
 public:
  // Errors: kInvalidInput, kIo; they begin with ANCHOR.
  static Result<Definitions> read(OTF2_Reader* reader, const std::string& anchor);

  Writer writer = Writer::kOther;
  std::string creator;  // as the archive says it
  Rank ranks = 0;
  std::vector<std::vector<Location>> locations;  // of each rank, that of its MPI calls first
  std::vector<std::uint32_t> node_of_rank;       // empty: not known
  std::uint64_t ticks_per_second = 1'000'000'000;
  std::uint64_t devices = 0;  // locations of accelerators, which are left out

  // nullptr: not defined.
  const Region* region(OTF2_RegionRef ref) const;
  const Region* region_of_context(OTF2_CallingContextRef ref) const;
  const Communicator* communicator(OTF2_CommRef ref) const;
  const Communicator* window(OTF2_RmaWinRef ref) const;
  // ... of which it was made.
  const Communicator* parent_of_window(OTF2_RmaWinRef ref) const;
  // World ranks of a group of ranks.
  const std::vector<Rank>* group(OTF2_GroupRef ref) const;

 private:
  friend struct Reading;
  std::unordered_map<OTF2_RegionRef, Region> regions_;
  std::unordered_map<OTF2_CallingContextRef, OTF2_RegionRef> contexts_;
  std::unordered_map<OTF2_CommRef, Communicator> communicators_;
  struct Window {
    Communicator own;
    OTF2_CommRef parent;
  };
  std::unordered_map<OTF2_RmaWinRef, Window> windows_;
  std::unordered_map<OTF2_GroupRef, std::vector<Rank>> groups_;
};

}  // namespace lbf::tools::otf2
