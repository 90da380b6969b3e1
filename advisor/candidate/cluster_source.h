// Where a Cluster comes from: a file, or Slurm.
//
// Slurm is asked by a program of its own, lbf-cluster-inventory: libslurm ends the process where it finds no
// configuration, and lbf-advise must run where no Slurm is installed.
#pragma once

#include <memory>
#include <string>

#include "advisor/candidate/cluster.h"
#include "base/result.h"

namespace lbf::advisor {

class ClusterSource {
 public:
  virtual ~ClusterSource() = default;
  virtual Result<Cluster> read() = 0;
};

std::unique_ptr<ClusterSource> cluster_file(std::string path);

struct SlurmSourceOptions {
  std::string program;        // lbf-cluster-inventory
  std::string cache_file;     // what Slurm said last; empty: none is kept
  Seconds cache_for_s = 600;  // a younger one is taken for Slurm's answer
  Seconds patience_s = 60;    // the inventory ends by itself before that
};
// Errors: kUnavailable with what Slurm's library said, and what to do.
std::unique_ptr<ClusterSource> slurm_cluster(SlurmSourceOptions options);

// cluster-HASH.json below XDG_CACHE_HOME or HOME/.cache, one for each slurm.conf; empty: neither is set.
std::string cluster_cache_file();

}  // namespace lbf::advisor
