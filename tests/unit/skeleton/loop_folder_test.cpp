#include "skeleton/loop_folder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace lbf::skeleton::loop_folder_test {
namespace {

std::string written(const LoopBodies& bodies, const Elements& elements) {
  std::string text;
  for (const Element& element : elements) {
    if (!element.is_loop) {
      text += static_cast<char>(element.value);
    } else {
      text += "[" + written(bodies, bodies[element.value]) + "]" + std::to_string(element.count);
    }
  }
  return text;
}

std::string expanded(const LoopBodies& bodies, const Elements& elements) {
  std::string text;
  for (const Element& element : elements) {
    if (!element.is_loop) text += static_cast<char>(element.value);
    for (std::uint64_t i = 0; element.is_loop && i < element.count; ++i)
      text += expanded(bodies, bodies[element.value]);
  }
  return text;
}

std::string folded(const std::string& symbols) {
  LoopBodies bodies;
  LoopFolder folder(bodies);
  for (const char c : symbols) folder.push_symbol(static_cast<unsigned char>(c));
  return written(bodies, folder.finish());
}

TEST(LoopFolder, TheExampleOfTable1) {
  // alpha beta beta gamma (3 times beta beta gamma) kappa alpha alpha -> alpha [(beta)^2 gamma]^3 kappa
  // [alpha]^2
  EXPECT_EQ(folded("abbgbbgbbgkaa"), "a[[b]2g]3k[a]2");
}

TEST(LoopFolder, TakesLoopsOfLoops) {
  EXPECT_EQ(folded("xaabaabyaabaabyz"), "x[[[a]2b]2y]2z");
  EXPECT_EQ(folded(""), "");
  EXPECT_EQ(folded("abc"), "abc");
  EXPECT_EQ(folded("aaaaaaa"), "[a]7");
}

TEST(LoopFolder, FindsTheLoopOfTheBtExample) {
  // Sec. 4.4: 60 iterations of 37 calls between a head and a tail that begins as the body does.
  const std::string body = "112233445566ohqoiroojsookuoolvoomwo0o9o";
  std::string all = "MNO";
  for (int i = 0; i < 60; ++i) all += body;
  const std::string text = folded(all + "Z112233445566oZYX");
  EXPECT_NE(text.find("]60"), std::string::npos) << text;
  EXPECT_LT(text.size(), 160u) << text;
}

TEST(LoopFolder, LosesAndInventsNothing) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string symbols;
    const int letters = 1 + static_cast<int>(random() % 4);
    while (symbols.size() < random() % 200) {
      std::string body;
      for (std::size_t n = 1 + random() % 5; n > 0; --n)
        body += static_cast<char>('a' + random() % static_cast<unsigned>(letters));
      for (std::size_t n = 1 + random() % 6; n > 0; --n) symbols += body;
    }
    LoopBodies bodies;
    LoopFolder folder(bodies);
    for (const char c : symbols) folder.push_symbol(static_cast<unsigned char>(c));
    const Elements elements = folder.finish();
    ASSERT_EQ(expanded(bodies, elements), symbols);
    const auto one = [](std::uint32_t) { return std::uint64_t{1}; };
    EXPECT_EQ(executed_length<std::uint64_t>(bodies, elements, one), symbols.size());
    EXPECT_LE(written_length<std::uint64_t>(bodies, elements, one), symbols.size());
  }
}

TEST(LoopFolder, LongLoopsCostNoMoreThanTheirBodies) {
  LoopBodies bodies;
  LoopFolder folder(bodies);
  for (int i = 0; i < 200'000; ++i) {
    for (std::uint32_t s = 0; s < 5; ++s) folder.push_symbol(s);
  }
  const Elements elements = folder.finish();
  ASSERT_EQ(elements.size(), 1u);
  EXPECT_EQ(elements[0].count, 200'000u);
  EXPECT_LT(bodies.size(), 5u);
}

}  // namespace
}  // namespace lbf::skeleton::loop_folder_test