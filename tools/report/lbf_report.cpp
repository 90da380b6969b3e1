// lbf-report: what lbfd knows and predicts about job steps, in sacct's habits (docs/man/lbf-report.1).
//
// Place in the event's way: db -> lbfd -> HTTP (docs/formats/http-v1.md) -> *lbf-report*. Reads the options,
// asks, prints; everything that can be tested without lbfd is in advisor/report.
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "report/accuracy.h"
#include "report/advice.h"
#include "report/answer.h"
#include "report/field_keys.h"
#include "report/fields.h"
#include "report/html.h"
#include "report/json_printer.h"
#include "report/picture.h"
#include "report/plot.h"
#include "report/overhead.h"
#include "report/procedures.h"
#include "report/render.h"
#include "report/selection.h"
#include "report/step.h"
#include "report/text.h"
#include "base/times.h"
#include "report/whole_lines.h"
#include "report/yaml_printer.h"
#include "base/http_client.h"
#include "base/result.h"
#include "tools/report/report_query.h"
#include "tools/support/environment.h"

namespace {

using namespace lbf;          // NOLINT(google-build-using-namespace): a main of the project
using namespace lbf::tools;  // NOLINT(google-build-using-namespace)
using namespace lbf::report;  // NOLINT(google-build-using-namespace)

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr Seconds kRequestTimeoutS = 60;
constexpr Seconds kBriefRequestTimeoutS = 1;  // where --wait is not longer
// How long --brief waits for the last batches of a step that has just ended, unless --wait says it, and how often it
// asks.
constexpr Seconds kBriefWaitS = 1.8;
constexpr Seconds kMostBriefWaitS = 3600;
constexpr std::chrono::milliseconds kBriefPoll{100};

struct Options {
  std::string jobs;
  std::string users;
  bool all_users = false;
  std::string since;
  std::string until;
  std::string format;
  bool help_format = false;
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  std::string delimiter = "|";
  bool long_list = false;
  std::string accounts;
  std::string partitions;
  std::string states;
  std::string nodes;
  bool allocations = false;
  std::string units;
  bool no_convert = false;
  bool json = false;
  bool yaml = false;
  bool plot = false;
  bool ascii = false;
  std::string html;
  bool brief = false;
  std::optional<Seconds> wait_s;
  bool accuracy = false;
  bool overhead = false;
  bool procedures = false;
  std::string color = "auto";
  std::string server;
  bool version = false;
};

int fail(const Error& error, int status = kExitFailure) {
  // Part of the message may be lbfd's or the command line's words: one line, nothing that acts on a terminal.
  std::fprintf(stderr, "lbf-report: error: %s\n", printable(error.message).c_str());
  return status;
}

int put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return fail(
        {ErrorCode::kIo, "cannot write the report to standard output; is the disk full or the pipe closed?"});
  }
  return 0;
}

