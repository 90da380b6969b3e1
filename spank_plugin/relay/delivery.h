// Delivery: brings the batches of one stream to lbfd, in order and exactly once, or into the spool.
//
// Place in the event's way: BatchBuilder -> *Delivery* -> HTTP POST -> lbfd. Implements the relay's side of
// docs/formats/http-v1.md and docs/relay.md ("Delivery"). A batch gets its sequence number when it is
// finished and keeps it through every retry and through the spool; a batch that has to be dropped gives its
// number back, so that the numbers that lbfd sees have no holes. Single-threaded; Sender runs it on a thread
// of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "base/units.h"
#include "cost/predicted_cost.h"
#include "event/wire.h"
#include "protocol/procedure_list.h"
#include "spank_plugin/relay/spool.h"

namespace lbf::relay {

// One HTTP request to lbfd: METHOD, TARGET, BODY, CONTENT-TYPE. Errors: kUnavailable (nobody answers).
using RequestFunction =
    std::function<Result<HttpResponse>(std::string_view, std::string_view, std::string_view, std::string_view)>;

struct DeliveryOptions {
  SpoolHeader stream;     // key, stream number, server and description of the step
  std::string spool_dir;  // empty: no spool
  Bytes spool_limit_bytes = 0;
  // Batches wait in memory, while lbfd is away, up to this much; then they go into the spool, oldest first.
  Bytes queue_limit_bytes = Bytes{8} << 20;
};

enum class Outcome {
  kUnderWay,
  kDelivered,  // lbfd has everything
  kSpooled,    // the rest is in the spool
  kLost,       // something could be neither delivered nor spooled
};

struct DeliveryTotals {
  std::uint64_t bytes_sent = 0;
  std::uint64_t batches = 0;  // acknowledged
  std::uint64_t spooled_batches = 0;
  std::uint64_t lost_batches = 0;
  bool registered = false;    // lbfd has answered, and so said:
  cost::CostHistory history;  // what earlier runs let expect
};

// "/v1/steps/CLUSTER/JOB/STEP/RESTART/streams/S", with the cluster's name percent-encoded.
std::string stream_target(const SpoolHeader& stream);

class Delivery {
 public:
  Delivery(DeliveryOptions options, RequestFunction request);

  void submit(std::unique_ptr<BatchEncoder> batch);
  // After this nothing is submitted any more; REASON goes into the stream's end.
  void end(std::string reason);

  // One piece of work (at most one request). Returns false when there is nothing to do before `wake_ns()`.
  bool advance(std::uint64_t now_ns);
  // When advance() wants to be called again although nothing was submitted; 0: never.
  std::uint64_t wake_ns() const { return retry_ns_; }

  // No more time: everything that waits goes into the spool, the end as well.
  void give_up();

  Outcome outcome() const { return outcome_; }
  bool idle() const { return up_ && !in_flight_ && !spool_ && queue_.empty(); }
  bool connected() const { return up_; }
  const DeliveryTotals& totals() const { return totals_; }
  std::size_t queued_bytes() const { return queued_bytes_; }
  // The newest that lbfd sent; null: none yet.
  const std::shared_ptr<const protocol::ProcedureList>& procedure_list() const { return procedure_list_; }
  // Why lbfd was not reached or refused, and why the spool took no more, for people; empty: no trouble.
  std::string trouble() const;

 private:
  void connect(std::uint64_t now_ns);
  void post_in_flight(std::uint64_t now_ns);
  void post_end(std::uint64_t now_ns);
  bool take_from_spool();
  bool spill_in_flight();
  void spill_oldest();
  bool open_spool();
  bool append_to_spool(std::string_view bytes);
  void lose_batch() { ++totals_.lost_batches; }
  void failed(const Error& error, std::uint64_t now_ns);
  void refuse(const Error& error);
  void take_procedure_list(std::optional<protocol::ProcedureList> list);
  std::string end_body() const;
  std::uint64_t oldest_unacknowledged() const;

  DeliveryOptions options_;
  RequestFunction request_;
  std::string target_;
  bool up_ = false;
  bool refused_ = false;
  std::uint64_t retry_ns_ = 1;  // the first attempt: at once
  std::uint64_t backoff_ns_ = 0;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t durable_below_ = 1;  // lbfd's word
  bool numbered_ = false;            // a number was given out

  std::deque<std::unique_ptr<BatchEncoder>> queue_;
  std::size_t queued_bytes_ = 0;
  std::optional<std::string> in_flight_;  // older than the spool, the spool older than the queue
  std::uint64_t in_flight_sequence_ = 0;
  bool in_flight_is_spooled_ = false;
  bool in_flight_stays_ = false;  // in memory: the spool had no room for it
  std::optional<SpoolFile> spool_;

  std::optional<std::string> end_reason_;
  Outcome outcome_ = Outcome::kUnderWay;
  DeliveryTotals totals_;
  std::string lbfd_trouble_;
  std::string spool_trouble_;
  std::shared_ptr<const protocol::ProcedureList> procedure_list_;
};

// Delivers a spool file that another relay left, a record at a time.
class SpoolDelivery {
 public:
  SpoolDelivery(SpoolFile file, RequestFunction request);
  // True: all of it is delivered and the file is gone. Errors: kUnavailable (try again later; the file
  // stays); any other: lbfd refused it for good, and the file was removed.
  Result<bool> deliver_next();
  const SpoolFile& file() const { return file_; }

 private:
  Result<bool> refused(Error error);
  SpoolFile file_;
  RequestFunction request_;
  std::string target_;
  bool connected_ = false;
  std::uint64_t durable_below_ = 1;
};

}  // namespace lbf::relay
