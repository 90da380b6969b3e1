// See bypass.h.
#include "spank_plugin/capture/bypass.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <span>

#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/object_needs.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {
namespace {

constinit std::atomic<unsigned long long> looked_at{0};  // load counts, added up
constinit SpinMutex unprotecting;  // who protects a page again must not do it under another one's hands

// use(Place, what its name means to the object itself) for each place that leads to an entry of ours, or will; not for
// names that mean the same to everybody.
template <class Use>
void for_each_entry(const LoadedObject& object, Use use) noexcept {
  ObjectScope scope(object.path);
  // Until it was held, another thread may have closed it, and opened it elsewhere.
  if (!scope.is_loaded() || !is_loaded(object.range, object.path)) return;
  Needs(object).for_each([&](const Place& place) {
    if (strncmp(place.name, "MPI_", 4) != 0 && strncmp(place.name, "mpi_", 4) != 0) return;
    if (dlsym(RTLD_NEXT, place.name) != nullptr) return;
    void* const own = scope.symbol(place.name);
    if (own == nullptr || own == place.leads_to) return;
    if (is_own_function(place.is_bound ? place.leads_to : global_symbol(place.name))) use(place, own);
  });
}

// false: it may not be written.
bool write(const LoadedObject& object, void** place, void* function) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  if (!object.writable.holds(address)) return false;
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  if (!protected_pages(object.read_only_after_start, page_bytes).holds(address)) {
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
    return true;
  }
  auto* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  unprotecting.lock();
  const bool is_open = mprotect(page, page_bytes, PROT_READ | PROT_WRITE) == 0;
  if (is_open) {
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
    mprotect(page, page_bytes, PROT_READ);
  }
  unprotecting.unlock();
  return is_open;
}

unsigned long long changes() noexcept {
  const LoadCounts counts = load_counts();
  return counts.loaded + counts.unloaded;
}

}  // namespace

bool has_newcomers() noexcept {
  return looked_at.load(std::memory_order_relaxed) != changes();
}

void bypass_newcomers(IsRecorded is_recorded) noexcept {
  unsigned long long now = changes();
  if (looked_at.exchange(now, std::memory_order_relaxed) == now) return;
  bool is_over = true;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    for_each_entry(object, [&](const Place& place, void* own) {
      if (is_recorded(place.name, reinterpret_cast<lbf_function>(own))) return;
      // The first call of it, in another thread, may bind it just now and write our entry there after this.
      if (write(object, place.at, own) && !place.is_bound) is_over = false;
    });
  }
  if (!is_over) looked_at.compare_exchange_strong(now, 0, std::memory_order_relaxed);
}

lbf_function function_of_last_caller(const char* name) noexcept {
  void* function = nullptr;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    for_each_entry(object, [&](const Place& place, void* own) {
      if (strcmp(place.name, name) == 0) function = own;
    });
  }
  return reinterpret_cast<lbf_function>(function);
}

}  // namespace lbf::capture
