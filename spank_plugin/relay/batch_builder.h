// BatchBuilder: collects events and control records of all ranks of a node and cuts them into batches.
//
// Place in the event's way: RecordConverter -> *BatchBuilder* -> Delivery. A batch is cut at kBatchRawBytes
// or kBatchAgeNs, whichever comes first, and one without content where there was none for long (docs/relay.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/units.h"
#include "event/wire.h"

namespace lbf::relay {

inline constexpr std::size_t kBatchRawBytes = 256 << 10;
inline constexpr std::uint64_t kBatchAgeNs = 1'000'000'000;
// So long after the last batch began an empty one says that the relay is there (lbfd's stream_timeout_s).
inline constexpr std::uint64_t kSignOfLifeNs = 5'000'000'000;

class BatchBuilder {
 public:
  // SUBMIT takes every finished batch, in order; it is still to be numbered and compressed (Delivery does).
  using Submit = std::function<void(std::unique_ptr<BatchEncoder>)>;
  explicit BatchBuilder(Submit submit) : submit_(std::move(submit)) {}

  // After a batch was lost no later event of the stream can be matched: they are counted and left out,
  // control records go on.
  void discard_events() { discarding_ = true; }

  void add(Rank rank, const Event& event, std::uint64_t now_ns) {
    if (discarding_) {
      ++discarded_events_;
      return;
    }
    encoder(now_ns).add(rank, event);
    if (encoder_->raw_bytes() >= kBatchRawBytes) flush();
  }
  void add_control(std::string_view json, std::uint64_t now_ns) {
    if (json.size() > kMaxControlBytes) return;
    encoder(now_ns).add_control(json);
    if (encoder_->raw_bytes() >= kBatchRawBytes) flush();
  }
  // Begins an empty batch where none was sent for long.
  void keep_alive(std::uint64_t now_ns) {
    if (now_ns - began_ns_ >= kSignOfLifeNs) encoder(now_ns);
  }
  void flush_if_old(std::uint64_t now_ns) {
    if (encoder_ && now_ns - began_ns_ >= kBatchAgeNs) flush();
  }
  void flush() {
    if (!encoder_) return;
    encoder_->close();
    submit_(std::move(encoder_));
  }
  std::uint64_t discarded_events() const { return discarded_events_; }

 private:
  BatchEncoder& encoder(std::uint64_t now_ns) {
    if (!encoder_) {
      encoder_ = std::make_unique<BatchEncoder>();
      began_ns_ = now_ns;
    }
    return *encoder_;
  }

  Submit submit_;
  std::unique_ptr<BatchEncoder> encoder_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t discarded_events_ = 0;
  bool discarding_ = false;
};

}  // namespace lbf::relay
