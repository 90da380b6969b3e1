#include "spank_plugin/procedures/loaded_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/scoped_fd.h"

namespace lbf::procedures {
namespace {

// By build id under /usr/lib/debug only: the standard call may ask servers (DEBUGINFOD_URLS).
int find_debug_file(Dwfl_Module* module, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                    char** path) {
  const unsigned char* id = nullptr;
  GElf_Addr address = 0;
  const int length = dwfl_module_build_id(module, &id, &address);
  if (length < 3) return -1;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "/usr/lib/debug/.build-id/";
  for (int i = 0; i < length; ++i) {
    name += kDigits[id[i] >> 4];
    name += kDigits[id[i] & 15];
    if (i == 0) name += '/';
  }
  name += ".debug";
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) *path = strdup(name.c_str());
  return fd;
}

bool is_system_library(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  for (const std::string_view begin :
       {"libc.so", "libc-", "libm.so", "libm-", "ld-linux", "ld-2", "libpthread", "libdl.", "librt.", "libgcc_s",
        "libstdc++", "libgfortran", "libquadmath", "libmvec"}) {
    if (name.starts_with(begin)) return true;
  }
  return false;
}

}  // namespace

struct LoadedSymbols::Session {
  Dwfl* dwfl = nullptr;
  std::vector<Dwfl_Module*> modules;  // as LoadedSymbols::modules_
  ~Session() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
};

LoadedSymbols::LoadedSymbols() : session_(std::make_unique<Session>()) {}
LoadedSymbols::~LoadedSymbols() = default;

Result<std::size_t> LoadedSymbols::read(std::string_view skip) {
  static char* no_path = nullptr;
  static const Dwfl_Callbacks kCallbacks = {dwfl_linux_proc_find_elf, find_debug_file, nullptr, &no_path};
  session_->dwfl = dwfl_begin(&kCallbacks);
  if (session_->dwfl == nullptr || dwfl_linux_proc_report(session_->dwfl, getpid()) != 0 ||
      dwfl_report_end(session_->dwfl, nullptr, nullptr) != 0) {
    return Error{ErrorCode::kIo, std::string("what the program has loaded cannot be read: ") + dwfl_errmsg(-1)};
  }
  std::vector<Dwfl_Module*> found;
  dwfl_getmodules(
      session_->dwfl,
      [](Dwfl_Module* module, void**, const char*, Dwarf_Addr, void* out) {
        static_cast<std::vector<Dwfl_Module*>*>(out)->push_back(module);
        return static_cast<int>(DWARF_CB_OK);
      },
      &found, 0);
  char program[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  std::set<std::string> undefined;
  std::set<std::string, std::less<>> defined;
  for (Dwfl_Module* module : found) {
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    const char* name = dwfl_module_info(module, nullptr, &begin, &end, nullptr, nullptr, nullptr, nullptr);
    if (name == nullptr || name[0] == '[' ||
        (!skip.empty() && std::string_view(name).find(skip) != std::string_view::npos))
      continue;
    const int count = dwfl_module_getsymtab(module);
    LoadedModule entry;
    entry.file = name;
    entry.begin = begin;
    entry.end = end;
    entry.executable = length > 0 && entry.file == program;
    entry.system = is_system_library(entry.file);
    const auto index = static_cast<std::uint32_t>(modules_.size());
    GElf_Addr bias = 0;
    Elf* elf = dwfl_module_getelf(module, &bias);
    entry.stripped = true;
    for (Elf_Scn* section = nullptr; elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_SYMTAB) entry.stripped = false;
    }
    std::size_t local = 0;
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      GElf_Word section = 0;
      const char* linkage = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
      if (linkage == nullptr || *linkage == '\0') continue;
      const int type = GELF_ST_TYPE(symbol.st_info);
      if (type != STT_FUNC && type != STT_GNU_IFUNC) {
        if (symbol.st_shndx == SHN_UNDEF && type == STT_NOTYPE) undefined.insert(linkage);
        continue;
      }
      std::string plain(linkage);
      if (symbol.st_shndx == SHN_UNDEF) {
        undefined.insert(plain.substr(0, plain.find('@')));
        continue;
      }
      if (const std::size_t version = plain.find('@'); version != std::string::npos) plain.resize(version);
      if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL) ++local;
      defined.insert(plain);
      symbols_.push_back({std::move(plain), address, symbol.st_size, index, type == STT_GNU_IFUNC});
    }
    if (local > 0) entry.stripped = false;  // a debug file had them
    modules_.push_back(std::move(entry));
    session_->modules.push_back(module);
  }
  for (const std::string& name : undefined) {
    if (!defined.contains(name)) undefined_.push_back(name);
  }
  std::sort(symbols_.begin(), symbols_.end(), [](const LoadedSymbol& a, const LoadedSymbol& b) {
    return a.address != b.address ? a.address < b.address : a.linkage < b.linkage;
  });
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(),
                             [](const LoadedSymbol& a, const LoadedSymbol& b) {
                               return a.address == b.address && a.linkage == b.linkage;
                             }),
                 symbols_.end());
  return symbols_.size();
}

