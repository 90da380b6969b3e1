// UncapturedProgram: what the relay finds of a step of which it saw no ring, and how that can be.
//
// Place in the event's way: where nothing is on it. Implements docs/relay.md ("Nothing to take").
#pragma once

#include <optional>
#include <string>

namespace lbf::relay {

struct UncapturedProgram {
  // The one that says most first.
  enum class Why {
    kNotInContainer,   // its root folder (srun --container, pyxis, Apptainer) lacks the capture or the rings
    kCaptureOff,       // MPI calls came to the capture, and it made no ring
    kPastPreload,      // an MPI library and the capture are loaded, no MPI call came to the capture
    kPreloadReplaced,  // an MPI library is loaded, the capture is not
    kStatic,           // a rank of a launcher's is linked statically
    kNoMpi,            // a rank of a launcher's has no MPI library loaded
  };
  Why why = Why::kNoMpi;
  std::string program;  // base name
  std::string library;  // base name of the MPI library; empty: none
  std::string missing;  // with kNotInContainer: the folders that it lacks, "/usr/lib/lbf, /dev/shm"
};

// Looks at this user's processes now, as PROC ("/proc") has them: those that were started with RING_DIR as their
// LBF_CAPTURE_DIR. Nothing: none of them is like that.
std::optional<UncapturedProgram> find_uncaptured_program(const std::string& proc, const std::string& ring_dir);

// A sentence for people, with the remedy.
std::string describe(const UncapturedProgram& program);

}  // namespace lbf::relay
