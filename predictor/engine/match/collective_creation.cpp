// The messages that creating a communicator takes (kCommCreate): above all agreeing on its number. See
// collective_expand.h and docs/collectives.md, "Creating communicators".
#include <vector>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_inter.h"

namespace lbf::engine::collective {
namespace {

constexpr Bytes kColorAndKeyBytes = 8;

// ompi/communicator/comm.c and comm_cid.c. Every rank proposes a number; all take the largest, and ask each
// other whether it is free (one more round of both for each time it is not: one is taken, which is what
// happens unless the ranks have created different communicators before). The third one is a barrier.
class OpenMpiCreation : private InterSteps {
 public:
  OpenMpiCreation(const CollectiveCall& call, std::vector<CollectiveStep>& out)
      : InterSteps(call, out, true), out_(out) {}

  // Whether these are the library's messages.
  bool expand() { return call_.remote_size > 0 ? on_intercommunicator() : on_intracommunicator(); }

 private:
  static constexpr int kAgreements = 3;

  bool on_intracommunicator() {
    switch (call_.creation) {
      case CommCreation::kDup:
      case CommCreation::kCreate:
      case CommCreation::kCartCreate:
      case CommCreation::kGraphCreate:
      case CommCreation::kDistGraphCreateAdjacent:
        agree();
        return true;
      case CommCreation::kSplit:
      case CommCreation::kCartSub:
        part(CollectiveOp::kAllgather, kColorAndKeyBytes, false);
        agree();
        return true;
      case CommCreation::kCreateGroup:
        for (int i = 0; i < kAgreements; ++i) agree_in_tree();
        return true;
      case CommCreation::kSplitType:  // keys are taken to be alike; else the new one is split again
        part(CollectiveOp::kAllreduce, (call_.library == MpiLibrary::kOpenMpi4 ? 2 : 3) * kColorAndKeyBytes, false);
        agree();
        return false;
      default:  // the edges of a dist_graph travel as well
        agree();
        return false;
    }
  }

  bool on_intercommunicator() {
    switch (call_.creation) {
      case CommCreation::kDup:
        agree_inside();
        agree_between();
        return true;
      case CommCreation::kIntercommMerge:
        say_who_is_high();
        agree_between();
        return true;
      case CommCreation::kSplit:
        gather_and_hand_back(kColorAndKeyBytes);
        inter_allgather(kColorAndKeyBytes);
        agree_inside();
        agree_between();
        return true;
      case CommCreation::kCreate:
        inter_allgather(kIntBytes);
        agree_inside();
        agree_between();
        return true;
      case CommCreation::kIntercommCreate:
        introduce();
        agree_inside();
        agree_between();
        return false;
      default:
        agree_inside();
        agree_between();
        return false;
    }
  }

  // A collective on the communicator itself.
  void part(CollectiveOp op, Bytes bytes, bool nonblocking) {
    CollectiveCall call;
    call.op = op;
    call.rank = call_.rank;
    call.size = call_.size;
    call.bytes = bytes;
    call.nonblocking = nonblocking;
    call.library = call_.library;
    call.layout = call_.layout;
    call.settings = call_.settings;
    (void)expand_collective(call, out_);  // its arguments cannot be wrong
  }
  void agree() {
    for (int i = 0; i < kAgreements; ++i) part(CollectiveOp::kAllreduce, kIntBytes, true);
  }

  // ompi_comm_allreduce_group_nb: up a binary tree over the new communicator, and down again.
  void agree_in_tree() {
    const std::uint32_t rank = call_.rank;
    const auto for_children = [&](auto function) {
      for (const std::uint64_t child : {2 * std::uint64_t{rank} + 1, 2 * std::uint64_t{rank} + 2}) {
        if (child < call_.size) function(static_cast<std::uint32_t>(child));
      }
    };
    GroupSteps steps(out_, rank, call_.size, false, call_.library);
    for_children([&](std::uint32_t child) { steps.recv(child, kIntBytes); });
    if (rank > 0) steps.exchange((rank - 1) / 2, kIntBytes, (rank - 1) / 2, kIntBytes);
    for_children([&](std::uint32_t child) { steps.send(child, kIntBytes); });
  }

  // The communicator of the own group, which every intercommunicator has, is made first.
  void agree_inside() {
    for (int i = 0; i < kAgreements; ++i) local_.allreduce(Algorithm::kBinomial, kIntBytes, true);
  }
  void agree_between() {
    for (int i = 0; i < kAgreements; ++i) {
      local_.reduce_swapped_binomial(0, kIntBytes, true);
      if (is_leader()) remote_.exchange(0, kIntBytes, 0, kIntBytes);
      ibcast(kIntBytes);
    }
  }
  void ibcast(Bytes bytes) {
    if (call_.size <= 4) return local_.bcast_linear(0, bytes);
    local_.bcast_swapped_binomial(0, bytes);
  }

  // ompi_comm_allgather_emulate_intra: the other group's leader collects, and sends it all back.
  void gather_and_hand_back(Bytes bytes) {
    remote_.send(0, bytes);
    if (is_leader()) for_all_remote([&](std::uint32_t peer) { remote_.recv(peer, bytes); });
    if (is_leader()) {
      for_all_remote([&](std::uint32_t peer) { remote_.send(peer, bytes * call_.remote_size); });
    }
    remote_.recv(0, bytes * call_.size);
  }

