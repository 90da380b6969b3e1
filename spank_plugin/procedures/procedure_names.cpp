#include "spank_plugin/procedures/procedure_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

namespace lbf::procedures {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string demangled(const std::string& linkage) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(linkage.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : std::string();
}

// Where the operator's own characters end, when `text` has "operator" at `at` as a word; else `at`.
std::size_t behind_operator(std::string_view text, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  if (text.substr(at, kWord.size()) != kWord) return at;
  if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_')) return at;
  std::size_t end = at + kWord.size();
  for (const std::string_view symbol :
       {"()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "*"}) {
    if (text.substr(end, symbol.size()) == symbol) return end + symbol.size();
  }
  return end;
}

struct NameInside {
  std::size_t begin = 0;
  std::size_t end = std::string_view::npos;
};
// "int ns::f<int>(int) const": the name, "ns::f<int>". The parameter list is the last pair of () at depth 0,
// the return type (of templates) what stands before the last blank at depth 0.
NameInside name_inside(std::string_view text) {
  int depth = 0;
  NameInside name;
  bool in_operator = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t behind = behind_operator(text, i);
    if (behind != i) {
      in_operator = depth == 0;
      i = behind - 1;
      continue;
    }
    const char c = text[i];
    if (c == '(' && depth == 0) {
      if (text.substr(i, 21) == "(anonymous namespace)") {
        i += 20;
        continue;
      }
      name.end = i;
    }
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    // Behind "operator" a blank is part of a conversion's name.
    if (c == ' ' && depth == 0 && !in_operator && name.end == std::string_view::npos) name.begin = i + 1;
    if (c == ':' && depth == 0) name.end = std::string_view::npos;  // f(int)::g
  }
  return name;
}

std::string_view without_return_type(std::string_view text) {
  const std::size_t begin = name_inside(text).begin;
  return begin < text.size() ? text.substr(begin) : text;
}

std::string without_parameters(std::string_view text) {
  const NameInside name = name_inside(text);
  return std::string(name.begin < name.end ? text.substr(name.begin, name.end - name.begin) : text);
}

std::string without_template_arguments(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t behind = behind_operator(text, i);
    if (behind != i) {
      if (depth == 0) out += text.substr(i, behind - i);
      i = behind - 1;
      continue;
    }
    if (text[i] == '<') ++depth;
    if (depth == 0) out += text[i];
    if (text[i] == '>') --depth;
  }
  return out;
}

// Splits what compilers add to a copy of a procedure off its name.
std::string_view split_clone(std::string_view linkage, std::string& clone) {
  const std::size_t dot = linkage.find('.', 1);
  if (dot == std::string_view::npos) return linkage;
  const std::string_view rest = linkage.substr(dot + 1);
  for (const std::string_view kind :
       {"constprop", "isra", "part", "cold", "lto_priv", "llvm", "localalias", "clone", "__uniq", "resolver"}) {
    if (rest.find(kind) != std::string_view::npos) {
      clone = std::string(kind);
      // "f.part.0.constprop.1" is a piece all the same.
      if (rest.find("part") != std::string_view::npos) clone = "part";
      if (rest.find("cold") != std::string_view::npos) clone = "cold";
      return linkage.substr(0, dot);
    }
  }
  // A procedure inside another one (Fortran's CONTAINS, gcc's nested functions): "inner.0".
  if (!rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos) return linkage.substr(0, dot);
  return linkage;
}

void add(Spellings& spellings, std::string name) {
  if (name.empty() || std::find(spellings.all.begin(), spellings.all.end(), name) != spellings.all.end()) return;
  spellings.all.push_back(std::move(name));
}

// Whether NAME, as a user writes it, stands for several. Inside brackets a * is a pointer's, and so it is in a return
// type, which is there only with a parameter list ("double* make<int>(int)"); "operator*" is a name. Brackets that do
// not end are none of a type's: any * counts then.
bool has_wildcards(std::string_view name) {
  if (name.find('?') != std::string_view::npos) return true;
  const NameInside inside = name_inside(name);
  int depth = 0;
  bool in_brackets = false;
  for (std::size_t i = inside.end == std::string_view::npos ? 0 : inside.begin; i < name.size(); ++i) {
    const std::size_t behind = behind_operator(name, i);
    if (behind != i) {
      i = behind - 1;
      continue;
    }
    const char c = name[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == '>' || c == ']' || c == '}') && depth > 0) --depth;
    if (c == '*' && depth == 0) return true;
    in_brackets |= c == '*';
  }
  return in_brackets && depth > 0;
}

}  // namespace

Spellings spellings_of(std::string_view linkage) {
  Spellings out;
  const std::string stem(split_clone(linkage, out.clone));
  if (stem.starts_with("_Z")) {
    out.display = without_return_type(demangled(stem));
    if (!out.display.empty()) {
      add(out, out.display);
      const std::string plain = without_parameters(out.display);
      add(out, plain);
      add(out, without_template_arguments(plain));
    }
  } else if (const std::size_t module_end = stem.find("_MOD_");
             stem.starts_with("__") && module_end != std::string::npos) {
    out.fortran = true;  // gfortran: __module_MOD_procedure
    out.display = stem.substr(2, module_end - 2) + "::" + stem.substr(module_end + 5);
    add(out, out.display);
  } else if (const std::size_t ifort = stem.find("_mp_"); ifort != std::string::npos && stem.back() == '_') {
    out.fortran = true;  // ifort, ifx: module_mp_procedure_
    out.display = stem.substr(0, ifort) + "::" + stem.substr(ifort + 4, stem.size() - ifort - 5);
    add(out, out.display);
  } else if (stem.size() > 1 && stem.back() == '_' && stem[stem.size() - 2] != '_') {
    out.fortran = true;
    out.display = stem.substr(0, stem.size() - 1);
    add(out, out.display);
  } else if (stem.size() > 2 && stem.ends_with("__")) {
    out.fortran = true;  // g77's rule for names that have an underscore
    out.display = stem.substr(0, stem.size() - 2);
    add(out, out.display);
  }
  if (out.display.empty()) out.display = stem;
  add(out, stem);
  add(out, std::string(linkage));
  return out;
}

