// A compressed file where a trace is expected: said as what it is, with the command that opens it.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/quoted.h"
#include "base/result.h"

namespace lbf::tools {

// Errors: kInvalidInput, for an ordinary file that begins as compressed ones do.
inline Result<void> check_not_compressed(const std::string& path) {
  struct Form {
    std::string_view begin;
    std::string_view name;
    std::string_view command;
  };
  static constexpr std::array<Form, 6> kForms{{{{"\x1f\x8b", 2}, "gzip", "gunzip"},
                                               {{"\x28\xb5\x2f\xfd", 4}, "zstd", "unzstd"},
                                               {{"\xfd\x37zXZ", 5}, "xz", "unxz"},
                                               {{"BZh", 3}, "bzip2", "bunzip2"},
                                               {{"\x04\x22\x4d\x18", 4}, "lz4", "unlz4"},
                                               {{"PK\x03\x04", 4}, "zip", "unzip"}}};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::array<char, 8> start{};
  std::ifstream in(path, std::ios::binary);
  in.read(start.data(), start.size());
  const std::string_view bytes(start.data(), static_cast<std::size_t>(in.gcount()));
  const auto* const form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& one) { return bytes.starts_with(one.begin); });
  if (form == kForms.end()) return {};
  return invalid_input(path + ": is compressed (" + std::string(form->name) +
                       "); first: " + std::string(form->command) + " " + shell_word(path));
}

}  // namespace lbf::tools
