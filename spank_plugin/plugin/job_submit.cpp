// See job_submit.h.
#include "spank_plugin/plugin/job_submit.h"

#include <algorithm>
#include <span>

#include "base/number.h"
#include "spank_plugin/plugin/slurm_load_job.h"

namespace lbf::plugin {
std::string JobSubmit::text() const {
  const std::string text = std::to_string(job) + ":" + std::to_string(submit_s);
  return partition.empty() ? text : text + ":" + partition;
}

std::uint32_t whole_job(const Environment& variable, std::uint32_t job) {
  for (const std::string group : {"SLURM_JOB_ID_HET_GROUP_", "SLURM_JOB_ID_PACK_GROUP_"}) {
    std::optional<std::uint32_t> first;
    for (int offset = 0;; ++offset) {
      const auto text = variable(group + std::to_string(offset));
      const auto id = text ? parse_number<std::uint32_t>(*text) : std::nullopt;
      if (!id) break;
      if (!first) first = id;
      if (*id == job) return *first;
    }
  }
  return job;
}

std::optional<JobSubmit> known_submit(const Environment& variable, std::uint32_t job) {
  const auto text = variable(kSubmitVariable);
  const std::size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos || parse_number<std::uint32_t>(text->substr(0, colon)) != job) return std::nullopt;
  const std::size_t second = std::min(text->find(':', colon + 1), text->size());
  const auto submit_s = parse_number<std::uint64_t>(text->substr(colon + 1, second - colon - 1));
  if (!submit_s) return std::nullopt;
  return JobSubmit{job, *submit_s, text->substr(std::min(second + 1, text->size()))};
}

JobSubmit ask_submit(std::uint32_t job) {
  JobSubmit submit{job, 0, {}};
  const JobAnswer answer = load_job(job);
  if (!answer) return submit;
  // Of an array or a heterogeneous job there may be others, too.
  for (const auto& one : std::span(answer->job_array, answer->record_count)) {
    if (one.job_id != job) continue;
    if (one.submit_time > 0) submit.submit_s = static_cast<std::uint64_t>(one.submit_time);
    // Of a pending job it is the list that was asked for.
    const std::string partition = one.partition == nullptr ? "" : one.partition;
    if (partition.find(',') == std::string::npos) submit.partition = partition;
  }
  return submit;
}

}  // namespace lbf::plugin
