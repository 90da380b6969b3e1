#include "advisor/report/hostlist.h"

#include <cstdint>
#include <string_view>

namespace lbf::report {
namespace {

struct Name {
  std::string_view prefix;
  std::string_view digits;  // "": no number at the end
  std::uint64_t number = 0;
};

Name split(std::string_view node) {
  constexpr std::size_t kMostDigits = 18;  // fits 64 bits
  std::size_t start = node.size();
  while (start > 0 && node[start - 1] >= '0' && node[start - 1] <= '9' && node.size() - start < kMostDigits)
    --start;
  Name name{node.substr(0, start), node.substr(start), 0};
  for (const char c : name.digits) name.number = 10 * name.number + static_cast<std::uint64_t>(c - '0');
  return name;
}

bool follows(const Name& before, const Name& after) {
  if (before.digits.empty() || after.digits.empty() || before.prefix != after.prefix) return false;
  if (after.number != before.number + 1) return false;
  const bool padded = before.digits.front() == '0' || after.digits.front() == '0';
  return !padded || before.digits.size() == after.digits.size();
}

}  // namespace

std::string hostlist(const std::vector<std::string>& nodes) {
  // Ranges first, then those with the same prefix that stand side by side go into one pair of brackets.
  struct Range {
    Name first;
    Name last;
    std::size_t count = 1;
  };
  std::vector<Range> ranges;
  for (const std::string& node : nodes) {
    const Name name = split(node);
    if (!ranges.empty() && follows(ranges.back().last, name)) {
      ranges.back().last = name;
      ++ranges.back().count;
    } else {
      ranges.push_back({name, name, 1});
    }
  }
  std::string out;
  for (std::size_t i = 0; i < ranges.size();) {
    std::size_t end = i + 1;
    while (end < ranges.size() && !ranges[i].first.digits.empty() && !ranges[end].first.digits.empty() &&
           ranges[end].first.prefix == ranges[i].first.prefix) {
      ++end;
    }
    if (!out.empty()) out += ',';
    out += ranges[i].first.prefix;
    const bool brackets = end - i > 1 || ranges[i].count > 1;
    if (brackets) out += '[';
    for (std::size_t k = i; k < end; ++k) {
      if (k > i) out += ',';
      out += ranges[k].first.digits;
      if (ranges[k].count > 1) {
        out += '-';
        out += ranges[k].last.digits;
      }
    }
    if (brackets) out += ']';
    i = end;
  }
  return out;
}

}  // namespace lbf::report
