// What the reader and the writer of text traces must agree on (docs/formats/text-trace-v1.md): limits and
// names. No other file needs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "event/event.h"

namespace lbf::text_trace {

inline constexpr Seconds kMaxTimeS = 1e9;  // 31 years: beyond it is a mistake
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;
inline constexpr std::size_t kMaxLibraryBytes = 1024;
inline constexpr std::size_t kMaxCommGap = 65536;  // communicator numbers are dense: a wild one must not cost memory

struct TextOp {
  std::string_view name;
  CollectiveOp op;
};
inline constexpr std::array<TextOp, 10> kTextOps{{{"allreduce", CollectiveOp::kAllreduce},
                                                  {"barrier", CollectiveOp::kBarrier},
                                                  {"bcast", CollectiveOp::kBcast},
                                                  {"reduce", CollectiveOp::kReduce},
                                                  {"gather", CollectiveOp::kGather},
                                                  {"scatter", CollectiveOp::kScatter},
                                                  {"allgather", CollectiveOp::kAllgather},
                                                  {"alltoall", CollectiveOp::kAlltoall},
                                                  {"reduce_scatter", CollectiveOp::kReduceScatterBlock},
                                                  {"scan", CollectiveOp::kScan}}};

struct OneSidedName {
  std::string_view name;
  OneSidedOp op;
};
inline constexpr std::array<OneSidedName, kOneSidedOpCount> kOneSidedNames{
    {{"put", OneSidedOp::kPut},
     {"get", OneSidedOp::kGet},
     {"accumulate", OneSidedOp::kAccumulate},
     {"get_accumulate", OneSidedOp::kGetAccumulate},
     {"fetch_and_op", OneSidedOp::kFetchAndOp},
     {"compare_and_swap", OneSidedOp::kCompareAndSwap},
     {"lock", OneSidedOp::kLock}}};

enum Key : unsigned {
  kTo = 1u << 0,
  kFrom = 1u << 1,
  kTag = 1u << 2,
  kBytes = 1u << 3,
  kComm = 1u << 4,
  kSync = 1u << 5,
  kReq = 1u << 6,
  kOp = 1u << 7,
  kRoot = 1u << 8,
  kOff = 1u << 9,
  kProc = 1u << 10,
  kBuffered = 1u << 11,
  kTime = 1u << 12,
  kSelf = 1u << 13,
  kCalls = 1u << 14,
  kEvery = 1u << 15,
  kCount = 1u << 16,
  kThreads = 1u << 17,
  kWork = 1u << 18,
  kCritical = 1u << 19,
  kFork = 1u << 20,
  kDelay = 1u << 21,
  kLooks = 1u << 22,
  kBusy = 1u << 23,
};
struct KeyName {
  std::string_view name;
  Key key;
};
inline constexpr std::array<KeyName, 24> kKeyNames{
    {{"to", kTo},       {"from", kFrom},         {"tag", kTag},         {"bytes", kBytes}, {"comm", kComm},
     {"sync", kSync},   {"req", kReq},           {"op", kOp},           {"root", kRoot},   {"off", kOff},
     {"proc", kProc},   {"buffered", kBuffered}, {"time", kTime},       {"self", kSelf},   {"calls", kCalls},
     {"every", kEvery}, {"count", kCount},       {"threads", kThreads}, {"work", kWork},   {"critical", kCritical},
     {"fork", kFork},   {"delay", kDelay},       {"looks", kLooks},     {"busy", kBusy}}};

struct LineKind {
  std::string_view name;
  EventKind kind;
  unsigned required;
  unsigned optional;
};
inline constexpr std::array<LineKind, 17> kLineKinds{{
    {"compute", EventKind::kCompute, 0, kLooks | kTime},
    {"send", EventKind::kSend, kTo | kTag | kBytes, kComm | kSync | kBuffered},
    {"isend", EventKind::kIsend, kTo | kTag | kBytes | kReq, kComm | kSync | kBuffered},
    {"startRecv", EventKind::kStartRecv, kFrom | kTag, kComm | kReq},
    {"endRecv", EventKind::kEndRecv, kFrom | kTag | kBytes, kComm | kReq},
    {"wait", EventKind::kWait, kReq, 0},
    {"coll", EventKind::kCollective, kOp, kBytes | kRoot | kComm},
    {"blocked", EventKind::kBlocked, kOff, kEvery},
    {"preempted", EventKind::kPreempted, kOff, kDelay},
    {"enter", EventKind::kEnter, kProc, 0},
    {"leave", EventKind::kLeave, kProc, 0},
    {"procedure", EventKind::kProcedure, kProc | kTime, kSelf | kCalls},
    {"regions", EventKind::kRegions, kCount | kThreads | kWork | kCritical, kFork},
    {"device", EventKind::kDevice, kCalls, kBusy},
    {"exit", EventKind::kExit, 0, 0},
    {"oneSided", EventKind::kOneSided, kOp | kTo | kBytes, kComm | kReq},
    {"oneSidedSync", EventKind::kOneSidedSync, 0, kTo | kComm},
}};

}  // namespace lbf::text_trace
