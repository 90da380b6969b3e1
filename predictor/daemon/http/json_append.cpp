// See json_append.h.
#include "predictor/daemon/http/json_append.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "predictor/daemon/http/step_json.h"

namespace lbf::daemon {

void append_json(std::string& out, const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) {
    out.append("\"").append(text).append("\"");
  } else {
    out += json_text(text);
  }
}

void append_json(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    append_json(out, texts[i]);
  }
  out += ']';
}

void append_json(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace lbf::daemon
