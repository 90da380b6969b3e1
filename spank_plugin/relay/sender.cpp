// Sender, see sender.h.
#include "spank_plugin/relay/sender.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/cpu_time.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

namespace {

// What a request has beside its body: the start line, headers, the credential.
constexpr Bytes kHeaderBytes = 600;
// Under a network limit so much may wait, in encoder bytes, which are more than what is sent of them.
constexpr Seconds kMostWaitingS = 2;

// Above it the sender is pressed.
Bytes most_waiting_bytes(const SenderLimits& limits) {
  const Bytes of_memory = limits.memory_bytes / 2;
  if (!(limits.network_bytes_per_s > 0)) return of_memory;
  return std::min(of_memory, static_cast<Bytes>(limits.network_bytes_per_s * kMostWaitingS) + kBatchRawBytes);
}

DeliveryOptions with_limits(DeliveryOptions options, const SenderLimits& limits) {
  // While lbfd is away the spool is there for what waits: no reason to capture less.
  options.queue_limit_bytes = most_waiting_bytes(limits) / 2;
  return options;
}

}  // namespace

Sender::Sender(DeliveryOptions options, const SenderLimits& limits, RequestFunction request)
    : limits_(limits),
      pace_(limits.network_bytes_per_s),
      request_([this, request = std::move(request)](std::string_view method, std::string_view target,
                                                    std::string_view body, std::string_view type) {
        pace_.sent(body.size() + kHeaderBytes, monotonic_ns());
        return request(method, target, body, type);
      }),
      spool_dir_(options.spool_dir),
      server_(options.stream.server),
      delivery_(with_limits(std::move(options), limits), request_),
      leftovers_(spool_dir_.empty() ? std::vector<std::string>() : list_spool_files(spool_dir_)) {
  // Signals are the main thread's: it sleeps in poll() and must wake.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

Sender::~Sender() {
  if (thread_.joinable()) (void)finish("relay_terminated", 0);
}

void Sender::submit(std::unique_ptr<BatchEncoder> batch) {
  {
    const MutexLock lock(mutex_);
    waiting_bytes_.fetch_add(batch->raw_bytes(), std::memory_order_relaxed);
    incoming_.push_back(std::move(batch));
  }
  wake_.notify_one();
}

bool Sender::pressed() {
  const Bytes most = most_waiting_bytes(limits_);
  pressed_ = waiting_bytes() > (pressed_ ? most / 2 : most);
  return pressed_;
}

DeliveryTotals Sender::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

std::shared_ptr<const protocol::ProcedureList> Sender::procedure_list_after(std::uint64_t generation) const {
  if (list_generation_.load(std::memory_order_relaxed) <= generation) return nullptr;
  const MutexLock lock(mutex_);
  return procedure_list_;
}

Outcome Sender::finish(std::string reason, std::uint64_t deadline_ns) {
  {
    const MutexLock lock(mutex_);
    end_ = End{std::move(reason), deadline_ns};
  }
  wake_.notify_one();
  thread_.join();
  return delivery_.outcome();
}

void Sender::deliver_leftover() {
  if (!leftover_) {
    if (leftovers_.empty()) return;
    const std::string path = std::move(leftovers_.back());
    leftovers_.pop_back();
    auto file = SpoolFile::open(path);
    // In use, not ours, or meant for another lbfd: not this relay's.
    if (!file || file->header().server != server_) return;
    leftover_ = std::make_unique<SpoolDelivery>(std::move(*file), request_);
    return;
  }
  auto done = leftover_->deliver_next();
  if (!done || *done) leftover_.reset();
}

// Takes what was submitted, and says how far the delivery is.
std::optional<Sender::End> Sender::exchange_with_relay() {
  const MutexLock lock(mutex_);
  while (!incoming_.empty()) {
    delivery_.submit(std::move(incoming_.front()));
    incoming_.pop_front();
  }
  totals_ = delivery_.totals();
  if (const auto& list = delivery_.procedure_list(); list != procedure_list_) {
    procedure_list_ = list;
    list_generation_.store(list->generation, std::memory_order_relaxed);
  }
  // Under the lock: a batch that comes now is not counted away.
  waiting_bytes_.store(delivery_.queued_bytes(), std::memory_order_relaxed);
  return end_;
}

// Less, where the relay has something to say that is not known yet.
void Sender::sleep_until(std::uint64_t until_ns, const std::optional<End>& known_end) {
  if (known_end) until_ns = std::min(until_ns, known_end->deadline_ns);
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(until_ns)};  // CLOCK_MONOTONIC
  const MutexLock lock(mutex_);
  while (incoming_.empty() && end_.has_value() == known_end.has_value()) {
    if (!wake_.wait_until(mutex_, until)) return;
  }
}

void Sender::run() {
  bool told_end = false;
  for (;;) {
    const std::optional<End> end = exchange_with_relay();
    cpu_s_.store(thread_cpu_s(), std::memory_order_relaxed);
    if (delivery_.totals().lost_batches > 0) lost_.store(true, std::memory_order_relaxed);
    if (end && !told_end) {
      delivery_.end(end->reason);
      told_end = true;
    }
    const std::uint64_t now_ns = monotonic_ns();
    if (end && now_ns >= end->deadline_ns) {
      delivery_.give_up();
      return;
    }
    if (delivery_.outcome() != Outcome::kUnderWay) return;
    if (const std::uint64_t free_ns = pace_.free_ns(now_ns); free_ns > now_ns) {
      sleep_until(free_ns, end);
      continue;
    }
    if (delivery_.advance(now_ns)) continue;
    if (delivery_.outcome() != Outcome::kUnderWay) return;

    const bool leftover_waits = !end && delivery_.idle() && (leftover_ || !leftovers_.empty());
    if (leftover_waits) {
      deliver_leftover();
      continue;
    }
    const std::uint64_t longest_ns = monotonic_ns() + 1'000'000'000;
    sleep_until(delivery_.wake_ns() > 0 ? std::min(longest_ns, delivery_.wake_ns()) : longest_ns, end);
  }
}

}  // namespace lbf::relay
