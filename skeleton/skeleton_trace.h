// The trace of a skeleton that was captured itself: what its main() does around the skeleton proper is taken
// off.
#pragma once

#include "base/result.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

// Takes off, on each rank, what c_prelude's main() calls before run() (communicators are made, then
// a barrier) and after it (two reductions of one number), with the computation before it (the calibration).
// Errors: kInvalidInput: the program does not begin and end like a skeleton.
Result<void> take_off_frame(ProgramTrace& trace);

}  // namespace lbf::skeleton
