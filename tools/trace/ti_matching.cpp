// See ti_matching.h.
#include "tools/trace/ti_matching.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <queue>
#include <string_view>
#include <utility>

#include "tools/trace/ti_lines.h"
#include "tools/trace/ti_parameters.h"

namespace lbf::tools::ti {
namespace {

// Lines of each rank, some at a time of each file.
class RankLines {
 public:
  RankLines(const std::vector<std::string>& files, Rank ranks) : lines_(static_cast<std::size_t>(ranks)) {
    for (const std::string& name : files) files_.push_back({name, {}, false});
  }
  bool next(Rank rank, std::string& line) {
    std::deque<std::string>& mine = lines_[static_cast<std::size_t>(rank)];
    File& file = files_[files_.size() > 1 ? static_cast<std::size_t>(rank) : 0];
    while (mine.empty() && !file.is_done) refill(file, rank);
    if (mine.empty()) return false;
    line = std::move(mine.front());
    mine.pop_front();
    return true;
  }

 private:
  struct File {
    std::string name;
    Place place;
    bool is_done = false;
  };
  void refill(File& file, Rank rank) {
    constexpr std::uint64_t kBytes = 8 << 10;
    std::ifstream in(file.name, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(file.place.offset));
    const std::uint64_t start = file.place.offset;
    std::string line;
    while (file.place.offset - start < kBytes) {
      if (!next_line(in, line, file.place)) {
        file.is_done = true;
        return;
      }
      const TiWords words = split_words(line);
      Rank of = rank;
      if (files_.size() == 1 && (!parse(words[0], of) || of < 0 || static_cast<std::size_t>(of) >= lines_.size()))
        continue;
      lines_[static_cast<std::size_t>(of)].push_back(line);
    }
  }

  std::vector<File> files_;
  std::vector<std::deque<std::string>> lines_;
};

class Run {
 public:
  Run(const std::vector<std::string>& files, Rank ranks, double flops_per_second,
      std::vector<std::deque<std::optional<Match>>>& matches)
      : lines_(files, ranks),
        flops_per_second_(flops_per_second),
        ranks_(static_cast<std::size_t>(ranks)),
        matches_(matches) {
    matches_.resize(ranks_.size());
  }

  void run() {
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) ready_.emplace(0.0, rank);
    while (!ready_.empty()) {
      const Rank rank = ready_.top().second;
      ready_.pop();
      if (lines_.next(rank, line_) && act(rank) && of(rank).waits == Waits::kNot)
        ready_.emplace(of(rank).clock_s, rank);
    }
  }

 private:
  struct Message {
    Match match;
    Seconds sent_s = 0;
    std::uint64_t number = 0;  // in the order of arrival
  };
  struct Receive {
    Match wants;                      // kAnyRank, kAnyTag: wildcards
    std::size_t wildcard = 0;         // its number among the rank's, from 1; 0: it has none
    std::optional<Seconds> sent_s{};  // of its message; nothing: none yet
  };
  using Posted = std::list<Receive>::iterator;
  using Key = std::array<std::int32_t, 3>;  // source, destination, tag, as a wait names it
  enum class Waits : std::uint8_t { kNot, kForOne, kForAll, kForRanks };
  struct RankState {
    Seconds clock_s = 0;
    Waits waits = Waits::kNot;
    std::list<Receive> receives;  // those that nothing has waited for
    std::size_t unmatched = 0;
    Posted awaited;                                                           // kForOne
    std::map<std::pair<Rank, std::int32_t>, std::deque<Message>> unexpected;  // by source and tag
    std::uint64_t next_number = 0;
    std::map<Key, std::deque<std::optional<Posted>>> requests;  // nothing: a send's
  };

