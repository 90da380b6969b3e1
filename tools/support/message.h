// What a command says: its result on standard output; errors, warnings and notes on stderr, one line each.
#pragma once

#include <cstdio>
#include <string>

#include "base/result.h"
#include "report/text.h"

namespace lbf::tools {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

class Messages {
 public:
  explicit constexpr Messages(const char* command) : command_(command) {}

  // "lbf-trace: error: ...". Returns `status`. What is said may have file names, lbfd's or a trace's words in
  // it: it is one line, and nothing in it acts on a terminal. The same holds for warnings and notes.
  int fail(int status, const std::string& what) const { return say("error: ", what), status; }
  int fail(const Error& error, int status = kExitFailure) const { return fail(status, error.message); }
  void warn(const std::string& what) const { say("warning: ", what); }
  void note(const std::string& what) const { say("note: ", what); }

  // The result, on standard output; `what` it is, for the message where it cannot be written. An exit status.
  int write(const std::string& text, const char* what = "result") const {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
    return fail(kExitFailure,
                std::string("cannot write the ") + what + " to standard output; is the disk full or the pipe closed?");
  }

 private:
  void say(const char* kind, const std::string& what) const {
    std::fprintf(stderr, "%s: %s%s\n", command_, kind, report::printable(what).c_str());
  }

  const char* command_;
};

}  // namespace lbf::tools
