#include "spank_plugin/procedures/procedures.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>
#include <set>
#include <span>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/code_patch.h"
#include "spank_plugin/procedures/loaded_symbols.h"
#include "spank_plugin/procedures/memory_map.h"
#include "spank_plugin/procedures/procedure_names.h"

namespace lbf::procedures {
namespace {

// Sites are linked into entry_jumps, which threads read at any time: never freed.
PatchSite* new_site() {
  return new PatchSite;
}

std::string base_name(const std::string& file) {
  return file.substr(file.rfind('/') + 1);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// A run of letters that the linkage name of every symbol that PATTERN could mean must contain; empty: none is
// known. Saves demangling everything.
std::string needle_of(const NamePattern& pattern) {
  if (pattern.wildcards || pattern.name.find("operator") != std::string::npos ||
      pattern.name.find('~') != std::string::npos)
    return {};
  std::string_view name = pattern.name;
  name = name.substr(0, name.find_first_of("(<["));
  const std::size_t colons = name.rfind("::");
  if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return {};
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  // Constructors are named after their class, which the mangled name has once.
  return out;
}

bool contains_ignoring_case(std::string_view text, std::string_view lower_needle) {
  return std::search(text.begin(), text.end(), lower_needle.begin(), lower_needle.end(),
                     [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; }) != text.end();
}

}  // namespace

struct Procedures::State {
  LoadedSymbols symbols;
  Selection selection;
  std::vector<std::vector<PatchSite*>> sites;  // by procedure
  std::vector<Mapping> map;
  std::map<std::uintptr_t, std::uint32_t> by_address;  // what is selected already
  bool is_read = false;
  std::span<const NamePattern> patterns;  // asked for by the open() that is under way
  std::vector<InlinedPlaces> inlined;     // of each of them; empty: nobody wanted to know yet

