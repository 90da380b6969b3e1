#include "tests/unit/replay/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace lbf::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSameTime = 1e-9;

double cost(const Table& table, double bytes) {
  if (table.empty()) return 0;
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    const auto [x0, y0] = table[i];
    const auto [x1, y1] = table[i + 1];
    if (bytes >= x0 && bytes <= x1) return (y0 * (x1 - bytes) + y1 * (bytes - x0)) / (x1 - x0);
  }
  return bytes < table.front().first ? table.front().second : table.back().second;
}

struct Live {
  std::size_t next = 0;      // action
  int phase = 0;             // of that action
  double work = 0;           // left to do, in seconds at speed 1
  int threads = 1;           // that have so much to do, each
  double asleep_until = -1;  // blocked, or waiting for something that comes at a known time; -1: not
  bool waits = false;        // for a message event (also while asleep until it)
  bool spins = false;        // until its device is done
  std::vector<std::pair<double, double>> waits_of;  // from, to; the last one may be under way
  double connected = kInfinity;                     // since its first send over a path with first_peer has left
  double looks_since = 0;                           // of a kLook
  bool looks = false;                               // in a kVainLooks
  bool settled = false;                             // it has received over such a path
  double finish = 0;
};

// A message on its way.
struct Way {
  bool sent = false;
  bool posted = false;
  bool first = false;  // of its sender's rank to the receiver's
  double sent_at = 0;
  double start = kInfinity;  // it may use the links from here on
  double rest = 0;           // from start to arrival, alone
  std::size_t order = 0;     // on its connection
  bool through = false;      // the links, or it needs none
  double tail = 0;           // seconds of work that each link has of it after its arrival
  double left[2] = {0, 0};   // seconds of work left in each link, alone in it
  double latency = 0;
  double arrival = kInfinity;
  double sender_free = kInfinity;
};

class Simulation {
 public:
  Simulation(const Program& program, const Machine& machine)
      : program_(program),
        machine_(machine),
        live_(program.processes.size()),
        way_(program.messages.size()),
        sender_of_(program.messages.size()) {
    for (std::size_t p = 0; p < program.processes.size(); ++p) {
      for (const Action& action : program.processes[p].actions) {
        if (action.kind == Action::Kind::kSend || action.kind == Action::Kind::kIsend) sender_of_[action.message] = p;
      }
    }
    for (std::size_t p = 0; p < program.processes.size(); ++p) {
      std::set<int> met;
      if (!program.processes[p].background) find_first_messages(p, met);
    }
  }

  Outcome run() {
    for (;;) {
      for (bool again = true; again;) {
        again = false;
        for (std::size_t p = 0; p < live_.size(); ++p) again = proceed(p) || again;
      }
      if (!pass_time()) break;
    }
    for (std::size_t p = 0; p < live_.size(); ++p) {
      if (live_[p].next < program_.processes[p].actions.size()) outcome_.complete = false;
      if (!program_.processes[p].background) outcome_.finish.push_back(live_[p].finish);
    }
    return outcome_;
  }

 private:
  // Follows a rank's actions and, from where it starts one, those of a background collective.
  void find_first_messages(std::size_t p, std::set<int>& met) {
    for (const Action& action : program_.processes[p].actions) {
      const bool sends = action.kind == Action::Kind::kSend || action.kind == Action::Kind::kIsend;
      if (!sends && action.kind != Action::Kind::kRecv) continue;
      const Message& m = program_.messages[action.message];
      if (m.internal) {
        if (!sends || program_.processes[p].background) continue;
        for (std::size_t other = 0; other < program_.processes.size(); ++other) {
          const Process& started = program_.processes[other];
          if (started.background && started.actions.front().message == action.message) find_first_messages(other, met);
        }
      } else if (m.src != m.dst) {
        const bool is_new = met.insert(sends ? m.dst : m.src).second;
        if (sends) way_[action.message].first = is_new;
      }
    }
  }

