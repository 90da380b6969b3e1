// Asking lbfd for steps: what lbf-report and lbf-watch have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "report/selection.h"
#include "report/step.h"

namespace lbf::tools {

// lbfd's answers, joined to one {"steps":[...]}. Where lbfd says that the caller is no operator, his own jobs
// are asked for, now and from then on (`selection` is changed). Errors: kUnavailable (no lbfd: names the
// address and the option), kPermission in the words of the command's options, lbfd's others.
Result<std::string> ask(HttpClient& client, report::Selection& selection);

// The same, given on as it comes, answer after answer: `piece` gets what came, `end` is called after each
// answer; its error ends the asking.
Result<void> ask_each(HttpClient& client, report::Selection& selection, const HttpBodySink& piece,
                      const std::function<Result<void>()>& end);

// The same with selection.rows: what lists show of each step, as it comes and in no order; each step once.
Result<void> ask_rows(HttpClient& client, report::Selection& selection,
                      const std::function<void(report::Step& step)>& take);

// The same of all steps of the selection, however many: where an answer has as many as lbfd gives at most, the steps
// that began before them are asked for next. False: so many began in one second, and further ones of it are missing.
// REQUIRES: the selection's rows have "start".
Result<bool> ask_all_rows(HttpClient& client, report::Selection& selection,
                          const std::function<void(report::Step& step)>& take);

// What lbfd refuses, in the words of the command's options.
Error refused(const report::Selection& selection, const Error& error);

// No step answers the selection's jobs; or lbfd took nothing of it, and why.
Error nothing_known(HttpClient& client, const report::Selection& selection);

// "/v1/steps/CLUSTER/JOB/STEP/RESTART"
std::string address_of(const report::Step& step);

}  // namespace lbf::tools
