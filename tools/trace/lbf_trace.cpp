// lbf-trace: looks into traces, converts them, and carries them from and to other tools. docs/man/lbf-trace.1
// is its manual and the contract (subcommands, `synth`'s options, the JSON keys of `info`).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "event/stored_trace_writer.h"
#include "event/synth.h"
#include "event/text_trace.h"
#include "tools/import/otf2_import.h"
#include "tools/support/command_line.h"
#include "tools/support/environment.h"
#include "tools/support/message.h"
#include "tools/support/progress.h"
#include "tools/trace/event_text.h"
#include "tools/trace/import_ti.h"
#include "tools/trace/trace_export.h"
#include "tools/trace/trace_info.h"
#include "tools/trace/trace_output.h"
#include "tools/whatif/extrapolated_trace.h"
#include "tools/whatif/target_options.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {
namespace {

constexpr Messages kMessages("lbf-trace");

struct Options {
  std::string trace;
  std::string server = default_server();
  std::string output = "-";
  std::string to;  // "text", "stored"
  bool json = false;
  std::vector<Rank> ranks;  // dump
  std::uint64_t limit = 0;
  std::string import_format;
  double flops_per_second = kDefaultFlopsPerSecond;  // import
  TraceExportOptions exported;
  std::string pattern;
  Rank synth_ranks = 0;  // also of extrapolate
  std::uint64_t iterations = 0;
  std::vector<std::string> runs;  // extrapolate
};

// --- traces

// Bytes of the trace's files; of a job's trace what lbfd sent is not on this machine: 0.
struct TraceForm {
  std::string name = "stored";
  std::uint64_t bytes = 0;
};
TraceForm form_of(const std::string& path) {
  TraceForm form;
  std::error_code error;
  if (const std::string anchor = otf2_anchor(path); !anchor.empty()) {
    form.name = "otf2";
    form.bytes = otf2_bytes(anchor);
    return form;
  }
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("stream-") && name.ends_with(".lbfw")) form.bytes += entry.file_size(error);
    }
    return form;
  }
  form.bytes = std::filesystem::file_size(path, error);
  if (error) form.bytes = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return form;
  char start[9] = {};
  const std::size_t got = std::fread(start, 1, sizeof(start), file);
  std::fclose(file);
  if (got == sizeof(start) && std::string_view(start, sizeof(start)) == "lbf-trace") form.name = "text";
  return form;
}

// Writes events in one of the two forms; nothing is left of a failed one.
class TraceSink {
 public:
  // `library`: MPI_Get_library_version of the run, empty where it is not known; so `node_of_rank`.
  static Result<std::unique_ptr<TraceSink>> open(const std::string& path, const std::string& form, Rank ranks,
                                                 const std::string& library = {},
                                                 const std::vector<std::string>& procedures = {},
                                                 const std::vector<std::uint32_t>& node_of_rank = {},
                                                 const std::set<std::string>& switched_off = {},
                                                 const std::vector<std::string>& mpi_settings = {}) {
    if (form == "stored" && path == "-" && ::isatty(STDOUT_FILENO) == 1) {
      return invalid_input("a stored trace is not for a terminal: name a file with -o FILE, or --to text");
    }
    Result<std::unique_ptr<TraceOutput>> output = TraceOutput::open(path);
    if (!output) return output.error();
    auto sink = std::make_unique<TraceSink>();
    sink->output_ = std::move(*output);
    if (form == "text") {
      sink->text_.emplace(sink->output_->stream(), ranks, procedures, library, node_of_rank);
    } else {
      TraceOutput* out = sink->output_.get();
      StoredTraceOptions stored;
      stored.library = library;
      stored.mpi_settings = mpi_settings;
      stored.procedures = procedures;
      stored.node_of_rank = node_of_rank;
      stored.switched_off = switched_off;
      sink->stored_.emplace(
          ranks, [out](std::uint32_t, const std::string& batch) { return out->write(batch); }, stored);
    }
    return sink;
  }
  Result<void> add(Rank rank, const Event& event) {
    if (!text_) return stored_->add(rank, event);
    Result<void> added = text_->add(rank, event);
    if (added || added.error().code != ErrorCode::kInvalidInput) return added;
    return invalid_input(added.error().message + "; --to stored and lbf-trace dump keep everything");
  }
  Result<void> finish() {
    if (stored_) {
      if (Result<void> done = stored_->finish(); !done) return done;
    }
    return output_->commit();
  }

 private:
  std::unique_ptr<TraceOutput> output_;
  std::optional<TextTraceWriter> text_;
  std::optional<StoredTraceWriter> stored_;
};

