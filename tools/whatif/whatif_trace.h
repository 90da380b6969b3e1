// Traces as lbf-whatif reads them: a text trace, a stored trace (a file of batches, or a folder of stream
// files), an OTF2 archive (its anchor file), or a job's trace fetched from lbfd. Implements the reading side of
// docs/formats/text-trace-v1.md, wire-v1.md and http-v1.md, "For people's tools".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advisor/trust/trust.h"
#include "base/result.h"
#include "event/rounds.h"
#include "event/text_trace.h"
#include "predictor/daemon/steps/step_cost.h"
#include "report/step.h"
#include "tools/whatif/whatif_targets.h"

namespace lbf::tools {

class WhatIfTrace {
 public:
  virtual ~WhatIfTrace() = default;
  // Another reader of the same trace, for another thread, as read() would hand it on now. nullptr: there can be only
  // one.
  virtual std::unique_ptr<WhatIfTrace> another_reader() const = 0;
  // Ranks of the program.
  virtual Rank ranks() const = 0;
  // What MPI_Get_library_version said where the program ran; empty: the trace does not know.
  virtual const std::string& library() const = 0;
  // What the run's environment set of its collectives (protocol::ProcessRecord); empty: nothing, or the trace does not
  // know.
  const std::vector<std::string>& mpi_settings() const { return mpi_settings_; }
  void set_mpi_settings(const std::vector<std::string>& settings) { mpi_settings_ = settings; }
  // Node of each rank where the program ran; empty: the trace does not know.
  virtual const std::vector<std::uint32_t>& node_of_rank() const = 0;
  // lbfd's prediction of the configuration that ran; empty: lbfd has none, or the trace is a file, which does not know
  // processors and network.
  virtual const std::optional<report::TargetPrediction>& self() const = 0;
  // Reads the whole trace for its procedures' names: what events name them by number from then on. A trace that names
  // none has none. kStandIn: what was not measured, or not to the end, but sampled well enough (StepProcedures) is
  // among them, and the events have its average times.
  enum class Samples { kLeftOut, kStandIn };
  virtual Result<std::vector<std::string>> procedures(Samples samples) = 0;
  // What the relays said last of the capture's cost, by node; nothing of a trace that does not know. REQUIRES: read()
  // was called.
  virtual std::vector<daemon::StreamCost> costs() const = 0;
  // Those of them whose measuring the overhead limit ended while they ran, in some rank or in all: the trace has a part
  // of their times. Known once procedures() was called, empty with kStandIn for those in
  // sampled(). Text traces do not say it.
  virtual const std::set<std::string>& switched_off() const = 0;
  // Those whose times are samples'. The same.
  virtual const std::set<std::string>& sampled() const = 0;
  // What an archive of another tool does not say, one line each; empty otherwise. REQUIRES: read() was called.
  virtual std::vector<std::string> notes() const { return {}; }
  // advisor::Trust's; 0: the trace is of a run.
  virtual double other_ranks_percent() const { return 0; }
  // Hands all events to `sink`, each rank's in order; `progress` gets the share done (0 to 1) now and then.
  Result<void> read(const EventBlockSink& sink, const std::function<void(double)>& progress) {
    return read(sink, {}, progress);
  }
  // The same; a stored trace hands on what comes as rounds to `rounds`, unless that is empty.
  virtual Result<void> read(const EventBlockSink& sink, const RoundsSink& rounds,
                            const std::function<void(double)>& progress) = 0;
  // Of a job, what lbfd knows.
  const KnownMemory& memory() const { return memory_; }
  void set_memory(const KnownMemory& memory) { memory_ = memory; }
  // The same of how far its predictions may be off, as lbf-report takes it. Nothing of a file.
  const std::optional<advisor::Trust>& trust() const { return trust_; }
  void set_trust(advisor::Trust trust) { trust_ = std::move(trust); }

 private:
  std::optional<advisor::Trust> trust_;
  KnownMemory memory_;
  std::vector<std::string> mpi_settings_;
};

// WHAT: a path, or JOBID[.STEP] of a job that lbfd at `server` knows (nothing of that name may exist as a
// path). Errors: kNotFound: neither; kInvalidInput: not a trace, or a job with several steps and none named;
// those of lbfd.
Result<std::unique_ptr<WhatIfTrace>> open_trace(const std::string& what, const std::string& server);
// The same of a job, whatever files there are.
Result<std::unique_ptr<WhatIfTrace>> open_job_trace(const std::string& job, const std::string& server);
// The events of a step that lbfd listed, with its self-prediction if STEP has it.
Result<std::unique_ptr<WhatIfTrace>> open_step_trace(const report::Step& step, const std::string& server);

}  // namespace lbf::tools
