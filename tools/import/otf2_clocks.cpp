// See otf2_clocks.h.
#include "tools/import/otf2_clocks.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "tools/import/otf2_shared.h"

namespace lbf::tools::otf2 {
namespace {

constexpr std::uint64_t kMostRecords = 20'000'000;  // of all ranks
constexpr std::uint64_t kMostRecordsOfRank = 20'000;
constexpr std::uint64_t kLeastRecordsOfRank = 200;
constexpr std::size_t kMostCollectives = 64;
constexpr std::size_t kMostPeers = 64;  // of a rank
constexpr Nanoseconds kMostShift = Nanoseconds{1} << 61;
constexpr Nanoseconds kTolerance = 1000;  // that clocks which agree may be off

// The first messages between two ranks, on one channel.
struct FirstMessage {
  std::optional<Nanoseconds> sent_ns;
  std::optional<Nanoseconds> received_ns;
};
using Channel = std::array<std::int64_t, 4>;  // source, destination, communicator, tag

struct CollectiveOfAll {
  Nanoseconds enter_ns = 0;
  Nanoseconds leave_ns = 0;
};
struct Beginning {
  std::optional<Nanoseconds> first_ns;
  std::optional<Nanoseconds> init_ns;
  std::vector<CollectiveOfAll> collectives;
};

bool waits_for_all(std::uint8_t op) {
  switch (op) {
    case OTF2_COLLECTIVE_OP_BARRIER:
    case OTF2_COLLECTIVE_OP_ALLREDUCE:
    case OTF2_COLLECTIVE_OP_ALLGATHER:
    case OTF2_COLLECTIVE_OP_ALLGATHERV:
    case OTF2_COLLECTIVE_OP_ALLTOALL:
    case OTF2_COLLECTIVE_OP_ALLTOALLV:
    case OTF2_COLLECTIVE_OP_ALLTOALLW:
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER:
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK:
      return true;
    default:
      return false;
  }
}

class Alignment {
 public:
  explicit Alignment(Archive& archive)
      : archive_(archive), ranks_(static_cast<std::size_t>(archive.definitions().ranks)) {}

  Result<Clocks> run() {
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
      if (Result<void> done = read(rank); !done) return done.error();
    }
    Clocks clocks;
    clocks.shift_ns.assign(ranks_.size(), 0);
    const Nanoseconds off = most_violation(clocks.shift_ns);
    if (off > kTolerance) {
      const bool has_collective = collectives_of_all() > 0;
      if (!align(clocks.shift_ns)) {
        return invalid_input(archive_.anchor() + ": the ranks' clocks contradict each other (something ends " +
                             seconds_text(seconds_from_ns(off)) +
                             " s before it begins), and no shift of them sets that right: do they drift?");
      }
      const auto [low, high] = std::minmax_element(clocks.shift_ns.begin(), clocks.shift_ns.end());
      clocks.note = "the ranks' clocks are up to " + seconds_text(seconds_from_ns(*high - *low)) +
                    " s apart: they are set by " +
                    (has_collective ? "the end of the first collective of all ranks, and by messages"
                                    : "messages, which cannot end before they begin");
    }
    find_starts(clocks);
    return clocks;
  }

 private:
  Result<void> read(Rank rank) {
    RankRecords records(archive_, rank, 0);
    Beginning& mine = ranks_[static_cast<std::size_t>(rank)];
    Nanoseconds enter_ns = 0;
    const std::uint64_t most = std::clamp(kMostRecords / ranks_.size(), kLeastRecordsOfRank, kMostRecordsOfRank);
    for (std::uint64_t n = 0; n < most && mine.collectives.size() < kMostCollectives; ++n) {
      const Result<const Record*> next = records.front();
      if (!next) return next.error();
      if (*next == nullptr) break;
      const Record& record = **next;
      if (!mine.first_ns) mine.first_ns = record.ns;
      if (ends_init(record)) mine.init_ns = record.ns;
      if (record.kind == Record::Kind::kEnter) enter_ns = record.ns;
      if (record.kind == Record::Kind::kCollectiveEnd && waits_for_all(record.op) && is_of_all(record.comm))
        mine.collectives.push_back({enter_ns, record.ns});
      note_message(rank, record);
      records.take();
    }
    return {};
  }

  bool is_of_all(OTF2_CommRef ref) const {
    const Communicator* comm = archive_.definitions().communicator(ref);
    return comm != nullptr && !comm->is_self && !comm->is_inter() && comm->members.size() == ranks_.size();
  }

