// WorkBudget: matching and replays say here how much they did, and learn when they are to give up.
//
// Numbers in events become work: a collective is many ops, a wait many requests. Whoever loops over such numbers spends
// units, about one for each op, message or table entry, and stops when told. Every few thousand units somebody looks
// at memory and clock (Predictor::set_limits).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"

namespace lbf::engine {

class WorkBudget {
 public:
  // Why to give up; nothing: go on.
  using Look = std::function<std::optional<Error>()>;

  // Without a look the budget has no end.
  void set_look(Look look) {
    look_ = std::move(look);
    left_ = 0;
  }
  // False: give up.
  [[gnu::always_inline]] bool spend(std::uint64_t units) {
    if (units < left_) [[likely]] {
      left_ -= units;
      return true;
    }
    return look_now();
  }
  // The same, whatever is left.
  [[gnu::noinline]] bool look_now() {
    if (error_) return false;
    left_ = look_ ? kUnitsPerLook : ~std::uint64_t{0};
    if (look_) error_ = look_();
    if (error_) left_ = 0;
    return !error_;
  }
  bool is_over() const { return error_.has_value(); }
  // Ok: nobody gave up.
  Result<void> status() const { return error_ ? Result<void>(*error_) : Result<void>(); }

 private:
  static constexpr std::uint64_t kUnitsPerLook = 4096;

  Look look_;
  std::uint64_t left_ = ~std::uint64_t{0};
  std::optional<Error> error_;
};

}  // namespace lbf::engine
