// Which recorder an MPI library needs, by what it says of itself.
//
// Place in the event's way: inside *capture*, before the first event (dispatch.cpp). docs/capture.md, "Library
// families".
#pragma once

#include <string.h>

namespace lbf::capture {

inline constexpr char kOpenMpiRecorder[] = "liblbf_capture_ompi.so";
inline constexpr char kMpichRecorder[] = "liblbf_capture_mpich.so";
inline constexpr char kAbiRecorder[] = "liblbf_capture_abi.so";

struct Family {
  const char* name;      // what MPI_Get_library_version begins with; blanks of any number may follow
  const char* major;     // then this
  const char* recorder;  // file name, beside the preload
};
// The version strings: ompi/mpi/c/get_library_version.c of v4.1.4, v5.0.7 and v6.0.0rc2; src/mpi/misc of MPICH v4.0.2,
// with a tab before the number, and of v4.2.1, with spaces. Each digit that is listed is one whose handles and status
// the recorder was compared with in the library's mpi.h and has run with. Any other library has to pass the self-test
// of the family that it seems to be of (self_test.h): a handle or a status that is laid out differently would be
// misread without a word.
inline constexpr Family kFamilies[] = {
    {"Open MPI v", "4.", kOpenMpiRecorder},   {"Open MPI v", "5.", kOpenMpiRecorder},
    {"Open MPI v", "6.", kOpenMpiRecorder},   {"MPICH Version:", "4.", kMpichRecorder},
    {"MPICH Version:", "5.", kMpichRecorder},
};

// What tells that a library is of the recorder's family.
enum class Proof : unsigned char { kListed, kSelfTest };
struct RecorderChoice {
  const char* file;  // beside the preload
  Proof proof;
};

// Which family a library seems to be of by what it exports.
enum class Exports : unsigned char { kStandardAbi, kOpenMpi, kOther };
// Its answer is at least 1 in libraries of MPI's standard ABI, and -1 in the ordinary ones of the same packages. The
// version text is the same in both.
inline constexpr const char* kAbiVersionFunctions[] = {"PMPI_Abi_get_version", "MPI_Abi_get_version"};
inline constexpr int kKnownAbi = 1;
inline constexpr char kOpenMpiObject[] = "ompi_mpi_comm_world";  // where all of Open MPI's have MPI_COMM_WORLD

// The recorder for the library that gives `version`.
inline RecorderChoice choose_recorder(const char* version, Exports exports) noexcept {
  if (exports == Exports::kStandardAbi) return {kAbiRecorder, Proof::kListed};
  for (const Family& family : kFamilies) {
    const size_t length = strlen(family.name);
    if (strncmp(version, family.name, length) != 0) continue;
    const char* const number = version + length + strspn(version + length, " \t");
    if (strncmp(number, family.major, strlen(family.major)) == 0) return {family.recorder, Proof::kListed};
  }
  return {exports == Exports::kOpenMpi ? kOpenMpiRecorder : kMpichRecorder, Proof::kSelfTest};
}

}  // namespace lbf::capture
