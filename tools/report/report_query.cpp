#include "tools/report/report_query.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "advisor/report/render.h"

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

Result<std::string> ask(HttpClient& client, Selection& selection) {
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
      return ask(client, selection);
    }
    if (response->status != 200) return refused(selection, error_of_response(*response));
    answers.push_back(std::move(response->body));
  }
  // For people: parse_steps sorts it, and nothing is in there twice.
  if (answers.size() == 1 && !selection.detail) return std::move(answers.front());
  return join_answers(answers);
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