void declare(CLI::App& app, Options& options) {
  app.add_option("-j,--jobs", options.jobs,
                 "JOB[_TASK|_[TASKS]|+OFFSET][.STEP][,...]: these jobs, whenever they ran, in full")
      ->type_name("JOBS");
  app.add_option("-u,--user,--uid", options.users, "NAME|UID[,...]: jobs of these users")->type_name("USERS");
  app.add_flag("-a,--allusers", options.all_users, "jobs of every user (operators)");
  app.add_option("-A,--accounts", options.accounts, "NAME[,...]: jobs of these accounts")->type_name("ACCOUNTS");
  app.add_option("-r,--partition", options.partitions, "NAME[,...]: jobs in these partitions")
      ->type_name("PARTITIONS");
  app.add_option("-s,--state", options.states, "running (R), complete (CD), partial (PA)[,...]")
      ->type_name("STATES");
  app.add_option("-N,--nodelist", options.nodes, "n[1-3,7]: steps that ran on one of these nodes")
      ->type_name("NODES");
  app.add_option("-S,--starttime", options.since,
                 "steps that ended after TIME (default: today 0:00; with -j: any)")
      ->type_name("TIME");
  app.add_option("-E,--endtime", options.until, "steps that started before TIME (default: now)")
      ->type_name("TIME");
  app.add_option("-o,--format", options.format, "FIELD[%[-]WIDTH][,...]: these columns; -e lists the fields")
      ->type_name("FIELDS");
  app.add_flag("-e,--helpformat", options.help_format, "print the names of the fields");
  app.add_flag("-n,--noheader", options.no_header, "no header");
  app.add_flag("-P,--parsable2", options.parsable2, "fields with a delimiter between them, no widths");
  app.add_flag("-p,--parsable", options.parsable, "the same, and a delimiter at the end of a line");
  app.add_option("--delimiter", options.delimiter, "characters between fields with -p and -P (default |)")
      ->type_name("CHARS");
  app.add_flag("-l,--long", options.long_list, "many columns, one line per predicted target");
  app.add_flag("-X,--allocations", options.allocations, "one line per job: its longest step");
  app.add_option("--units", options.units, "K, M, G, T or P: this unit for all numbers of bytes")
      ->check(CLI::IsMember({"K", "M", "G", "T", "P"}))
      ->type_name("UNIT");
  app.add_flag("--noconvert", options.no_convert, "numbers of bytes as they are");
  app.add_flag("--json", options.json, "everything, as JSON");
  app.add_flag("--yaml", options.yaml, "everything, as YAML");
  app.add_flag("--plot", options.plot, "draw predicted time over nodes; needs -j");
  app.add_flag("--ascii", options.ascii, "draw with ASCII characters only (default where the locale is not UTF-8)");
  app.add_option("--html", options.html, "write one step as a page that needs nothing else; needs -j")
      ->type_name("FILE");
  app.add_flag("--brief", options.brief, "one line per step, for the end of srun; needs -j");
  app.add_option("--wait", options.wait_s,
                 "how long --brief waits for a step that is being completed, and for each answer of lbfd (default: 1.8, and 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, kMostBriefWaitS));
  app.add_flag("--accuracy", options.accuracy,
               "how far predictions were off from what was measured later, by target distance, program, month and week");
  app.add_flag("--overhead", options.overhead,
               "what the capture cost: limit, predicted, observed, once in a run, share of the runs seen; per program and in "
               "all, with -j of each node and rank");
  app.add_flag("--procedures", options.procedures,
               "what if a procedure ran in the other process: those that were measured (srun --lbf-procedures); needs -j");
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.add_option("--server", options.server,
                 std::string("where lbfd is: unix:PATH or http://HOST:PORT (default: LBF_SERVER, else ") +
                     tools::kDefaultServer + ")")
      ->type_name("SERVER");
  app.add_flag("-V,--version", options.version, "print the version");
}

Result<Selection> selection_of(const Options& options) {
  Selection out;
  out.all_users = options.all_users;
  if (!options.jobs.empty()) {
    auto jobs = parse_jobs(options.jobs);
    if (!jobs) return jobs.error();
    out.jobs = std::move(*jobs);
    out.detail = options.json || options.yaml || options.overhead;
  }
  if (!options.users.empty()) {
    if (options.all_users) return invalid_input("-a and -u exclude each other; leave one out");
    auto users = parse_users(options.users);
    if (!users) return users.error();
    out.users = std::move(*users);
  }
  if (!options.accounts.empty()) {
    auto accounts = parse_names(options.accounts, "an account");
    if (!accounts) return accounts.error();
    out.accounts = std::move(*accounts);
  }
  if (!options.partitions.empty()) {
    auto partitions = parse_names(options.partitions, "a partition");
    if (!partitions) return partitions.error();
    out.partitions = std::move(*partitions);
  }
  if (!options.states.empty()) {
    auto states = parse_states(options.states);
    if (!states) return invalid_input("-s: " + states.error().message);
    out.states = std::move(*states);
  }
  out.nodes = options.nodes;
  const std::time_t now = std::time(nullptr);
  if (!options.since.empty()) {
    auto since = parse_time(options.since, now);
    if (!since) return invalid_input("-S: " + since.error().message);
    out.since = *since;
  } else if (out.jobs.empty() && !options.accuracy) {
    out.since = start_of_day(now);
  }
  if (!options.until.empty()) {
    auto until = parse_time(options.until, now);
    if (!until) return invalid_input("-E: " + until.error().message);
    out.until = *until;
  }
  if (out.since && out.until && *out.until < *out.since) {
    return invalid_input("the end " + format_timestamp(static_cast<double>(*out.until)) +
                         " is before the start " + format_timestamp(static_cast<double>(*out.since)) +
                         "; give an earlier -S or a later -E");
  }
  return out;
}

std::string nothing_in_window(const Selection& selection) {
  std::string out = "no steps with predictions";
  if (selection.since) out += " since " + format_timestamp(static_cast<double>(*selection.since));
  if (selection.until) out += " until " + format_timestamp(static_cast<double>(*selection.until));
  return out + "; run one with srun --lbf-predict, or look further back with -S, for example -S now-7days";
}

int brief(HttpClient& client, Selection& selection, Seconds wait_s) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<Seconds>(wait_s);
  while (true) {
    const auto joined = tools::ask(client, selection);
    if (!joined) return fail(joined.error());
    const auto steps = parse_steps(*joined);
    if (!steps) return fail(steps.error());
    bool ready = !steps->empty();
    for (const Step& step : *steps) ready = ready && !step.running();
    if (ready || std::chrono::steady_clock::now() >= give_up) {
      if (steps->empty()) return fail(tools::nothing_known(selection));
      std::string out;
      for (const Step& step : *steps) out += brief_line(step) + '\n';
      return put(out);
    }
    std::this_thread::sleep_for(kBriefPoll);
  }
}

