// TraceStore, see trace_store.h.
#include "predictor/daemon/intake/trace_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/number.h"
#include "predictor/daemon/intake/file_io.h"

namespace lbf::daemon {
namespace {

namespace fs = std::filesystem;

// A removal is a rename to this prefix, then the deletion: after a crash nobody sees half a trace.
constexpr std::string_view kRemovedPrefix = ".removed-";
constexpr std::string_view kDeathsFile = "/replay-deaths";
constexpr std::string_view kRetryFile = "/retry";

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
  return directory_ + "/" + place_of(key);
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

Result<void> TraceStore::remove(const StepKey& key) {
  const fs::path path = path_of(key);
  const fs::path removed = path.parent_path() / (std::string(kRemovedPrefix) + key.directory_name());
  std::error_code error;
  fs::rename(path, removed, error);
  if (!error) fs::remove_all(removed, error);
  if (error) return Error{ErrorCode::kIo, "cannot remove the trace " + path.string() + ": " + error.message()};
  return {};
}

std::optional<uid_t> TraceStore::owner_of(const StepKey& key) const {
  constexpr std::string_view kOwner = "\"owner_uid\":";
  const auto text = read_whole_file(path_of(key) + "/step.json", std::size_t{1} << 28);
  if (!text) return std::nullopt;
  // Keys are sorted: lbfd's own one is behind the description, which is the user's.
  const std::size_t at = text->rfind(kOwner);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view number = std::string_view(*text).substr(at + kOwner.size());
  return parse_number<uid_t>(number.substr(0, number.find_first_not_of("0123456789")));
}

TraceStore::Deaths TraceStore::deaths_in_replay(const StepKey& key) const {
  Deaths deaths;
  const auto text = read_whole_file(path_of(key) + std::string(kDeathsFile), 1024);
  if (!text) return deaths;
  std::istringstream words(*text);
  words >> deaths.all >> deaths.in_a_row >> deaths.at_hand;
  return deaths;
}

Result<void> TraceStore::count_death(const StepKey& key, const std::string& at_hand) {
  Deaths deaths = deaths_in_replay(key);
  deaths.in_a_row = deaths.all > 0 && deaths.at_hand == at_hand ? deaths.in_a_row + 1 : 1;
  return write_file_durably(path_of(key) + std::string(kDeathsFile),
                            std::to_string(deaths.all + 1) + " " + std::to_string(deaths.in_a_row) + " " + at_hand);
}

Result<void> TraceStore::forget_deaths(const StepKey& key) {
  const std::string path = path_of(key) + std::string(kDeathsFile);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", path, errno);
  return {};
}

Result<void> TraceStore::request_retry(const StepKey& key) {
  if (auto forgotten = forget_deaths(key); !forgotten) return forgotten;
  return write_file_durably(path_of(key) + std::string(kRetryFile), "");
}

bool TraceStore::is_retried(const StepKey& key) const {
  return ::access((path_of(key) + std::string(kRetryFile)).c_str(), F_OK) == 0;
}

void TraceStore::forget_retry(const StepKey& key) {
  (void)::unlink((path_of(key) + std::string(kRetryFile)).c_str());
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
    if (const auto removed = remove(step.key); !removed) {
      on_error(removed.error());
      continue;
    }
    result.removed.push_back(step.key);
    result.stored_bytes -= step.bytes;
  }
  return result;
}

}  // namespace lbf::daemon
