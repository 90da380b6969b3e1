// See field_keys.h. tests/unit/report/field_keys_test.cpp proves for each field that what is named here is enough.
#include "report/field_keys.h"

#include <algorithm>

namespace lbf::report {
namespace {

constexpr std::string_view kOfEveryStep = "cluster,job,step,restart,submit,array_job,array_task,het_job,het_offset";

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
  for (const Column& column : columns) add_keys(keys, column.field->keys);
  return keys;
}

std::string row_keys_of_overhead() {
  return with_key(std::string(kOfEveryStep),
                  "command,command_cut,cost.state,cost.limit_percent,cost.predicted_percent,cost.low_percent,"
                  "cost.high_percent,cost.once_capture_s,cost.once_relay_s,cost.total_high_percent,cost.program_cpu_s,"
                  "cost.seen_share,targets_deferred,targets_taken_up");
}

std::string row_keys_of_savings() {
  return with_key(with_key(std::string(kOfEveryStep), gain_keys()),
                  "start,command,command_cut,account,partition,node_count,network,others_s,limited_s,"
                  "predictions.nodes,predictions.network,predictions.why_stuck,predictions.why_deferred");
}

std::string row_keys_of_scaling() {
  return with_key(std::string(kOfEveryStep),
                  "user,command,command_cut,state,why_partial,ranks,node_count,network,threads,start,measured_s,"
                  "others_s,limited_s,program_id,path_work_s,path_rank_work_s,path_copies_s,path_overhead_s,"
                  "path_latency_inside_s,path_latency_between_s,path_bytes_inside_s,path_bytes_between_s,path_kept_s,"
                  "path_unseen_s,predictions.kind,predictions.cores,predictions.predicted_s,"
                  "predictions.self_error_percent,predictions.seen_share,predictions.low_s,predictions.high_s");
}

std::string with_key(std::string keys, std::string_view key) {
  add_keys(keys, key);
  return keys;
}

}  // namespace lbf::report
