// Sources of clusters, see cluster_source.h.
#include "advisor/candidate/cluster_source.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/child_process.h"

namespace lbf::advisor {
namespace {

namespace fs = std::filesystem;
constexpr const char* kAdvice = "; --cluster FILE describes the nodes without Slurm";

class FileSource final : public ClusterSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}
  Result<Cluster> read() override { return load_cluster(path_); }

 private:
  std::string path_;
};

class SlurmSource final : public ClusterSource {
 public:
  explicit SlurmSource(SlurmSourceOptions options) : options_(std::move(options)) {}

  Result<Cluster> read() override {
    if (const auto age_s = cache_age_s(); age_s && *age_s < options_.cache_for_s) {
      // One that cannot be read is no worse than none.
      if (Result<Cluster> cached = load_cluster(options_.cache_file); cached) {
        cached->source = "Slurm (" + kept_since(*age_s) + "; --refresh asks now)";
        return cached;
      }
    }
    Result<std::string> answer = ask();
    if (!answer) return answer.error();
    Result<Cluster> cluster = parse_cluster(*answer, "Slurm");
    if (cluster) keep(*answer);
    return cluster;
  }

 private:
  static std::string kept_since(Seconds age_s) {
    const auto minutes = static_cast<int>(age_s / 60);
    return "as it was " + (minutes == 0 ? "less than a minute" : std::to_string(minutes) + " min") + " ago";
  }

  std::optional<Seconds> cache_age_s() const {
    if (options_.cache_file.empty()) return std::nullopt;
    std::error_code error;
    const auto written = fs::last_write_time(options_.cache_file, error);
    if (error) return std::nullopt;
    const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
    return age.count() >= 0 ? std::optional(age.count()) : std::nullopt;
  }

  Result<std::string> ask() const {
    Result<ChildOutput> answer = run_child({options_.program}, options_.patience_s);
    if (!answer) return Error{ErrorCode::kUnavailable, answer.error().message + kAdvice};
    if (answer->succeeded()) return std::move(answer->out);
    // libslurm warns before it gives up.
    std::string why = last_line(answer->err);
    if (answer->timed_out || answer->signal == SIGALRM) why = "slurmctld did not answer in time";
    return Error{ErrorCode::kUnavailable,
                 "cannot ask Slurm what the cluster has: " + (why.empty() ? "no reason given" : why) + kAdvice};
  }

  // Beside its place and renamed, so that nobody reads half of it. Failing costs nothing but time.
  void keep(const std::string& answer) const {
    if (options_.cache_file.empty()) return;
    std::error_code error;
    fs::create_directories(fs::path(options_.cache_file).parent_path(), error);
    const std::string temporary = options_.cache_file + "." + std::to_string(::getpid());
    std::ofstream out(temporary, std::ios::binary);
    out << answer;
    out.close();
    if (out) fs::rename(temporary, options_.cache_file, error);
    if (!out || error) fs::remove(temporary, error);
  }

  SlurmSourceOptions options_;
};

}  // namespace

std::unique_ptr<ClusterSource> cluster_file(std::string path) {
  return std::make_unique<FileSource>(std::move(path));
}

std::unique_ptr<ClusterSource> slurm_cluster(SlurmSourceOptions options) {
  return std::make_unique<SlurmSource>(std::move(options));
}

std::string cluster_cache_file() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = cache != nullptr ? cache : "";
  if (folder.empty() && home != nullptr && *home != '\0') folder = std::string(home) + "/.cache";
  if (folder.empty()) return {};
  const char* const conf = std::getenv("SLURM_CONF");
  const std::size_t which = std::hash<std::string>{}(conf != nullptr ? conf : "");
  return folder + "/lbf/cluster-" + std::to_string(which) + ".json";
}

}  // namespace lbf::advisor