Result<void> read(WhatIfTrace& trace, const char* what, const EventSink& sink) {
  {
    Progress progress("lbf-trace", what);
    Result<void> done = trace.read(one_by_one(sink), [&progress](double share) { progress.show(share); });
    if (!done) return done;
  }
  for (const std::string& note : trace.notes()) kMessages.warn(note);
  return {};
}

// --- the subcommands

Result<std::string> info(const Options& options) {
  Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(options.trace, options.server);
  if (!trace) return trace.error();
  TraceInfoCount count((*trace)->ranks());
  Result<void> done = read(**trace, "read", [&count](Rank rank, const Event& event) { return count.add(rank, event); });
  if (!done) return done.error();
  const TraceForm form = form_of(options.trace);
  const TraceSource source{options.trace, form.name, form.bytes, (*trace)->library(), (*trace)->node_of_rank()};
  return options.json ? count.json(source) : count.table(source);
}

Result<void> dump(const Options& options) {
  Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(options.trace, options.server);
  if (!trace) return trace.error();
  std::vector<bool> wanted(static_cast<std::size_t>((*trace)->ranks()), options.ranks.empty());
  for (Rank rank : options.ranks) {
    if (rank >= (*trace)->ranks()) {
      return invalid_input("--rank " + std::to_string(rank) + ": the trace has ranks 0 to " +
                           std::to_string((*trace)->ranks() - 1));
    }
    wanted[static_cast<std::size_t>(rank)] = true;
  }
  Result<std::unique_ptr<TraceOutput>> output = TraceOutput::open(options.output);
  if (!output) return output.error();
  std::uint64_t lines = 0;
  bool enough = false;
  const auto sink = [&](Rank rank, const Event& event) -> Result<void> {
    if (!wanted[static_cast<std::size_t>(rank)]) return {};
    if (Result<void> done = (*output)->write(event_line(rank, event) + "\n"); !done) return done;
    enough = options.limit > 0 && ++lines >= options.limit;
    return enough ? Result<void>(Error{ErrorCode::kLimit, "--limit"}) : Result<void>();
  };
  if (Result<void> done = read(**trace, "dumped", sink); !done && !enough) return done;
  return (*output)->commit();
}

Result<void> convert(const Options& options) {
  Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(options.trace, options.server);
  if (!trace) return trace.error();
  const bool from_text = form_of(options.trace).name == "text";
  const std::string to = !options.to.empty() ? options.to : from_text ? "stored" : "text";
  const Result<std::vector<std::string>> procedures = (*trace)->procedures(WhatIfTrace::Samples::kLeftOut);
  if (!procedures) return procedures.error();
  Result<std::unique_ptr<TraceSink>> sink =
      TraceSink::open(options.output, to, (*trace)->ranks(), (*trace)->library(), *procedures, (*trace)->node_of_rank(),
                      (*trace)->switched_off(), (*trace)->mpi_settings());
  if (!sink) return sink.error();
  if (to == "text" && !(*trace)->mpi_settings().empty()) {
    kMessages.warn(
        "the settings of collectives in the run's environment are left out: the format has no place for them");
  }
  Result<void> done =
      read(**trace, "converted", [&](Rank rank, const Event& event) { return (*sink)->add(rank, event); });
  if (!done) return done;
  return (*sink)->finish();
}

Result<void> extrapolate(const Options& options) {
  Result<std::unique_ptr<WhatIfTrace>> trace = open_extrapolated(options.runs, options.synth_ranks, options.server);
  if (!trace) return trace.error();
  Result<std::unique_ptr<TraceSink>> sink =
      TraceSink::open(options.output, options.to.empty() ? "stored" : options.to, (*trace)->ranks(),
                      (*trace)->library(), {}, {}, {}, (*trace)->mpi_settings());
  if (!sink) return sink.error();
  Result<void> done =
      read(**trace, "extrapolated", [&](Rank rank, const Event& event) { return (*sink)->add(rank, event); });
  if (!done) return done;
  return (*sink)->finish();
}

using Shown = std::function<void(double)>;

// READ hands the events of a trace of RANKS to a sink; NOTES is called behind it.
Result<void> import_events(const Options& options, Rank ranks, const std::vector<std::uint32_t>& node_of_rank,
                           const std::function<Result<void>(const EventSink&, const Shown&)>& read_events,
                           const std::function<std::vector<std::string>()>& notes) {
  Result<std::unique_ptr<TraceSink>> sink =
      TraceSink::open(options.output, options.to.empty() ? "stored" : options.to, ranks, {}, {}, node_of_rank);
  if (!sink) return sink.error();
  {
    Progress progress("lbf-trace", "imported");
    Result<void> done = read_events([&](Rank rank, const Event& event) { return (*sink)->add(rank, event); },
                                    [&progress](double share) { progress.show(share); });
    if (!done) return done;
  }
  if (Result<void> done = (*sink)->finish(); !done) return done;
  for (const std::string& note : notes()) kMessages.warn(note);
  return {};
}

