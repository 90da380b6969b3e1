// lbf-cluster-inventory: what Slurm says of its nodes, partitions and switches, as a cluster file
// (docs/formats/cluster-v1.md) on standard output. lbf-advise starts it: libslurm ends the process that has
// no configuration, and this one may end.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "tools/advise/slurm_releases.h"

namespace {

using Json = nlohmann::json;

constexpr unsigned kPatienceS = 15;

// What libslurm hands out, given back exactly once.
template <typename Message, void (*Free)(Message*)>
struct Freed {
  void operator()(Message* message) const noexcept { Free(message); }
};
template <typename Message, void (*Free)(Message*)>
using Held = std::unique_ptr<Message, Freed<Message, Free>>;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, slurm_strerror(errno));
  std::exit(1);
}

std::string text(const char* from_slurm) {
  return from_slurm != nullptr ? from_slurm : "";
}

Json list(const char* comma_separated) {
  Json items = Json::array();
  std::istringstream in(text(comma_separated));
  for (std::string item; std::getline(in, item, ',');) {
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

bool takes_jobs(std::uint32_t state) {
  const std::uint32_t base = state & NODE_STATE_BASE;
  const bool well = base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED;
  return well && (state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_MAINT)) == 0;
}

Json nodes() {
  node_info_msg_t* raw = nullptr;
  if (slurm_load_node(0, &raw, SHOW_ALL) != SLURM_SUCCESS) fail("slurm_load_node");
  const Held<node_info_msg_t, slurm_free_node_info_msg> message(raw);
  Json all = Json::array();
  for (std::uint32_t i = 0; i < message->record_count; ++i) {
    const node_info_t& node = message->node_array[i];
    if (node.name == nullptr) continue;
    const std::uint64_t reserved_mib = node.mem_spec_limit;
    // 1 is what slurm.conf has where nobody says how much there is.
    const std::uint64_t memory_mib =
        node.real_memory > 1 && node.real_memory > reserved_mib ? node.real_memory - reserved_mib : 0;
    Json described = {{"name", node.name},
                      {"sockets", node.sockets > 0 ? node.sockets : 1},
                      {"cores_per_socket", node.cores > 0 ? node.cores : 1},
                      {"memory_mib", memory_mib},
                      {"up", takes_jobs(node.node_state)},
                      {"features", list(node.features_act != nullptr ? node.features_act : node.features)}};
    // Where CPUs= counts fewer than the hardware has, Slurm gives no more than those.
    const std::uint32_t threads = node.threads > 0 ? node.threads : 1;
    const std::uint32_t usable = node.cpus / threads > 0 ? node.cpus / threads : 1;
    if (usable < static_cast<std::uint32_t>(node.sockets) * node.cores) {
      described["sockets"] = 1;
      described["cores_per_socket"] = usable;
    }
    all.push_back(std::move(described));
  }
  return all;
}

Json partitions() {
  partition_info_msg_t* raw = nullptr;
  if (slurm_load_partitions(0, &raw, SHOW_ALL) != SLURM_SUCCESS) fail("slurm_load_partitions");
  const Held<partition_info_msg_t, slurm_free_partition_info_msg> message(raw);
  Json all = Json::array();
  for (std::uint32_t i = 0; i < message->record_count; ++i) {
    const partition_info_t& partition = message->partition_array[i];
    if (partition.name == nullptr) continue;
    Json described = {{"name", partition.name},
                      {"nodes", text(partition.nodes)},
                      {"default", (partition.flags & PART_FLAG_DEFAULT) != 0},
                      {"up", partition.state_up == PARTITION_UP}};
    if (partition.max_nodes < INFINITE - 1) described["max_nodes"] = partition.max_nodes;
    if (partition.max_time < INFINITE - 1) described["max_time_s"] = 60.0 * partition.max_time;
    all.push_back(std::move(described));
  }
  return all;
}

std::string cluster_name() {
  slurm_conf_t* raw = nullptr;
  if (slurm_load_ctl_conf(0, &raw) != SLURM_SUCCESS) return {};
  const Held<slurm_conf_t, lbf::tools::free_conf<slurm_conf_t>> conf(raw);
  return text(conf->cluster_name);
}

// As topology.conf; empty without topology/tree.
std::string topology() {
  topo_info_response_msg_t* raw = nullptr;
  if (lbf::tools::load_topology(slurm_load_topo, &raw) != SLURM_SUCCESS) return {};
  const Held<topo_info_response_msg_t, slurm_free_topo_info_msg> message(raw);
  return lbf::tools::topology_conf(*message, slurm_print_topo_info_msg);
}

}  // namespace

int main() {
  ::alarm(kPatienceS);  // the end, where slurmctld does not answer
  // libslurm would look for it for a minute.
  const char* const conf_file = std::getenv("SLURM_CONF");
  if (conf_file != nullptr && ::access(conf_file, R_OK) != 0) {
    std::fprintf(stderr, "SLURM_CONF=%s cannot be read\n", conf_file);
    return 1;
  }
  slurm_init(nullptr);
  Json cluster = {{"lbf_cluster", 1}, {"source", "slurm"}, {"node", nodes()}, {"partition", partitions()}};
  if (const std::string name = cluster_name(); !name.empty()) cluster["name"] = name;
  if (const std::string conf = topology(); !conf.empty()) cluster["topology"] = conf;
  const std::string out = cluster.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
