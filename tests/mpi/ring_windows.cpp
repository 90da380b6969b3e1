// ring_windows: plays the relay's part in capture windows, and checks what a program left behind under it.
//
// Like ring_dump it reads the rings by itself, so that a mistake of the capture and the same one of the relay do
// not cancel out; what it finds goes into the real matcher (predictor/match), which is who has to understand it.
//
// usage: ring_windows control DIR SEED MEAN_US [off RANKS FILE]
//   Until SIGTERM: opens and closes windows at random times, about MEAN_US apart, through the control words of
//   all rings in DIR: by order, by a grant that is used up, or by the next window's number. off: after 20 of them
//   orders the capture off, and makes FILE when the capture of so many ranks has ended.
// usage: ring_windows check DIR [--expect FILE] [--whole DIR] [--least N] [--partial] [--ended] [--unpaired] [--calls]
//   The records of each rank are in an order that the matcher accepts, and it loses nothing. Of each two ends of
//   a message both have the same size. --expect: sends and collectives, recorded or skipped, are as many as the
//   program itself counted. --whole: on each channel as many messages, recorded or skipped, as in the rings in
//   DIR, of the same program captured without windows. --least: windows, all ranks together. --partial: gaps are
//   allowed, and channels are not compared. --ended: the capture of each rank ended for good. --unpaired: sizes are not
//   compared (one-sided programs).
//   --calls: of each function for which --expect has a line, all threads of the rank made as many calls, recorded or
//   counted, and of the others each was one or the other.
// Exit status 0: all checks held; 1: one line for each that did not.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "event/event.h"
#include "event/mpi_function_table.h"
#include "predictor/engine/match/matcher.h"
#include "predictor/engine/match/op_store.h"
#include "spank_plugin/capture/ring.h"

namespace engine = lbf::engine;

namespace {

using lbf::Event;
using lbf::EventKind;
using lbf::SkippedSide;
using lbf::ring::CaptureOrder;
using lbf::ring::Header;
using lbf::ring::Record;

int failures = 0;

void check(bool ok, const std::string& what) {
  if (ok) return;
  std::cout << "FAILED " << what << "\n";
  ++failures;
}

// --- control

std::atomic<bool> g_stop{false};

Header* map_header(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* pages = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return pages == MAP_FAILED ? nullptr : static_cast<Header*>(pages);
}

int control(const std::string& directory, std::uint64_t seed, int mean_us, std::size_t off_ranks,
            const std::string& off_file) {
  std::signal(SIGTERM, [](int) { g_stop = true; });
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> pause(1.0 / mean_us);
  std::map<std::string, Header*> rings;
  std::uint32_t window = 1;
  bool open = true;
  for (int changes = 0; !g_stop; changes += rings.empty() ? 0 : 1) {
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(directory, ignored)) {
      const std::string name = file.path().filename().string();
      if (file.path().extension() == ".ring" && !rings.contains(name)) rings[name] = map_header(file.path());
    }
    const bool renumber = open && random() % 8 == 0;  // the next window without a pause
    if (!open || renumber) ++window;
    open = !open || renumber;
    const std::uint64_t granted = random() % 3 == 0 ? 1 + random() % 64 : 0;
    for (const auto& [name, header] : rings) {
      if (header == nullptr) continue;
      if (!off_file.empty() && changes >= 20) {
        header->order.store(static_cast<std::uint32_t>(CaptureOrder::kOff), std::memory_order_release);
        continue;
      }
      if (open) {
        header->grant = granted != 0 ? header->recorded.executions.load() + granted : 0;
        header->window.store(window, std::memory_order_release);
      }
      header->order.store(static_cast<std::uint32_t>(open ? CaptureOrder::kOpen : CaptureOrder::kCounting),
                          std::memory_order_release);
    }
    const auto ended = [](const auto& ring) { return ring.second != nullptr && ring.second->off.load() != 0; };
    if (!off_file.empty() && static_cast<std::size_t>(std::ranges::count_if(rings, ended)) >= off_ranks)
      std::ofstream(off_file) << "off\n";
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(pause(random)) + 1));
  }
  return 0;
}

// --- reading

struct Entry {
  Record record{};
  std::vector<std::uint64_t> values;
  std::uint64_t order = 0;
};
struct Rank {
  std::vector<Entry> entries;  // of all threads, in the order in which they took effect
  std::map<std::uint32_t, std::uint64_t> uid_of;
  std::map<std::string, std::uint64_t> calls;  // by function
  std::uint64_t executions = 0;                // recorded and counted
  std::uint64_t calls_in_mpi = 0;              // which are what has to be one or the other
  std::uint64_t lost = 0;
  bool off = false;
};
using Ranks = std::map<int, Rank>;

