// See otf2_stream.h.
#include "tools/import/otf2_stream.h"

#include <algorithm>
#include <cstdarg>
#include <utility>

#include "tools/support/open_files.h"

namespace lbf::tools::otf2 {
namespace {

constexpr std::uint64_t kRecordsAtOnce = 128;
constexpr std::size_t kOtherFiles = 64;
constexpr Nanoseconds kLatest = Nanoseconds{1} << 61;  // 73 years: sums and differences of times are representable

// The library would print each error to stderr; they are kept in what its functions return.
OTF2_ErrorCode keep_quiet(void* /*user*/, const char* /*file*/, std::uint64_t /*line*/, const char* /*function*/,
                          OTF2_ErrorCode code, const char* /*format*/, std::va_list /*arguments*/) {
  return code;
}

}  // namespace

struct Callbacks {
  using Kind = Record::Kind;
  static LocationRecords& of(void* user) { return *static_cast<LocationRecords*>(user); }
  static OTF2_CallbackCode region(void* user, Kind kind, std::uint64_t time, std::uint64_t position,
                                  const Region* region) {
    of(user).add(kind, time, position).region = region;
    return OTF2_CALLBACK_SUCCESS;
  }
  static const Definitions& definitions(void* user) { return of(user).archive_.definitions(); }

  static OTF2_CallbackCode enter(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                 OTF2_AttributeList*, OTF2_RegionRef ref) {
    return region(user, Kind::kEnter, time, position, definitions(user).region(ref));
  }
  static OTF2_CallbackCode leave(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                 OTF2_AttributeList*, OTF2_RegionRef ref) {
    return region(user, Kind::kLeave, time, position, definitions(user).region(ref));
  }
  static OTF2_CallbackCode enter_context(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                         OTF2_AttributeList*, OTF2_CallingContextRef ref, std::uint32_t) {
    return region(user, Kind::kEnter, time, position, definitions(user).region_of_context(ref));
  }
  static OTF2_CallbackCode leave_context(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                         OTF2_AttributeList*, OTF2_CallingContextRef ref) {
    return region(user, Kind::kLeave, time, position, definitions(user).region_of_context(ref));
  }

