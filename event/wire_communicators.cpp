// CommunicatorTable (event/wire.h): the ranks of a trace number their communicators each for itself; here the
// uid that all members computed alike gives every communicator one number. docs/formats/wire-v1.md,
// "Communicators".
#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "event/wire.h"

namespace lbf {
namespace {

// For the same reason as kMaxTraceCommunicators.
constexpr std::uint64_t kMaxStoredMembers = std::uint64_t{1} << 26;
constexpr std::size_t kMaxDefinitions = std::size_t{1} << 26;  // (rank, local index) pairs

// Below it, finding a list would cost more than having it twice.
constexpr std::size_t kLeastShared = 256;

// Long lists of members, once for all tables of the process: a trace has a table for each stream that is checked and
// one for each replay, all with the same lists.
class SharedLists {
 public:
  using List = std::shared_ptr<const std::vector<Rank>>;

  // IS_FIRST: no other table has it.
  List share(std::vector<Rank> members, bool& is_first) {
    is_first = true;
    if (members.size() < kLeastShared) return std::make_shared<const std::vector<Rank>>(std::move(members));
    const std::uint64_t hash = hash_of(members);
    const MutexLock lock(mutex_);
    std::weak_ptr<const std::vector<Rank>>& known = lists_[hash];
    if (const List list = known.lock(); list != nullptr && *list == members) {
      is_first = false;
      return list;
    }
    const auto list = std::make_shared<const std::vector<Rank>>(std::move(members));
    known = list;
    if (lists_.size() > sweep_at_) {
      std::erase_if(lists_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * lists_.size() + kLeastSweep;
    }
    return list;
  }

 private:
  static constexpr std::size_t kLeastSweep = 1024;

  // A polynomial at a place that nobody knows: lists that come from outside do not meet.
  std::uint64_t hash_of(const std::vector<Rank>& members) const {
    constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
    std::uint64_t hash = members.size();
    for (const Rank member : members) {
      const auto product = static_cast<unsigned __int128>(hash) * place_ + static_cast<std::uint64_t>(member) + 1;
      hash = static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61);
      if (hash >= kPrime) hash -= kPrime;
    }
    return hash;
  }

  const std::uint64_t place_ = static_cast<std::uint64_t>(std::random_device()()) << 28 ^ std::random_device()();
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const std::vector<Rank>>> lists_ GUARDED_BY(mutex_);
  std::size_t sweep_at_ GUARDED_BY(mutex_) = kLeastSweep;
};

SharedLists& shared_lists() {
  static SharedLists lists;
  return lists;
}

// A member that is in the list twice; nothing: there is none.
std::optional<Rank> repeated(const std::vector<Rank>& members) {
  constexpr std::size_t kDense = 64;  // a bit for each number up to the largest one is less than a copy to sort
  const auto largest = static_cast<std::size_t>(*std::max_element(members.begin(), members.end()));
  if (largest / kDense < members.size()) {
    std::vector<bool> seen(largest + 1);
    for (const Rank member : members) {
      if (seen[static_cast<std::size_t>(member)]) return member;
      seen[static_cast<std::size_t>(member)] = true;
    }
    return std::nullopt;
  }
  std::vector<Rank> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  return twice == sorted.end() ? std::nullopt : std::optional(*twice);
}

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

  const auto same_members = [&](std::span<const std::uint64_t> a, std::span<const Rank> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](std::uint64_t x, Rank y) { return x == static_cast<std::uint64_t>(y); });
  };
  const auto known = global_by_uid_.find(uid);
  std::uint32_t global = 0;
  if (known != global_by_uid_.end()) {
    global = known->second;
    const Definition& earlier = communicators_[global - 1];
    bool same = local_size == earlier.local_size && same_members(members, *earlier.members);
    if (!same && local_size > 0 && earlier.local_size > 0 && members.size() == earlier.members->size() &&
        local_size + earlier.local_size == members.size()) {
      const std::span<const Rank> before(*earlier.members);
      const auto split = static_cast<std::size_t>(earlier.local_size);
      same = same_members(own_group, before.subspan(split)) &&
             same_members(members.subspan(own_group.size()), before.first(split));
    }
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
    if (communicators_.size() >= max_communicators_ || kMaxStoredMembers - stored_members_ < members.size()) {
      return Error{ErrorCode::kLimit, fail("too many communicators in one trace").message};
    }
    Definition created;
    created.uid = uid;
    created.local_size = local_size;
    std::vector<Rank> list;
    list.reserve(members.size());
    for (const std::uint64_t member : members) {
      if (member > static_cast<std::uint64_t>(std::numeric_limits<Rank>::max())) {
        return fail("member " + std::to_string(member) + " is not a rank");
      }
      list.push_back(static_cast<Rank>(member));
    }
    if (const auto twice = repeated(list)) return fail("rank " + std::to_string(*twice) + " is a member twice");
    bool is_first = false;
    created.members = shared_lists().share(std::move(list), is_first);
    stored_members_ += members.size();
    if (is_first) own_members_ += members.size();
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

std::uint32_t CommunicatorTable::size() const {
  return static_cast<std::uint32_t>(communicators_.size()) + 1;
}

std::size_t CommunicatorTable::memory_bytes() const {
  constexpr std::size_t kOfEntry = 40;  // of a map: node and bucket
  return communicators_.capacity() * sizeof(Definition) + own_members_ * sizeof(Rank) +
         (global_by_uid_.size() + global_by_rank_and_local_.size()) * kOfEntry + gap_by_rank_.capacity() / 8;
}

}  // namespace lbf
