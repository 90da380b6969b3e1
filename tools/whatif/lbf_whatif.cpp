// lbf-whatif: how long a recorded program would take elsewhere. Reads a text trace, a stored trace or a job's
// trace from lbfd, predicts every combination of node count, placement and network in one pass.
//
// Implements docs/man/lbf-whatif.1 (the options and JSON keys are a contract).

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "predictor/engine/metric/predictor.h"
#include "tools/support/command_line.h"
#include "tools/support/environment.h"
#include "tools/support/message.h"
#include "tools/support/progress.h"
#include "tools/whatif/extrapolated_trace.h"
#include "tools/whatif/procedure_question.h"
#include "tools/whatif/sensitivity_answer.h"
#include "tools/whatif/target_options.h"
#include "tools/whatif/trace_replay.h"
#include "tools/whatif/whatif_html.h"
#include "tools/whatif/whatif_output.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {
namespace {

constexpr Messages kMessages{"lbf-whatif"};

// As the user wrote it.
struct CommandLine {
  std::vector<std::string> traces;
  Rank ranks = 0;  // not 0: of these traces, extrapolated
  std::string server = default_server();
  std::string mpi_library;
  std::string html;
  std::uint32_t replay_threads = default_replay_threads();
  bool json = false;
  WhatIfOptions targets;
  ProcedureOptions procedures;
  SensitivityOptions sensitivity;
  bool one_node_each = false;  // see check()
};

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("lbf-whatif ") + LBF_VERSION);
  app.add_option("TRACE", line.traces,
                 "a text trace, a stored trace (file, or folder of stream-*.lbfw), an OTF2 archive (NAME.otf2), or "
                 "JOB[_TASK|+OFFSET][.STEP] of a job that lbfd knows; with --ranks several of one program");
  app.add_option("--ranks", line.ranks,
                 "the program with so many ranks, extrapolated from its runs with two rank counts or more")
      ->check(CLI::Range(Rank{2}, kMaxRanks));
  add_target_options(app, line.targets);
  add_procedure_options(app, line.procedures);
  add_sensitivity_options(app, line.sensitivity);
  app.add_option("--mpi-library", line.mpi_library,
                 "whose algorithms the collectives follow, without settings: openmpi-4.1, openmpi-5.0, openmpi-6.0, "
                 "mpich-4.0 or mpich-5.0 (default: the library and the settings that ran, openmpi-4.1 where the "
                 "trace does not say)")
      ->check(CLI::IsMember(engine::mpi_library_names()));
  add_replay_threads_option(app, line.replay_threads);
  app.add_option("--server", line.server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
  CLI::Option* const json = app.add_flag("--json", line.json, "print JSON");
  app.add_option("--html", line.html, "write a page that needs nothing else into this file; - is standard output")
      ->excludes(json);
}

// What is wrong with the options, in one line; empty: nothing.
std::string check(const CLI::App& app, CommandLine& line) {
  if (line.traces.empty()) return "TRACE is missing: what to replay; lbf-whatif --help";
  if (line.ranks == 0 && line.traces.size() > 1) return "one TRACE, or --ranks N and runs with several rank counts";
  if (line.ranks > 0 && line.procedures.given()) return "--ranks: procedures are not extrapolated";
  if (const std::string wrong = check_procedure_options(line.procedures); !wrong.empty()) return wrong;
  if (line.sensitivity.given() && line.procedures.given())
    return "--sensitivity follows targets as they are, without procedures moved: ask for one at a time";
  // Asked for procedures alone, the targets are a processor for each rank: the critical path's.
  line.one_node_each = line.procedures.given() && line.targets.nodes.empty() && app.count("--placement") == 0;
  if (!line.one_node_each) {
    if (const std::string wrong = check_target_options(app, line.targets); !wrong.empty()) return wrong;
  }
  if (app.count("--server") > 0) {
    if (const auto client = HttpClient::make(line.server); !client) return "--server " + client.error().message;
  }
  return {};
}

void warn_of_stuck_targets(const WhatIfResult& result) {
  std::size_t stuck = 0;
  std::string why;
  for (const engine::Prediction& prediction : result.predictions) {
    if (!is_stuck(result, prediction)) continue;
    if (++stuck == 1) why = prediction.why_stuck;
  }
  if (stuck == 0) return;
  kMessages.warn("on " + std::to_string(stuck) + " of " + std::to_string(result.predictions.size()) +
                 " targets the program would not end: " + why);
}

Result<ProcedureQuestion> ask_about_procedures(const ProcedureOptions& options, WhatIfTrace& trace) {
  Result<std::vector<std::string>> known = trace.procedures(WhatIfTrace::Samples::kStandIn);
  if (!known) return known.error();
  Result<ProcedureQuestion> question = make_procedure_question(options, *known, trace.ranks(), trace.switched_off());
  if (!question) return question;
  for (const std::string& name : question->left_out) {
    kMessages.note(name + " is left out: it was switched off while it ran, its times are a part of what they were");
  }
  for (const std::string& name : question->names) {
    if (!trace.sampled().contains(name)) continue;
    question->sampled.insert(name);
    kMessages.note("the time of " + name + " is sampled: an average share of the time between MPI calls on each rank");
  }
  return question;
}

