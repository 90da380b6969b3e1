#include "tests/unit/tools_trace/otf2_writer.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace lbf::trace_test {
namespace {

OTF2_FlushType flush_when_full(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) {
  return OTF2_FLUSH;
}

}  // namespace

void overlook_memory_of_otf2() {
  ::setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1", 1);
}

Otf2Writer::Otf2Writer(const std::string& folder, std::uint32_t ranks, Options options)
    : folder_(folder), ranks_(ranks), options_(std::move(options)) {
  string("");
  archive_ = OTF2_Archive_Open(folder.c_str(), "traces", OTF2_FILEMODE_WRITE, 1 << 18, 1 << 20, OTF2_SUBSTRATE_POSIX,
                               OTF2_COMPRESSION_NONE);
  static constexpr OTF2_FlushCallbacks kFlush{flush_when_full, nullptr};
  OTF2_Archive_SetFlushCallbacks(archive_, &kFlush, nullptr);
  OTF2_Archive_SetSerialCollectiveCallbacks(archive_);
  if (!options_.creator.empty()) OTF2_Archive_SetCreator(archive_, options_.creator.c_str());
  OTF2_Archive_OpenEvtFiles(archive_);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t thread = 0; thread < options_.threads; ++thread)
      writers_[location(rank, thread)] = OTF2_Archive_GetEvtWriter(archive_, location(rank, thread));
  }
  std::vector<std::uint64_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  communicator(all);
}

Otf2Writer::~Otf2Writer() {
  if (archive_ != nullptr) OTF2_Archive_Close(archive_);
}

OTF2_EvtWriter* Otf2Writer::events(std::uint32_t rank, std::uint32_t thread) {
  return writers_.at(location(rank, thread));
}
OTF2_StringRef Otf2Writer::string(const std::string& text) {
  return strings_.try_emplace(text, static_cast<OTF2_StringRef>(strings_.size())).first->second;
}
OTF2_RegionRef Otf2Writer::region(const std::string& name) {
  string(name);
  return regions_.try_emplace(name, static_cast<OTF2_RegionRef>(regions_.size())).first->second;
}

void Otf2Writer::enter(std::uint32_t rank, std::uint64_t ns, const std::string& name, std::uint32_t thread) {
  OTF2_EvtWriter_Enter(events(rank, thread), nullptr, ns, region(name));
}
void Otf2Writer::leave(std::uint32_t rank, std::uint64_t ns, const std::string& name, std::uint32_t thread) {
  OTF2_EvtWriter_Leave(events(rank, thread), nullptr, ns, region(name));
}
void Otf2Writer::init(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns) {
  enter(rank, begin_ns, "MPI_Init");
  leave(rank, end_ns, "MPI_Init");
}
void Otf2Writer::send(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t to,
                      std::uint32_t tag, std::uint64_t bytes, OTF2_CommRef comm, const std::string& function) {
  enter(rank, begin_ns, function);
  OTF2_EvtWriter_MpiSend(events(rank), nullptr, begin_ns, to, comm, tag, bytes);
  leave(rank, end_ns, function);
}
void Otf2Writer::recv(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t from,
                      std::uint32_t tag, std::uint64_t bytes, OTF2_CommRef comm) {
  enter(rank, begin_ns, "MPI_Recv");
  OTF2_EvtWriter_MpiRecv(events(rank), nullptr, end_ns, from, comm, tag, bytes);
  leave(rank, end_ns, "MPI_Recv");
}
void Otf2Writer::collective(std::uint32_t rank, std::uint64_t begin_ns, std::uint64_t end_ns,
                            const std::string& function, OTF2_CollectiveOp op, std::uint64_t sent,
                            std::uint64_t received, std::uint32_t root, OTF2_CommRef comm) {
  enter(rank, begin_ns, function);
  OTF2_EvtWriter_MpiCollectiveBegin(events(rank), nullptr, begin_ns);
  OTF2_EvtWriter_MpiCollectiveEnd(events(rank), nullptr, end_ns, op, comm, root, sent, received);
  leave(rank, end_ns, function);
}

OTF2_GroupRef Otf2Writer::group(const std::vector<std::uint64_t>& ranks) {
  groups_.push_back({OTF2_GROUP_TYPE_COMM_GROUP, ranks});
  return static_cast<OTF2_GroupRef>(groups_.size());  // group 0 is that of the locations
}
OTF2_CommRef Otf2Writer::communicator(const std::vector<std::uint64_t>& ranks) {
  comms_.push_back({group(ranks), OTF2_UNDEFINED_GROUP});
  return static_cast<OTF2_CommRef>(comms_.size() - 1);
}
OTF2_CommRef Otf2Writer::self() {
  groups_.push_back({OTF2_GROUP_TYPE_COMM_SELF, {}});
  comms_.push_back({static_cast<OTF2_GroupRef>(groups_.size()), OTF2_UNDEFINED_GROUP});
  return static_cast<OTF2_CommRef>(comms_.size() - 1);
}
OTF2_CommRef Otf2Writer::intercommunicator(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  comms_.push_back({group(a), group(b)});
  return static_cast<OTF2_CommRef>(comms_.size() - 1);
}
OTF2_RmaWinRef Otf2Writer::window(OTF2_CommRef comm) {
  windows_.push_back(comm);
  return static_cast<OTF2_RmaWinRef>(windows_.size() - 1);
}