  struct Place {
    std::uint32_t comm;
    std::uint32_t peer;
    std::uint32_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t request = 0;
    std::uint8_t op = 0;
    std::uint64_t received = 0;
  };
  static OTF2_CallbackCode message(void* user, Kind kind, std::uint64_t time, std::uint64_t position,
                                   const Place& place) {
    Record& record = of(user).add(kind, time, position);
    record.comm = place.comm;
    record.peer = place.peer;
    record.tag = place.tag;
    record.bytes = place.bytes;
    record.request = place.request;
    record.op = place.op;
    record.received = place.received;
    return OTF2_CALLBACK_SUCCESS;
  }
  template <Kind KIND>
  static OTF2_CallbackCode blocking(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                    OTF2_AttributeList*, std::uint32_t peer, OTF2_CommRef comm, std::uint32_t tag,
                                    std::uint64_t bytes) {
    return message(user, KIND, time, position, {comm, peer, tag, bytes});
  }
  template <Kind KIND>
  static OTF2_CallbackCode with_request(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                        OTF2_AttributeList*, std::uint32_t peer, OTF2_CommRef comm, std::uint32_t tag,
                                        std::uint64_t bytes, std::uint64_t request) {
    return message(user, KIND, time, position, {comm, peer, tag, bytes, request});
  }
  template <Kind KIND>
  static OTF2_CallbackCode request(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                   OTF2_AttributeList*, std::uint64_t request) {
    of(user).add(KIND, time, position).request = request;
    return OTF2_CALLBACK_SUCCESS;
  }
  template <Kind KIND>
  static OTF2_CallbackCode plain(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                 OTF2_AttributeList*) {
    of(user).add(KIND, time, position);
    return OTF2_CALLBACK_SUCCESS;
  }
  static OTF2_CallbackCode collective(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                      OTF2_AttributeList*, OTF2_CollectiveOp op, OTF2_CommRef comm, std::uint32_t root,
                                      std::uint64_t sent, std::uint64_t received) {
    return message(user, Kind::kCollectiveEnd, time, position, {comm, root, 0, sent, 0, op, received});
  }
  static OTF2_CallbackCode nonblocking(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                       OTF2_AttributeList*, OTF2_CollectiveOp op, OTF2_CommRef comm, std::uint32_t root,
                                       std::uint64_t sent, std::uint64_t received, std::uint64_t request) {
    return message(user, Kind::kNonblockingComplete, time, position, {comm, root, 0, sent, request, op, received});
  }
  static OTF2_CallbackCode flush(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                 OTF2_AttributeList*, OTF2_TimeStamp stop) {
    LocationRecords& records = of(user);
    const Nanoseconds length = std::max<Nanoseconds>(records.ns(stop) - records.ns(time), 0);
    records.add(Kind::kFlush, time, position).bytes = static_cast<std::uint64_t>(length);
    return OTF2_CALLBACK_SUCCESS;
  }
  static OTF2_CallbackCode measurement(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                       OTF2_AttributeList*, OTF2_MeasurementMode mode) {
    of(user).add(mode == OTF2_MEASUREMENT_ON ? Kind::kOn : Kind::kOff, time, position);
    return OTF2_CALLBACK_SUCCESS;
  }
  static OTF2_CallbackCode fork(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                OTF2_AttributeList*, OTF2_Paradigm, std::uint32_t) {
    of(user).add(Kind::kFork, time, position);
    return OTF2_CALLBACK_SUCCESS;
  }
  static OTF2_CallbackCode join(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                OTF2_AttributeList*, OTF2_Paradigm) {
    of(user).add(Kind::kJoin, time, position);
    return OTF2_CALLBACK_SUCCESS;
  }
  template <Kind KIND>
  static OTF2_CallbackCode team(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                OTF2_AttributeList*, OTF2_CommRef) {
    of(user).add(KIND, time, position);
    return OTF2_CALLBACK_SUCCESS;
  }
  template <Kind KIND>
  static OTF2_CallbackCode transfer(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                    OTF2_AttributeList*, OTF2_RmaWinRef window, std::uint32_t remote,
                                    std::uint64_t bytes, std::uint64_t id) {
    return message(user, KIND, time, position, {window, remote, 0, bytes, id});
  }
  static OTF2_CallbackCode atomic(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                  OTF2_AttributeList*, OTF2_RmaWinRef window, std::uint32_t remote,
                                  OTF2_RmaAtomicType type, std::uint64_t sent, std::uint64_t received,
                                  std::uint64_t id) {
    return message(user, Kind::kAtomic, time, position, {window, remote, 0, sent, id, type, received});
  }
  template <Kind KIND>
  static OTF2_CallbackCode done(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                OTF2_AttributeList*, OTF2_RmaWinRef window, std::uint64_t id) {
    return message(user, KIND, time, position, {window, 0, 0, 0, id});
  }
  static OTF2_CallbackCode lock(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                OTF2_AttributeList*, OTF2_RmaWinRef window, std::uint32_t remote, std::uint64_t,
                                OTF2_LockType) {
    return message(user, Kind::kLock, time, position, {window, remote});
  }
  static OTF2_CallbackCode unlock(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                  OTF2_AttributeList*, OTF2_RmaWinRef window, std::uint32_t remote, std::uint64_t) {
    return message(user, Kind::kUnlock, time, position, {window, remote});
  }
  static OTF2_CallbackCode group_sync(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                      OTF2_AttributeList*, OTF2_RmaSyncLevel, OTF2_RmaWinRef window,
                                      OTF2_GroupRef group) {
    return message(user, Kind::kGroupSync, time, position, {window, group});
  }
  static OTF2_CallbackCode window_end(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t position, void* user,
                                      OTF2_AttributeList*, OTF2_CollectiveOp op, OTF2_RmaSyncLevel,
                                      OTF2_RmaWinRef window, std::uint32_t, std::uint64_t, std::uint64_t) {
    return message(user, Kind::kWindowEnd, time, position, {window, 0, 0, 0, 0, op});
  }

