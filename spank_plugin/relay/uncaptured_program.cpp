// UncapturedProgram, see uncaptured_program.h.
#include "spank_plugin/relay/uncaptured_program.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "base/directory_handle.h"
#include "base/number.h"
#include "base/static_program.h"

namespace lbf::relay {
namespace {

using Why = UncapturedProgram::Why;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view base_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool has_word(std::string_view environment, std::string_view begin) {
  return environment.starts_with(begin) || environment.find('\0' + std::string(begin)) != std::string_view::npos;
}

// A process that a launcher counts as a rank: not the launcher's daemon, nor a script around it.
bool is_rank(std::string_view environment) {
  static constexpr std::string_view kNames[] = {"PMIX_RANK=", "PMI_RANK=", "OMPI_COMM_WORLD_RANK="};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](auto name) { return has_word(environment, name); });
}

bool is_mpi_library(std::string_view name) {
  static constexpr std::string_view kBegins[] = {"libmpi.so", "libmpich.so", "libmpi_", "libmpifort.so", "libmpi-"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](auto begin) { return name.starts_with(begin); });
}

struct Loaded {
  std::string mpi_library;
  bool capture = false;
  bool recorder = false;  // the capture's part for one MPI library: loaded at the first MPI call
};

Loaded loaded_of(std::string_view maps) {
  Loaded out;
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::string_view name = base_of(line);
    out.capture |= name.starts_with("liblbf_capture.so");
    out.recorder |= name.starts_with("liblbf_capture_");
    if (out.mpi_library.empty() && is_mpi_library(name)) out.mpi_library = name;
  }
  return out;
}

// The file of the capture in LD_PRELOAD of ENVIRONMENT; empty: there is none.
std::string preloaded_capture(std::string_view environment) {
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  std::size_t begin = environment.starts_with(kVariable) ? 0 : environment.find('\0' + std::string(kVariable));
  if (begin == std::string_view::npos) return {};
  if (begin > 0) ++begin;
  std::string_view list = environment.substr(begin + kVariable.size());
  list = list.substr(0, list.find('\0'));
  while (!list.empty()) {
    const std::string_view file = list.substr(0, list.find_first_of(": "));
    if (base_of(file) == "liblbf_capture.so") return std::string(file);
    list.remove_prefix(std::min(file.size() + 1, list.size()));
  }
  return {};
}

// The folders of FILES that are here, but not below the root folder of PROCESS.
std::string missing_in_root(const std::string& process, std::initializer_list<std::string> files) {
  std::error_code error;
  const std::string root = process + "/root";
  if (!std::filesystem::exists(root + "/.", error)) return {};
  std::string missing;
  for (const std::string& file : files) {
    if (file.empty() || !std::filesystem::exists(file, error) || std::filesystem::exists(root + file, error)) continue;
    missing += (missing.empty() ? "" : ", ") + std::filesystem::path(file).parent_path().string();
  }
  return missing;
}

// LBF_CAPTURE_DIR in ENVIRONMENT is DIRECTORY.
bool has_ring_dir(std::string_view environment, const std::string& directory) {
  return has_word(environment, "LBF_CAPTURE_DIR=" + directory + '\0');
}

std::optional<UncapturedProgram> look_at(const std::string& process, const std::string& ring_dir) {
  const std::string environment = text_of(process + "/environ");
  // The plugin has tasks that have another /dev/shm find the rings in this process's root folder.
  const bool through_relay = has_ring_dir(environment, "/proc/" + std::to_string(::getpid()) + "/root" + ring_dir);
  if (!through_relay && !has_ring_dir(environment, ring_dir)) return std::nullopt;
  const Loaded loaded = loaded_of(text_of(process + "/maps"));
  std::error_code error;
  UncapturedProgram found;
  found.program = std::filesystem::read_symlink(process + "/exe", error).filename().string();
  found.library = loaded.mpi_library;
  if (!found.library.empty()) {
    found.why = loaded.recorder ? Why::kCaptureOff : loaded.capture ? Why::kPastPreload : Why::kPreloadReplaced;
    if (found.why != Why::kPastPreload)
      found.missing = missing_in_root(process, {preloaded_capture(environment), through_relay ? "" : ring_dir});
    if (!found.missing.empty()) found.why = Why::kNotInContainer;
    return found;
  }
  if (!is_rank(environment)) return std::nullopt;
  const auto is_static = is_static_program(process + "/exe");
  found.why = is_static && *is_static ? Why::kStatic : Why::kNoMpi;
  return found;
}

}  // namespace

std::optional<UncapturedProgram> find_uncaptured_program(const std::string& proc, const std::string& ring_dir) {
  std::optional<UncapturedProgram> best;
  const DirectoryHandle all(::opendir(proc.c_str()));
  while (const dirent* entry = all ? ::readdir(all.get()) : nullptr) {
    if (!parse_number<int>(entry->d_name)) continue;
    auto found = look_at(proc + "/" + entry->d_name, ring_dir);
    if (found && (!best || found->why < best->why)) best = std::move(found);
  }
  return best;
}

std::string describe(const UncapturedProgram& program) {
  switch (program.why) {
    case Why::kNotInContainer:
      return program.program + " runs in a container that lacks " + program.missing +
             ": the capture is not in it; bind-mount this at its own path (pyxis: --container-mounts=PATH:PATH; "
             "srun --container: mounts of config.json; job_container.conf: another ring_dir= in plugstack.conf)";
    case Why::kCaptureOff:
      return "the capture of " + program.program + " is off, as its line \"lbf: capture is off\" says";
    case Why::kPastPreload:
      return program.program + " has " + program.library +
             " loaded, but no MPI call of it came to the capture: an MPI wrapper of its own, dlsym() or RTLD_DEEPBIND "
             "goes past LD_PRELOAD, or it did not call MPI_Init; link it to the MPI library directly (a library that "
             "lbf does "
             "not know has a line \"lbf: capture is off\")";
    case Why::kPreloadReplaced:
      return program.program + " has " + program.library +
             " loaded, but not the capture: something replaced LD_PRELOAD; put its libraries in front of "
             "\"$LD_PRELOAD\" instead";
    case Why::kStatic:
      return program.program +
             " is linked statically: nothing can be loaded into it, so nothing of it is seen; link it dynamically";
    case Why::kNoMpi:
      break;
  }
  return program.program +
         " was started as a rank, but has no MPI library loaded: lbf sees programs of Open MPI and MPICH as shared "
         "libraries";
}

}  // namespace lbf::relay
