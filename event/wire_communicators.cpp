// CommunicatorTable (event/wire.h): the ranks of a trace number their communicators each for itself; here the
// uid that all members computed alike gives every communicator one number. docs/formats/wire-v1.md,
// "Communicators".
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "event/wire.h"

namespace lbf {
namespace {

// For the same reason as kMaxTraceCommunicators.
constexpr Bytes kMaxMembersBytes = Bytes{1} << 28;
constexpr std::size_t kMaxDefinitions = std::size_t{1} << 26;  // (rank, local index) pairs

std::uint64_t rank_and_local(Rank rank, std::uint32_t local_index) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank)) << 32 | local_index;
}

}  // namespace

Result<std::uint32_t> CommunicatorTable::define(Rank rank, std::uint32_t local_index,
                                                std::span<const std::uint64_t> values) {
  const auto fail = [&](const std::string& what) {
    return invalid_input("communicator " + std::to_string(local_index) + " of rank " + std::to_string(rank) + ": " +
                         what);
  };
  if (local_index == 0) return fail("index 0 is MPI_COMM_WORLD and cannot be defined");
  if (rank < 0) return fail("the rank is negative");
  if (values.size() < 3) return fail("the definition has no members");
  const std::uint64_t uid = values[0];
  const std::uint64_t local_size = values[1];
  const auto members = values.subspan(2);
  if (local_size >= members.size()) return fail("its local group does not leave a member for the remote group");
  const auto own_group = local_size > 0 ? members.first(static_cast<std::size_t>(local_size)) : members;
  if (std::find(own_group.begin(), own_group.end(), static_cast<std::uint64_t>(rank)) == own_group.end()) {
    return fail("the rank is not a member");
  }

  const auto known = global_by_uid_.find(uid);
  std::uint32_t global = 0;
  if (known != global_by_uid_.end()) {
    global = known->second;
    const Definition& earlier = communicators_[global - 1];
    const auto other_group = members.subspan(local_size > 0 ? own_group.size() : members.size());
    const bool same = (earlier.group.equals(own_group) && earlier.remote.equals(other_group)) ||
                      (earlier.group.equals(other_group) && earlier.remote.equals(own_group));
    if (!same) return fail("another rank defined the communicator of this uid with other members");
  }

  const std::uint64_t key = rank_and_local(rank, local_index);
  if (const auto taken = global_by_rank_and_local_.find(key); taken != global_by_rank_and_local_.end()) {
    if (global == 0 || taken->second != global) return fail("the index is taken by another communicator");
    return global;
  }
  if (global_by_rank_and_local_.size() >= kMaxDefinitions) {
    return Error{ErrorCode::kLimit, fail("too many definitions in one trace").message};
  }

  if (global == 0) {
    for (const std::uint64_t member : members) {
      if (member > static_cast<std::uint64_t>(std::numeric_limits<Rank>::max()))
        return fail("member " + std::to_string(member) + " is not a rank");
    }
    const Rank twice = RankList(members).double_member();
    if (twice != kAnyRank) return fail("rank " + std::to_string(twice) + " is a member twice");
    Definition created{RankList(own_group), RankList(members.subspan(own_group.size()))};
    const Bytes bytes = created.group.memory_bytes() + created.remote.memory_bytes();
    if (communicators_.size() >= max_communicators_ || kMaxMembersBytes - members_bytes_ < bytes) {
      return Error{ErrorCode::kLimit, fail("too many communicators in one trace").message};
    }
    members_bytes_ += bytes;
    communicators_.push_back(std::move(created));
    global = static_cast<std::uint32_t>(communicators_.size());
    global_by_uid_.emplace(uid, global);
  }
  global_by_rank_and_local_.emplace(key, global);
  return global;
}

Result<std::uint32_t> CommunicatorTable::translate(Rank rank, std::uint32_t local_index) const {
  if (local_index == 0) return std::uint32_t{0};
  const auto found = global_by_rank_and_local_.find(rank_and_local(rank, local_index));
  if (found == global_by_rank_and_local_.end()) {
    return invalid_input("communicator " + std::to_string(local_index) + " of rank " + std::to_string(rank) +
                         " is not defined");
  }
  return found->second;
}

void CommunicatorTable::note_gap(Rank rank) {
  if (rank < 0) return;
  const auto index = static_cast<std::size_t>(rank);
  if (gap_by_rank_.size() <= index) gap_by_rank_.resize(index + 1);
  gap_by_rank_[index] = true;
}

bool CommunicatorTable::has_gap(Rank rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < gap_by_rank_.size() &&
         gap_by_rank_[static_cast<std::size_t>(rank)];
}

Bytes CommunicatorTable::memory_bytes() const {
  // A map's entry has two pointers besides.
  const Bytes entries = global_by_uid_.size() + global_by_rank_and_local_.size();
  const Bytes of_entry = sizeof(std::pair<std::uint64_t, std::uint32_t>) + 2 * sizeof(void*);
  return members_bytes_ + communicators_.capacity() * sizeof(Definition) + entries * of_entry +
         gap_by_rank_.capacity() / 8;
}

std::uint32_t CommunicatorTable::size() const {
  return static_cast<std::uint32_t>(communicators_.size()) + 1;
}

}  // namespace lbf
