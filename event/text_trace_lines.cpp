// Lines, words and numbers of a text trace, see text_trace_lines.h.
#include "event/text_trace_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace lbf::text_trace {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

constexpr std::array<double, 23> kPowersOf10 = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Short decimals exactly (a quotient of two exactly representable numbers is rounded once, hence correctly);
// everything else is std::from_chars' business. Returns false when this way does not apply.
bool parse_short_decimal(std::string_view text, double& value) {
  if (text.size() > 17) return false;
  std::uint64_t digits = 0;
  std::size_t after_point = 0;
  bool point = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      after_point += point ? 1 : 0;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      return false;
    }
  }
  if (digits > (std::uint64_t{1} << 53) || text.size() < (point ? 2u : 1u)) return false;
  value = static_cast<double>(digits) / kPowersOf10[after_point];
  return true;
}

}  // namespace

bool is_printable_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7f) return false;
    std::size_t length = 1;
    std::uint32_t code = lead;
    if (lead >= 0x80) {
      if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
        code = lead & 0x1Fu;
      } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        code = lead & 0x0Fu;
      } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        code = lead & 0x07u;
      } else {
        return false;
      }
      if (text.size() - i < length) return false;
      for (std::size_t k = 1; k < length; ++k) {
        const auto next = static_cast<unsigned char>(text[i + k]);
        if ((next & 0xC0u) != 0x80u) return false;
        code = code << 6 | (next & 0x3Fu);
      }
      const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
      if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    }
    i += length;
  }
  return true;
}

bool Lines::next_line() {
  for (;;) {
    const std::size_t unread = buffer_.size() - buffer_at_;
    const void* newline =
        unread > scanned_ ? std::memchr(buffer_.data() + buffer_at_ + scanned_, '\n', unread - scanned_) : nullptr;
    if (newline != nullptr || (input_ended_ && unread > 0)) {
      at_ = buffer_.data() + buffer_at_;
      end_ = newline != nullptr ? static_cast<const char*>(newline) : at_ + unread;
      if (static_cast<std::size_t>(end_ - at_) > longest_line_bytes_) {
        line_too_long_ = true;
        return false;
      }
      buffer_at_ += static_cast<std::size_t>(end_ - at_) + (newline != nullptr ? 1 : 0);
      scanned_ = 0;
      ++line_number_;
      return true;
    }
    if (input_ended_) return false;
    scanned_ = unread;
    if (unread > longest_line_bytes_) {
      line_too_long_ = true;
      return false;
    }
    buffer_.erase(0, buffer_at_);
    buffer_at_ = 0;
    // Double for long lines, so that a line of n bytes costs O(n).
    const std::size_t wanted = std::max(kReadBytes, unread);
    buffer_.resize(unread + wanted);
    in_.read(buffer_.data() + unread, static_cast<std::streamsize>(wanted));
    buffer_.resize(unread + static_cast<std::size_t>(in_.gcount()));
    if (in_.bad()) {
      stream_failed_ = true;
      return false;
    }
    if (!in_) input_ended_ = true;
  }
}

void Lines::strip_comment() {
  for (const char* p = at_;
       (p = static_cast<const char*>(std::memchr(p, '#', static_cast<std::size_t>(end_ - p)))) != nullptr; ++p) {
    if (p == at_ || is_blank(p[-1])) {
      end_ = p;
      return;
    }
  }
}

Result<Keys> Lines::read_keys(const LineKind& kind) {
  Keys keys;
  for (std::string_view pair = word(); !pair.empty(); pair = word()) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return fail(quoted(pair) + " is not of the form key=value");
    const std::string_view name = pair.substr(0, equals);
    const auto* key =
        std::find_if(kKeyNames.begin(), kKeyNames.end(), [&](const KeyName& k) { return k.name == name; });
    if (key == kKeyNames.end()) return fail("unknown key " + quoted(name));
    if (((kind.required | kind.optional) & key->key) == 0) {
      return fail("'" + std::string(kind.name) + "' has no key " + quoted(name));
    }
    if ((keys.seen & key->key) != 0) return fail("the key " + quoted(name) + " is given twice");
    keys.seen |= key->key;
    keys.text[key - kKeyNames.begin()] = pair.substr(equals + 1);
  }
  if (const unsigned missing = kind.required & ~keys.seen; missing != 0) {
    const auto& key = kKeyNames[static_cast<std::size_t>(std::countr_zero(missing))];
    return fail("'" + std::string(kind.name) + "' needs the key '" + std::string(key.name) + "='");
  }
  return keys;
}

Error Lines::fail(const std::string& what) const {
  return invalid_input(std::string(name_) + ":" + std::to_string(line_number_) + ": " + what);
}

Result<std::uint64_t> Lines::whole(std::string_view text, std::string_view what, std::uint64_t max) const {
  std::uint64_t value = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range || (code == std::errc() && value > max)) {
    return fail(std::string(what) + " " + quoted(text) + " is too large: at most " + std::to_string(max));
  }
  if (code != std::errc() || rest != text.data() + text.size()) {
    return fail(std::string(what) + " " + quoted(text) + " is not a whole number of at least 0");
  }
  return value;
}

Result<Seconds> Lines::seconds(std::string_view text, std::string_view what) const {
  double value = 0;
  if (!parse_short_decimal(text, value)) {
    const bool starts_as_number = !text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (starts_as_number && code == std::errc::result_out_of_range) {
      return fail(std::string(what) + " " + quoted(text) + " is out of range");
    }
    if (!starts_as_number || code != std::errc() || rest != text.data() + text.size()) {
      return fail(std::string(what) + " " + quoted(text) +
                  " is not a time: seconds, decimal, not negative, such as 0.25");
    }
  }
  if (!(value <= kMaxTimeS)) return fail(std::string(what) + " " + quoted(text) + " is more than 1e9 seconds");
  return value;
}

}  // namespace lbf::text_trace
