#include "tools/skeleton/skeleton_run.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/quoted.h"
#include "base/times.h"
#include "report/text.h"
#include "skeleton/about.h"
#include "tools/skeleton/record.h"
#include "tools/skeleton/skeleton_message.h"
#include "tools/skeleton/statistics.h"
#include "tools/support/progress.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kNodesWidth = 24;

// A skeleton, ready to run.
struct Session {
  skeleton::About about;
  std::string program;
  std::string record_file;
  SkeletonRecord record;
  Launcher launcher;
};

Result<Session> prepare(const RunOptions& options) {
  Session session;
  Result<Launcher> launcher = Launcher::parse(options.launcher);
  if (!launcher) return launcher.error();
  session.launcher = std::move(*launcher);
  session.launcher.distribution = options.distribution;
  session.launcher.limit_s = options.limit_s;
  Result<skeleton::About> about = skeleton::read_about(options.skeleton);
  if (!about) return about.error();
  session.about = *about;
  // A list of nodes that cannot be read is known before anything runs.
  for (const RunNodes& nodes : options.nodes) {
    if (const auto words = session.launcher.words(about->ranks, nodes); !words) return words.error();
  }
  session.record_file = record_path(options.skeleton);
  Result<SkeletonRecord> record = read_record(session.record_file, about->id);
  if (!record) return record.error();
  session.record = std::move(*record);
  Result<std::string> program = program_of(options.skeleton, options.compiler);
  if (!program) return program.error();
  session.program = std::move(*program);
  return session;
}

std::vector<NodeTimes> measure(Session& session, const RunOptions& options, double& used_rate) {
  std::optional<double> rate;
  // Elsewhere the same work as at the reference: another processor then takes another time for it.
  if (session.record.reference && !options.reference) rate = session.record.reference->rate;
  const std::vector<RunNodes> anywhere(1);
  std::vector<NodeTimes> measured = run_in_turn(session.program, session.about.ranks, session.launcher,
                                                options.nodes.empty() ? anywhere : options.nodes, options.repeat, rate);
  used_rate = rate.value_or(0);
  for (const NodeTimes& each : measured) {
    if (each.times_s.empty()) continue;
    session.record.runs.push_back(
        {utc_timestamp(std::time(nullptr)), each.nodes.text(), options.launcher, each.times_s, used_rate});
  }
  return measured;
}

// One line on stderr for each node set that failed. The exit status.
int report_failures(const RunOptions& options, const std::vector<NodeTimes>& measured) {
  int status = 0;
  for (const NodeTimes& each : measured) {
    if (each.why_failed.empty()) continue;
    status =
        kSkeletonMessages.fail(kExitFailure, options.skeleton + " on " + each.nodes.text() + ": " + each.why_failed);
  }
  return status;
}

std::string list_of(const std::vector<Seconds>& times_s) {
  std::string text;
  for (const Seconds each : times_s) text += (text.empty() ? "" : " ") + short_number(each);
  return text;
}

nlohmann::json json_of(const Session& session, const RunOptions& options) {
  nlohmann::json json = {{"skeleton", options.skeleton},
                         {"ranks", session.about.ranks},
                         {"factor", session.about.factor},
                         {"launcher", options.launcher}};
  if (session.record.reference) {
    json["reference_nodes"] = session.record.reference->nodes;
    json["reference_times_s"] = session.record.reference->times_s;
    json["application_s"] = session.record.application_s;
    json["ratio"] = session.record.ratio();
  }
  return json;
}

nlohmann::json json_of(const NodeTimes& each) {
  nlohmann::json json = {{"nodes", each.nodes.text()}, {"times_s", each.times_s}};
  if (!each.times_s.empty()) {
    const Quartiles quartiles = quartiles_of(each.times_s);
    json["median_s"] = quartiles.median;
    json["first_quartile_s"] = quartiles.first;
    json["third_quartile_s"] = quartiles.third;
  }
  if (!each.why_failed.empty()) json["error"] = each.why_failed;
  return json;
}

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string left(const std::string& text, std::size_t width) {
  return report::fit(report::printable(text), width, true);
}
std::string right(const std::string& text, std::size_t width) {
  return report::fit(text, width, false);
}

std::string runs_table(const std::vector<NodeTimes>& measured) {
  std::string out = left("Nodes", kNodesWidth) + "  Runs   Median s  Quartiles s          Times s\n";
  for (const NodeTimes& each : measured) {
    out += left(each.nodes.text(), kNodesWidth) + right(std::to_string(each.times_s.size()), 6);
    if (each.times_s.empty()) {
      out += "     failed\n";
      continue;
    }
    const Quartiles quartiles = quartiles_of(each.times_s);
    out += right(short_number(quartiles.median), 11) + "  " +
           left(short_number(quartiles.first) + " to " + short_number(quartiles.third), 19) + "  " +
           list_of(each.times_s) + "\n";
  }
  return out;
}

}  // namespace

