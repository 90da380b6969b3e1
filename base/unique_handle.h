// UniqueHandle: owns one handle of a C library (a pointer), and gives it back exactly once.
//
//   struct CloseDatabase { void operator()(sqlite3* db) const noexcept { sqlite3_close(db); } };
//   using Database = UniqueHandle<sqlite3*, CloseDatabase>;
#pragma once

#include <utility>

namespace lbf {

// HANDLE: a pointer or another type whose value-initialised value means "none". RELEASE: a stateless
// callable.
template <typename Handle, typename Release>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(Handle handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Handle{}; }

  // The caller owns it from here on.
  Handle release() noexcept { return std::exchange(handle_, Handle{}); }

  void reset(Handle handle = Handle{}) noexcept {
    const Handle old = std::exchange(handle_, handle);
    if (old != Handle{}) Release{}(old);
  }

  // For functions that hand out a handle through a pointer: open(path, handle.out()). Releases the old one.
  Handle* out() noexcept {
    reset();
    return &handle_;
  }

 private:
  Handle handle_{};
};

}  // namespace lbf
