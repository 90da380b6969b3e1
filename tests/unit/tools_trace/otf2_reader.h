// An OTF2 archive as the OTF2 library reads it, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lbf::trace_test {

struct Otf2Record {
  enum class Kind {
    kEnter,
    kLeave,
    kSend,
    kIsend,
    kIsendComplete,
    kIrecvRequest,
    kRecv,
    kIrecv,
    kCancelled,
    kCollectiveBegin,
    kCollectiveEnd,
    kNonblockingRequest,
    kNonblockingComplete,
  } kind;
  std::uint64_t time_ns = 0;
  std::string region;
  std::uint32_t peer = 0;  // rank in the communicator; collectives: the root
  std::uint32_t comm = 0;
  std::uint32_t tag = 0;    // collectives: the operation
  std::uint64_t bytes = 0;  // collectives: sent
  std::uint64_t received = 0;
  std::uint64_t request = 0;
};

struct Otf2Trace {
  bool read = false;  // the library read all of it
  std::map<std::uint64_t, std::vector<Otf2Record>> ranks;
  std::map<std::uint64_t, std::uint64_t> events_defined;  // by location, as its definition says
  std::map<std::uint64_t, std::string> node_of_rank;
  // World ranks; of an intercommunicator both groups.
  std::map<std::uint32_t, std::vector<std::vector<std::uint64_t>>> communicators;
  std::uint64_t length_ns = 0;
};

Otf2Trace read_otf2(const std::string& anchor);

}  // namespace lbf::trace_test
