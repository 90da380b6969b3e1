// What a command does, as somebody at a shell sees it.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_directory.h"

namespace lbf::test {

struct Outcome {
  int status = -1;  // the exit status; -1: a signal ended it, or there was no shell
  std::string out;
  std::string err;
};

// Runs a line for sh, without input, and waits for its end.
inline Outcome run_command(const std::string& line) {
  const TemporaryDirectory folder;
  const std::string error_file = folder.path() + "/stderr";
  Outcome outcome;
  std::FILE* const pipe = ::popen(("{ " + line + "\n} </dev/null 2>" + error_file).c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.out.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream error(error_file, std::ios::binary);
  outcome.err.assign(std::istreambuf_iterator<char>(error), {});
  return outcome;
}

}  // namespace lbf::test
