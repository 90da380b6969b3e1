// LoopFolder: a string of symbols -> loops, nested (Sodhi, Subhlok & Xu, Sec. 4.2, Table 1).
//
// A deviation: the paper looks for the longest repeats of the whole string first, in O(N^3). Here the string
// is folded while it comes: whenever its end repeats what stands before it, shortest repeats first, the two
// become a loop, and when its end repeats the body of the loop before it, the loop gets one iteration more.
// Inner loops so are closed before outer ones repeat. The paper's example gives the paper's result.
//
// Each symbol is compared with at most kMostCandidates earlier places of its like, by hashes of the windows
// between in constant time, and what is folded is compared once and leaves: time O(N * kMostCandidates),
// nearly always O(N). Not found: a loop in whose body each symbol stands more often than that.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lbf::skeleton {

// A symbol, or a loop: `value` is the index of its body in LoopBodies.
struct Element {
  std::uint32_t value = 0;
  bool is_loop = false;
  std::uint64_t count = 1;  // iterations; of a symbol 1
  bool operator==(const Element&) const = default;
};
using Elements = std::vector<Element>;

// The bodies of loops, each once.
class LoopBodies {
 public:
  std::uint32_t add(Elements body);
  const Elements& operator[](std::uint32_t body) const { return bodies_[body]; }
  std::size_t size() const { return bodies_.size(); }

 private:
  std::vector<Elements> bodies_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

class LoopFolder {
 public:
  static constexpr int kMostCandidates = 64;

  // REQUIRES: `bodies` outlives the folder.
  explicit LoopFolder(LoopBodies& bodies) : bodies_(bodies) {}

  void push(const Element& element);
  void push_symbol(std::uint32_t symbol) { push({symbol, false, 1}); }
  // The folded string. The folder is empty afterwards.
  Elements finish();

 private:
  using Position = std::uint32_t;
  static constexpr Position kNone = ~0u;
  struct Entry {
    Element element;
    std::uint64_t hash;         // of the element
    std::uint64_t prefix;       // of everything up to and with the element
    Position same_before;       // the last entry below that is equal (by hash)
    std::uint64_t body_end;     // loop: hash of its body's last element
    Position same_loop_before;  // loop: the last loop below whose body ends alike
  };

  void place(const Element& element);
  void remove(std::size_t entries);
  bool extend_loop();
  bool make_loop();
  // Hash of the entries [begin, end).
  std::uint64_t window(std::size_t begin, std::size_t end);
  std::uint64_t power(std::size_t exponent);
  bool equal(std::size_t a, std::size_t b, std::size_t length) const;

  LoopBodies& bodies_;
  std::vector<Entry> stack_;
  std::vector<std::uint64_t> powers_;
  std::unordered_map<std::uint64_t, Position> last_;       // by hash of an element
  std::unordered_map<std::uint64_t, Position> last_loop_;  // by hash of a body's last element
};

// Symbols in the elements written out (loops once each: the length of the signature), and with all their
// iterations (the length of the string). `weight_of(symbol)` says what one counts.
template <typename Weight, typename WeightOf>
Weight written_length(const LoopBodies& bodies, const Elements& elements, const WeightOf& weight_of) {
  Weight all{};
  for (const Element& element : elements) {
    all +=
        element.is_loop ? written_length<Weight>(bodies, bodies[element.value], weight_of) : weight_of(element.value);
  }
  return all;
}
template <typename Weight, typename WeightOf>
Weight executed_length(const LoopBodies& bodies, const Elements& elements, const WeightOf& weight_of) {
  Weight all{};
  for (const Element& element : elements) {
    all += element.is_loop
               ? static_cast<Weight>(element.count) * executed_length<Weight>(bodies, bodies[element.value], weight_of)
               : weight_of(element.value);
  }
  return all;
}

}  // namespace lbf::skeleton
