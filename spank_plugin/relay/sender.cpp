// Sender, see sender.h.
#include "spank_plugin/relay/sender.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {

Sender::Sender(DeliveryOptions options, RequestFunction request)
    : request_(request),
      spool_dir_(options.spool_dir),
      server_(options.stream.server),
      delivery_(std::move(options), std::move(request)),
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
    const std::lock_guard lock(mutex_);
    incoming_bytes_ += batch->raw_bytes();
    waiting_bytes_.fetch_add(batch->raw_bytes(), std::memory_order_relaxed);
    incoming_.push_back(std::move(batch));
  }
  wake_.notify_one();
}

DeliveryTotals Sender::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

Outcome Sender::finish(std::string reason, std::uint64_t deadline_ns) {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    end_reason_ = std::move(reason);
    deadline_ns_ = deadline_ns;
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
  auto done = leftover_->step();
  if (!done || *done) leftover_.reset();
}

void Sender::run() {
  bool told_end = false;
  for (;;) {
    bool ending = false;
    {
      std::unique_lock lock(mutex_);
      while (!incoming_.empty()) {
        delivery_.submit(std::move(incoming_.front()));
        incoming_.pop_front();
      }
      incoming_bytes_ = 0;
      ending = ending_;
      totals_ = delivery_.totals();
    }
    waiting_bytes_.store(delivery_.queued_bytes(), std::memory_order_relaxed);
    if (delivery_.totals().lost_batches > 0) lost_.store(true, std::memory_order_relaxed);
    if (ending && !told_end) {
      delivery_.end(end_reason_);
      told_end = true;
    }
    std::uint64_t now_ns = monotonic_ns();
    if (ending && now_ns >= deadline_ns_) {
      delivery_.give_up();
      return;
    }
    if (delivery_.outcome() != Outcome::kUnderWay) return;
    if (delivery_.step(now_ns)) continue;
    if (delivery_.outcome() != Outcome::kUnderWay) return;

    const bool leftover_waits = !ending && delivery_.idle() && (leftover_ || !leftovers_.empty());
    if (leftover_waits) {
      deliver_leftover();
      continue;
    }
    std::unique_lock lock(mutex_);
    now_ns = monotonic_ns();
    std::uint64_t until_ns = now_ns + 1'000'000'000;
    if (delivery_.wake_ns() > 0) until_ns = std::min(until_ns, std::max(delivery_.wake_ns(), now_ns));
    if (ending) until_ns = std::min(until_ns, std::max(deadline_ns_, now_ns));
    wake_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns),
                   [&] { return !incoming_.empty() || ending_ != ending; });
  }
}

}  // namespace lbf::relay