  static void set(OTF2_EvtReaderCallbacks* all) {
    OTF2_EvtReaderCallbacks_SetEnterCallback(all, enter);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(all, leave);
    OTF2_EvtReaderCallbacks_SetCallingContextEnterCallback(all, enter_context);
    OTF2_EvtReaderCallbacks_SetCallingContextLeaveCallback(all, leave_context);
    OTF2_EvtReaderCallbacks_SetMpiSendCallback(all, blocking<Kind::kSend>);
    OTF2_EvtReaderCallbacks_SetMpiRecvCallback(all, blocking<Kind::kRecv>);
    OTF2_EvtReaderCallbacks_SetMpiIsendCallback(all, with_request<Kind::kIsend>);
    OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(all, with_request<Kind::kIrecv>);
    OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(all, request<Kind::kIsendComplete>);
    OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(all, request<Kind::kIrecvRequest>);
    OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(all, request<Kind::kCancelled>);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(all, plain<Kind::kCollectiveBegin>);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(all, collective);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(all, request<Kind::kNonblockingRequest>);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(all, nonblocking);
    OTF2_EvtReaderCallbacks_SetBufferFlushCallback(all, flush);
    OTF2_EvtReaderCallbacks_SetMeasurementOnOffCallback(all, measurement);
    OTF2_EvtReaderCallbacks_SetThreadForkCallback(all, fork);
    OTF2_EvtReaderCallbacks_SetThreadJoinCallback(all, join);
    OTF2_EvtReaderCallbacks_SetThreadTeamBeginCallback(all, team<Kind::kTeamBegin>);
    OTF2_EvtReaderCallbacks_SetThreadTeamEndCallback(all, team<Kind::kTeamEnd>);
    OTF2_EvtReaderCallbacks_SetRmaPutCallback(all, transfer<Kind::kPut>);
    OTF2_EvtReaderCallbacks_SetRmaGetCallback(all, transfer<Kind::kGet>);
    OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(all, atomic);
    OTF2_EvtReaderCallbacks_SetRmaOpCompleteBlockingCallback(all, done<Kind::kDoneHere>);
    OTF2_EvtReaderCallbacks_SetRmaOpCompleteNonBlockingCallback(all, done<Kind::kDoneHere>);
    OTF2_EvtReaderCallbacks_SetRmaOpCompleteRemoteCallback(all, done<Kind::kDoneThere>);
    OTF2_EvtReaderCallbacks_SetRmaRequestLockCallback(all, lock);
    OTF2_EvtReaderCallbacks_SetRmaReleaseLockCallback(all, unlock);
    OTF2_EvtReaderCallbacks_SetRmaGroupSyncCallback(all, group_sync);
    OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(all, window_end);
  }
};

// --- the archive

Result<std::unique_ptr<Archive>> Archive::open(const std::string& anchor) {
  OTF2_Error_RegisterCallback(keep_quiet, nullptr);
  std::unique_ptr<Archive> made(new Archive(anchor));
  made->reader_ = OTF2_Reader_Open(anchor.c_str());
  if (made->reader_ == nullptr) return invalid_input(anchor + ": is no anchor file of an OTF2 archive");
  if (OTF2_Reader_SetSerialCollectiveCallbacks(made->reader_) != OTF2_SUCCESS)
    return invalid_input(anchor + ": OTF2 cannot read it");
  Result<Definitions> definitions = Definitions::read(made->reader_, anchor);
  if (!definitions) return definitions.error();
  made->definitions_ = std::move(*definitions);
  if (Result<void> opened = made->open_events(); !opened) return opened.error();
  return made;
}

Result<void> Archive::open_events() {
  std::size_t locations = 0;
  for (const std::vector<Location>& rank : definitions_.locations) locations += rank.size();
  if (Result<void> allowed = allow_open_files(2 * locations + kOtherFiles, anchor_); !allowed) return allowed;
  for (const std::vector<Location>& rank : definitions_.locations) {
    for (const Location& location : rank) OTF2_Reader_SelectLocation(reader_, location.ref);
  }
  // Numbers of a location's own definitions, and what its clock is off. Archives without such files exist.
  if (OTF2_Reader_OpenDefFiles(reader_) == OTF2_SUCCESS) {
    for (const std::vector<Location>& rank : definitions_.locations) {
      for (const Location& location : rank) {
        OTF2_DefReader* own = OTF2_Reader_GetDefReader(reader_, location.ref);
        if (own == nullptr) continue;
        std::uint64_t read = 0;
        const OTF2_ErrorCode code = OTF2_Reader_ReadAllLocalDefinitions(reader_, own, &read);
        OTF2_Reader_CloseDefReader(reader_, own);
        if (code == OTF2_SUCCESS) continue;
        return invalid_input(anchor_ + ": definitions of location " + std::to_string(location.ref) +
                             " cannot be read: " + OTF2_Error_GetDescription(code));
      }
    }
    OTF2_Reader_CloseDefFiles(reader_);
  }
  if (OTF2_Reader_OpenEvtFiles(reader_) != OTF2_SUCCESS) return invalid_input(anchor_ + ": has no events beside it");
  callbacks_ = OTF2_EvtReaderCallbacks_New();
  Callbacks::set(callbacks_);
  return {};
}

Archive::~Archive() {
  if (callbacks_ != nullptr) OTF2_EvtReaderCallbacks_Delete(callbacks_);
  if (reader_ != nullptr) OTF2_Reader_Close(reader_);
}

// --- records

Nanoseconds LocationRecords::ns(std::uint64_t ticks) const {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  const std::uint64_t per_second = archive_.definitions().ticks_per_second;
  if (ticks / per_second >= kLatest / kNsPerSecond) return kLatest;
  if (per_second == kNsPerSecond) return static_cast<Nanoseconds>(ticks);
  const std::uint64_t rest = ticks % per_second;
  return static_cast<Nanoseconds>(
      ticks / per_second * kNsPerSecond +
      static_cast<std::uint64_t>(static_cast<long double>(rest) * kNsPerSecond / static_cast<long double>(per_second)));
}

Record& LocationRecords::add(Record::Kind kind, std::uint64_t ticks, std::uint64_t position) {
  Record& record = records_.emplace_back();
  record.kind = kind;
  record.thread = thread_;
  record.position = position;
  record.ns = ns(ticks) + shift_ns_;
  is_too_late_ = is_too_late_ || ns(ticks) == kLatest;
  if (any_ && record.ns < last_ns_) {
    ++backwards_;
    record.ns = last_ns_;
  }
  any_ = true;
  last_ns_ = record.ns;
  return record;
}

Result<void> LocationRecords::fill() {
  const auto fail = [this](const std::string& what) {
    return invalid_input(archive_.anchor() + ": rank " + std::to_string(location_.rank) + " (location " +
                         std::to_string(location_.ref) + "): " + what);
  };
  if (reader_ == nullptr) {
    reader_ = OTF2_Reader_GetEvtReader(archive_.reader_, location_.ref);
    if (reader_ == nullptr) return fail("its events cannot be read; is the archive whole?");
    OTF2_EvtReader_ApplyMappingTables(reader_, true);
    OTF2_EvtReader_ApplyClockOffsets(reader_, true);
    if (OTF2_Reader_RegisterEvtCallbacks(archive_.reader_, reader_, archive_.callbacks_, this) != OTF2_SUCCESS)
      return fail("OTF2 cannot read its events");
  }
  records_.clear();
  at_ = 0;
  while (records_.empty() && !ended_) {
    std::uint64_t read = 0;
    const OTF2_ErrorCode code = OTF2_Reader_ReadLocalEvents(archive_.reader_, reader_, kRecordsAtOnce, &read);
    if (code != OTF2_SUCCESS) {
      std::uint64_t position = 0;
      OTF2_EvtReader_GetPos(reader_, &position);
      return fail("event " + std::to_string(position) + " cannot be read: " + OTF2_Error_GetDescription(code) +
                  "; is the archive whole?");
    }
    ended_ = read < kRecordsAtOnce;
    if (is_too_late_) return fail("has times beyond 73 years; is the archive whole?");
  }
  // The chunk is the library's largest part.
  if (ended_) {
    OTF2_Reader_CloseEvtReader(archive_.reader_, reader_);
    reader_ = nullptr;
  }
  return {};
}

Result<const Record*> LocationRecords::front() {
  if (at_ == records_.size() && !ended_) {
    if (Result<void> filled = fill(); !filled) return filled.error();
  }
  return at_ < records_.size() ? &records_[at_] : static_cast<const Record*>(nullptr);
}

RankRecords::RankRecords(Archive& archive, Rank rank, Nanoseconds shift_ns) {
  const std::vector<Location>& locations = archive.definitions().locations[static_cast<std::size_t>(rank)];
  threads_.reserve(locations.size());
  for (std::size_t i = 0; i < locations.size(); ++i)
    threads_.emplace_back(archive, locations[i], static_cast<std::uint16_t>(std::min<std::size_t>(i, 65535)), shift_ns);
}

Result<const Record*> RankRecords::front() {
  const Record* earliest = nullptr;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Result<const Record*> next = threads_[i].front();
    if (!next) return next;
    if (*next == nullptr || (earliest != nullptr && (*next)->ns >= earliest->ns)) continue;
    earliest = *next;
    first_ = i;
  }
  return earliest;
}

std::uint64_t RankRecords::backwards() const {
  std::uint64_t sum = 0;
  for (const LocationRecords& thread : threads_) sum += thread.backwards();
  return sum;
}

}  // namespace lbf::tools::otf2
