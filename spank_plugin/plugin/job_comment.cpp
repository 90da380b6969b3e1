// See job_comment.h.
#include "spank_plugin/plugin/job_comment.h"

#include <cerrno>
#include <span>
#include <string_view>

#include "spank_plugin/plugin/slurm_load_job.h"

extern "C" {
#include <slurm/slurm_errno.h>
}

namespace lbf::plugin {
namespace {

constexpr std::string_view kMark = "lbf: ";
constexpr std::size_t kMostBytes = 1000;  // slurmctld takes 1024

// A job's number, in 26.05 a step's id.
template <class Description>
void name_job(Description& description, std::uint32_t job) {
  if constexpr (requires { description.job_id = job; }) {
    description.job_id = job;
  } else {
    description.step_id.job_id = job;
  }
}

}  // namespace

std::string set_job_comment(std::uint32_t job, const std::string& line) {
  const JobAnswer answer = load_job(job);
  if (!answer) return slurm_strerror(errno);
  for (const auto& one : std::span(answer->job_array, answer->record_count)) {
    const std::string_view comment = one.comment == nullptr ? "" : one.comment;
    if (one.job_id == job && !comment.empty() && !comment.starts_with(kMark)) return {};
  }
  job_desc_msg_t description;
  slurm_init_job_desc_msg(&description);
  name_job(description, job);
  std::string text = line.substr(0, kMostBytes);
  description.comment = text.data();
  return slurm_update_job(&description) == SLURM_SUCCESS ? std::string() : slurm_strerror(errno);
}

}  // namespace lbf::plugin
