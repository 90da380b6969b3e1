#include "pattern/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "skeleton/call_name.h"

namespace lbf::pattern {

std::string call_of(const Key& key) {
  skeleton::Operation operation;
  operation.kind = key.kind;
  operation.op = key.op;
  if (key.kind == skeleton::OperationKind::kEnd) return "the end";
  const std::string name = skeleton::call_name(operation);
  return skeleton::has_peer(key.kind) ? fmt::format("{} with tag {}", name, key.tag) : name;
}

namespace {

using skeleton::OperationKind;

// So many statements of a rank, then the next rank's: what is sent meets its receives soon.
constexpr int kTurn = 16;

// Statements -> events of one rank.
class EventWriter {
 public:
  EventWriter(const Program& program, const Grids& grids, Rank ranks, Rank me) : me_(me) {
    for (const Subgrid& subgrid : program.communicators) {
      // All members number it by its first one.
      const Rank number = static_cast<Rank>(comms_.size());
      comms_.push_back(static_cast<std::uint32_t>(1 + number * ranks + subgrid.first_member_of(grids, ranks, me)));
    }
  }

  // VALUES: of the communicators that were created, by number, for their other members.
  Result<void> create_communicators(const Program& program, const Grids& grids, Rank ranks,
                                    std::map<std::uint32_t, std::vector<std::uint64_t>>& values,
                                    const EventSink& sink) {
    for (std::size_t number = 0; number < comms_.size(); ++number) {
      Event event = event_of_kind(EventKind::kCommCreate);
      event.comm = comms_[number];
      std::vector<std::uint64_t>& of_all = values[event.comm];
      if (of_all.empty()) {
        const std::vector<Rank> members = program.communicators[number].members_of(grids, ranks, me_);
        of_all = {event.comm, 0};
        of_all.insert(of_all.end(), members.begin(), members.end());
      }
      event.values = of_all;
      if (Result<void> taken = sink(me_, event); !taken) return taken;
    }
    return {};
  }

  Result<void> write(const Step& step, const EventSink& sink) {
    if (step.idle_s > 0) {
      Event blocked = event_of_kind(EventKind::kBlocked);
      blocked.off_s = step.idle_s;
      if (Result<void> taken = sink(me_, blocked); !taken) return taken;
    }
    Event event;
    event.process_s = step.process_s;
    event.flags = step.key.flags | kFlagCallBegin;
    event.peer = step.peer;
    event.tag = step.key.tag;
    event.comm = step.key.comm == 0 ? 0 : comms_[step.key.comm - 1];
    event.bytes = step.bytes;
    switch (step.key.kind) {
      case OperationKind::kSend:
        event.kind = EventKind::kSend;
        break;
      case OperationKind::kRecv:
        event.kind = EventKind::kRecv;
        break;
      case OperationKind::kProbe:
        event.kind = EventKind::kProbe;
        break;
      case OperationKind::kIsend:
        event.kind = EventKind::kIsend;
        start(event, false);
        break;
      case OperationKind::kIrecv:
        event.kind = EventKind::kStartRecv;
        start(event, true);
        active_.back().received = event;
        event.bytes = 0;
        break;
      case OperationKind::kCollective:
      case OperationKind::kIcollective:
        event.kind = step.key.kind == OperationKind::kCollective ? EventKind::kCollective : EventKind::kIcollective;
        set_op(event, step.key.op);
        event.root = step.root;
        event.peer = kAnyRank;
        event.values = step.values;
        if (step.key.kind == OperationKind::kIcollective) start(event, false);
        break;
      case OperationKind::kWait:
        return wait(step, sink);
      case OperationKind::kEnd:
        event = event_of_kind(EventKind::kExit);
        event.process_s = step.process_s;
        break;
      default:
        return {};
    }
    return sink(me_, event);
  }

 private:
  struct Active {
    std::uint32_t request = 0;
    bool is_receive = false;
    Event received;
  };

  void start(Event& event, bool is_receive) {
    event.flags |= kFlagHasRequest;
    event.request = ++requests_;
    active_.push_back({event.request, is_receive, {}});
  }

