#include "tools/trace/import_ti.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/quoted.h"
#include "tools/support/announced_ranks.h"
#include "tools/support/compressed_file.h"
#include "tools/trace/ti_collectives.h"
#include "tools/trace/ti_counts.h"
#include "tools/trace/ti_matching.h"
#include "tools/trace/ti_parameters.h"

namespace lbf::tools {
namespace {

using ti::TiParameters;
using ti::TiWords;

constexpr Seconds kMaxTimeS = 1e9;
constexpr std::size_t kMaxActiveRequests = std::size_t{1} << 24;  // of one rank
constexpr std::uint64_t kBytesPerTurn = std::uint64_t{8} << 10;   // of one rank's file before the next one's
constexpr std::size_t kMaxOpenFiles = 256;

// One rank's actions -> its events.
class RankActions {
 public:
  struct Request {
    std::uint32_t number = 0;
    bool receive = false;
    Rank source = 0;
    Bytes bytes = 0;
    std::int32_t tag = 0;
    std::uint64_t order = 0;
  };
  using Key = std::array<std::int32_t, 3>;  // source, destination, tag, as a wait names it

  int default_datatype = ti::kByte;
  Seconds process_s = 0;  // since the last event
  std::uint32_t next_request = 0;
  std::uint64_t order = 0;
  std::map<Key, std::deque<Request>> requests;
  std::size_t active = 0;
  bool exited = false;
};

class Reader final : public TiTrace {
 public:
  Reader(std::string path, double flops_per_second) : path_(std::move(path)), flops_per_second_(flops_per_second) {}

  Result<void> index() {
    std::ifstream in(path_, std::ios::binary);
    if (!in) return Error{ErrorCode::kIo, path_ + ": cannot open: " + std::strerror(errno)};
    if (auto checked = check_not_compressed(path_); !checked) return checked;
    std::string line;
    ti::Place place;
    const std::uint64_t& number = place.line;
    std::uint64_t listed = 0;  // line of the last file name
    Rank top = -1;
    while (ti::next_line(in, line, place)) {
      const TiWords words = ti::split_words(line);
      if (words.size() < 2) {
        if (top >= 0) return ti::error_at(path_, number, quoted(words[0]) + " is no action: RANK ACTION ...");
        Result<std::string> found = find_file(std::string(words[0]), number);
        if (!found) return found.error();
        files_.push_back({*found, 0, {}, false});
        listed = number;
        if (files_.size() > static_cast<std::size_t>(kMaxRanks)) return ti::error_at(path_, number, "too many files");
        continue;
      }
      if (!files_.empty()) return ti::error_at(path_, number, "a list of files has one name a line");
      Rank rank = 0;
      if (!ti::parse(words[0], rank) || rank < 0 || rank >= kMaxRanks) {
        return ti::error_at(path_, number, quoted(words[0]) + " is no rank (0 .. 16777215)");
      }
      top = std::max(top, rank);
    }
    if (in.bad()) return Error{ErrorCode::kIo, path_ + ": cannot be read"};
    if (line.size() > ti::kMaxLineBytes) return ti::error_at(path_, number, ti::kLineTooLong);
    ranks_ = top + 1;
    if (top >= 0) {
      files_.push_back({path_, 0, {}, false});
      return count_bytes();
    }
    if (files_.empty()) return invalid_input(path_ + ": has no action and no file name in it");
    if (files_.size() > 1) {
      ranks_ = static_cast<Rank>(files_.size());
      return count_bytes();
    }
    // A list of one file: the actions of all ranks are in it.
    const std::string only = std::exchange(files_, {}).front().name;
    lists_.push_back(path_);
    for (const std::string& list : lists_) {
      std::error_code ignored;
      if (!std::filesystem::equivalent(list, only, ignored)) continue;
      return ti::error_at(path_, listed,
                          only + (list == path_ ? " is this list itself" : " is a list that leads here") +
                              ": a list names files with actions");
    }
    path_ = only;
    Result<void> again = index();
    if (again && ranks_ == 0) return invalid_input(path_ + ": has no action in it");
    return again;
  }