  int node_of(int rank) const { return machine_.node_of_rank[static_cast<std::size_t>(rank)]; }
  // Where ranks share memory they and the processors are dealt to the domains like cards; else a node is one place. No
  // more places than ranks: then each has several domains.
  struct Place {
    int node;
    int domain;
    auto operator<=>(const Place&) const = default;
  };
  int domains_of(int node) const {
    return machine_.memory.empty() ? 1 : std::min(machine_.domains, machine_.cores[static_cast<std::size_t>(node)]);
  }
  int places_of(int node) const {
    const auto ranks = std::count(machine_.node_of_rank.begin(), machine_.node_of_rank.end(), node);
    return std::max(1, std::min(domains_of(node), static_cast<int>(ranks)));
  }
  Place place_of(int rank) const {
    const auto end = machine_.node_of_rank.begin() + rank;
    const auto before = static_cast<int>(std::count(machine_.node_of_rank.begin(), end, node_of(rank)));
    return {node_of(rank), before % places_of(node_of(rank))};
  }
  int cores_of(const Place& place) const {
    int cores = 0;
    for (int core = 0; core < machine_.cores[static_cast<std::size_t>(place.node)]; ++core)
      cores += core % places_of(place.node) == place.domain ? 1 : 0;
    return cores;
  }
  // Of the demand so much is met where so many processors of a domain compute.
  double met(double computing, double demand) const {
    return std::min(1.0, cost(machine_.memory, computing) / (computing * demand));
  }
  // Recorded work of so many threads, as it would be with a domain for itself.
  double recorded(int rank, double seconds, int threads = 1) const {
    if (machine_.ran_beside.empty()) return seconds;
    const auto [ranks, cores] = machine_.ran_beside[static_cast<std::size_t>(rank)];
    return seconds * met(std::min(ranks * threads, cores), machine_.demand);
  }
  // How many switches are on the longest way from a node up to this one, itself included.
  int level(int which) const {
    std::ptrdiff_t highest = 0;
    for (const std::vector<int>& way : machine_.switches_of_cluster_node) {
      const auto at = std::find(way.begin(), way.end(), which);
      if (at != way.end()) highest = std::max(highest, at - way.begin() + 1);
    }
    return static_cast<int>(highest);
  }
  const Path& path(const Message& m) const {
    const int a = node_of(m.src);
    const int b = node_of(m.dst);
    if (a == b) return machine_.self_node;
    if (!machine_.cluster_node_of_node.empty()) {
      const auto way_of = [&](int node) {
        const int at = machine_.cluster_node_of_node[static_cast<std::size_t>(node)];
        return machine_.switches_of_cluster_node[static_cast<std::size_t>(at)];
      };
      for (int which : way_of(a)) {
        const std::vector<int> other = way_of(b);
        if (std::find(other.begin(), other.end(), which) == other.end()) continue;
        const auto at = machine_.hops.lower_bound(level(which));
        if (at != machine_.hops.end()) return at->second;
        break;
      }
    }
    return machine_.remote ? *machine_.remote : machine_.hops.rbegin()->second;
  }
  double flight(const Message& m) const { return m.internal ? 0 : cost(path(m).flight, m.bytes); }
  double handshake(const Message& m) const { return std::min(cost(path(m).flight, 0), flight(m)); }
  bool rendezvous(const Message& m) const { return !m.internal && (m.sync || m.bytes > path(m).eager_limit); }
  bool uses_links(const Message& m) const {
    return machine_.contention != Machine::Contention::kNone && !m.internal && node_of(m.src) != node_of(m.dst);
  }

