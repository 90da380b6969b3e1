// Procedures moved by the engine, against two programs that share no code with it: Fig. 2 of TR word by word (with
// the readings of docs/procedures.md), and a brute force that moves the time in the trace by the definition and
// simulates the moved trace. And against itself under other arrival orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

#include "predictor/engine/metric/predictor.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/random_trace.h"
#include "tests/unit/replay/reference.h"

namespace lbf::procedure_shift_test {
namespace {

constexpr int kProcedures = 3;

// A stretch of process time and the procedures that it passed in, outermost first.
struct Stretch {
  double seconds = 0;
  std::vector<std::uint32_t> stack;
};
struct Step {
  EventKind kind = EventKind::kExit;  // kSend, kRecv, kStartRecv, kEndRecv, kExit
  std::size_t message = 0;
  std::uint32_t request = 0;
  std::vector<Stretch> before;
};
struct Message {
  Rank src, dst;
  std::int32_t tag;
  Bytes bytes;
};
struct Traced {
  Rank ranks = 0;
  std::vector<std::vector<Step>> steps;  // by rank
  std::vector<Message> messages;
  std::vector<std::vector<Event>> events;
  std::deque<std::vector<std::uint64_t>> values;
};

double random_time(std::mt19937_64& random) {
  return static_cast<double>(random() % 1000) * 1e-3;
}

class Maker {
 public:
  Maker(std::mt19937_64& random, bool compact, bool posts) : random_(random), compact_(compact), posts_(posts) {}

  Traced make() {
    trace_.ranks = static_cast<Rank>(2 + random_() % 4);
    trace_.steps.resize(static_cast<std::size_t>(trace_.ranks));
    trace_.events.resize(trace_.steps.size());
    stacks_.resize(trace_.steps.size());
    const std::size_t messages = 5 + random_() % 20;
    std::vector<std::size_t> under_way;
    while (trace_.messages.size() < messages || !under_way.empty()) {
      if (trace_.messages.size() < messages && (under_way.empty() || random_() % 2 == 0)) {
        const auto src = static_cast<Rank>(random_() % trace_.steps.size());
        const auto dst = static_cast<Rank>((static_cast<std::size_t>(src) + 1 + random_() % (trace_.steps.size() - 1)) %
                                           trace_.steps.size());
        under_way.push_back(trace_.messages.size());
        // A tag of its own: which receive takes it is plain.
        trace_.messages.push_back({src, dst, static_cast<std::int32_t>(under_way.back()), random_() % 3000});
        if (posts_ && random_() % 2 == 0) add(dst, EventKind::kStartRecv, under_way.back());
        add(src, EventKind::kSend, under_way.back());
      } else {
        const std::size_t which = random_() % under_way.size();
        const std::size_t message = under_way[which];
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        const auto& steps = trace_.steps[static_cast<std::size_t>(trace_.messages[message].dst)];
        const bool posted = std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
          return step.kind == EventKind::kStartRecv && step.message == message;
        });
        add(trace_.messages[message].dst, posted ? EventKind::kEndRecv : EventKind::kRecv, message);
      }
    }
    for (Rank rank = 0; rank < trace_.ranks; ++rank) add(rank, EventKind::kExit, 0);
    return std::move(trace_);
  }

 private:
  Event& push(Rank rank, EventKind kind, double process_s) {
    Event& event = trace_.events[static_cast<std::size_t>(rank)].emplace_back();
    event.kind = kind;
    event.process_s = process_s;
    return event;
  }
  void say(Event& event, std::vector<std::uint64_t> values) {
    event.values = trace_.values.emplace_back(std::move(values));
  }

  void add(Rank rank, EventKind kind, std::size_t number) {
    auto& stack = stacks_[static_cast<std::size_t>(rank)];
    Step step{kind, number, static_cast<std::uint32_t>(number), {}};
    for (std::size_t left = random_() % 4;; --left) {
      step.before.push_back({random_time(random_), stack});
      if (left == 0) break;
      const bool enters = stack.empty() || random_() % 2 == 0;
      const std::uint32_t procedure = enters ? static_cast<std::uint32_t>(random_() % kProcedures) : stack.back();
      if (!compact_) {
        say(push(rank, enters ? EventKind::kEnter : EventKind::kLeave, step.before.back().seconds), {procedure});
      }
      if (enters) stack.push_back(procedure);
      if (!enters) stack.pop_back();
    }
    double last_s = step.before.back().seconds;
    if (compact_) last_s = add_lines(rank, step);
    Event& event = push(rank, kind, last_s);
    if (kind != EventKind::kExit) {
      const Message& message = trace_.messages[number];
      event.peer = kind == EventKind::kSend ? message.dst : message.src;
      event.tag = message.tag;
      event.bytes = message.bytes;
      if (kind == EventKind::kStartRecv || kind == EventKind::kEndRecv) {
        event.request = step.request;
        event.flags = kFlagHasRequest;
      }
    }
    trace_.steps[static_cast<std::size_t>(rank)].push_back(step);
  }

