// ProgramId: which program a process runs, so that it is recognised when it runs again (docs/relay.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lbf::relay {

struct ProgramId {
  // "gnu:HEX": the ELF build id, which is another one whenever the program was built from anything else. Executables
  // without one: "file:BYTES-CRC32C". Empty: the executable cannot be read.
  std::string build_id;
  // Of an interpreter, what it runs: "NAME:BYTES-CRC32C" of the script's file or of the words after -c, "-m MODULE".
  // Empty: the executable is no interpreter, or got no script.
  std::string script;
};

// Of the process, as /proc shows it, in its own mount namespace; where it is gone, of the file `executable`. Never
// fails: what cannot be read stays empty.
ProgramId program_id_of(std::int32_t pid, const std::string& executable);

// The build id of an ELF file of this machine's word size and byte order, in hex; empty: none, or no such file.
std::string elf_build_id(const std::string& path);

// `words`: the interpreter's command line. `root`: before absolute paths of the script ("/proc/PID/root"), `cwd`:
// before relative ones. Empty: `executable` is no interpreter that is known here, or it got no script.
std::string script_id(const std::string& executable, const std::vector<std::string>& words, const std::string& root,
                      const std::string& cwd);

}  // namespace lbf::relay
