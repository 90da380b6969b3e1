// RefusalLog, see refusal_log.h.
#include "predictor/daemon/http/refusal_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "base/quoted.h"

namespace lbf::daemon {
namespace {

constexpr std::chrono::minutes kQuiet{1};
constexpr std::size_t kMostLines = 256;  // in kQuiet
constexpr std::size_t kMostTargetBytes = 200;

bool is_worth_a_line(std::string_view method, int status) {
  constexpr int kUnauthorized = 401;
  constexpr int kConflict = 409;  // how a relay learns where to go on
  if (status < 400 || status == kConflict) return false;
  return status == kUnauthorized || method == "PUT" || method == "POST";
}

std::string message_of(std::string_view answer) {
  const auto parsed = nlohmann::json::parse(answer, nullptr, false);
  const auto error = parsed.is_object() ? parsed.find("error") : parsed.end();
  return error != parsed.end() && error->is_string() ? error->get<std::string>() : std::string();
}

}  // namespace

void RefusalLog::add(std::string_view method, std::string_view target, const std::string& user, int status,
                     std::string_view answer, Clock::time_point now) {
  if (!is_worth_a_line(method, status)) return;
  const std::pair key(user, status);
  auto said = said_.find(key);
  if (said != said_.end() && now - said->second.at < kQuiet) {
    ++said->second.left_out;
    return;
  }
  if (said_.size() >= kMostLines) {
    std::erase_if(said_, [now](const auto& one) { return now - one.second.at >= kQuiet; });
    said = said_.find(key);
    if (said_.size() >= kMostLines) return;
  }
  const std::uint64_t left_out = said == said_.end() ? 0 : said->second.left_out;
  said_[key] = {now, 0};
  spdlog::warn("refused {}: {} {}: {}{}", user, method, on_one_line(target.substr(0, kMostTargetBytes)),
               on_one_line(message_of(answer)),
               left_out > 0 ? fmt::format(" ({} more like it since the last line)", left_out) : std::string());
}

}  // namespace lbf::daemon
