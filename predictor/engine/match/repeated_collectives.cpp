#include "predictor/engine/match/repeated_collectives.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lbf::engine {
namespace {

constexpr std::size_t kMostIdle = 16;
constexpr std::size_t kNumbersPerUnit = 16;  // that are walked over
constexpr Bytes kBytesPerUnit = 64;

}  // namespace

RepeatedCollectives::Joined RepeatedCollectives::join(std::uint32_t comm, std::uint32_t number, std::uint32_t place,
                                                      std::uint32_t size, const Call& call, bool can_be_planned) {
  const std::uint64_t key = std::uint64_t{comm} << 32 | number;
  std::uint32_t* next = next_number_.find(comm);
  if (next == nullptr) {
    next_number_.insert(comm, 0);
    next = next_number_.find(comm);
  }
  Collective* collective = nullptr;
  if (number >= *next) {
    *next = number + 1;
    if (can_be_planned) collective = begin(key, comm, place, size, call);
  } else if (const auto found = under_way_.find(key); found != under_way_.end()) {
    collective = found->second.get();
  }
  if (collective == nullptr) return {};
  Part& part = collective->plan->parts[place];
  if (collective->is_first) {
    if (!can_be_planned) return {collective, nullptr, place, false};
    part.call = call;
    part.called = true;
    return {collective, nullptr, place, !collective->plan->too_large};
  }
  if (!can_be_planned || !part.known || part.call != call) {
    put_back(*collective);
    return {};
  }
  const std::size_t numbers = collective->plan->numbers;
  if (collective->messages.size() < numbers) {  // other members were still at its first collective
    if (!make_room(numbers * sizeof(MessageIndex))) {
      put_back(*collective);
      return {};
    }
    collective->messages.resize(numbers, kNoMessage);
  }
  ++repeated_;
  return {collective, &part, place, false};
}

RepeatedCollectives::Collective* RepeatedCollectives::begin(std::uint64_t key, std::uint32_t comm, std::uint32_t place,
                                                            std::uint32_t size, const Call& call) {
  Plan* plan = find(comm, place, size, call);
  if (plan != nullptr && plan->too_large) return nullptr;
  const Bytes wanted = plan != nullptr ? plan->numbers * sizeof(MessageIndex) : size * sizeof(Part);
  if (wanted > most_bytes_ / 2 || !store_.budget().spend(wanted / kBytesPerUnit)) return nullptr;
  if (plan != nullptr) ++plan->under_way;  // it stays
  const bool has_room = make_room(sizeof(Collective) + wanted) && (plans_.size() < kMostPlans || drop_oldest());
  if (plan != nullptr) --plan->under_way;
  if (!has_room) {
    forget();
    return nullptr;
  }
  const bool is_first = plan == nullptr;
  if (is_first) {
    plan = plans_.insert(plans_.begin(), std::make_unique<Plan>())->get();
    plan->comm = comm;
    plan->parts = CountedVector<Part>(size, &account_);
    for (Part& part : plan->parts) part.steps = CountedVector<Step>(&account_);
  }
  if (idle_.empty()) {
    idle_.push_back(std::make_unique<Collective>());
    idle_.back()->messages = CountedVector<MessageIndex>(&account_);
  }
  Collective& collective = *under_way_.emplace(key, std::move(idle_.back())).first->second;
  idle_.pop_back();
  collective.plan = plan;
  collective.key = key;
  collective.is_first = is_first;
  collective.came = 0;
  collective.open = 0;
  collective.messages.assign(is_first ? 0 : plan->numbers, kNoMessage);
  ++plan->under_way;
  return &collective;
}

RepeatedCollectives::Plan* RepeatedCollectives::find(std::uint32_t comm, std::uint32_t place, std::uint32_t size,
                                                     const Call& call) {
  const auto found = std::ranges::find_if(plans_, [&](const std::unique_ptr<Plan>& plan) {
    return plan->comm == comm && plan->parts.size() == size && plan->parts[place].called &&
           plan->parts[place].call == call;
  });
  if (found == plans_.end()) return nullptr;
  std::rotate(plans_.begin(), found, found + 1);
  return plans_.front().get();
}

