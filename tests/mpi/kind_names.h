// What the tests' outputs call the kinds of events: ring_dump (records in rings), ring_collect (events of the relay).
#pragma once

#include <array>

#include "event/event.h"

namespace lbf::test {

inline constexpr std::array<const char*, kEventKindCount> kKindNames = {
    "compute",  "send",       "isend",       "startRecv",  "endRecv",   "recv",    "wait",      "probe",
    "coll",     "icoll",      "blocked",     "unmodelled", "enter",     "leave",   "keepAlive", "commCreate",
    "commFree", "cancel",     "requestFree", "phase",      "gap",       "exit",    "oneSided",  "oneSidedSync",
    "io",       "windowOpen", "windowClose", "skipped",    "procedure", "regions", "preempted", "device"};

}  // namespace lbf::test