bool begins_something(EventKind kind) {
  return kind == EventKind::kSend || kind == EventKind::kIsend || kind == EventKind::kStartRecv ||
         kind == EventKind::kIcollective;
}

EventKind kind_of(const Entry& entry) {
  return static_cast<EventKind>(entry.record.kind);
}

void read_ring(const std::filesystem::path& path, Ranks& ranks) {
  std::ifstream in(path, std::ios::binary);
  const std::string name = path.filename().string();
  std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.size() < sizeof(Header)) return check(false, name + ": too short");
  const auto* header = reinterpret_cast<const Header*>(bytes.data());
  check(header->magic == lbf::ring::kMagic && header->version == lbf::ring::kVersion, name + ": header");
  check(header->tail == 0, name + ": somebody drained it");
  Rank& rank = ranks[header->rank];
  rank.lost += header->lost_records;
  rank.off |= header->off != 0;
  rank.executions += header->recorded.executions + header->counted.executions;
  for (std::size_t id = 1; id <= lbf::mpi_function_count(); ++id) {
    const lbf::MpiFunction* const function = lbf::mpi_function(static_cast<std::uint16_t>(id));
    const std::uint64_t count = header->calls[id].count;
    rank.calls[std::string(function->name)] += count;
    rank.calls_in_mpi += function->role != lbf::MpiRole::kLocal ? count : 0;
  }
  check(
      header->recorded.sampled <= header->recorded.executions && header->counted.sampled <= header->counted.executions,
      name + ": more samples than executions");
  check(header->recorded.ideal_ticks_256 > 0 && header->counted.ideal_ticks_256 > 0, name + ": no ideal cost");
  std::uint64_t last_order = 0, last_leave = 0;
  for (std::uint64_t at = 0; at < header->head;) {
    const std::uint64_t offset = at & (header->capacity_bytes - 1);
    const char* const from = bytes.data() + header->header_bytes + offset;
    Entry entry;
    std::memcpy(static_cast<void*>(&entry.record), from,
                std::min<std::uint64_t>(sizeof(Record), header->capacity_bytes - offset));
    const std::uint64_t words = entry.record.words_and_op & 0xffffff;
    if (words == 0) return check(false, name + ": a record without length");
    at += words * 8;
    if (entry.record.kind == lbf::ring::kRecordPad || entry.record.kind == lbf::ring::kRecordAdjust) continue;
    check(entry.record.enter >= last_leave && entry.record.leave >= entry.record.enter, name + ": times");
    last_leave = entry.record.leave;
    entry.values.resize(words - lbf::ring::kRecordWords);
    std::memcpy(entry.values.data(), from + sizeof(Record), entry.values.size() * 8);
    const bool same_call = (entry.record.flags & lbf::kFlagCallBegin) == 0;
    entry.order = begins_something(kind_of(entry)) ? (same_call ? last_order : entry.record.enter) : entry.record.leave;
    last_order = entry.order = std::max(entry.order, last_order);
    if (kind_of(entry) == EventKind::kCommCreate) rank.uid_of[entry.record.comm] = entry.values.at(0);
    rank.entries.push_back(std::move(entry));
  }
}

Ranks read_rings(const std::string& directory) {
  Ranks ranks;
  for (const auto& file : std::filesystem::directory_iterator(directory)) read_ring(file.path(), ranks);
  for (auto& [number, rank] : ranks) {
    rank.uid_of[0] = 1;
    // One thread closes the window, others write what bears the same time: that is behind it, and the end of the
    // capture last.
    const auto turn = [](const Entry& entry) {
      if (kind_of(entry) == EventKind::kWindowClose) return 0;
      return kind_of(entry) == EventKind::kSkipped &&
                     static_cast<SkippedSide>(entry.record.words_and_op >> 24) == SkippedSide::kEverything
                 ? 2
                 : 1;
    };
    std::stable_sort(rank.entries.begin(), rank.entries.end(), [&](const Entry& a, const Entry& b) {
      return std::pair(a.order, turn(a)) < std::pair(b.order, turn(b));
    });
  }
  check(!ranks.empty(), "no rings in " + directory);
  return ranks;
}

// --- what they say

// Rank, communicator, peer, tag, side -> messages.
using Channel = std::tuple<int, std::uint64_t, int, int, SkippedSide>;
using Totals = std::map<Channel, std::int64_t>;

bool is_wildcard(const Record& r) {
  return (r.flags & (lbf::kFlagWildcardSource | lbf::kFlagWildcardTag)) != 0;
}

