// A program as a function of rank and rank count -> the operations of its run.
#pragma once

#include <functional>
#include <vector>

#include "skeleton/operation.h"

namespace lbf::pattern::testing {

// What one rank does.
class Script {
 public:
  Script(skeleton::ProgramTrace& trace, Rank ranks_of_run, Rank my_rank)
      : ranks(ranks_of_run), me(my_rank), trace_(trace) {}
  const Rank ranks;
  const Rank me;

  void send(Rank to, std::int32_t tag, Bytes bytes);
  void recv(Rank from, std::int32_t tag, Bytes bytes);
  void isend(Rank to, std::int32_t tag, Bytes bytes);
  void irecv(Rank from, std::int32_t tag, Bytes bytes);
  void wait_for_all();
  void wait_for_receives();
  void collective(CollectiveOp op, Bytes bytes, Rank root = 0, std::uint32_t comm = 0);
  void cancel();
  // Before the next operation.
  void compute(double seconds) { process_s_ = seconds; }

 private:
  skeleton::Operation& add(skeleton::OperationKind kind);
  void message(skeleton::OperationKind kind, Rank peer, std::int32_t tag, Bytes bytes);
  void wait(bool receives_only);

  struct Active {
    std::uint32_t slot;
    bool is_receive;
  };
  skeleton::ProgramTrace& trace_;
  std::vector<Active> active_;
  double process_s_ = 0;
};

using ProgramScript = std::function<void(Script&)>;
// COMMUNICATORS: beside the world.
skeleton::ProgramTrace run_of(Rank ranks, const ProgramScript& program,
                              const std::vector<std::vector<Rank>>& communicators = {});

}  // namespace lbf::pattern::testing