std::vector<NodeTimes> run_in_turn(const std::string& program, Rank ranks, const Launcher& launcher,
                                   const std::vector<RunNodes>& nodes, int repeat, std::optional<double>& rate) {
  std::vector<NodeTimes> measured;
  for (const RunNodes& each : nodes) measured.push_back({each, {}, {}});
  Progress progress("lbf-skeleton", "of the runs done");
  const auto run = [&](NodeTimes& on) -> std::optional<SkeletonRun> {
    const Result<std::vector<std::string>> words = launcher.words(ranks, on.nodes);
    const Result<SkeletonRun> ran =
        words ? run_skeleton(*words, program, rate, launcher.limit_s) : Result<SkeletonRun>(words.error());
    if (ran) return *ran;
    on.why_failed = ran.error().message;
    return {};
  };
  for (NodeTimes& on : measured) {
    if (rate) break;
    if (const std::optional<SkeletonRun> first = run(on)) rate = first->rate;
  }
  std::size_t done = 0;
  for (int round = 0; round < repeat; ++round) {
    for (NodeTimes& on : measured) {
      progress.show(static_cast<double>(done++) /
                    static_cast<double>(measured.size() * static_cast<std::size_t>(repeat)));
      if (!on.why_failed.empty()) continue;
      if (const std::optional<SkeletonRun> one = run(on)) on.times_s.push_back(one->seconds);
    }
  }
  return measured;
}

int skeleton_run(const RunOptions& options) {
  Result<Session> session = prepare(options);
  if (!session) return kSkeletonMessages.fail(session.error());
  SkeletonRecord& record = session->record;
  const Seconds application_s = options.application_s > 0 ? options.application_s : session->about.application_s;
  if (options.reference && !(application_s > 0)) {
    return kSkeletonMessages.fail(
        kExitFailure, options.skeleton +
                          ": the skeleton does not know how long the application ran (a trace without times): "
                          "--application-time");
  }
  double rate = 0;
  const std::vector<NodeTimes> measured = measure(*session, options, rate);
  const int status = report_failures(options, measured);
  if (options.reference && status == 0) {
    record.reference = record.runs.back();
    record.application_s = application_s;
  }
  if (const Result<void> written = write_record(session->record_file, record); !written)
    return kSkeletonMessages.fail(written.error());
  if (options.json) {
    nlohmann::json json = json_of(*session, options);
    json["rate"] = rate;
    json["sets"] = nlohmann::json::array();
    for (const NodeTimes& each : measured) json["sets"].push_back(json_of(each));
    const int printed = kSkeletonMessages.write(dump(json));
    return printed != 0 ? printed : status;
  }
  std::string out = runs_table(measured);
  if (options.reference && status == 0) {
    out += "\nMeasured scaling ratio: " + short_number(record.ratio()) + " (application " +
           short_number(record.application_s) + " s; K = " + std::to_string(session->about.factor) + "), kept in " +
           report::printable(session->record_file) + ".\n";
  }
  const int printed = kSkeletonMessages.write(out);
  return printed != 0 ? printed : status;
}

int skeleton_predict(const RunOptions& options) {
  Result<Session> session = prepare(options);
  if (!session) return kSkeletonMessages.fail(session.error());
  SkeletonRecord& record = session->record;
  if (!record.reference) {
    return kSkeletonMessages.fail(
        kExitFailure, session->record_file +
                          ": no run on the machine where the trace was recorded is kept; first: lbf-skeleton run " +
                          shell_word(options.skeleton) + " --reference --on NODELIST");
  }
  double rate = 0;
  const std::vector<NodeTimes> measured = measure(*session, options, rate);
  const int status = report_failures(options, measured);
  if (const Result<void> written = write_record(session->record_file, record); !written)
    return kSkeletonMessages.fail(written.error());
  struct Row {
    const NodeTimes* on;
    Estimate application;
  };
  std::vector<Row> rows;
  for (const NodeTimes& each : measured) {
    if (!each.times_s.empty())
      rows.push_back({&each, scaled_ratio(record.application_s, each.times_s, record.reference->times_s)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.application.value < b.application.value; });
  if (options.json) {
    nlohmann::json json = json_of(*session, options);
    json["predictions"] = nlohmann::json::array();
    for (const Row& row : rows) {
      nlohmann::json one = json_of(*row.on);
      one["predicted_s"] = row.application.value;
      one["low_s"] = row.application.bounds ? nlohmann::json(row.application.bounds->low) : nlohmann::json();
      one["high_s"] = row.application.bounds ? nlohmann::json(row.application.bounds->high) : nlohmann::json();
      json["predictions"].push_back(std::move(one));
    }
    for (const NodeTimes& each : measured) {
      if (each.times_s.empty()) json["predictions"].push_back(json_of(each));
    }
    const int printed = kSkeletonMessages.write(dump(json));
    return printed != 0 ? printed : status;
  }
  std::string out = left("Nodes", kNodesWidth) + "  Application s  95 % interval s        Skeleton s  Runs\n";
  for (const Row& row : rows) {
    const auto& bounds = row.application.bounds;
    out += left(row.on->nodes.text(), kNodesWidth) + right(short_number(row.application.value), 15) + "  " +
           left(bounds ? short_number(bounds->low) + " to " + short_number(bounds->high) : "unknown", 20) +
           right(short_number(quartiles_of(row.on->times_s).median), 12) +
           right(std::to_string(row.on->times_s.size()), 6) + "\n";
  }
  for (const NodeTimes& each : measured) {
    if (each.times_s.empty()) out += left(each.nodes.text(), kNodesWidth) + "         failed\n";
  }
  out += "\n" +
         report::wrap("It ran " + short_number(record.application_s) + " s on " +
                          report::printable(record.reference->nodes) + "; measured scaling ratio " +
                          short_number(record.ratio()) +
                          ". The interval is that of the skeleton's repeats (Student's t); how far skeletons are off "
                          "is in docs/accuracy.md.",
                      80, 0);
  const int printed = kSkeletonMessages.write(out);
  return printed != 0 ? printed : status;
}

}  // namespace lbf::tools
