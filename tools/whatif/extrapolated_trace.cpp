#include "tools/whatif/extrapolated_trace.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <future>
#include <utility>

#include "skeleton/operation_reader.h"
#include "tools/support/progress.h"

namespace lbf::tools {
namespace {

class ExtrapolatedTrace final : public WhatIfTrace {
 public:
  ExtrapolatedTrace(std::shared_ptr<const pattern::Program> program, Rank ranks, std::string library)
      : program_(std::move(program)), ranks_(ranks), library_(std::move(library)) {}

  std::unique_ptr<WhatIfTrace> another_reader() const override { return std::make_unique<ExtrapolatedTrace>(*this); }
  Rank ranks() const override { return ranks_; }
  const std::string& library() const override { return library_; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return no_nodes_; }
  const std::optional<report::TargetPrediction>& self() const override { return no_self_; }
  Result<std::vector<std::string>> procedures(Samples) override { return std::vector<std::string>(); }
  std::vector<daemon::StreamCost> costs() const override { return {}; }
  const std::set<std::string>& switched_off() const override { return none_; }
  const std::set<std::string>& sampled() const override { return none_; }
  std::vector<std::string> notes() const override { return program_->notes; }
  double other_ranks_percent() const override { return advisor::other_ranks_percent(program_->work_percent(ranks_)); }
  Result<void> read(const EventBlockSink& sink, const RoundsSink& /*rounds*/,
                    const std::function<void(double)>& progress) override {
    return program_->run(
        ranks_,
        [&](Rank rank, const Event& event) {
          return sink(rank, {&event, 1});
        },
        progress);
  }

 private:
  std::shared_ptr<const pattern::Program> program_;
  Rank ranks_;
  std::string library_;
  const std::vector<std::uint32_t> no_nodes_;
  const std::set<std::string> none_;
  const std::optional<report::TargetPrediction> no_self_;
};

}  // namespace

LearntProgram::LearntProgram(pattern::Program program, std::string library, std::vector<std::string> mpi_settings)
    : program_(std::make_shared<const pattern::Program>(std::move(program))),
      library_(std::move(library)),
      mpi_settings_(std::move(mpi_settings)) {}

Result<std::unique_ptr<WhatIfTrace>> LearntProgram::with_ranks(Rank ranks) const {
  if (Result<void> checked = program_->check(ranks); !checked) return checked.error();
  auto made = std::make_unique<ExtrapolatedTrace>(program_, ranks, library_);
  made->set_mpi_settings(mpi_settings_);
  return std::unique_ptr<WhatIfTrace>(std::move(made));
}

Result<void> ProgramLearner::add(const std::string& name, WhatIfTrace& trace) {
  if (!first_.empty() && trace.library() != library_) {
    return invalid_input(
        fmt::format("ran with {}, {} with {}: give runs of one MPI library", trace.library(), first_, library_));
  }
  skeleton::OperationReader reader(trace.ranks());
  Progress progress("lbf", "read");
  const auto add_event = [&](Rank rank, const Event& event) { return reader.add(rank, event); };
  Result<void> read = trace.read(one_by_one(add_event), [&](double share) { progress.show(share); });
  Result<skeleton::ProgramTrace> run = read ? reader.finish() : Result<skeleton::ProgramTrace>(read.error());
  if (!run) return run.error();
  if (first_.empty()) {
    first_ = name;
    library_ = trace.library();
  }
  mpi_settings_ = trace.mpi_settings();
  unmodelled_s_ += run->unmodelled_s;
  learner_.add(std::move(*run));
  return {};
}

Result<LearntProgram> ProgramLearner::learn() const {
  Progress progress("lbf", "learnt from the runs");
  std::future<Result<pattern::Program>> learning = std::async(std::launch::async, [this] { return learner_.learn(); });
  while (learning.wait_for(std::chrono::milliseconds(250)) != std::future_status::ready) progress.show_elapsed();
  Result<pattern::Program> program = learning.get();
  if (!program) return program.error();
  if (unmodelled_s_ > 0) {
    program->notes.emplace_back(
        "time in one-sided communication, MPI I/O and other unmodelled calls is time off the processor");
  }
  return LearntProgram(std::move(*program), library_, mpi_settings_);
}

Result<std::unique_ptr<WhatIfTrace>> open_extrapolated(const std::vector<std::string>& traces, Rank ranks,
                                                       const std::string& server) {
  ProgramLearner learner;
  for (const std::string& name : traces) {
    Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(name, server);
    if (!trace) return trace.error();
    if (Result<void> added = learner.add(name, **trace); !added)
      return Error{added.error().code, name + ": " + added.error().message};
  }
  const Result<LearntProgram> program = learner.learn();
  if (!program) return program.error();
  return program->with_ranks(ranks);
}

}  // namespace lbf::tools