  Result<void> wait(const Step& step, const EventSink& sink) {
    double process_s = step.process_s;
    std::uint8_t begin = kFlagCallBegin;
    for (const std::uint32_t position : step.positions) {
      const Active& active = active_[position];
      Event event = active.is_receive ? active.received : Event{};
      event.kind = active.is_receive ? EventKind::kEndRecv : EventKind::kWait;
      event.flags = static_cast<std::uint8_t>(kFlagHasRequest | begin);
      event.request = active.request;
      event.process_s = process_s;
      if (Result<void> taken = sink(me_, event); !taken) return taken;
      process_s = 0;
      begin = 0;
    }
    for (auto position = step.positions.rbegin(); position != step.positions.rend(); ++position)
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(*position));
    return {};
  }

  Rank me_;
  std::uint32_t requests_ = 0;
  std::vector<std::uint32_t> comms_;
  std::vector<Active> active_;
};

// Rules that the program needs.
void add_rules(const std::vector<Instruction>& instructions, std::set<GridRule>& rules) {
  for (const Instruction& instruction : instructions) {
    add_rules(instruction.body, rules);
    rules.insert(instruction.way.relation.rule);
    for (const Predicate& predicate : instruction.way.conditions) rules.insert(predicate.rule);
  }
}

}  // namespace

std::vector<Rank> Subgrid::members_of(const Grids& grids, Rank ranks, Rank me) const {
  const Grid& grid = *grids.find(rule, ranks);
  const Coordinates here = grid.at(me);
  std::vector<Rank> members;
  Coordinates at = here;
  const auto from = [&](std::size_t d) { return varies[d] ? 0 : here[d]; };
  const auto to = [&](std::size_t d) { return varies[d] ? grid.size[d] : here[d] + 1; };
  for (at[0] = from(0); at[0] < to(0); ++at[0]) {
    for (at[1] = from(1); at[1] < to(1); ++at[1]) {
      for (at[2] = from(2); at[2] < to(2); ++at[2]) members.push_back(grid.rank_at(at));
    }
  }
  return members;
}

Rank Subgrid::first_member_of(const Grids& grids, Rank ranks, Rank me) const {
  const Grid& grid = *grids.find(rule, ranks);
  Coordinates at = grid.at(me);
  for (std::size_t d = 0; d < kDimensions; ++d) at[d] = varies[d] ? 0 : at[d];
  return grid.rank_at(at);
}

Rank Subgrid::size(const Grids& grids, Rank ranks) const {
  const Grid& grid = *grids.find(rule, ranks);
  Rank size = 1;
  for (std::size_t d = 0; d < kDimensions; ++d) size *= varies[d] ? grid.size[d] : 1;
  return size;
}

Rank Subgrid::place_of(const Grids& grids, Rank ranks, Rank me) const {
  const Grid& grid = *grids.find(rule, ranks);
  const Coordinates at = grid.at(me);
  Rank place = 0;
  for (std::size_t d = 0; d < kDimensions; ++d) place = varies[d] ? place * grid.size[d] + at[d] : place;
  return place;
}

const Grid& layout_of(GridRule layout, const Grids& grids, Rank ranks) {
  const Grid* grid = grids.find(layout, ranks);
  return grid != nullptr ? *grid : *grids.find(GridRule::kLine, ranks);
}

bool holds(const Predicate& predicate, const Relation& relation, const Grids& grids, Rank ranks, Rank me) {
  using Kind = Predicate::Kind;
  if (predicate.kind == Kind::kInside) return stays_inside(relation, grids, ranks, me);
  if (predicate.kind == Kind::kNotSelf) return peer_of(relation, grids, ranks, me) != me;
  const Grid* grid = grids.find(predicate.rule, ranks);
  if (grid == nullptr) return false;
  if (predicate.kind == Kind::kCoarse || predicate.kind == Kind::kCoarseLast) {
    const Coordinates all = grid->at(me);
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const std::int32_t apart = std::max(1, grid->size[d] / predicate.value);
      if (all[d] % apart != (predicate.kind == Kind::kCoarse ? 0 : apart - 1)) return false;
    }
    return true;
  }
  const std::int32_t at = grid->at(me)[predicate.dimension];
  const std::int32_t size = grid->size[predicate.dimension];
  switch (predicate.kind) {
    case Kind::kFirst:
      return at == 0;
    case Kind::kNotFirst:
      return at != 0;
    case Kind::kLast:
      return at == size - 1;
    case Kind::kNotLast:
      return at != size - 1;
    case Kind::kEven:
      return at % 2 == 0;
    case Kind::kOdd:
      return at % 2 == 1;
    case Kind::kEdge:
      return at == 0 || at == size - 1;
    case Kind::kInner:
      return at != 0 && at != size - 1;
    case Kind::kWide:
      return size > 1;
    default:
      return true;
  }
}

