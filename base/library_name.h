// How records name a run's MPI library: by what it says of itself.
#pragma once

namespace lbf {

// Where the capture's self-test alone told of which family the library is, this and the family stand before that:
// "MPICH family by self-test: Intel(R) MPI Library 2021.11".
inline constexpr char kFamilyBySelfTest[] = " family by self-test: ";

}  // namespace lbf
