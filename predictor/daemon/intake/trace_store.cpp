// TraceStore, see trace_store.h.
#include "predictor/daemon/intake/trace_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "predictor/daemon/intake/file_io.h"

namespace lbf::daemon {
namespace {

namespace fs = std::filesystem;

// A removal is a rename to this prefix, then the deletion: after a crash nobody sees half a trace.
constexpr std::string_view kRemovedPrefix = ".removed-";

struct StoredStep {
  StepKey key;
  fs::file_time_type last_change;
  std::uint64_t bytes = 0;
};

StoredStep measure(StepKey key, const std::string& path) {
  StoredStep step{std::move(key), fs::file_time_type::min(), 0};
  std::error_code ignored;  // files may go while we look
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const auto bytes = entry.file_size(ignored);
    if (!ignored) step.bytes += bytes;
    const auto time = entry.last_write_time(ignored);
    if (!ignored) step.last_change = std::max(step.last_change, time);
  }
  return step;
}

}  // namespace

std::string TraceStore::path_of(const StepKey& key) const {
  return directory_ + "/" + key.cluster + "/" + key.directory_name();
}

Result<std::unique_ptr<TraceStore>> TraceStore::open(std::string directory) {
  if (auto made = make_directory_durably(directory); !made) return made.error();
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& cluster : fs::directory_iterator(directory, error)) {
    std::error_code ignored;
    for (const auto& step : fs::directory_iterator(cluster.path(), ignored)) {
      if (step.path().filename().string().starts_with(kRemovedPrefix)) leftovers.push_back(step.path());
    }
  }
  if (error) return Error{ErrorCode::kIo, "cannot list " + directory + ": " + error.message()};
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, error);
  return std::unique_ptr<TraceStore>(new TraceStore(std::move(directory)));
}

std::vector<StepKey> TraceStore::list() const {
  std::vector<StepKey> keys;
  std::error_code ignored;
  for (const auto& cluster : fs::directory_iterator(directory_, ignored)) {
    const std::string name = cluster.path().filename().string();
    if (!check_cluster_name(name)) continue;
    std::error_code also_ignored;
    for (const auto& step : fs::directory_iterator(cluster.path(), also_ignored)) {
      auto key = step_key_of_directory(name, step.path().filename().string());
      if (key) keys.push_back(std::move(key).value());
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

bool TraceStore::contains(const StepKey& key) const {
  return ::access((path_of(key) + "/step.json").c_str(), F_OK) == 0;
}

Result<std::shared_ptr<StepTrace>> TraceStore::create(const StepKey& key, const protocol::StepDescription& first,
                                                      uid_t owner) {
  if (auto checked = check_cluster_name(key.cluster); !checked) return checked.error();
  if (auto made = make_directory_durably(directory_ + "/" + key.cluster); !made) return made.error();
  return StepTrace::create(key, path_of(key), first, owner);
}

Result<std::shared_ptr<StepTrace>> TraceStore::open_step(const StepKey& key) const {
  return StepTrace::open(key, path_of(key));
}

Result<std::shared_ptr<StepTrace>> TraceStore::open_to_read(const StepKey& key) const {
  return StepTrace::open_to_read(key, path_of(key));
}

bool TraceStore::has_open_stream(const StepKey& key) const {
  std::size_t registered = 0;
  std::size_t ended = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_of(key), ignored)) {
    const fs::path name = entry.path().filename();
    if (!name.string().starts_with("stream-")) continue;
    registered += name.extension() == ".json" ? 1 : 0;
    ended += name.extension() == ".end" ? 1 : 0;
  }
  return registered > ended;
}

void TraceStore::remove_empty(const StepKey& key) {
  if (contains(key)) return;
  std::error_code ignored;
  fs::remove_all(path_of(key), ignored);
}

PruneResult TraceStore::prune(const Retention& retention, const std::function<bool(const StepKey&)>& in_use,
                              const std::function<void(const Error&)>& on_error) {
  PruneResult result;
  std::vector<StoredStep> steps;
  for (StepKey& key : list()) {
    const std::string path = path_of(key);
    steps.push_back(measure(std::move(key), path));
    result.stored_bytes += steps.back().bytes;
  }
  std::sort(steps.begin(), steps.end(),
            [](const StoredStep& a, const StoredStep& b) { return a.last_change < b.last_change; });
  const auto oldest_kept = fs::file_time_type::clock::now() - retention.age;
  for (const StoredStep& step : steps) {
    const bool too_old = retention.age.count() > 0 && step.last_change < oldest_kept;
    const bool too_much = retention.limit_bytes > 0 && result.stored_bytes > retention.limit_bytes;
    if ((!too_old && !too_much) || in_use(step.key)) continue;
    const fs::path path = path_of(step.key);
    const fs::path removed = path.parent_path() / (std::string(kRemovedPrefix) + step.key.directory_name());
    std::error_code error;
    fs::rename(path, removed, error);
    if (!error) fs::remove_all(removed, error);
    if (error) {
      on_error({ErrorCode::kIo, "cannot remove the old trace " + path.string() + ": " + error.message()});
      continue;
    }
    result.removed.push_back(step.key);
    result.stored_bytes -= step.bytes;
  }
  return result;
}

}  // namespace lbf::daemon
