// The reference: a small and slow simulation of the model, from the papers' definitions (TSE Sec. 2: process
// time, fair round robin with an infinitely small quantum, messages from a table). It shares no code with the
// engine: no matching (the trace's maker says which message each receive takes), no heap, no virtual time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lbf::reference {

struct Action {
  enum class Kind { kWork, kBlocked, kSend, kRecv, kPeek } kind;
  double seconds = 0;       // kWork at speed 1, kBlocked
  std::size_t message = 0;  // kSend, kRecv, kPeek
};

struct Message {
  int src = 0;
  int dst = 0;
  double bytes = 0;
  bool internal = false;  // costs nothing: a rank starts or awaits its background collective
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

struct Machine {
  std::vector<int> node_of_rank;
  int cores = 1;
  double speed = 1;
  // [0] remote, [1] inside a node; an empty table costs nothing
  Table flight[2];
  Table send_cpu[2];
  Table recv_cpu[2];
};

// Finish time of each rank. A program that cannot end gives an empty vector.
std::vector<double> simulate(const Program& program, const Machine& machine);

}  // namespace lbf::reference