void Otf2Writer::write_definitions() {
  OTF2_GlobalDefWriter* writer = OTF2_Archive_GetGlobalDefWriter(archive_);
  OTF2_GlobalDefWriter_WriteClockProperties(writer, 1'000'000'000, 0, 1'000'000'000, OTF2_UNDEFINED_TIMESTAMP);
  const std::uint32_t nodes = options_.node_of_rank.empty()
                                  ? 1
                                  : 1 + *std::max_element(options_.node_of_rank.begin(), options_.node_of_rank.end());
  for (const char* text : {"machine", "node", "MPI_COMM_WORLD", "MPI", "thread"}) string(text);
  const auto name_of_thread = [this](std::uint32_t rank, std::uint32_t thread) {
    return options_.as_eztrace ? "P#" + std::to_string(rank) + "T#" + std::to_string(thread) : "thread";
  };
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    for (std::uint32_t thread = 0; thread < options_.threads; ++thread) string(name_of_thread(rank, thread));
  for (const auto& [text, ref] : strings_) OTF2_GlobalDefWriter_WriteString(writer, ref, text.c_str());
  OTF2_GlobalDefWriter_WriteParadigm(writer, OTF2_PARADIGM_MPI, string("MPI"), OTF2_PARADIGM_CLASS_PROCESS);
  OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, 0, string("machine"), string("machine"),
                                           OTF2_UNDEFINED_SYSTEM_TREE_NODE);
  for (std::uint32_t node = 0; node < nodes; ++node)
    OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, node + 1, string("node"), string("node"), 0);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t node = options_.node_of_rank.empty() ? 0 : options_.node_of_rank[rank];
    OTF2_GlobalDefWriter_WriteLocationGroup(writer, rank, string("thread"), OTF2_LOCATION_GROUP_TYPE_PROCESS, node + 1,
                                            OTF2_UNDEFINED_LOCATION_GROUP);
    for (std::uint32_t thread = 0; thread < options_.threads; ++thread) {
      OTF2_GlobalDefWriter_WriteLocation(writer, location(rank, thread), string(name_of_thread(rank, thread)),
                                         OTF2_LOCATION_TYPE_CPU_THREAD, 2, rank);
    }
  }
  for (const auto& [name, ref] : regions_) {
    const bool is_barrier = name.starts_with("!$omp implicit barrier");
    OTF2_GlobalDefWriter_WriteRegion(writer, ref, string(name), string(name), string(""),
                                     is_barrier ? OTF2_REGION_ROLE_IMPLICIT_BARRIER : OTF2_REGION_ROLE_FUNCTION,
                                     name.starts_with("MPI_") ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_COMPILER,
                                     OTF2_REGION_FLAG_NONE, string(""), 0, 0);
  }
  if (options_.has_locations_group) {
    std::vector<std::uint64_t> locations;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) locations.push_back(location(rank));
    OTF2_GlobalDefWriter_WriteGroup(writer, options_.as_eztrace ? 1 : 0, string(""), OTF2_GROUP_TYPE_COMM_LOCATIONS,
                                    OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, ranks_, locations.data());
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    OTF2_GlobalDefWriter_WriteGroup(writer, static_cast<OTF2_GroupRef>(i + 1), string(""), groups_[i].type,
                                    OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                    static_cast<std::uint32_t>(groups_[i].members.size()), groups_[i].members.data());
  }
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    const auto ref = static_cast<OTF2_CommRef>(i);
    if (comms_[i].remote == OTF2_UNDEFINED_GROUP) {
      OTF2_GlobalDefWriter_WriteComm(writer, ref, string(i == 0 ? "MPI_COMM_WORLD" : ""), comms_[i].group,
                                     i == 0 ? OTF2_UNDEFINED_COMM : 0, OTF2_COMM_FLAG_NONE);
    } else {
      OTF2_GlobalDefWriter_WriteInterComm(writer, ref, string(""), comms_[i].group, comms_[i].remote, 0,
                                          OTF2_COMM_FLAG_NONE);
    }
  }
  for (std::size_t i = 0; i < windows_.size(); ++i)
    OTF2_GlobalDefWriter_WriteRmaWin(writer, static_cast<OTF2_RmaWinRef>(i), string(""), windows_[i],
                                     OTF2_RMA_WIN_FLAG_NONE);
  OTF2_Archive_CloseGlobalDefWriter(archive_, writer);
}

std::string Otf2Writer::close() {
  for (const auto& [ref, writer] : writers_) OTF2_Archive_CloseEvtWriter(archive_, writer);
  OTF2_Archive_CloseEvtFiles(archive_);
  OTF2_Archive_OpenDefFiles(archive_);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    for (std::uint32_t thread = 0; thread < options_.threads; ++thread) {
      OTF2_DefWriter* own = OTF2_Archive_GetDefWriter(archive_, location(rank, thread));
      if (!options_.clock_offsets_ns.empty()) {
        OTF2_DefWriter_WriteClockOffset(own, 0, options_.clock_offsets_ns[rank], 0.0);
        OTF2_DefWriter_WriteClockOffset(own, 1'000'000'000'000, options_.clock_offsets_ns[rank], 0.0);
      }
      OTF2_Archive_CloseDefWriter(archive_, own);
    }
  }
  OTF2_Archive_CloseDefFiles(archive_);
  write_definitions();
  OTF2_Archive_Close(archive_);
  archive_ = nullptr;
  return folder_ + "/traces.otf2";
}

}  // namespace lbf::trace_test
