// What lbf-advise prints: text for people, JSON for programs, flags for srun.
#pragma once

#include <string>

#include "tools/advise/advise_session.h"

namespace lbf::tools {

struct AdvisePrint {
  std::string trace;      // as the user named it
  std::string objective;  // Objective::text()
  std::string cluster;    // Cluster::source
  std::string host_file;  // where the host file of a computed mapping is, or is to be
  bool host_file_written = false;
  Seconds budget_s = 0;
  std::string mpi_note;  // empty: the collectives follow the library that ran
};

// The configuration that is advised, else the one that runs now: what `srun $(lbf-advise TRACE --flags)`
// needs.
std::string advise_flags(const AdviseResult& result, const std::string& host_file);
// Its host file; empty: none is needed.
std::string advise_host_file(const AdviseResult& result);

std::string advise_text(const AdviseResult& result, const AdvisePrint& print);
std::string advise_json(const AdviseResult& result, const AdvisePrint& print);

}  // namespace lbf::tools