  Rank ranks() const override { return ranks_; }

  Result<void> read(const EventSink& sink, const std::function<void(double)>& progress) override {
    sink_ = &sink;
    state_.assign(static_cast<std::size_t>(ranks_), {});
    collectives_.emplace(ranks_);
    counts_.emplace(ranks_);
    std::uint64_t bytes_done = 0;
    // The files side by side, some lines of each in turn: one after the other would hold a whole program in a
    // reader's memory.
    std::size_t left = files_.size();
    const bool keep_open = files_.size() <= kMaxOpenFiles;
    std::vector<std::ifstream> streams(keep_open ? files_.size() : 1);
    while (left > 0) {
      for (std::size_t f = 0; f < files_.size(); ++f) {
        File& file = files_[f];
        if (file.done) continue;
        std::ifstream& in = streams[keep_open ? f : 0];
        if (!keep_open) in.close();
        const std::uint64_t start = file.place.offset;
        const Rank only = files_.size() > 1 ? static_cast<Rank>(f) : kAnyRank;
        if (Result<void> done = take_turn(file, in, only); !done) return done;
        left -= file.done ? 1 : 0;
        bytes_done += file.place.offset - start;
        progress(static_cast<double>(bytes_done) / static_cast<double>(std::max<std::uint64_t>(bytes_, 1)));
      }
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (state(rank).exited) continue;
      ++without_finalize_;
      if (Result<void> done = exit(rank); !done) return done;
    }
    return {};
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    const auto note = [&notes](std::uint64_t count, const std::string& what) {
      if (count > 0) notes.push_back(std::to_string(count) + " " + what);
    };
    note(tests_, "test actions are polls that found nothing: their requests complete in the next wait or waitall");
    note(wildcards_, "receives with a wildcard take the message that comes first where messages take no time");
    note(never_waited_, "requests that no action waits for are completed at the end of their rank");
    note(without_finalize_, "ranks have no finalize: they end after their last action");
    if (counts_ && counts_->misfits() > 0) {
      note(counts_->misfits(), "collectives have counts that do not fit each other between the ranks (the first: " +
                                   counts_->first_misfit() + "): what is sent counts");
    }
    note(splits_, "comm_split actions: collectives on what they make count as those of all ranks, as in SimGrid");
    note(ignored_, "actions without a meaning for a replay (location, comm_size, ...) are left out");
    return notes;
  }

 private:
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    ti::Place place;
    bool done = false;
  };

  // --- files

  // Some lines of the file, which `in` is opened for where it is closed. `only`: see act().
  Result<void> take_turn(File& file, std::ifstream& in, Rank only) {
    if (!in.is_open()) {
      in.clear();
      errno = 0;
      in.open(file.name, std::ios::binary);
      if (!in) return Error{ErrorCode::kIo, file.name + ": cannot open: " + std::strerror(errno)};
      in.seekg(static_cast<std::streamoff>(file.place.offset));
    }
    const std::uint64_t start = file.place.offset;
    while (file.place.offset - start < kBytesPerTurn) {
      if (!ti::next_line(in, line_, file.place)) {
        if (in.bad()) return Error{ErrorCode::kIo, file.name + ": cannot be read"};
        if (line_.size() > ti::kMaxLineBytes) return ti::error_at(file.name, file.place.line, ti::kLineTooLong);
        file.done = true;
        in.close();
        break;
      }
      if (Result<void> done = act(line_, only); !done) {
        return ti::error_at(file.name, file.place.line, done.error());
      }
    }
    return {};
  }

