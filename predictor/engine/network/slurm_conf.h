// The syntax that Slurm's configuration files share (slurm.conf(5), topology.conf(5)): lines of Key=Value, comments,
// continued lines, Include.
//
// What slurmctld reads (src/common/parse_config.c) is the contract, and Slurm is not needed to read it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::engine {

// "FILE:LINE: WHAT"; line 0: no line.
Error error_in_file(const std::string& file, std::size_t line, const std::string& what,
                    ErrorCode code = ErrorCode::kInvalidInput);

// Key words differ in no letter but its case.
bool is_same_key(std::string_view a, std::string_view b);

struct SlurmSetting {
  std::string_view key;
  std::string_view value;  // without its quotes; empty: none was given
};

// A line with those that continue it, without comments and escapes.
struct SlurmLine {
  std::string file;
  std::size_t number = 0;  // of its first line
  std::string text;

  Error error(const std::string& what) const { return error_in_file(file, number, what); }
  // "PartitionName", or what stands in its place.
  std::string_view first_word() const;
  // In their order. They point into `text`. Errors (kInvalidInput): what is no Key=Value.
  Result<std::vector<SlurmSetting>> settings() const&;
  Result<std::vector<SlurmSetting>> settings() const&& = delete;
};

inline constexpr std::size_t kMaxSlurmFileBytes = 1 << 20;

// The lines that are not blank, those of an included file in the place of its Include. Slurm looks for such a file in
// the folder of slurm.conf, which is that of the first file, whoever includes it: `folder`; empty: Include is an error.
// "%c" in its name is the ClusterName of an earlier line. Errors (kInvalidInput, kLimit, kNotFound, kIo) name file and
// line.
Result<std::vector<SlurmLine>> parse_slurm_conf(std::string_view text, const std::string& file_name,
                                                const std::string& folder);

// The text of a configuration file. `kind`, "topology file", is for the errors: kNotFound, kIo, and kLimit above
// kMaxSlurmFileBytes.
Result<std::string> read_slurm_file(const std::string& path, const std::string& kind);

// "/etc/slurm/topology.conf" -> "/etc/slurm"; "topology.conf" -> ".".
std::string folder_of(const std::string& path);

}  // namespace lbf::engine
