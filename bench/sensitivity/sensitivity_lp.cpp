// bench/sensitivity/run's other half: for one trace, times, slopes and curves as lbf has them, and the linear programs
// of the same questions in CPLEX's format, for a solver. Prints one line of JSON.
//
// An LP has the times of one target in units of which its run takes 10,000, because a solver's tolerance is absolute;
// the parameter is a variable that a row named "parameter" fixes, whose dual is the slope.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/sensitivity/expression.h"
#include "event/synth.h"
#include "predictor/engine/match/matcher.h"
#include "predictor/engine/metric/sensitivity.h"
#include "predictor/engine/metric/target_checks.h"
#include "predictor/engine/replay/dedicated_replay_impl.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/random_trace.h"
#include "tools/whatif/target_options.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::bench {
namespace {

using engine::Parameter;
using engine::Target;
using Source = std::function<Result<void>(const EventBlockSink&)>;

struct Question {
  Rank ranks = 0;
  Source source;
  Target target;
  engine::MpiSetup mpi;
  bool may_jump = false;  // then it is no linear program
};

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "sensitivity_lp: %s\n", why.c_str());
  std::exit(1);
}

template <typename Value>
Value or_fail(Result<Value> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

// A program and a target of the engine's own tests (tests/unit/replay).
Question random_question(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto trace = std::make_shared<random_trace::Trace>(random_trace::make_trace(random, random_trace::Regions::kSome));
  Question question;
  question.ranks = trace->ranks;
  question.target = random_trace::make_configuration(random, trace->ranks).target;
  Target& target = question.target;
  target.cores_per_node = 4 * static_cast<std::uint32_t>(trace->ranks);
  target.cores_of_node.clear();
  target.memory = {};
  target.threads = 2;
  auto network = std::make_shared<engine::Network>(*target.network);
  network->set_contention(engine::Contention::kNone);
  target.network = network;
  for (const std::uint32_t hops : {0U, 1U, 2U, 3U, 4U, engine::kUnknownHops})
    question.may_jump = question.may_jump || network->path(hops).first_peer_s > 0;
  for (const reference::Process& process : trace->program.processes) {
    for (const reference::Action& action : process.actions)
      question.may_jump = question.may_jump || action.kind == reference::Action::Kind::kLook;
  }
  question.source = [trace](const EventBlockSink& sink) -> Result<void> {
    for (Rank rank = 0; rank < trace->ranks; ++rank) {
      if (Result<void> fed = sink(rank, trace->events[static_cast<std::size_t>(rank)]); !fed) return fed;
    }
    return {};
  };
  return question;
}

Question synthetic_question(const std::string& pattern, Rank ranks, std::uint64_t iterations) {
  Question question;
  question.ranks = ranks;
  question.source = [=](const EventBlockSink& sink) {
    return synthesize(pattern, ranks, iterations,
                      [&](Rank rank, const Event& event) { return sink(rank, std::span(&event, 1)); });
  };
  return question;
}

std::vector<engine::Prediction> predict(const Question& question, const std::vector<Target>& targets,
                                        engine::Clocks clocks) {
  auto predictor = or_fail(engine::Predictor::make(question.ranks, targets, {}, clocks));
  predictor->set_mpi(question.mpi);
  or_fail(question.source([&](Rank rank, std::span<const Event> events) { return predictor->feed(rank, events); }));
  for (Rank rank = 0; rank < question.ranks; ++rank) predictor->close(rank);
  or_fail(predictor->advance());
  return predictor->predictions();
}

// The graph of the question's target. The last variable is the end of the last rank.
LinearProgram write_program(const Question& question) {
  LinearProgram program;
  written = &program;
  engine::OpStore store(question.ranks, 1);
  const std::vector<Target> targets{question.target};
  engine::Matcher matcher(
      question.ranks, store,
      {engine::eager_up_to(targets), engine::any_first_message(targets), engine::any_local_cost(targets)});
  matcher.set_mpi(question.mpi);
  engine::DedicatedReplayOf<Expression> replay({&question.target}, store);
  const auto advance = [&] {
    matcher.settle();
    replay.advance();
    store.clear_touched();
  };
  or_fail(question.source([&](Rank rank, std::span<const Event> events) -> Result<void> {
    if (Result<void> fed = matcher.feed(rank, events); !fed) return fed;
    advance();
    return {};
  }));
  for (Rank rank = 0; rank < question.ranks; ++rank) matcher.close(rank);
  advance();
  const std::uint32_t end = ++program.variables;
  for (Rank rank = 0; rank < question.ranks; ++rank) {
    const Expression& finish = replay.clock_of(0, rank);
    program.rows.push_back({end, finish.variable, finish.offset});
  }
  return program;
}

void save_program(const LinearProgram& program, Parameter parameter, double factor, Seconds unit_s,
                  const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) fail(path + ": cannot be written");
  std::fprintf(file, "Minimize\n end: v%u\nSubject To\n parameter: p = %.17g\n", program.variables, factor);
  for (const Row& row : program.rows) {
    std::fprintf(file, " v%u", row.variable);
    if (row.from != 0) std::fprintf(file, " - v%u", row.from);
    const Seconds scaled = engine::scaled_s(row.offset, parameter);
    if (scaled != 0) std::fprintf(file, " %+.17g p", -scaled / unit_s);
    std::fprintf(file, " >= %.17g\n", (row.offset.value - scaled) / unit_s);
  }
  std::fprintf(file, "End\n");
  if (std::fclose(file) != 0) fail(path + ": cannot be written");
}

