#include "skeleton/loop_folder.h"

#include <algorithm>
#include <utility>

namespace lbf::skeleton {
namespace {

constexpr std::uint64_t kPrime = (1ULL << 61) - 1;
constexpr std::uint64_t kBase = 0x1B873593CC9E2D51ULL % kPrime;

std::uint64_t reduced(std::uint64_t value) {
  value = (value & kPrime) + (value >> 61);
  return value >= kPrime ? value - kPrime : value;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(a) * b;
  return reduced(static_cast<std::uint64_t>(wide & kPrime) + static_cast<std::uint64_t>(wide >> 61));
}

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 30;
  value *= 0xBF58476D1CE4E5B9ULL;
  value ^= value >> 27;
  value *= 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(const Element& element) {
  return reduced(mixed((std::uint64_t{element.value} << 1 | (element.is_loop ? 1 : 0)) +
                       mixed(element.count + 0x9E3779B97F4A7C15ULL)));
}

}  // namespace

std::uint32_t LoopBodies::add(Elements body) {
  std::uint64_t hash = 0;
  for (const Element& element : body) hash = reduced(product(hash, kBase) + hash_of(element));
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (bodies_[known->second] == body) return known->second;
  }
  const std::uint32_t index = static_cast<std::uint32_t>(bodies_.size());
  bodies_.push_back(std::move(body));
  by_hash_.emplace(hash, index);
  return index;
}

std::uint64_t LoopFolder::power(std::size_t exponent) {
  if (powers_.empty()) powers_.push_back(1);
  while (powers_.size() <= exponent) powers_.push_back(product(powers_.back(), kBase));
  return powers_[exponent];
}

std::uint64_t LoopFolder::window(std::size_t begin, std::size_t end) {
  const std::uint64_t before = begin == 0 ? 0 : stack_[begin - 1].prefix;
  return reduced(stack_[end - 1].prefix + kPrime - product(before, power(end - begin)));
}

bool LoopFolder::equal(std::size_t a, std::size_t b, std::size_t length) const {
  for (std::size_t i = 0; i < length; ++i) {
    if (!(stack_[a + i].element == stack_[b + i].element)) return false;
  }
  return true;
}

void LoopFolder::place(const Element& element) {
  const Position here = static_cast<Position>(stack_.size());
  Entry entry{element, hash_of(element), 0, kNone, 0, kNone};
  entry.prefix = reduced(product(here == 0 ? 0 : stack_.back().prefix, kBase) + entry.hash);
  const auto [last, first] = last_.emplace(entry.hash, here);
  if (!first) entry.same_before = std::exchange(last->second, here);
  if (element.is_loop) {
    entry.body_end = hash_of(bodies_[element.value].back());
    const auto [loop, first_loop] = last_loop_.emplace(entry.body_end, here);
    if (!first_loop) entry.same_loop_before = std::exchange(loop->second, here);
  }
  stack_.push_back(entry);
}

void LoopFolder::remove(std::size_t entries) {
  const auto restore = [](auto& map, std::uint64_t key, Position before) {
    if (before == kNone) {
      map.erase(key);
    } else {
      map[key] = before;
    }
  };
  for (; entries > 0; --entries) {
    const Entry& top = stack_.back();
    restore(last_, top.hash, top.same_before);
    if (top.element.is_loop) restore(last_loop_, top.body_end, top.same_loop_before);
    stack_.pop_back();
  }
}

// The end of the string repeats the body of the loop before it.
bool LoopFolder::extend_loop() {
  const auto found = last_loop_.find(stack_.back().hash);
  if (found == last_loop_.end()) return false;
  Position at = found->second;
  for (int tries = 0; at != kNone && tries < kMostCandidates; ++tries, at = stack_[at].same_loop_before) {
    const std::size_t length = stack_.size() - 1 - at;
    const Elements& body = bodies_[stack_[at].element.value];
    if (length == 0 || body.size() != length) continue;
    const bool same = std::equal(body.rbegin(), body.rend(), stack_.rbegin(),
                                 [](const Element& a, const Entry& b) { return a == b.element; });
    if (!same) continue;
    Element loop = stack_[at].element;
    ++loop.count;
    remove(length + 1);
    place(loop);
    return true;
  }
  return false;
}

// The end of the string repeats what stands before it.
bool LoopFolder::make_loop() {
  const std::size_t size = stack_.size();
  Position at = stack_.back().same_before;
  for (int tries = 0; at != kNone && tries < kMostCandidates; ++tries, at = stack_[at].same_before) {
    const std::size_t length = size - 1 - at;
    if (2 * length > size) return false;
    if (window(size - 2 * length, size - length) != window(size - length, size)) continue;
    if (!equal(size - 2 * length, size - length, length)) continue;
    Element loop{0, true, 2};
    if (length == 1 && stack_.back().element.is_loop) {
      // Two loops side by side with equal bodies and counts are one.
      loop = stack_.back().element;
      loop.count *= 2;
    } else {
      Elements body;
      for (std::size_t i = size - length; i < size; ++i) body.push_back(stack_[i].element);
      loop.value = bodies_.add(std::move(body));
    }
    remove(2 * length);
    place(loop);
    return true;
  }
  return false;
}

void LoopFolder::push(const Element& element) {
  // A loop beside one with the same body only adds its iterations.
  if (element.is_loop && !stack_.empty() && stack_.back().element.is_loop &&
      stack_.back().element.value == element.value) {
    Element loop = stack_.back().element;
    loop.count += element.count;
    remove(1);
    place(loop);
  } else {
    place(element);
  }
  while (extend_loop() || make_loop()) {
  }
}

Elements LoopFolder::finish() {
  Elements elements;
  elements.reserve(stack_.size());
  for (const Entry& entry : stack_) elements.push_back(entry.element);
  stack_.clear();
  last_.clear();
  last_loop_.clear();
  return elements;
}

}  // namespace lbf::skeleton