bool use_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) != 0 && !dumb && (no_color == nullptr || *no_color == '\0');
}

std::size_t terminal_width() {
  struct winsize size {};
  if (isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  const int columns = std::atoi(tools::from_environment("COLUMNS", "0").c_str());
  return columns > 0 ? static_cast<std::size_t>(columns) : 80;
}

bool use_unicode(const Options& options) {
  if (options.ascii) return false;
  (void)std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

std::string plots(const std::vector<Step>& steps, const Options& options) {
  PlotStyle style;
  style.width = terminal_width();
  style.unicode = use_unicode(options);
  style.color = use_color(options.color);
  std::string out;
  for (const Step& step : steps) out += (out.empty() ? "" : "\n") + render_plot(step, style);
  return out;
}

// The page of one step; the picture is asked for, and where there is none the page says why.
int write_html(HttpClient& client, const std::vector<Step>& steps, const std::string& joined,
               const Options& options) {
  // The batch step and the extern step have no ranks of a program: the one that has predictions is meant.
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].predictions.empty()) candidates.push_back(i);
  }
  if (candidates.empty()) candidates.push_back(0);
  if (candidates.size() > 1) {
    std::string names;
    for (const std::size_t i : candidates) names += (names.empty() ? "" : ", ") + job_id(steps[i]);
    return fail(invalid_input("--html is for one step; name one of " + shorten(names, 200) +
                              " with -j JOB.STEP"),
                kExitUsage);
  }
  HtmlPage page;
  page.step = &steps[candidates.front()];
  page.version = LBF_VERSION;
  const std::string step_json = step_text(joined, candidates.front());
  page.step_json = step_json;
  if (const auto target = chosen_target(*page.step)) {
    auto response = client.request("GET", tools::address_of(*page.step) + "/picture?target=" + std::to_string(*target));
    if (!response) {
      page.why_no_picture = response.error().message;
    } else if (response->status != 200) {
      page.why_no_picture = error_of_response(*response).message;
    } else if (auto picture = parse_picture(response->body)) {
      page.picture = std::move(*picture);
    } else {
      page.why_no_picture = picture.error().message;
    }
  }
  const std::string text = render_html(page);
  if (options.html == "-") return put(text);
  std::ofstream file(options.html, std::ios::binary | std::ios::trunc);
  errno = 0;
  file << text << std::flush;
  if (!file) {
    return fail({ErrorCode::kIo, options.html + ": cannot be written: " +
                                     (errno != 0 ? std::strerror(errno) : "disk full?") +
                                     "; name another file with --html"});
  }
  return 0;
}

