// Wait meter: how long the body of a parallel region waited, from as many readings of the clock as its time pays for.
//
// Place in the event's way: inside *capture*, under the preload (regions.cpp); arithmetic alone. A body changes from
// work to waiting at each barrier, and back for each task that it runs there. Where it changes so often that reading
// the clock each time takes more than 1/100 of the time, changes are passed now and then; the time until the next one
// that is read is shared like the body's time before. docs/adr/0012-threads.md. Times are in ticks.
#pragma once

#include <cstdint>

namespace lbf::capture {

// What a thread may spend on readings: 1/100 of the time, and of time in which it had none to make some in advance.
class ReadingBudget {
 public:
  static constexpr std::uint64_t kShare = 100;
  static constexpr std::uint64_t kMostInAdvance = 1024;  // readings
  static constexpr std::uint64_t kRun = 32;              // readings in a row, after changes that were passed

  // One reading, at NOW, that took COST. Returns how many readings may follow.
  constexpr std::uint64_t pay(std::uint64_t now, std::uint64_t cost) noexcept {
    const std::uint64_t price = kShare * cost;
    if (price == 0) return kMostInAdvance;
    left_ += now - paid_at_;
    paid_at_ = now;
    if (left_ > kMostInAdvance * price) left_ = kMostInAdvance * price;
    left_ -= left_ < price ? left_ : price;
    return left_ / price;
  }

 private:
  std::uint64_t paid_at_ = 0;
  std::uint64_t left_ = 0;
};

// Of one body, and of the tasks that its thread runs after it.
class WaitMeter {
 public:
  enum class Part : std::uint8_t { kWork, kWait };

  constexpr WaitMeter() noexcept = default;
  constexpr explicit WaitMeter(std::uint64_t begin) noexcept : begin_(begin), read_at_(begin) {}

  // Whether the change that comes now is read. Each one is asked for.
  constexpr bool is_read() noexcept { return to_pass_ == 0 || --to_pass_ == 0; }
  // A change that is read, at NOW, ends PART.
  constexpr void change(Part part, std::uint64_t now) noexcept {
    const std::uint64_t passed = now - read_at_;
    if (passed_ != 0) {
      const std::uint64_t before = read_at_ - begin_;
      const double share = before == 0 ? 0 : static_cast<double>(waited_) / static_cast<double>(before);
      waited_ += static_cast<std::uint64_t>(share * static_cast<double>(passed));
    } else if (part == Part::kWait) {
      waited_ += passed;
    }
    read_at_ = now;
    to_pass_ = passed_ = 0;
  }
  // The next CHANGES are passed, and the one behind them is read.
  constexpr void pass(std::uint32_t changes) noexcept { to_pass_ = passed_ = changes + 1; }

  constexpr std::uint32_t passed_changes() const noexcept { return passed_; }
  // Until the last change that was read.
  constexpr std::uint64_t read_at() const noexcept { return read_at_; }
  constexpr std::uint64_t waited() const noexcept { return waited_; }
  constexpr std::uint64_t worked() const noexcept { return read_at_ - begin_ - waited_; }

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t read_at_ = 0;
  std::uint64_t waited_ = 0;
  std::uint32_t passed_ = 0;   // changes since the last reading; 0: none are passed
  std::uint32_t to_pass_ = 0;  // of them, that are still to come
};

}  // namespace lbf::capture
