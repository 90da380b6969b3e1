// ProcedureList: which procedures all ranks of a step measure, as lbfd decided it from what all of them said.
//
// Place in the event's way, backwards: lbfd -> answer to a batch -> Delivery -> *ProcedureList* -> RingReader -> capture.
// docs/procedures.md, "One list for all ranks".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "spank_plugin/capture/ring.h"

namespace lbf::relay {

struct ProcedureList {
  std::uint64_t generation = 0;  // a later list has a higher one; from 1
  std::vector<std::string> names;  // best first; each printable, all together with a newline each at most
                                   // ring::kMaxProcedureListBytes
  std::string text;                // one line for people: why these
  // As the rings have it.
  std::string lines() const {
    std::string out;
    for (const std::string& name : names) out += name + '\n';
    return out;
  }
};

// Of an answer of lbfd's (http-v1.md, "From the relay"): its member `procedures`. Null: it has none that makes sense.
std::shared_ptr<const ProcedureList> procedure_list_of(const std::string& answer);

}  // namespace lbf::relay
