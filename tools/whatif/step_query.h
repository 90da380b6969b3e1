// ask_for_steps: lbfd's answer about steps, for a user and for an operator.
#pragma once

#include <string>

#include "base/http_client.h"
#include "base/result.h"

namespace lbf::tools {

// lbfd's answer to QUERY (/v1/steps?...): the caller's own steps; where he has none, everybody's, which lbfd tells an
// operator only. Errors: those of the connection.
Result<HttpResponse> ask_for_steps(HttpClient& client, const std::string& query);

}  // namespace lbf::tools