  void send(std::size_t index) {
    const Message& m = program_.messages[index];
    Way& way = way_[index];
    way.sent = true;
    way.sent_at = now_ + (way.first ? path(m).first_message : 0);
    Live& sender = live_[sender_of_[index]];
    if (!m.internal && path(m).first_peer > 0 && !program_.processes[sender_of_[index]].background)
      sender.connected = std::min(sender.connected, way.sent_at);
    if (!rendezvous(m)) {
      way.sender_free = now_;
      depart(index, way.sent_at, flight(m));
    } else if (way.posted) {
      meet(index);
    }
  }
  // Do processes of this node let each other go on when they wait?
  bool takes_turns(const Place& place) const {
    return yields_in_vain(place) && (farthest().turn > 0 || farthest().switching > 0);
  }
  bool yields_in_vain(const Place& place) const {
    int ranks = 0;
    for (int rank = 0; rank < program_.ranks; ++rank) ranks += place_of(rank) == place ? 1 : 0;
    return machine_.yields && ranks > cores_of(place);
  }
  const Path& farthest() const {
    const bool one_node = std::all_of(machine_.node_of_rank.begin(), machine_.node_of_rank.end(),
                                      [&](int other) { return other == machine_.node_of_rank.front(); });
    if (one_node) return machine_.self_node;
    return machine_.remote ? *machine_.remote : machine_.hops.rbegin()->second;
  }
  void post(std::size_t index) {
    Way& way = way_[index];
    if (way.posted) return;
    way.posted = true;
    if (way.sent && rendezvous(program_.messages[index])) meet(index);
  }
  void meet(std::size_t index) {
    const Message& m = program_.messages[index];
    depart(index, std::max(way_[index].sent_at + handshake(m), now_), flight(m) - handshake(m));
  }
  void depart(std::size_t index, double start, double rest) {
    const Message& m = program_.messages[index];
    Way& way = way_[index];
    way.start = start;
    way.rest = rest;
    if (!uses_links(m)) return arrive(index, start + rest);
    const double work = std::min(m.bytes / machine_.bandwidth, rest);
    way.tail = m.bytes / machine_.bandwidth - work;
    way.left[0] = work;
    way.left[1] = machine_.contention == Machine::Contention::kNic ? work : 0;
    way.latency = rest - work;
    way.order = ++departures_;
    flying_.push_back(index);
    const auto [last, is_new] = last_departure_.try_emplace({m.src, m.dst}, now_, sender_of_[index]);
    if (!is_new) {
      const auto [time, process] = last->second;
      if (process != sender_of_[index] && now_ - time <= kSameTime * std::max(1.0, now_)) outcome_.ambiguous = true;
      last->second = {now_, sender_of_[index]};
    }
  }
  void arrive(std::size_t index, double arrival) {
    const Message& m = program_.messages[index];
    Way& way = way_[index];
    way.arrival = arrival;
    if (rendezvous(m)) {
      way.sender_free = std::max({now_, way.start + handshake(m), arrival - handshake(m)});
    }
  }

  // How much longer process p waits for the message, because its rank looks for connections only now and
  // then: at its first receive, unless something that it sent itself had left before the message was ready.
  double unsettled(std::size_t p, std::size_t index) {
    const Message& m = program_.messages[index];
    const Way& way = way_[index];
    if (m.internal || live_[p].settled || program_.processes[p].background || way.arrival == kInfinity) return 0;
    const double ready = way.arrival - flight(m) - (way.first ? path(m).first_message : 0);
    return is_before(ready, live_[p].connected) ? path(m).first_peer : 0;
  }
  // By more than rounding.
  static bool is_before(double a, double b) { return a < b - kSameTime * std::max(1.0, std::abs(a)); }
  // The work that passes before process p goes on with a message that was there (or free) at `since`. It
  // waited until now: one vain poll of each other process that waited on its node just before now, and the
  // switch to p after another one of its own node. It did not: half of that switch if it came less than one
  // later.
  double turns_of(std::size_t p, const Message& m, bool waited, double since) {
    const Place place = place_of(program_.processes[p].rank);
    if (program_.processes[p].background || !takes_turns(place)) return 0;
    const bool is_from_node = !m.internal && node_of(m.src) == place.node;
    const double switching = is_from_node ? farthest().switching / cores_of(place) : 0;
    if (!waited || !is_before(live_[p].waits_of.back().first, now_))
      return is_before(now_, since + switching) ? switching / 2 : 0;
    int others = 0;
    for (std::size_t q = 0; q < live_.size(); ++q) {
      const Process& other = program_.processes[q];
      if (q == p || other.background || place_of(other.rank) != place) continue;
      const bool polls = std::any_of(live_[q].waits_of.begin(), live_[q].waits_of.end(), [&](const auto& wait) {
        return is_before(wait.first, now_) && !is_before(wait.second, now_);
      });
      others += polls ? 1 : 0;
    }
    return farthest().turn * others / cores_of(place) + switching;
  }

