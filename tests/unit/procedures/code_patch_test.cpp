// Jumps into code of the test's own: all of those that are asked for together, or none.
#include "spank_plugin/procedures/code_patch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace lbf::procedures::code_patch_test {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint8_t kNop = 0x90;

// A page of nops, one that the stub of all sites is said to lie in, and one of a file that nobody may write to.
class CodePatch : public testing::Test {
 protected:
  void SetUp() override {
    void* const memory = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    code_ = static_cast<std::uint8_t*>(memory);
    std::memset(code_, kNop, kPage);
    ASSERT_EQ(mprotect(code_, kPage, PROT_READ | PROT_EXEC), 0);
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    void* const file = mmap(code_ + 2 * kPage, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    close(fd);
    ASSERT_NE(file, MAP_FAILED);
  }
  void TearDown() override { munmap(code_, 3 * kPage); }

  PatchSite site_at(std::size_t offset) const {
    PatchSite site;
    std::uint8_t* const at = code_ + offset;
    site.prologue.address = reinterpret_cast<std::uintptr_t>(at);
    site.stub = reinterpret_cast<std::uintptr_t>(code_ + kPage);
    site.jump.address = site.prologue.address;
    std::memcpy(site.jump.original, at, kJumpBytes);
    site.jump.protection = PROT_READ | PROT_EXEC;
    return site;
  }
  bool is_jump(std::size_t offset) const { return code_[offset] == 0xe9; }

  std::uint8_t* code_ = nullptr;
};

TEST_F(CodePatch, WhatCannotAllBePatchedIsNot) {
  PatchSite first = site_at(0);
  PatchSite second = site_at(14);  // across two lines of 16 bytes
  PatchSite refused = site_at(2 * kPage);
  const std::vector<PatchSite*> all{&first, &second, &refused};
  const Result<std::uint32_t> patched = patch(all);
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code, ErrorCode::kPermission);
  EXPECT_FALSE(first.jump.patched || second.jump.patched || refused.jump.patched);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(code_[i], kNop) << i;
}

TEST_F(CodePatch, WhatIsPatchedCanBeTakenOut) {
  PatchSite first = site_at(0);
  PatchSite second = site_at(14);
  const std::vector<PatchSite*> both{&first, &second};
  const Result<std::uint32_t> patched = patch(both);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(*patched, 2u);
  EXPECT_TRUE(is_jump(0) && is_jump(14));
  const Result<std::uint32_t> unpatched = unpatch(both);
  ASSERT_TRUE(unpatched) << unpatched.error().message;
  EXPECT_EQ(*unpatched, 2u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(code_[i], kNop) << i;
}

}  // namespace
}  // namespace lbf::procedures::code_patch_test