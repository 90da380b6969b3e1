// An exchange with requests under way at its ends, made independent of the exchanges around it: so that it
// can be executed, or left out, by itself.
#pragma once

#include "skeleton/signature.h"

namespace lbf::skeleton {

// - Receives that were started before it and end in it are started where the rank's part of it begins, in the
// order in which they
//   were started (with its match that makes the same messages meet).
// - Sends and collectives that are started in it and end later end where the rank's part of it ends. Both
// ends of a message are in
//   one exchange (see exchanges.h), so that they can.
// - Receives that end later are not started, and what ends a send or collective from before it is not done;
// the computation
//   before it stays (OperationKind::kCompute).
// Requests are named anew, each by the lowest slot that is free. A closed exchange stays what it is, but for
// that.
Exchange detached(const Exchange& exchange);

}  // namespace lbf::skeleton
