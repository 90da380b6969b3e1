// See otf2_import.h.
#include "tools/import/otf2_import.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "tools/import/otf2_clocks.h"
#include "tools/import/otf2_collectives.h"
#include "tools/import/otf2_rank.h"
#include "tools/import/otf2_shared.h"
#include "tools/import/otf2_stream.h"
#include "tools/support/announced_ranks.h"

namespace lbf::tools {
namespace {

using otf2::Archive;
using otf2::Clocks;
using otf2::Collectives;
using otf2::Counts;
using otf2::Definitions;
using otf2::RankImport;
using otf2::RankRecords;
using otf2::Record;
using otf2::Shared;
using otf2::Writer;

constexpr std::size_t kMostHeld = std::size_t{1} << 22;  // events of all ranks
constexpr std::size_t kMostHeldOfRank = 65536;
constexpr std::size_t kLeastHeldOfRank = 1024;
// So far one rank may be read beyond the others, where nothing is looked for among their messages.
constexpr Nanoseconds kAhead = 1'000'000;

// One reading of an archive.
class Pass {
 public:
  Pass(Archive& archive, const Clocks& clocks, const EventBlockSink& sink)
      : shared_{archive.definitions(), archive.anchor(), {}, {}, {}, {}}, collectives_(shared_), sink_(sink) {
    const auto ranks = static_cast<std::size_t>(archive.definitions().ranks);
    shared_.sent_to.resize(ranks);
    shared_.received_by.resize(ranks);
    if (archive.definitions().writer == Writer::kEztrace) shared_.inboxes.resize(ranks);
    const std::size_t most_held = std::clamp(kMostHeld / ranks, kLeastHeldOfRank, kMostHeldOfRank);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto number = static_cast<Rank>(rank);
      records_.emplace_back(archive, number, clocks.shift_ns[rank]);
      imports_.emplace_back(shared_, number, most_held, clocks.starts[rank]);
    }
  }

  // Records of all ranks by time: what waits for other ranks waits shortly.
  Result<void> run(const std::function<void(std::uint64_t)>& progress) {
    for (std::size_t rank = 0; rank < records_.size(); ++rank) {
      if (Result<void> queued = queue(rank); !queued) return queued;
    }
    while (!next_.empty()) {
      const auto [now_ns, rank] = next_.top();
      next_.pop();
      if (Result<void> rebuilt = rebuild(now_ns); !rebuilt) return rebuilt;
      if (Result<void> taken = read(rank); !taken) return taken;
      if (Result<void> flushed = flush(static_cast<Rank>(rank)); !flushed) return flushed;
      if (Result<void> queued = queue(rank); !queued) return queued;
      progress(records_read_);
    }
    return finish();
  }

  std::uint64_t backwards() const {
    std::uint64_t sum = 0;
    for (const RankRecords& records : records_) sum += records.backwards();
    return sum;
  }
  const Counts& counts() const { return shared_.counts; }

 private:
  Result<void> queue(std::size_t rank) {
    const Result<const Record*> record = records_[rank].front();
    if (!record) return record.error();
    if (*record != nullptr) {
      next_.emplace((*record)->ns, rank);
      return {};
    }
    if (Result<void> ended = imports_[rank].finish(); !ended) return ended;
    return flush(static_cast<Rank>(rank));
  }

  Result<void> read(std::size_t rank) {
    const Nanoseconds ahead = shared_.rebuilds() ? 0 : kAhead;
    const Nanoseconds until = next_.empty() ? std::numeric_limits<Nanoseconds>::max() : next_.top().first + ahead;
    for (std::uint64_t n = 0; n < kAtOnce; ++n) {
      const Result<const Record*> record = records_[rank].front();
      if (!record) return record.error();
      if (*record == nullptr || (*record)->ns > until) return {};
      if (Result<void> taken = imports_[rank].on(**record); !taken) return taken;
      records_[rank].take();
      ++records_read_;
    }
    return {};
  }

  // Ends that no record has, of all ranks, once the messages until then are known.
  Result<void> rebuild(Nanoseconds now_ns) {
    if (!shared_.rebuilds() || now_ns - rebuilt_ns_ < kRebuildPeriod) return {};
    rebuilt_ns_ = now_ns;
    for (RankImport& rank : imports_) {
      if (Result<void> done = rank.rebuild(now_ns); !done) return done;
    }
    return {};
  }

  // Events of the rank, and of those that waited for it in a collective.
  Result<void> flush(Rank rank) {
    if (Result<void> done = imports_[static_cast<std::size_t>(rank)].flush(collectives_, sink_); !done) return done;
    for (std::vector<Rank> others = collectives_.take_complete(); !others.empty();
         others = collectives_.take_complete()) {
      for (const Rank other : others) {
        if (Result<void> done = imports_[static_cast<std::size_t>(other)].flush(collectives_, sink_); !done)
          return done;
      }
    }
    return {};
  }

  Result<void> finish() {
    if (Result<void> rebuilt = rebuild(std::numeric_limits<Nanoseconds>::max()); !rebuilt) return rebuilt;
    for (std::size_t rank = 0; rank < imports_.size(); ++rank) {
      if (Result<void> done = flush(static_cast<Rank>(rank)); !done) return done;
    }
    for (std::size_t rank = 0; rank < imports_.size(); ++rank) {
      const std::uint64_t sent = shared_.sent_to[rank];
      const std::uint64_t received = shared_.received_by[rank];
      if (imports_[rank].has_unended_receives() && !shared_.rebuilds() && sent > received) {
        return invalid_input(shared_.anchor + ": rank " + std::to_string(rank) + " has receives without an end, and " +
                             std::to_string(sent - received) +
                             " messages to it are received by no record: which took which is not in the archive");
      }
    }
    for (std::size_t rank = 0; rank < imports_.size(); ++rank) {
      if (!imports_[rank].has_all_handed_on()) {
        const std::string why = collectives_.stuck();
        return invalid_input(shared_.anchor + ": rank " + std::to_string(rank) + " waits for a record for ever" +
                             (why.empty() ? "" : ": " + why));
      }
    }
    return {};
  }