  // kProcedure events; returns the process time that is left for the event.
  double add_lines(Rank rank, const Step& step) {
    double all_s = 0;
    for (const Stretch& stretch : step.before) all_s += stretch.seconds;
    for (std::uint32_t p = 0; p < kProcedures; ++p) {
      double inclusive_s = 0;
      double exclusive_s = 0;
      for (const Stretch& stretch : step.before) {
        if (std::find(stretch.stack.begin(), stretch.stack.end(), p) == stretch.stack.end()) continue;
        inclusive_s += stretch.seconds;
        if (stretch.stack.back() == p) exclusive_s += stretch.seconds;
      }
      if (inclusive_s <= 0) continue;
      const bool takes_all = random_() % 4 == 0;
      const auto ns = [](double s) { return static_cast<std::uint64_t>(std::llround(s * 1e9)); };
      say(push(rank, EventKind::kProcedure, takes_all ? all_s : 0), {p, ns(inclusive_s), ns(exclusive_s), 1});
      if (takes_all) all_s = 0;
    }
    return all_s;
  }

  std::mt19937_64& random_;
  bool compact_;
  bool posts_;
  Traced trace_;
  std::vector<std::vector<std::uint32_t>> stacks_;
};

// --- brute force

bool is_interprocess(EventKind kind) {
  return kind == EventKind::kSend || kind == EventKind::kRecv || kind == EventKind::kEndRecv;
}

// The seconds before each step after the move, by the definition alone.
std::vector<std::vector<double>> moved_times(const Traced& trace, const engine::Scenario& scenario) {
  std::vector<std::vector<double>> times(trace.steps.size());
  std::vector<double> before_send(trace.messages.size(), 0), before_receive(trace.messages.size(), 0);
  for (std::size_t rank = 0; rank < trace.steps.size(); ++rank) {
    const std::vector<Step>& steps = trace.steps[rank];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      double& left_s = times[rank].emplace_back(0);
      // The interval's ends: the inter-process events around this step's time.
      std::size_t end = i;
      while (end < steps.size() && !is_interprocess(steps[end].kind)) ++end;
      std::size_t begin = i;
      while (begin > 0 && !is_interprocess(steps[begin - 1].kind)) --begin;
      const Step* const last = end < steps.size() ? &steps[end] : nullptr;
      const Step* const first = begin > 0 ? &steps[begin - 1] : nullptr;
      for (const Stretch& stretch : steps[i].before) {
        const engine::ProcedureChange* change = nullptr;
        for (const std::uint32_t procedure : stretch.stack) {  // the innermost counts: the last one found
          for (const engine::ProcedureChange& each : scenario.changes) {
            if (each.procedure == procedure) change = &each;
          }
        }
        left_s += stretch.seconds;
        if (change == nullptr) continue;
        const double part_s = stretch.seconds * change->share;
        const bool sends = last != nullptr && last->kind == EventKind::kSend;
        const bool has_received = first != nullptr && first->kind != EventKind::kSend;
        const Rank to = sends ? trace.messages[last->message].dst : kAnyRank;
        const Rank from = has_received ? trace.messages[first->message].src : kAnyRank;
        const bool is_there = static_cast<Rank>(rank) == scenario.rank;
        if (change->to == engine::MoveTo::kNowhere) {
          left_s -= part_s;
        } else if (sends && (change->to == engine::MoveTo::kReceiver ||
                             (change->to == engine::MoveTo::kRank && !is_there && to == scenario.rank))) {
          left_s -= part_s;
          before_receive[last->message] += part_s;
        } else if (has_received && (change->to == engine::MoveTo::kSender ||
                                    (change->to == engine::MoveTo::kRank && !is_there && from == scenario.rank))) {
          left_s -= part_s;
          before_send[first->message] += part_s;
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < trace.steps.size(); ++rank) {
    for (std::size_t i = 0; i < trace.steps[rank].size(); ++i) {
      const Step& step = trace.steps[rank][i];
      if (step.kind == EventKind::kSend) times[rank][i] += before_send[step.message];
      if (step.kind == EventKind::kRecv || step.kind == EventKind::kEndRecv) {
        times[rank][i] += before_receive[step.message];
      }
    }
  }
  return times;
}

reference::Program program_of(const Traced& trace, const std::vector<std::vector<double>>& times) {
  using Kind = reference::Action::Kind;
  reference::Program program;
  program.ranks = trace.ranks;
  for (const Message& message : trace.messages) {
    reference::Message& made = program.messages.emplace_back();
    made.src = message.src;
    made.dst = message.dst;
    made.bytes = static_cast<double>(message.bytes);
  }
  for (std::size_t rank = 0; rank < trace.steps.size(); ++rank) {
    reference::Process& process = program.processes.emplace_back();
    process.rank = static_cast<int>(rank);
    for (std::size_t i = 0; i < trace.steps[rank].size(); ++i) {
      const Step& step = trace.steps[rank][i];
      process.actions.push_back({Kind::kWork, times[rank][i], 0});
      if (step.kind == EventKind::kExit) continue;
      process.actions.push_back({step.kind == EventKind::kSend        ? Kind::kSend
                                 : step.kind == EventKind::kStartRecv ? Kind::kPost
                                                                      : Kind::kRecv,
                                 0, step.message});
    }
  }
  return program;
}

// --- the engine

enum class Order { kRankByRank, kShuffled, kShuffledAndEager };

std::vector<engine::Prediction> predict(const Traced& trace, const std::vector<engine::Target>& targets,
                                        const engine::ProcedurePlan& plan, Order order, std::mt19937_64& random) {
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(trace.ranks, targets, plan);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  engine::Predictor& predictor = **made;
  std::vector<Rank> arrivals;
  for (Rank rank = 0; rank < trace.ranks; ++rank) {
    arrivals.insert(arrivals.end(), trace.events[static_cast<std::size_t>(rank)].size(), rank);
  }
  if (order != Order::kRankByRank) std::shuffle(arrivals.begin(), arrivals.end(), random);
  std::vector<std::size_t> next(static_cast<std::size_t>(trace.ranks), 0);
  for (const Rank rank : arrivals) {
    const auto& events = trace.events[static_cast<std::size_t>(rank)];
    std::size_t& at = next[static_cast<std::size_t>(rank)];
    const Result<void> fed = predictor.feed(rank, events[at++]);
    EXPECT_TRUE(fed.ok()) << fed.error().message;
    if (order == Order::kShuffledAndEager) {
      EXPECT_TRUE(predictor.advance().ok());
    }
    if (at == events.size()) predictor.close(rank);
  }
  EXPECT_TRUE(predictor.advance().ok());
  return predictor.predictions();
}

std::vector<engine::Scenario> random_scenarios(std::mt19937_64& random, Rank ranks, bool only_single) {
  std::vector<engine::Scenario> scenarios;
  for (std::size_t v = 0; v < 4; ++v) {
    engine::Scenario& scenario = scenarios.emplace_back();
    scenario.rank = static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks));
    for (std::uint32_t p = 0; p < kProcedures; ++p) {
      if (only_single ? p != v % kProcedures : random() % 2 == 0) continue;
      scenario.changes.push_back({p, static_cast<engine::MoveTo>(random() % 4),
                                  random() % 2 == 0 ? 1.0 : static_cast<double>(random() % 5) * 0.25});
    }
  }
  return scenarios;
}

