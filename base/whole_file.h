// A file that others read while it is written: they see the old one or the new one, never half.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "base/io_error.h"
#include "base/result.h"

namespace lbf {

enum class Readers : std::uint8_t { kByUmask, kEverybody };

// By way of PATH.part. It survives no crash of the machine. Errors: kIo.
inline Result<void> write_whole_file(const std::string& path, std::string_view text,
                                     Readers readers = Readers::kByUmask) {
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text << std::flush;
    if (!file) return io_error("cannot write " + part);
  }
  if (readers == Readers::kEverybody) (void)::chmod(part.c_str(), 0644);
  if (std::rename(part.c_str(), path.c_str()) != 0) return io_error("cannot write " + path);
  return {};
}

}  // namespace lbf
