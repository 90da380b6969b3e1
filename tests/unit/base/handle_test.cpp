#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/scoped_fd.h"
#include "base/unique_handle.h"

namespace lbf::handle_test {
namespace {

int released = 0;
struct CountRelease {
  void operator()(int* handle) const noexcept { released += *handle; }
};
using Handle = UniqueHandle<int*, CountRelease>;

TEST(UniqueHandle, ReleasesExactlyOnce) {
  int one = 1;
  int ten = 10;
  released = 0;
  {
    Handle first(&one);
    Handle second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what is left is what is tested
    EXPECT_EQ(second.get(), &one);
    second.reset(&ten);
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 11);
  Handle kept(&one);
  EXPECT_EQ(kept.release(), &one);
  EXPECT_EQ(released, 11);
}

TEST(UniqueHandle, OutGivesTheOldOneBack) {
  int one = 1;
  int ten = 10;
  released = 0;
  Handle handle(&one);
  *handle.out() = &ten;
  EXPECT_EQ(released, 1);
  EXPECT_EQ(handle.get(), &ten);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(ScopedFd, ClosesAndMoves) {
  int number = -1;
  {
    ScopedFd fd(::open("/dev/null", O_RDONLY));
    number = fd.get();
    ASSERT_TRUE(is_open(number));
    ScopedFd moved;
    moved = std::move(fd);
    EXPECT_FALSE(fd);  // NOLINT(bugprone-use-after-move): what is left is what is tested
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

}  // namespace
}  // namespace lbf::handle_test