Totals totals_of(const Ranks& ranks) {
  Totals totals;
  for (const auto& [number, rank] : ranks) {
    std::map<std::uint32_t, Channel> started;
    // Receives without a place yet: wildcards, and those behind them; what a window leaves of them comes again.
    std::vector<Record> waiting;
    const auto add = [&](const Record& r, SkippedSide side, std::int64_t count) {
      const auto uid = rank.uid_of.find(r.comm);
      if (uid == rank.uid_of.end()) return check(false, "a communicator without definition"), Channel{};
      const bool collective = side == SkippedSide::kCollectives;
      const Channel channel{number, uid->second, collective ? -1 : r.peer, collective ? -1 : r.tag, side};
      totals[channel] += count;
      return channel;
    };
    const auto is_behind = [&](const Record& receive, std::size_t before) {
      return std::any_of(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(before), [&](const Record& w) {
        return w.comm == receive.comm && ((w.flags & lbf::kFlagWildcardSource) != 0 || w.peer == receive.peer) &&
               ((w.flags & lbf::kFlagWildcardTag) != 0 || w.tag == receive.tag);
      });
    };
    const auto stops_waiting = [&](std::uint32_t request) {
      const auto found =
          std::find_if(waiting.begin(), waiting.end(), [&](const Record& w) { return w.request == request; });
      if (found == waiting.end()) return false;
      waiting.erase(found);
      for (std::size_t i = 0; i < waiting.size();) {
        if (is_wildcard(waiting[i]) || is_behind(waiting[i], i)) {
          ++i;
          continue;
        }
        started[waiting[i].request] = add(waiting[i], SkippedSide::kReceives, 1);
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return true;
    };
    for (const Entry& entry : rank.entries) {
      const Record& r = entry.record;
      switch (kind_of(entry)) {
        case EventKind::kSend:
          add(r, SkippedSide::kSends, 1);
          break;
        case EventKind::kIsend:
          started[r.request] = add(r, SkippedSide::kSends, 1);
          break;
        case EventKind::kRecv:
          add(r, SkippedSide::kReceives, 1);
          break;
        case EventKind::kStartRecv:
          if (is_wildcard(r) || is_behind(r, waiting.size())) {
            waiting.push_back(r);
          } else {
            started[r.request] = add(r, SkippedSide::kReceives, 1);
          }
          break;
        case EventKind::kEndRecv:
          if (stops_waiting(r.request)) add(r, SkippedSide::kReceives, 1);
          break;
        case EventKind::kWindowClose:
          waiting.clear();
          break;
        case EventKind::kCancel:
          if (stops_waiting(r.request)) break;
          if (const auto found = started.find(r.request); found != started.end()) --totals[found->second];
          break;
        case EventKind::kCollective:
        case EventKind::kIcollective:
          add(r, SkippedSide::kCollectives, 1);
          break;
        case EventKind::kSkipped:
          if (static_cast<SkippedSide>(r.words_and_op >> 24) == SkippedSide::kEverything) break;
          add(r, static_cast<SkippedSide>(r.words_and_op >> 24), static_cast<std::int64_t>(r.bytes));
          break;
        default:
          break;
      }
    }
  }
  std::erase_if(totals, [](const auto& entry) { return entry.second == 0; });
  return totals;
}

std::string text_of(const Channel& channel) {
  const auto& [rank, uid, peer, tag, side] = channel;
  std::ostringstream text;
  text << "rank " << rank
       << (side == SkippedSide::kSends      ? " sends to "
           : side == SkippedSide::kReceives ? " receives from "
                                            : " collectives ")
       << peer << " tag " << tag << " communicator " << uid;
  return text.str();
}

void check_whole(const Totals& cut, const Totals& whole) {
  for (const auto& [channel, count] : whole) {
    const auto found = cut.find(channel);
    const std::int64_t here = found == cut.end() ? 0 : found->second;
    check(here == count, text_of(channel) + ": " + std::to_string(here) + ", not " + std::to_string(count));
  }
  for (const auto& [channel, count] : cut) {
    check(whole.contains(channel), text_of(channel) + ": " + std::to_string(count) + ", not 0");
  }
}

void check_expectations(const Totals& totals, const std::string& file) {
  std::map<std::pair<int, SkippedSide>, std::int64_t> wanted, found;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string keyword, what, kind;
    int rank = 0;
    std::int64_t count = 0;
    if (!(words >> keyword >> what >> rank >> kind >> count) || keyword != "expect" || what != "events") continue;
    if (kind == "send" || kind == "isend") wanted[{rank, SkippedSide::kSends}] += count;
    if (kind == "coll" || kind == "icoll") wanted[{rank, SkippedSide::kCollectives}] += count;
  }
  check(!wanted.empty(), file + " has no expectations");
  for (const auto& [channel, count] : totals) found[{std::get<0>(channel), std::get<4>(channel)}] += count;
  for (const auto& [key, count] : wanted) {
    // A cancelled send was counted by the program, and is none in the end.
    const std::int64_t here = found[key];
    check(here == count, "rank " + std::to_string(key.first) + ": " + std::to_string(here) +
                             (key.second == SkippedSide::kSends ? " sends" : " collectives") +
                             ", the program counted " + std::to_string(count));
  }
}

