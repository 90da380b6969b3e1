// slurm_load_job of Slurm's releases: it takes a step's id in 26.05 and a job's number before. Chosen by what slurm.h
// declares.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

extern "C" {
#include <slurm/slurm.h>
}

namespace lbf::plugin {

using JobAnswer = std::unique_ptr<job_info_msg_t, decltype(&slurm_free_job_info_msg)>;

template <class Load>
int load_job_with(Load load, job_info_msg_t** answer, std::uint32_t job) {
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

// Asks slurmctld, and waits for the answer (MessageTimeout). Null: there is none.
inline JobAnswer load_job(std::uint32_t job) {
  job_info_msg_t* answer = nullptr;
  if (load_job_with(&slurm_load_job, &answer, job) != SLURM_SUCCESS) answer = nullptr;
  return {answer, &slurm_free_job_info_msg};
}

}  // namespace lbf::plugin
