// What the libraries' collectives on intercommunicators have in common: the ways between a root and the other
// group.
//
// Place in the event's way: match (base of the expansions in collective_inter_openmpi.cpp,
// collective_mpich.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "predictor/engine/match/collective_expand.h"

namespace lbf::engine::collective {

class InterSteps {
 protected:
  InterSteps(const CollectiveCall& call, std::vector<CollectiveStep>& out, bool nonblocking)
      : call_(call),
        remote_(out, call.rank, call.remote_size, false, call.library, nonblocking, {}, {call.local_work, false}),
        local_(out, call.rank, call.size, true, call.library, nonblocking, {}, {call.local_work, false}) {}
  ~InterSteps() = default;

  bool is_leader() const { return call_.rank == 0; }
  bool is_root() const { return call_.root == kMpiRoot; }
  bool takes_no_part() const { return call_.root < 0 && !is_root(); }
  std::uint32_t root() const { return static_cast<std::uint32_t>(call_.root); }

  template <typename Function>
  void for_all_remote(Function function) {
    for (std::uint32_t peer = 0; peer < call_.remote_size; ++peer) function(peer);
  }

  // --- by the first rank of the group that has no root; `inside` is what that group does among itself

  template <typename Inside>
  void from_root(Bytes bytes, Inside inside) {
    if (is_root()) return remote_.send(0, bytes);
    if (takes_no_part()) return;
    if (is_leader()) remote_.recv(root(), bytes);
    inside();
  }
  // `handed_on`: what the leader sends; the root counts on `expected`.
  template <typename Inside>
  void to_root(Bytes handed_on, Bytes expected, Inside inside) {
    if (is_root()) return remote_.recv(0, expected);
    if (takes_no_part()) return;
    inside();
    if (is_leader()) remote_.send(root(), handed_on);
  }
  void gather_by_leaders() {
    to_root(call_.bytes * call_.size, call_.bytes * call_.remote_size, [this] { local_.gather(0, call_.bytes); });
  }
  void scatter_by_leaders() {
    from_root(call_.bytes * (is_root() ? call_.remote_size : call_.size), [this] { local_.scatter(0, call_.bytes); });
  }

  // --- straight between the root and every rank of the other group; gatherv and scatterv have a count each

  void straight_rooted(bool gathers, bool empty_too) {
    const bool each_its_own = call_.op == CollectiveOp::kGatherv || call_.op == CollectiveOp::kScatterv;
    if (takes_no_part()) return;
    if (!is_root()) {
      if (call_.bytes == 0 && !empty_too) return;
      return gathers ? remote_.send(root(), call_.bytes) : remote_.recv(root(), call_.bytes);
    }
    for_all_remote([&](std::uint32_t peer) {
      const Bytes bytes = each_its_own ? call_.values[peer] : call_.bytes;
      if (bytes == 0 && !empty_too) return;
      gathers ? remote_.recv(peer, bytes) : remote_.send(peer, bytes);
      if (call_.op == CollectiveOp::kReduce && peer > 0) remote_.combine(bytes);
    });
  }

  const CollectiveCall& call_;
  GroupSteps remote_;
  GroupSteps local_;
};

}  // namespace lbf::engine::collective
