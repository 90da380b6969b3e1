// RequestQueue, see request_queue.h.
#include "predictor/daemon/http/request_queue.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace lbf::daemon {

void RequestQueue::submit(RequestKind kind, const std::string& user, Job job) {
  enqueue(kind, user, &UserJobs::jobs, std::move(job));
}

void RequestQueue::submit_next_piece(const std::string& user, Job job) {
  enqueue(RequestKind::kWithoutBody, user, &UserJobs::next_pieces, std::move(job));
}

void RequestQueue::enqueue(RequestKind kind, const std::string& user, std::deque<Job> UserJobs::*queue, Job job) {
  UserJobs& jobs = lane(kind).users[user];
  if (jobs.jobs.empty() && jobs.next_pieces.empty()) lane(kind).turns.push_back(user);
  (jobs.*queue).push_back(std::move(job));
  dispatch(kind);
}

void RequestQueue::dispatch(RequestKind kind) {
  Lane& here = lane(kind);
  for (std::size_t passed_over = 0; here.running < threads_of(kind) && passed_over < here.turns.size();) {
    std::string user = std::move(here.turns.front());
    here.turns.pop_front();
    UserJobs& jobs = here.users[user];
    passed_over = start_one(kind, user, jobs) ? 0 : passed_over + 1;
    if (!jobs.jobs.empty() || !jobs.next_pieces.empty()) here.turns.push_back(std::move(user));
  }
}

bool RequestQueue::start_one(RequestKind kind, const std::string& user, UserJobs& jobs) {
  if (jobs.running >= limits_.threads_per_user) return false;
  std::deque<Job>& queue = jobs.next_pieces.empty() ? jobs.jobs : jobs.next_pieces;
  if (&queue == &jobs.jobs && held_answers_.of(user) >= limits_.answers_per_user) return false;
  ++jobs.running;
  ++lane(kind).running;
  boost::asio::post(workers_, [this, kind, user, job = std::move(queue.front())]() mutable {
    job.work();
    boost::asio::io_context& io = io_;
    boost::asio::post(io, [this, kind, user = std::move(user), job = std::move(job)] {
      job.then();
      ended(kind, user);
    });
  });
  queue.pop_front();
  return true;
}

void RequestQueue::ended(RequestKind kind, const std::string& user) {
  Lane& here = lane(kind);
  --here.running;
  const auto found = here.users.find(user);
  if (found != here.users.end()) {
    const UserJobs& jobs = found->second;
    --found->second.running;
    if (jobs.running == 0 && jobs.jobs.empty() && jobs.next_pieces.empty()) here.users.erase(found);
  }
  dispatch(kind);
}

void RequestQueue::HeldAnswer::give_back() {
  part_.give_back();
  RequestQueue* const queue = std::exchange(queue_, nullptr);
  if (queue == nullptr) return;
  queue->dispatch(RequestKind::kWithoutBody);
  queue->dispatch(RequestKind::kWithBody);
}

void RequestQueue::clear() {
  for (Lane& here : lanes_) {
    std::map<std::string, UserJobs> forgotten;  // ends here: its owners may come back with their answers
    forgotten.swap(here.users);
    here.turns.clear();
  }
}

}  // namespace lbf::daemon
