// What an event is in OTF2's words: operation and sizes of a collective, members of communicators.
// docs/formats/interchange.md, "OTF2".
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "event/event.h"
#include "tools/trace/otf2_archive.h"

namespace lbf::tools {

struct Otf2Collective {
  OTF2_CollectiveOp op = OTF2_COLLECTIVE_OP_BARRIER;
  std::uint32_t root = OTF2_COLLECTIVE_ROOT_NONE;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};
// Of one rank that is `rank` in the communicator and has `peers` ranks to talk to (its size;
// intercommunicator: of the other group). Nothing for neighbour collectives: OTF2 has no word for them.
std::optional<Otf2Collective> otf2_collective(const Event& event, std::uint32_t rank, std::uint32_t peers);

OTF2_RegionRole otf2_role(const Event& event);

// The trace's communicators as the archive's.
class Otf2Communicators {
 public:
  // Where a world rank is in a communicator.
  struct Place {
    std::uint32_t rank = OTF2_UNDEFINED_UINT32;  // in its group
    std::uint32_t peers = 0;                     // ranks of the group that it talks to
  };
  Otf2Communicators(Otf2Archive& archive, Rank ranks) : archive_(archive), world_ranks_(ranks) {}

  // A kCommCreate event; the first of each communicator counts.
  void define(const Event& event);
  OTF2_CommRef ref(std::uint32_t comm) const;
  Place place(std::uint32_t comm, Rank world_rank) const;

 private:
  struct Member {
    std::uint64_t world_rank;
    Place place;
  };
  using Members = std::vector<Member>;  // by world rank
  struct WrittenCommunicator {
    OTF2_CommRef ref = OTF2_UNDEFINED_COMM;
    std::shared_ptr<const Members> members;
  };

  Otf2Archive& archive_;
  Rank world_ranks_;
  std::vector<WrittenCommunicator> communicators_;  // by Event::comm
  // Duplicates share their members: size of the local group, then all ranks.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const Members>> known_;
};

}  // namespace lbf::tools
