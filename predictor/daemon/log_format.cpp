// Lines of lbfd's log, see log_format.h.
#include "predictor/daemon/log_format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace lbf::daemon {
namespace {

struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

Utf8Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return {};
  std::uint32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, bytes};
}

// It moves the cursor, ends the line or turns the direction of writing.
bool acts_on_a_terminal(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

class MessageFormatter : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
    const std::string text = log_text({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<MessageFormatter>(); }
};

// "step KEY: ..." and "step KEY, stream N: ..." are messages about that step.
struct LogEntry {
  std::string_view step;
  std::string_view stream;
  std::string_view text;
};
LogEntry entry_of(std::string_view message) {
  constexpr std::string_view kStep = "step ";
  constexpr std::string_view kStream = ", stream ";
  const LogEntry none{{}, {}, message};
  const std::size_t colon = message.find(": ");
  if (!message.starts_with(kStep) || colon == std::string_view::npos) return none;
  LogEntry entry{message.substr(kStep.size(), colon - kStep.size()), {}, message.substr(colon + 2)};
  if (const std::size_t comma = entry.step.find(kStream); comma != std::string_view::npos) {
    entry.stream = entry.step.substr(comma + kStream.size());
    entry.step = entry.step.substr(0, comma);
  }
  const bool is_key = std::ranges::count(entry.step, '/') >= 3 && entry.step.find(' ') == std::string_view::npos;
  return is_key ? entry : none;
}

// In the quotes of JSON, which are those of logfmt.
std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class StructuredFormatter : public spdlog::formatter {
 public:
  explicit StructuredFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string text = log_text({message.payload.data(), message.payload.size()});
    const LogEntry entry = entry_of(text);
    const auto since_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch());
    const std::time_t seconds = since_epoch.count() / 1000;
    const auto level = spdlog::level::to_string_view(message.level);
    std::vector<std::pair<std::string_view, std::string>> fields = {
        {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), since_epoch.count() % 1000)},
        {"level", std::string(level.data(), level.size())}};
    if (!entry.step.empty()) fields.emplace_back("step", entry.step);
    if (!entry.stream.empty()) fields.emplace_back("stream", entry.stream);
    fields.emplace_back("msg", entry.text);
    std::string line;
    for (const auto& [key, value] : fields) {
      if (format_ == LogFormat::kJson) {
        line += fmt::format("{}\"{}\":{}", line.empty() ? "{" : ",", key, in_quotes(value));
      } else {
        const bool is_word = value.find_first_of(" \"\\=") == std::string::npos && !value.empty();
        line += fmt::format("{}{}={}", line.empty() ? "" : " ", key, is_word ? value : in_quotes(value));
      }
    }
    line += format_ == LogFormat::kJson ? "}\n" : "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<StructuredFormatter>(format_); }

 private:
  const LogFormat format_;
};

}  // namespace

std::string log_text(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() >= kMostLogBytes) return out + "...";
    const Utf8Character character = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(1, character.bytes);
    if (character.bytes > 0 && !acts_on_a_terminal(character.code)) {
      out += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes)) {
        const auto value = static_cast<unsigned char>(c);
        out += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
      }
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format) {
  if (format != LogFormat::kText) return std::make_unique<StructuredFormatter>(format);
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<MessageFormatter>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %*");
  return formatter;
}

}  // namespace lbf::daemon
