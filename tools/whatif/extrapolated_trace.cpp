#include "tools/whatif/extrapolated_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "pattern/learner.h"
#include "skeleton/operation_reader.h"
#include "tools/support/progress.h"

namespace lbf::tools {
namespace {

class ExtrapolatedTrace final : public WhatIfTrace {
 public:
  ExtrapolatedTrace(std::shared_ptr<const pattern::Program> program, Rank ranks, std::string library,
                    std::vector<std::string> notes)
      : program_(std::move(program)), ranks_(ranks), library_(std::move(library)), notes_(std::move(notes)) {}

  std::unique_ptr<WhatIfTrace> another_reader() const override { return std::make_unique<ExtrapolatedTrace>(*this); }
  Rank ranks() const override { return ranks_; }
  const std::string& library() const override { return library_; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return no_nodes_; }
  const std::optional<report::TargetPrediction>& self() const override { return no_self_; }
  Result<std::vector<std::string>> procedures(Samples) override { return std::vector<std::string>(); }
  std::vector<daemon::StreamCost> costs() const override { return {}; }
  const std::set<std::string>& switched_off() const override { return none_; }
  const std::set<std::string>& sampled() const override { return none_; }
  std::vector<std::string> notes() const override { return notes_; }
  double other_ranks_percent() const override {
    const double steps =
        std::log(static_cast<double>(ranks_) / program_->ranks_of_largest()) / std::log(program_->miss_factor);
    return advisor::other_ranks_percent(program_->miss_percent, steps);
  }
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
  std::vector<std::string> notes_;
  const std::vector<std::uint32_t> no_nodes_;
  const std::set<std::string> none_;
  const std::optional<report::TargetPrediction> no_self_;
};

}  // namespace

Result<std::unique_ptr<WhatIfTrace>> open_extrapolated(const std::vector<std::string>& traces, Rank ranks,
                                                       const std::string& server) {
  pattern::Learner learner;
  std::string library;
  std::vector<std::string> settings;
  bool is_first = true;
  double unmodelled_s = 0;
  for (const std::string& name : traces) {
    Result<std::unique_ptr<WhatIfTrace>> trace = open_trace(name, server);
    if (!trace) return trace.error();
    skeleton::OperationReader reader((*trace)->ranks());
    Progress progress("lbf", "read");
    const auto add = [&](Rank rank, const Event& event) { return reader.add(rank, event); };
    Result<void> read = (*trace)->read(one_by_one(add), [&](double share) { progress.show(share); });
    Result<skeleton::ProgramTrace> run = read ? reader.finish() : Result<skeleton::ProgramTrace>(read.error());
    if (!run) return Error{run.error().code, name + ": " + run.error().message};
    if (!is_first && (*trace)->library() != library)
      return invalid_input(fmt::format("{} ran with {}, {} with {}: give runs of one MPI library", traces.front(),
                                       library, name, (*trace)->library()));
    library = (*trace)->library();
    settings = (*trace)->mpi_settings();
    is_first = false;
    unmodelled_s += run->unmodelled_s;
    learner.add(std::move(*run));
  }
  Result<pattern::Program> program = learner.learn();
  if (!program) return program.error();
  if (Result<void> checked = program->check(ranks); !checked) return checked.error();
  std::vector<std::string> notes = program->notes;
  if (unmodelled_s > 0)
    notes.emplace_back("time in one-sided communication, MPI I/O and other unmodelled calls is time off the processor");
  auto made = std::make_unique<ExtrapolatedTrace>(std::make_shared<const pattern::Program>(std::move(*program)), ranks,
                                                  std::move(library), std::move(notes));
  made->set_mpi_settings(settings);
  return std::unique_ptr<WhatIfTrace>(std::move(made));
}

}  // namespace lbf::tools
