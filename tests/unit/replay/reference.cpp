#include "tests/unit/replay/reference.h"

#include <algorithm>
#include <limits>
#include <map>

namespace lbf::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
  double asleep_until = -1;  // blocked, or waiting for a message in flight; -1: not
  bool waits = false;        // for a send that has not happened
  double finish = 0;
};

}  // namespace

std::vector<double> simulate(const Program& program, const Machine& machine) {
  std::vector<Live> live(program.processes.size());
  std::vector<double> arrival(program.messages.size(), kInfinity);
  const auto locality = [&](const Message& m) {
    return machine.node_of_rank[static_cast<std::size_t>(m.src)] ==
                   machine.node_of_rank[static_cast<std::size_t>(m.dst)]
               ? 1
               : 0;
  };
  double now = 0;

  // Carries process p on at `now` as far as it goes without time passing; true if it did anything.
  const auto proceed = [&](std::size_t p) {
    const Process& process = program.processes[p];
    Live& me = live[p];
    bool did = false;
    const auto work = [&](double seconds) {  // true: time must pass first
      if (seconds <= 0) return false;
      if (process.background) {
        me.asleep_until = now + seconds / machine.speed;
      } else {
        me.work = seconds;
      }
      return true;
    };
    while (me.next < process.actions.size()) {
      if (me.work > 0 || me.asleep_until > now) return did;
      me.asleep_until = -1;
      const Action& action = process.actions[me.next];
      const Message* m = nullptr;
      if (action.kind != Action::Kind::kWork && action.kind != Action::Kind::kBlocked)
        m = &program.messages[action.message];
      if (action.kind == Action::Kind::kWork && me.phase == 0) {
        me.phase = 1;
        did = true;
        if (work(action.seconds)) return did;
      } else if (action.kind == Action::Kind::kBlocked && me.phase == 0) {
        me.phase = 1;
        did = true;
        if (action.seconds > 0) {
          me.asleep_until = now + action.seconds;
          return did;
        }
      } else if (action.kind == Action::Kind::kSend) {
        if (me.phase == 0) {
          me.phase = 1;
          did = true;
          if (work(m->internal ? 0 : cost(machine.send_cpu[locality(*m)], m->bytes))) return did;
        }
        arrival[action.message] = now + (m->internal ? 0 : cost(machine.flight[locality(*m)], m->bytes));
      } else if (action.kind == Action::Kind::kRecv || action.kind == Action::Kind::kPeek) {
        if (me.phase == 0) {
          me.waits = arrival[action.message] == kInfinity;
          if (me.waits) return did;
          me.phase = 1;
          did = true;
          if (arrival[action.message] > now) {
            me.asleep_until = arrival[action.message];
            return did;
          }
        }
        if (me.phase == 1 && action.kind == Action::Kind::kRecv) {
          me.phase = 2;
          if (work(m->internal ? 0 : cost(machine.recv_cpu[locality(*m)], m->bytes))) return true;
        }
      }
      me.phase = 0;
      ++me.next;
      me.finish = now;
      did = true;
    }
    return did;
  };

  for (;;) {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t p = 0; p < live.size(); ++p) again = proceed(p) || again;
    }
    std::map<int, int> runnable;
    const auto node = [&](std::size_t p) {
      return machine.node_of_rank[static_cast<std::size_t>(program.processes[p].rank)];
    };
    for (std::size_t p = 0; p < live.size(); ++p) runnable[node(p)] += live[p].work > 0 ? 1 : 0;
    const auto rate = [&](std::size_t p) {
      return machine.speed * std::min(1.0, static_cast<double>(machine.cores) / runnable[node(p)]);
    };
    double step = kInfinity;
    for (std::size_t p = 0; p < live.size(); ++p) {
      if (live[p].work > 0) step = std::min(step, live[p].work / rate(p));
      if (live[p].asleep_until > now) step = std::min(step, live[p].asleep_until - now);
    }
    if (step == kInfinity) break;
    double then = now + step;
    for (std::size_t p = 0; p < live.size(); ++p) {
      if (live[p].work > 0)
        live[p].work = live[p].work / rate(p) <= step ? 0 : std::max(0.0, live[p].work - rate(p) * step);
      // Whoever sleeps until then wakes exactly then, whatever now + step rounds to.
      if (live[p].asleep_until > now && live[p].asleep_until - now <= step)
        then = std::max(then, live[p].asleep_until);
    }
    now = then;
  }
  std::vector<double> finish;
  for (std::size_t p = 0; p < live.size(); ++p) {
    if (live[p].next < program.processes[p].actions.size()) return {};
    if (!program.processes[p].background) finish.push_back(live[p].finish);
  }
  return finish;
}

}  // namespace lbf::reference
