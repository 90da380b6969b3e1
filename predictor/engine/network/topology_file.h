// TopologyFile: the topologies of one file of Slurm, and which partition has which of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predictor/engine/network/topology.h"

namespace lbf::engine {

class TopologyFile {
 public:
  // `path`: topology.yaml where the name ends in .yaml or .yml, else topology.conf, with the files that it includes.
  // "topology.yaml#NAME": only this topology of it. Errors (kNotFound, kIo, kInvalidInput, kLimit) name file, line and
  // remedy.
  static Result<TopologyFile> load(const std::string& path);
  // The same of a text, without other files. Errors: kInvalidInput, kLimit.
  static Result<TopologyFile> parse(std::string_view text, const std::string& file_name);

  // Other files of Slurm in its folder: where it has several topologies, slurm.conf says which partition has which
  // (Topology=). What is wrong there is a warning, also that Slurm reads a topology.yaml and not this topology.conf.
  void read_neighbours();

  // nullptr: it is flat, all nodes are equally far apart. A partition that nobody gives one has the cluster's
  // default. Errors (kInvalidInput, kLimit, kNotFound): those of Topology; the topology is not in the file.
  Result<std::shared_ptr<const Topology>> of_partition(const std::string& partition) const;
  // For who reads the file, once: what is assumed of it, what is left out, that its default is flat.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  using Built = Result<std::shared_ptr<const Topology>>;

  static TopologyFile build(const std::vector<TopologyDescription>& topologies);
  Result<void> add_partitions(const std::string& slurm_conf, const std::string& folder);

  std::string file_;
  std::string default_name_;
  std::map<std::string, Built> topologies_;  // by name
  std::map<std::string, std::string> topology_of_partition_;
  std::vector<std::string> warnings_;
};

}  // namespace lbf::engine