  CollectiveCall inter_call(CollectiveOp op, Bytes bytes) const {
    CollectiveCall call;
    call.op = op;
    call.rank = call_.rank;
    call.size = call_.size;
    call.remote_size = call_.remote_size;
    call.low_group = call_.low_group;
    call.bytes = bytes;
    call.library = call_.library;
    return call;
  }
  void inter_allgather(Bytes bytes) { (void)expand_collective(inter_call(CollectiveOp::kAllgather, bytes), out_); }

  // ompi_comm_determine_first: an allgatherv to which the leaders alone contribute.
  void say_who_is_high() {
    local_.gather(0, kIntBytes);
    if (is_leader()) remote_.exchange(0, kIntBytes, 0, kIntBytes);
    local_.bcast(0, kIntBytes, kIntBytes);
  }

  // MPI_Intercomm_create, up to the numbers: sizes and names of the groups. Leaders are taken to be the first
  // ranks, and names to be of 40 bytes each (a guess).
  void introduce() {
    constexpr Bytes kNameBytes = 40;
    for (const Bytes sent : {kIntBytes, kIntBytes, kNameBytes * call_.size}) {
      const bool names = sent != kIntBytes;
      const Bytes received = names ? kNameBytes * call_.remote_size : kIntBytes;
      if (is_leader()) remote_.exchange(0, sent, 0, received);
      local_.bcast(0, received, 1);
    }
  }

  std::vector<CollectiveStep>& out_;
};

// src/mpi/comm/contextid.c: all ranks say which numbers they have left, in one allreduce (two, once a rank
// has so many communicators that the first numbers are used up). Then in 4.0 the new communicator's first rank
// broadcasts its serial number (commutil.c), which is left out where the new one is not the whole old one:
// its members are not known yet.
class MpichCreation : private InterSteps {
 public:
  MpichCreation(const CollectiveCall& call, std::vector<CollectiveStep>& out)
      : InterSteps(call, out, call.nonblocking), out_(out) {}

  bool expand() {
    if (call_.remote_size > 0) return on_intercommunicator();
    switch (call_.creation) {
      case CommCreation::kDup:
      case CommCreation::kDistGraphCreateAdjacent:
        part(CollectiveOp::kAllreduce, kMaskBytes);
        number();
        return true;
      case CommCreation::kCreateGroup:
        GroupSteps(out_, call_.rank, call_.size, false, call_.library)
            .allreduce(Algorithm::kRecursiveDoubling, kMaskBytes, true);
        number();
        return true;
      case CommCreation::kCreate:
        part(CollectiveOp::kAllreduce, kMaskBytes);
        return false;
      case CommCreation::kSplit:
      case CommCreation::kCartSub:
        split();
        return false;
      case CommCreation::kSplitType:  // without MPI_UNDEFINED, then by node
        split();
        split();
        return false;
      case CommCreation::kCartCreate:  // without reordering, else a split
      case CommCreation::kGraphCreate:
      default:
        part(CollectiveOp::kAllreduce, kMaskBytes);
        number();
        return false;
    }
  }

 private:
  static constexpr Bytes kMaskBytes = 65 * 4;  // MPIR_MAX_CONTEXT_MASK words and a flag
  static constexpr Bytes kContextIdBytes = 2;

  bool on_intercommunicator() {
    switch (call_.creation) {
      case CommCreation::kDup:
        agree_inside();
        swap_between(kContextIdBytes);
        return true;
      case CommCreation::kIntercommMerge:  // the agreement of both groups is an allreduce over all of them
        swap_between(kIntBytes);
        agree_inside();
        swap_between(kMaskBytes);
        return false;
      default:
        agree_inside();
        swap_between(kContextIdBytes);
        return false;
    }
  }

  void part(CollectiveOp op, Bytes bytes) {
    CollectiveCall call;
    call.op = op;
    call.rank = call_.rank;
    call.size = call_.size;
    call.bytes = bytes;
    call.nonblocking = call_.nonblocking;
    call.library = call_.library;
    call.layout = call_.layout;
    call.settings = call_.settings;
    (void)expand_collective(call, out_);
  }
  void split() {
    part(CollectiveOp::kAllgather, kColorAndKeyBytes);
    part(CollectiveOp::kAllreduce, kMaskBytes);
  }
  void number() {
    if (call_.library == MpiLibrary::kMpich4) part(CollectiveOp::kBcast, kIntBytes);
  }
  void agree_inside() { local_.allreduce(kMaskBytes, true); }
  void swap_between(Bytes bytes) {
    if (is_leader()) remote_.exchange(0, bytes, 0, bytes);
    local_.bcast(0, bytes, 1);
  }

  std::vector<CollectiveStep>& out_;
};

}  // namespace

bool expand_creation(const CollectiveCall& call, std::vector<CollectiveStep>& out) {
  if (is_mpich(call.library)) return MpichCreation(call, out).expand();
  return OpenMpiCreation(call, out).expand();
}

}  // namespace lbf::engine::collective
