// Scaled signature -> C/MPI program (Sodhi, Subhlok & Xu, Sec. 4.3, step 4).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "skeleton/scale.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

// A program whose text would be longer is refused: the application does not repeat itself enough.
inline constexpr std::uint64_t kMostStatements = 100'000;

// The skeleton's source, which compiles with mpicc -Wall -Wextra -Werror as C99. `source`: what it was made
// from, for its head comment (one line). Errors: kLimit: more than kMostStatements statements, a message or a
// buffer of 2 GiB and more.
Result<std::string> c_program(const Signature& signature, const ScaledSignature& scaled, const std::string& source);

}  // namespace lbf::skeleton
