#include "tools/report/report_options.h"

#include <CLI/CLI.hpp>
#include <ctime>
#include <utility>

#include "base/quoted.h"
#include "base/times.h"
#include "report/field_keys.h"
#include "tools/support/environment.h"

namespace lbf::tools {
namespace {

using report::Selection;
using report::TableStyle;

constexpr Seconds kMostBriefWaitS = 3600;
constexpr std::time_t kSavingsDefaultS = 7 * 86400;  // and of --scaling

// Options that do not go together, and what is said of them.
struct Conflict {
  bool (*is_there)(const ReportOptions& options, const Selection& selection);
  const char* says;
};
constexpr Conflict kConflicts[] = {
    {[](const auto& o, const auto& s) { return o.brief && s.jobs.empty(); }, "--brief needs -j JOB[.STEP]"},
    {[](const auto& o, const auto& s) { return (o.duplicates || o.submit_s) && s.jobs.empty(); },
     "-D and --submit are about jobs of one number: give -j JOB"},
    {[](const auto& o, const auto& s) { return o.plot && !o.savings && !o.scaling && s.jobs.empty(); },
     "--plot needs -j JOB[.STEP]"},
    {[](const auto& o, const auto& s) { return !o.html.empty() && !o.savings && !o.scaling && s.jobs.empty(); },
     "--html needs -j JOB[.STEP]"},
    {[](const auto& o, const auto& s) { return o.procedures && s.jobs.empty(); }, "--procedures needs -j JOB[.STEP]"},
    {[](const auto& o, const auto& s) { return o.accuracy && !s.jobs.empty(); },
     "--accuracy is about all runs of a time: leave out -j"},
    {[](const auto& o, const auto& s) {
       return o.accuracy && (!s.clusters.empty() || !s.names.empty() || !s.accounts.empty() || !s.partitions.empty() ||
                             !s.states.empty() || !s.nodes.empty() || o.yaml);
     },
     "--accuracy takes -u, -a, -S and -E: leave out -M, --name, -A, -r, -s, -N and --yaml"},
    {[](const auto& o, const auto& s) { return o.accuracy && s.users.size() > 1; },
     "--accuracy takes one user: give -u NAME, or -a for everybody"},
    {[](const auto& o, const auto&) { return o.overhead && (o.brief || o.yaml || o.long_list || !o.format.empty()); },
     "--overhead has columns of its own; leave out -o, -l, --yaml and --brief"},
    {[](const auto& o, const auto& s) { return o.overhead && o.json && !s.jobs.empty(); },
     "--overhead --json is the site's summary; of one job `--json -j` has all of it, under \"cost\""},
    {[](const auto& o, const auto& s) { return o.savings && !s.jobs.empty(); },
     "--savings is about all runs of a time: leave out -j"},
    {[](const auto& o, const auto&) {
       return o.savings && (o.brief || o.yaml || o.long_list || o.accuracy || o.overhead || !o.format.empty());
     },
     "--savings has columns of its own; leave out -o, -l, --yaml, --brief, --accuracy and --overhead"},
    {[](const auto& o, const auto&) {
       return o.scaling &&
              (o.brief || o.yaml || o.long_list || o.accuracy || o.overhead || o.savings || !o.format.empty());
     },
     "--scaling has columns of its own; leave out -o, -l, --yaml, --brief and other summaries"},
    {[](const auto& o, const auto&) { return (o.weak || !o.ranks.empty()) && !o.scaling; },
     "--weak and --ranks are for --scaling"},
    {[](const auto& o, const auto& s) { return o.scaling && o.any_parsable() && s.jobs.empty(); },
     "--scaling -P is about one program: give -j JOB,JOB, or --json for all"},
    {[](const auto& o, const auto& s) { return o.weak && s.jobs.empty(); },
     "--weak needs -j JOB,JOB: which runs have the same problem for each rank is not recognised"},
    {[](const auto& o, const auto&) { return o.wait_s && !o.brief; }, "--wait is for --brief"},
};

// Lists ask for what they show and nothing else; where no column is a target's, two predictions of each step
// are enough.
void ask_for_rows(const ReportOptions& options, const ReportColumns& columns, Selection& selection) {
  const ReportKind kind = kind_of(options);
  if (kind == ReportKind::kOverhead && selection.jobs.empty()) {
    selection.rows = report::row_keys_of_overhead();
    selection.summary = true;
  } else if (kind == ReportKind::kSavings) {
    selection.rows = report::row_keys_of_savings();
    selection.limit = report::kMostSteps;
  } else if (kind == ReportKind::kScaling) {
    selection.rows = report::row_keys_of_scaling();
    selection.summary = true;
    selection.limit = report::kMostSteps;
    selection.detail = false;
  } else if (kind == ReportKind::kSteps && columns) {
    selection.rows = report::row_keys_of(*columns);
    selection.summary = !report::needs_targets(*columns);
    if (options.allocations) selection.rows = report::with_key(selection.rows, "measured_s");
  }
}

// An hour that the clocks show twice is in the window with both of its passes.
Result<void> set_window(const ReportOptions& options, Selection& out) {
  const std::time_t now = std::time(nullptr);
  bool is_skipped = false;
  if (!options.since.empty()) {
    const auto since = parse_time(options.since, now, Repeated::kEarlier);
    if (!since) return invalid_input("-S: " + since.error().message);
    out.since = since->at_s;
    is_skipped = since->is_skipped;
  } else if (out.jobs.empty() && !options.accuracy) {
    out.since = options.savings || options.scaling ? now - kSavingsDefaultS : start_of_day(now);
  }
  if (!options.until.empty()) {
    const auto until = parse_time(options.until, now, Repeated::kLater);
    if (!until) return invalid_input("-E: " + until.error().message);
    out.until = until->at_s;
    is_skipped = is_skipped || until->is_skipped;
  }
  if (!out.since || !out.until) return {};
  if (*out.until < *out.since) {
    return invalid_input("the end " + format_timestamp(static_cast<double>(*out.until)) + " is before the start " +
                         format_timestamp(static_cast<double>(*out.since)) + "; give an earlier -S or a later -E");
  }
  if (*out.until == *out.since && is_skipped) {
    return invalid_input("no time passes from -S " + lbf::quoted(options.since) + " to -E " +
                         lbf::quoted(options.until) +
                         ": the clocks are put forward then; give an earlier -S or a later -E");
  }
  return {};
}

Result<Selection> selection_of(const ReportOptions& options) {
  Selection out;
  out.all_users = options.all_users;
  if (!options.jobs.empty()) {
    auto jobs = report::parse_jobs(options.jobs);
    if (!jobs) return jobs.error();
    out.jobs = std::move(*jobs);
    out.duplicates = options.duplicates;
    out.submit_s = options.submit_s;
    out.detail = options.json || options.yaml || options.overhead;
  }
  if (!options.users.empty()) {
    if (options.all_users) return invalid_input("-a and -u exclude each other; leave one out");
    auto users = report::parse_users(options.users);
    if (!users) return users.error();
    out.users = std::move(*users);
  }
  if (!options.accounts.empty()) {
    auto accounts = report::parse_names(options.accounts, "an account");
    if (!accounts) return accounts.error();
    out.accounts = std::move(*accounts);
  }
  if (!options.clusters.empty()) {
    auto clusters = report::parse_names(options.clusters, "a cluster");
    if (!clusters) return clusters.error();
    out.clusters = std::move(*clusters);
  }
  if (!options.names.empty()) {
    auto names = report::parse_names(options.names, "a job");
    if (!names) return names.error();
    out.names = std::move(*names);
  }
  if (!options.partitions.empty()) {
    auto partitions = report::parse_names(options.partitions, "a partition");
    if (!partitions) return partitions.error();
    out.partitions = std::move(*partitions);
  }
  if (!options.states.empty()) {
    auto states = report::parse_states(options.states);
    if (!states) return invalid_input("-s: " + states.error().message);
    out.states = std::move(*states);
  }
  out.nodes = options.nodes;
  if (auto window = set_window(options, out); !window) return window.error();
  return out;
}

Result<ReportColumns> columns_of(const ReportOptions& options, const Selection& selection) {
  std::string format = options.format;
  // As SACCT_FORMAT: instead of the columns of a list, not of what is asked for in full.
  if (format.empty() && !options.long_list &&
      (selection.jobs.empty() || options.any_parsable() || options.allocations)) {
    format = from_environment("LBF_FORMAT", "");
  }
  if (format.empty() && options.long_list) format = report::long_format();
  if (format.empty() && (selection.jobs.empty() || options.allocations)) {
    format = report::default_step_format(selection.all_users || !selection.users.empty());
  }
  if (format.empty() && options.any_parsable()) format = report::default_target_format();
  if (format.empty()) return ReportColumns();
  auto columns = report::parse_format(format);
  if (!columns) return columns.error();
  return ReportColumns(std::move(*columns));
}

}  // namespace

void add_report_options(CLI::App& app, ReportOptions& options) {
  app.add_option("-j,--jobs", options.jobs,
                 "JOB[_TASK|_[TASKS]|+OFFSET][.STEP][@CLUSTER][,...]: these jobs, whenever they ran, in full")
      ->type_name("JOBS");
  app.add_option("JOB", options.job_words, "the same as -j")->type_name("");
  app.add_flag("-D,--duplicates", options.duplicates,
               "with -j, also earlier jobs that had the same number; else the latest with its restarts");
  app.add_option("--submit", options.submit_s, "with -j, the job that was submitted then, in seconds since 1970")
      ->type_name("SECONDS");
  app.add_option("-u,--user,--uid", options.users, "NAME|UID[,...]: jobs of these users")->type_name("USERS");
  app.add_flag("-a,--allusers", options.all_users, "jobs of every user (operators)");
  app.add_option("-M,--clusters", options.clusters, "NAME[,...]: jobs of these clusters")->type_name("CLUSTERS");
  app.add_option("--name", options.names, "NAME[,...]: jobs of these names")->type_name("NAMES");
  app.add_option("-A,--accounts", options.accounts, "NAME[,...]: jobs of these accounts")->type_name("ACCOUNTS");
  app.add_option("-r,--partition", options.partitions, "NAME[,...]: jobs in these partitions")->type_name("PARTITIONS");
  app.add_option("-s,--state", options.states, "running (R), complete (CD), partial (PA)[,...]")->type_name("STATES");
  app.add_option("-N,--nodelist", options.nodes, "n[1-3,7]: steps that ran on one of these nodes")->type_name("NODES");
  app.add_option("-S,--starttime", options.since, "steps that ended after TIME (default: today 0:00; with -j: any)")
      ->type_name("TIME");
  app.add_option("-E,--endtime", options.until, "steps that started before TIME (default: now)")->type_name("TIME");
  app.add_option("-o,--format", options.format,
                 "FIELD[%[-]WIDTH][,...]: these columns; -e lists the fields, ALL is all of them")
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
                 "how long --brief waits for a step that is being completed, and for each answer of lbfd "
                 "(default: 1.8, and 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, kMostBriefWaitS));
  app.add_flag("--accuracy", options.accuracy,
               "how far predictions were off from what was measured later, by target distance, program, "
               "month and week");
  app.add_flag("--overhead", options.overhead,
               "what the capture cost: limit, predicted, observed, once in a run, share of the runs seen; "
               "per program and in "
               "all, with -j of each node and rank");
  app.add_flag("--savings", options.savings,
               "node-hours that the runs of the last 7 days (-S, -E) would have saved at the advised node counts, by "
               "program, account and partition");
  app.add_flag(
      "--scaling", options.scaling,
      "run time over rank counts, from runs of one program at two rank counts and more: of these jobs (-j), or "
      "of the programs that ran so in the last 7 days (-S, -E)");
  app.add_flag("--weak", options.weak, "with --scaling -j, each rank has the same problem; else all together have");
  app.add_option("--ranks", options.ranks, "P[,...]: with --scaling, these rank counts")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->type_name("COUNTS");
  app.add_flag("--procedures", options.procedures,
               "what if a procedure ran in the other process: those that were measured (srun "
               "--lbf-procedures); needs -j");
  app.add_flag("--networks", options.networks, "names of the networks that lbfd has, for srun --lbf-networks");
  app.add_flag("--health", options.health, "how lbfd is; operators see its metrics");
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.add_option(
         "--server", options.server,
         std::string("where lbfd is: unix:PATH or http://HOST:PORT (default: LBF_SERVER, else ") + kDefaultServer + ")")
      ->type_name("SERVER");
  app.add_flag("-V,--version", options.version, "print the version");
}

ReportKind kind_of(const ReportOptions& options) {
  if (options.brief) return ReportKind::kBrief;
  if (options.accuracy) return ReportKind::kAccuracy;
  if (options.savings) return ReportKind::kSavings;
  if (options.scaling) return ReportKind::kScaling;
  if (options.yaml || (options.json && !options.overhead)) return ReportKind::kDocument;
  if (!options.html.empty()) return ReportKind::kHtml;
  if (options.plot) return ReportKind::kPlot;
  if (options.overhead) return ReportKind::kOverhead;
  return options.procedures ? ReportKind::kProcedures : ReportKind::kSteps;
}

Result<ReportRequest> request_of(const ReportOptions& options) {
  Result<Selection> selection = selection_of(options);
  if (!selection) return selection.error();
  Result<ReportColumns> columns = columns_of(options, *selection);
  if (!columns) return columns.error();
  for (const Conflict& conflict : kConflicts) {
    if (conflict.is_there(options, *selection)) return invalid_input(conflict.says);
  }
  ask_for_rows(options, *columns, *selection);
  return ReportRequest{std::move(*selection), std::move(*columns)};
}

void join_jobs(ReportOptions& options) {
  for (const std::string& word : options.job_words) options.jobs += (options.jobs.empty() ? "" : ",") + word;
}

TableStyle table_style(const ReportOptions& options) {
  TableStyle table;
  table.header = !options.no_header;
  table.parsable = options.any_parsable();
  table.trailing = options.parsable;
  table.delimiter = options.delimiter;
  if (!options.units.empty()) table.unit = options.units.front();
  table.convert = !options.no_convert;
  return table;
}

}  // namespace lbf::tools
