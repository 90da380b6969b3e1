// lbf-whatif: how long a recorded program would take elsewhere. Reads a text trace, a stored trace or a job's
// trace from lbfd, predicts every combination of node count, placement and network in one pass.
//
// Implements design.md section 6 (the options and JSON keys are a contract).

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "report/text.h"
#include "base/http_client.h"
#include "predictor/engine/metric/predictor.h"
#include "tools/support/environment.h"
#include "tools/support/progress.h"
#include "tools/whatif/procedure_question.h"
#include "tools/whatif/target_options.h"
#include "tools/whatif/whatif_html.h"
#include "tools/whatif/whatif_output.h"
#include "tools/whatif/whatif_trace.h"

using namespace lbf;  // NOLINT(google-build-using-namespace): a main of the project
using namespace lbf::tools;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// `what` may have a file's name or lbfd's words in it: one line, nothing that acts on a terminal.
int fail(int status, const std::string& what) {
  std::fprintf(stderr, "lbf-whatif: error: %s\n", report::printable(what).c_str());
  return status;
}

void warn_of_stuck_targets(const WhatIfResult& result) {
  std::size_t stuck = 0;
  std::string why;
  for (const engine::Prediction& prediction : result.predictions) {
    if (!is_stuck(result, prediction)) continue;
    if (++stuck == 1) why = prediction.why_stuck;
  }
  if (stuck == 0) return;
  std::fprintf(stderr, "lbf-whatif: warning: on %zu of %zu targets the program would not end: %s\n", stuck,
               result.predictions.size(), report::printable(why).c_str());
}

// Takes the scenarios' predictions out of `predictions`, which keeps those of the targets as they ran.
ProcedureAnswer answer_of(ProcedureQuestion question, const engine::Predictor& predictor,
                               const engine::Predictor& of_path, const engine::CriticalPath& path,
                               std::vector<engine::Prediction>& predictions) {
  ProcedureAnswer answer;
  const std::size_t targets = predictions.size() / (question.scenarios.size() + 1);
  for (std::size_t v = 1; v <= question.scenarios.size(); ++v) {
    const auto first = predictions.begin() + static_cast<std::ptrdiff_t>(v * targets);
    answer.predictions.emplace_back(first, first + static_cast<std::ptrdiff_t>(targets));
  }
  predictions.resize(targets);
  answer.question = std::move(question);
  answer.scenario_stats = predictor.scenario_stats();
  answer.procedure_stats = of_path.procedure_stats();
  answer.path = path.profile();
  return answer;
}

int write_page(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(kFailure, path + ": cannot be written; name another file with --html");
  return 0;
}

