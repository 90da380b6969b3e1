// lbf-report: what lbfd knows and predicts about job steps, in sacct's habits (docs/man/lbf-report.1).
//
// Place in the event's way: db -> lbfd -> HTTP (docs/formats/http-v1.md) -> *lbf-report*. Asks and prints;
// everything that can be tested without lbfd is in report/.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "base/times.h"
#include "report/accuracy.h"
#include "report/advice.h"
#include "report/answer.h"
#include "report/fields.h"
#include "report/health.h"
#include "report/json_printer.h"
#include "report/network_names.h"
#include "report/overhead.h"
#include "report/procedures.h"
#include "report/render.h"
#include "report/selection.h"
#include "report/step.h"
#include "report/text.h"
#include "report/whole_lines.h"
#include "report/yaml_printer.h"
#include "tools/report/report_message.h"
#include "tools/report/report_options.h"
#include "tools/report/report_picture.h"
#include "tools/report/report_query.h"
#include "tools/report/report_savings.h"
#include "tools/report/report_scaling.h"
#include "tools/report/usable_nodes.h"
#include "tools/support/environment.h"

namespace lbf::tools {
namespace {

using report::Selection;
using report::Step;

constexpr Seconds kRequestTimeoutS = 60;
constexpr Seconds kBriefRequestTimeoutS = 1;  // where --wait is not longer
// How long --brief waits for the last batches of a step that has just ended, unless --wait says it, and how
// often it asks.
constexpr Seconds kBriefWaitS = 1.8;
constexpr std::chrono::milliseconds kFirstBriefPoll{2};  // most steps are predicted within milliseconds
constexpr std::chrono::milliseconds kLastBriefPoll{100};
// How long Slurm may take to say what nodes it has: srun ends after --brief.
constexpr Seconds kBriefSlurmPatienceS = 0.5;
constexpr Seconds kSlurmPatienceS = 5;

std::string nothing_in_window(const Selection& selection) {
  const std::string filters = describe_filters(selection);
  return "no steps with predictions" + (filters.empty() ? "" : " match " + filters) + describe_window(selection) +
         (filters.empty() ? "; run one with srun --lbf-predict" : "; leave a filter out") +
         ", or look further back with -S, for example -S now-7days";
}

void show_clusters_if_several(const std::vector<Step>& steps) {
  if (report::are_of_several_clusters(steps)) report::set_cluster_names(report::ClusterNames::kShown);
}

// The steps of a job, as one line each; a step that is being completed is waited for.
int print_brief(HttpClient& client, Selection& selection, Seconds wait_s) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<Seconds>(wait_s);
  for (auto pause = kFirstBriefPoll;; pause = std::min(pause * 2, kLastBriefPoll)) {
    const auto joined = ask(client, selection);
    if (!joined) return kReportMessages.fail(joined.error());
    auto steps = report::parse_steps(*joined);
    if (!steps) return kReportMessages.fail(steps.error());
    const bool ready =
        !steps->empty() && std::none_of(steps->begin(), steps->end(), [](const Step& s) { return s.running(); });
    if (ready || std::chrono::steady_clock::now() >= give_up) {
      if (steps->empty()) return kReportMessages.fail(nothing_known(client, selection));
      std::string out;
      show_clusters_if_several(*steps);
      find_usable_nodes(*steps, kBriefSlurmPatienceS);
      for (const Step& step : *steps) out += brief_line(step) + '\n';
      return write_report(out);
    }
    std::this_thread::sleep_for(pause);
  }
}

report::JsonLayout layout_of_json() {
  return report::json_layout(from_environment("SLURM_JSON", "pretty"));
}

// --accuracy: all that lbfd keeps, where -S and -E do not say otherwise.
int print_accuracy(HttpClient& client, const Selection& selection, const ReportOptions& options) {
  const auto response = client.request("GET", accuracy_target(selection));
  if (!response) return kReportMessages.fail(response.error());
  if (response->status != 200) return kReportMessages.fail(refused(selection, error_of_response(*response)));
  if (options.json) {
    const auto text = report::print_json(response->body, layout_of_json());
    return text ? write_report(*text) : kReportMessages.fail(text.error());
  }
  const auto lines = report::parse_accuracy(response->body);
  if (!lines) return kReportMessages.fail(lines.error());
  std::string text = render_accuracy(*lines, table_style(options));
  if (!options.any_parsable() && !options.no_header) {
    if (const std::string sentence = accuracy_sentence(*lines); !sentence.empty())
      text += '\n' + report::wrap(sentence, report::kTextWidth, 0);
  }
  const int status = write_report(text);
  if (status == 0 && lines->front().errors.outcomes == 0) {
    const std::string which = describe_filters(selection) + describe_window(selection);
    std::fprintf(stderr,
                 "lbf-report: no outcomes %s: there is one for each complete run with srun --lbf-predict, and one for "
                 "each run where an earlier one of the same program was predicted\n",
                 which.empty() ? "yet" : ("match " + which).c_str());
  }
  return status;
}

// A list as JSON or YAML: printed as it comes.
template <typename Printer>
int print_list(HttpClient& client, Selection& selection, Printer printer) {
  constexpr std::size_t kPrintedBytes = 64 << 10;  // what a pipe holds
  report::WholeLines lines;
  bool good = true;
  int status = 0;
  const auto piece = [&](std::string_view text) {
    lines.add(text, [&](std::string_view line) { good = good && printer.add(line); });
    if (printer.text().size() < kPrintedBytes) return;
    if (status == 0) status = write_report(printer.text());
    printer.clear();
  };
  const auto end = [&]() -> Result<void> {
    if (!good || !printer.add(lines.rest()) || !printer.is_whole())
      return invalid_input("lbfd answered something that is not JSON");
    return {};
  };
  if (auto asked = ask_each(client, selection, piece, end); !asked) return kReportMessages.fail(asked.error());
  return status != 0 ? status : write_report(printer.text());
}

// JSON or YAML, as lbfd sends it.
int print_document(HttpClient& client, Selection& selection, const ReportOptions& options) {
  // Of a list nothing has to be known here.
  if (selection.jobs.empty() && request_targets(selection).size() == 1) {
    return options.json ? print_list(client, selection, report::JsonPrinter(layout_of_json()))
                        : print_list(client, selection, report::YamlPrinter());
  }
  const auto joined = ask(client, selection);
  if (!joined) return kReportMessages.fail(joined.error());
  const auto steps = report::parse_steps(*joined);
  if (!steps) return kReportMessages.fail(steps.error());
  if (steps->empty() && !selection.jobs.empty()) return kReportMessages.fail(nothing_known(client, selection));
  const auto text = options.json ? report::print_json(*joined, layout_of_json()) : report::print_yaml(*joined);
  return text ? write_report(*text) : kReportMessages.fail(text.error());
}

std::string render(const std::vector<Step>& steps, const ReportOptions& options, const ReportColumns& columns) {
  if (columns) return render_table(steps, *columns, table_style(options));
  report::PageStyle page;
  page.header = !options.no_header;
  page.color = use_color(options.color);
  std::string out;
  for (const Step& step : steps) {
    if (!out.empty()) out += '\n';
    out += render_step(step, page);
  }
  return out;
}

// Where there is nothing to show: words for people; scripts get the empty table that they can read.
int report_nothing(HttpClient& client, const Selection& selection, const ReportOptions& options,
                   const std::string& empty_table) {
  if (!selection.jobs.empty()) return kReportMessages.fail(nothing_known(client, selection));
  if (options.any_parsable()) {
    if (const int status = write_report(empty_table); status != 0) return status;
  }
  std::fprintf(stderr, "lbf-report: %s\n", nothing_in_window(selection).c_str());
  return 0;
}

void warn_if_cut(std::size_t steps) {
  if (steps < report::kStepLimit) return;
  std::fprintf(stderr, "lbf-report: more than %zu steps: only the latest are shown; narrow it with -S and -E\n",
               report::kStepLimit);
}

// A table: each step's lines are made as it comes.
int print_table(HttpClient& client, ReportRequest& request, const ReportOptions& options) {
  // Before the first step it is not known whether others are of other clusters: lbfd says for how many it is.
  if (request.selection.clusters.size() != 1) {
    const auto answer = client.request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
    const auto health = answer && answer->status == 200 ? report::parse_health(answer->body) : invalid_input("");
    if (health && health->clusters.size() > 1) report::set_cluster_names(report::ClusterNames::kShown);
  }
  report::Table lines(*request.columns, table_style(options));
  if (auto asked = ask_rows(client, request.selection, [&lines](const Step& step) { lines.add(step); }); !asked)
    return kReportMessages.fail(asked.error());
  const std::size_t steps = lines.steps();
  if (steps == 0) return report_nothing(client, request.selection, options, lines.take_text());
  warn_if_cut(steps);
  return write_report(lines.take_text());
}

int print_overhead(const std::vector<Step>& steps, const ReportOptions& options) {
  if (options.json) return write_report(overhead_json(summarize_overhead(steps)));
  const std::string text = !options.jobs.empty() ? render_overhead_of_steps(steps, table_style(options))
                                                 : render_overhead(summarize_overhead(steps), table_style(options));
  if (text.empty()) {
    std::fprintf(stderr, "lbf-report: of none of these %zu steps the cost of the capture is known\n", steps.size());
  }
  return write_report(text);
}

int print_procedures(const std::vector<Step>& steps, const ReportOptions& options) {
  const std::string text = render_procedures(steps, table_style(options));
  if (text.empty()) {
    std::fprintf(stderr,
                 "lbf-report: no procedure of this was measured; run it with srun --lbf-predict "
                 "--lbf-procedures=F,G (or "
                 "auto), or lbf-run --procedures F,G\n");
  }
  return write_report(text);
}

struct Answer {
  std::string joined;  // lbfd's answers; empty where rows were asked for
  std::vector<Step> steps;
};
Result<Answer> fetch_steps(HttpClient& client, Selection& selection) {
  Answer answer;
  if (!selection.rows.empty()) {
    const auto take = [&answer](Step& step) { answer.steps.push_back(std::move(step)); };
    if (auto asked = ask_rows(client, selection, take); !asked) return asked.error();
    put_in_order(answer.steps);
    return answer;
  }
  Result<std::string> joined = ask(client, selection);
  if (!joined) return joined.error();
  answer.joined = std::move(*joined);
  Result<std::vector<Step>> steps = report::parse_steps(answer.joined);
  if (!steps) return steps.error();
  answer.steps = std::move(*steps);
  return answer;
}

// Reports for which all steps have to be known at once.
int print_steps(HttpClient& client, ReportRequest& request, const ReportOptions& options, ReportKind kind) {
  Selection& selection = request.selection;
  Result<Answer> answer = fetch_steps(client, selection);
  if (!answer) return kReportMessages.fail(answer.error());
  std::vector<Step>& steps = answer->steps;
  show_clusters_if_several(steps);
  if (steps.empty() && !selection.jobs.empty()) return kReportMessages.fail(nothing_known(client, selection));
  if (kind == ReportKind::kHtml) find_usable_nodes(steps, kSlurmPatienceS);
  if (kind == ReportKind::kHtml) return write_html(client, steps, answer->joined, options);
  if (kind == ReportKind::kPlot) return write_report(plots(steps, options));
  if (kind == ReportKind::kOverhead && options.json) return print_overhead(steps, options);
  if (steps.empty()) return report_nothing(client, selection, options, render(steps, options, request.columns));
  warn_if_cut(steps.size());
  if (kind == ReportKind::kOverhead) return print_overhead(steps, options);
  if (kind == ReportKind::kProcedures) return print_procedures(steps, options);
  if (options.allocations) steps = one_per_job(std::move(steps));
  if (!request.columns) find_usable_nodes(steps, kSlurmPatienceS);
  return write_report(render(steps, options, request.columns));
}

Result<HttpClient> client_of(const ReportOptions& options) {
  HttpClientOptions http;
  // Lists are printed as they come.
  if (options.jobs.empty()) http.response_limit_bytes = Bytes{1} << 30;
  http.total_timeout_s = options.brief ? std::max(kBriefRequestTimeoutS, options.wait_s.value_or(0)) : kRequestTimeoutS;
  return HttpClient::make(options.server.empty() ? default_server() : options.server, http);
}

int print_networks(const ReportOptions& options) {
  Result<HttpClient> client = client_of(options);
  if (!client) return kReportMessages.fail(client.error(), kExitUsage);
  const auto response = client->request("GET", "/v1/networks");
  if (!response) return kReportMessages.fail(response.error());
  if (response->status != 200) return kReportMessages.fail(error_of_response(*response));
  const auto names = report::parse_networks(response->body);
  if (!names) return kReportMessages.fail(names.error());
  std::string out;
  for (const std::string& name : *names) out += name + '\n';
  return write_report(out);
}

// Health is for everybody, metrics for operators.
int print_health(const ReportOptions& options) {
  Result<HttpClient> client = client_of(options);
  if (!client) return kReportMessages.fail(client.error(), kExitUsage);
  const auto answer = client->request("GET", "/v1/health", {}, {}, HttpAuth::kNone);
  if (!answer) return kReportMessages.fail(answer.error());
  if (answer->status != 200) return kReportMessages.fail(error_of_response(*answer));
  Result<report::Health> health = report::parse_health(answer->body);
  if (!health) return kReportMessages.fail(health.error());
  const auto metrics = client->request("GET", "/metrics");
  if (metrics && metrics->status == 200) {
    Result<report::Samples> samples = report::parse_metrics(metrics->body);
    if (!samples) return kReportMessages.fail(samples.error());
    health->metrics = std::move(*samples);
  } else {
    health->why_no_metrics = metrics ? error_of_response(*metrics).message : metrics.error().message;
  }
  if (options.json) return write_report(health_json(*health));
  return write_report(render_health(*health, client->server(), std::time(nullptr)));
}

int report_steps(const ReportOptions& options) {
  set_timestamp_format(from_environment("SLURM_TIME_FORMAT", "standard"));
  Result<ReportRequest> request = request_of(options);
  if (!request) return kReportMessages.fail(request.error(), kExitUsage);
  Result<HttpClient> client = client_of(options);
  if (!client) return kReportMessages.fail(client.error(), kExitUsage);
  const ReportKind kind = kind_of(options);
  switch (kind) {
    case ReportKind::kBrief:
      return print_brief(*client, request->selection, options.wait_s.value_or(kBriefWaitS));
    case ReportKind::kAccuracy:
      return print_accuracy(*client, request->selection, options);
    case ReportKind::kSavings:
      return print_savings(*client, request->selection, options);
    case ReportKind::kScaling:
      return print_scaling(*client, request->selection, options);
    case ReportKind::kDocument:
      return print_document(*client, request->selection, options);
    case ReportKind::kSteps:
      if (request->columns && !options.allocations) return print_table(*client, *request, options);
      [[fallthrough]];
    default:
      return print_steps(*client, *request, options, kind);
  }
}

int run(int argc, char** argv) {
  ReportOptions options;
  CLI::App app("Predicted run times of Slurm job steps under other node counts, placements and networks.",
               "lbf-report");
  add_report_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return write_report(app.help());
  } catch (const CLI::ParseError& error) {
    return kReportMessages.fail(invalid_input(std::string(error.what()) + "; lbf-report --help lists the options"),
                                kExitUsage);
  }
  join_jobs(options);
  if (options.version) return write_report(std::string("lbf-report ") + LBF_VERSION + '\n');
  if (options.help_format) return write_report(report::help_format());
  if (options.health) return print_health(options);
  return options.networks ? print_networks(options) : report_steps(options);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  try {
    return lbf::tools::run(argc, argv);
  } catch (const std::exception& error) {
    return lbf::tools::kReportMessages.fail(
        {lbf::ErrorCode::kInternal, std::string("broken inside: ") + error.what() + "; please report it"});
  }
}