TableStyle table_style(const Options& options) {
  TableStyle table;
  table.header = !options.no_header;
  table.parsable = options.parsable || options.parsable2;
  table.trailing = options.parsable;
  table.delimiter = options.delimiter;
  if (!options.units.empty()) table.unit = options.units.front();
  table.convert = !options.no_convert;
  return table;
}

int overhead(const std::vector<Step>& steps, const Options& options) {
  if (options.json) return put(overhead_json(summarize_overhead(steps)));
  const std::string text = !options.jobs.empty() ? render_overhead_of_steps(steps, table_style(options))
                                              : render_overhead(summarize_overhead(steps), table_style(options));
  if (text.empty()) {
    std::fprintf(stderr, "lbf-report: of none of these %zu steps the cost of the capture is known\n", steps.size());
  }
  return put(text);
}

int procedures(const std::vector<Step>& steps, const Options& options) {
  const std::string text = render_procedures(steps, table_style(options));
  if (text.empty()) {
    std::fprintf(stderr,
                 "lbf-report: no procedure of this was measured; run it with srun --lbf-predict --lbf-procedures=F,G (or "
                 "auto), or lbf-run --procedures F,G\n");
  }
  return put(text);
}

std::string render(const std::vector<Step>& steps, const Options& options,
                   const std::optional<std::vector<Column>>& columns) {
  const TableStyle table = table_style(options);
  if (columns) return render_table(steps, *columns, table);

  PageStyle page;
  page.header = !options.no_header;
  page.color = use_color(options.color);
  std::string out;
  for (const Step& step : steps) {
    if (!out.empty()) out += '\n';
    out += render_step(step, page);
  }
  return out;
}

// The columns of the table; none: pages, one per step.
Result<std::optional<std::vector<Column>>> columns_of(const Options& options, const Selection& selection) {
  const bool parsable = options.parsable || options.parsable2;
  std::string format = options.format;
  // As SACCT_FORMAT: instead of the columns of a list, not of what is asked for in full.
  if (format.empty() && !options.long_list && (selection.jobs.empty() || parsable || options.allocations)) {
    format = tools::from_environment("LBF_FORMAT", "");
  }
  if (format.empty() && options.long_list) format = long_format();
  if (format.empty() && (selection.jobs.empty() || options.allocations)) {
    format = default_step_format(selection.all_users || !selection.users.empty());
  }
  if (format.empty() && parsable) format = default_target_format();
  if (format.empty()) return std::optional<std::vector<Column>>();
  auto columns = parse_format(format);
  if (!columns) return columns.error();
  return std::optional<std::vector<Column>>(std::move(*columns));
}

JsonLayout layout_of_json() {
  return json_layout(tools::from_environment("SLURM_JSON", "pretty"));
}

// A list as JSON or YAML: printed as it comes.
template <typename Printer>
int print_list(HttpClient& client, Selection& selection, Printer printer) {
  constexpr std::size_t kPrintedBytes = 64 << 10;  // what a pipe holds
  WholeLines lines;
  bool good = true;
  int status = 0;
  const auto piece = [&](std::string_view text) {
    lines.add(text, [&](std::string_view line) { good = good && printer.add(line); });
    if (printer.text().size() < kPrintedBytes) return;
    if (status == 0) status = put(printer.text());
    printer.clear();
  };
  const auto end = [&]() -> Result<void> {
    if (!good || !printer.add(lines.rest()) || !printer.is_whole())
      return invalid_input("lbfd answered something that is not JSON");
    return {};
  };
  if (auto asked = tools::ask_each(client, selection, piece, end); !asked) return fail(asked.error());
  return status != 0 ? status : put(printer.text());
}

