// The measurements of lbf-calibrate: srun, with the program of calibrate_pingpong.c, and what it printed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::tools {

struct MeasureOptions {
  std::vector<std::string> srun;  // the command, in words
  std::string program;            // lbf-calibrate-pingpong
  std::string node_program;       // lbf-calibrate-node
  std::vector<Bytes> sizes;
  Seconds seconds = 0;  // of a ping-pong
  int repeats = 0;      // least samples of each size
  Bytes footprint = 0;
  int pairs = 0;  // ranks of each node that stream at the same time
};

// `nodes`: srun's --nodelist; empty: Slurm chooses. Errors: kUnavailable: srun cannot be run, the program
// failed or ended too early, ranks were placed elsewhere than asked for; a line that no program of
// lbf-calibrate prints.
class Measurements {
 public:
  explicit Measurements(MeasureOptions options) : options_(std::move(options)) {}

  Result<PingPong> ping_pong(Locality locality, const std::string& nodes) const;
  Result<LinkRates> link(Bytes message_bytes, Seconds round_s, const std::string& nodes) const;
  Result<Contacts> contacts(const std::string& nodes) const;
  Result<Turns> turns(Locality locality, const std::string& nodes) const;
  Result<LocalTimes> local(const std::string& nodes) const;
  // One process that has all processors and all memory of a node.
  Result<NodeTimes> node(const std::string& nodes) const;

  // The length of one round where a measurement has many.
  Seconds round_s() const;

 private:
  // srun with these options, the node list and the program with its arguments.
  std::vector<std::string> command(std::vector<std::string> srun_options, const std::string& nodes,
                                   const std::vector<std::string>& arguments) const;
  std::vector<std::string> with_sizes(std::vector<std::string> arguments) const;

  MeasureOptions options_;
};

// The programs that it starts.
inline constexpr std::string_view kPingPongProgram = "lbf-calibrate-pingpong";
inline constexpr std::string_view kNodeProgram = "lbf-calibrate-node";
// Beside this program in a build folder, else where it was installed; `asked`: the user's, may be empty.
// Errors: kInvalidInput: `asked` cannot be run; kNotFound.
Result<std::string> find_program(std::string_view name, const std::string& asked);

}  // namespace lbf::tools