namespace {

// The same in each run of this program (SplitMix64).
std::uint64_t chance(std::uint32_t work, Rank me, std::uint32_t execution) {
  std::uint64_t mixed =
      std::uint64_t{execution} * 0x9e3779b97f4a7c15 + (std::uint64_t{work} << 32) + static_cast<std::uint64_t>(me);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace

Execution::Execution(const Program& program, const Grids& grids, Rank ranks, Rank me)
    : program_(program),
      grids_(grids),
      ranks_(ranks),
      me_(me),
      frames_{{&program.instructions, 0, 0, 1, Instruction::Kind::kLoop}},
      like_(likened(layout_of(program.layout, grids, ranks), program.largest, me)),
      executed_(program.works) {}

std::uint32_t Execution::Frame::step() const {
  if (kind == Instruction::Kind::kLoop) return 0;
  return static_cast<std::uint32_t>(kind == Instruction::Kind::kSteps ? iteration : iterations - 1 - iteration);
}

bool Execution::meets_conditions(const Instruction& instruction) const {
  return std::all_of(
      instruction.way.conditions.begin(), instruction.way.conditions.end(),
      [&](const Predicate& predicate) { return holds(predicate, instruction.way.relation, grids_, ranks_, me_); });
}

// Whether the rank executes something of it; waits alone are nothing.
bool Execution::has_part_in(const Instruction& instruction) const {
  if (instruction.kind == Instruction::Kind::kStatement)
    return instruction.key.kind != OperationKind::kWait && meets_conditions(instruction);
  return std::any_of(instruction.body.begin(), instruction.body.end(),
                     [&](const Instruction& inner) { return has_part_in(inner); });
}

void Execution::enter(const Instruction& instruction) {
  if (!has_part_in(instruction)) return;
  const std::uint64_t iterations = instruction.kind == Instruction::Kind::kLoop
                                       ? instruction.count.at(grids_, ranks_, me_)
                                       : steps_of(instruction.way.relation, grids_, ranks_);
  if (iterations > 0 && !instruction.body.empty())
    frames_.push_back({&instruction.body, 0, 0, iterations, instruction.kind});
}

bool Execution::find_requests(const Instruction& instruction) {
  const auto add = [&](std::size_t place) { step_.positions.push_back(static_cast<std::uint32_t>(place)); };
  const auto add_first = [&](bool is_receive) {
    const auto found = std::find(active_.begin(), active_.end(), is_receive);
    if (found != active_.end()) add(static_cast<std::size_t>(found - active_.begin()));
  };
  step_.positions.clear();
  switch (instruction.wait_form) {
    case kWaitsForAll:
    case kWaitsForReceives:
    case kWaitsForOthers:
      for (std::size_t place = 0; place < active_.size(); ++place) {
        if (instruction.wait_form == kWaitsForAll || active_[place] == (instruction.wait_form == kWaitsForReceives))
          add(place);
      }
      break;
    case kWaitsForOldest:
      if (!active_.empty()) add(0);
      break;
    case kWaitsForNewest:
      if (!active_.empty()) add(active_.size() - 1);
      break;
    case kWaitsForOldestReceive:
    case kWaitsForOldestOther:
      add_first(instruction.wait_form == kWaitsForOldestReceive);
      break;
    case kWaitsForPositions:
      for (const std::uint32_t place : instruction.positions) {
        if (place < active_.size()) add(place);
      }
      break;
  }
  for (auto place = step_.positions.rbegin(); place != step_.positions.rend(); ++place)
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(*place));
  return !step_.positions.empty();
}

// Whether the rank executes it.
bool Execution::execute(const Instruction& instruction) {
  if (!meets_conditions(instruction)) return false;
  const std::uint32_t number = frames_.back().step();
  step_.key = instruction.key;
  step_.key.tag += instruction.tag_per_step * static_cast<std::int32_t>(number);
  const Frame& frame = frames_.back();
  const std::uint64_t turn = frame.kind == Instruction::Kind::kLoop ? 0 : frame.iteration;
  const auto of_turn = static_cast<std::uint32_t>(std::min<std::uint64_t>(turn, instruction.process.size() - 1));
  const std::uint32_t work = instruction.number + of_turn;
  const std::uint32_t execution = executed_[work]++;
  step_.process_s = instruction.process[of_turn].at(ranks_, like_, execution, chance(work, me_, execution));
  step_.idle_s = instruction.idle.at(ranks_);
  step_.peer = kAnyRank;
  step_.bytes = 0;
  step_.positions.clear();
  step_.values.clear();
  if (instruction.key.kind == OperationKind::kWait) return find_requests(instruction);
  if (skeleton::has_peer(instruction.key.kind)) {
    const std::optional<Rank> peer = peer_of(instruction.way.relation, grids_, ranks_, me_, number);
    if (!peer) return false;
    step_.peer = *peer;
  }
  step_.bytes = instruction.bytes.at(grids_, ranks_, me_, number);
  step_.root = static_cast<Rank>(instruction.root.at(grids_, ranks_, me_, number));
  if (instruction.key.kind == OperationKind::kCollective || instruction.key.kind == OperationKind::kIcollective) {
    const std::uint32_t comm = instruction.key.comm;
    const Subgrid* subgrid = comm == 0 ? nullptr : &program_.communicators[comm - 1];
    const Rank size = subgrid == nullptr ? ranks_ : subgrid->size(grids_, ranks_);
    const Rank place = subgrid == nullptr ? me_ : subgrid->place_of(grids_, ranks_, me_);
    const auto role = step_.root == place ? skeleton::RootRole::kRoot : skeleton::RootRole::kOther;
    step_.values.assign(skeleton::values_needed(instruction.key.op, static_cast<std::size_t>(size), role),
                        instruction.value.at(grids_, ranks_, me_, number));
  }
  if (skeleton::begins_request(instruction.key.kind)) active_.push_back(instruction.key.kind == OperationKind::kIrecv);
  return true;
}

const Step* Execution::next() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.at == frame.body->size()) {
      frame.at = 0;
      if (++frame.iteration == frame.iterations) frames_.pop_back();
      continue;
    }
    const Instruction& instruction = (*frame.body)[frame.at++];
    if (instruction.kind != Instruction::Kind::kStatement) {
      enter(instruction);
    } else if (execute(instruction)) {
      return &step_;
    }
  }
  return nullptr;
}

