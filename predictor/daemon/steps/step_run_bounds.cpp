// StepRun: what it may take of lbfd: memory, and processor time of one turn (docs/lbfd.md, "Bounds"). See step_run.h.
#include <fmt/format.h>
#include <malloc.h>

#include <utility>

#include "base/cpu_time.h"
#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {
namespace {

constexpr std::chrono::seconds kCountTrace{1};  // it has a part for each stream

}  // namespace

StepRunOptions StepRun::with_limits(StepRunOptions options) {
  options.limits.memory_bytes = options.bounds.step_memory_bytes;
  options.limits.stop = [this]() REQUIRES(mutex_) { return must_stop(); };
  options.why_no_memory = [this](Bytes more) REQUIRES(mutex_) { return why_no_memory(more); };
  return options;
}

bool StepRun::must_stop() {
  if (stop_ != Stop::kNo) return true;
  const Seconds turn_cpu_s = options_.bounds.turn_cpu_s;
  if (options_.lbfd_ends && options_.lbfd_ends()) {
    stop_ = Stop::kLbfdEnds;
  } else if (turn_cpu_s > 0 && thread_cpu_s() - turn_begin_s_ > turn_cpu_s) {
    stop_ = Stop::kTurn;
    why_stop_ = fmt::format("one batch took more than {:g} s of lbfd's processor time (turn_limit_s)", turn_cpu_s);
  } else if (std::string why = why_no_memory(0); !why.empty()) {
    stop_ = Stop::kMemory;
    why_stop_ = std::move(why);
  }
  return stop_ != Stop::kNo;
}

std::string StepRun::why_no_memory(Bytes more) const {
  if (account_ != nullptr) return account_->why_not(held_bytes() + more);
  const Bytes limit = options_.bounds.step_memory_bytes;
  if (limit == 0 || held_bytes() + more <= limit) return {};
  return fmt::format("the step needs more than {} MiB of lbfd's memory (step_memory_mb)", limit >> 20);
}

Bytes StepRun::held_bytes() const {
  return beside_replays_bytes_ + predictions_.memory_bytes() + procedures_.memory_bytes();
}

void StepRun::count_held() {
  if (Clock::now() - trace_counted_ >= kCountTrace) {
    trace_counted_ = Clock::now();
    trace_bytes_ = trace_->memory_bytes();
  }
  beside_replays_bytes_ = trace_bytes_ + view_bytes_ + totals_.memory_bytes() + (reader_ ? reader_->memory_bytes() : 0);
  if (account_ != nullptr) account_->set(held_bytes());
}

// What is beside the configuration that ran goes first, then its replay, then what is only counted.
void StepRun::settle() {
  count_held();
  if (stop_ == Stop::kLbfdEnds) {
    interrupted_ = true;
    return;
  }
  std::string why = std::exchange(why_stop_, {});
  const bool was_stopped = std::exchange(stop_, Stop::kNo) != Stop::kNo;
  if (released_) return;
  if (was_stopped) why_stopped_ = why;
  if (!was_stopped) why = why_no_memory(0);
  if (why.empty() && !predictions_.ran_out()) return;
  if (!predictions_.ran_out() && predictions_.give_up_composition()) {
    remarks_.add_note("what the longest path through the run is made of is not known: " + why);
    count_held();
    why = why_no_memory(0);
    if (why.empty()) return;
  }
  if (!predictions_.ran_out() && (predictions_.has_passes() || procedures_.has_pass())) {
    predictions_.give_up_further_targets();
    procedures_.give_up();
    remarks_.add_note("targets beside the configuration that ran, and procedures, are not predicted: " + why);
    count_held();
    why = why_no_memory(0);
    if (why.empty()) return;
  }
  // A replay that was stopped where a rank was closed says so with its next event only.
  give_up_replays(why.empty() ? why_stopped_ : why);
  count_held();
  if (why = why_no_memory(0); why.empty()) return;
  remarks_.add_reason("the step is not followed any further: " + why);
  release();
}

// What is only counted goes on.
void StepRun::give_up_replays(const std::string& why) {
  if (!why.empty()) remarks_.add_reason("the prediction stopped: " + why);
  predictions_.stop_feeding();
  predictions_.release();
  procedures_.give_up();
}

void StepRun::release() {
  constexpr Bytes kLarge = Bytes{64} << 20;
  const Bytes held = held_bytes();
  publish();
  released_ = true;
  predictions_.release();
  procedures_.clear();
  totals_.clear();
  reader_.reset();
  count_held();
  if (held > kLarge) (void)::malloc_trim(0);  // small blocks of many ranks would stay with the process
}

}  // namespace lbf::daemon