nlohmann::json answer(const Question& question, const std::vector<double>& factors, const engine::FactorRange& range,
                      const std::string& folder) {
  nlohmann::json out;
  double start_s = cpu_s();
  const engine::Prediction plain = predict(question, {question.target}, engine::Clocks::kPlain).front();
  out["plain_s"] = cpu_s() - start_s;
  out["complete"] = plain.complete;
  out["may_jump"] = question.may_jump;
  if (!plain.complete || question.may_jump) return out;
  start_s = cpu_s();
  (void)predict(question, {question.target}, engine::Clocks::kComposed);
  out["composed_s"] = cpu_s() - start_s;
  start_s = cpu_s();
  const LinearProgram program = write_program(question);
  out["problem_s"] = cpu_s() - start_s;
  const Seconds unit_s = std::max(plain.lbf_s, 1e-9) / 1e4;
  out["unit_s"] = unit_s;
  out["rows"] = program.rows.size();
  out["variables"] = program.variables;
  for (const Parameter parameter : engine::kParameters) {
    nlohmann::json& of = out["parameters"].emplace_back();
    of["name"] = engine::parameter_name(parameter);
    int probes = 0;
    int passes = 0;
    start_s = cpu_s();
    const auto curves = or_fail(engine::find_curves(
        {engine::CurveSearch(range)},
        [&](std::span<const engine::ProbeRequest> requests) -> Result<std::vector<engine::Tangent>> {
          std::vector<Target> targets;
          for (const auto& request : requests)
            targets.push_back(engine::scaled(question.target, parameter, request.factor));
          const auto predictions = predict(question, targets, engine::Clocks::kComposed);
          std::vector<engine::Tangent> tangents;
          for (std::size_t i = 0; i < requests.size(); ++i)
            tangents.push_back(engine::tangent_of(predictions[i], parameter, requests[i].factor));
          probes += static_cast<int>(requests.size());
          ++passes;
          return tangents;
        }));
    of["curve_s"] = cpu_s() - start_s;
    of["probes"] = probes;
    of["passes"] = passes;
    of["breakpoints"] = curves.front().points.size() - 2;
    of["not_convex"] = curves.front().not_convex.size();
    for (const double factor : factors) {
      const std::string path =
          folder + "/" + std::string(engine::parameter_name(parameter)) + "-" + std::to_string(factor) + ".lp";
      save_program(program, parameter, factor, unit_s, path);
      const auto replayed =
          predict(question, {engine::scaled(question.target, parameter, factor)}, engine::Clocks::kComposed);
      const engine::Tangent tangent = engine::tangent_of(replayed.front(), parameter, factor);
      const auto& points = curves.front().points;
      const bool bends = std::any_of(points.begin(), points.end(), [&](const auto& point) {
        return std::abs(point.factor - factor) <= 1e-9 * factor;
      });
      of["factors"].push_back({{"factor", factor},
                               {"bends", bends},
                               {"time_s", tangent.time_s},
                               {"slope_s", tangent.slope_s},
                               {"curve_time_s", curves.front().time_s(factor)},
                               {"lp", path}});
    }
  }
  return out;
}

int run(int argc, char** argv) {
  CLI::App app{"Times, slopes and curves of a trace, and their linear programs.", "sensitivity_lp"};
  std::string trace;
  std::uint64_t seed = 0;
  std::string pattern;
  Rank ranks = 16;
  std::uint64_t iterations = 10;
  std::vector<double> factors{0.7, 1, 3.1};
  std::string folder = ".";
  tools::WhatIfOptions options;
  app.add_option("TRACE", trace, "a trace as lbf-whatif reads them");
  CLI::Option* const random = app.add_option("--random", seed, "a random program on a random target instead");
  app.add_option("--synth", pattern, "a pattern of lbf-trace synth instead");
  app.add_option("--ranks", ranks, "of the pattern");
  app.add_option("--iterations", iterations, "of the pattern");
  app.add_option("--factors", factors, "where to compare")->delimiter(',');
  app.add_option("--folder", folder, "where the linear programs go");
  tools::add_target_options(app, options);
  CLI11_PARSE(app, argc, argv);

  Question question;
  std::unique_ptr<tools::WhatIfTrace> opened;
  if (random->count() > 0) {
    question = random_question(seed);
  } else {
    if (!pattern.empty()) {
      question = synthetic_question(pattern, ranks, iterations);
    } else {
      opened = or_fail(tools::open_trace(trace, ""));
      question.ranks = opened->ranks();
      question.mpi = engine::mpi_setup(opened->library(), opened->node_of_rank());
      question.source = [&](const EventBlockSink& sink) { return opened->read(sink, [](double) {}); };
      or_fail(question.source([&](Rank, std::span<const Event> events) -> Result<void> {
        for (const Event& event : events)
          question.may_jump = question.may_jump || (event.kind == EventKind::kBlocked && look_period_ns(event) > 0);
        return {};
      }));
    }
    std::vector<std::string> notes;
    question.target = or_fail(tools::make_targets(options, question.ranks, notes)).front();
  }
  std::printf("%s\n", answer(question, factors, {0.1, 10}, folder).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lbf::bench

int main(int argc, char** argv) {
  return lbf::bench::run(argc, argv);
}