namespace {

// By rank; nothing where the way has none.
std::vector<std::optional<Rank>> peers_of(const Way& way, const Grids& grids, Rank ranks) {
  // More ranks tell no more.
  constexpr Rank kMostRanks = 4096;
  std::vector<std::optional<Rank>> peers;
  for (Rank me = 0; me < std::min(ranks, kMostRanks); ++me) {
    const bool executes = std::all_of(way.conditions.begin(), way.conditions.end(), [&](const Predicate& predicate) {
      return holds(predicate, way.relation, grids, ranks, me);
    });
    peers.push_back(executes ? peer_of(way.relation, grids, ranks, me) : std::nullopt);
  }
  return peers;
}

// Statements of which ways differ.
void add_ambiguous(const std::vector<Instruction>& instructions, const Grids& grids, Rank ranks,
                   std::vector<const Instruction*>& ambiguous) {
  for (const Instruction& instruction : instructions) {
    add_ambiguous(instruction.body, grids, ranks, ambiguous);
    if (instruction.other_ways.empty()) continue;
    const auto peers = peers_of(instruction.way, grids, ranks);
    const auto differs = [&](const Way& other) { return peers_of(other, grids, ranks) != peers; };
    if (std::any_of(instruction.other_ways.begin(), instruction.other_ways.end(), differs))
      ambiguous.push_back(&instruction);
  }
}

// Whether a run with so many ranks tells all ways apart. Butterflies may be impossible there, and one shift.
bool settles(const Instruction& instruction, Rank ranks) {
  Grids grids;
  grids.add(ranks);
  std::vector<std::vector<std::optional<Rank>>> known;
  const std::vector<std::optional<Rank>> impossible(peers_of(instruction.way, grids, ranks).size());
  const auto is_new = [&](const Way& way) {
    auto peers = peers_of(way, grids, ranks);
    if (peers == impossible && way.relation.kind != Relation::Kind::kShift) return true;
    if (std::find(known.begin(), known.end(), peers) != known.end()) return false;
    known.push_back(std::move(peers));
    return true;
  };
  return is_new(instruction.way) && std::all_of(instruction.other_ways.begin(), instruction.other_ways.end(), is_new);
}

// ": run it once with 12"; empty: no rank count below was found.
std::string settling_run(const std::vector<const Instruction*>& ambiguous, Rank ranks) {
  constexpr Rank kMostTried = 1024;
  for (Rank tried = 2; tried <= std::min(ranks, kMostTried); ++tried) {
    const bool all = std::all_of(ambiguous.begin(), ambiguous.end(),
                                 [&](const Instruction* instruction) { return settles(*instruction, tried); });
    if (all) return fmt::format(": run it once with {}", tried);
  }
  return "";
}

}  // namespace