void check_calls(const Ranks& ranks, const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::size_t lines = 0;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string keyword, what, function;
    int number = 0;
    std::uint64_t count = 0;
    if (!(words >> keyword >> what >> number >> function >> count) || keyword != "expect" || what != "calls") continue;
    const auto rank = ranks.find(number);
    const std::uint64_t here =
        rank != ranks.end() && rank->second.calls.contains(function) ? rank->second.calls.at(function) : 0;
    check(here == count, "rank " + std::to_string(number) + ": " + std::to_string(here) + " calls of " + function +
                             ", the program counted " + std::to_string(count));
    ++lines;
  }
  check(lines > 0, file + " has no expected calls");
  for (const auto& [number, rank] : ranks) {
    check(rank.executions == rank.calls_in_mpi,
          "rank " + std::to_string(number) + ": " + std::to_string(rank.executions) +
              " calls were recorded or counted of " + std::to_string(rank.calls_in_mpi));
  }
}

struct Trace {
  std::vector<std::vector<Event>> events;
};

Trace events_of(const Ranks& ranks) {
  Trace trace;
  std::map<std::uint64_t, std::uint32_t> index_of = {{1, 0}};
  for (const auto& [number, rank] : ranks) {
    std::vector<Event>& events = trace.events.emplace_back();
    for (const Entry& entry : rank.entries) {
      const Record& r = entry.record;
      Event event;
      event.kind = kind_of(entry);
      event.flags = r.flags;
      event.function = r.function;
      const std::uint32_t op = r.words_and_op >> 24;
      event.op_code = static_cast<std::uint8_t>(op);
      const bool collective = event.kind == EventKind::kCollective || event.kind == EventKind::kIcollective;
      event.peer = collective ? lbf::kAnyRank : r.peer;
      event.root = collective ? r.peer : 0;
      event.tag = r.tag;
      event.request = r.request;
      event.bytes = r.bytes;
      event.values = entry.values;
      const auto uid = rank.uid_of.find(r.comm);
      if (uid == rank.uid_of.end()) {
        check(false, "a communicator without definition");
        continue;
      }
      event.comm = index_of.emplace(uid->second, static_cast<std::uint32_t>(index_of.size())).first->second;
      events.push_back(event);
    }
  }
  return trace;
}

void check_match(const Trace& trace, bool partial, bool pairs, std::uint64_t seed) {
  const auto ranks = static_cast<lbf::Rank>(trace.events.size());
  engine::OpStore store(ranks, 1);
  engine::Matcher matcher(ranks, store);
  std::vector<lbf::Rank> arrivals;
  for (lbf::Rank rank = 0; rank < ranks; ++rank)
    arrivals.insert(arrivals.end(), trace.events[static_cast<std::size_t>(rank)].size(), rank);
  std::mt19937_64 random(seed);
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  // A rank's definitions are known before any event of another rank needs the members.
  std::vector<std::size_t> next(trace.events.size(), 0);
  for (const lbf::Rank rank : arrivals) {
    const Event& event = trace.events[static_cast<std::size_t>(rank)][next[static_cast<std::size_t>(rank)]++];
    const auto fed = matcher.feed(rank, event);
    if (!fed.ok()) return check(false, "the matcher refuses: " + fed.error().message);
  }
  check(partial || matcher.why_partial().empty(), "partial: " + matcher.why_partial());
  if (partial || !pairs) return;
  for (lbf::Rank rank = 0; rank < ranks; ++rank) matcher.close(rank);
  struct Ends {
    std::int64_t sent = -1;
    std::int64_t received = -1;
  };
  std::map<engine::MessageIndex, Ends> ends;
  std::size_t both = 0, alone = 0;
  for (lbf::Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Event>& events = trace.events[static_cast<std::size_t>(rank)];
    std::size_t at = 0;
    store.for_each_ahead(static_cast<engine::ProcessIndex>(rank), {}, [&](const engine::Op& op) {
      if ((op.flags & lbf::engine::kOpEndsEvent) == 0) return;
      if (at >= events.size()) return check(false, "more ends of events than events");
      const Event& event = events[at++];
      if (event.kind == EventKind::kSend || event.kind == EventKind::kIsend) {
        ends[op.message()].sent = static_cast<std::int64_t>(event.bytes);
      } else if (event.kind == EventKind::kRecv || event.kind == EventKind::kEndRecv) {
        ends[op.message()].received = static_cast<std::int64_t>(event.bytes);
        check(store.message(op.message()).sent, "rank " + std::to_string(rank) + ": a receive from " +
                                                    std::to_string(event.peer) + " tag " + std::to_string(event.tag) +
                                                    " without a send");
      }
    });
    check(at == events.size(), "rank " + std::to_string(rank) + ": fewer ends of events than events");
  }
  for (const auto& [message, end] : ends) {
    (end.sent >= 0 && end.received >= 0 ? both : alone) += 1;
    if (end.sent < 0 || end.received < 0 || end.sent == end.received) continue;
    const engine::Message& m = store.message(message);
    check(false, "a message of " + std::to_string(end.sent) + " bytes was received as one of " +
                     std::to_string(end.received) + ": from " + std::to_string(m.src) + " to " + std::to_string(m.dst) +
                     " tag " + std::to_string(m.tag));
  }
  std::cout << "messages " << both << " one-ended " << alone << "\n";
}

