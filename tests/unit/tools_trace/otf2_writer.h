// Writes OTF2 archives as Score-P does, so that tests can import what no tool here makes: one location for each rank
// (and more for threads), its numbers no ranks, own definitions with a mapping of communicators and a clock offset.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lbf::trace_test {

class Otf2Writer {
 public:
  struct Options {
    std::string creator = "Score-P 8.4";
    std::vector<std::int64_t> clock_offsets_ns{};  // by rank, that the archive says; empty: none
    std::vector<std::uint32_t> node_of_rank{};     // empty: all on one
    std::uint32_t threads = 1;                     // of each rank
    bool has_locations_group = true;
    bool as_eztrace = false;  // the names of its locations; the world's group is defined twice
  };
  Otf2Writer(const std::string& folder, std::uint32_t ranks, Options options);
  explicit Otf2Writer(const std::string& folder, std::uint32_t ranks) : Otf2Writer(folder, ranks, Options{}) {}
  ~Otf2Writer();

  static OTF2_LocationRef location(std::uint32_t rank, std::uint32_t thread = 0) {
    return (std::uint64_t{thread} << 32) + 1000 + 7 * std::uint64_t{rank};
  }
  // Times are nanoseconds of the rank's own clock.
  OTF2_EvtWriter* events(std::uint32_t rank, std::uint32_t thread = 0);
  void enter(std::uint32_t rank, std::uint64_t ns, const std::string& region, std::uint32_t thread = 0);
  void leave(std::uint32_t rank, std::uint64_t ns, const std::string& region, std::uint32_t thread = 0);
  void init(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns);
  void send(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t to, std::uint32_t tag,
            std::uint64_t bytes, OTF2_CommRef comm = 0, const std::string& function = "MPI_Send");
  void recv(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t from, std::uint32_t tag,
            std::uint64_t bytes, OTF2_CommRef comm = 0);
  void collective(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns, const std::string& function,
                  OTF2_CollectiveOp op, std::uint64_t sent, std::uint64_t received,
                  std::uint32_t root = OTF2_COLLECTIVE_ROOT_NONE, OTF2_CommRef comm = 0);

  OTF2_GroupRef group(const std::vector<std::uint64_t>& ranks);
  OTF2_CommRef communicator(const std::vector<std::uint64_t>& ranks);
  OTF2_CommRef self();
  OTF2_CommRef intercommunicator(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b);
  OTF2_RmaWinRef window(OTF2_CommRef comm);

  // The anchor file.
  std::string close();

 private:
  OTF2_RegionRef region(const std::string& name);
  OTF2_StringRef string(const std::string& text);
  void write_definitions();

  std::string folder_;
  std::uint32_t ranks_;
  Options options_;
  OTF2_Archive* archive_ = nullptr;
  std::map<OTF2_LocationRef, OTF2_EvtWriter*> writers_;
  std::map<std::string, OTF2_StringRef> strings_;
  std::map<std::string, OTF2_RegionRef> regions_;
  struct Group {
    OTF2_GroupType type;
    std::vector<std::uint64_t> members;
  };
  std::vector<Group> groups_;
  struct Comm {
    OTF2_GroupRef group;
    OTF2_GroupRef remote;
  };
  std::vector<Comm> comms_;
  std::vector<OTF2_CommRef> windows_;
};

// The OTF2 library keeps memory of an archive that it cannot open, and asks for as much as a damaged byte says.
// Commands that AddressSanitizer watches overlook both.
void overlook_memory_of_otf2();

}  // namespace lbf::trace_test
