// How deep JSON text nests, before it is read: what reads or writes it may call itself for each level, and each level
// takes memory.
#pragma once

#include <cstddef>
#include <string_view>

namespace lbf {

// Text that is no JSON has any answer.
inline bool has_more_levels(std::string_view json, std::size_t most) {
  std::size_t level = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_text) {
      if (c == '\\') ++at;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++level > most) return true;
    } else if ((c == '}' || c == ']') && level > 0) {
      --level;
    }
  }
  return false;
}

}  // namespace lbf