int run(int argc, char** argv) {
  WhatIfOptions options;
  std::string server = default_server();
  std::string trace_name;
  bool json = false;

  CLI::App app{"How long a recorded program would take on other nodes, placements and networks.",
               "lbf-whatif"};
  app.set_version_flag("--version", std::string("lbf-whatif ") + LBF_VERSION);
  app.add_option("TRACE", trace_name,
                 "a text trace, a stored trace (file, or folder of stream-*.lbfw), or "
                 "JOB[_TASK|+OFFSET][.STEP] of a job that lbfd knows");
  add_target_options(app, options);
  ProcedureOptions procedures;
  add_procedure_options(app, procedures);
  std::string mpi_library;
  std::vector<std::string> mpi_libraries;
  for (int i = 0; i < engine::kMpiLibraryCount; ++i) {
    mpi_libraries.emplace_back(engine::mpi_library_name(static_cast<engine::MpiLibrary>(i)));
  }
  app.add_option("--mpi-library", mpi_library,
                 "whose algorithms the collectives follow: openmpi-4.1, openmpi-5.0 or mpich-4.0 (default: "
                 "the library that ran, openmpi-4.1 where the trace does not say)")
      ->check(CLI::IsMember(mpi_libraries));
  const CLI::Option* server_option =
      app.add_option("--server", server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
  CLI::Option* const json_option = app.add_flag("--json", json, "print JSON");
  std::string html;
  app.add_option("--html", html, "write a page that needs nothing else into this file; - is standard output")->excludes(json_option);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(kUsage, std::string(error.what()) + "; lbf-whatif --help lists the options");
  }
  if (trace_name.empty()) return fail(kUsage, "TRACE is missing: what to replay; lbf-whatif --help");
  std::string wrong = check_procedure_options(procedures);
  // Asked for procedures alone, the targets are a processor for each rank: the critical path's.
  const bool one_each = procedures.given() && options.nodes.empty() && app.count("--placement") == 0;
  if (wrong.empty() && !one_each) wrong = check_target_options(app, options);
  if (!wrong.empty()) return fail(kUsage, wrong);

  if (server_option->count() > 0) {
    if (const auto client = HttpClient::make(server); !client) {
      return fail(kUsage, "--server " + client.error().message);
    }
  }
  Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(trace_name, server);
  if (!trace) return fail(kFailure, trace.error().message);
  WhatIfResult result;
  result.trace = trace_name;
  result.ranks = (*trace)->ranks();
  if (one_each) options.nodes.push_back(static_cast<std::uint32_t>(result.ranks));
  std::optional<ProcedureQuestion> question;
  if (procedures.given()) {
    Result<std::vector<std::string>> known = (*trace)->procedures(WhatIfTrace::Samples::kStandIn);
    if (!known) return fail(kFailure, known.error().message);
    Result<ProcedureQuestion> made =
        make_procedure_question(procedures, *known, result.ranks, (*trace)->switched_off());
    if (!made) return fail(kFailure, made.error().message);
    question = std::move(*made);
    for (const std::string& name : question->left_out) {
      std::fprintf(stderr,
                   "lbf-whatif: note: %s is left out: it was switched off while it ran, its times are a part of what they "
                   "were\n",
                   report::printable(name).c_str());
    }
    for (const std::string& name : question->names) {
      if (!(*trace)->sampled().contains(name)) continue;
      question->sampled.insert(name);
      std::fprintf(stderr,
                   "lbf-whatif: note: the time of %s is sampled: an average share of the time between MPI calls on each rank\n",
                   report::printable(name).c_str());
    }
  }
  Result<std::vector<engine::Target>> targets = make_targets(options, result.ranks);
  if (!targets) return fail(kFailure, targets.error().message);
  result.targets = *targets;
  engine::ProcedurePlan plan;
  std::unique_ptr<engine::Predictor> of_path;
  std::optional<engine::CriticalPath> path;
  if (question) {
    plan = question->plan;
    *targets = with_scenarios(*targets, *question);
    Result<std::unique_ptr<engine::Predictor>> made =
        engine::Predictor::make(result.ranks, {result.targets.front()}, {{}, plan.profiled});
    if (!made) return fail(kFailure, made.error().message);
    of_path = std::move(*made);
    path.emplace(plan.profiled.size());
    of_path->observe_timeline(*path);
  }
  Result<std::unique_ptr<engine::Predictor>> predictor =
      engine::Predictor::make(result.ranks, std::move(*targets), plan);
  if (!predictor) return fail(kFailure, predictor.error().message);
  engine::MpiSetup mpi = engine::mpi_setup((*trace)->library(), (*trace)->node_of_rank());
  if (const auto asked = engine::mpi_library_named(mpi_library)) mpi.rules = {*asked, true};
  result.mpi_rules = mpi.rules;
  result.mpi_note = engine::mpi_rules_note(mpi.rules, (*trace)->library());
  if (!result.mpi_note.empty()) {
    std::fprintf(stderr, "lbf-whatif: note: %s\n", report::printable(result.mpi_note).c_str());
  }
  (*predictor)->set_mpi(mpi);
  if (of_path) of_path->set_mpi(mpi);
  {
    Progress progress("lbf-whatif", "replayed");
    const auto sink = [&](Rank rank, std::span<const Event> events) -> Result<void> {
      if (of_path) {
        if (Result<void> fed = of_path->feed(rank, events); !fed) return fed;
      }
      return (*predictor)->feed(rank, events);
    };
    const Result<void> read = (*trace)->read(sink, [&](double share) { progress.show(share); });
    if (!read) return fail(kFailure, read.error().message);
    (*predictor)->set_capture_cost((*trace)->capture_cost());
    if (of_path) of_path->set_capture_cost((*trace)->capture_cost());
    for (Rank rank = 0; rank < result.ranks; ++rank) {
      (*predictor)->close(rank);
      if (of_path) of_path->close(rank);
    }
    (*predictor)->advance();
    if (of_path) of_path->advance();
  }
  if (const Result<void> whole = (*predictor)->diagnosis(); !whole) {
    result.why_partial = whole.error().message;
    std::fprintf(stderr, "lbf-whatif: warning: the prediction is partial: %s\n",
                 report::printable(result.why_partial).c_str());
  }
  result.predictions = (*predictor)->predictions();
  result.stats = (*predictor)->stats();
  if (question) result.procedures = answer_of(std::move(*question), **predictor, *of_path, *path, result.predictions);
  warn_of_stuck_targets(result);
  if (!html.empty() && html != "-") return write_page(html, whatif_html(result, LBF_VERSION));
  const std::string text = json            ? whatif_json(result)
                           : html.empty() ? whatif_table(result)
                                          : whatif_html(result, LBF_VERSION);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return fail(kFailure, "cannot write the result to standard output; is the disk full or the pipe closed?");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return fail(kFailure, error.what());
  }
}