std::vector<NamePattern> parse_patterns(std::string_view list) {
  std::vector<NamePattern> out;
  const auto finish = [&](std::string_view item) {
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) return;
    NamePattern pattern;
    pattern.text = std::string(item);
    pattern.name = pattern.text;
    // "lib.so:sym": a colon that is not one of two.
    for (std::size_t i = 1; i + 1 < item.size(); ++i) {
      if (item[i] != ':') continue;
      if (item[i + 1] == ':') {
        ++i;
        continue;
      }
      pattern.module = std::string(item.substr(0, i));
      pattern.name = std::string(item.substr(i + 1));
      break;
    }
    pattern.wildcards = has_wildcards(pattern.name);
    out.push_back(std::move(pattern));
  };
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t behind = behind_operator(list, i);
    if (behind != i) {
      i = behind - 1;
      continue;
    }
    const char c = list[i];
    if (c == '(' || c == '<' || c == '[') ++depth;
    if ((c == ')' || c == '>' || c == ']') && depth > 0) --depth;
    if (c == ',' && depth == 0) {
      finish(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  finish(list.substr(std::min(begin, list.size())));
  return out;
}

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches(const NamePattern& pattern, const Spellings& spellings) {
  const std::string wanted_lower = spellings.fortran ? lower(pattern.name) : std::string();
  const std::string_view untyped = without_return_type(pattern.name);
  for (const std::string& spelling : spellings.all) {
    if (pattern.name == spelling || untyped == spelling) return true;
    if (pattern.wildcards && glob(pattern.name, spelling)) return true;
    if (!spellings.fortran) continue;
    const std::string as_fortran = lower(spelling);
    if (wanted_lower == as_fortran || (pattern.wildcards && glob(wanted_lower, as_fortran))) return true;
  }
  return false;
}

bool matches_module(const NamePattern& pattern, std::string_view file) {
  if (pattern.module.empty()) return true;
  const std::string_view name = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
  if (glob(pattern.module, name)) return true;
  for (std::size_t i = 1; i < name.size(); ++i) {
    if ((name[i] == '.' || name[i] == '-') && glob(pattern.module, name.substr(0, i))) return true;
  }
  return false;
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t give_up_above) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > give_up_above) return give_up_above + 1;
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    std::size_t least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
      least = std::min(least, now[j]);
    }
    if (least > give_up_above) return give_up_above + 1;
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& candidates,
                                    std::size_t most) {
  const std::string wanted = lower(name);
  const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, const std::string*>> found;
  for (const std::string& candidate : candidates) {
    const std::string text = lower(candidate);
    const std::string plain = without_template_arguments(without_parameters(text));
    const std::size_t colons = plain.rfind("::");
    const std::string last = colons == std::string::npos ? plain : plain.substr(colons + 2);
    const std::size_t in_full = std::min(edit_distance(wanted, text, allowed), edit_distance(wanted, plain, allowed));
    const std::size_t at_end = edit_distance(wanted, last, allowed);
    if (std::min(in_full, at_end) > allowed) continue;
    // "solve" for "Grid::solve(int)": behind what is as near in full.
    found.emplace_back(std::min(2 * in_full, 2 * at_end + 1), &candidate);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : found) {
    if (out.size() == most) break;
    if (std::find(out.begin(), out.end(), *candidate) == out.end()) out.push_back(*candidate);
  }
  return out;
}

const char* never_measured(std::string_view linkage) {
  for (const std::string_view name :
       {"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "__vfork", "getcontext", "swapcontext",
        "setcontext", "savectx", "fork", "__libc_fork", "_Fork", "clone", "__clone", "clone3", "__clone3"}) {
    if (linkage == name) return "it returns twice, or on another stack";
  }
  for (const std::string_view name : {"longjmp", "_longjmp", "siglongjmp", "__longjmp", "_exit", "_Exit",
                                      "__restore_rt", "_start", "__libc_start_main"}) {
    if (linkage == name) return "it does not return the way it was called";
  }
  for (const std::string_view name :
       {"_init", "_fini", "__tls_get_addr", "mcount", "_mcount", "__fentry__", "_dl_runtime_resolve"}) {
    if (linkage == name) return "it belongs to the program's start or its loader";
  }
  if (linkage.starts_with("_Unwind_") || linkage.starts_with("__cxa_throw") || linkage.starts_with("__cxa_rethrow") ||
      linkage.starts_with("__gxx_personality")) {
    return "it belongs to the unwinding of exceptions";
  }
  if (linkage.starts_with("MPI_") || linkage.starts_with("PMPI_") || linkage.starts_with("mpi_") ||
      linkage.starts_with("pmpi_")) {
    return "MPI calls are in the trace already";
  }
  return nullptr;
}

}  // namespace lbf::procedures