  RankState& of(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  static bool fits(const Match& wants, const Match& has) {
    return (wants.source == kAnyRank || wants.source == has.source) && (wants.tag == kAnyTag || wants.tag == has.tag);
  }

  // One action. False: the rank ends here.
  bool act(Rank rank) {
    const TiWords words = split_words(line_);
    TiParameters p(words, static_cast<Rank>(ranks_.size()), kByte);
    if (words.size() < 2 || words[1] == "finalize") return false;
    const std::string_view action = words[1];
    // Those without a meaning here have no parameters here.
    const std::size_t needed = action == "compute" || action == "sleep"                             ? 1
                               : is_one_of(kSends, action) || action == "recv" || action == "irecv" ? 2
                               : action == "wait"                                                   ? 3
                               : action == "sendRecv" || action == "sendrecv"                       ? 4
                                                                                                    : 0;
    if (words.size() < needed + 2) return false;
    if (needed == 1) of(rank).clock_s += p.flops(2) / (action == "compute" ? flops_per_second_ : 1);
    if (is_one_of(kSends, action)) send(rank, action.front() == 'i' || action.front() == 'I', p);
    if (action == "recv" || action == "irecv") receive(rank, action == "irecv", p);
    if (needed == 4) send_receive(rank, p);
    if (action == "wait") wait(rank, p);
    if (action == "waitall") wait_for_all(rank);
    if (is_one_of(kCollectives, action)) meet(rank);
    return p.result().ok();
  }

  static constexpr std::array<std::string_view, 6> kSends{"send", "isend", "Ssend", "ISsend", "bsend", "ibsend"};
  static constexpr std::array<std::string_view, 15> kCollectives{
      "barrier", "bcast",   "reduce",  "allreduce",  "scan",     "exscan",        "alltoall", "allgather",
      "gather",  "scatter", "gatherv", "allgatherv", "scatterv", "reducescatter", "alltoallv"};
  template <std::size_t N>
  static bool is_one_of(const std::array<std::string_view, N>& names, std::string_view action) {
    return std::find(names.begin(), names.end(), action) != names.end();
  }

  void send(Rank rank, bool is_nonblocking, TiParameters& p) {
    const Match match{p.rank(2, "destination"), p.tag(3)};
    if (!p.result()) return;
    deliver(rank, match.source, match.tag);
    if (is_nonblocking) of(rank).requests[{rank, match.source, match.tag}].emplace_back();
  }

  void receive(Rank rank, bool is_nonblocking, TiParameters& p) {
    const Match wants{p.source(2), p.tag_or_any(3)};
    if (!p.result()) return;
    const Posted posted = post(rank, wants);
    if (is_nonblocking) {
      of(rank).requests[{wants.source, rank, wants.tag}].emplace_back(posted);
    } else {
      wait_for(rank, posted);
    }
  }

  void send_receive(Rank rank, TiParameters& p) {
    const Rank to = p.rank(3, "destination");
    const Match wants{p.source(5), 0};
    if (!p.result()) return;
    const Posted posted = post(rank, wants);
    deliver(rank, to, 0);
    wait_for(rank, posted);
  }

  void wait(Rank rank, TiParameters& p) {
    RankState& mine = of(rank);
    const auto found = mine.requests.find({p.source(2), p.rank(3, "destination"), p.tag_or_any(4)});
    if (!p.result() || found == mine.requests.end()) return;
    const std::optional<Posted> request = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) mine.requests.erase(found);
    if (request) wait_for(rank, *request);
  }

  void wait_for(Rank rank, Posted posted) {
    of(rank).waits = Waits::kForOne;
    of(rank).awaited = posted;
    go_on(rank);
  }
  void wait_for_all(Rank rank) {
    of(rank).requests.clear();
    of(rank).waits = Waits::kForAll;
    go_on(rank);
  }

