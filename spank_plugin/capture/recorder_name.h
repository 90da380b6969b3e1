// Which recorder an MPI library needs, by what it says of itself.
//
// Place in the event's way: inside *capture*, before the first event (dispatch.cpp). docs/capture.md, "Library
// families".
#pragma once

#include <string.h>

namespace lbf::capture {

struct Family {
  const char* name;      // what MPI_Get_library_version begins with; blanks of any number may follow
  const char* major;     // then this
  const char* recorder;  // file name, beside the preload
};
// The version strings: ompi/mpi/c/get_library_version.c of v4.1.4, v5.0.7 and v6.0.0rc2; src/mpi/misc of MPICH v4.0.2,
// with a tab before the number, and of v4.2.1, with spaces. Each digit that is listed is one whose handles and status
// the recorder was compared with in the library's mpi.h and has run with: a release that nobody tried is none of them,
// since a handle or a status that is laid out differently would be misread without a word.
inline constexpr Family kFamilies[] = {
    {"Open MPI v", "4.", "liblbf_capture_ompi.so"},      {"Open MPI v", "5.", "liblbf_capture_ompi.so"},
    {"Open MPI v", "6.", "liblbf_capture_ompi.so"},      {"MPICH Version:", "4.", "liblbf_capture_mpich.so"},
    {"MPICH Version:", "5.", "liblbf_capture_mpich.so"},
};

// The same for people.
inline constexpr const char* kKnownLibraries = "Open MPI 4, 5 and 6, MPICH 4 and 5";

// Libraries of MPI's standard ABI say the same of themselves (Open MPI 6, MPICH 5), but their handles are others.
inline bool is_standard_abi(const char* library_file) noexcept {
  const char* const slash = strrchr(library_file, '/');
  const char* const name = slash != nullptr ? slash + 1 : library_file;
  constexpr char kAbi[] = "libmpi_abi.";
  return strncmp(name, kAbi, sizeof(kAbi) - 1) == 0;
}

// The recorder's file name for the library that gives `version`; nullptr: none knows it.
inline const char* recorder_name(const char* version) noexcept {
  for (const Family& family : kFamilies) {
    const size_t length = strlen(family.name);
    if (strncmp(version, family.name, length) != 0) continue;
    const char* const number = version + length + strspn(version + length, " \t");
    if (strncmp(number, family.major, strlen(family.major)) == 0) return family.recorder;
  }
  return nullptr;
}

}  // namespace lbf::capture
