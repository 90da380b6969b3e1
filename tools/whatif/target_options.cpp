#include "tools/whatif/target_options.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/number.h"
#include "tools/support/environment.h"

namespace lbf::tools {

// "9500", "9500,2". 0 MB/s: not known.
static std::optional<KnownMemory> parse_memory(const std::string& text) {
  constexpr double kMostMegabytesPerS = 1e12;
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto demand = parse_number<double>(text.substr(0, comma));
  const auto ranks = comma == text.size() ? std::optional(1U) : parse_number<std::uint32_t>(text.substr(comma + 1));
  if (!demand || !(*demand >= 0 && *demand <= kMostMegabytesPerS) || !ranks || *ranks == 0) return std::nullopt;
  KnownMemory memory{{}, *ranks, {}};
  if (*demand > 0) memory.demand = {*demand * 1e6, *demand * 1e6};
  return memory;
}

std::string check_positive(const std::string& text) {
  // Beyond them it is a mistake, and a time would have 300 digits.
  constexpr double kLeast = 1e-9;
  constexpr double kMost = 1e18;
  const auto value = parse_number<double>(text);
  if (!value || !(*value > 0)) return "'" + text + "' is no number above 0";
  return *value >= kLeast && *value <= kMost ? std::string() : "'" + text + "' is not from 1e-9 to 1e18";
}

void add_target_options(CLI::App& command, WhatIfOptions& options, const std::string& group) {
  options.networks_dir = from_environment("LBF_NETWORKS_DIR", "/etc/lbf/networks.d");
  std::vector<CLI::Option*> added;
  const auto add = [&](auto&&... arguments) {
    added.push_back(command.add_option(std::forward<decltype(arguments)>(arguments)...));
    return added.back();
  };
  add("--nodes", options.nodes, "node counts, as in 2,4 (default with map=...: those it names)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 24));
  add("--cores", options.cores, "processors per node, or by node as in 4,4,2 (default 1)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20));
  add("--threads", options.threads, "threads of each rank's parallel regions, as in 1,2,4 (default: as many as ran)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20));
  added.push_back(
      command
          .add_option_function<std::string>(
              "--memory-demand",
              [&options](const std::string& text) { options.memory = parse_memory(text).value_or(KnownMemory{}); },
              "MB/s that a rank with a memory domain for itself demands; behind a comma how many ranks a domain had "
              "where it ran, as in 9500,2 (default 1; of a job: what lbfd knows). Networks with [memory]")
          ->check([](const std::string& text) {
            return parse_memory(text) ? std::string() : "'" + text + "' is not MB/s, or MB/s and ranks, as in 9500,2";
          }));
  add("--placement", options.placements, "block, cyclic, plane=K or map=N0,N1,... (may be repeated; default block)")
      ->allow_extra_args(false);
  add("--network", options.networks, "names or files, as in zero,lan-100 (default zero)")
      ->allow_extra_args(false)
      ->delimiter(',');
  add("--speed", options.speeds,
      "of each processor, relative to the one that ran, or by node as in 1,1,0.5 (default 1)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(check_positive);
  add("--contention", options.contention, "none, bus or nic (default: what the network file says)")
      ->check(CLI::IsMember({"none", "bus", "nic"}));
  added.push_back(
      command
          .add_option_function<std::string>(
              "--waiting",
              [&options](const std::string& name) {
                options.waiting = engine::parse_waiting(name).value_or(options.waiting);
              },
              "what a rank does that waits for a message: yield polls and lets the others have their turns, "
              "block gives its processor away, spin keeps its share (default yield)")
          ->check(CLI::IsMember({"yield", "block", "spin"})));
  add("--networks-dir", options.networks_dir,
      "where networks are looked up by name (default LBF_NETWORKS_DIR or /etc/lbf/networks.d)");
  add("--topology", options.topology,
      "Slurm's topology.conf or topology.yaml: messages cost what the network file says for their switch "
      "hops (default: all nodes are equally far apart)");
  add("--nodelist", options.nodelist,
      "the nodes of the targets, as in n[1-4] (default: those that Slurm would choose on an idle cluster)");
  if (group.empty()) return;
  for (CLI::Option* option : added) option->group(group);
}

std::string check_target_options(const CLI::App& command, const WhatIfOptions& options) {
  for (const std::string& placement : options.placements) {
    if (options.nodes.empty() && !placement.starts_with("map=")) {
      return "--nodes is missing: how many nodes? (only --placement map=... says it itself)";
    }
  }
  for (const auto& [name, value] :
       {std::pair{"--topology", &options.topology}, std::pair{"--nodelist", &options.nodelist}}) {
    if (command.count(name) > 0 && value->empty()) return std::string(name) + " is empty";
  }
  if (!options.nodelist.empty() && options.topology.empty()) {
    return "--nodelist needs --topology: which switches are the nodes on?";
  }
  return {};
}

}  // namespace lbf::tools
