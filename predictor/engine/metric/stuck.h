// What holds a program up for ever on a target: who waits for whom, to the cause.
#pragma once

#include <optional>

#include "base/result.h"
#include "predictor/engine/match/matcher.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/replay/replay.h"

namespace lbf::engine {

// Nothing: no rank waits. "rank 3 waits at its event 17 for a message from rank 1, tag 5, communicator 0, that was
// never sent".
std::optional<Error> what_holds_up(const Replay& replay, const OpStore& store, const Matcher& matcher);

}  // namespace lbf::engine