class MovedProcedures : public testing::TestWithParam<int> {};

TEST_P(MovedProcedures, EqualTheMovedTraceInTheReference) {
  int complete = 0;
  for (int i = 0; i < 40; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 1000 + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool compact = i % 4 == 3;
    const Traced trace = Maker(random, compact, true).make();
    const engine::ProcedurePlan plan{random_scenarios(random, trace.ranks, compact), {}};
    std::vector<random_trace::Configuration> configurations;
    std::vector<engine::Target> targets;
    for (int c = 0; c < 3; ++c) {
      const random_trace::Configuration configuration = random_trace::make_configuration(random, trace.ranks);
      for (std::uint32_t v = 0; v <= plan.scenarios.size(); ++v) {
        configurations.push_back(configuration);
        targets.push_back(configuration.target);
        targets.back().scenario = v;
      }
    }
    const std::vector<engine::Prediction> first = predict(trace, targets, plan, Order::kRankByRank, random);
    for (const Order order : {Order::kShuffled, Order::kShuffledAndEager}) {
      const std::vector<engine::Prediction> other = predict(trace, targets, plan, order, random);
      for (std::size_t t = 0; t < targets.size(); ++t) {
        ASSERT_EQ(first[t].complete, other[t].complete);
        if (!first[t].complete) continue;
        for (std::size_t rank = 0; rank < first[t].rank_finish_s.size(); ++rank) {
          ASSERT_EQ(std::bit_cast<std::uint64_t>(first[t].rank_finish_s[rank]),
                    std::bit_cast<std::uint64_t>(other[t].rank_finish_s[rank]))
              << "target " << t << ", rank " << rank;
        }
      }
    }
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const std::uint32_t v = targets[t].scenario;
      const auto times = moved_times(trace, v == 0 ? engine::Scenario{} : plan.scenarios[v - 1]);
      const reference::Outcome outcome = reference::simulate(program_of(trace, times), configurations[t].machine);
      if (outcome.ambiguous) continue;
      ASSERT_EQ(first[t].complete, outcome.complete) << "target " << t << ": " << first[t].why_stuck;
      if (!outcome.complete) continue;
      ++complete;
      for (std::size_t rank = 0; rank < outcome.finish.size(); ++rank) {
        ASSERT_NEAR(first[t].rank_finish_s[rank], outcome.finish[rank], 1e-9 * std::max(1.0, outcome.finish[rank]))
            << "target " << t << ", scenario " << v << ", rank " << rank;
      }
    }
  }
  EXPECT_GT(complete, 200);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MovedProcedures, testing::Range(0, 4));

