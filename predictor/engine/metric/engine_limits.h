// EngineLimits: what one Predictor may hold, and who may end it early.
#pragma once

#include <functional>

#include "base/units.h"

namespace lbf::engine {

struct EngineLimits {
  // Of ops, messages, actors, tables of ranks and communicators of one Predictor; 0: no limit.
  Bytes memory_bytes = 0;
  // Asked every few thousand units of work (events, ops, messages, table entries). True: give up.
  std::function<bool()> stop;
};

}  // namespace lbf::engine
