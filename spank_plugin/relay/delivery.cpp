// Delivery, see delivery.h.
#include "spank_plugin/relay/delivery.h"

#include <algorithm>
#include <span>
#include <utility>

#include "protocol/stream_messages.h"

namespace lbf::relay {
namespace {

constexpr std::uint64_t kFirstBackoffNs = 100'000'000;
constexpr std::uint64_t kMaxBackoffNs = 2'000'000'000;
constexpr std::string_view kBatchType = "application/x-lbf-batch";
constexpr std::string_view kJsonType = "application/json";

// What earlier runs let expect; 0: nothing.
cost::CostHistory history_of(const protocol::StreamAnswer& answer) {
  return {answer.expected_calls_per_s.value_or(0), answer.expected_call_s.value_or(0),
          answer.expected_relay_share.value_or(0)};
}

// Trying again can help: the daemon or its munged is busy or starting, or lost what it knew of the stream.
bool is_passing(int status) {
  return status == 401 || status == 404 || status == 408 || status == 429 || status >= 500;
}

std::uint64_t sequence_of(std::string_view batch) {
  auto header = read_batch_header(std::as_bytes(std::span(batch.data(), batch.size())));
  return header ? header->sequence : 0;
}

Error unexpected(const HttpResponse& response) {
  if (response.status >= 400) {
    Error error = error_of_response(response);
    error.message = "lbfd refused: " + error.message;
    return error;
  }
  return {ErrorCode::kInternal, "lbfd answered " + std::to_string(response.status) + " without next_sequence"};
}

}  // namespace

std::string stream_target(const SpoolHeader& stream) {
  std::string target = "/v1/steps/";
  for (const char c : stream.key) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '_' || c == '.' || c == '/';
    if (plain) {
      target += c;
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      target += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return target + "/streams/" + std::to_string(stream.stream);
}

Delivery::Delivery(DeliveryOptions options, RequestFunction request)
    : options_(std::move(options)), request_(std::move(request)), target_(stream_target(options_.stream)) {}

void Delivery::submit(std::unique_ptr<BatchEncoder> batch) {
  queued_bytes_ += batch->raw_bytes();
  queue_.push_back(std::move(batch));
}

void Delivery::end(std::string reason) {
  end_reason_ = std::move(reason);
}

std::string Delivery::end_body() const {
  return protocol::encode(protocol::StreamEnd{(refused_ ? durable_below_ : next_sequence_) - 1, totals_.lost_batches,
                                              end_reason_.value_or("relay_terminated"),
                                              totals_.lost_batches > 0 ? trouble() : std::string()});
}

std::uint64_t Delivery::oldest_unacknowledged() const {
  if (in_flight_) return in_flight_sequence_;
  return spool_ ? durable_below_ : next_sequence_;
}

void Delivery::failed(const Error& error, std::uint64_t now_ns) {
  up_ = false;
  if (!refused_) lbfd_trouble_ = error.message;
  backoff_ns_ = backoff_ns_ == 0 ? kFirstBackoffNs : std::min(backoff_ns_ * 2, kMaxBackoffNs);
  retry_ns_ = now_ns + backoff_ns_;
}

std::string Delivery::trouble() const {
  if (lbfd_trouble_.empty() || spool_trouble_.empty()) return lbfd_trouble_ + spool_trouble_;
  return lbfd_trouble_ + "; " + spool_trouble_;
}

void Delivery::refuse(const Error& error) {
  lbfd_trouble_ = error.message;
  refused_ = true;
  up_ = false;
  retry_ns_ = 0;
  if (in_flight_ && !in_flight_is_spooled_) ++totals_.lost_batches;
  in_flight_.reset();
  if (spool_) {
    while (take_from_spool()) ++totals_.lost_batches;
    in_flight_.reset();
    if (spool_) spool_->remove();
    spool_.reset();
  }
}

void Delivery::take_procedure_list(std::optional<protocol::ProcedureList> list) {
  if (list && (!procedure_list_ || list->generation > procedure_list_->generation))
    procedure_list_ = std::make_shared<const protocol::ProcedureList>(std::move(*list));
}

void Delivery::connect(std::uint64_t now_ns) {
  auto response = request_("PUT", target_, options_.stream.description, kJsonType);
  if (!response) return failed(response.error(), now_ns);
  protocol::StreamAnswer answer = protocol::decode_stream_answer(response->body);
  const std::uint64_t next = response->status == 200 ? answer.next_sequence : 0;
  if (next == 0) {
    const Error error = unexpected(*response);
    return is_passing(response->status) || response->status < 400 ? failed(error, now_ns) : refuse(error);
  }
  if (!numbered_) {
    next_sequence_ = next;  // another relay of this node and step has been here: go on after it
  } else if (next < oldest_unacknowledged()) {
    return refuse({ErrorCode::kInternal, "lbfd wants batch " + std::to_string(next) +
                                             " again, which it had acknowledged: has its trace store been removed?"});
  }
  if (numbered_ && next > next_sequence_) {
    return refuse({ErrorCode::kInternal, "lbfd has batch " + std::to_string(next - 1) + " of this stream, the relay " +
                                             "has not sent it: do two relays have the same node index?"});
  }
  totals_.history = history_of(answer);
  totals_.registered = true;
  take_procedure_list(std::move(answer.procedures));
  durable_below_ = next;
  if (in_flight_ && in_flight_sequence_ < next) in_flight_.reset();
  up_ = true;
  backoff_ns_ = 0;
  retry_ns_ = 0;
}

void Delivery::post_in_flight(std::uint64_t now_ns) {
  auto response =
      request_("POST", target_ + "/batches/" + std::to_string(in_flight_sequence_), *in_flight_, kBatchType);
  if (!response) return failed(response.error(), now_ns);
  protocol::StreamAnswer answer = protocol::decode_stream_answer(response->body);
  const std::uint64_t next = answer.next_sequence;
  if ((response->status == 200 || response->status == 409) && next > in_flight_sequence_) {
    totals_.bytes_sent += in_flight_->size();
    ++totals_.batches;
    take_procedure_list(std::move(answer.procedures));
    durable_below_ = next;
    in_flight_.reset();
    backoff_ns_ = 0;
    return;
  }
  // 409: lbfd lacks an earlier batch. Asking for the stream again says which, and whether that can be mended.
  const Error error = unexpected(*response);
  if (is_passing(response->status) || response->status == 409 || response->status < 400) return failed(error, now_ns);
  refuse(error);
}

void Delivery::post_end(std::uint64_t now_ns) {
  auto response = request_("POST", target_ + "/end", end_body(), kJsonType);
  if (!response) return failed(response.error(), now_ns);
  if (response->status == 200) {
    outcome_ = totals_.lost_batches > 0 ? Outcome::kLost : Outcome::kDelivered;
    return;
  }
  const Error error = unexpected(*response);
  if (is_passing(response->status)) return failed(error, now_ns);
  if (!refused_) lbfd_trouble_ = error.message;
  outcome_ = Outcome::kLost;
}

bool Delivery::take_from_spool() {
  while (spool_) {
    auto record = spool_->next();
    if (!record || !*record) {
      spool_->remove();  // all of it is acknowledged: the last one was, before this was called
      spool_.reset();
      return false;
    }
    if ((*record)->kind != SpoolRecordKind::kBatch) continue;
    const std::uint64_t sequence = sequence_of((*record)->bytes);
    if (sequence < durable_below_) continue;
    in_flight_ = std::move((*record)->bytes);
    in_flight_sequence_ = sequence;
    in_flight_is_spooled_ = true;
    in_flight_stays_ = false;
    return true;
  }
  return false;
}

bool Delivery::open_spool() {
  if (spool_) return true;
  Result<SpoolFile> created = options_.spool_dir.empty()
                                  ? Error{ErrorCode::kLimit, "no spool directory is configured"}
                                  : SpoolFile::create(options_.spool_dir, options_.stream, options_.spool_limit_bytes);
  if (created) {
    spool_ = std::move(*created);
  } else {
    spool_trouble_ = created.error().message;
  }
  return spool_.has_value();
}

bool Delivery::append_to_spool(std::string_view bytes) {
  if (!open_spool()) return false;
  const auto appended = spool_->append(SpoolRecordKind::kBatch, bytes);
  if (!appended) spool_trouble_ = appended.error().message;
  return appended.ok();
}

// First, so that the file is in order. Without room it stays in memory, also when there is room later: it may have
// arrived already, and younger ones may be in the file by then.
bool Delivery::spill_in_flight() {
  if (!in_flight_ || in_flight_is_spooled_ || in_flight_stays_) return false;
  in_flight_stays_ = true;
  if (!append_to_spool(*in_flight_)) return false;
  ++totals_.spooled_batches;
  in_flight_.reset();
  return true;
}

// Moves the oldest batch that is only in memory into the spool; without room it is lost.
void Delivery::spill_oldest() {
  if (spill_in_flight() || queue_.empty()) return;
  std::unique_ptr<BatchEncoder> batch = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= std::min(queued_bytes_, batch->raw_bytes());
  if (totals_.lost_batches > 0 && batch->events() > 0) return lose_batch();  // after a hole it cannot be matched
  const std::string bytes = batch->finish(options_.stream.stream, next_sequence_);
  if (!append_to_spool(bytes)) return lose_batch();
  numbered_ = true;
  ++next_sequence_;
  ++totals_.spooled_batches;
}

bool Delivery::advance(std::uint64_t now_ns) {
  if (outcome_ != Outcome::kUnderWay) return false;
  if (refused_) {
    const bool had_work = !queue_.empty();
    totals_.lost_batches += queue_.size();
    queue_.clear();
    queued_bytes_ = 0;
    if (end_reason_) post_end(now_ns);  // tells what is missing, if lbfd wants to know at all
    if (end_reason_ && outcome_ == Outcome::kUnderWay) outcome_ = Outcome::kLost;
    return had_work;
  }
  if (!up_) {
    if (now_ns >= retry_ns_) {
      connect(now_ns);
      return true;
    }
    if (queued_bytes_ <= options_.queue_limit_bytes) return false;
    spill_oldest();
    return true;
  }
  if (!in_flight_ && !take_from_spool() && !queue_.empty()) {
    std::unique_ptr<BatchEncoder> batch = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= std::min(queued_bytes_, batch->raw_bytes());
    if (totals_.lost_batches > 0 && batch->events() > 0) {
      lose_batch();
      return true;
    }
    in_flight_sequence_ = next_sequence_++;
    in_flight_ = batch->finish(options_.stream.stream, in_flight_sequence_);
    in_flight_is_spooled_ = false;
    in_flight_stays_ = false;
    numbered_ = true;
  }
  if (in_flight_) {
    post_in_flight(now_ns);
    return true;
  }
  if (!end_reason_) return false;
  post_end(now_ns);
  return true;
}

void Delivery::give_up() {
  if (outcome_ != Outcome::kUnderWay) return;
  const std::uint64_t lost_before = totals_.lost_batches;
  if (up_ || lbfd_trouble_.empty())
    lbfd_trouble_ = "lbfd did not take everything before the step's end had waited enough";
  spill_in_flight();
  const bool ends_in_a_hole = in_flight_ && !in_flight_is_spooled_;  // the only copy
  if (ends_in_a_hole) {
    // lbfd takes nothing behind it.
    totals_.lost_batches += queue_.size();
    queue_.clear();
    queued_bytes_ = 0;
    refuse({ErrorCode::kLimit, lbfd_trouble_});
  }
  while (!queue_.empty()) spill_oldest();
  if (!spool_ && !options_.spool_dir.empty() && (ends_in_a_hole || totals_.lost_batches == lost_before)) {
    // Nothing waits but the end itself, without which lbfd would wait for the stream until its time-out.
    (void)open_spool();
  }
  const bool end_spooled = spool_ && spool_->append(SpoolRecordKind::kEnd, end_body()).ok();
  outcome_ = end_spooled && totals_.lost_batches == 0 ? Outcome::kSpooled : Outcome::kLost;
}

SpoolDelivery::SpoolDelivery(SpoolFile file, RequestFunction request)
    : file_(std::move(file)), request_(std::move(request)), target_(stream_target(file_.header())) {}

Result<bool> SpoolDelivery::refused(Error error) {
  error.message = "spool " + file_.path() + " was refused and removed: " + error.message;
  file_.remove();
  return error;
}

Result<bool> SpoolDelivery::deliver_next() {
  if (!connected_) {
    auto response = request_("PUT", target_, file_.header().description, kJsonType);
    if (!response) return Error{ErrorCode::kUnavailable, response.error().message};  // lbfd, or munge, is not there
    durable_below_ = response->status == 200 ? protocol::decode_stream_answer(response->body).next_sequence : 0;
    if (durable_below_ == 0) {
      const Error error = unexpected(*response);
      if (is_passing(response->status) || response->status < 400) {
        return Error{ErrorCode::kUnavailable, error.message};
      }
      return refused(error);
    }
    connected_ = true;
    return false;
  }
  auto record = file_.next();
  if (!record) return record.error();
  if (!*record) {
    file_.remove();
    return true;
  }
  const bool batch = (*record)->kind == SpoolRecordKind::kBatch;
  const std::uint64_t sequence = batch ? sequence_of((*record)->bytes) : 0;
  if (batch && sequence < durable_below_) return false;
  auto response = request_("POST", batch ? target_ + "/batches/" + std::to_string(sequence) : target_ + "/end",
                           (*record)->bytes, batch ? kBatchType : kJsonType);
  if (!response) return Error{ErrorCode::kUnavailable, response.error().message};
  if (batch && response->status == 409 && protocol::decode_stream_answer(response->body).next_sequence > sequence)
    return false;
  if (response->status == 200) return false;
  const Error error = unexpected(*response);
  if (is_passing(response->status)) return Error{ErrorCode::kUnavailable, error.message};
  return refused(error);
}

}  // namespace lbf::relay
