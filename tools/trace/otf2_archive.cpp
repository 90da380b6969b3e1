#include "tools/trace/otf2_archive.h"

#include <unistd.h>

#include <cstdarg>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "tools/support/open_files.h"

namespace lbf::tools {
namespace {

constexpr const char* kAnchor = "traces";  // traces.otf2, as Score-P names it
constexpr std::uint64_t kTicksPerSecond = 1'000'000'000;
constexpr OTF2_GroupRef kLocations = 0;  // the group that all others count their members in
constexpr std::size_t kOtherFiles = 64;

OTF2_FlushType flush_when_full(void* /*user*/, OTF2_FileType /*type*/, OTF2_LocationRef /*location*/, void* /*caller*/,
                               bool /*last*/) {
  return OTF2_FLUSH;
}

// The library would print each error to stderr; they are kept and told by status().
OTF2_ErrorCode keep_quiet(void* /*user*/, const char* /*file*/, std::uint64_t /*line*/, const char* /*function*/,
                          OTF2_ErrorCode code, const char* /*format*/, std::va_list /*arguments*/) {
  return code;
}

std::vector<std::uint64_t> all_of(std::size_t ranks) {
  std::vector<std::uint64_t> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  return members;
}

}  // namespace

Otf2Archive::Otf2Archive(std::string folder, Rank ranks)
    : folder_(std::move(folder)), writers_(static_cast<std::size_t>(ranks), nullptr) {
  string("");
  communicator(all_of(writers_.size()), {});
}

Result<std::unique_ptr<Otf2Archive>> Otf2Archive::create(const std::string& folder, Rank ranks) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) &&
      !(std::filesystem::is_directory(folder, error) && std::filesystem::is_empty(folder, error))) {
    return invalid_input(folder + " is there already: name a new folder, or an empty one");
  }
  // Every location's file stays open.
  if (Result<void> allowed =
          allow_open_files(static_cast<std::size_t>(ranks) + kOtherFiles, "an OTF2 archive of so many ranks");
      !allowed)
    return allowed.error();
  std::unique_ptr<Otf2Archive> made(new Otf2Archive(folder, ranks));
  if (Result<void> opened = made->open(); !opened) return opened.error();
  return made;
}

Result<void> Otf2Archive::open() {
  std::string plain = folder_;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  const std::string beside = plain + ".new-" + std::to_string(::getpid());
  std::error_code error;
  if (!std::filesystem::create_directory(beside, error)) {
    return Error{ErrorCode::kIo, folder_ + ": cannot be made: " + error.message()};
  }
  temporary_ = beside;
  OTF2_Error_RegisterCallback(keep_quiet, nullptr);
  archive_ = OTF2_Archive_Open(temporary_.c_str(), kAnchor, OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_MIN,
                               OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (archive_ == nullptr) return Error{ErrorCode::kIo, folder_ + ": OTF2 cannot make an archive there"};
  static constexpr OTF2_FlushCallbacks kFlush{flush_when_full, nullptr};
  check(OTF2_Archive_SetFlushCallbacks(archive_, &kFlush, nullptr));
  check(OTF2_Archive_SetSerialCollectiveCallbacks(archive_));
  check(OTF2_Archive_SetCreator(archive_, "lbf-trace"));
  check(OTF2_Archive_SetDescription(archive_, "a predicted run"));
  check(OTF2_Archive_OpenEvtFiles(archive_));
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) {
    writers_[rank] = OTF2_Archive_GetEvtWriter(archive_, rank);
    if (writers_[rank] == nullptr)
      return Error{ErrorCode::kIo, folder_ + ": OTF2 cannot write rank " + std::to_string(rank)};
  }
  return status();
}

Otf2Archive::~Otf2Archive() {
  if (archive_ != nullptr) OTF2_Archive_Close(archive_);
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

void Otf2Archive::check(OTF2_ErrorCode code) {
  if (failed_ == OTF2_SUCCESS) failed_ = code;
}

Result<void> Otf2Archive::status() const {
  if (failed_ == OTF2_SUCCESS) return {};
  return Error{ErrorCode::kIo,
               folder_ + ": cannot be written: " + OTF2_Error_GetDescription(failed_) + "; is the disk full?"};
}

OTF2_StringRef Otf2Archive::string(std::string_view text) {
  return strings_.try_emplace(std::string(text), static_cast<OTF2_StringRef>(strings_.size())).first->second;
}

OTF2_RegionRef Otf2Archive::region(std::string_view name, OTF2_RegionRole role, OTF2_Paradigm paradigm) {
  if (const auto known = region_refs_.find(name); known != region_refs_.end()) return known->second;
  const auto made = static_cast<OTF2_RegionRef>(regions_.size());
  region_refs_.emplace(name, made);
  regions_.push_back({string(name), role, paradigm});
  return made;
}

OTF2_GroupRef Otf2Archive::group(std::span<const std::uint64_t> members) {
  // Group 0 is that of the locations.
  const auto next = static_cast<OTF2_GroupRef>(groups_.size() + 1);
  return groups_.try_emplace({members.begin(), members.end()}, next).first->second;
}

OTF2_CommRef Otf2Archive::communicator(std::span<const std::uint64_t> local, std::span<const std::uint64_t> remote) {
  const OTF2_GroupRef mine = group(local);
  communicators_.push_back({mine, remote.empty() ? OTF2_UNDEFINED_GROUP : group(remote)});
  return static_cast<OTF2_CommRef>(communicators_.size() - 1);
}

Result<void> Otf2Archive::close(const Run& run) {
  std::vector<std::uint64_t> events_of_rank(writers_.size());
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) {
    check(OTF2_EvtWriter_GetNumberOfEvents(writers_[rank], &events_of_rank[rank]));
    check(OTF2_Archive_CloseEvtWriter(archive_, writers_[rank]));
  }
  check(OTF2_Archive_CloseEvtFiles(archive_));
  // Readers expect a file of local definitions for each location, although there are none.
  check(OTF2_Archive_OpenDefFiles(archive_));
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) {
    OTF2_DefWriter* writer = OTF2_Archive_GetDefWriter(archive_, rank);
    if (writer == nullptr) return Error{ErrorCode::kIo, folder_ + ": OTF2 cannot write definitions"};
    check(OTF2_Archive_CloseDefWriter(archive_, writer));
  }
  check(OTF2_Archive_CloseDefFiles(archive_));
  write_definitions(run, events_of_rank);
  check(OTF2_Archive_Close(archive_));
  archive_ = nullptr;
  if (Result<void> written = status(); !written) return written;
  std::error_code error;
  std::filesystem::rename(temporary_, folder_, error);
  if (error) return Error{ErrorCode::kIo, folder_ + ": cannot be made: " + error.message()};
  temporary_.clear();
  return {};
}

