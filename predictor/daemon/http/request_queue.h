// RequestQueue: which request gets the next worker thread. Users take turns, and one user has at most a part of the
// threads, so that slow requests of one do not hold up the others. Requests with a body, those without and those that
// need no credential have threads of their own: none waits behind another kind.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "predictor/daemon/http/share_count.h"

namespace lbf::daemon {

enum class RequestKind { kOpen, kWithoutBody, kWithBody };

struct RequestQueueLimits {
  unsigned threads = 4;               // of requests with a body, and again of those without
  std::size_t threads_per_user = 2;   // of each kind
  std::size_t answers_per_user = 16;  // that are held (hold_answer)

  // All kinds together.
  unsigned all_threads() const { return 2 * threads + kOpenThreads; }
  static constexpr unsigned kOpenThreads = 1;
};

// REQUIRES: used by the thread that runs `io`; io and workers outlive the object. `workers` has all_threads().
class RequestQueue {
 public:
  struct Job {
    std::function<void()> work;  // on a worker
    std::function<void()> then;  // after it, on the thread of `io`; both end there
  };

  RequestQueue(boost::asio::io_context& io, boost::asio::thread_pool& workers, RequestQueueLimits limits)
      : io_(io), workers_(workers), limits_(limits) {}

  void submit(RequestKind kind, const std::string& user, Job job);
  // The same for the rest of an answer that is held: it does not wait for the end of held ones.
  void submit_next_piece(const std::string& user, Job job);

  // An answer that stays in memory, or in a source that does, until its reader has taken it. A user who has
  // answers_per_user of them gets no further turn.
  class HeldAnswer {
   public:
    HeldAnswer() = default;
    HeldAnswer(RequestQueue& queue, const std::string& user) : queue_(&queue), part_(queue.held_answers_, user) {}
    HeldAnswer(HeldAnswer&& other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), part_(std::move(other.part_)) {}
    HeldAnswer& operator=(HeldAnswer&&) = delete;
    ~HeldAnswer() { give_back(); }
    void give_back();

   private:
    RequestQueue* queue_ = nullptr;
    ShareCount::Part part_;
  };
  HeldAnswer hold_answer(const std::string& user) { return {*this, user}; }

  // Forgets what has not begun.
  void clear();

 private:
  struct UserJobs {
    std::deque<Job> next_pieces;
    std::deque<Job> jobs;
    std::size_t running = 0;
  };
  struct Lane {
    std::map<std::string, UserJobs> users;
    std::deque<std::string> turns;  // users with jobs that have not begun
    unsigned running = 0;
  };

  Lane& lane(RequestKind kind) { return lanes_[static_cast<std::size_t>(kind)]; }
  unsigned threads_of(RequestKind kind) const {
    return kind == RequestKind::kOpen ? RequestQueueLimits::kOpenThreads : limits_.threads;
  }
  void enqueue(RequestKind kind, const std::string& user, std::deque<Job> UserJobs::*queue, Job job);
  void dispatch(RequestKind kind);
  bool start_one(RequestKind kind, const std::string& user, UserJobs& jobs);
  void ended(RequestKind kind, const std::string& user);

  boost::asio::io_context& io_;
  boost::asio::thread_pool& workers_;
  const RequestQueueLimits limits_;
  std::array<Lane, 3> lanes_;
  ShareCount held_answers_;
};

}  // namespace lbf::daemon