// --- Fig. 2

// The algorithm as printed, a variable for a variable, with the readings: line 20 is no condition on line 21 to 23's
// effect (without F the receiver still waits until Cs), lines 18 and 19 in both branches, `rmtFCP` is rmtF,
// active counts.
struct Fig2Process {
  double now = 0;  // CPUTime()
  double longest = 0, last_update = 0, f = 0, last_time = 0;
  int active = 0;

  void enter() {
    if (active++ == 0) last_time = now;
  }
  void leave() {
    if (--active == 0) f += now - last_time;
  }
  std::pair<double, double> send() {
    longest += now - last_update;
    last_update = now;
    if (active > 0) {
      f += now - last_time;
      last_time = now;
    }
    const std::pair<double, double> message{longest, f};
    longest -= f;
    f = 0;
    return message;
  }
  void receive(double cs, double rmt_f) {
    longest += now - last_update;
    last_update = now;
    const double cr = longest;
    f = 0;
    if (active > 0) last_time = now;
    if (cs - cr > 0) {
      longest = cs - rmt_f > cr + rmt_f ? cs - rmt_f : cr + rmt_f;
    } else {
      longest += rmt_f;
    }
  }
};

double fig2(const Traced& trace, std::uint32_t procedure) {
  std::vector<Fig2Process> processes(trace.steps.size());
  std::vector<std::size_t> at(trace.steps.size(), 0);
  std::vector<std::pair<double, double>> sent(trace.messages.size());
  std::vector<bool> is_sent(trace.messages.size(), false);
  std::vector<std::vector<std::uint32_t>> stacks(trace.steps.size());
  for (bool any = true; any;) {
    any = false;
    for (std::size_t rank = 0; rank < trace.steps.size(); ++rank) {
      while (at[rank] < trace.steps[rank].size()) {
        const Step& step = trace.steps[rank][at[rank]];
        if (step.kind == EventKind::kRecv && !is_sent[step.message]) break;
        ++at[rank];
        any = true;
        Fig2Process& process = processes[rank];
        for (const Stretch& stretch : step.before) {
          const auto depth = [&](const std::vector<std::uint32_t>& stack) {
            return std::count(stack.begin(), stack.end(), procedure);
          };
          for (auto d = depth(stacks[rank]); d < depth(stretch.stack); ++d) process.enter();
          for (auto d = depth(stacks[rank]); d > depth(stretch.stack); --d) process.leave();
          stacks[rank] = stretch.stack;
          process.now += stretch.seconds;
        }
        if (step.kind == EventKind::kSend) {
          sent[step.message] = process.send();
          is_sent[step.message] = true;
        }
        if (step.kind == EventKind::kRecv) process.receive(sent[step.message].first, sent[step.message].second);
        if (step.kind == EventKind::kExit) process.longest += process.now - process.last_update;
      }
    }
  }
  double lbf = 0;
  for (const Fig2Process& process : processes) lbf = std::max(lbf, process.longest);
  return lbf;
}

TEST(ProcedureShift, EqualsFig2WordByWord) {
  double changed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const Traced trace = Maker(random, false, false).make();
    engine::ProcedurePlan plan;
    std::vector<engine::Target> targets;
    for (std::uint32_t v = 0; v <= kProcedures; ++v) {
      if (v > 0) plan.scenarios.push_back({{{v - 1, engine::MoveTo::kReceiver, 1}}, kAnyRank});
      engine::Target& target = targets.emplace_back();
      target.nodes = static_cast<std::uint32_t>(trace.ranks);
      target.node_of_rank = *engine::place_ranks("block", trace.ranks, target.nodes);
      target.network = std::make_shared<const engine::Network>(engine::Network::zero());
      target.scenario = v;
    }
    const std::vector<engine::Prediction> predictions = predict(trace, targets, plan, Order::kShuffled, random);
    for (std::uint32_t p = 0; p < kProcedures; ++p) {
      EXPECT_NEAR(predictions[p + 1].lbf_s, fig2(trace, p), 1e-9) << "seed " << seed << ", procedure " << p;
      changed += std::abs(predictions[p + 1].lbf_s - predictions[0].lbf_s) > 1e-6 ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 300);
}

}  // namespace
}  // namespace lbf::procedure_shift_test