// Sender: runs Delivery on a thread of its own, so that a slow lbfd never keeps the rings from being drained.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "spank_plugin/relay/delivery.h"

namespace lbf::relay {

// Batches that wait, in encoder bytes, above which draining pauses: the rings then fill, and capture counts
// what it has no room for. Bounds the relay's memory.
inline constexpr std::size_t kMaxWaitingBytes = 24 << 20;

class Sender {
 public:
  Sender(DeliveryOptions options, RequestFunction request);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void submit(std::unique_ptr<BatchEncoder> batch);
  bool overloaded() const { return waiting_bytes_.load(std::memory_order_relaxed) > kMaxWaitingBytes; }
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  DeliveryTotals totals() const;

  // The stream is whole: delivers what waits and the stream's end until DEADLINE (CLOCK_MONOTONIC), spools
  // the rest, and joins the thread.
  Outcome finish(std::string reason, std::uint64_t deadline_ns);
  std::string trouble() const { return delivery_.trouble(); }  // REQUIRES: finish() has returned

 private:
  void run();
  void deliver_leftover();

  RequestFunction request_;
  std::string spool_dir_;
  std::string server_;
  Delivery delivery_;  // the thread's alone, until it is joined

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<BatchEncoder>> incoming_;
  std::size_t incoming_bytes_ = 0;
  std::string end_reason_;
  bool ending_ = false;
  std::uint64_t deadline_ns_ = 0;
  DeliveryTotals totals_;

  std::atomic<std::size_t> waiting_bytes_{0};
  std::atomic<bool> lost_{false};
  // Spool files of this user that earlier relays left, delivered while there is nothing else to do.
  std::vector<std::string> leftovers_;
  std::unique_ptr<SpoolDelivery> leftover_;
  std::thread thread_;
};

}  // namespace lbf::relay