  // Ends the rank's wait for messages where they are there.
  bool go_on(Rank rank) {
    RankState& mine = of(rank);
    if (mine.waits == Waits::kForOne && mine.awaited->sent_s) {
      mine.clock_s = std::max(mine.clock_s, *mine.awaited->sent_s);
      mine.receives.erase(mine.awaited);
    } else if (mine.waits == Waits::kForAll && mine.unmatched == 0) {
      for (const Receive& receive : mine.receives) mine.clock_s = std::max(mine.clock_s, *receive.sent_s);
      mine.receives.clear();
    } else {
      return false;
    }
    mine.waits = Waits::kNot;
    return true;
  }

  void deliver(Rank rank, Rank to, std::int32_t tag) {
    const Message message{{rank, tag}, of(rank).clock_s, 0};
    RankState& other = of(to);
    const auto found = std::find_if(other.receives.begin(), other.receives.end(), [&](const Receive& receive) {
      return !receive.sent_s && fits(receive.wants, message.match);
    });
    if (found == other.receives.end()) {
      other.unexpected[{rank, tag}].push_back({message.match, message.sent_s, other.next_number++});
      return;
    }
    take(to, *found, message);
    if (go_on(to)) ready_.emplace(other.clock_s, to);
  }

  Posted post(Rank rank, const Match& wants) {
    RankState& mine = of(rank);
    const Posted posted = mine.receives.insert(mine.receives.end(), Receive{wants});
    ++mine.unmatched;
    if (wants.source == kAnyRank || wants.tag == kAnyTag) {
      matches_[static_cast<std::size_t>(rank)].emplace_back();
      posted->wildcard = matches_[static_cast<std::size_t>(rank)].size();
    }
    if (const auto message = take_unexpected(mine, wants)) take(rank, *posted, *message);
    return posted;
  }

  // The first one that fits.
  static std::optional<Message> take_unexpected(RankState& mine, const Match& wants) {
    auto first = mine.unexpected.find({wants.source, wants.tag});
    if (wants.source == kAnyRank || wants.tag == kAnyTag) {
      for (auto channel = mine.unexpected.begin(); channel != mine.unexpected.end(); ++channel) {
        if (!fits(wants, channel->second.front().match)) continue;
        if (first == mine.unexpected.end() || channel->second.front().number < first->second.front().number)
          first = channel;
      }
    }
    if (first == mine.unexpected.end()) return std::nullopt;
    const Message message = first->second.front();
    first->second.pop_front();
    if (first->second.empty()) mine.unexpected.erase(first);
    return message;
  }

  void take(Rank rank, Receive& receive, const Message& message) {
    receive.sent_s = message.sent_s;
    --of(rank).unmatched;
    if (receive.wildcard > 0) matches_[static_cast<std::size_t>(rank)][receive.wildcard - 1] = message.match;
  }

  void meet(Rank rank) {
    of(rank).waits = Waits::kForRanks;
    met_s_ = std::max(met_s_, of(rank).clock_s);
    if (++met_ < ranks_.size()) return;
    met_ = 0;
    for (Rank other = 0; other < static_cast<Rank>(ranks_.size()); ++other) {
      of(other).clock_s = met_s_;
      of(other).waits = Waits::kNot;
      if (other != rank) ready_.emplace(met_s_, other);
    }
  }

  RankLines lines_;
  std::string line_;
  double flops_per_second_;
  std::vector<RankState> ranks_;
  std::vector<std::deque<std::optional<Match>>>& matches_;
  // Whose next action is the first one comes first.
  using Turn = std::pair<Seconds, Rank>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready_;
  std::size_t met_ = 0;  // ranks in the collective that is under way
  Seconds met_s_ = 0;
};

}  // namespace

TiMatching::TiMatching(const std::vector<std::string>& files, Rank ranks, double flops_per_second) {
  Run(files, ranks, flops_per_second, matches_).run();
}

std::optional<Match> TiMatching::next(Rank rank) {
  std::deque<std::optional<Match>>& mine = matches_[static_cast<std::size_t>(rank)];
  if (mine.empty()) return std::nullopt;
  const std::optional<Match> match = mine.front();
  mine.pop_front();
  return match;
}

}  // namespace lbf::tools::ti
