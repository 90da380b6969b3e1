#include "spank_plugin/procedures/code_patch.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/code_write.h"
#include "spank_plugin/procedures/memory_map.h"

namespace lbf::procedures {
namespace {

constexpr std::uintptr_t kPage = 4096;

// push procedure and flags; call *[the common entry]; the relocated prologue follows.
constexpr std::size_t kStubHead = 5 + 6;
constexpr std::size_t kMaxStub = 256;

void append_stub(std::vector<std::uint8_t>& code, std::uintptr_t at, std::uintptr_t entry_pointer,
                 std::uint32_t procedure_and_flags) {
  code.push_back(0x68);
  for (int i = 0; i < 4; ++i) code.push_back(static_cast<std::uint8_t>(procedure_and_flags >> (8 * i)));
  code.push_back(0xff);
  code.push_back(0x15);
  const auto relative = static_cast<std::uint32_t>(entry_pointer - (at + kStubHead));
  for (int i = 0; i < 4; ++i) code.push_back(static_cast<std::uint8_t>(relative >> (8 * i)));
}

int protection_of(const std::vector<Mapping>& map, std::uintptr_t address) {
  for (const Mapping& mapping : map) {
    if (address >= mapping.begin && address < mapping.end) {
      return (mapping.readable ? PROT_READ : 0) | (mapping.executable ? PROT_EXEC : 0);
    }
  }
  return PROT_READ | PROT_EXEC;
}

// Other processors drop what they have fetched and decoded. Not there (old kernel): the handler's return did
// it for the threads that were stopped.
void synchronise_cores() {
  static const bool kRegistered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
  if (kRegistered) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

}  // namespace

void make_stubs(std::vector<PatchSite*>& sites, std::uintptr_t begin, std::uintptr_t end,
                std::vector<std::string>& reasons) {
  reasons.assign(sites.size(), "");
  const std::vector<Mapping> map = read_memory_map();
  const std::size_t bytes = (16 + sites.size() * kMaxStub + kPage - 1) / kPage * kPage;
  const std::uintptr_t wanted = free_range_near(map, begin, end, bytes);
  void* memory = MAP_FAILED;
  if (wanted != 0) {
    memory = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MAP_FAILED && reinterpret_cast<std::uintptr_t>(memory) != wanted) {  // an old kernel's hint
      munmap(memory, bytes);
      memory = MAP_FAILED;
    }
  }
  if (memory == MAP_FAILED) {
    reasons.assign(sites.size(), "no memory within 2 GiB of its code is free");
    return;
  }
  auto* const base = static_cast<std::uint8_t*>(memory);
  const auto base_address = reinterpret_cast<std::uintptr_t>(memory);
  const auto entry = reinterpret_cast<std::uintptr_t>(&lbf_procedures_entry);
  std::memcpy(base, &entry, sizeof(entry));
  std::size_t used = 16;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    PatchSite& site = *sites[i];
    const std::uintptr_t at = base_address + used;
    std::vector<std::uint8_t> code;
    append_stub(code, at, base_address, site.procedure | (site.prologue.loops_to_entry ? kLoopsToEntry : 0));
    const Result<RelocatedPrologue> relocated = relocate(site.prologue, at + kStubHead);
    if (!relocated) {
      reasons[i] = relocated.error().message;
      continue;
    }
    code.insert(code.end(), relocated->bytes.begin(), relocated->bytes.end());
    std::memcpy(base + used, code.data(), code.size());
    site.stub = at;
    site.relocated = at + kStubHead;
    for (std::size_t k = 1; k < site.prologue.starts.size(); ++k) {
      site.moves.push_back({site.prologue.address + site.prologue.starts[k], site.relocated + relocated->starts[k]});
    }
    site.jump.address = site.prologue.address;
    std::memcpy(site.jump.original, site.prologue.replaced.data(), kJumpBytes);
    site.jump.protection = protection_of(map, site.prologue.address);
    used += (code.size() + 15) / 16 * 16;
  }
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    for (PatchSite* site : sites) site->stub = 0;
    reasons.assign(sites.size(),
                   std::string("the system allows no code to be added (mprotect: ") + std::strerror(errno) + ")");
    munmap(memory, bytes);
  }
}

Result<std::uint32_t> patch(std::span<PatchSite* const> sites) {
  // All that takes memory first: a thread may be stopped where it holds the heap's lock.
  struct Wanted {
    PatchSite* site;
    std::vector<std::uint8_t> jump;
  };
  std::vector<Wanted> wanted;
  std::vector<Move> moves;
  for (PatchSite* site : sites) {
    if (site->jump.patched || site->stub == 0) continue;
    Result<std::vector<std::uint8_t>> bytes = jump(site->prologue.address, site->stub);
    if (!bytes) return bytes.error();
    wanted.push_back({site, std::move(*bytes)});
    moves.insert(moves.end(), site->moves.begin(), site->moves.end());
  }
  if (wanted.empty()) return std::uint32_t{0};
  std::uint32_t done = 0;
  {
    const WriteTurn turn;
    Result<StoppedThreads> stopped = StoppedThreads::stop(moves);
    if (!stopped) return stopped.error();
    for (const Wanted& each : wanted) {
      if (write_code(each.site->prologue.address, each.jump.data(), kJumpBytes, each.site->jump.protection, true) !=
          WriteResult::kDone) {
        break;
      }
      each.site->jump.patched = true;
      ++done;
    }
    // Whoever asked for all takes it that none is measured: hooks would go on for nobody.
    for (const Wanted& each : std::span(wanted).first(done == wanted.size() ? 0 : done)) {
      EntryJump& written = each.site->jump;
      if (write_code(written.address, written.original, kJumpBytes, written.protection, true) == WriteResult::kDone)
        written.patched = false;
    }
  }
  if (done != 0) synchronise_cores();
  if (done != wanted.size())
    return Error{ErrorCode::kPermission, "the system allows no change of the program's code (mprotect)"};
  return done;
}

Result<std::uint32_t> unpatch(std::span<PatchSite* const> sites) {
  std::uint32_t done = 0;
  bool all = true;
  for (PatchSite* site : sites) {
    EntryJump& jump = site->jump;
    if (!jump.patched) continue;
    if (write_code(jump.address, jump.original, kJumpBytes, jump.protection, false) == WriteResult::kDone) {
      jump.patched = false;
      ++done;
    } else {
      all = false;
    }
  }
  bool refused = false;
  if (!all) {
    const std::vector<Move> kNoMoves;
    const WriteTurn turn;
    Result<StoppedThreads> stopped = StoppedThreads::stop(kNoMoves);
    if (!stopped) return stopped.error();
    for (PatchSite* site : sites) {
      EntryJump& jump = site->jump;
      if (!jump.patched || refused) continue;
      refused = write_code(jump.address, jump.original, kJumpBytes, jump.protection, true) != WriteResult::kDone;
      if (refused) continue;
      jump.patched = false;
      ++done;
    }
  }
  if (done != 0) synchronise_cores();
  if (refused) return Error{ErrorCode::kPermission, "the system allows no change of the program's code (mprotect)"};
  return done;
}

}  // namespace lbf::procedures