Result<void> import_otf2(const Options& options, const std::string& anchor) {
  Result<std::unique_ptr<Otf2Import>> archive = Otf2Import::open(anchor);
  if (!archive) return archive.error();
  Otf2Import& trace = **archive;
  return import_events(
      options, trace.ranks(), trace.node_of_rank(),
      [&](const EventSink& sink, const Shown& shown) { return trace.read(one_by_one(sink), shown); },
      [&] { return trace.notes(); });
}

Result<void> import_trace(const Options& options) {
  const std::string anchor = options.import_format == "ti" ? std::string() : otf2_anchor(options.trace);
  if (!anchor.empty() || options.import_format == "otf2")
    return import_otf2(options, anchor.empty() ? options.trace : anchor);
  Result<std::unique_ptr<TiTrace>> opened = TiTrace::open(options.trace, options.flops_per_second);
  if (!opened) return opened.error();
  TiTrace& trace = **opened;
  return import_events(
      options, trace.ranks(), {}, [&](const EventSink& sink, const Shown& shown) { return trace.read(sink, shown); },
      [&] { return trace.notes(); });
}

Result<void> export_trace(const Options& options) {
  Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(options.trace, options.server);
  if (!trace) return trace.error();
  const Result<std::vector<std::string>> warnings = export_trace(options.exported, **trace);
  if (!warnings) return warnings.error();
  for (const std::string& warning : *warnings) kMessages.warn(warning);
  return {};
}

Result<void> synth(const Options& options) {
  Result<std::unique_ptr<TraceSink>> sink =
      TraceSink::open(options.output, options.to.empty() ? "stored" : options.to, options.synth_ranks);
  if (!sink) return sink.error();
  {
    Progress progress("lbf-trace", "made");
    const double all = static_cast<double>(synth_events_per_iteration(options.pattern, options.synth_ranks)) *
                       static_cast<double>(options.iterations);
    std::uint64_t events = 0;
    Result<void> done =
        synthesize(options.pattern, options.synth_ranks, options.iterations, [&](Rank rank, const Event& event) {
          constexpr std::uint64_t kEventsPerTick = 1 << 16;
          if (++events % kEventsPerTick == 0) progress.show(static_cast<double>(events) / all);
          return (*sink)->add(rank, event);
        });
    if (!done) return done;
  }
  return (*sink)->finish();
}

// --- options

constexpr const char* kTraceHelp =
    "a text trace, a stored trace (file, or folder of stream-*.lbfw), an OTF2 archive (NAME.otf2), or JOB[.STEP] of a "
    "job that lbfd knows";

void add_server(CLI::App& command, Options& options) {
  command.add_option("--server", options.server, "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)")
      ->check([](const std::string& server) {
        const auto client = HttpClient::make(server);
        return client ? std::string() : client.error().message;
      });
}
void add_trace(CLI::App& command, Options& options) {
  command.add_option("TRACE", options.trace, kTraceHelp)->required();
  add_server(command, options);
}
void add_output(CLI::App& command, std::string& output, const char* help) {
  command.add_option("-o,--output", output, help);
}
void add_form(CLI::App& command, Options& options, const char* help) {
  command.add_option("--to", options.to, help)->check(CLI::IsMember({"text", "stored"}));
}
void add_flops(CLI::App& command, double& flops_per_second, const char* help) {
  command.add_option("--flops-per-second", flops_per_second, help)->check(check_positive);
}

