// Result<T>: a value, or an Error that says what went wrong.
//
// Expected failures (bad input, a file that is not there, a peer that does not answer) travel as
// Result; exceptions are for broken invariants and start-up only (docs/architecture.md, "Errors").
#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace lbf {

enum class ErrorCode {
  kInvalidInput,  // the input breaks its format or asks for the impossible
  kNotFound,
  kPermission,   // the caller may not
  kUnavailable,  // a peer or a resource cannot be reached now; trying again may help
  kLimit,        // a bound was reached (size, memory, spool, disk)
  kIo,           // the operating system said no
  kInternal,     // an invariant of this program is broken
};

// One line for people: what is wrong, where, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok()
  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok()
  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// One pointer, so that a function which is called for every event can return it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::unique_ptr<Error> error_;
};

inline Error invalid_input(std::string message) {
  return {ErrorCode::kInvalidInput, std::move(message)};
}

}  // namespace lbf