void RepeatedCollectives::note(const Joined& joined, std::span<const Op> ops, std::span<const std::uint32_t> taken_by,
                               bool approximated) {
  Plan& plan = *joined.collective->plan;
  Part& part = plan.parts[joined.place];
  if (!make_room(ops.size() * sizeof(Step))) {
    plan.too_large = true;
    for (Part& other : plan.parts) {
      other.known = false;
      CountedVector<Step>(&account_).swap(other.steps);
    }
    return;
  }
  part.steps.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Step step;
    step.op_kind = static_cast<std::uint32_t>(ops[i].kind) & 63;
    Bytes bytes = 0;
    if (is_local_work(ops[i].kind)) {
      bytes = ops[i].local_bytes();
    } else {
      const Message& message = store_.message(ops[i].message());
      const bool sends = ops[i].kind == OpKind::kSend || ops[i].kind == OpKind::kWaitSend;
      step.peer = static_cast<std::uint32_t>(sends ? message.dst : message.src) & 0xffffff;
      step.takes = taken_by[i] == i ? 1 : 0;
      step.nonblocking = (ops[i].flags & kOpNonblocking) != 0 ? 1 : 0;
      step.number = taken_by[i] == i ? message.plan_number : static_cast<std::uint32_t>(i) - taken_by[i];
      if (sends) bytes = message.bytes;
    }
    if (bytes > std::numeric_limits<std::uint32_t>::max()) {
      CountedVector<Step>(&account_).swap(part.steps);
      return;
    }
    step.bytes = static_cast<std::uint32_t>(bytes);
    part.steps.push_back(step);
  }
  part.approximated = approximated;
  part.known = true;
}

bool RepeatedCollectives::make_room(Bytes bytes) {
  while (account_.bytes + bytes > most_bytes_) {
    if (!drop_oldest()) return false;
  }
  return true;
}

bool RepeatedCollectives::drop_oldest() {
  idle_.clear();
  const auto oldest =
      std::find_if(plans_.rbegin(), plans_.rend(), [](const auto& plan) { return plan->under_way == 0; });
  if (oldest == plans_.rend()) return false;
  plans_.erase(std::prev(oldest.base()));
  return true;
}

void RepeatedCollectives::end(Collective& collective) {
  if (collective.open > 0) {
    put_back(collective);
    return;
  }
  --collective.plan->under_way;
  const auto found = under_way_.find(collective.key);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(found->second));
  under_way_.erase(found);
}

void RepeatedCollectives::put_back(Collective& collective) {
  (void)store_.budget().spend(collective.messages.size() / kNumbersPerUnit);
  // Of one channel in ascending order, as they were taken.
  for (const MessageIndex index : collective.messages) {
    if (index == kNoMessage || index == kPaired) continue;
    const Message& message = store_.message(index);
    channels_.put({message.comm | kCollectiveChannel, message.src, message.dst, message.tag},
                  message.sent ? ChannelEnd::kSends : ChannelEnd::kReceives, index);
  }
  collective.open = 0;
  end(collective);
}

void RepeatedCollectives::forget() {
  while (!under_way_.empty()) put_back(*under_way_.begin()->second);
  plans_.clear();
  idle_.clear();
}

void RepeatedCollectives::forget(std::uint32_t comm) {
  std::vector<Collective*> of_comm;
  for (const auto& [key, collective] : under_way_) {
    if (key >> 32 == comm) of_comm.push_back(collective.get());
  }
  for (Collective* const collective : of_comm) put_back(*collective);
  std::erase_if(plans_, [comm](const auto& plan) { return plan->comm == comm; });
}

}  // namespace lbf::engine
