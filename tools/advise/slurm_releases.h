// What differs between the releases of Slurm's library (22.05 to 26.05). Chosen by what slurm.h declares, not
// by its number.
//
// Place: inside lbf-cluster-inventory. The plugin needs none of this: SPANK is the same in all of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
}

namespace lbf::tools {

// `load`: slurm_load_topo, which takes a topology's name in later releases; nullptr: the default one.
template <class Load>
int load_topology(Load load, topo_info_response_msg_t** message) {
  if constexpr (std::is_invocable_v<Load, topo_info_response_msg_t**>) {
    return load(message);
  } else {
    return load(message, nullptr);
  }
}

// slurm_free_ctl_conf, which later releases call slurm_free_conf.
template <class Conf>
void free_conf(Conf* conf) {
  if constexpr (requires { slurm_free_ctl_conf(conf); }) {
    slurm_free_ctl_conf(conf);
  } else {
    slurm_free_conf(conf);
  }
}

// A switch's line of topology.conf; empty: none with a name, or nothing is below it.
inline std::string switch_line(std::string_view name, std::string_view nodes, std::string_view switches) {
  if (name.empty() || (nodes.empty() && switches.empty())) return {};
  const bool leaf = switches.empty();
  return "SwitchName=" + std::string(name) + (leaf ? " Nodes=" : " Switches=") + std::string(leaf ? nodes : switches) +
         "\n";
}

// The switches' lines of what Slurm prints, "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-4]". Empty: no switch has
// nodes.
inline std::string switch_lines_of_print(const std::string& printed) {
  std::string conf;
  bool any_nodes = false;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("SwitchName=")) continue;
    any_nodes |= line.find(" Nodes=") != std::string::npos;
    conf += line + "\n";
  }
  return any_nodes ? conf : "";
}

// As topology.conf. The switches are in the message, or in later releases behind a pointer of a plugin's own,
// which `print` (slurm_print_topo_info_msg) reads. Empty without topology/tree.
template <class Message, class Print>
std::string topology_conf(Message& message, Print print) {
  const auto text = [](const char* from_slurm) { return from_slurm != nullptr ? from_slurm : ""; };
  std::string conf;
  if constexpr (requires { message.record_count; }) {
    for (std::uint32_t i = 0; i < message.record_count; ++i) {
      const auto& one = message.topo_array[i];
      // topology/none answers with the nodes and no switch.
      if (one.name == nullptr || *one.name == '\0') return {};
      conf += switch_line(one.name, text(one.nodes), text(one.switches));
    }
  } else {
    char* printed = nullptr;
    std::size_t bytes = 0;
    std::FILE* const file = ::open_memstream(&printed, &bytes);
    if (file == nullptr) return {};
    ::unsetenv("SLURM_TOPO_LEN");  // would cut the lines
    print(file, &message, nullptr, nullptr, 1);
    std::fclose(file);
    conf = switch_lines_of_print(std::string(printed, bytes));
    std::free(printed);
  }
  return conf;
}

}  // namespace lbf::tools
