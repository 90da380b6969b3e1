// TraceStore: the directory of all stored traces, state_dir/traces/CLUSTER/JOB.STEP.RESTART.SUBMIT/
// (docs/formats/trace-store-v1.md). Finds, opens, creates and, by the admin's retention, removes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/daemon/intake/step_trace.h"

namespace lbf::daemon {

struct Retention {
  std::chrono::hours age{24 * 30};  // finished traces older than this are removed; 0: none by age
  std::uint64_t limit_bytes = 0;    // the oldest finished ones are removed above it; 0: no limit
};

struct PruneResult {
  std::vector<StepKey> removed;
  std::uint64_t stored_bytes = 0;  // what is left
};

// Thread-safe as long as no two calls are about the same key.
class TraceStore {
 public:
  // Makes `directory` (its parent must exist) and finishes interrupted removals.
  static Result<std::unique_ptr<TraceStore>> open(std::string directory);

  std::vector<StepKey> list() const;
  bool contains(const StepKey& key) const;

  // As StepTrace::create and StepTrace::open, in this key's directory.
  Result<std::shared_ptr<StepTrace>> create(const StepKey& key, const protocol::StepDescription& first, uid_t owner);
  Result<std::shared_ptr<StepTrace>> open_step(const StepKey& key) const;
  // As StepTrace::open_to_read: of a step of which nothing is in memory.
  Result<std::shared_ptr<StepTrace>> open_to_read(const StepKey& key) const;
  // Some stream is registered and has not ended.
  bool has_open_stream(const StepKey& key) const;

  // Removes a directory that never got as far as its step.json (a crash while it was made).
  void remove_empty(const StepKey& key);
  // Removes a step's trace, whatever is in it.
  Result<void> remove(const StepKey& key);

  const std::string& directory() const { return directory_; }
  // The step's place below the store's directory: what it is called in notes of lbfd for its next start.
  static std::string place_of(const StepKey& key) { return key.cluster + "/" + key.directory_name(); }
  // Who the step.json says the owner is, also where nothing else of it can be read; nothing: not even that.
  std::optional<uid_t> owner_of(const StepKey& key) const;

  // How often lbfd ended while it replayed the step (docs/lbfd.md, "After a crash").
  struct Deaths {
    std::uint32_t all = 0;
    std::uint32_t in_a_row = 0;  // at the same place
    std::string at_hand;         // this place
  };
  Deaths deaths_in_replay(const StepKey& key) const;
  Result<void> count_death(const StepKey& key, const std::string& at_hand);
  Result<void> forget_deaths(const StepKey& key);
  // An admin wants it replayed again, at the next start: it is not known to be over then, and its deaths are forgotten.
  Result<void> request_retry(const StepKey& key);
  bool is_retried(const StepKey& key) const;
  void forget_retry(const StepKey& key);

  // Removes finished traces as `retention` says; `in_use` keeps a step. Errors while removing one step are
  // reported to `on_error`, and the others go on.
  PruneResult prune(const Retention& retention, const std::function<bool(const StepKey&)>& in_use,
                    const std::function<void(const Error&)>& on_error);

 private:
  explicit TraceStore(std::string directory) : directory_(std::move(directory)) {}
  std::string path_of(const StepKey& key) const;
  std::string directory_;
};

}  // namespace lbf::daemon
