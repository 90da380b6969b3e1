// Slurm's topology.conf and what `scontrol show topology` prints, see topology_description.h.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/quoted.h"
#include "predictor/engine/network/topology_description.h"

namespace lbf::engine {
namespace {

constexpr std::size_t kMaxWarnings = 20;

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view known) { return is_same_key(key, known); });
}

class TopologyConfReader {
 public:
  explicit TopologyConfReader(TopologyDescription& description) : description_(description) {}

  Result<void> take(const SlurmLine& line) {
    const Result<std::vector<SlurmSetting>> settings = line.settings();
    if (!settings) return settings.error();
    const std::string_view first = settings->front().key;
    // Planning of topology/block, and its sums in scontrol's output.
    if (is_one_of(first, {"BlockSizes", "AggregatedBlock"})) return {};
    const bool block = is_same_key(first, "BlockName");
    if (!block && !is_same_key(first, "SwitchName")) {
      return line.error(is_same_key(first, "RingName")
                            ? "rings (topology/ring) have no switches: hops between nodes cannot be read from this file"
                            : lbf::quoted(first) + " begins no line: use SwitchName=, BlockName= or BlockSizes=");
    }
    (block ? any_block_ : any_switch_) = true;
    if (any_block_ && any_switch_) {
      return line.error("switches and blocks in one file: Slurm uses one topology plugin at a time");
    }
    if (block) description_.kind = TopologyDescription::Kind::kBlock;
    if (settings->front().value.empty()) return line.error(lbf::quoted(std::string(first) + "=") + " has no value");
    return take_entry(line, *settings);
  }

 private:
  Result<void> take_entry(const SlurmLine& line, const std::vector<SlurmSetting>& settings) {
    TopologyEntry entry{std::string(settings.front().value), line.file, line.number, {}, {}};
    bool printed_by_scontrol = false;
    for (auto setting = settings.begin() + 1; setting != settings.end(); ++setting) {
      std::string* to = nullptr;
      if (is_same_key(setting->key, "Nodes")) to = &entry.nodes;
      if (any_switch_ && is_same_key(setting->key, "Switches")) to = &entry.switches;
      if (to == nullptr) {
        printed_by_scontrol |= is_same_key(setting->key, "Level");
        if (Result<void> known = check_unused(line, setting->key); !known) return known;
        continue;
      }
      if (!to->empty()) {
        description_.warn(line.file, line.number,
                          lbf::quoted(std::string(setting->key) + "=") + " appears twice: the last one counts");
      }
      // Separators alone name nothing.
      *to = setting->value.find_first_not_of(", \t") == std::string_view::npos ? "" : setting->value;
    }
    if (printed_by_scontrol && !entry.switches.empty()) entry.nodes.clear();  // those of its children
    if (!entry.nodes.empty() && !entry.switches.empty()) {
      return line.error("switch " + lbf::quoted(entry.name) +
                        " has both child switches and nodes: Slurm allows one of them");
    }
    description_.entries.push_back(std::move(entry));
    return {};
  }

  Result<void> check_unused(const SlurmLine& line, std::string_view key) const {
    // LinkSpeed is not used by Slurm either; the others are scontrol's.
    if (any_switch_ ? is_one_of(key, {"LinkSpeed", "Level"}) : is_one_of(key, {"BlockIndex", "BlockSize"})) return {};
    return line.error("unknown key " + lbf::quoted(key) + ": known are " +
                      (any_switch_ ? "SwitchName, Switches, Nodes, LinkSpeed" : "BlockName, Nodes"));
  }

  TopologyDescription& description_;
  bool any_switch_ = false;
  bool any_block_ = false;
};

}  // namespace

void TopologyDescription::warn(const std::string& warned_file, std::size_t warned_line, const std::string& what) {
  if (warnings.size() == kMaxWarnings) {
    warnings.push_back(file + ": there are more warnings than these");
  } else if (warnings.size() < kMaxWarnings) {
    warnings.push_back(error_in_file(warned_file, warned_line, what).message);
  }
}

Result<TopologyDescription> read_topology_conf(const std::vector<SlurmLine>& lines, const std::string& file_name) {
  TopologyDescription description;
  description.file = description.label = file_name;
  TopologyConfReader reader(description);
  for (const SlurmLine& line : lines) {
    if (Result<void> taken = reader.take(line); !taken) return taken.error();
  }
  return description;
}

}  // namespace lbf::engine
