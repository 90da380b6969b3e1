// Sources of clusters, see cluster_source.h.
#include "advisor/candidate/cluster_source.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "base/scoped_fd.h"

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

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1 << 14> block{};
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || text.size() > Cluster::kMaxFileBytes) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

// The last line that says something: libslurm warns before it gives up.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class SlurmSource final : public ClusterSource {
 public:
  explicit SlurmSource(SlurmSourceOptions options) : options_(std::move(options)) {}

  Result<Cluster> read() override {
    if (cache_is_young()) {
      // One that cannot be read is no worse than none.
      if (Result<Cluster> cached = load_cluster(options_.cache_file); cached) {
        cached->source = "Slurm";
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
  bool cache_is_young() const {
    if (options_.cache_file.empty()) return false;
    std::error_code error;
    const auto written = fs::last_write_time(options_.cache_file, error);
    if (error) return false;
    const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
    return age.count() >= 0 && age.count() < options_.cache_for_s;
  }

  Result<std::string> ask() const {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
    ScopedFd reading(ends[0]);
    ScopedFd writing(ends[1]);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> words(std::tmpfile(), &std::fclose);
    if (words == nullptr)
      return Error{ErrorCode::kIo, std::string("no temporary file: ") + std::strerror(errno)};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ::fileno(words.get()), STDERR_FILENO);
    std::array<char*, 2> arguments{const_cast<char*>(options_.program.c_str()), nullptr};
    pid_t child = 0;
    const int spawned =
        ::posix_spawn(&child, options_.program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (spawned != 0)
      return Error{ErrorCode::kUnavailable,
                   "cannot run " + options_.program + ": " + std::strerror(spawned) + kAdvice};
    writing.reset();
    std::string answer = read_all(reading.get());
    reading.reset();
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return answer;
    std::rewind(words.get());
    std::string why = last_line(read_all(::fileno(words.get())));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) why = "slurmctld did not answer in time";
    return Error{ErrorCode::kUnavailable, "cannot ask Slurm what the cluster has: " +
                                              (why.empty() ? "no reason given" : why) + kAdvice};
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
