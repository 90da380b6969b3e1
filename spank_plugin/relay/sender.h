// Sender: runs Delivery on a thread of its own, so that a slow lbfd never keeps the rings from being drained.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "spank_plugin/relay/delivery.h"
#include "spank_plugin/relay/pace.h"

namespace lbf::relay {

// What sending may take of the node (docs/relay.md, "Limits").
struct SenderLimits {
  // Batches that wait in memory. Above 3/4 of it draining pauses: the rings then fill, and capture counts what it
  // has no room for. Above 1/2 the sender is pressed. While lbfd is away what is above 1/4 goes into the spool.
  Bytes memory_bytes = Bytes{32} << 20;
  double network_bytes_per_s = 0;  // 0: no bound
};

class Sender {
 public:
  Sender(DeliveryOptions options, const SenderLimits& limits, RequestFunction request);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void submit(std::unique_ptr<BatchEncoder> batch);
  bool overloaded() const { return waiting_bytes() > limits_.memory_bytes / 4 * 3; }
  std::size_t waiting_bytes() const { return waiting_bytes_.load(std::memory_order_relaxed); }
  // More waits than the limits will soon allow: nothing more should be captured. True until half of that is gone.
  bool pressed();
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  DeliveryTotals totals() const;
  // The newest list of lbfd's that is newer than GENERATION; null: there is none. Cheap where there is none.
  std::shared_ptr<const protocol::ProcedureList> procedure_list_after(std::uint64_t generation) const;
  // Processor time of its thread so far.
  Seconds cpu_s() const { return cpu_s_.load(std::memory_order_relaxed); }

  // The stream is whole: delivers what waits and the stream's end until DEADLINE (CLOCK_MONOTONIC), spools
  // the rest, and joins the thread.
  Outcome finish(std::string reason, std::uint64_t deadline_ns);
  std::string trouble() const { return delivery_.trouble(); }  // REQUIRES: finish() has returned

 private:
  struct End {
    std::string reason;
    std::uint64_t deadline_ns = 0;
  };

  void run();
  std::optional<End> exchange_with_relay();
  void sleep_until(std::uint64_t until_ns, const std::optional<End>& known_end);
  void deliver_leftover();

  const SenderLimits limits_;
  Pace pace_;  // the thread's alone
  bool pressed_ = false;
  RequestFunction request_;
  std::string spool_dir_;
  std::string server_;
  Delivery delivery_;  // the thread's alone, until it is joined

  mutable Mutex mutex_;
  Condition wake_;
  std::deque<std::unique_ptr<BatchEncoder>> incoming_ GUARDED_BY(mutex_);
  std::optional<End> end_ GUARDED_BY(mutex_);
  DeliveryTotals totals_ GUARDED_BY(mutex_);
  std::shared_ptr<const protocol::ProcedureList> procedure_list_ GUARDED_BY(mutex_);

  std::atomic<std::uint64_t> list_generation_{0};
  std::atomic<std::size_t> waiting_bytes_{0};
  std::atomic<bool> lost_{false};
  std::atomic<Seconds> cpu_s_{0};
  // Spool files of this user that earlier relays left, delivered while there is nothing else to do.
  std::vector<std::string> leftovers_;
  std::unique_ptr<SpoolDelivery> leftover_;
  std::thread thread_;
};

}  // namespace lbf::relay
