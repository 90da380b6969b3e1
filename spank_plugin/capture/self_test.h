// Self-test: whether an MPI library that no recorder was compared with is of the family that this recorder is for.
//
// Place in the event's way: inside *capture*, when MPI_Init returns (recorder_process.cpp). It asks the library for
// handles before it gives it any, then compares sizes of predefined datatypes and the statuses of messages that the
// process sends to itself, on a duplicate of MPI_COMM_SELF. docs/capture.md, "Library families".
#pragma once

namespace lbf::capture {

// nullptr: it is; else what is different. REQUIRES: MPI is initialised; find_library() found everything.
const char* failed_check() noexcept;

// For the user: why the library is not recorded. WHAT: failed_check, or what find_library says. Once.
const char* refusal(const char* what) noexcept;

}  // namespace lbf::capture
