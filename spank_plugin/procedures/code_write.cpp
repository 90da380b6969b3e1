#include "spank_plugin/procedures/code_write.h"

#include <asm/unistd.h>
#include <sys/mman.h>

#include "spank_plugin/procedures/call_times.h"

namespace lbf::procedures {

constinit EntryJump* entry_jumps[kMaxProcedures] = {};
constinit bool switched_off[kMaxProcedures] = {};
constinit std::uint32_t switch_offs = 0;

namespace {

constexpr std::uintptr_t kPage = 4096;

constinit bool writing = false;  // a thread has the turn

long set_protection(std::uintptr_t begin, std::uintptr_t bytes, int protection) noexcept {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(static_cast<long>(__NR_mprotect)), "D"(begin), "S"(bytes), "d"(static_cast<long>(protection))
                   : "rcx", "r11", "memory");
  return result;
}

struct alignas(16) Line {
  std::uint64_t low;
  std::uint64_t high;
};

bool exchange(Line* line, Line& expected, const Line& wanted) noexcept {
  bool done;
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(done), "+m"(*line), "+a"(expected.low), "+d"(expected.high)
                   : "b"(wanted.low), "c"(wanted.high)
                   : "memory");
  return done;
}

void write_at_once(std::uintptr_t address, const std::uint8_t* bytes, std::size_t size) noexcept {
  auto* const line = reinterpret_cast<Line*>(address & ~std::uintptr_t{15});
  const std::size_t offset = address & 15;
  Line expected{line->low, line->high};
  Line wanted;
  do {
    wanted = expected;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = offset + i;
      std::uint64_t& half = at < 8 ? wanted.low : wanted.high;
      const unsigned shift = 8 * (at % 8);
      half = (half & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{bytes[i]} << shift;
    }
  } while (!exchange(line, expected, wanted));
}

}  // namespace

WriteTurn::WriteTurn() noexcept {
  while (__atomic_test_and_set(&writing, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}

WriteTurn::~WriteTurn() {
  __atomic_clear(&writing, __ATOMIC_RELEASE);
}

WriteResult write_code(std::uintptr_t address, const std::uint8_t* bytes, std::size_t size, int protection,
                       bool others_wait) noexcept {
  const bool at_once = (address & 15) + size <= 16;
  if (!at_once && !others_wait) return WriteResult::kNotAtOnce;
  if (!others_wait && __atomic_test_and_set(&writing, __ATOMIC_ACQUIRE)) return WriteResult::kNotAtOnce;
  const auto give_turn = [&] {
    if (!others_wait) __atomic_clear(&writing, __ATOMIC_RELEASE);
  };
  const std::uintptr_t first = address & ~(kPage - 1);
  const std::uintptr_t length = ((address + size + kPage - 1) & ~(kPage - 1)) - first;
  if (set_protection(first, length, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    give_turn();
    return WriteResult::kRefused;
  }
  if (at_once) {
    write_at_once(address, bytes, size);
  } else {
    for (std::size_t i = size; i-- > 0;) reinterpret_cast<volatile std::uint8_t*>(address)[i] = bytes[i];
  }
  set_protection(first, length, protection);
  give_turn();
  return WriteResult::kDone;
}

void switch_off(std::uint32_t procedure) noexcept {
  if (!__atomic_exchange_n(&switched_off[procedure], true, __ATOMIC_RELAXED))
    __atomic_fetch_add(&switch_offs, 1, __ATOMIC_RELAXED);
  for (EntryJump* jump = entry_jumps[procedure]; jump != nullptr; jump = jump->next) {
    if (!jump->patched) continue;
    if (write_code(jump->address, jump->original, sizeof(jump->original), jump->protection, false) ==
        WriteResult::kDone) {
      jump->patched = false;
    }
  }
}

}  // namespace lbf::procedures
