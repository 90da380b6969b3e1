// See job_submit.h.
#include "spank_plugin/plugin/job_submit.h"

#include <memory>
#include <span>
#include <type_traits>

#include "base/number.h"

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin {
namespace {

// `load`: slurm_load_job, which takes a step's id in Slurm 26.05 and a job's number before. Chosen by what slurm.h
// declares.
template <class Load>
int load_job(Load load, job_info_msg_t** answer, std::uint32_t job) {
  constexpr std::uint16_t kFlags = SHOW_ALL | SHOW_LOCAL;
  if constexpr (std::is_invocable_v<Load, job_info_msg_t**, std::uint32_t, std::uint16_t>) {
    return load(answer, job, kFlags);
  } else {
    slurm_step_id_t id{};
    id.job_id = job;
    id.step_id = NO_VAL;
    id.step_het_comp = NO_VAL;
    return load(answer, id, kFlags);
  }
}

}  // namespace

std::string JobSubmit::text() const {
  return std::to_string(job) + ":" + std::to_string(submit_s);
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
  const auto submit_s = parse_number<std::uint64_t>(text->substr(colon + 1));
  if (!submit_s) return std::nullopt;
  return JobSubmit{job, *submit_s};
}

JobSubmit ask_submit(std::uint32_t job) {
  JobSubmit submit{job, 0};
  job_info_msg_t* answer = nullptr;
  if (load_job(&slurm_load_job, &answer, job) != SLURM_SUCCESS || answer == nullptr) return submit;
  const std::unique_ptr<job_info_msg_t, decltype(&slurm_free_job_info_msg)> owned(answer, &slurm_free_job_info_msg);
  // Of an array or a heterogeneous job there may be others, too.
  for (const auto& one : std::span(answer->job_array, answer->record_count)) {
    if (one.job_id == job && one.submit_time > 0) submit.submit_s = static_cast<std::uint64_t>(one.submit_time);
  }
  return submit;
}

}  // namespace lbf::plugin