  // Regions: what one thread does while the others wait, so that the threads that ran take as long as the longest did.
  static double alone(const Action& action) {
    if (action.threads == 1) return 0;
    const double seconds = (action.longest * action.threads - action.work) / (action.threads - 1);
    return std::min(std::max(seconds, 0.0), action.work);
  }
  int threads_of(const Action& action) const { return machine_.threads > 0 ? machine_.threads : action.threads; }
  double fork_join(const Action& action) const {
    const int threads = threads_of(action);
    if (threads == action.threads) return action.fork_join;
    if (threads == 1) return 0;
    if (action.threads == 1) return 1e-6 * action.regions * std::log2(threads);
    return action.fork_join * std::log2(threads) / std::log2(action.threads);
  }

  // Carries process p on at now_ as far as it goes without time passing; true if it did anything.
  bool proceed(std::size_t p) {
    const Process& process = program_.processes[p];
    Live& me = live_[p];
    bool did = false;
    const auto work = [&](double seconds) {  // true: time must pass first
      if (seconds <= 0) return false;
      if (process.background) {
        me.asleep_until = now_ + seconds / machine_.speed[static_cast<std::size_t>(node_of(process.rank))];
      } else {
        me.work = seconds;
      }
      return true;
    };
    // Waits for a message event; true: it is not there yet.
    const auto must_wait = [&](double until) {
      if (until > now_ && !me.waits) me.waits_of.emplace_back(now_, kInfinity);
      if (until <= now_ && me.waits) me.waits_of.back().second = now_;
      me.waits = until > now_;
      if (me.waits && until < kInfinity) me.asleep_until = until;
      return me.waits;
    };
    while (me.next < process.actions.size()) {
      if (me.work > 0 || me.asleep_until > now_) return did;
      me.asleep_until = -1;
      const Action& action = process.actions[me.next];
      const bool names = action.kind != Action::Kind::kWork && action.kind != Action::Kind::kBlocked &&
                         action.kind != Action::Kind::kCopy && action.kind != Action::Kind::kReduce &&
                         action.kind != Action::Kind::kRegions && action.kind != Action::Kind::kOthers &&
                         action.kind != Action::Kind::kVainLooks && action.kind != Action::Kind::kDevice;
      const Message* m = names ? &program_.messages[action.message] : nullptr;
      Way* way = names ? &way_[action.message] : nullptr;
      switch (action.kind) {
        case Action::Kind::kWork:
          if (me.phase++ == 0 && work(recorded(process.rank, action.seconds))) return true;
          break;
        case Action::Kind::kOthers:
          if (me.phase++ == 0 && work(machine_.beside_others ? recorded(process.rank, action.seconds) : 0)) return true;
          break;
        case Action::Kind::kCopy:
        case Action::Kind::kReduce: {
          const Table& table = action.kind == Action::Kind::kCopy ? machine_.copy : machine_.reduce;
          if (me.phase++ == 0 && work(cost(table, action.bytes))) return true;
          break;
        }
        case Action::Kind::kRegions:
          if (me.phase == 0) {
            me.phase = 1;
            if (work(recorded(process.rank, fork_join(action) + alone(action)))) return true;
          }
          if (me.phase == 1) {
            me.phase = 2;
            me.threads = threads_of(action);
            if (work(recorded(process.rank, (action.work - alone(action)) / me.threads, action.threads))) return true;
          }
          me.threads = 1;
          break;
        case Action::Kind::kVainLooks: {
          me.looks = me.phase++ == 0 && yields_in_vain(place_of(process.rank)) &&
                     work(std::max(action.seconds, action.looks * farthest().turn));
          if (me.looks) return true;
          break;
        }
        case Action::Kind::kBlocked:
          if (me.phase++ == 0 && action.seconds > 0) {
            me.asleep_until = now_ + action.seconds;
            return true;
          }
          break;
        case Action::Kind::kDevice:
          me.spins = me.phase == 0 && action.seconds > 0;
          if (me.phase++ == 0 && me.spins) {
            me.asleep_until = now_ + action.seconds;
            return true;
          }
          break;
        case Action::Kind::kSend:
        case Action::Kind::kIsend:
          if (me.phase == 0) {
            me.phase = 1;
            if (work(m->internal ? 0 : cost(path(*m).send_cpu, m->bytes))) return true;
          }
          if (me.phase == 1) {
            me.phase = 2;
            did = true;
            send(action.message);
          }
          if (action.kind == Action::Kind::kSend) {
            // It returns when the message has left; a collective goes on.
            const double left = m->collective || m->internal ? 0 : way->sent_at;
            if (must_wait(std::max(left, way->sender_free))) return did;
          }
          break;
        case Action::Kind::kWaitSend:
          if (must_wait(way->sender_free)) return did;
          break;
        case Action::Kind::kPost:
          post(action.message);
          break;
        case Action::Kind::kLook: {
          if (me.phase == 0) {
            me.phase = 1;
            me.looks_since = now_;
          }
          if (me.phase == 2) break;
          const bool announced = way->sent && !way->posted && rendezvous(*m);
          const double there = announced ? way->sent_at + handshake(*m) : way->arrival;
          if (there == kInfinity) return did;
          me.phase = 2;
          double look = me.looks_since;
          while (is_before(look, there)) look += action.seconds;
          if (look > now_) {
            me.asleep_until = look;
            return true;
          }
          break;
        }
        case Action::Kind::kPeek:
          if (way->sent && !way->posted && rendezvous(*m)) {
            if (must_wait(way->sent_at + handshake(*m))) return did;
          } else if (must_wait(way->arrival)) {
            return did;
          }
          break;
        case Action::Kind::kRecv:
          if (me.phase == 0) {
            did = did || !way->posted;
            post(action.message);
            const bool waited = me.waits;
            const double there = way->arrival + unsettled(p, action.message);
            if (must_wait(there)) return did;
            me.phase = 1;
            me.settled = me.settled || (!m->internal && path(*m).first_peer > 0);
            const double turns = turns_of(p, *m, waited, there);
            if (work(turns + (m->internal ? 0 : cost(path(*m).recv_cpu, m->bytes)))) return true;
          }
          break;
      }
      me.phase = 0;
      ++me.next;
      me.finish = now_;
      did = true;
    }
    return did;
  }

