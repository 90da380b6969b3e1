// Which pages of an object its loader protects.
#include "spank_plugin/capture/loaded_object.h"

#include <gtest/gtest.h>

namespace lbf::loaded_object_test {
namespace {

using capture::protected_pages;
using capture::Range;

TEST(LoadedObject, ThePageThatReadOnlyDataSharesIsNotProtected) {
  EXPECT_EQ(protected_pages({0x3d00, 0x300}, 0x1000), (Range{0x3000, 0x1000}));
  EXPECT_EQ(protected_pages({0x3d00, 0x400}, 0x1000), (Range{0x3000, 0x1000})) << "other data begins at 0x4100";
  EXPECT_EQ(protected_pages({0x3d00, 0x300}, 0x10000).size, 0U) << "pages of 64 KiB, linked for 4 KiB";
  EXPECT_FALSE(protected_pages({0x3d00, 0x200}, 0x1000).holds(0x3e00));
  EXPECT_EQ(protected_pages({}, 0x1000).size, 0U);
}

}  // namespace
}  // namespace lbf::loaded_object_test