// Names, by the numbers that events have; with what is to be known of the times.
Result<std::vector<std::string>> procedures_of_paths(WhatIfTrace& trace) {
  Result<std::vector<std::string>> names = trace.procedures(WhatIfTrace::Samples::kStandIn);
  if (!names) return names;
  for (std::string& name : *names) {
    if (trace.sampled().contains(name)) {
      name += " (sampled)";
    } else if (trace.switched_off().contains(name)) {
      name += " (switched off while it ran)";
    }
  }
  return names;
}

// The predictor of all targets and scenarios and, where procedures are asked for, one more of the first
// target, whose critical path is followed.
struct Replay {
  std::unique_ptr<engine::Predictor> predictor;
  std::unique_ptr<engine::Predictor> of_path;
  std::unique_ptr<engine::CriticalPath> path;

  template <typename Action>
  void for_each(const Action& action) {
    action(*predictor);
    if (of_path) action(*of_path);
  }
};

// PATH_PROCEDURES: those that the paths of followed clocks tell apart.
Result<Replay> make_replay(Rank ranks, const std::vector<engine::Target>& targets,
                           const std::optional<ProcedureQuestion>& question, engine::Clocks clocks,
                           std::size_t path_procedures = 0) {
  Replay replay;
  if (question) {
    auto made = engine::Predictor::make(ranks, {targets.front()}, {{}, question->plan.profiled});
    if (!made) return made.error();
    replay.of_path = std::move(*made);
    replay.path = std::make_unique<engine::CriticalPath>(question->plan.profiled.size());
    replay.of_path->observe_timeline(*replay.path);
  }
  engine::ProcedurePlan plan = question ? question->plan : engine::ProcedurePlan{};
  for (std::size_t p = 0; p < path_procedures; ++p) plan.profiled.push_back(static_cast<std::uint32_t>(p));
  auto made =
      engine::Predictor::make(ranks, question ? with_scenarios(targets, *question) : targets, std::move(plan), clocks);
  if (!made) return made.error();
  replay.predictor = std::move(*made);
  return replay;
}

Result<ReplayedTrace> replay_trace(WhatIfTrace& trace, Replay& replay) {
  Progress progress("lbf-whatif", "replayed");
  const auto sink = [&](Rank rank, std::span<const Event> events) -> Result<void> {
    if (replay.of_path) {
      if (Result<void> fed = replay.of_path->feed(rank, events); !fed) return fed;
    }
    return replay.predictor->feed(rank, events);
  };
  RoundsSink rounds;
  if (!replay.of_path)
    rounds = [&](Rank rank, const Rounds& of_rank) { return replay.predictor->feed_rounds(rank, of_rank); };
  if (Result<void> read = trace.read(sink, rounds, [&](double share) { progress.show(share); }); !read)
    return read.error();
  if (replay.of_path) (void)finish_replay(trace, *replay.of_path);
  return finish_replay(trace, *replay.predictor);
}

// Takes the scenarios' predictions out of `predictions`, which keeps those of the targets as they ran.
ProcedureAnswer answer_of(ProcedureQuestion question, const Replay& replay,
                          std::vector<engine::Prediction>& predictions) {
  ProcedureAnswer answer;
  const std::size_t targets = predictions.size() / (question.scenarios.size() + 1);
  for (std::size_t v = 1; v <= question.scenarios.size(); ++v) {
    const auto first = predictions.begin() + static_cast<std::ptrdiff_t>(v * targets);
    answer.predictions.emplace_back(first, first + static_cast<std::ptrdiff_t>(targets));
  }
  predictions.resize(targets);
  answer.question = std::move(question);
  answer.scenario_stats = replay.predictor->scenario_stats();
  answer.procedure_stats = replay.of_path->procedure_stats();
  answer.path = replay.path->profile();
  return answer;
}