  // The messages that are in the links now: of each connection the first that is not through.
  std::vector<std::size_t> in_links() {
    std::map<std::pair<int, int>, std::size_t> first;
    for (std::size_t index : flying_) {
      if (way_[index].through) continue;
      const Message& m = program_.messages[index];
      const auto [at, is_new] = first.try_emplace({m.src, m.dst}, index);
      if (!is_new && way_[index].order < way_[at->second].order) at->second = index;
    }
    std::vector<std::size_t> result;
    for (const auto& [connection, index] : first) result.push_back(index);
    return result;
  }

  // False: nothing will ever happen again.
  bool pass_time() {
    std::map<Place, int> sharers;
    std::map<Place, int> workers;  // of them those that use memory
    std::set<Place> looked_at;     // where a rank looks in vain: those that wait have their turns
    for (std::size_t p = 0; p < live_.size(); ++p) {
      if (live_[p].looks) looked_at.insert(place_of(program_.processes[p].rank));
    }
    for (std::size_t p = 0; p < live_.size(); ++p) {
      const Process& process = program_.processes[p];
      if (process.background || live_[p].next >= process.actions.size()) continue;
      const Place place = place_of(process.rank);
      const bool wait_shares = machine_.spins || looked_at.count(place) > 0;
      if (live_[p].work > 0 || live_[p].spins || (wait_shares && live_[p].waits)) sharers[place] += live_[p].threads;
      if (live_[p].work > 0 && !live_[p].looks) workers[place] += live_[p].threads;
    }
    const auto rate = [&](std::size_t p) {
      const Place place = place_of(program_.processes[p].rank);
      const double speed = machine_.speed[static_cast<std::size_t>(place.node)];
      const int cores = cores_of(place);
      double share = std::min(1.0, static_cast<double>(cores) / sharers[place]);
      if (looked_at.count(place) > 0)  // the slowest of its processors
        share = 1.0 / std::max(1, (sharers[place] + cores - 1) / cores);
      if (machine_.memory.empty() || workers[place] == 0) return speed * share;
      // In one of the place's domains; one processor is in one domain.
      const double all = workers[place] * share;
      const double even = all * places_of(place.node) / domains_of(place.node);
      return speed * share * met(std::max(even, std::min(all, 1.0)), speed * machine_.demand);
    };
    const std::vector<std::size_t> heads = in_links();
    // Links: 0 the bus; else 1 + node out of it, -1 - node into it.
    std::map<int, int> users;
    const auto link = [&](std::size_t index, int which) {
      const Message& m = program_.messages[index];
      if (machine_.contention == Machine::Contention::kBus) return 0;
      return which == 0 ? 1 + node_of(m.src) : -1 - node_of(m.dst);
    };
    for (std::size_t index : heads) {
      for (int which = 0; which < 2; ++which) {
        if (way_[index].start <= now_ && way_[index].left[which] > 0) ++users[link(index, which)];
      }
    }
    double step = kInfinity;
    for (std::size_t p = 0; p < live_.size(); ++p) {
      if (live_[p].work > 0) step = std::min(step, live_[p].work / rate(p));
      if (live_[p].asleep_until > now_) step = std::min(step, live_[p].asleep_until - now_);
    }
    for (std::size_t index : heads) {
      const Way& way = way_[index];
      if (way.start > now_) {
        step = std::min(step, way.start - now_);
        continue;
      }
      bool through = true;
      for (int which = 0; which < 2; ++which) {
        if (way.left[which] <= 0) continue;
        through = false;
        step = std::min(step, way.left[which] * users[link(index, which)]);
      }
      if (through) step = 0;
    }
    if (step == kInfinity) return false;
    double then = now_ + step;
    for (std::size_t p = 0; p < live_.size(); ++p) {
      Live& me = live_[p];
      if (me.work > 0) me.work = me.work / rate(p) <= step ? 0 : std::max(0.0, me.work - rate(p) * step);
      // Whoever sleeps until then wakes exactly then, whatever now + step rounds to.
      if (me.asleep_until > now_ && me.asleep_until - now_ <= step) then = std::max(then, me.asleep_until);
    }
    for (std::size_t index : heads) {
      Way& way = way_[index];
      if (way.start > now_) {
        if (way.start - now_ <= step) then = std::max(then, way.start);
        continue;
      }
      for (int which = 0; which < 2; ++which) {
        if (way.left[which] <= 0) continue;
        const double share = way.left[which] * users[link(index, which)];
        way.left[which] = share <= step ? 0 : std::max(0.0, way.left[which] - step / users[link(index, which)]);
      }
    }
    const double before = now_;
    now_ = then;
    for (std::size_t index : heads) {
      Way& way = way_[index];
      if (way.start > before || way.left[0] > 0 || way.left[1] > 0) continue;
      if (way.arrival == kInfinity) arrive(index, now_ + way.latency);
      way.through = way.tail <= 0;
      way.left[0] = way.tail;
      way.left[1] = machine_.contention == Machine::Contention::kNic ? way.tail : 0;
      way.tail = 0;
    }
    std::erase_if(flying_, [&](std::size_t index) { return way_[index].through; });
    return true;
  }

  const Program& program_;
  const Machine& machine_;
  std::vector<Live> live_;
  std::vector<Way> way_;
  std::vector<std::size_t> flying_;
  std::vector<std::size_t> sender_of_;                                            // process, by message
  std::map<std::pair<int, int>, std::pair<double, std::size_t>> last_departure_;  // of a connection
  std::size_t departures_ = 0;
  double now_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(const Program& program, const Machine& machine) {
  return Simulation(program, machine).run();
}

}  // namespace lbf::reference