int check_rings(int argc, char** argv) {
  const Ranks ranks = read_rings(argv[2]);
  if (failures != 0) return 1;
  bool partial = false, pairs = true, ended = false, calls = false;
  std::string whole, expect;
  std::uint64_t least = 0;
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--partial") {
      partial = true;
    } else if (option == "--ended") {
      ended = true;
    } else if (option == "--unpaired") {
      pairs = false;
    } else if (option == "--calls") {
      calls = true;
    } else if (option == "--whole" && i + 1 < argc) {
      whole = argv[++i];
    } else if (option == "--expect" && i + 1 < argc) {
      expect = argv[++i];
    } else if (option == "--least" && i + 1 < argc) {
      least = std::stoull(argv[++i]);
    } else {
      std::cerr << "ring_windows: unknown option " << option << "\n";
      return 2;
    }
  }
  const Totals totals = totals_of(ranks);
  if (!partial && !whole.empty()) check_whole(totals, totals_of(read_rings(whole)));
  if (!partial && !expect.empty()) check_expectations(totals, expect);
  if (calls) check_calls(ranks, expect);
  std::uint64_t opened = 0, skipped = 0, recorded = 0;
  for (const auto& [number, rank] : ranks) {
    check(rank.lost == 0 || partial, "rank " + std::to_string(number) + " lost records");
    const auto is_end = [](const Entry& entry) {
      return kind_of(entry) == EventKind::kSkipped &&
             static_cast<SkippedSide>(entry.record.words_and_op >> 24) == SkippedSide::kEverything;
    };
    const auto ends = std::count_if(rank.entries.begin(), rank.entries.end(), is_end);
    check(ends == (ended ? 1 : 0) && rank.off == ended,
          "rank " + std::to_string(number) + ": ended " + std::to_string(ends) + " times");
    check(!ended || is_end(rank.entries.back()), "rank " + std::to_string(number) + ": records after the end");
    for (const Entry& entry : rank.entries) {
      opened += kind_of(entry) == EventKind::kWindowOpen;
      skipped += kind_of(entry) == EventKind::kSkipped ? entry.record.bytes : 0;
      ++recorded;
    }
  }
  check(opened >= least, std::to_string(opened) + " windows only");
  std::cout << "windows " << opened << " records " << recorded << " skipped " << skipped << "\n";
  if (failures == 0) {
    for (std::uint64_t seed = 1; seed <= 3 && failures == 0; ++seed)
      check_match(events_of(ranks), partial, pairs, seed);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool off = argc == 8 && std::string(argv[5]) == "off";
  if (mode == "control" && (argc == 5 || off)) {
    return control(argv[2], std::stoull(argv[3]), std::stoi(argv[4]), off ? std::stoul(argv[6]) : 0,
                   off ? argv[7] : "");
  }
  if (mode == "check" && argc >= 3) return check_rings(argc, argv);
  std::cerr << "usage: ring_windows control DIR SEED MEAN_US [off RANKS FILE]\n"
               "       ring_windows check DIR [--expect FILE] [--whole DIR] [--least N] [--partial] [--ended] "
               "[--unpaired] [--calls]\n";
  return 2;
}
