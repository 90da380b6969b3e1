// Hostlists, see hostlist.h.
#include "base/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "base/quoted.h"

namespace lbf {
namespace {

struct Name {
  std::string_view prefix;
  std::string_view digits;  // "": no number at the end
  std::uint64_t number = 0;
};

Name split(std::string_view node) {
  constexpr std::size_t kMostDigits = 18;  // fits 64 bits
  std::size_t start = node.size();
  while (start > 0 && node[start - 1] >= '0' && node[start - 1] <= '9' && node.size() - start < kMostDigits) --start;
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

constexpr std::size_t kMaxNameBytes = 255;  // of a host name (hostname(7))
constexpr std::string_view kSeparators = ", \t\n";

Error too_many(std::size_t limit) {
  return Error{ErrorCode::kLimit, "more than " + std::to_string(limit) + " names: is a range too long?"};
}

bool in_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

// "1-3,07" -> 1, 2, 3, 07.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges, std::size_t limit) {
  std::vector<std::string> numbers;
  for (std::size_t at = 0; at <= ranges.size();) {
    const std::string_view range = ranges.substr(at, std::min(ranges.find(',', at), ranges.size()) - at);
    const std::size_t dash = range.find('-');
    const std::string_view low_digits = range.substr(0, dash);
    const auto low = parse_number<std::uint64_t>(low_digits);
    const auto high = dash == std::string_view::npos ? low : parse_number<std::uint64_t>(range.substr(dash + 1));
    if (!low || !high || low_digits.size() > kMaxNameBytes) {
      return invalid_input(quoted(range) + " is no range: give numbers as in [1-4,7]");
    }
    if (*high < *low) return invalid_input("the range " + quoted(range) + " ends before it begins");
    const std::uint64_t more = *high - *low;
    if (more >= limit - numbers.size()) return too_many(limit);
    for (std::uint64_t i = 0; i <= more; ++i) {
      std::string text = std::to_string(*low + i);
      if (text.size() < low_digits.size()) text.insert(0, low_digits.size() - text.size(), '0');
      numbers.push_back(std::move(text));
    }
    at += range.size() + 1;
  }
  return numbers;
}

// One name with its brackets.
Result<std::vector<std::string>> expand_name(std::string_view name, std::size_t limit) {
  std::vector<std::string> made{""};
  for (std::size_t at = 0; at < name.size();) {
    std::vector<std::string> endings;
    if (name[at] == '[') {
      const std::size_t close = name.find(']', at);
      if (close == std::string_view::npos) {
        return invalid_input(quoted(name) + " has a '[' without its ']'");
      }
      Result<std::vector<std::string>> numbers = expand_ranges(name.substr(at + 1, close - at - 1), limit);
      if (!numbers) return numbers.error();
      endings = std::move(*numbers);
      at = close + 1;
    } else {
      const std::size_t end = std::min(name.find('[', at), name.size());
      const std::string_view text = name.substr(at, end - at);
      const auto wrong =
          std::find_if(text.begin(), text.end(), [](unsigned char c) { return !in_name(static_cast<char>(c)); });
      if (wrong != text.end()) {
        return invalid_input(quoted(name) + " is no name: use letters, digits, '-', '_', '.' and ranges as in [1-4,7]");
      }
      endings.emplace_back(text);
      at = end;
    }
    if (made.size() > limit / endings.size()) return too_many(limit);
    std::vector<std::string> longer;
    longer.reserve(made.size() * endings.size());
    for (const std::string& beginning : made) {
      for (const std::string& ending : endings) {
        if (beginning.size() + ending.size() > kMaxNameBytes) {
          return invalid_input(quoted(name) + " is longer than " + std::to_string(kMaxNameBytes) + " bytes");
        }
        longer.push_back(beginning + ending);
      }
    }
    made = std::move(longer);
  }
  return made;
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

Result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t limit) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < list.size();) {
    // The next separator that is not in brackets.
    std::size_t end = at;
    bool in_brackets = false;
    for (; end < list.size() && (in_brackets || kSeparators.find(list[end]) == std::string_view::npos); ++end) {
      if (list[end] == '[') in_brackets = true;
      if (list[end] == ']') in_brackets = false;
    }
    if (end > at) {
      Result<std::vector<std::string>> expanded = expand_name(list.substr(at, end - at), limit - names.size());
      if (!expanded) {
        return expanded.error().code == ErrorCode::kLimit ? too_many(limit) : expanded.error();
      }
      names.insert(names.end(), std::move_iterator(expanded->begin()), std::move_iterator(expanded->end()));
    }
    at = end + 1;
  }
  if (names.empty()) return invalid_input("no name in " + quoted(list));
  return names;
}

}  // namespace lbf
