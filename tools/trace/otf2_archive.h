// An OTF2 archive that is being written (Open Trace Format 2, as Score-P writes and Vampir reads it): one
// location for each rank, definitions at the end. What the records mean is docs/formats/interchange.md,
// "OTF2".
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

class Otf2Archive {
 public:
  // What was made out of definitions only when the run is over.
  struct Run {
    std::uint32_t nodes = 0;
    std::span<const std::uint32_t> node_of_rank;
    std::uint64_t length_ns = 0;
  };
  static constexpr OTF2_CommRef kWorld = 0;

  // The archive appears as `folder` when it is complete (close); until then it lies beside it. Needs one open
  // file and 256 KiB for each rank. Errors: kInvalidInput where `folder` is there already and has something
  // in it, kIo, kLimit where the system allows too few open files.
  static Result<std::unique_ptr<Otf2Archive>> create(const std::string& folder, Rank ranks);
  // Without a close() nothing is left.
  ~Otf2Archive();
  Otf2Archive(const Otf2Archive&) = delete;
  Otf2Archive& operator=(const Otf2Archive&) = delete;

  // REQUIRES: 0 <= rank < ranks, before close().
  OTF2_EvtWriter* events(Rank rank) { return writers_[static_cast<std::size_t>(rank)]; }

  // The same reference for the same name.
  OTF2_RegionRef region(std::string_view name, OTF2_RegionRole role, OTF2_Paradigm paradigm);
  // Members are world ranks in rank order. `remote` is not empty: an intercommunicator.
  OTF2_CommRef communicator(std::span<const std::uint64_t> local, std::span<const std::uint64_t> remote);

  // The first error of any call that wrote; the library reports what it cannot write only there.
  Result<void> status() const;
  void check(OTF2_ErrorCode code);

  Result<void> close(const Run& run);

 private:
  struct Region {
    OTF2_StringRef name;
    OTF2_RegionRole role;
    OTF2_Paradigm paradigm;
  };
  struct CommunicatorDefinition {
    OTF2_GroupRef group;
    OTF2_GroupRef remote_group;  // OTF2_UNDEFINED_GROUP: an intracommunicator
  };

  Otf2Archive(std::string folder, Rank ranks);
  Result<void> open();
  OTF2_StringRef string(std::string_view text);
  OTF2_GroupRef group(std::span<const std::uint64_t> members);
  void write_definitions(const Run& run, std::span<const std::uint64_t> events_of_rank);
  void write_system_tree(OTF2_GlobalDefWriter* writer, const Run& run, std::span<const std::uint64_t> events_of_rank);
  void write_communicators(OTF2_GlobalDefWriter* writer);

  std::string folder_;
  std::string temporary_;  // where the archive is until it is complete; empty: nothing is there
  OTF2_Archive* archive_ = nullptr;
  std::vector<OTF2_EvtWriter*> writers_;
  std::map<std::string, OTF2_StringRef, std::less<>> strings_;
  std::map<std::string, OTF2_RegionRef, std::less<>> region_refs_;
  std::vector<Region> regions_;
  std::map<std::vector<std::uint64_t>, OTF2_GroupRef> groups_;
  std::vector<CommunicatorDefinition> communicators_;
  OTF2_ErrorCode failed_ = OTF2_SUCCESS;
};

}  // namespace lbf::tools
