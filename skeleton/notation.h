// The signature for people, in the notation of Sodhi, Subhlok & Xu (Sec. 4.4, Table 4), and as JSON.
#pragma once

#include <string>

#include "skeleton/scale.h"
#include "skeleton/signature.h"

namespace lbf::skeleton {

// As in {E1, (E2:3), (L_0:60), E3}: symbols of `elements` are named by `name_of(symbol)`. Loops of several
// symbols are named L_i in the order of their first mention and written below, one per line.
struct Notation {
  std::string signature;
  std::vector<std::string> loops;  // "L_0 = [E4, (E5:2)]"
};
Notation notation(const LoopBodies& bodies, const Elements& elements);

// What lbf-skeleton show prints.
std::string show_text(const Signature& signature);
// The same as JSON (docs/man/lbf-skeleton.1 has the keys).
std::string show_json(const Signature& signature);

// As in "MPI_Isend(to rank+1, 360 bytes, tag 7)".
struct SpmdOperation;
std::string operation_text(const SpmdOperation& operation);

}  // namespace lbf::skeleton