  static constexpr std::uint64_t kAtOnce = 4096;
  static constexpr Nanoseconds kRebuildPeriod = 250'000;
  Shared shared_;
  Collectives collectives_;
  const EventBlockSink& sink_;
  std::vector<RankRecords> records_;
  std::vector<RankImport> imports_;
  using Turn = std::pair<Nanoseconds, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> next_;
  std::uint64_t records_read_ = 0;
  Nanoseconds rebuilt_ns_ = std::numeric_limits<Nanoseconds>::min() / 2;
};

class Import final : public Otf2Import {
 public:
  static Result<std::unique_ptr<Otf2Import>> make(const std::string& anchor) {
    Result<std::unique_ptr<Archive>> archive = Archive::open(anchor);
    if (!archive) return archive.error();
    auto made = std::make_unique<Import>();
    made->anchor_ = anchor;
    made->ranks_ = (*archive)->definitions().ranks;
    made->nodes_ = (*archive)->definitions().node_of_rank;
    made->bytes_ = otf2_bytes(anchor);
    if (auto checked = check_announced_ranks(anchor, made->ranks_, made->bytes_); !checked) return checked.error();
    Result<Clocks> clocks = Clocks::align(**archive);
    if (!clocks) return clocks.error();
    made->clocks_ = std::move(*clocks);
    return std::unique_ptr<Otf2Import>(std::move(made));
  }

  Rank ranks() const override { return ranks_; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return nodes_; }

  Result<void> read(const EventBlockSink& sink, const std::function<void(double)>& progress) override {
    // An archive is read once.
    Result<std::unique_ptr<Archive>> archive = Archive::open(anchor_);
    if (!archive) return archive.error();
    Pass pass(**archive, clocks_, sink);
    // The numbers of events in the definitions are wrong in some archives: guessed from the files.
    constexpr double kBytesPerRecord = 12;
    const double all = std::max(static_cast<double>(bytes_) / kBytesPerRecord, 1.0);
    Result<void> done =
        pass.run([&](std::uint64_t records) { progress(std::min(static_cast<double>(records) / all, 0.99)); });
    if (!done) return done;
    write_notes((*archive)->definitions(), pass);
    return {};
  }

  std::vector<std::string> notes() const override { return notes_; }

 private:
  void write_notes(const Definitions& definitions, const Pass& pass) {
    const Counts& counts = pass.counts();
    notes_.clear();
    const auto note = [this](std::uint64_t count, const std::string& what) {
      if (count > 0) notes_.push_back(std::to_string(count) + " " + what);
    };
    if (!clocks_.note.empty()) notes_.push_back(clocks_.note);
    note(counts.rebuilt_ends, "requests have no record of their end: they end in the call that must have ended them");
    note(counts.early_ends, "of these calls end before the message is sent, by the clocks: they took the next one");
    note(counts.false_receives, "records of a receive end the request of a send: taken for the send's end");
    note(counts.foreign_sizes,
         "collectives: the archive's writer (" + (definitions.creator.empty() ? "not named" : definitions.creator) +
             ") does not say how it counts bytes: taken as sums over the ranks, as Score-P counts");
    note(counts.maybe_in_place,
         "collectives may be MPI_IN_PLACE, which OTF2 does not say: their bytes are then P/(P-1) of "
         "what is taken, for P ranks");
    note(counts.shared_sizes, "alltoallv and alltoallw have a sum for each rank: every other rank gets an equal share");
    if (counts.misfits > 0) {
      note(counts.misfits, "collectives have bytes that differ between the ranks (the first: " + counts.first_misfit +
                               "): what each rank says counts");
    }
    note(counts.unmodelled_calls, "calls without a record of what they do (the first: " + counts.first_unmodelled +
                                      ") keep their measured time");
    note(counts.probes, "probes wait for the message that their rank receives next");
    note(counts.unended_receives, "receives are posted and never end: they are left out");
    note(counts.cancelled_receives, "receives are cancelled: they are left out");
    note(counts.late_posts, "receives and non-blocking collectives end so late that they count as begun at their end");
    note(counts.calls_in_teams, "parallel regions have MPI calls inside: their time is that of one thread");
    note(counts.pauses, "pauses of the measurement: what happened in them is not in the archive");
    note(counts.flushes,
         "times the measurement wrote its buffer, " + otf2::seconds_text(counts.flush_s) + " s in all: left out");
    note(counts.odd_regions, "regions have no beginning or no end");
    note(pass.backwards(), "events are earlier than the one before them in their location: taken as at the same time");
    note(definitions.devices, "locations of accelerators are left out: waits for them are process time");
  }

  std::string anchor_;
  Rank ranks_ = 0;
  std::vector<std::uint32_t> nodes_;
  std::uintmax_t bytes_ = 0;
  Clocks clocks_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::unique_ptr<Otf2Import>> Otf2Import::open(const std::string& anchor) {
  return Import::make(anchor);
}

}  // namespace lbf::tools
