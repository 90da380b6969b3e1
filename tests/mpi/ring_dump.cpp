// ring_dump: reads the event rings that a captured program left behind, and checks them.
//
// A second reader of spank_plugin/capture/ring.h, written for the tests only, so that a mistake of the
// capture and the same mistake of the relay do not cancel out. Exit status 0: all checks held; 1: one line
// for each that did not.
//
// usage: ring_dump DIR [--expect FILE] [--match] [--signature] [--summary] [--ranks N]
//   --expect FILE   lines of other text are skipped; "expect calls RANK MPI_Name N", "expect events RANK kind
//   N":
//                   what the program itself counted
//   --match         every send has its receive: the multisets (from, to, tag, communicator, bytes) are equal
//   --signature     prints each rank's events without times, for comparing runs
//   --summary       prints totals: "rank R kind N", "lost N", "state S" ...
//   --ranks N       exactly the ranks 0 .. N-1 left rings
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/library_name.h"
#include "event/event.h"
#include "event/mpi_function_table.h"
#include "spank_plugin/capture/ring.h"
#include "tests/mpi/kind_names.h"

namespace {

using lbf::EventKind;
using lbf::ring::Header;
using lbf::ring::Record;

struct Entry {
  Record record;
  std::vector<std::uint64_t> values;
};

struct Ring {
  std::string name;
  std::vector<char> bytes;
  const Header* header = nullptr;
  std::vector<Entry> events;  // without adjustments and pads
  std::uint64_t preempted = 0, blocked = 0, waiting = 0, process = 0;
};

int failures = 0;

void fail(const std::string& what) {
  std::cout << "FAILED " << what << "\n";
  ++failures;
}

void check(bool ok, const std::string& what) {
  if (!ok) fail(what);
}

bool read_ring(const std::filesystem::path& path, Ring& ring) {
  std::ifstream in(path, std::ios::binary);
  ring.name = path.filename().string();
  ring.bytes.assign(std::istreambuf_iterator<char>(in), {});
  if (ring.bytes.size() < sizeof(Header)) return fail(ring.name + ": too short for a header"), false;
  const auto* header = reinterpret_cast<const Header*>(ring.bytes.data());
  ring.header = header;
  check(header->magic == lbf::ring::kMagic, ring.name + ": magic");
  check(header->version == lbf::ring::kVersion, ring.name + ": version");
  check(header->header_bytes >= sizeof(Header), ring.name + ": header_bytes");
  const std::uint64_t capacity = header->capacity_bytes;
  check(capacity != 0 && (capacity & (capacity - 1)) == 0, ring.name + ": capacity is no power of two");
  check(ring.bytes.size() == header->header_bytes + capacity, ring.name + ": file size");
  // Behind them the PID namespace, where the tests run in a container.
  const std::string numbers = std::to_string(header->pid) + "." + std::to_string(header->tid) + ".";
  check(ring.name.starts_with(numbers), ring.name + ": pid and tid are not those of its name");
  check(std::strlen(header->executable) > 0, ring.name + ": executable");
  check(std::strlen(header->host) > 0, ring.name + ": host");
  check(header->start_realtime_ns > 0 && header->start_monotonic_ns > 0, ring.name + ": start times");
  const auto state = static_cast<lbf::ring::ProcessState>(header->state.load());
  if (state != lbf::ring::ProcessState::kStarting) {
    check(header->rank >= 0 && header->rank < header->world_size, ring.name + ": rank");
    const std::string_view library = header->library;
    check(library.starts_with("Open MPI v") || library.starts_with("MPICH Version:") ||
              library.find(lbf::kFamilyBySelfTest) != std::string_view::npos,
          ring.name + ": library version");
    check(header->init_leave_ticks >= header->start_ticks, ring.name + ": init_leave_ticks");
    check(header->cpu_threshold_ticks > 0, ring.name + ": cpu_threshold_ticks");
    // Told once the ring is there, before the first event: its process may be killed in between.
    const bool is_told = header->once_cpu_ns > 0 || header->head == 0;
    check(is_told && header->once_cpu_ns < 10'000'000'000, ring.name + ": once_cpu_ns");
  }
  std::uint64_t at = header->tail, head = header->head;
  check(head - at <= capacity, ring.name + ": head and tail");
  const char* data = ring.bytes.data() + header->header_bytes;
  std::uint64_t last_leave = 0;
  std::uint64_t adjusted = 0;
  while (at < head && failures == 0) {
    const std::uint64_t offset = at & (capacity - 1);
    Record record{};
    std::memcpy(static_cast<void*>(&record), data + offset, std::min<std::uint64_t>(sizeof(Record), capacity - offset));
    const std::uint64_t words = record.words_and_op & 0xffffff;
    const std::string where = ring.name + " at " + std::to_string(at);
    if (words == 0 || at + words * 8 > head) return fail(where + ": record length"), false;
    if (offset + words * 8 > capacity) return fail(where + ": record wraps around"), false;
    at += words * 8;
    if (record.kind == lbf::ring::kRecordPad) {
      check(offset + words * 8 == capacity, where + ": a pad that does not end the data area");
      continue;
    }
    if (words < lbf::ring::kRecordWords) return fail(where + ": short record"), false;
    if (record.kind == lbf::ring::kRecordAdjust) {
      ring.preempted += record.enter;
      ring.blocked += record.leave;
      ring.waiting += record.bytes;
      adjusted += record.enter + record.leave + record.bytes;
      continue;
    }
    if (record.kind == lbf::ring::kRecordProcedure) continue;  // what is said of one: no event
    check(record.kind < lbf::kEventKindCount, where + ": unknown kind");
    check((record.words_and_op >> 24) < lbf::op_count(static_cast<EventKind>(record.kind)),
          where + ": unknown operation");
    check(record.leave >= record.enter, where + ": leaves before it enters");
    check(record.enter >= last_leave, where + ": enters before the last one left");
    if (last_leave != 0) {
      const std::uint64_t gap = record.enter - last_leave;
      check(adjusted <= gap, where + ": more taken away than the gap has");
      ring.process += gap - std::min(adjusted, gap);
    }
    adjusted = 0;
    last_leave = record.leave;
    if ((record.flags & lbf::kFlagCallBegin) == 0) {
      check(record.enter == record.leave, where + ": later record of a call with a time of its own");
    }
    if (record.kind != static_cast<std::uint8_t>(EventKind::kGap) &&
        record.kind != static_cast<std::uint8_t>(EventKind::kProcedure) &&
        record.kind != static_cast<std::uint8_t>(EventKind::kRegions) &&
        record.kind != static_cast<std::uint8_t>(EventKind::kDevice)) {
      check(lbf::mpi_function(record.function) != nullptr, where + ": unknown function");
    }
    Entry entry{record, std::vector<std::uint64_t>(words - lbf::ring::kRecordWords)};
    std::memcpy(entry.values.data(), data + offset + sizeof(Record), entry.values.size() * 8);
    ring.events.push_back(std::move(entry));
  }
  return true;
}

EventKind kind_of(const Entry& e) {
  return static_cast<EventKind>(e.record.kind);
}

// Requests are started once and completed once; communicators are defined before they are used.
void check_life(const Ring& ring, const std::vector<Ring>& rings) {
  std::map<std::uint32_t, std::string> open;  // request -> kind that started it
  std::map<std::uint32_t, int> tags;          // of receives without wildcards
  std::map<std::uint32_t, std::vector<std::uint64_t>> comms;
  for (const Ring& other : rings) {  // a communicator may be made by another thread of the process
    if (&other == &ring || other.header->pid != ring.header->pid) continue;
    for (const Entry& e : other.events) {
      if (kind_of(e) == EventKind::kCommCreate) comms[e.record.comm] = e.values;
    }
  }
  if (ring.header->lost_records != 0) return;
  for (const Entry& e : ring.events) {
    const auto& r = e.record;
    const std::string where = ring.name + " rank " + std::to_string(ring.header->rank) + " " +
                              lbf::test::kKindNames[r.kind] + " request " + std::to_string(r.request);
    const bool has_request = (r.flags & lbf::kFlagHasRequest) != 0;
    switch (kind_of(e)) {
      case EventKind::kIsend:
      case EventKind::kStartRecv:
      case EventKind::kIcollective:
      case EventKind::kOneSided:
        if (kind_of(e) == EventKind::kOneSided && !has_request) break;
        check(has_request && !open.contains(r.request), where + ": started twice");
        open[r.request] = lbf::test::kKindNames[r.kind];
        tags.erase(r.request);
        if (kind_of(e) == EventKind::kStartRecv && (r.flags & lbf::kFlagWildcardTag) == 0) tags[r.request] = r.tag;
        break;
      case EventKind::kWait:
        check(open.contains(r.request) && open[r.request] != "startRecv", where + ": waits for nothing");
        open.erase(r.request);
        break;
      case EventKind::kEndRecv:
        check(open.contains(r.request) && open[r.request] == "startRecv", where + ": ends nothing");
        check(!tags.contains(r.request) || tags[r.request] == r.tag, where + ": ends another one's message");
        open.erase(r.request);
        break;
      case EventKind::kCancel:
      case EventKind::kRequestFree:
        check(open.contains(r.request), where + ": unknown request");
        open.erase(r.request);
        break;
      case EventKind::kWindowClose:  // nobody sees how they end
        open.clear();
        break;
      case EventKind::kCommCreate: {
        // Several threads that first use it at the same time may each define it.
        check(r.comm > 0 && (!comms.contains(r.comm) || comms[r.comm] == e.values),
              where + ": communicator defined twice");
        comms[r.comm] = e.values;
        const auto self = static_cast<std::uint64_t>(ring.header->rank.load());
        check(e.values.size() >= 3 && e.values[0] > 1 && e.values[1] <= e.values.size() - 2,
              where + ": broken definition");
        check(std::find(e.values.begin() + 2, e.values.end(), self) != e.values.end(),
              where + ": not a member of its own communicator");
        break;
      }
      default:
        break;
    }
    if (r.comm != 0 && kind_of(e) != EventKind::kCommCreate) {
      check(comms.contains(r.comm), where + ": communicator used before it is defined");
    }
  }
  if (ring.header->state == static_cast<std::uint32_t>(lbf::ring::ProcessState::kFinalized)) {
    check(open.empty(), ring.name + ": " + std::to_string(open.size()) + " requests never completed");
  }
}

// The communicator of each record as a number that all ranks agree on.
std::vector<std::uint64_t> uids_of(const Ring& ring, const std::vector<Ring>& rings) {
  std::vector<std::uint64_t> uids = {1};
  for (const Ring& other : rings) {
    if (other.header->pid != ring.header->pid) continue;
    for (const Entry& e : other.events) {
      if (kind_of(e) != EventKind::kCommCreate) continue;
      uids.resize(std::max<std::size_t>(uids.size(), e.record.comm + 1));
      uids[e.record.comm] = e.values[0];
    }
  }
  return uids;
}

void check_match(const std::vector<Ring>& rings) {
  using Message = std::tuple<int, int, int, std::uint64_t, std::uint64_t>;  // from, to, tag, communicator, bytes
  std::map<Message, long> balance;
  std::map<std::uint64_t, std::vector<std::uint64_t>> members;
  long messages = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<int, long>> collectives;  // (uid, op) -> rank -> n
  for (const Ring& ring : rings) {
    const auto uids = uids_of(ring, rings);
    const int rank = ring.header->rank;
    for (const Entry& e : ring.events) {
      const auto& r = e.record;
      switch (kind_of(e)) {
        case EventKind::kSend:
        case EventKind::kIsend:
          ++balance[{rank, r.peer, r.tag, uids.at(r.comm), r.bytes}];
          ++messages;
          break;
        case EventKind::kRecv:
        case EventKind::kEndRecv:
          --balance[{r.peer, rank, r.tag, uids.at(r.comm), r.bytes}];
          break;
        case EventKind::kCollective:
        case EventKind::kIcollective:
          ++collectives[{uids.at(r.comm), r.words_and_op >> 24}][rank];
          break;
        case EventKind::kCommCreate: {
          std::vector<std::uint64_t> all(e.values.begin() + 2, e.values.end());
          std::sort(all.begin(), all.end());
          const auto [it, is_new] = members.emplace(e.values[0], all);
          check(is_new || it->second == all, "communicator " + std::to_string(e.values[0]) + ": rank " +
                                                 std::to_string(rank) + " lists other members");
          break;
        }
        default:
          break;
      }
    }
  }
  for (const auto& [message, count] : balance) {
    if (count == 0) continue;
    std::ostringstream text;
    text << std::abs(count) << (count > 0 ? " sends without receive" : " receives without send") << ": from "
         << std::get<0>(message) << " to " << std::get<1>(message) << " tag " << std::get<2>(message) << " comm "
         << std::get<3>(message) << " bytes " << std::get<4>(message);
    fail(text.str());
  }
  for (const auto& [key, by_rank] : collectives) {
    for (const auto& [rank, count] : by_rank) {
      check(count == by_rank.begin()->second,
            "collective " + std::to_string(key.second) + " on communicator " + std::to_string(key.first) + ": rank " +
                std::to_string(rank) + " made " + std::to_string(count) + " calls, rank " +
                std::to_string(by_rank.begin()->first) + " " + std::to_string(by_rank.begin()->second));
    }
    const std::size_t size =
        key.first == 1 ? static_cast<std::size_t>(rings.front().header->world_size.load()) : members[key.first].size();
    check(by_rank.size() == size, "collective " + std::to_string(key.second) + " on communicator " +
                                      std::to_string(key.first) + ": " + std::to_string(by_rank.size()) + " of " +
                                      std::to_string(size) + " members called it");
  }
  check(messages > 0, "no message was recorded");
}

void print_signature(const std::vector<Ring>& rings) {
  for (const Ring& ring : rings) {
    const auto uids = uids_of(ring, rings);
    for (const Entry& e : ring.events) {
      const auto& r = e.record;
      std::cout << "sig " << ring.header->rank << " " << lbf::test::kKindNames[r.kind] << " "
                << lbf::mpi_function_name(r.function) << " flags=" << int{r.flags} << " op=" << (r.words_and_op >> 24)
                << " peer=" << r.peer << " tag=" << r.tag << " comm=" << uids.at(r.comm) << " req=" << r.request
                << " bytes=" << r.bytes;
      for (const std::uint64_t value : e.values) std::cout << " " << value;
      std::cout << "\n";
    }
  }
}

void check_expectations(const std::vector<Ring>& rings, const std::string& file) {
  std::ifstream in(file);
  if (!in) return fail("cannot read " + file);
  std::string line;
  int expectations = 0;
  while (std::getline(in, line)) {
    const std::size_t start = line.find("expect ");  // mpirun may put a prefix before it
    if (start == std::string::npos) continue;
    std::istringstream words(line.substr(start));
    std::string keyword, what, name;
    int rank = 0;
    std::uint64_t wanted = 0;
    if (!(words >> keyword >> what >> rank >> name >> wanted)) {
      fail("cannot read expectation: " + line);
      continue;
    }
    ++expectations;
    std::uint64_t found = 0;
    for (const Ring& ring : rings) {
      if (ring.header->rank != rank) continue;
      if (what == "calls") {
        const auto* function = lbf::mpi_function(std::string_view(name));
        if (function == nullptr) {
          fail("no function " + name);
          continue;
        }
        found += ring.header->calls[function->id].count;
      } else {
        for (const Entry& e : ring.events) found += name == lbf::test::kKindNames[e.record.kind];
      }
    }
    check(found == wanted, what + " of " + name + " on rank " + std::to_string(rank) + ": " + std::to_string(found) +
                               ", the program counted " + std::to_string(wanted));
  }
  check(expectations > 0, file + " has no expectations");
}

void print_summary(const std::vector<Ring>& rings) {
  for (const Ring& ring : rings) {
    const Header& h = *ring.header;
    const double ms = (static_cast<double>(h.finalize_enter_ticks) - static_cast<double>(h.init_leave_ticks)) / 1e6;
    std::cout << "library rank=" << h.rank << " " << h.library << "\n";
    std::cout << "ring rank=" << h.rank << " state=" << h.state << " level=" << h.thread_level
              << " events=" << ring.events.size() << " lost=" << h.lost_records << " abandoned=" << h.abandoned_calls
              << " failed_polls=" << h.failed_polls << " preempted=" << ring.preempted << " blocked=" << ring.blocked
              << " waiting=" << ring.waiting << " process=" << ring.process << " procedure_calls=" << h.procedures.calls
              << " elapsed_mticks=" << ms << " executable=" << h.executable << "\n";
    std::map<std::string, long> kinds;
    std::uint64_t gap = 0;
    for (const Entry& e : ring.events) {
      ++kinds[lbf::test::kKindNames[e.record.kind]];
      if (kind_of(e) == EventKind::kGap) gap += e.record.bytes;
    }
    for (const auto& [name, count] : kinds) std::cout << "kind rank=" << h.rank << " " << name << " " << count << "\n";
    std::cout << "gapped rank=" << h.rank << " " << gap << "\n";
    for (std::uint16_t id = 1; id <= lbf::mpi_function_count(); ++id) {
      if (h.calls[id].count == 0) continue;
      std::cout << "calls rank=" << h.rank << " " << lbf::mpi_function_name(id) << " " << h.calls[id].count << "\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: ring_dump DIR [--expect FILE] [--match] [--signature] [--summary] [--ranks N]\n";
    return 2;
  }
  std::vector<Ring> rings;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    if (file.path().extension() != ".ring") {
      fail("stray file " + file.path().string());
      continue;
    }
    Ring ring;
    if (read_ring(file.path(), ring)) rings.push_back(std::move(ring));
  }
  std::sort(rings.begin(), rings.end(), [](const Ring& a, const Ring& b) {
    return std::tuple(a.header->rank.load(), a.header->tid) < std::tuple(b.header->rank.load(), b.header->tid);
  });
  check(!rings.empty(), std::string("no rings in ") + argv[1]);
  if (failures != 0) return 1;
  for (const Ring& ring : rings) check_life(ring, rings);
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--match") {
      check_match(rings);
    } else if (option == "--signature") {
      print_signature(rings);
    } else if (option == "--summary") {
      print_summary(rings);
    } else if (option == "--expect" && i + 1 < argc) {
      check_expectations(rings, argv[++i]);
    } else if (option == "--ranks" && i + 1 < argc) {
      const int wanted = std::stoi(argv[++i]);
      std::vector<int> ranks;
      for (const Ring& ring : rings) ranks.push_back(ring.header->rank);
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      check(static_cast<int>(ranks.size()) == wanted && ranks.front() == 0 && ranks.back() == wanted - 1,
            std::to_string(ranks.size()) + " ranks left rings, not " + std::to_string(wanted));
    } else {
      std::cerr << "ring_dump: unknown option " << option << "\n";
      return 2;
    }
  }
  return failures == 0 ? 0 : 1;
}