void Otf2Archive::write_definitions(const Run& run, std::span<const std::uint64_t> events_of_rank) {
  OTF2_GlobalDefWriter* writer = OTF2_Archive_GetGlobalDefWriter(archive_);
  if (writer == nullptr) return check(OTF2_ERROR_FILE_CAN_NOT_OPEN);
  check(OTF2_GlobalDefWriter_WriteClockProperties(writer, kTicksPerSecond, 0, run.length_ns, OTF2_UNDEFINED_TIMESTAMP));
  const OTF2_StringRef mpi = string("MPI");
  // Every string is there before the records that name it.
  string("machine");
  string("node");
  string("MPI_COMM_WORLD");
  for (std::uint32_t node = 0; node < run.nodes; ++node) string("node " + std::to_string(node));
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) string("MPI Rank " + std::to_string(rank));
  for (const auto& [text, ref] : strings_) check(OTF2_GlobalDefWriter_WriteString(writer, ref, text.c_str()));
  check(OTF2_GlobalDefWriter_WriteParadigm(writer, OTF2_PARADIGM_MPI, mpi, OTF2_PARADIGM_CLASS_PROCESS));
  write_system_tree(writer, run, events_of_rank);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    check(OTF2_GlobalDefWriter_WriteRegion(writer, static_cast<OTF2_RegionRef>(i), region.name, region.name, string(""),
                                           region.role, region.paradigm, OTF2_REGION_FLAG_NONE, OTF2_UNDEFINED_STRING,
                                           0, 0));
  }
  write_communicators(writer);
  check(OTF2_Archive_CloseGlobalDefWriter(archive_, writer));
}

void Otf2Archive::write_system_tree(OTF2_GlobalDefWriter* writer, const Run& run,
                                    std::span<const std::uint64_t> events_of_rank) {
  check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, 0, string("machine"), string("machine"),
                                                 OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  for (std::uint32_t node = 0; node < run.nodes; ++node) {
    check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, node + 1, string("node " + std::to_string(node)),
                                                   string("node"), 0));
  }
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) {
    const OTF2_StringRef name = string("MPI Rank " + std::to_string(rank));
    const auto group = static_cast<OTF2_LocationGroupRef>(rank);
    check(OTF2_GlobalDefWriter_WriteLocationGroup(writer, group, name, OTF2_LOCATION_GROUP_TYPE_PROCESS,
                                                  run.node_of_rank[rank] + 1, OTF2_UNDEFINED_LOCATION_GROUP));
    check(OTF2_GlobalDefWriter_WriteLocation(writer, rank, name, OTF2_LOCATION_TYPE_CPU_THREAD, events_of_rank[rank],
                                             group));
  }
}

void Otf2Archive::write_communicators(OTF2_GlobalDefWriter* writer) {
  const auto write = [&](OTF2_GroupRef ref, OTF2_GroupType type, const std::vector<std::uint64_t>& members) {
    check(OTF2_GlobalDefWriter_WriteGroup(writer, ref, string(""), type, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                          static_cast<std::uint32_t>(members.size()), members.data()));
  };
  write(kLocations, OTF2_GROUP_TYPE_COMM_LOCATIONS, all_of(writers_.size()));
  for (const auto& [members, ref] : groups_) write(ref, OTF2_GROUP_TYPE_COMM_GROUP, members);
  for (std::size_t i = 0; i < communicators_.size(); ++i) {
    const auto ref = static_cast<OTF2_CommRef>(i);
    const CommunicatorDefinition& made = communicators_[i];
    const OTF2_StringRef name = string(ref == kWorld ? "MPI_COMM_WORLD" : "");
    check(made.remote_group == OTF2_UNDEFINED_GROUP
              ? OTF2_GlobalDefWriter_WriteComm(writer, ref, name, made.group, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE)
              : OTF2_GlobalDefWriter_WriteInterComm(writer, ref, name, made.group, made.remote_group, kWorld,
                                                    OTF2_COMM_FLAG_NONE));
  }
}

}  // namespace lbf::tools