Result<WhatIfResult> predict(const CommandLine& line) {
  Result<std::unique_ptr<WhatIfTrace>> trace = line.ranks > 0 ? open_extrapolated(line.traces, line.ranks, line.server)
                                                              : open_trace(line.traces.front(), line.server);
  if (!trace) return trace.error();
  WhatIfResult result;
  result.trace = line.traces.front();
  for (std::size_t i = 1; i < line.traces.size(); ++i) result.trace += ", " + line.traces[i];
  result.ranks = (*trace)->ranks();
  std::optional<ProcedureQuestion> question;
  if (line.procedures.given()) {
    Result<ProcedureQuestion> made = ask_about_procedures(line.procedures, **trace);
    if (!made) return made.error();
    question = std::move(*made);
  }
  WhatIfOptions options = line.targets;
  if (options.memory.ranks_per_domain == 0) options.memory = (*trace)->memory();
  options.memory.network = (*trace)->memory().network;
  result.memory = options.memory;
  result.domains_that_ran = domains_that_ran(options.memory, options.networks_dir);
  if (line.one_node_each) options.nodes.push_back(static_cast<std::uint32_t>(result.ranks));
  std::vector<std::string> notes;
  Result<std::vector<engine::Target>> targets = make_targets(options, result.ranks, notes);
  if (!targets) return targets.error();
  for (const std::string& note : notes) kMessages.note(note);
  result.targets = std::move(*targets);
  // A procedure that runs elsewhere would not meet them as they came.
  if (!question && (*trace)->self()) set_other_programs(*(*trace)->self(), result.targets);
  std::vector<std::string> path_procedures;
  if (line.sensitivity.given()) {
    Result<std::vector<std::string>> known = procedures_of_paths(**trace);
    if (!known) return known.error();
    path_procedures = std::move(*known);
  }
  engine::MpiSetup mpi = engine::mpi_setup((*trace)->library(), (*trace)->node_of_rank(), (*trace)->mpi_settings());
  if (const auto asked = engine::mpi_library_named(line.mpi_library)) engine::replace_library(mpi, *asked);
  result.mpi_rules = mpi.rules;
  result.mpi_note = engine::mpi_note(mpi, (*trace)->library());
  if (!result.mpi_note.empty()) kMessages.note(result.mpi_note);
  Replay replay;  // of what has to be followed while it is replayed; of targets alone it stays empty
  Result<ReplayedTrace> replayed = ReplayedTrace{};
  if (question || line.sensitivity.given()) {
    const engine::Clocks clocks = line.sensitivity.given() ? engine::Clocks::kFollowed : engine::Clocks::kPlain;
    Result<Replay> made = make_replay(result.ranks, result.targets, question, clocks, path_procedures.size());
    if (!made) return made.error();
    replay = std::move(*made);
    replay.for_each([&](engine::Predictor& each) { each.set_mpi(mpi); });
    replayed = replay_trace(**trace, replay);
  } else {
    Progress progress("lbf-whatif", "replayed");
    replayed =
        replay_targets(**trace, result.targets, mpi, line.replay_threads, [&](double share) { progress.show(share); });
  }
  if (!replayed) return replayed.error();
  for (const std::string& note : (*trace)->notes()) kMessages.warn(note);

  result.why_partial = replayed->why_partial;
  if (!result.why_partial.empty()) kMessages.warn("the prediction is partial: " + result.why_partial);
  result.predictions = std::move(replayed->predictions);
  result.costs = std::move(replayed->costs);
  result.stats = replayed->stats;
  result.self = (*trace)->self();
  result.trust = (*trace)->trust()
                     ? *(*trace)->trust()
                     : trust_of_replay(result.stats, result.predictions.front(), mpi.rules, result.why_partial);
  result.trust.other_ranks_percent = (*trace)->other_ranks_percent();
  if (line.sensitivity.given()) {
    const auto replay_again =
        [&](const std::vector<engine::Target>& probed) -> Result<std::vector<engine::Prediction>> {
      Result<Replay> pass = make_replay(result.ranks, probed, {}, engine::Clocks::kComposed);
      if (!pass) return pass.error();
      pass->predictor->set_mpi(mpi);
      Result<ReplayedTrace> again = replay_trace(**trace, *pass);
      if (!again) return again.error();
      return std::move(again->predictions);
    };
    auto found = find_sensitivity(line.sensitivity, result.targets, result.predictions, replay_again);
    if (!found) return found.error();
    result.sensitivity = std::move(*found);
    result.sensitivity->procedures = std::move(path_procedures);
  }
  if (question) result.procedures = answer_of(std::move(*question), replay, result.predictions);
  warn_of_stuck_targets(result);
  return result;
}

int write_page(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? 0 : kMessages.fail(kExitFailure, path + ": cannot be written; name another file with --html");
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"How long a recorded program would take on other nodes, placements and networks.", "lbf-whatif"};
  add_options(app, line);
  if (const auto status = parse(app, argc, argv, kMessages)) return *status;
  if (const std::string wrong = check(app, line); !wrong.empty()) return kMessages.fail(kExitUsage, wrong);
  const Result<WhatIfResult> result = predict(line);
  if (!result) return kMessages.fail(result.error());
  if (line.json) return kMessages.write(whatif_json(*result));
  if (line.html.empty()) return kMessages.write(whatif_table(*result));
  const std::string page = whatif_html(*result, LBF_VERSION);
  return line.html == "-" ? kMessages.write(page) : write_page(line.html, page);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run_command(lbf::tools::run, argc, argv, lbf::tools::kMessages);
}
