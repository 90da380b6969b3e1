// The reference: a small and slow simulation of the model, from the papers' definitions (TSE Sec. 2: process
// time, fair round robin with an infinitely small quantum, messages from a table). It shares no code with the
// engine: no matching (the trace's maker says which message each receive takes), no heap, no virtual time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace lbf::reference {

struct Action {
  // kSend goes on once its buffer is free, kIsend at once; kWaitSend waits for the buffer of a kIsend. kRecv
  // posts the receive itself unless a kPost did. kLook sleeps, and looks for the message once in each `seconds`. kCopy
  // and kReduce are work that the machine's tables tell. kRegions is work of several threads. kOthers is work of other
  // programs, where the machine has them. kVainLooks is work in which each look gives the processor away, where ranks
  // have none of their own. kDevice passes as kBlocked does, but with a share of the processor.
  enum class Kind {
    kWork,
    kBlocked,
    kSend,
    kIsend,
    kWaitSend,
    kPost,
    kRecv,
    kLook,
    kPeek,
    kCopy,
    kReduce,
    kRegions,
    kOthers,
    kVainLooks,
    kDevice
  } kind;
  double seconds = 0;       // kWork and kOthers at speed 1, kBlocked, kLook, kVainLooks, kDevice
  std::size_t message = 0;  // all others
  double bytes = 0;         // kCopy, kReduce
  double looks = 0;         // kVainLooks
  double work = 0;          // these of kRegions, as they ran: of all threads,
  double longest = 0;       // of the one that worked longest in each
  double fork_join = 0;
  double regions = 0;
  int threads = 1;
};

struct Message {
  int src = 0;
  int dst = 0;
  double bytes = 0;
  bool internal = false;  // costs nothing: a rank starts or awaits its background collective
  bool sync = false;      // waits for its receive whatever its size
  bool collective = false;
};

struct Process {
  int rank = 0;
  bool background = false;  // has no processor: its protocol processing only takes time
  std::vector<Action> actions;
};

struct Program {
  int ranks = 0;
  std::vector<Process> processes;  // the ranks first
  std::vector<Message> messages;
};

using Table = std::vector<std::pair<double, double>>;  // bytes, seconds

// What a message costs between two places; an empty table costs nothing.
struct Path {
  Table flight;
  Table send_cpu;
  Table recv_cpu;
  double eager_limit = 1e300;
  double first_message = 0;  // seconds that a rank's first message to another rank leaves later
  double first_peer = 0;     // seconds that the first receive of a rank that has sent nothing takes longer
  double turn = 0;           // work of a vain poll of a rank that yields
  double switching = 0;      // work until a rank that waited for another one of its node has the processor
};

struct Machine {
  std::vector<int> node_of_rank;
  std::vector<int> cores;      // by node
  std::vector<double> speed;   // by node
  int threads = 0;             // of each rank's regions; 0: as many as ran
  bool spins = false;          // who waits for a message keeps its share of the processor
  bool beside_others = false;  // other programs work as they did in the run
  bool yields = false;         // who waits polls, in turn with the others that wait on its node
  enum class Contention { kNone, kBus, kNic } contention = Contention::kNone;
  double bandwidth = 1;  // bytes per second of each link
  // Of memory: domains of a node, by computing processors of one of them the bytes per second that they get together
  // (empty: as many as they want), what each computing processor of speed 1 wants, and by rank the ranks and processors
  // of its domain where it ran, which had the same bandwidth (empty: each had a domain for itself).
  int domains = 1;
  Table memory;
  double demand = 0;
  std::vector<std::pair<int, int>> ran_beside;
  Table copy;  // of what a rank does by itself in a collective: bytes, seconds at speed 1
  Table reduce;
  Path self_node;
  std::map<int, Path> hops;    // hop:N
  std::optional<Path> remote;  // REQUIRES: there is one, or a hop:N
  // The cluster: of each of its nodes the switches from its own one to the top. No two nodes of the machine
  // are one node of the cluster.
  std::vector<std::vector<int>> switches_of_cluster_node;
  std::vector<int> cluster_node_of_node;  // empty: nobody knows
};

struct Outcome {
  bool complete = true;        // false: the program relies on buffers that are too small, it cannot end
  std::vector<double> finish;  // of each rank
  // Two processes of one rank (it and a background collective) sent to the same rank at the same time, over
  // links: which message goes first is not defined.
  bool ambiguous = false;
};
Outcome simulate(const Program& program, const Machine& machine);

}  // namespace lbf::reference