// Where there is nothing to show: words for people; scripts get the empty table that they can read.
int nothing_to_show(const Selection& selection, const Options& options, const std::string& empty_table) {
  if (!selection.jobs.empty()) return fail(tools::nothing_known(selection));
  if (options.parsable || options.parsable2) {
    if (const int status = put(empty_table); status != 0) return status;
  }
  std::fprintf(stderr, "lbf-report: %s\n", nothing_in_window(selection).c_str());
  return 0;
}

void say_where_cut(std::size_t steps) {
  if (steps < kStepLimit) return;
  std::fprintf(stderr,
               "lbf-report: more than %zu steps: only the latest are shown; narrow it with -S and -E\n", kStepLimit);
}

// A table: each step's lines are made as it comes.
int table(HttpClient& client, Selection& selection, const Options& options, const std::vector<Column>& columns) {
  Table lines(columns, table_style(options));
  if (auto asked = tools::ask_rows(client, selection, [&lines](const Step& step) { lines.add(step); }); !asked)
    return fail(asked.error());
  const std::size_t steps = lines.steps();
  if (steps == 0) return nothing_to_show(selection, options, lines.take_text());
  say_where_cut(steps);
  return put(lines.take_text());
}

Result<std::vector<Step>> steps_in_rows(HttpClient& client, Selection& selection) {
  std::vector<Step> steps;
  auto asked = tools::ask_rows(client, selection, [&steps](Step& step) { steps.push_back(std::move(step)); });
  if (!asked) return asked.error();
  put_in_order(steps);
  return steps;
}

// --accuracy: all that lbfd keeps, where -S and -E do not say otherwise.
int accuracy(HttpClient& client, const Selection& selection, const Options& options) {
  const auto response = client.request("GET", accuracy_target(selection));
  if (!response) return fail(response.error());
  if (response->status != 200) return fail(tools::refused(selection, error_of_response(*response)));
  if (options.json) {
    const auto text = print_json(response->body, layout_of_json());
    return text ? put(*text) : fail(text.error());
  }
  const auto lines = parse_accuracy(response->body);
  if (!lines) return fail(lines.error());
  const int status = put(render_accuracy(*lines, table_style(options)));
  if (status == 0 && lines->front().errors.outcomes == 0) {
    std::fprintf(stderr,
                 "lbf-report: no outcomes yet: there is one for each complete run with srun --lbf-predict, and one for "
                 "each run where an earlier one of the same program was predicted\n");
  }
  return status;
}