  void note_message(Rank rank, const Record& record) {
    const bool is_send = record.kind == Record::Kind::kSend || record.kind == Record::Kind::kIsend;
    const bool is_receive = record.kind == Record::Kind::kRecv || record.kind == Record::Kind::kIrecv;
    if (!is_send && !is_receive) return;
    const Communicator* comm = archive_.definitions().communicator(record.comm);
    const std::optional<Rank> peer = comm == nullptr ? std::nullopt : comm->peer(rank, record.peer);
    if (!peer || *peer == rank) return;
    const Channel channel{is_send ? rank : *peer, is_send ? *peer : rank, record.comm, record.tag};
    if (!messages_.contains(channel) && messages_.size() >= kMostPeers * ranks_.size()) return;
    FirstMessage& message = messages_[channel];
    std::optional<Nanoseconds>& side = is_send ? message.sent_ns : message.received_ns;
    if (!side) side = record.ns;
  }

  // That all ranks reached.
  std::size_t collectives_of_all() const {
    std::size_t least = kMostCollectives;
    for (const Beginning& rank : ranks_) least = std::min(least, rank.collectives.size());
    return least;
  }

  // Hands each rank and its least shift to `take(rank, ns)`, by what ends with it: nobody leaves such a collective
  // before all are there, and no message ends before it begins.
  template <typename Take>
  void for_each_bound(const std::vector<Nanoseconds>& shift_ns, const Take& take) const {
    for (std::size_t n = 0; n < collectives_of_all(); ++n) {
      Nanoseconds last_ns = ranks_[0].collectives[n].enter_ns + shift_ns[0];
      for (std::size_t i = 1; i < ranks_.size(); ++i)
        last_ns = std::max(last_ns, ranks_[i].collectives[n].enter_ns + shift_ns[i]);
      for (std::size_t i = 0; i < ranks_.size(); ++i) take(i, last_ns - ranks_[i].collectives[n].leave_ns);
    }
    for (const auto& [channel, message] : messages_) {
      if (!message.sent_ns || !message.received_ns) continue;
      const Nanoseconds sent_ns = *message.sent_ns + shift_ns[static_cast<std::size_t>(channel[0])];
      take(static_cast<std::size_t>(channel[1]), sent_ns - *message.received_ns);
    }
  }

  // By how much something ends before it can.
  Nanoseconds most_violation(const std::vector<Nanoseconds>& shift_ns) const {
    Nanoseconds most = 0;
    for_each_bound(shift_ns,
                   [&](std::size_t rank, Nanoseconds least) { most = std::max(most, least - shift_ns[rank]); });
    return most;
  }

  // Sets the clocks; false: they cannot be.
  bool align(std::vector<Nanoseconds>& shift_ns) const {
    for (std::size_t i = 0; i < ranks_.size() && collectives_of_all() > 0; ++i)
      shift_ns[i] = ranks_[0].collectives[0].leave_ns - ranks_[i].collectives[0].leave_ns;
    // Not all ranks leave it at once: then messages say more.
    for (std::size_t round = 0; round <= ranks_.size(); ++round) {
      bool moved = false;
      bool is_endless = false;
      for_each_bound(shift_ns, [&](std::size_t rank, Nanoseconds least) {
        is_endless = is_endless || least > kMostShift;
        if (least <= shift_ns[rank] || is_endless) return;
        moved = true;
        shift_ns[rank] = least;
      });
      if (is_endless) return false;
      if (!moved) return true;
    }
    return false;
  }

  void find_starts(Clocks& clocks) const {
    std::optional<Nanoseconds> first;
    std::vector<Nanoseconds> begin_ns(ranks_.size(), 0);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Start& start = clocks.starts.emplace_back();
      if (!ranks_[i].first_ns) continue;
      start.is_after_init = ranks_[i].init_ns.has_value();
      begin_ns[i] = ranks_[i].init_ns.value_or(*ranks_[i].first_ns) + clocks.shift_ns[i];
      first = std::min(first.value_or(begin_ns[i]), begin_ns[i]);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].first_ns) clocks.starts[i].later_ns = begin_ns[i] - *first;
    }
  }

  Archive& archive_;
  std::vector<Beginning> ranks_;
  std::map<Channel, FirstMessage> messages_;
};

}  // namespace

bool ends_init(const Record& record) {
  const MpiFunction* function = record.region == nullptr ? nullptr : record.region->function;
  return record.kind == Record::Kind::kLeave && function != nullptr &&
         (function->role == MpiRole::kInit || function->role == MpiRole::kInitThread);
}

Result<Clocks> Clocks::align(Archive& archive) {
  return Alignment(archive).run();
}

}  // namespace lbf::tools::otf2
