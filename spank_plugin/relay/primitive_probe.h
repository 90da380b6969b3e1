// What the primitives of the capture and of the relay cost on this node, measured before anything is captured
// (Hollingsworth & Miller, Sec. 3.1: the predicted cost multiplies the cost of a primitive by its frequency).
//
// Place in the cost system: *probe* -> predicted cost, and the ideal cost until a ring has its own measurement.
#pragma once

#include "spank_plugin/relay/cost_meter.h"

namespace lbf::relay {

// Writes records into a scratch ring, counts into a scratch table, encodes and compresses one batch, and looks at a
// scratch ring's header: about 2 ms of processor time. The best of several rounds: all memory is in the cache.
PrimitiveCosts measure_primitives();

}  // namespace lbf::relay
