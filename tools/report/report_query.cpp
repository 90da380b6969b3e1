#include "tools/report/report_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "report/render.h"
#include "report/step_rows.h"
#include "report/text.h"

namespace lbf::tools {

using namespace report;  // NOLINT(google-build-using-namespace)

Error refused(const Selection& selection, const Error& error) {
  if (error.code != ErrorCode::kPermission) return error;
  if (selection.all_users) {
    return {error.code, "the steps of all users are for root, SlurmUser and lbfd's operators only; leave out -a"};
  }
  if (!selection.users.empty()) {
    return {error.code, "the steps of other users are for root, SlurmUser and lbfd's operators only; leave out -u"};
  }
  return error;
}

Result<void> ask_each(HttpClient& client, Selection& selection, const HttpBodySink& piece,
                      const std::function<Result<void>()>& end) {
  for (const std::string& target : request_targets(selection)) {
    auto response = client.request("GET", target, {}, {}, HttpAuth::kMunge, piece);
    if (!response) {
      Error error = response.error();
      if (error.code == ErrorCode::kUnavailable) error.message += "; another address: --server or LBF_SERVER";
      return error;
    }
    const bool asked_for_all = !selection.jobs.empty() && selection.users.empty() && !selection.all_users;
    if (response->status == 403 && asked_for_all && selection.operator_view) {
      selection.operator_view = false;
      return ask_each(client, selection, piece, end);
    }
    if (response->status != 200) return refused(selection, error_of_response(*response));
    if (auto ended = end(); !ended) return ended.error();
  }
  return {};
}

Result<std::string> ask(HttpClient& client, Selection& selection) {
  std::vector<std::string> answers(1);
  auto asked = ask_each(
      client, selection, [&answers](std::string_view piece) { answers.back() += piece; },
      [&answers]() -> Result<void> {
        answers.emplace_back();
        return {};
      });
  if (!asked) return asked.error();
  answers.pop_back();
  // For people: parse_steps sorts it, and nothing is in there twice.
  if (answers.size() == 1 && !selection.detail) return std::move(answers.front());
  return join_answers(answers);
}

Result<void> ask_rows(HttpClient& client, Selection& selection, const std::function<void(Step& step)>& take) {
  std::set<std::string> seen;
  const bool several = request_targets(selection).size() > 1;
  const auto take_once = [&](Step& step) {
    if (!several || seen.insert(key_of(step)).second) take(step);
  };
  std::optional<RowsStream> rows;
  rows.emplace(take_once);
  return ask_each(
      client, selection, [&rows](std::string_view piece) { rows->add(piece); },
      [&]() -> Result<void> {
        auto read = rows->end();
        rows.emplace(take_once);
        return read;
      });
}

namespace {

// Gives TAKE the steps of SELECTION that are not SEEN. Until when further ones had begun, where an answer has as many
// as it may: it has the latest.
Result<std::optional<std::time_t>> ask_latest(HttpClient& client, Selection& selection, std::set<std::string>& seen,
                                              const std::function<void(Step& step)>& take) {
  std::optional<std::time_t> further;
  std::size_t steps = 0;  // of the answer at hand
  double oldest_s = 0;
  const auto count = [&](Step& step) {
    const double start_s = step.start_s.value_or(0);
    oldest_s = steps++ == 0 ? start_s : std::min(oldest_s, start_s);
    if (seen.insert(key_of(step)).second) take(step);
  };
  std::optional<RowsStream> rows;
  rows.emplace(count);
  auto asked = ask_each(
      client, selection, [&rows](std::string_view piece) { rows->add(piece); },
      [&]() -> Result<void> {
        auto read = rows->end();
        const auto until = static_cast<std::time_t>(std::ceil(oldest_s));
        if (steps >= selection.limit) further = std::max(further.value_or(until), until);
        steps = 0;
        rows.emplace(count);
        return read;
      });
  if (!asked) return asked.error();
  return further;
}

}  // namespace

Result<bool> ask_all_rows(HttpClient& client, Selection& selection, const std::function<void(Step& step)>& take) {
  std::set<std::string> seen;
  bool is_whole = true;
  Selection part = selection;
  while (true) {
    const auto further = ask_latest(client, part, seen, take);
    if (!further) return further.error();
    if (!further->has_value()) return is_whole;
    const bool is_one_second = part.until && **further >= *part.until;
    is_whole = is_whole && !is_one_second;
    part.until = is_one_second ? *part.until - 1 : **further;
  }
}

namespace {

// "12.0: WHY"; empty: lbfd has refused no such step, or does not know the question.
std::string why_refused(HttpClient& client, const JobSelector& selected) {
  const auto response = client.request("GET", "/v1/refused?job=" + std::to_string(selected.job));
  if (!response || response->status != 200) return {};
  const auto answer = nlohmann::json::parse(response->body, nullptr, false);
  const auto refused = answer.is_object() ? answer.find("refused") : answer.end();
  if (refused == answer.end() || !refused->is_array()) return {};
  for (const auto& one : *refused) {
    if (!one.is_object() || !one.contains("step") || !one["step"].is_number_unsigned()) continue;
    const auto step = one["step"].get<std::uint64_t>();
    const auto why = one.find("why");
    if ((selected.step && step != *selected.step) || why == one.end() || !why->is_string()) continue;
    return fmt::format("{}.{}: lbfd took nothing of this step: {}", selected.job, step_name(step),
                       printable(why->get<std::string>()));
  }
  return {};
}

}  // namespace

Error nothing_known(HttpClient& client, const Selection& selection) {
  for (const JobSelector& selected : selection.jobs) {
    if (std::string why = why_refused(client, selected); !why.empty()) return {ErrorCode::kNotFound, std::move(why)};
  }
  const std::string filters = describe_filters(selection);
  return {ErrorCode::kNotFound,
          describe(selection.jobs) + ": lbfd knows no such step that you may see" +
              (filters.empty() ? "; steps are recorded when they run with srun --lbf-predict, those of other users are "
                                 "for operators only"
                               : " and that matches " + filters + "; leave a filter out")};
}

std::string address_of(const Step& step) {
  return "/v1/steps/" + key_of(step);
}

}  // namespace lbf::tools
