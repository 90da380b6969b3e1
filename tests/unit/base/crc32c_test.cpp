#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace lbf::crc32c_test {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownAnswers) {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(ascending), 0x46DD794EU);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(Crc32c, BothImplementationsAgreeAtEveryLengthAndAlignment) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 37 + (i >> 3));
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t length = 0; start + length <= text.size(); length += 1 + length / 20) {
      EXPECT_EQ(crc32c(text.data() + start, length), crc32c_by_table(text.data() + start, length));
    }
  }
}

TEST(Crc32c, ContinuesWhereItStopped) {
  const std::string text = "load balancing factor";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text));
  }
}

TEST(Crc32c, OneFlippedBitShows) {
  std::string text(64, 'x');
  const std::uint32_t before = crc32c(text);
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(crc32c(text), before);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace lbf::crc32c_test