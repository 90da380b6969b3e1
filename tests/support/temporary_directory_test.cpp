// The temporary directory of the tests: its own, removed with what is in it, and clear when it cannot be
// made.
#include "tests/support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

namespace lbf::test::temporary_directory_test {
namespace {

using testing::HasSubstr;

// Sets TMPDIR for one test; the tests of one program share the environment.
class TemporaryDirectoryTest : public testing::Test {
 protected:
  TemporaryDirectoryTest() {
    if (const char* value = std::getenv("TMPDIR")) before_ = value;
  }
  ~TemporaryDirectoryTest() override { before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR"); }

 private:
  std::optional<std::string> before_;
};

TEST_F(TemporaryDirectoryTest, EachIsItsOwnAndGoesWithItsContents) {
  std::string first_path;
  {
    const TemporaryDirectory first;
    const TemporaryDirectory second;
    EXPECT_NE(first.path(), second.path());
    first_path = first.path();
    struct stat status {};
    ASSERT_EQ(::stat(first_path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700U);
    std::filesystem::create_directories(first_path + "/a/b");
    std::ofstream(first_path + "/a/b/file") << "x";
    ASSERT_TRUE(std::filesystem::exists(first_path + "/a/b/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(first_path));
}

TEST_F(TemporaryDirectoryTest, LiesWhereTheCallerKeepsTemporaryFiles) {
  const TemporaryDirectory outer;
  ::setenv("TMPDIR", outer.path().c_str(), 1);
  const TemporaryDirectory inner;
  EXPECT_EQ(std::filesystem::path(inner.path()).parent_path(), outer.path());
}

TEST_F(TemporaryDirectoryTest, SaysWhichDirectoryIsWrong) {
  ::setenv("TMPDIR", "/nonexistent/lbf", 1);
  try {
    const TemporaryDirectory none;
    FAIL() << none.path();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("TMPDIR"));
  }
  ::setenv("TMPDIR", "/proc", 1);
  try {
    const TemporaryDirectory none;
    FAIL() << none.path();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot make a temporary directory in /proc: "));
  }
}

}  // namespace
}  // namespace lbf::test::temporary_directory_test