  void select(const NamePattern& pattern);
  void refuse_unknown(const NamePattern& pattern);
  std::string plan(const LoadedSymbol& symbol, PatchSite*& site) const;
  void name_same_code(std::uint32_t id, const LoadedSymbol& symbol, const Spellings& spellings);
  const InlinedPlaces& inlined_places(const NamePattern& pattern);
  void refuse_jumped_into(std::uint32_t module, std::vector<PatchSite*>& of_module);
  void make_stubs_from(std::size_t first);
  std::vector<const LoadedSymbol*> at(std::uintptr_t address) const {
    std::vector<const LoadedSymbol*> out;
    const auto& all = symbols.symbols();
    for (auto it = std::lower_bound(all.begin(), all.end(), address,
                                    [](const LoadedSymbol&s, std::uintptr_t a) { return s.address < a; });
         it != all.end() && it->address == address; ++it) {
      out.push_back(&*it);
    }
    return out;
  }
};

Procedures::Procedures() : state_(std::make_unique<State>()) {}
Procedures::~Procedures() = default;

const Selection& Procedures::selection() const {
  return state_->selection;
}

const LoadedSymbols& Procedures::symbols() const {
  return state_->symbols;
}

// Of all that is asked for in one walk: each takes a second per 100 MB of debug information.
const InlinedPlaces& Procedures::State::inlined_places(const NamePattern& pattern) {
  if (inlined.empty()) inlined = symbols.inlined_places(patterns);
  return inlined[static_cast<std::size_t>(&pattern - patterns.data())];
}

// Empty: `site` is planned. Else why not.
std::string Procedures::State::plan(const LoadedSymbol& symbol, PatchSite*& site) const {
  if (const char* reason = never_measured(symbol.linkage)) return reason;
  if (symbol.size == 0) return "its symbol has no size";
  const Mapping* mapping = nullptr;
  for (const Mapping& candidate : map) {
    if (symbol.address >= candidate.begin && symbol.address < candidate.end) mapping = &candidate;
  }
  if (mapping == nullptr || !mapping->executable || !mapping->readable) return "its code cannot be read";
  if (symbol.size > mapping->end - symbol.address) return "its symbol's size goes beyond the code";
  const auto& all = symbols.symbols();
  ProcedureCode code;
  code.address = symbol.address;
  code.size = symbol.size;
  // Padding behind it, up to what comes next.
  constexpr std::uint64_t kPadding = 16;
  std::uintptr_t end = std::min(mapping->end, symbol.address + symbol.size + kPadding);
  std::vector<std::uint64_t> other_entries;
  auto next = std::upper_bound(all.begin(), all.end(), symbol.address,
                               [](std::uintptr_t a, const LoadedSymbol& s) { return a < s.address; });
  for (; next != all.end() && next->address < end; ++next) {
    if (next->address >= symbol.address + symbol.size) end = std::min(end, next->address);
    if (next->address < end) other_entries.push_back(next->address - symbol.address);
  }
  code.other_entries = other_entries;
  code.code = {reinterpret_cast<const std::uint8_t*>(symbol.address), end - symbol.address};
  std::vector<CodePiece> pieces;
  const std::string cold = symbol.linkage + ".cold";
  for (const LoadedSymbol& other : all) {
    if (other.module == symbol.module && other.size > 0 && other.linkage.starts_with(cold)) {
      pieces.push_back({other.address, {reinterpret_cast<const std::uint8_t*>(other.address), other.size}});
    }
  }
  code.pieces = pieces;
  const Result<Prologue> prologue = plan_prologue(code);
  if (!prologue) return prologue.error().message;
  site = new_site();
  site->prologue = *prologue;
  return {};
}

void Procedures::State::name_same_code(std::uint32_t id, const LoadedSymbol& symbol, const Spellings& spellings) {
  std::vector<std::string>& names = selection.selected[id].same_code;
  for (const LoadedSymbol* other : at(symbol.address)) {
    const std::string name = spellings_of(other->linkage).display;
    if (name == spellings.display || name == selection.selected[id].name) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

void Procedures::State::refuse_unknown(const NamePattern& pattern) {
  std::string reason = "'" + pattern.text + "'";
  bool module_loaded = pattern.module.empty();
  std::vector<std::string> stripped;
  for (const LoadedModule& module : symbols.modules()) {
    const bool asked = matches_module(pattern, module.file);
    module_loaded |= asked;
    if (asked && module.stripped && !module.system && (module.executable || !pattern.module.empty()))
      stripped.push_back(base_name(module.file));
  }
  if (!module_loaded) {
    std::vector<std::string> files;
    for (const LoadedModule& module : symbols.modules()) {
      if (!module.system) files.push_back(base_name(module.file));
    }
    const std::vector<std::string> near = near_names(pattern.module, files);
    reason += ": no library of that name is loaded when the measuring begins";
    if (!near.empty()) reason += "; near: " + joined(near);
    selection.refused.push_back({pattern.text, reason});
    return;
  }
  const InlinedPlaces places = pattern.wildcards ? InlinedPlaces{} : inlined_places(pattern);
  if (places.places > 0) {
    reason += " is inlined at " + std::to_string(places.places) + (places.places == 1 ? " place" : " places") +
              " (in " + joined(places.in) + (places.in.size() == 3 ? ", ..." : "") +
              ") and has no code of its own: its times cannot be seen; "
              "build with -fno-inline, or name its caller";
    selection.refused.push_back({pattern.text, reason});
    return;
  }
  const auto& undefined = symbols.undefined();
  if (std::find(undefined.begin(), undefined.end(), pattern.name) != undefined.end()) {
    reason += " is called, but no library that is loaded when the measuring begins defines it";
    selection.refused.push_back({pattern.text, reason});
    return;
  }
  reason += " is no procedure of the program or its libraries";
  if (!stripped.empty()) {
    reason += "; " + joined(stripped) + (stripped.size() == 1 ? " is" : " are") +
              " stripped (no symbol table, no debug file for its build id): only exported names are known there";
  }
  std::vector<std::string> candidates;
  std::set<std::string> seen;
  for (const LoadedSymbol& symbol : symbols.symbols()) {
    if (symbols.modules()[symbol.module].system || !matches_module(pattern, symbols.modules()[symbol.module].file))
      continue;
    std::string display = spellings_of(symbol.linkage).display;
    if (seen.insert(display).second) candidates.push_back(std::move(display));
  }
  const std::vector<std::string> near = near_names(pattern.name, candidates);
  if (!near.empty()) reason += "; near: " + joined(near);
  selection.refused.push_back({pattern.text, reason});
}

void Procedures::State::select(const NamePattern& pattern) {
  const std::string needle = needle_of(pattern);
  bool found = false;
  std::map<std::string, std::uint32_t> group;  // module and name -> id, of this pattern
  std::size_t refused_by_wildcard = 0;
  for (const LoadedSymbol& listed : symbols.symbols()) {
    if (!needle.empty() && !contains_ignoring_case(listed.linkage, needle)) continue;
    if (!matches_module(pattern, symbols.modules()[listed.module].file)) continue;
    // A wildcard means the user's procedures, not the C library's, unless it names that library.
    if (pattern.wildcards && pattern.module.empty() && symbols.modules()[listed.module].system) continue;
    const Spellings spellings = spellings_of(listed.linkage);
    if (spellings.clone == "resolver" || !matches(pattern, spellings)) continue;
    const bool is_never = never_measured(listed.linkage) != nullptr;
    if (pattern.wildcards && is_never) continue;
    if (!is_never && listed.size > 0 && !listed.chosen_at_load)
      selection.code.push_back({spellings.display, listed.address, listed.address + listed.size});
    if (spellings.clone == "cold") continue;
    found = true;
    const LoadedSymbol* symbol = &listed;
    if (listed.chosen_at_load) {
      const auto chosen = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, listed.linkage.c_str()));
      const std::vector<const LoadedSymbol*> there = at(chosen);
      const auto function =
          std::find_if(there.begin(), there.end(), [](const LoadedSymbol* s) { return !s->chosen_at_load; });
      if (chosen == 0 || function == there.end()) {
        selection.refused.push_back(
            {spellings.display, "'" + spellings.display +
                                    "' is chosen when the program is loaded (IFUNC), and what was chosen has no "
                                    "name here: it cannot be measured"});
        continue;
      }
      symbol = *function;
      selection.notes.push_back("'" + spellings.display +
                                "' is chosen when the program is loaded (IFUNC): measured is " + symbol->linkage);
    }
    if (const auto known = by_address.find(symbol->address); known != by_address.end()) {
      name_same_code(known->second, *symbol, spellings);
      continue;
    }
    PatchSite* site = nullptr;
    const std::string why_not = plan(*symbol, site);
    if (!why_not.empty()) {
      if (pattern.wildcards && ++refused_by_wildcard > 5) continue;
      selection.refused.push_back({spellings.display,
                                   "'" + spellings.display + "' (" + base_name(symbols.modules()[symbol->module].file) +
                                       ") cannot be measured: " + why_not,
                                   !is_never && symbol->size > 0});
      continue;
    }
    const std::string key = std::to_string(symbol->module) + ' ' + spellings.display;
    auto in_group = group.find(key);
    if (in_group == group.end()) {
      if (selection.selected.size() == kMaxProcedures - 1) {
        selection.refused.push_back(
            {spellings.display, "'" + pattern.text + "' means more than " + std::to_string(kMaxProcedures - 1) +
                                    " procedures together with the others: the rest is left out"});
        return;
      }
      SelectedProcedure procedure;
      procedure.id = static_cast<std::uint32_t>(selection.selected.size());
      procedure.name = spellings.display;
      procedure.module = symbols.modules()[symbol->module].file;
      selection.selected.push_back(std::move(procedure));
      sites.emplace_back();
      in_group = group.emplace(key, selection.selected.back().id).first;
    }
    SelectedProcedure& procedure = selection.selected[in_group->second];
    site->procedure = procedure.id;
    ++procedure.entries;
    procedure.partial |= spellings.clone == "part";
    sites[procedure.id].push_back(site);
    by_address.emplace(symbol->address, procedure.id);
    if (!listed.chosen_at_load) name_same_code(procedure.id, *symbol, spellings);
  }
  if (refused_by_wildcard > 5) {
    selection.notes.push_back("'" + pattern.text + "': " + std::to_string(refused_by_wildcard - 5) +
                              " more cannot be measured");
  }
  if (!found) {
    refuse_unknown(pattern);
    return;
  }
  if (pattern.wildcards || group.empty()) return;
  const InlinedPlaces& places = inlined_places(pattern);
  if (places.places > 0) {
    selection.notes.push_back("'" + pattern.text + "' is also inlined at " + std::to_string(places.places) +
                              (places.places == 1 ? " place" : " places") + " (in " + joined(places.in) +
                              (places.in.size() == 3 ? ", ..." : "") + "): times there cannot be seen");
  }
}

// Takes the sites out that other procedures' code jumps into.
void Procedures::State::refuse_jumped_into(std::uint32_t module, std::vector<PatchSite*>& of_module) {
  std::sort(of_module.begin(), of_module.end(),
            [](const PatchSite* a, const PatchSite* b) { return a->prologue.address < b->prologue.address; });
  std::vector<PatchedRange> ranges;
  for (const PatchSite* site : of_module) {
    ranges.push_back({site->prologue.address, site->prologue.address + site->prologue.replaced.size()});
  }
  const LoadedModule& loaded = symbols.modules()[module];
  for (const Mapping& mapping : map) {
    if (!mapping.executable || !mapping.readable || mapping.begin < loaded.begin || mapping.end > loaded.end) continue;
    mark_jump_targets({reinterpret_cast<const std::uint8_t*>(mapping.begin), mapping.end - mapping.begin},
                      mapping.begin, ranges);
    // Short jumps come from the neighbours.
    constexpr std::uint64_t kReach = 130;
    for (PatchedRange& range : ranges) {
      if (range.first < mapping.begin || range.last > mapping.end) continue;
      for (const LoadedSymbol& symbol : symbols.symbols()) {
        if (symbol.address > range.last + kReach) break;
        const bool is_near = symbol.address + symbol.size + kReach > range.first && symbol.address != range.first;
        if (!is_near || symbol.address < mapping.begin || symbol.size > mapping.end - symbol.address) continue;
        mark_short_jump_targets({reinterpret_cast<const std::uint8_t*>(symbol.address), symbol.size}, symbol.address,
                                {&range, 1});
      }
    }
  }
  std::vector<PatchSite*> kept;
  for (std::size_t i = 0; i < of_module.size(); ++i) {
    if (!ranges[i].is_target) {
      kept.push_back(of_module[i]);
      continue;
    }
    const std::string& name = selection.selected[of_module[i]->procedure].name;
    --selection.selected[of_module[i]->procedure].entries;
    selection.refused.push_back({name,
                                 "'" + name + "' (" + base_name(loaded.file) +
                                     ") cannot be measured: another procedure jumps into its first instructions",
                                 selection.selected[of_module[i]->procedure].entries == 0});
  }
  of_module = std::move(kept);
}

// Of procedures from `first` on.
void Procedures::State::make_stubs_from(std::size_t first) {
  std::map<std::uint32_t, std::vector<PatchSite*>> by_module;
  for (std::size_t id = first; id < sites.size(); ++id) {
    for (PatchSite* site : sites[id]) {
      for (std::uint32_t i = 0; i < symbols.modules().size(); ++i) {
        const LoadedModule& module = symbols.modules()[i];
        if (site->prologue.address >= module.begin && site->prologue.address < module.end) {
          by_module[i].push_back(site);
          break;
        }
      }
    }
  }
  for (auto& [index, of_module] : by_module) {
    refuse_jumped_into(index, of_module);
    if (of_module.empty()) continue;
    // A library that is patched must not go away.
    if (const LoadedModule& module = symbols.modules()[index]; !module.executable) {
      if (dlopen(module.file.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr)
        (void)dlerror();  // the program's own next one
    }
    std::vector<std::string> reasons;
    make_stubs(of_module, symbols.modules()[index].begin, symbols.modules()[index].end, reasons);
    for (std::size_t i = 0; i < of_module.size(); ++i) {
      PatchSite* site = of_module[i];
      const std::string& name = selection.selected[site->procedure].name;
      if (site->stub == 0) {
        --selection.selected[site->procedure].entries;
        selection.refused.push_back({name, "'" + name + "' cannot be measured: " + reasons[i],
                                     selection.selected[site->procedure].entries == 0});
        continue;
      }
      site->jump.next = entry_jumps[site->procedure];
      entry_jumps[site->procedure] = &site->jump;
    }
  }
}

Result<void> Procedures::read() {
  if (state_->is_read) return {};
  const NotMeasured no_times;
  // Nothing of lbf's own: neither this library nor the capture.
  const Result<std::size_t> read = state_->symbols.read("/liblbf_");
  if (!read) return read.error();
  state_->is_read = true;
  return {};
}

Result<std::size_t> Procedures::open(std::string_view list) {
  const NotMeasured no_times;
  const std::vector<NamePattern> patterns = parse_patterns(list);
  if (patterns.empty()) return Error{ErrorCode::kInvalidInput, "--lbf-procedures names no procedure"};
  if (const Result<void> done = read(); !done) return done.error();
  state_->map = read_memory_map();
  const std::size_t first = state_->selection.selected.size();
  state_->patterns = patterns;
  state_->inlined.clear();
  for (const NamePattern& pattern : patterns) state_->select(pattern);
  state_->patterns = {};
  for (std::size_t id = first; id < state_->selection.selected.size(); ++id) {
    const SelectedProcedure& procedure = state_->selection.selected[id];
    if (!procedure.same_code.empty()) {
      state_->selection.notes.push_back("'" + procedure.name + "' and " + joined(procedure.same_code) +
                                        " are the same code (other names of it, or folded into one by the "
                                        "linker): calls of all of them count");
    }
    if (procedure.partial) {
      state_->selection.notes.push_back("'" + procedure.name +
                                        "' was split by the compiler: what stays in its callers is not measured");
    }
  }
  state_->make_stubs_from(first);
  const auto& selected = state_->selection.selected;
  return static_cast<std::size_t>(
      std::count_if(selected.begin(), selected.end(), [](const SelectedProcedure& p) { return p.entries > 0; }));
}

Result<std::uint32_t> Procedures::patch(std::uint32_t id) {
  if (id >= state_->sites.size()) return Error{ErrorCode::kNotFound, "no selected procedure has that number"};
  const NotMeasured no_times;
  // Before its jumps can be met: whoever does may switch it off again.
  const bool was_off = __atomic_exchange_n(&switched_off[id], false, __ATOMIC_RELAXED);
  Result<std::uint32_t> done = lbf::procedures::patch(state_->sites[id]);
  if (!done && was_off) __atomic_store_n(&switched_off[id], true, __ATOMIC_RELAXED);
  return done;
}

Result<std::uint32_t> Procedures::patch_all() {
  const NotMeasured no_times;
  std::vector<PatchSite*> all;
  for (const auto& of_procedure : state_->sites) all.insert(all.end(), of_procedure.begin(), of_procedure.end());
  for (std::size_t id = 0; id < state_->sites.size(); ++id)
    __atomic_store_n(&switched_off[id], false, __ATOMIC_RELAXED);
  return lbf::procedures::patch(all);
}

Result<std::uint32_t> Procedures::unpatch(std::uint32_t id) {
  if (id >= state_->sites.size()) return Error{ErrorCode::kNotFound, "no selected procedure has that number"};
  const NotMeasured no_times;
  return lbf::procedures::unpatch(state_->sites[id]);
}

ProcedureState Procedures::state(std::uint32_t id) const {
  if (__atomic_load_n(&switched_off[id], __ATOMIC_RELAXED)) return ProcedureState::kSwitchedOffByCost;
  for (const PatchSite* site : state_->sites[id]) {
    if (site->jump.patched) return ProcedureState::kMeasured;
  }
  return ProcedureState::kSwitchedOff;
}

double Procedures::measure_call_ticks() {
  const auto begin = reinterpret_cast<std::uintptr_t>(&lbf_procedures_nothing);
  const auto end = reinterpret_cast<std::uintptr_t>(&lbf_procedures_nothing_end);
  static PatchSite* site = nullptr;
  if (site == nullptr) {
    ProcedureCode code;
    code.address = begin;
    code.size = end - begin;
    code.code = {reinterpret_cast<const std::uint8_t*>(begin), end - begin};
    const Result<Prologue> prologue = plan_prologue(code);
    if (!prologue) return 0;
    PatchSite* made = new_site();
    made->prologue = *prologue;
    made->procedure = kCalibration;
    std::vector<PatchSite*> sites{made};
    std::vector<std::string> reasons;
    make_stubs(sites, begin, end, reasons);
    if (made->stub == 0) return 0;
    site = made;
  }
  const auto time_calls = [] {
    std::uint64_t best = ~std::uint64_t{0};
    constexpr int kCalls = 500;
    for (int round = 0; round < 40; ++round) {
      const std::uint64_t from = __builtin_ia32_rdtsc();
      for (int i = 0; i < kCalls; ++i) lbf_procedures_nothing();
      best = std::min<std::uint64_t>(best, __builtin_ia32_rdtsc() - from);
    }
    return static_cast<double>(best) / kCalls;
  };
  const double without = time_calls();
  std::vector<PatchSite*> sites{site};
  if (!lbf::procedures::patch(sites)) return 0;
  const double with = time_calls();
  (void)lbf::procedures::unpatch(sites);
  return std::max(with - without, 1.0);
}

void Procedures::limit_cost(double share, double call_ticks) {
  cost_rule.call_ticks.store(static_cast<std::uint64_t>(call_ticks + 0.5), std::memory_order_relaxed);
  cost_rule.limit_65536.store(static_cast<std::uint64_t>(share * 65536.0 + 0.5), std::memory_order_relaxed);
}

double predicted_share(double calls_per_s, double call_ns) {
  return calls_per_s * call_ns * 1e-9;
}

}  // namespace lbf::procedures
