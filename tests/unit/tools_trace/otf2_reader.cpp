#include "tests/unit/tools_trace/otf2_reader.h"

#include <otf2/otf2.h>

namespace lbf::trace_test {
namespace {

using Kind = Otf2Record::Kind;

struct State {
  Otf2Trace trace;
  std::map<std::uint32_t, std::string> strings, regions, nodes;
  std::map<std::uint32_t, std::uint32_t> node_of_group;
  std::map<std::uint32_t, std::vector<std::uint64_t>> groups;
};
State& state(void* user) {
  return *static_cast<State*>(user);
}

// --- definitions

OTF2_CallbackCode on_clock(void* user, std::uint64_t, std::uint64_t, std::uint64_t length, std::uint64_t) {
  state(user).trace.length_ns = length;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_string(void* user, OTF2_StringRef self, const char* text) {
  state(user).strings[self] = text;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_region(void* user, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef, OTF2_StringRef,
                            OTF2_RegionRole, OTF2_Paradigm, OTF2_RegionFlag, OTF2_StringRef, std::uint32_t,
                            std::uint32_t) {
  state(user).regions[self] = state(user).strings.at(name);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_node(void* user, OTF2_SystemTreeNodeRef self, OTF2_StringRef name, OTF2_StringRef,
                          OTF2_SystemTreeNodeRef) {
  state(user).nodes[self] = state(user).strings.at(name);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_location_group(void* user, OTF2_LocationGroupRef self, OTF2_StringRef, OTF2_LocationGroupType,
                                    OTF2_SystemTreeNodeRef parent, OTF2_LocationGroupRef) {
  state(user).node_of_group[self] = parent;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_location(void* user, OTF2_LocationRef self, OTF2_StringRef, OTF2_LocationType,
                              std::uint64_t events, OTF2_LocationGroupRef group) {
  State& all = state(user);
  all.trace.events_defined[self] = events;
  all.trace.node_of_rank[self] = all.nodes.at(all.node_of_group.at(group));
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_group(void* user, OTF2_GroupRef self, OTF2_StringRef, OTF2_GroupType, OTF2_Paradigm,
                           OTF2_GroupFlag, std::uint32_t count, const std::uint64_t* members) {
  state(user).groups[self].assign(members, members + count);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_comm(void* user, OTF2_CommRef self, OTF2_StringRef, OTF2_GroupRef group, OTF2_CommRef,
                          OTF2_CommFlag) {
  state(user).trace.communicators[self] = {state(user).groups.at(group)};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_inter_comm(void* user, OTF2_CommRef self, OTF2_StringRef, OTF2_GroupRef a, OTF2_GroupRef b,
                                OTF2_CommRef, OTF2_CommFlag) {
  state(user).trace.communicators[self] = {state(user).groups.at(a), state(user).groups.at(b)};
  return OTF2_CALLBACK_SUCCESS;
}

// --- events

OTF2_CallbackCode add(void* user, OTF2_LocationRef rank, OTF2_TimeStamp time, Otf2Record record) {
  record.time_ns = time;
  state(user).trace.ranks[rank].push_back(std::move(record));
  return OTF2_CALLBACK_SUCCESS;
}
Otf2Record message(Kind kind, std::uint32_t peer, OTF2_CommRef comm, std::uint32_t tag, std::uint64_t bytes,
                   std::uint64_t request) {
  return {kind, 0, "", peer, comm, tag, bytes, 0, request};
}
Otf2Record of_region(Kind kind, const std::string& region) {
  return {kind, 0, region, 0, 0, 0, 0, 0, 0};
}
Otf2Record of_request(Kind kind, std::uint64_t request) {
  return {kind, 0, "", 0, 0, 0, 0, 0, request};
}

OTF2_CallbackCode on_enter(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                           OTF2_RegionRef region) {
  return add(user, rank, time, of_region(Kind::kEnter, state(user).regions.at(region)));
}
OTF2_CallbackCode on_leave(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                           OTF2_RegionRef region) {
  return add(user, rank, time, of_region(Kind::kLeave, state(user).regions.at(region)));
}
OTF2_CallbackCode on_send(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*, std::uint32_t to,
                          OTF2_CommRef comm, std::uint32_t tag, std::uint64_t bytes) {
  return add(user, rank, time, message(Kind::kSend, to, comm, tag, bytes, 0));
}
OTF2_CallbackCode on_isend(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                           std::uint32_t to, OTF2_CommRef comm, std::uint32_t tag, std::uint64_t bytes,
                           std::uint64_t request) {
  return add(user, rank, time, message(Kind::kIsend, to, comm, tag, bytes, request));
}
OTF2_CallbackCode on_isend_complete(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                                    std::uint64_t request) {
  return add(user, rank, time, of_request(Kind::kIsendComplete, request));
}
OTF2_CallbackCode on_irecv_request(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                                   std::uint64_t request) {
  return add(user, rank, time, of_request(Kind::kIrecvRequest, request));
}
OTF2_CallbackCode on_recv(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                          std::uint32_t from, OTF2_CommRef comm, std::uint32_t tag, std::uint64_t bytes) {
  return add(user, rank, time, message(Kind::kRecv, from, comm, tag, bytes, 0));
}
OTF2_CallbackCode on_irecv(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                           std::uint32_t from, OTF2_CommRef comm, std::uint32_t tag, std::uint64_t bytes,
                           std::uint64_t request) {
  return add(user, rank, time, message(Kind::kIrecv, from, comm, tag, bytes, request));
}
OTF2_CallbackCode on_cancelled(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                               std::uint64_t request) {
  return add(user, rank, time, of_request(Kind::kCancelled, request));
}
OTF2_CallbackCode on_collective_begin(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*) {
  return add(user, rank, time, of_request(Kind::kCollectiveBegin, 0));
}
OTF2_CallbackCode on_collective_end(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                                    OTF2_CollectiveOp op, OTF2_CommRef comm, std::uint32_t root, std::uint64_t sent,
                                    std::uint64_t received) {
  return add(user, rank, time, {Kind::kCollectiveEnd, 0, "", root, comm, op, sent, received, 0});
}
OTF2_CallbackCode on_nonblocking_request(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                                         std::uint64_t request) {
  return add(user, rank, time, of_request(Kind::kNonblockingRequest, request));
}
OTF2_CallbackCode on_nonblocking_complete(OTF2_LocationRef rank, OTF2_TimeStamp time, void* user, OTF2_AttributeList*,
                                          OTF2_CollectiveOp op, OTF2_CommRef comm, std::uint32_t root,
                                          std::uint64_t sent, std::uint64_t received, std::uint64_t request) {
  return add(user, rank, time, {Kind::kNonblockingComplete, 0, "", root, comm, op, sent, received, request});
}

bool read_definitions(OTF2_Reader* reader, State& all) {
  OTF2_GlobalDefReader* definitions = OTF2_Reader_GetGlobalDefReader(reader);
  OTF2_GlobalDefReaderCallbacks* callbacks = OTF2_GlobalDefReaderCallbacks_New();
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, on_clock);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, on_string);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, on_region);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(callbacks, on_node);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks, on_location_group);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, on_group);
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(callbacks, on_comm);
  OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(callbacks, on_inter_comm);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, &all);
  OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
  std::uint64_t read = 0;
  return OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read) == OTF2_SUCCESS;
}

bool read_events(OTF2_Reader* reader, State& all) {
  for (const auto& [location, events] : all.trace.events_defined) OTF2_Reader_SelectLocation(reader, location);
  if (OTF2_Reader_OpenDefFiles(reader) != OTF2_SUCCESS || OTF2_Reader_OpenEvtFiles(reader) != OTF2_SUCCESS)
    return false;
  for (const auto& [location, events] : all.trace.events_defined) {
    OTF2_DefReader* local = OTF2_Reader_GetDefReader(reader, location);
    std::uint64_t read = 0;
    if (local == nullptr || OTF2_Reader_ReadAllLocalDefinitions(reader, local, &read) != OTF2_SUCCESS) return false;
    OTF2_Reader_CloseDefReader(reader, local);
    OTF2_Reader_GetEvtReader(reader, location);
  }
  OTF2_Reader_CloseDefFiles(reader);
  OTF2_GlobalEvtReader* events = OTF2_Reader_GetGlobalEvtReader(reader);
  OTF2_GlobalEvtReaderCallbacks* callbacks = OTF2_GlobalEvtReaderCallbacks_New();
  OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(callbacks, on_enter);
  OTF2_GlobalEvtReaderCallbacks_SetLeaveCallback(callbacks, on_leave);
  OTF2_GlobalEvtReaderCallbacks_SetMpiSendCallback(callbacks, on_send);
  OTF2_GlobalEvtReaderCallbacks_SetMpiIsendCallback(callbacks, on_isend);
  OTF2_GlobalEvtReaderCallbacks_SetMpiIsendCompleteCallback(callbacks, on_isend_complete);
  OTF2_GlobalEvtReaderCallbacks_SetMpiIrecvRequestCallback(callbacks, on_irecv_request);
  OTF2_GlobalEvtReaderCallbacks_SetMpiRecvCallback(callbacks, on_recv);
  OTF2_GlobalEvtReaderCallbacks_SetMpiIrecvCallback(callbacks, on_irecv);
  OTF2_GlobalEvtReaderCallbacks_SetMpiRequestCancelledCallback(callbacks, on_cancelled);
  OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveBeginCallback(callbacks, on_collective_begin);
  OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(callbacks, on_collective_end);
  OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(callbacks, on_nonblocking_request);
  OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(callbacks, on_nonblocking_complete);
  OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, callbacks, &all);
  OTF2_GlobalEvtReaderCallbacks_Delete(callbacks);
  std::uint64_t read = 0;
  return OTF2_Reader_ReadAllGlobalEvents(reader, events, &read) == OTF2_SUCCESS;
}

}  // namespace

Otf2Trace read_otf2(const std::string& anchor) {
  State all;
  OTF2_Reader* reader = OTF2_Reader_Open(anchor.c_str());
  if (reader == nullptr) return all.trace;
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  std::uint64_t locations = 0;
  OTF2_Reader_GetNumberOfLocations(reader, &locations);
  all.trace.read =
      read_definitions(reader, all) && all.trace.events_defined.size() == locations && read_events(reader, all);
  OTF2_Reader_Close(reader);
  return all.trace;
}

}  // namespace lbf::trace_test
