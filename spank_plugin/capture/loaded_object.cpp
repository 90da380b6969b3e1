// See loaded_object.h.
#include "spank_plugin/capture/loaded_object.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

// The linker's names for where this library begins and where its code ends.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char etext[];

namespace lbf::capture {
namespace {

constinit std::size_t started_with = 0;

struct Wanted {
  std::uintptr_t address;
  std::size_t index;
  LoadedObject& object;
};

// Of its segments with all these flags.
Range range_of(const dl_phdr_info& info, ElfW(Word) flags = 0) noexcept {
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & flags) != flags) continue;
    const std::uintptr_t from = info.dlpi_addr + part.p_vaddr;
    if (from < begin) begin = from;
    if (from + part.p_memsz > end) end = from + part.p_memsz;
  }
  return end != 0 ? Range{begin, end - begin} : Range{};
}

// false: its path is too long to be of use.
bool describe(const dl_phdr_info& info, std::size_t index, LoadedObject& object) noexcept {
  object.range = range_of(info);
  object.writable = range_of(info, PF_W);
  object.base = info.dlpi_addr;
  object.index = index;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) object.dynamic = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_RELRO) object.read_only_after_start = {info.dlpi_addr + part.p_vaddr, part.p_memsz};
  }
  const char* const path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  const std::size_t length = strlen(path);
  if (length >= sizeof(object.path)) return false;
  memcpy(object.path, path, length + 1);
  return true;
}

int match_address(dl_phdr_info* info, std::size_t, void* data) {
  auto* const wanted = static_cast<Wanted*>(data);
  if (range_of(*info).holds(wanted->address)) return describe(*info, wanted->index, wanted->object) ? 1 : -1;
  ++wanted->index;
  return 0;
}

int match_index(dl_phdr_info* info, std::size_t, void* data) {
  auto* const wanted = static_cast<Wanted*>(data);
  if (wanted->index-- != 0) return 0;
  return describe(*info, 0, wanted->object) ? 1 : -1;
}

struct Known {
  const Range& range;
  const char* path;
};

int match_known(dl_phdr_info* info, std::size_t, void* data) {
  const auto& known = *static_cast<const Known*>(data);
  return range_of(*info) == known.range && info->dlpi_name != nullptr && strcmp(info->dlpi_name, known.path) == 0;
}

int read_counts(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<LoadCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
  return 1;
}

int count_object(dl_phdr_info*, std::size_t, void* data) {
  ++*static_cast<std::size_t*>(data);
  return 0;
}

// By now the loader has brought all objects of the start, and none that the program opens.
[[gnu::constructor]] void count_startup_objects() noexcept {
  std::size_t count = 0;
  dl_iterate_phdr(count_object, &count);
  __atomic_store_n(&started_with, count, __ATOMIC_RELAXED);
}

}  // namespace

bool find_object(const void* address, LoadedObject& object) noexcept {
  Wanted wanted{reinterpret_cast<std::uintptr_t>(address), 0, object};
  return dl_iterate_phdr(match_address, &wanted) == 1;
}

bool is_loaded(const Range& range, const char* path) noexcept {
  Known known{range, path};
  return dl_iterate_phdr(match_known, &known) == 1;
}

std::uint64_t identity(const LoadedObject& object) noexcept {
  constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a
  std::uint64_t hash = (object.range.begin ^ object.range.size * kPrime) | 1;
  for (const char* c = object.path; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * kPrime;
  return hash;
}

std::uint64_t identity_at(const void* address) noexcept {
  LoadedObject object;
  return find_object(address, object) ? identity(object) : 0;
}

bool object_at(std::size_t index, LoadedObject& object) noexcept {
  Wanted wanted{0, index, object};
  object.path[0] = '\0';  // of one whose path is too long
  const bool is_there = dl_iterate_phdr(match_index, &wanted) != 0;
  object.index = index;
  return is_there;
}

LoadCounts load_counts() noexcept {
  LoadCounts counts;
  dl_iterate_phdr(read_counts, &counts);
  return counts;
}

std::size_t startup_objects() noexcept {
  return __atomic_load_n(&started_with, __ATOMIC_RELAXED);
}

ObjectScope::~ObjectScope() {
  if (handle_ != nullptr) dlclose(handle_);  // the program keeps its own reference
}

bool ObjectScope::is_loaded() noexcept {
  if (path_ != nullptr && *path_ != '\0') handle_ = dlopen(path_, RTLD_LAZY | RTLD_NOLOAD);
  path_ = nullptr;
  return handle_ != nullptr;
}

void* ObjectScope::symbol(const char* name) noexcept {
  return is_loaded() ? dlsym(handle_, name) : nullptr;
}

void* ObjectScope::release_handle() noexcept {
  void* const handle = is_loaded() ? handle_ : nullptr;
  handle_ = nullptr;
  return handle;
}

void* global_symbol(const char* name) noexcept {
  void* const program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return nullptr;
  void* const symbol = dlsym(program, name);
  dlclose(program);
  return symbol;
}

void* symbol_of_any_object(const char* name) noexcept {
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    if (void* const symbol = ObjectScope(object.path).symbol(name)) return symbol;
  }
  return nullptr;
}

bool is_own_function(const void* function) noexcept {
  return Range{reinterpret_cast<std::uintptr_t>(__ehdr_start), static_cast<std::uintptr_t>(etext - __ehdr_start)}.holds(
      reinterpret_cast<std::uintptr_t>(function));
}

}  // namespace lbf::capture