  Result<std::string> find_file(const std::string& name, std::uint64_t line) const {
    const std::filesystem::path here(name);
    const std::filesystem::path beside = std::filesystem::path(path_).parent_path();
    for (const std::filesystem::path& candidate :
         {here, beside / here, beside / here.parent_path().filename() / here.filename()}) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(candidate, ignored)) return candidate.string();
    }
    return ti::error_at(
        path_, line, name + ": no such file, neither from here nor beside the list (and an action is RANK ACTION ...)");
  }

  Result<void> count_bytes() {
    for (File& file : files_) {
      if (auto checked = check_not_compressed(file.name); !checked) return checked;
      std::error_code failed;
      file.bytes = std::filesystem::file_size(file.name, failed);
      if (failed) return Error{ErrorCode::kIo, file.name + ": " + failed.message()};
      bytes_ += file.bytes;
    }
    return check_announced_ranks(path_, ranks_, bytes_);
  }

  // --- events

  RankActions& state(Rank rank) { return state_[static_cast<std::size_t>(rank)]; }

  // With the process time since the rank's last event.
  Result<void> emit(Rank rank, Event event) {
    event.process_s = take_whole_ns(state(rank).process_s);
    event.flags |= kFlagCallBegin;
    return (*sink_)(rank, event);
  }
  Result<void> add_time(Rank rank, Seconds seconds) {
    state(rank).process_s += seconds;
    if (state(rank).process_s <= kMaxTimeS) return {};
    return invalid_input("more than 1e9 seconds of work at once: is --flops-per-second right?");
  }
  Seconds seconds_of(double flops) const { return flops / flops_per_second_; }

  Result<void> complete(Rank rank, const RankActions::Request& request) {
    Event event;
    event.flags = kFlagHasRequest;
    event.request = request.number;
    event.kind = request.receive ? EventKind::kEndRecv : EventKind::kWait;
    if (request.receive) {
      event.peer = request.source;
      event.tag = request.tag;
      event.bytes = request.bytes;
    }
    return emit(rank, event);
  }

  // All that is under way, in the order in which it was started; the sends in one wait.
  Result<void> complete_all(Rank rank) {
    RankActions& mine = state(rank);
    std::vector<RankActions::Request> all;
    for (auto& [key, list] : mine.requests) all.insert(all.end(), list.begin(), list.end());
    mine.requests.clear();
    mine.active = 0;
    mine.next_request = 0;
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
    std::vector<std::uint64_t> sends;
    for (const RankActions::Request& request : all) {
      if (!request.receive) {
        sends.push_back(request.number);
      } else if (Result<void> done = complete(rank, request); !done) {
        return done;
      }
    }
    if (sends.empty()) return {};
    Event wait;
    wait.kind = EventKind::kWait;
    wait.values = sends;
    return emit(rank, wait);
  }

  Result<void> exit(Rank rank) {
    never_waited_ += state(rank).active;
    if (Result<void> done = complete_all(rank); !done) return done;
    state(rank).exited = true;
    state(rank).requests = {};
    Event end;
    end.kind = EventKind::kExit;
    return emit(rank, end);
  }

  Result<void> start_request(Rank rank, Event event, RankActions::Key key, RankActions::Request request) {
    RankActions& mine = state(rank);
    if (mine.active >= kMaxActiveRequests) return invalid_input("too many requests under way");
    if (mine.active == 0) mine.next_request = 0;
    request.number = mine.next_request++;
    request.order = mine.order++;
    ++mine.active;
    mine.requests[key].push_back(request);
    event.flags |= kFlagHasRequest;
    event.request = request.number;
    return emit(rank, event);
  }

  // --- actions

  // `only`: the rank whose file it is; kAnyRank: all ranks share the file.
  Result<void> act(std::string_view line, Rank only) {
    const TiWords words = ti::split_words(line);
    Rank rank = 0;
    if (words.size() < 2 || !ti::parse(words[0], rank) || rank < 0 || rank >= ranks_) {
      return invalid_input(quoted(words[0]) + " is no action of a rank from 0 to " + std::to_string(ranks_ - 1) +
                           ": RANK ACTION ...");
    }
    if (only != kAnyRank && rank != only) {
      return invalid_input("an action of rank " + std::to_string(rank) + " in the file of rank " +
                           std::to_string(only));
    }
    if (state(rank).exited) return invalid_input("an action after finalize");
    TiParameters parameters(words, ranks_, state(rank).default_datatype);
    Result<void> done = act(rank, words, parameters);
    if (Result<void> parsed = parameters.result(); !parsed) return parsed;
    return done;
  }

  Result<void> act(Rank rank, const TiWords& words, TiParameters& p) {
    const std::string_view action = words[1];
    if (action == "compute") {
      if (Result<void> ok = ti::check(words, 1, "compute FLOPS"); !ok) return ok;
      const double flops = p.flops(2);
      return p.result() ? add_time(rank, seconds_of(flops)) : p.result();
    }
    if (action == "send" || action == "isend" || action == "Ssend" || action == "ISsend" || action == "bsend" ||
        action == "ibsend") {
      return send(rank, action, words, p);
    }
    if (action == "recv" || action == "irecv")
      return receive(rank, action == "irecv" ? EventKind::kStartRecv : EventKind::kRecv, words, p);
    if (action == "wait" || action == "test") {
      if (Result<void> ok = ti::check(words, 3, "wait SOURCE DESTINATION TAG"); !ok) return ok;
      const RankActions::Key key{p.source(2), p.rank(3, "destination"), p.tag_or_any(4)};
      if (!p.result()) return p.result();
      if (action == "test") {
        ++tests_;
        return {};
      }
      RankActions& mine = state(rank);
      const auto found = mine.requests.find(key);
      if (found == mine.requests.end()) return {};  // as SimGrid: an earlier test took it
      const RankActions::Request request = found->second.front();
      found->second.pop_front();
      if (found->second.empty()) mine.requests.erase(found);
      --mine.active;
      return complete(rank, request);
    }
    if (action == "waitall") return complete_all(rank);
    if (action == "sendRecv" || action == "sendrecv") return send_receive(rank, words, p);
    if (action == "sleep") {
      if (Result<void> ok = ti::check(words, 1, "sleep SECONDS"); !ok) return ok;
      const double seconds = p.flops(2);
      if (!p.result()) return p.result();
      if (seconds > kMaxTimeS) return invalid_input("sleep: more than 1e9 seconds");
      Event event;
      event.kind = EventKind::kBlocked;
      event.off_s = seconds;
      return emit(rank, event);
    }
    if (action == "init") {
      state(rank).default_datatype = words.size() > 2 ? ti::kDouble : ti::kByte;
      return {};
    }
    if (action == "finalize") return exit(rank);
    if (action == "comm_split") {
      ++splits_;
      return {};
    }
    if (action == "location" || action == "comm_size" || action == "comm_dup" || action == "testany" ||
        action == "testall" || action == "testsome" || action == "iprobe" || action == "probe") {
      ++ignored_;
      return {};
    }
    return collective(rank, words, p);
  }

  Result<void> send(Rank rank, std::string_view action, const TiWords& words, TiParameters& p) {
    if (Result<void> ok = ti::check(words, 3, "send DESTINATION TAG COUNT [DATATYPE]"); !ok) return ok;
    Event event;
    event.kind = action.front() == 'i' || action.front() == 'I' ? EventKind::kIsend : EventKind::kSend;
    event.peer = p.rank(2, "destination");
    event.tag = p.tag(3);
    event.bytes = p.bytes(p.count(4), p.datatype(5));
    if (!p.result()) return p.result();
    if (action == "Ssend" || action == "ISsend") event.flags |= kFlagSync;
    if (action == "bsend" || action == "ibsend") event.flags |= kFlagBuffered;
    if (event.kind == EventKind::kSend) return emit(rank, event);
    return start_request(rank, event, {rank, event.peer, event.tag}, {});
  }

  Result<void> receive(Rank rank, EventKind kind, const TiWords& words, TiParameters& p) {
    if (Result<void> ok = ti::check(words, 3, "recv SOURCE TAG COUNT [DATATYPE]"); !ok) return ok;
    Event event;
    event.kind = kind;
    event.peer = p.source(2);
    event.tag = p.tag_or_any(3);
    const Bytes bytes = p.bytes(p.count_of_receive(4), p.datatype(5));
    if (!p.result()) return p.result();
    const RankActions::Key key{event.peer, rank, event.tag};
    const Result<ti::Match> match = match_of(rank, event);
    if (!match) return match.error();
    if (kind == EventKind::kRecv) {
      event.bytes = bytes;
      event.peer = match->source;
      event.tag = match->tag;
      return emit(rank, event);
    }
    RankActions::Request request;
    request.receive = true;
    request.source = match->source;
    request.tag = match->tag;
    request.bytes = bytes;
    return start_request(rank, event, key, request);
  }

  // The message that a receive takes; where it has wildcards they are noted in its flags.
  Result<ti::Match> match_of(Rank rank, Event& event) {
    if (event.peer != kAnyRank && event.tag != kAnyTag) return ti::Match{event.peer, event.tag};
    if (event.peer == kAnyRank) event.flags |= kFlagWildcardSource;
    if (event.tag == kAnyTag) event.flags |= kFlagWildcardTag;
    ++wildcards_;
    if (!matching_) {
      std::vector<std::string> names;
      for (const File& file : files_) names.push_back(file.name);
      matching_.emplace(names, ranks_, flops_per_second_);
    }
    const std::optional<ti::Match> match = matching_->next(rank);
    if (!match) return invalid_input("no message is left for this receive with a wildcard");
    return *match;
  }

  // Both at once, with tag 0, as SimGrid replays it.
  Result<void> send_receive(Rank rank, const TiWords& words, TiParameters& p) {
    constexpr const char* kForm = "sendRecv COUNT DESTINATION COUNT SOURCE DATATYPE DATATYPE";
    if (Result<void> ok = ti::check(words, 4, kForm); !ok) return ok;
    Event post;
    post.kind = EventKind::kStartRecv;
    post.peer = p.source(5);
    post.tag = 0;
    Event send;
    send.kind = EventKind::kSend;
    send.peer = p.rank(3, "destination");
    send.tag = 0;
    send.bytes = p.bytes(p.count(2), p.datatype(6));
    Event end = post;
    end.kind = EventKind::kEndRecv;
    end.bytes = p.bytes(p.count(4), p.datatype(7));
    if (!p.result()) return p.result();
    const Result<ti::Match> match = match_of(rank, post);
    if (!match) return match.error();
    end.peer = match->source;
    // A request that is no other's: those of the rank count up from 0.
    post.request = end.request = std::numeric_limits<std::uint32_t>::max();
    end.flags = kFlagHasRequest;
    post.flags |= kFlagHasRequest;
    for (const Event& event : {post, send, end}) {
      if (Result<void> done = emit(rank, event); !done) return done;
    }
    return {};
  }

  Result<void> collective(Rank rank, const TiWords& words, TiParameters& p) {
    Result<ti::TiCollective> made = collectives_->read(rank, words, p);
    if (Result<void> parsed = p.result(); !parsed) return parsed;
    if (!made) return made.error();
    if (Result<void> counted = counts_->add(rank, made->event); !counted) return counted;
    if (Result<void> done = emit(rank, made->event); !done) return done;
    return made->flops > 0 ? add_time(rank, seconds_of(made->flops)) : Result<void>();
  }

  std::string path_;
  double flops_per_second_;
  Rank ranks_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<File> files_;
  std::vector<std::string> lists_;  // of one file each, on the way to path_
  std::vector<RankActions> state_;
  std::optional<ti::TiCollectives> collectives_;
  std::optional<ti::TiCounts> counts_;
  std::optional<ti::TiMatching> matching_;  // once a receive has a wildcard
  std::string line_;
  const EventSink* sink_ = nullptr;
  std::uint64_t tests_ = 0;
  std::uint64_t wildcards_ = 0;
  std::uint64_t never_waited_ = 0;
  std::uint64_t without_finalize_ = 0;
  std::uint64_t splits_ = 0;
  std::uint64_t ignored_ = 0;
};

}  // namespace

Result<std::unique_ptr<TiTrace>> TiTrace::open(const std::string& path, double flops_per_second) {
  auto reader = std::make_unique<Reader>(path, flops_per_second);
  if (Result<void> indexed = reader->index(); !indexed) return indexed.error();
  return std::unique_ptr<TiTrace>(std::move(reader));
}

}  // namespace lbf::tools
