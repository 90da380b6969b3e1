// Op: what the replay executes. The matcher turns events of all ranks into ops, once for all targets:
// messages are paired (send and receive name the same Message), collectives are spelled out as the messages of
// their algorithm, request life cycles are resolved.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace lbf {

using ProcessIndex = std::uint32_t;  // 0 .. ranks-1: the ranks; above: background actors (non-blocking collectives)
using MessageIndex = std::uint32_t;

enum class OpKind : std::uint8_t {
  kWork,      // seconds of processor work at speed 1
  kBlocked,   // seconds off the processor
  kSend,      // eager: the message leaves now
  kRecv,      // waits until the message has arrived (the papers' endRecv)
  kPeek,      // waits like kRecv, leaves the message (probe)
  kStartRecv, // a receive is posted (an event of the graph; costs nothing in the eager model)
  kProgress,  // an event of the program was completed here; `seconds` = call_s (measured time so far)
  kExit,
};

struct Op {
  OpKind kind;
  std::uint8_t flags;         // 1: internal message (fork/join of an actor: no flight, no processor work)
  std::uint16_t reserved;
  MessageIndex message;       // kSend, kRecv, kPeek
  union {
    Seconds seconds;          // kWork, kBlocked
    Bytes bytes;              // kSend
  };
};
static_assert(sizeof(Op) == 16);

}  // namespace lbf