Result<void> Program::check(Rank ranks) const {
  Grids grids;
  grids.add(ranks);
  std::set<GridRule> rules;
  add_rules(instructions, rules);
  for (const Subgrid& subgrid : communicators) rules.insert(subgrid.rule);
  for (const GridRule rule : rules) {
    if (!grid_of(rule, ranks))
      return invalid_input(fmt::format(
          "the program runs on squares of ranks, or twice as many, which {} ranks are not: as in 4, 8, 16, 32", ranks));
  }
  std::vector<const Instruction*> ambiguous;
  add_ambiguous(instructions, grids, ranks, ambiguous);
  if (ambiguous.empty()) return {};
  const Instruction& first = *ambiguous.front();
  const auto peers = peers_of(first.way, grids, ranks);
  const auto other = std::find_if(first.other_ways.begin(), first.other_ways.end(),
                                  [&](const Way& way) { return peers_of(way, grids, ranks) != peers; });
  return invalid_input(
      fmt::format("{}: the runs do not tell whether its peer is {} or {}, which differ with {} ranks{}",
                  call_of(first.key), in_words(first.way.relation, grids, ranks),
                  in_words(other->relation, grids, ranks), ranks, settling_run(ambiguous, ranks)));
}

namespace {

// Of the work of all statements, in seconds of the largest run.
struct WorkThere {
  Seconds law_s = 0;
  Seconds half_difference_s = 0;
};

void add_work(const std::vector<Instruction>& instructions, Rank ranks, WorkThere& all) {
  for (const Instruction& instruction : instructions) {
    add_work(instruction.body, ranks, all);
    for (const Work& work : instruction.process) {
      all.law_s += work.of_largest_s() * work.law().at(ranks);
      all.half_difference_s += work.of_largest_s() * work.law().half_difference(ranks);
    }
  }
}

}  // namespace

std::optional<double> Program::work_percent(Rank ranks) const {
  if (!miss_percent) return std::nullopt;
  WorkThere there;
  add_work(instructions, ranks, there);
  const double steps = std::log(static_cast<double>(ranks) / ranks_of_largest()) / std::log(miss_factor);
  const double difference = there.law_s > 0 ? 100 * there.half_difference_s / there.law_s : 0;
  return std::fabs(*miss_percent) * std::max(1.0, std::fabs(steps)) + std::fabs(difference);
}

Result<void> Program::run(Rank ranks, const EventSink& sink, const std::function<void(double)>& progress) const {
  if (Result<void> checked = check(ranks); !checked) return checked;
  Grids grids;
  grids.add(ranks);
  std::uint64_t of_first = 0;
  for (Execution first(*this, grids, ranks, 0); first.next() != nullptr;) ++of_first;
  struct State {
    Execution execution;
    EventWriter writer;
  };
  std::vector<std::unique_ptr<State>> left;
  std::map<std::uint32_t, std::vector<std::uint64_t>> values_of_communicators;
  for (Rank me = 0; me < ranks; ++me) {
    left.push_back(
        std::make_unique<State>(State{Execution(*this, grids, ranks, me), EventWriter(*this, grids, ranks, me)}));
    Result<void> done = left.back()->writer.create_communicators(*this, grids, ranks, values_of_communicators, sink);
    if (!done) return done;
  }
  values_of_communicators.clear();
  std::size_t running = left.size();
  for (std::uint64_t turn = 0; running > 0; ++turn) {
    progress(std::min(1.0, static_cast<double>(turn * kTurn) / static_cast<double>(of_first)));
    for (std::unique_ptr<State>& state : left) {
      for (int number = 0; state && number < kTurn; ++number) {
        const Step* step = state->execution.next();
        if (step == nullptr) {
          state.reset();
          --running;
          break;
        }
        if (Result<void> done = state->writer.write(*step, sink); !done) return done;
      }
    }
  }
  return {};
}

}  // namespace lbf::pattern
