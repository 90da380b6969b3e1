// StepRun: what it may take of lbfd: memory, and processor time of one turn (docs/lbfd.md, "Bounds"). See step_run.h.
#include <fmt/format.h>
#include <malloc.h>

#include <utility>

#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {
namespace {

constexpr std::chrono::seconds kCountTrace{1};  // it has a part for each stream

}  // namespace

StepRunOptions StepRun::with_limits(StepRunOptions options) {
  options.limits.memory_bytes = options.bounds.step_memory_bytes;
  options.limits.stop = [this](Seconds cpu_s, Bytes more) { return must_stop(cpu_s, more); };
  options.why_no_memory = [this](Bytes more) REQUIRES(mutex_) { return why_no_memory(held_bytes() + more); };
  return options;
}

bool StepRun::must_stop(Seconds cpu_s, Bytes more) {
  const Seconds turn_cpu_s = options_.bounds.turn_cpu_s;
  Stop stop = Stop::kNo;
  std::string why;
  if (options_.lbfd_ends && options_.lbfd_ends()) {
    stop = Stop::kLbfdEnds;
  } else if (turn_cpu_s > 0 && cpu_s > turn_cpu_s) {
    stop = Stop::kTurn;
    why = fmt::format("one batch took more than {:g} s of lbfd's processor time (turn_limit_s)", turn_cpu_s);
  } else if (why = why_no_memory(counted_bytes_ + more); !why.empty()) {
    stop = Stop::kMemory;
  }
  if (stop == Stop::kNo) return false;
  const MutexLock lock(stop_mutex_);
  if (stop_ != Stop::kNo && stop != Stop::kLbfdEnds) return true;
  stop_ = stop;
  why_stop_ = std::move(why);
  return true;
}

StepRun::Stop StepRun::asked_stop() const {
  const MutexLock lock(stop_mutex_);
  return stop_;
}

std::string StepRun::why_no_memory(Bytes bytes) const {
  if (account_ != nullptr) return account_->why_not(bytes);
  const Bytes limit = options_.bounds.step_memory_bytes;
  if (limit == 0 || bytes <= limit) return {};
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
  counted_bytes_ = held_bytes();
  predictions_.note_counted();
  if (account_ != nullptr) account_->set(counted_bytes_);
}

// What is beside the configuration that ran goes first, then its replay, then what is only counted.
void StepRun::settle() {
  count_held();
  Stop stop = Stop::kNo;
  std::string why;
  {
    const MutexLock lock(stop_mutex_);
    stop = std::exchange(stop_, Stop::kNo);
    why = std::exchange(why_stop_, {});
  }
  if (stop == Stop::kLbfdEnds) {
    interrupted_ = true;
    return;
  }
  const bool was_stopped = stop != Stop::kNo;
  if (released_) return;
  if (was_stopped) why_stopped_ = why;
  if (!was_stopped) why = why_no_memory(held_bytes());
  if (why.empty() && !predictions_.ran_out()) return;
  const bool is_composition_enough = !was_stopped || predictions_.is_only_composition_stopped();
  if (!predictions_.ran_out() && predictions_.give_up_composition()) {
    remarks_.add_note("what the longest path through the run is made of is not known: " + why);
    count_held();
    if (is_composition_enough) why = why_no_memory(held_bytes());
    if (why.empty()) return;
  }
  if (!predictions_.ran_out() && (predictions_.has_passes() || procedures_.has_pass())) {
    predictions_.give_up_further_targets();
    procedures_.give_up();
    remarks_.add_note("targets beside the configuration that ran, and procedures, are not predicted: " + why);
    count_held();
    why = why_no_memory(held_bytes());
    if (why.empty()) return;
  }
  // A replay that was stopped where a rank was closed says so with its next event only.
  give_up_replays(why.empty() ? why_stopped_ : why);
  count_held();
  if (why = why_no_memory(held_bytes()); why.empty()) return;
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
