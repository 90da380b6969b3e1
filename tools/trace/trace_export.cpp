#include "tools/trace/trace_export.h"

#include <memory>
#include <utility>

#include "tools/support/progress.h"
#include "tools/trace/export_goal.h"
#include "tools/trace/export_otf2.h"
#include "tools/trace/export_timeline.h"
#include "tools/trace/trace_output.h"

namespace lbf::tools {
namespace {

using Warnings = std::vector<std::string>;

// Feeds the whole trace to one of the exports.
template <typename Export>
Result<void> feed(WhatIfTrace& trace, const char* done, Export& into) {
  into.set_mpi(engine::mpi_setup(trace.library(), trace.node_of_rank(), trace.mpi_settings()));
  Progress progress("lbf-trace", done);
  return trace.read(one_by_one([&into](Rank rank, const Event& event) { return into.feed(rank, event); }),
                    [&progress](double share) { progress.show(share); });
}

Warnings warnings_of(const ExportNotes& notes) {
  Warnings warnings;
  const auto note = [&warnings](std::uint64_t count, const char* what) {
    if (count > 0) warnings.push_back(std::to_string(count) + " " + what);
  };
  note(notes.synchronous_sends, "synchronous sends are written as ordinary ones: the format has no others");
  note(notes.left_out_probes, "probes are left out: the format has none");
  note(notes.late_collectives, "non-blocking collectives happen where they are waited for: the format has none");
  note(notes.rounded_sizes,
       "sizes of 2 GiB and more are rounded up to a multiple of 8 or 32 bytes: counts have 31 bits");
  note(notes.unmodelled_calls, "calls without a model are written as the time that they took");
  note(notes.approximated_collectives, "collective calls are written with the closest algorithm, not the real one");
  note(notes.never_sent, "receives are left out: nobody sends their messages");
  if (!notes.why_partial.empty()) warnings.push_back("the trace is partial: " + notes.why_partial);
  return warnings;
}

Result<engine::Target> only_target(const TraceExportOptions& options, Rank ranks, Warnings& warnings) {
  Result<std::vector<engine::Target>> targets = make_targets(options.target, ranks, warnings);
  if (!targets) return targets.error();
  if (targets->size() != 1) {
    return invalid_input((options.format == "otf2" ? "an OTF2 archive" : "a timeline") +
                         std::string(" shows one target, these options name ") + std::to_string(targets->size()) +
                         ": give one of --nodes, --placement and --network each");
  }
  return std::move(targets->front());
}

Result<Warnings> export_prediction(const TraceExportOptions& options, WhatIfTrace& trace) {
  Warnings warnings;
  const Result<engine::Target> target = only_target(options, trace.ranks(), warnings);
  if (!target) return target.error();
  std::unique_ptr<TraceOutput> output;  // otf2 makes its folder itself
  if (options.format == "timeline") {
    Result<std::unique_ptr<TraceOutput>> opened = TraceOutput::open(options.output);
    if (!opened) return opened.error();
    output = std::move(*opened);
  }
  Result<std::unique_ptr<TimelineExport>> timeline = output != nullptr
                                                         ? TimelineExport::make(trace.ranks(), *target, *output)
                                                         : make_otf2_export(trace.ranks(), *target, options.output);
  if (!timeline) return timeline.error();
  if (Result<void> fed = feed(trace, "replayed", **timeline); !fed) return fed.error();
  const Result<TimelineResult> result = (*timeline)->finish();
  if (!result) return result.error();
  if (output != nullptr) {
    if (Result<void> written = output->commit(); !written) return written.error();
  }
  if (!result->why_partial.empty()) warnings.push_back("the timeline is partial: " + result->why_partial);
  return warnings;
}

Result<Warnings> export_goal(const TraceExportOptions& options, WhatIfTrace& trace) {
  Result<std::unique_ptr<TraceOutput>> output = TraceOutput::open(options.output);
  if (!output) return output.error();
  Result<std::unique_ptr<GoalExport>> goal = GoalExport::make(trace.ranks(), **output, "");
  if (!goal) return goal.error();
  if (Result<void> fed = feed(trace, "exported", **goal); !fed) return fed.error();
  const Result<ExportNotes> notes = (*goal)->finish();
  if (!notes) return notes.error();
  if (Result<void> written = (*output)->commit(); !written) return written.error();
  return warnings_of(*notes);
}

Result<Warnings> export_ti(const TraceExportOptions& options, WhatIfTrace& trace) {
  Result<std::unique_ptr<TiExport>> ti = TiExport::make(trace.ranks(), options.output, options.flops_per_second);
  if (!ti) return ti.error();
  if (Result<void> fed = feed(trace, "exported", **ti); !fed) return fed.error();
  const Result<ExportNotes> notes = (*ti)->finish();
  if (!notes) return notes.error();
  return warnings_of(*notes);
}

}  // namespace

Result<Warnings> export_trace(const TraceExportOptions& options, WhatIfTrace& trace) {
  Result<Warnings> warnings = options.format == "goal" ? export_goal(options, trace)
                              : options.format == "ti" ? export_ti(options, trace)
                                                       : export_prediction(options, trace);
  if (warnings) {
    for (const std::string& note : trace.notes()) warnings->push_back(note);
  }
  return warnings;
}

}  // namespace lbf::tools
