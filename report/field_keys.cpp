// See field_keys.h. tests/unit/report/field_keys_test.cpp proves for each field that what is named here is enough.
#include "report/field_keys.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace lbf::report {
namespace {

constexpr std::string_view kOfEveryStep = "cluster,job,step,restart,array_job,array_task,het_job,het_offset";
constexpr std::string_view kSpeedup =
    "measured_s,state,predictions.predicted_s,predictions.speedup,predictions.partial,predictions.measured_at_progress_s";

constexpr std::array<std::pair<std::string_view, std::string_view>, 63> kKeys{{
    {"Account", "account"},
    {"Best", "predictions.predicted_s"},
    {"BestGain", kSpeedup},
    {"BestTarget",
     "predictions.predicted_s,predictions.target,predictions.nodes,predictions.placement,predictions.network"},
    {"BytesOnWire", "bytes_on_wire"},
    {"BytesStored", "bytes_stored"},
    {"CaptureState", "cost.state"},
    {"CaptureTime", "capture_s"},
    {"Cluster", ""},
    {"Command", "command,command_cut"},
    {"Contention", "predictions.contention"},
    {"Cores", "predictions.cores"},
    {"Deferred", "predictions.why_deferred"},
    {"End", "state,end"},
    {"Events", "events"},
    {"High", "predictions.seen_share,predictions.high_s"},
    {"JobID", ""},
    {"JobIDRaw", ""},
    {"JobName", "job_name"},
    {"Kind", "predictions.kind"},
    {"LbfdCPU", "lbfd_cpu_s"},
    {"LostEvents", "lost_events"},
    {"Low", "predictions.seen_share,predictions.low_s"},
    {"MPITime", "mpi_s"},
    {"Measured", "measured_s"},
    {"MeasuredRaw", "measured_s"},
    {"Messages", "messages"},
    {"NNodes", "node_count"},
    {"NTasks", "ranks"},
    {"Network", "predictions.network"},
    {"NodeList", "nodes"},
    {"Nodes", "predictions.nodes"},
    {"Notes", "notes"},
    {"Overhead", "capture_s,relay_cpu_s,measured_s,ranks"},
    {"OverheadHigh", "cost.high_percent"},
    {"OverheadLimit", "cost.limit_percent"},
    {"OverheadLow", "cost.low_percent"},
    {"OverheadOnce", "cost.once_capture_s,cost.once_relay_s"},
    {"OverheadPredicted", "cost.predicted_percent"},
    {"OverheadTotal", "cost.total_high_percent"},
    {"Partition", "partition"},
    {"Placement", "predictions.placement"},
    {"Predicted", "predictions.why_stuck,predictions.why_deferred,predictions.predicted_s"},
    {"PredictedRaw", "predictions.predicted_s"},
    {"Progress", "predictions.progress_s"},
    {"Reason", "why_partial"},
    {"RelayCPU", "relay_cpu_s"},
    {"Restart", ""},
    {"RunNetwork", "network"},
    {"Seen", "cost.seen_share,predictions.kind,predictions.seen_share"},
    {"SelfError", "predictions.kind,predictions.self_error_percent"},
    {"Speed", "predictions.speed"},
    {"Speedup", kSpeedup},
    {"Start", "start"},
    {"State", "state"},
    {"Target", "predictions.target"},
    {"Topology", "predictions.topology.nodes"},
    {"UID", "uid"},
    {"Unmodelled", "unmodelled_s"},
    {"UnmodelledPct", "unmodelled_s,mpi_s"},
    {"User", "user,uid"},
    {"Wildcards", "wildcard_receives"},
    {"Windows", "cost.windows"},
}};

bool has_key(std::string_view keys, std::string_view key) {
  while (true) {
    const std::size_t comma = keys.find(',');
    if (keys.substr(0, comma) == key) return true;
    if (comma == std::string_view::npos) return false;
    keys.remove_prefix(comma + 1);
  }
}

void add_keys(std::string& keys, std::string_view more) {
  while (!more.empty()) {
    const std::size_t comma = std::min(more.find(','), more.size());
    if (const std::string_view key = more.substr(0, comma); !has_key(keys, key)) {
      keys += ',';
      keys += key;
    }
    more.remove_prefix(std::min(comma + 1, more.size()));
  }
}

}  // namespace

std::string row_keys_of(const std::vector<Column>& columns) {
  std::string keys(kOfEveryStep);
  for (const Column& column : columns) {
    const auto found = std::find_if(kKeys.begin(), kKeys.end(),
                                           [&](const auto& key) { return key.first == column.field->name; });
    if (found == kKeys.end()) throw std::logic_error("a field without keys");
    add_keys(keys, found->second);
  }
  return keys;
}

std::string row_keys_of_overhead() {
  return with_key(std::string(kOfEveryStep),
                  "command,command_cut,cost.state,cost.limit_percent,cost.predicted_percent,cost.low_percent,"
                  "cost.high_percent,cost.once_capture_s,cost.once_relay_s,cost.total_high_percent,cost.program_cpu_s,"
                  "cost.seen_share,targets_deferred,targets_taken_up");
}

std::string with_key(std::string keys, std::string_view key) {
  add_keys(keys, key);
  return keys;
}

}  // namespace lbf::report
