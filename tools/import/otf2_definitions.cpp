// See otf2_definitions.h.
#include "tools/import/otf2_definitions.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace lbf::tools::otf2 {

bool Communicator::in_remote(Rank rank) const {
  return is_inter() && std::find(remote.begin(), remote.end(), rank) != remote.end();
}

std::size_t Communicator::peers(Rank rank) const {
  if (is_self) return 1;
  return is_inter() && !in_remote(rank) ? remote.size() : members.size();
}

std::optional<Rank> Communicator::peer(Rank rank, std::uint32_t number) const {
  if (is_self) return number == 0 ? std::optional(rank) : std::nullopt;
  if (has_world_ranks) {
    const auto named = static_cast<Rank>(std::min<std::uint32_t>(number, kMaxRanks));
    return place(named) ? std::optional(named) : std::nullopt;
  }
  const std::vector<Rank>& others = is_inter() && !in_remote(rank) ? remote : members;
  return number < others.size() ? std::optional(others[number]) : std::nullopt;
}

std::optional<std::uint32_t> Communicator::place(Rank rank) const {
  if (is_self) return 0;
  if (places.empty()) {  // the whole world in its order
    return static_cast<std::size_t>(rank) < members.size() ? std::optional(static_cast<std::uint32_t>(rank))
                                                           : std::nullopt;
  }
  const auto found = places.find(rank);
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

namespace {

template <typename Key, typename Value>
const Value* found_in(const std::unordered_map<Key, Value>& map, Key key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

const Region* Definitions::region(OTF2_RegionRef ref) const {
  return found_in(regions_, ref);
}
const Region* Definitions::region_of_context(OTF2_CallingContextRef ref) const {
  const OTF2_RegionRef* named = found_in(contexts_, ref);
  return named == nullptr ? nullptr : region(*named);
}
const Communicator* Definitions::communicator(OTF2_CommRef ref) const {
  return found_in(communicators_, ref);
}
const Communicator* Definitions::window(OTF2_RmaWinRef ref) const {
  const Window* named = found_in(windows_, ref);
  return named == nullptr ? nullptr : &named->own;
}
const Communicator* Definitions::parent_of_window(OTF2_RmaWinRef ref) const {
  const Window* named = found_in(windows_, ref);
  return named == nullptr ? nullptr : communicator(named->parent);
}
const std::vector<Rank>* Definitions::group(OTF2_GroupRef ref) const {
  return found_in(groups_, ref);
}

// The definitions as they come.
struct Reading {
  struct Group {
    OTF2_GroupType type = OTF2_GROUP_TYPE_UNKNOWN;
    bool has_world_ranks = false;
    std::vector<std::uint64_t> members;
    bool operator==(const Group&) const = default;
  };
  struct Comm {
    std::string name;
    OTF2_GroupRef group = OTF2_UNDEFINED_GROUP;
    OTF2_GroupRef remote = OTF2_UNDEFINED_GROUP;
    OTF2_CommRef parent = OTF2_UNDEFINED_COMM;
    bool operator==(const Comm&) const = default;
  };
  struct Process {
    OTF2_LocationGroupType type = OTF2_LOCATION_GROUP_TYPE_UNKNOWN;
    OTF2_SystemTreeNodeRef node = OTF2_UNDEFINED_SYSTEM_TREE_NODE;
  };
  struct Node {
    bool is_node = false;
    OTF2_SystemTreeNodeRef parent = OTF2_UNDEFINED_SYSTEM_TREE_NODE;
  };
  struct Thread {
    OTF2_LocationType type = OTF2_LOCATION_TYPE_UNKNOWN;
    OTF2_LocationGroupRef process = OTF2_UNDEFINED_LOCATION_GROUP;
    OTF2_StringRef name = OTF2_UNDEFINED_STRING;
  };
  struct NamedRegion {
    OTF2_StringRef name = OTF2_UNDEFINED_STRING;
    OTF2_StringRef canonical = OTF2_UNDEFINED_STRING;
    OTF2_RegionRole role = OTF2_REGION_ROLE_UNKNOWN;
    OTF2_Paradigm paradigm = OTF2_PARADIGM_UNKNOWN;
  };
  struct Win {
    OTF2_CommRef comm = OTF2_UNDEFINED_COMM;
  };

  Definitions made;
  std::string wrong;  // the first thing; empty: nothing
  std::unordered_map<OTF2_StringRef, std::string> strings;
  std::vector<std::uint64_t> world;  // location of each rank
  std::map<OTF2_GroupRef, Group> groups;
  std::map<OTF2_CommRef, Comm> comms;
  std::map<OTF2_RmaWinRef, Win> windows;
  std::map<OTF2_LocationGroupRef, Process> processes;
  std::map<OTF2_SystemTreeNodeRef, Node> nodes;
  std::map<OTF2_LocationRef, Thread> threads;
  std::map<OTF2_RegionRef, NamedRegion> regions;
  std::unordered_map<OTF2_CallingContextRef, OTF2_RegionRef> contexts;

  std::string text(OTF2_StringRef ref) const {
    const auto found = strings.find(ref);
    return found == strings.end() ? std::string() : found->second;
  }
  void fail(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  template <typename Map, typename Value>
  void define(Map& map, typename Map::key_type ref, Value value, const char* what) {
    const auto [at, is_new] = map.try_emplace(ref, value);
    if (!is_new && !(at->second == value))
      fail(std::string(what) + " " + std::to_string(ref) + " is defined twice, and differently");
  }

  void number_ranks();
  void know_eztrace();
  void name_regions();
  void find_nodes();
  void make_communicators();
  std::vector<Rank> ranks_of(OTF2_GroupRef ref);
  void make_communicator(OTF2_CommRef ref, const Comm& comm, std::uint32_t& next);
  bool is_world(const Comm& comm);
  std::optional<OTF2_CommRef> world_comm();
};

namespace {

Reading& reading(void* user) {
  return *static_cast<Reading*>(user);
}

OTF2_CallbackCode on_clock(void* user, std::uint64_t resolution, std::uint64_t, std::uint64_t, std::uint64_t) {
  reading(user).made.ticks_per_second = resolution;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_string(void* user, OTF2_StringRef self, const char* text) {
  reading(user).strings[self] = text;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_node(void* user, OTF2_SystemTreeNodeRef self, OTF2_StringRef, OTF2_StringRef class_name,
                          OTF2_SystemTreeNodeRef parent) {
  Reading::Node& node = reading(user).nodes[self];
  node.is_node = node.is_node || reading(user).text(class_name) == "node";
  node.parent = parent;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_domain(void* user, OTF2_SystemTreeNodeRef node, OTF2_SystemTreeDomain domain) {
  if (domain == OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY) reading(user).nodes[node].is_node = true;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_process(void* user, OTF2_LocationGroupRef self, OTF2_StringRef, OTF2_LocationGroupType type,
                             OTF2_SystemTreeNodeRef parent, OTF2_LocationGroupRef) {
  reading(user).processes[self] = {type, parent};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_location(void* user, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
                              std::uint64_t, OTF2_LocationGroupRef process) {
  reading(user).threads[self] = {type, process, name};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_region(void* user, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef canonical,
                            OTF2_StringRef, OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag,
                            OTF2_StringRef, std::uint32_t, std::uint32_t) {
  reading(user).regions[self] = {name, canonical, role, paradigm};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_group(void* user, OTF2_GroupRef self, OTF2_StringRef, OTF2_GroupType type, OTF2_Paradigm paradigm,
                           OTF2_GroupFlag flags, std::uint32_t count, const std::uint64_t* members) {
  Reading& all = reading(user);
  if (paradigm != OTF2_PARADIGM_MPI) return OTF2_CALLBACK_SUCCESS;
  if (type == OTF2_GROUP_TYPE_COMM_LOCATIONS) {
    // EZTrace numbers it as the world's group, so it is none of `groups`.
    if (all.world.empty()) all.world.assign(members, members + count);
    return OTF2_CALLBACK_SUCCESS;
  }
  all.define(all.groups, self,
             Reading::Group{type, (flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS) != 0, {members, members + count}}, "group");
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_comm(void* user, OTF2_CommRef self, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef parent,
                          OTF2_CommFlag) {
  Reading& all = reading(user);
  all.define(all.comms, self, Reading::Comm{all.text(name), group, OTF2_UNDEFINED_GROUP, parent}, "communicator");
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_intercomm(void* user, OTF2_CommRef self, OTF2_StringRef name, OTF2_GroupRef a, OTF2_GroupRef b,
                               OTF2_CommRef common, OTF2_CommFlag) {
  Reading& all = reading(user);
  all.define(all.comms, self, Reading::Comm{all.text(name), a, b, common}, "communicator");
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_window(void* user, OTF2_RmaWinRef self, OTF2_StringRef, OTF2_CommRef comm, OTF2_RmaWinFlag) {
  reading(user).windows[self] = {comm};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode on_context(void* user, OTF2_CallingContextRef self, OTF2_RegionRef region, OTF2_SourceCodeLocationRef,
                             OTF2_CallingContextRef) {
  reading(user).contexts[self] = region;
  return OTF2_CALLBACK_SUCCESS;
}

std::string creator_of(OTF2_Reader* reader) {
  char* said = nullptr;
  std::string creator;
  if (OTF2_Reader_GetCreator(reader, &said) == OTF2_SUCCESS && said != nullptr) creator = said;
  std::free(said);
  return creator;
}

// The function that a region is, in whatever letters: MPI_Send, MPI_SEND, mpi_send_.
const MpiFunction* function_of(const std::string& name) {
  constexpr std::size_t kPrefix = 4;
  std::string c_name = name;
  while (c_name.size() > kPrefix && c_name.back() == '_') c_name.pop_back();
  for (std::size_t i = 0; i < c_name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(c_name[i]);
    c_name[i] = static_cast<char>(i <= kPrefix ? std::toupper(letter) : std::tolower(letter));
  }
  const MpiFunction* exact = mpi_function(name);
  return exact != nullptr ? exact : mpi_function(c_name);
}

Writer writer_of(std::string_view creator) {
  if (creator.starts_with("Score-P")) return Writer::kScoreP;
  if (creator.starts_with("lbf-trace")) return Writer::kLbf;
  if (creator.starts_with("EZTrace")) return Writer::kEztrace;
  return Writer::kOther;
}

}  // namespace

void Reading::number_ranks() {
  std::map<OTF2_LocationGroupRef, Rank> rank_of_process;
  if (world.empty()) {  // the processes in their order
    for (const auto& [ref, thread] : threads) {
      if (thread.type != OTF2_LOCATION_TYPE_CPU_THREAD || rank_of_process.contains(thread.process)) continue;
      if (processes[thread.process].type != OTF2_LOCATION_GROUP_TYPE_PROCESS) continue;
      rank_of_process.emplace(thread.process, 0);
    }
    world.resize(rank_of_process.size());
    Rank next = 0;
    for (auto& [process, rank] : rank_of_process) rank = next++;
    for (auto at = threads.rbegin(); at != threads.rend(); ++at) {
      const auto found = rank_of_process.find(at->second.process);
      if (found != rank_of_process.end() && at->second.type == OTF2_LOCATION_TYPE_CPU_THREAD)
        world[static_cast<std::size_t>(found->second)] = at->first;
    }
  }
  if (world.empty()) return fail("it has no process: is it the trace of an MPI program?");
  if (world.size() > static_cast<std::size_t>(kMaxRanks)) return fail("more than 16777216 ranks");
  made.ranks = static_cast<Rank>(world.size());
  made.locations.resize(world.size());
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    const auto thread = threads.find(world[rank]);
    if (thread == threads.end()) {
      return fail("rank " + std::to_string(rank) + " is location " + std::to_string(world[rank]) +
                  ", which is not defined");
    }
    rank_of_process[thread->second.process] = static_cast<Rank>(rank);
    made.locations[rank].push_back({world[rank], static_cast<Rank>(rank)});
  }
  for (const auto& [ref, thread] : threads) {
    if (thread.type == OTF2_LOCATION_TYPE_ACCELERATOR_STREAM) ++made.devices;
    const auto rank = rank_of_process.find(thread.process);
    if (thread.type != OTF2_LOCATION_TYPE_CPU_THREAD || rank == rank_of_process.end()) continue;
    std::vector<Location>& mine = made.locations[static_cast<std::size_t>(rank->second)];
    if (mine.front().ref != ref) mine.push_back({ref, rank->second});
  }
}

// EZTrace's archives (2.0, 2.1) name no creator; their locations are "P#0T#0" and so on.
void Reading::know_eztrace() {
  if (!made.creator.empty()) return;
  const bool is_eztrace = std::all_of(world.begin(), world.end(), [this](OTF2_LocationRef location) {
    unsigned process = 0, thread = 0;
    int end = 0;
    const std::string name = text(threads[location].name);
    return std::sscanf(name.c_str(), "P#%uT#%u%n", &process, &thread, &end) == 2 && name.size() == std::size_t(end);
  });
  if (is_eztrace) made.writer = Writer::kEztrace;
}

void Reading::name_regions() {
  for (const auto& [ref, named] : regions) {
    Region region;
    region.name = text(named.name);
    region.function = function_of(region.name);
    if (region.function == nullptr) region.function = function_of(text(named.canonical));
    const bool is_local = region.function != nullptr && region.function->role == MpiRole::kLocal;
    const bool is_call =
        region.function != nullptr || named.paradigm == OTF2_PARADIGM_MPI || region.name.starts_with("MPI_");
    const bool is_io = named.role == OTF2_REGION_ROLE_FILE_IO || named.role == OTF2_REGION_ROLE_FILE_IO_METADATA;
    const bool is_barrier = named.role == OTF2_REGION_ROLE_BARRIER || named.role == OTF2_REGION_ROLE_IMPLICIT_BARRIER;
    if (is_call) {
      region.kind = is_local ? RegionKind::kWork : RegionKind::kCall;
    } else if (is_io || (made.writer == Writer::kLbf && region.name == "blocked")) {
      region.kind = RegionKind::kOff;
    } else if (is_barrier) {
      region.kind = RegionKind::kBarrier;
    } else if (region.name == "EZTrace finalize") {
      region.kind = RegionKind::kEnd;
    }
    made.regions_.emplace(ref, std::move(region));
  }
}

// EZTrace has one node for all, which is the program.
void Reading::find_nodes() {
  std::map<OTF2_SystemTreeNodeRef, std::uint32_t> numbers;
  for (const auto location : world) {
    OTF2_SystemTreeNodeRef node = processes[threads[location].process].node;
    for (std::size_t depth = 0; depth <= nodes.size() && nodes.contains(node) && !nodes[node].is_node; ++depth)
      node = nodes[node].parent;
    if (!nodes.contains(node) || !nodes[node].is_node) {
      made.node_of_rank.clear();
      return;
    }
    const auto number = numbers.try_emplace(node, static_cast<std::uint32_t>(numbers.size())).first->second;
    made.node_of_rank.push_back(number);
  }
}

std::vector<Rank> Reading::ranks_of(OTF2_GroupRef ref) {
  std::vector<Rank> ranks(world.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto found = groups.find(ref);
  if (found == groups.end()) return ranks;  // EZTrace's other group of the same number: all
  ranks.clear();
  for (const std::uint64_t member : found->second.members) {
    std::uint64_t rank = member;
    if (found->second.type == OTF2_GROUP_TYPE_LOCATIONS) {
      rank = static_cast<std::uint64_t>(std::find(world.begin(), world.end(), member) - world.begin());
    }
    if (rank >= world.size()) {
      fail("group " + std::to_string(ref) + " has member " + std::to_string(member) + ", and there are " +
           std::to_string(world.size()) + " ranks");
      return ranks;
    }
    ranks.push_back(static_cast<Rank>(rank));
  }
  return ranks;
}

bool Reading::is_world(const Comm& comm) {
  const auto group = groups.find(comm.group);
  if (comm.remote != OTF2_UNDEFINED_GROUP) return false;
  if (group != groups.end() && group->second.type == OTF2_GROUP_TYPE_COMM_SELF) return false;
  const std::vector<Rank> members = ranks_of(comm.group);
  if (members.size() != world.size()) return false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] != static_cast<Rank>(i)) return false;
  }
  return true;
}

std::optional<OTF2_CommRef> Reading::world_comm() {
  std::optional<OTF2_CommRef> without_name;
  for (const auto& [ref, comm] : comms) {
    if (!is_world(comm)) continue;
    if (comm.name == "MPI_COMM_WORLD") return ref;
    if (!without_name) without_name = ref;
  }
  return without_name;
}

void Reading::make_communicator(OTF2_CommRef ref, const Comm& comm, std::uint32_t& next) {
  Communicator made_one;
  const auto group = groups.find(comm.group);
  made_one.is_self = group != groups.end() && group->second.type == OTF2_GROUP_TYPE_COMM_SELF;
  made_one.has_world_ranks = group != groups.end() && group->second.has_world_ranks;
  if (!made_one.is_self) made_one.members = ranks_of(comm.group);
  if (comm.remote != OTF2_UNDEFINED_GROUP) made_one.remote = ranks_of(comm.remote);
  if (!made_one.is_self && !is_world(comm)) {
    for (const std::vector<Rank>* side : {&made_one.members, &made_one.remote}) {
      for (std::size_t i = 0; i < side->size(); ++i) {
        if (!made_one.places.emplace((*side)[i], static_cast<std::uint32_t>(i)).second)
          fail("communicator " + std::to_string(ref) + " has rank " + std::to_string((*side)[i]) + " twice");
      }
    }
  }
  made_one.index = next;
  next += made_one.is_self ? static_cast<std::uint32_t>(world.size()) : 1;
  made.communicators_.emplace(ref, std::move(made_one));
}

void Reading::make_communicators() {
  for (const auto& [ref, group] : groups) {
    if (group.type == OTF2_GROUP_TYPE_COMM_GROUP) made.groups_.emplace(ref, ranks_of(ref));
  }
  std::uint32_t next = 0;
  const std::optional<OTF2_CommRef> first = world_comm();
  if (first) {
    make_communicator(*first, comms[*first], next);
  } else {
    next = 1;  // nothing goes through MPI_COMM_WORLD
  }
  for (const auto& [ref, comm] : comms) {
    if (ref != first) make_communicator(ref, comm, next);
  }
  for (const auto& [ref, window] : windows) {
    const auto parent = made.communicators_.find(window.comm);
    if (parent == made.communicators_.end()) continue;
    Communicator own = parent->second;
    own.index = next;
    next += own.is_self ? static_cast<std::uint32_t>(world.size()) : 1;
    made.windows_.emplace(ref, Definitions::Window{std::move(own), window.comm});
  }
}

Result<Definitions> Definitions::read(OTF2_Reader* reader, const std::string& anchor) {
  Reading reading;
  reading.made.creator = creator_of(reader);
  reading.made.writer = writer_of(reading.made.creator);
  OTF2_GlobalDefReader* definitions = OTF2_Reader_GetGlobalDefReader(reader);
  if (definitions == nullptr) return invalid_input(anchor + ": its definitions cannot be read (NAME.def beside it)");
  OTF2_GlobalDefReaderCallbacks* callbacks = OTF2_GlobalDefReaderCallbacks_New();
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, on_clock);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, on_string);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(callbacks, on_node);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeDomainCallback(callbacks, on_domain);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks, on_process);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, on_region);
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, on_group);
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(callbacks, on_comm);
  OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(callbacks, on_intercomm);
  OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(callbacks, on_window);
  OTF2_GlobalDefReaderCallbacks_SetCallingContextCallback(callbacks, on_context);
  OTF2_ErrorCode read = OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, &reading);
  OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
  std::uint64_t count = 0;
  if (read == OTF2_SUCCESS) read = OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count);
  OTF2_Reader_CloseGlobalDefReader(reader, definitions);
  if (read != OTF2_SUCCESS)
    return invalid_input(anchor + ": its definitions cannot be read: " + OTF2_Error_GetDescription(read));
  if (reading.made.ticks_per_second == 0) reading.fail("its clock has no resolution");
  for (const auto step : {&Reading::number_ranks, &Reading::know_eztrace, &Reading::name_regions, &Reading::find_nodes,
                          &Reading::make_communicators}) {
    if (reading.wrong.empty()) (reading.*step)();
  }
  if (!reading.wrong.empty()) return invalid_input(anchor + ": " + reading.wrong);
  reading.made.contexts_ = std::move(reading.contexts);
  return std::move(reading.made);
}

}  // namespace lbf::tools::otf2
