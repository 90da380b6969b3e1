#include "tools/report/report_query.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "advisor/report/render.h"
#include "advisor/report/step_rows.h"

namespace lbf {

using namespace report;  // NOLINT(google-build-using-namespace)

Error refused(const Selection& selection, const Error& error) {
  if (error.code != ErrorCode::kPermission) return error;
  if (selection.all_users) {
    return {error.code,
            "the steps of all users are for root, SlurmUser and lbfd's operators only; leave out -a"};
  }
  if (!selection.users.empty()) {
    return {error.code,
            "the steps of other users are for root, SlurmUser and lbfd's operators only; leave out -u"};
  }
  return error;
}

namespace {

Result<std::vector<std::string>> answers_of(HttpClient& client, Selection& selection) {
  std::vector<std::string> answers;
  for (const std::string& target : request_targets(selection)) {
    auto response = client.request("GET", target);
    if (!response) {
      Error error = response.error();
      if (error.code == ErrorCode::kUnavailable) error.message += "; another address: --server or LBF_SERVER";
      return error;
    }
    const bool asked_for_all = !selection.jobs.empty() && selection.users.empty() && !selection.all_users;
    if (response->status == 403 && asked_for_all && selection.operator_view) {
      selection.operator_view = false;
      return answers_of(client, selection);
    }
    if (response->status != 200) return refused(selection, error_of_response(*response));
    answers.push_back(std::move(response->body));
  }
  return answers;
}

}  // namespace

Result<std::string> ask(HttpClient& client, Selection& selection) {
  auto answers = answers_of(client, selection);
  if (!answers) return answers.error();
  // For people: parse_steps sorts it, and nothing is in there twice.
  if (answers->size() == 1 && !selection.detail) return std::move(answers->front());
  return join_answers(*answers);
}

Result<std::vector<Step>> ask_rows(HttpClient& client, Selection& selection) {
  const auto answers = answers_of(client, selection);
  if (!answers) return answers.error();
  std::vector<std::vector<Step>> steps;
  for (const std::string& answer : *answers) {
    auto rows = parse_rows(answer);
    if (!rows) return rows.error();
    steps.push_back(std::move(*rows));
  }
  return merge_steps(std::move(steps));
}

Error nothing_known(const Selection& selection) {
  return {ErrorCode::kNotFound,
          describe(selection.jobs) +
              ": lbfd knows no such step that you may see; steps are recorded when they run "
              "with srun --lbf-predict, those of other users are for operators only"};
}

std::string address_of(const Step& step) {
  return fmt::format("/v1/steps/{}/{}/{}/{}", step.cluster, step.job, step.step, step.restart);
}

}  // namespace lbf
