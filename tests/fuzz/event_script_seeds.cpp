// Seeds of fuzz_engine. See event_script.h.
#include "tests/fuzz/event_script.h"

namespace lbf::fuzz {
namespace {

enum Library : std::uint8_t { kOpenMpi4, kOpenMpi5, kMpich };

std::string bytes(std::initializer_list<int> list) {
  std::string text;
  for (const int value : list) text += static_cast<char>(value);
  return text;
}

// What EventScript::number() reads as this value.
std::string n(std::uint64_t value) {
  if (value < 128) return bytes({static_cast<int>(value)});
  std::string text = bytes({202});
  for (int i = 0; i < 8; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string head(int ranks, Library library, int nodes, int memory = 2) {
  return bytes({ranks - 1, library, nodes - 1, memory});
}
std::string everybody(const std::string& operation) {
  return bytes({kDoEverybody}) + operation;
}
std::string repeat(std::uint64_t times, const std::string& operation) {
  return bytes({kDoRepeat}) + n(times) + operation;
}
// OPERATION of a rank; in everybody() without the rank.
std::string of(int rank, Operation operation, const std::string& numbers = {}) {
  return bytes({operation, rank}) + numbers;
}
std::string all(Operation operation, const std::string& numbers = {}) {
  return everybody(bytes({operation}) + numbers);
}
std::string message(int peer, std::uint64_t tag, int comm = 0) {
  return n(static_cast<std::uint64_t>(peer)) + n(tag) + n(static_cast<std::uint64_t>(comm));
}
std::string call(CollectiveOp op, std::uint64_t root, std::uint64_t size, int comm = 0, std::uint64_t each = 0) {
  return n(static_cast<std::uint64_t>(op)) + n(static_cast<std::uint64_t>(comm)) + n(root) + n(size) + bytes({0}) +
         n(0) + n(each);
}
std::string skipped(int peer, std::uint64_t tag, SkippedSide side, std::uint64_t count) {
  return message(peer, tag) + n(static_cast<std::uint64_t>(side)) + n(count);
}

constexpr std::uint64_t kLargest = std::uint64_t{1} << 44;  // bytes of a collective

// Sends and receives of every kind, collectives, a communicator, windows.
std::string ordinary(Library library) {
  const std::string eager = bytes({0});
  return head(4, library, 2) + all(kDoCommCreate, n(0) + bytes({1})) +
         repeat(5, all(kDoStartRecv, message(1, 7) + eager)) + all(kDoIsend, message(1, 7) + n(100) + eager) +
         of(0, kDoSend, message(1, 3) + n(9000) + eager) + of(1, kDoProbe, message(0, 3)) +
         of(1, kDoRecv, message(0, 3)) + all(kDoWaitAll) +
         all(kDoCollective, call(CollectiveOp::kAllreduce, 0, 4096, 1)) +
         all(kDoIcollective, call(CollectiveOp::kBcast, 2, 70000)) + all(kDoWaitAll) +
         all(kDoCollective, call(CollectiveOp::kAlltoallv, 0, 0, 0, 300)) +
         all(kDoCollective, call(CollectiveOp::kNeighborAlltoallv, 0, 0, 0, 300)) +
         all(kDoOneSided, message(2, 0) + n(1) + n(5000) + bytes({1})) + all(kDoWaitAll) +
         all(kDoOneSidedSync, message(2, 0)) + bytes({kDoAdvance, 0}) + all(kDoWindowClose) +
         all(kDoSkipped, skipped(1, 7, SkippedSide::kSends, 10)) + all(kDoWindowOpen, bytes({0})) +
         all(kDoCollective, call(CollectiveOp::kBarrier, 0, 0)) + all(kDoExit) + all(kDoClose);
}

}  // namespace

std::vector<std::string> script_seeds() {
  std::vector<std::string> seeds;
  for (const Library library : {kOpenMpi4, kOpenMpi5, kMpich}) seeds.push_back(ordinary(library));

  // A barrier whose root is outside the communicator, several ranks a node: MPICH's rules looked for the root's node
  // beyond the end of the layout.
  for (const CollectiveOp op : {CollectiveOp::kBarrier, CollectiveOp::kAllreduce})
    seeds.push_back(head(4, kMpich, 2) + all(kDoCollective, call(op, 1 << 30, 8)));

  // A rank starts what it never waits for: 12 GB in 90 s.
  seeds.push_back(head(3, kOpenMpi4, 1, 1) +
                  repeat(19000, of(0, kDoIcollective, call(CollectiveOp::kAllreduce, 0, 8))));
  seeds.push_back(head(3, kOpenMpi5, 3, 0) + repeat(9000, of(0, kDoIsend, message(1, 1) + n(5000) + bytes({0}))) +
                  repeat(9000, of(1, kDoOneSided, message(2, 0) + n(0) + n(8) + bytes({1}))));

  // Two ranks left out 2^31 - 1 collectives each: each pair of members was asked for each of them.
  seeds.push_back(head(6, kOpenMpi4, 2) + all(kDoCollective, call(CollectiveOp::kAllreduce, 0, 8)) +
                  all(kDoWindowClose) +
                  repeat(3, all(kDoSkipped, skipped(0, 0, SkippedSide::kCollectives, 0x7fffffff))));

  // A reduction of 16 TiB was cut into pieces of 1 GiB for each of its operands, or into segments of segments.
  for (const Library library : {kOpenMpi4, kOpenMpi5, kMpich}) {
    seeds.push_back(head(8, library, 2) + all(kDoIntercommCreate, n(0) + bytes({0})) +
                    all(kDoCollective, call(CollectiveOp::kReduce, 0, kLargest, 1)) +
                    all(kDoCollective, call(CollectiveOp::kAllreduce, 0, kLargest)) +
                    all(kDoIcollective, call(CollectiveOp::kReduce, 1, kLargest)));
  }

  // Wildcards that never end, then receives that each looked at all of them.
  const std::string any = bytes({kFlagWildcardSource | kFlagWildcardTag});
  seeds.push_back(head(2, kOpenMpi4, 2) + repeat(3000, of(0, kDoStartRecv, message(1, 0) + any)) +
                  repeat(5000, of(0, kDoStartRecv, message(1, 5) + bytes({0}))) +
                  repeat(4000, of(0, kDoEndRecv, n(3))) + repeat(4000, of(0, kDoCancel, n(1))));
  // Each cancelled receive or send looked at all that were under way.
  seeds.push_back(head(2, kMpich, 1) + repeat(3000, of(0, kDoStartRecv, message(1, 5) + bytes({0}))) +
                  repeat(3000, of(1, kDoIsend, message(0, 5) + n(9) + bytes({0}))) +
                  repeat(3000, of(0, kDoIsend, message(1, 5) + n(9000) + bytes({0}))) +
                  repeat(8000, everybody(bytes({kDoCancel}) + n(100))));

  // Communicators without end.
  seeds.push_back(head(12, kOpenMpi5, 3, 0) + repeat(2000, all(kDoCommCreate, n(0) + bytes({3}))) +
                  all(kDoCollective, call(CollectiveOp::kAlltoall, 0, kLargest / 16, 7)));

  // Windows that close and open while a large table of requests is there.
  std::string windows = head(2, kOpenMpi4, 1) + repeat(4000, of(0, kDoIsend, message(1, 1) + n(9) + bytes({0})));
  for (int i = 0; i < 300; ++i) windows += of(0, kDoWindowClose) + of(0, kDoWindowOpen, bytes({0}));
  seeds.push_back(windows);
  return seeds;
}

}  // namespace lbf::fuzz
