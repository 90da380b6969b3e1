// Marks of switches; see switch_mark.h.
#include "spank_plugin/capture/switch_mark.h"

#include <dlfcn.h>
#include <time.h>

namespace lbf::capture {
namespace {

#if defined(__x86_64__) && defined(__LP64__)

// linux/rseq.h.
struct Sequence {
  std::uint32_t version;
  std::uint32_t flags;
  std::uint64_t start;
  std::uint64_t bytes;
  std::uint64_t abort;
};
struct Area {
  std::uint32_t cpu_id_start;
  std::int32_t cpu_id;  // < 0: not registered
  std::uint64_t sequence;
};

// An instruction that is never run, and the signature that glibc registers with before the place where a sequence would
// go on (its bits/rseq.h): the kernel looks whether it is there.
asm(R"(
  .pushsection .text
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
  .local lbf_switch_mark_abort
lbf_switch_mark_abort:
  ud2
  .local lbf_switch_mark_start
lbf_switch_mark_start:
  ud2
  .popsection
)");
extern "C" [[gnu::visibility("hidden")]] const char lbf_switch_mark_abort[];
extern "C" [[gnu::visibility("hidden")]] const char lbf_switch_mark_start[];

alignas(32) constinit Sequence sequence{};

std::ptrdiff_t area_offset = 0;  // from the thread pointer; 0: none

Area* area_of_thread() noexcept {
  if (area_offset == 0) return nullptr;
  std::byte* thread_pointer;
  asm("mov %%fs:0, %0" : "=r"(thread_pointer));
  auto* const area = reinterpret_cast<Area*>(thread_pointer + area_offset);
  return area->cpu_id >= 0 ? area : nullptr;
}

#endif

}  // namespace

#if defined(__x86_64__) && defined(__LP64__)

std::uint64_t SwitchMark::mark() noexcept {
  return reinterpret_cast<std::uintptr_t>(&sequence);
}

void switch_marks_start() noexcept {
  const auto* const size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
  const auto* const offset = static_cast<const std::ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (size == nullptr || offset == nullptr || *size < sizeof(Area)) return;
  sequence.start = reinterpret_cast<std::uintptr_t>(lbf_switch_mark_start);
  sequence.bytes = 1;
  sequence.abort = reinterpret_cast<std::uintptr_t>(lbf_switch_mark_abort);
  area_offset = *offset;
  // Kernels may differ: one that does not clear the field when a thread sleeps is no help.
  SwitchMark mark;
  mark.open();
  mark.set();
  const timespec moment{0, 1};
  nanosleep(&moment, nullptr);
  const bool works = !mark.intact();
  mark.close();
  if (!works) area_offset = 0;
}

void SwitchMark::open() noexcept {
  Area* const area = area_of_thread();
  field_ = area != nullptr ? &area->sequence : nullptr;
}

void SwitchMark::close() noexcept {
  Area* const area = area_of_thread();  // the thread may be another one's heir: of one that is gone nothing is touched
  if (area != nullptr && field_ == &area->sequence && intact()) __atomic_store_n(field_, 0, __ATOMIC_RELAXED);
  field_ = nullptr;
}

#else

std::uint64_t SwitchMark::mark() noexcept {
  return 1;
}
void switch_marks_start() noexcept {}
void SwitchMark::open() noexcept {}
void SwitchMark::close() noexcept {}

#endif

}  // namespace lbf::capture
