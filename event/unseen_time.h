// Which events' call_s is no time in their MPI call.
#pragma once

#include "event/event.h"

namespace lbf {

// Time of which nobody knows what it was spent with, or when in its window: between windows, and what a window's close,
// the run's end or a keep-alive has of time that is in no event (event.h).
constexpr bool call_time_is_unseen(const Event& event) {
  return event.kind == EventKind::kWindowOpen || event.kind == EventKind::kWindowClose ||
         event.kind == EventKind::kExit || event.kind == EventKind::kKeepAlive;
}

}  // namespace lbf