int run(const Options& options) {
  set_timestamp_format(tools::from_environment("SLURM_TIME_FORMAT", "standard"));
  auto selection = selection_of(options);
  if (!selection) return fail(selection.error(), kExitUsage);
  const auto columns = columns_of(options, *selection);
  if (!columns) return fail(columns.error(), kExitUsage);
  for (const auto& [given, name] : {std::pair(options.brief, "--brief"), std::pair(options.plot, "--plot"),
                                    std::pair(!options.html.empty(), "--html"),
                                    std::pair(options.procedures, "--procedures")}) {
    if (given && selection->jobs.empty()) {
      return fail(invalid_input(std::string(name) + " needs -j JOB[.STEP]"), kExitUsage);
    }
  }
  // Lists ask for what they show and nothing else; where no column is a target's, two predictions of each step are enough.
  const bool as_sent = (options.json && !options.overhead) || options.yaml;
  const bool whole = options.procedures || as_sent || options.brief || options.plot || !options.html.empty();
  if (!whole && options.overhead && selection->jobs.empty()) {
    selection->rows = row_keys_of_overhead();
    selection->summary = true;
  } else if (!whole && !options.overhead && *columns) {
    selection->rows = row_keys_of(**columns);
    selection->summary = !needs_targets(**columns);
    if (options.allocations) selection->rows = with_key(selection->rows, "measured_s");
  }

  if (options.accuracy && !selection->jobs.empty())
    return fail(invalid_input("--accuracy is about all runs of a time: leave out -j"), kExitUsage);
  if (options.accuracy && (!selection->accounts.empty() || !selection->partitions.empty() || !selection->states.empty() ||
                           !selection->nodes.empty() || options.yaml))
    return fail(invalid_input("--accuracy takes -u, -a, -S and -E: leave out -A, -r, -s, -N and --yaml"), kExitUsage);
  if (options.accuracy && selection->users.size() > 1)
    return fail(invalid_input("--accuracy takes one user: give -u NAME, or -a for everybody"), kExitUsage);

  if (options.overhead && (options.brief || options.yaml || options.long_list || !options.format.empty())) {
    return fail(invalid_input("--overhead has columns of its own; leave out -o, -l, --yaml and --brief"), kExitUsage);
  }
  if (options.overhead && options.json && !options.jobs.empty()) {
    return fail(invalid_input("--overhead --json is the site's summary; of one job `--json -j` has all of it, under \"cost\""), kExitUsage);
  }

  const std::string server = options.server.empty() ? tools::default_server() : options.server;
  HttpClientOptions http;
  if (options.wait_s && !options.brief) return fail(invalid_input("--wait is for --brief"), kExitUsage);
  const Seconds brief_wait_s = options.wait_s.value_or(kBriefWaitS);
  const Seconds brief_timeout_s = std::max(kBriefRequestTimeoutS, options.wait_s.value_or(0));
  http.total_timeout_s = options.brief ? brief_timeout_s : kRequestTimeoutS;
  auto client = HttpClient::make(server, http);
  if (!client) return fail(client.error(), kExitUsage);
  if (options.brief) return brief(*client, *selection, brief_wait_s);
  if (options.accuracy) return accuracy(*client, *selection, options);

  const bool in_rows = !selection->rows.empty();
  if (in_rows && !options.overhead && !options.allocations) return table(*client, *selection, options, **columns);
  // Of a list nothing has to be known here.
  const bool as_it_comes = selection->jobs.empty() && request_targets(*selection).size() == 1;
  if (options.json && !options.overhead && as_it_comes) return print_list(*client, *selection, JsonPrinter(layout_of_json()));
  if (options.yaml && as_it_comes) return print_list(*client, *selection, YamlPrinter());

  const auto joined = in_rows ? Result<std::string>(std::string()) : tools::ask(*client, *selection);
  if (!joined) return fail(joined.error());
  auto steps = in_rows ? steps_in_rows(*client, *selection) : parse_steps(*joined);
  if (!steps) return fail(steps.error());
  if (steps->empty() && !selection->jobs.empty()) return fail(tools::nothing_known(*selection));
  if (as_sent) {
    const auto text = options.json ? print_json(*joined, layout_of_json()) : print_yaml(*joined);
    return text ? put(*text) : fail(text.error());
  }
  if (!options.html.empty()) return write_html(*client, *steps, *joined, options);
  if (options.plot) return put(plots(*steps, options));
  if (options.overhead && options.json) return overhead(*steps, options);
  if (steps->empty()) return nothing_to_show(*selection, options, render(*steps, options, *columns));
  say_where_cut(steps->size());
  if (options.overhead) return overhead(*steps, options);
  if (options.procedures) return procedures(*steps, options);
  if (options.allocations) *steps = one_per_job(std::move(*steps));
  return put(render(*steps, options, *columns));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Predicted run times of Slurm job steps under other node counts, placements and networks.",
                 "lbf-report");
    declare(app, options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return put(app.help());
    } catch (const CLI::ParseError& error) {
      return fail(invalid_input(std::string(error.what()) + "; lbf-report --help lists the options"),
                  kExitUsage);
    }
    if (options.version) return put(std::string("lbf-report ") + LBF_VERSION + '\n');
    if (options.help_format) return put(help_format());
    return run(options);
  } catch (const std::exception& error) {
    return fail({ErrorCode::kInternal, std::string("broken inside: ") + error.what() + "; please report it"});
  }
}