// What is wrong with the options of export; empty: nothing.
std::string check_export(const CLI::App& command, const TraceExportOptions& options) {
  if (options.output == "-" && options.format == "ti")
    return "--format ti writes a list and a folder of files: name the list with -o FILE";
  if (options.output == "-" && options.format == "otf2") return "--format otf2 makes a folder: name it with -o DIR";
  return exports_a_prediction(options.format) ? check_target_options(command, options.target) : "";
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Looks into recorded programs, converts them, and carries them from and to other tools.", "lbf-trace"};
  app.set_version_flag("--version", std::string("lbf-trace ") + LBF_VERSION);
  app.require_subcommand(1);

  CLI::App* info_command = app.add_subcommand("info", "what is in a trace: ranks, events, messages, calls, durations");
  add_trace(*info_command, options);
  info_command->add_flag("--json", options.json, "print JSON");

  CLI::App* dump_command = app.add_subcommand("dump", "every event in one line, with all that is known of it");
  add_trace(*dump_command, options);
  add_output(*dump_command, options.output, "file to write (default standard output)");
  dump_command->add_option("--rank", options.ranks, "of these ranks only, as in 0,3")
      ->delimiter(',')
      ->check(CLI::Range(0, (1 << 24) - 1));
  dump_command->add_option("--limit", options.limit, "stop after so many events")
      ->check(CLI::Range(std::uint64_t{1}, ~std::uint64_t{0}));

  CLI::App* convert_command = app.add_subcommand("convert", "a text trace <-> a stored trace");
  add_trace(*convert_command, options);
  add_output(*convert_command, options.output, "file to write (default standard output)");
  add_form(*convert_command, options, "text or stored (default: the other form)");

  CLI::App* import_command = app.add_subcommand("import", "a trace of another tool -> a trace of lbf");
  import_command
      ->add_option("FILE", options.trace,
                   "ti: the list of the ranks' files, or one file with the actions of all ranks; otf2: the anchor file "
                   "(NAME.otf2), or its folder")
      ->required();
  import_command
      ->add_option("--format", options.import_format,
                   "ti: SimGrid's time-independent trace; otf2: Score-P, EZTrace and others (default: by the file)")
      ->check(CLI::IsMember({"otf2", "ti"}));
  add_output(*import_command, options.output, "file to write (default standard output)");
  add_form(*import_command, options, "text or stored (default stored)");
  add_flops(*import_command, options.flops_per_second, "flops of a compute action that take one second (default 1e9)");

  CLI::App* export_command = app.add_subcommand("export", "a trace of lbf -> a trace of another tool");
  add_trace(*export_command, options);
  export_command
      ->add_option("--format", options.exported.format,
                   "goal (LogGOPSim), ti (SimGrid); a predicted run: timeline (Chrome and Perfetto), otf2 "
                   "(Vampir, Cube)")
      ->required()
      ->check(CLI::IsMember({"goal", "ti", "timeline", "otf2"}));
  add_output(*export_command, options.exported.output,
             "file to write (default standard output; ti needs a file), otf2: folder to make");
  add_flops(*export_command, options.exported.flops_per_second,
            "ti: flops of one second of process time (default 1e9)");
  add_target_options(*export_command, options.exported.target, "Target (timeline, otf2)");

  CLI::App* synth_command = app.add_subcommand("synth", "makes a trace of a well-known pattern");
  std::vector<std::string> patterns(kSynthPatterns.begin(), kSynthPatterns.end());
  synth_command->add_option("--pattern", options.pattern, "ring, stencil2d, alltoall or allreduce")
      ->required()
      ->check(CLI::IsMember(patterns));
  synth_command->add_option("--ranks", options.synth_ranks, "ranks of the program")
      ->required()
      ->check(CLI::Range(kMinSynthRanks, kMaxSynthRanks));
  synth_command->add_option("--iterations", options.iterations, "how often the pattern is repeated")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  add_output(*synth_command, options.output, "file to write (default standard output)");
  add_form(*synth_command, options, "text or stored (default stored)");

  CLI::App* extrapolate_command =
      app.add_subcommand("extrapolate", "runs of a program with several rank counts -> its run with another one");
  extrapolate_command->add_option("TRACES", options.runs, kTraceHelp)->required()->expected(2, -1);
  add_server(*extrapolate_command, options);
  extrapolate_command->add_option("--ranks", options.synth_ranks, "ranks of the run that is wanted")
      ->required()
      ->check(CLI::Range(kMinSynthRanks, kMaxSynthRanks));
  add_output(*extrapolate_command, options.output, "file to write (default standard output)");
  add_form(*extrapolate_command, options, "text or stored (default stored)");

  if (const auto status = parse(app, argc, argv, kMessages)) return *status;
  if (export_command->parsed()) {
    const std::string wrong = check_export(*export_command, options.exported);
    if (!wrong.empty()) return kMessages.fail(kExitUsage, wrong);
  }
  if (info_command->parsed()) {
    const Result<std::string> text = info(options);
    return text ? kMessages.write(*text) : kMessages.fail(text.error());
  }
  Result<void> done = dump_command->parsed()          ? dump(options)
                      : convert_command->parsed()     ? convert(options)
                      : import_command->parsed()      ? import_trace(options)
                      : export_command->parsed()      ? export_trace(options)
                      : extrapolate_command->parsed() ? extrapolate(options)
                                                      : synth(options);
  return done ? 0 : kMessages.fail(done.error());
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  return lbf::tools::run_command(lbf::tools::run, argc, argv, lbf::tools::kMessages);
}