namespace {

std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned at : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    if (dwarf_attr_integrate(die, at, &attribute) != nullptr) {
      const char* text = dwarf_formstring(&attribute);
      if (text != nullptr) return text;
    }
  }
  return {};
}

// gfortran's module procedures have a linkage name; C and Fortran's external ones none.
struct InlinedSearch {
  struct Asked {
    const NamePattern* pattern;
    InlinedPlaces* out;
  };
  std::vector<Asked> asked;
  std::unordered_map<const void*, std::vector<InlinedPlaces*>> known{};  // by origin (its address in the file)

  // Whose places DIE is one of.
  const std::vector<InlinedPlaces*>& asked_for(Dwarf_Die* die) {
    static const std::vector<InlinedPlaces*> kNobodys;
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    if (dwarf_attr(die, DW_AT_abstract_origin, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &origin) == nullptr)
      return kNobodys;
    const auto [at, is_new] = known.try_emplace(origin.addr);
    if (!is_new) return at->second;
    const Spellings spellings = spellings_of(name_of(&origin));
    for (const Asked& one : asked) {
      if (matches(*one.pattern, spellings)) at->second.push_back(one.out);
    }
    return at->second;
  }

  void walk(Dwarf_Die* parent, const std::string& procedure) {
    Dwarf_Die die;
    if (dwarf_child(parent, &die) != 0) return;
    do {
      const int tag = dwarf_tag(&die);
      switch (tag) {
        case DW_TAG_inlined_subroutine:
          for (InlinedPlaces* const out : asked_for(&die)) {
            ++out->places;
            if (out->in.size() < 3 && std::find(out->in.begin(), out->in.end(), procedure) == out->in.end())
              out->in.push_back(procedure);
          }
          walk(&die, procedure);
          break;
        case DW_TAG_subprogram:
          // Declarations and abstract instances have no code.
          if (dwarf_hasattr(&die, DW_AT_low_pc) != 0 || dwarf_hasattr(&die, DW_AT_ranges) != 0)
            walk(&die, spellings_of(name_of(&die)).display);
          break;
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
        case DW_TAG_module:
          walk(&die, procedure);
          break;
        default:
          break;
      }
    } while (dwarf_siblingof(&die, &die) == 0);
  }
};

}  // namespace

std::vector<InlinedPlaces> LoadedSymbols::inlined_places(std::span<const NamePattern> patterns) {
  std::vector<InlinedPlaces> out(patterns.size());
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i].system) continue;
    InlinedSearch search;
    for (std::size_t k = 0; k < patterns.size(); ++k) {
      if (!patterns[k].wildcards && matches_module(patterns[k], modules_[i].file))
        search.asked.push_back({&patterns[k], &out[k]});
    }
    Dwarf_Addr bias = 0;
    if (search.asked.empty() || dwfl_module_getdwarf(session_->modules[i], &bias) == nullptr) continue;
    for (const InlinedSearch::Asked& one : search.asked) one.out->known = true;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(session_->modules[i], unit, &bias)) != nullptr;) {
      search.walk(unit, "");
    }
  }
  return out;
}

}  // namespace lbf::procedures
