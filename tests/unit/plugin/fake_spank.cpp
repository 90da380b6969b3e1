// See fake_spank.h. The functions below take the place of Slurm's: this executable exports them.
#include "tests/unit/plugin/fake_spank.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_version.h>
}

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace lbf::plugin {

FakeHost& FakeHost::get() {
  static FakeHost host;
  return host;
}

namespace {

void* plugin_handle() {
  static void* handle = [] {
    void* loaded = ::dlopen(LBF_PLUGIN_PATH, RTLD_LAZY | RTLD_LOCAL);
    if (loaded == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
    return loaded;
  }();
  return handle;
}

std::string formatted(const char* format, va_list arguments) {
  char text[4096];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

}  // namespace

int call_hook(const char* name, std::vector<std::string> arguments) {
  using Hook = int (*)(spank_t, int, char**);
  const std::string symbol = std::string("slurm_spank_") + name;
  auto hook = plugin_handle() == nullptr ? nullptr : reinterpret_cast<Hook>(::dlsym(plugin_handle(), symbol.c_str()));
  if (hook == nullptr) {
    ADD_FAILURE() << symbol << " is not exported";
    return -1;
  }
  std::vector<char*> av;
  for (std::string& argument : arguments) av.push_back(argument.data());
  return hook(nullptr, static_cast<int>(av.size()), av.data());
}

int give_option(const std::string& name, const char* value, bool remote) {
  const auto found = FakeHost::get().options.find(name);
  if (found == FakeHost::get().options.end()) {
    ADD_FAILURE() << name << " is not registered";
    return -1;
  }
  return found->second.cb(found->second.val, value, remote ? 1 : 0);
}

}  // namespace lbf::plugin

using lbf::plugin::FakeHost;

extern "C" {

spank_context_t spank_context() {
  return FakeHost::get().context;
}

spank_err_t spank_option_register(spank_t, struct spank_option* option) {
  FakeHost& host = FakeHost::get();
  if (host.register_fails) return static_cast<spank_err_t>(ESPANK_BAD_ARG);
  host.options[option->name] = *option;
  return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
  FakeHost& host = FakeHost::get();
  const auto found = host.items.find(item);
  if (found == host.items.end()) return static_cast<spank_err_t>(ESPANK_NOT_AVAIL);
  va_list arguments;
  va_start(arguments, item);
  switch (item) {
    case S_JOB_ARGV: {
      static std::vector<char*> av;
      av.clear();
      for (std::string& argument : host.arguments) av.push_back(argument.data());
      av.push_back(nullptr);
      *va_arg(arguments, int*) = static_cast<int>(host.arguments.size());
      *va_arg(arguments, char***) = av.data();
      break;
    }
    case S_JOB_SUPPLEMENTARY_GIDS:
      *va_arg(arguments, gid_t**) = host.supplementary_gids.data();
      *va_arg(arguments, int*) = static_cast<int>(host.supplementary_gids.size());
      break;
    case S_JOB_LOCAL_TO_GLOBAL_ID: {
      const auto local = va_arg(arguments, std::uint32_t);
      *va_arg(arguments, std::uint32_t*) = local + static_cast<std::uint32_t>(found->second);
      break;
    }
    case S_JOB_NCPUS:
      *va_arg(arguments, std::uint16_t*) = static_cast<std::uint16_t>(found->second);
      break;
    default:
      *va_arg(arguments, std::uint32_t*) = static_cast<std::uint32_t>(found->second);
      break;
  }
  va_end(arguments);
  return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

spank_err_t spank_getenv(spank_t, const char* name, char* buffer, int length) {
  FakeHost& host = FakeHost::get();
  if (host.getenv_throws) throw std::runtime_error("getenv broke");
  const auto found = host.environment.find(name);
  if (found == host.environment.end()) return static_cast<spank_err_t>(ESPANK_ENV_NOEXIST);
  if (static_cast<std::size_t>(length) <= found->second.size()) return static_cast<spank_err_t>(ESPANK_NOSPACE);
  std::memcpy(buffer, found->second.c_str(), found->second.size() + 1);
  return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

spank_err_t spank_setenv(spank_t, const char* name, const char* value, int) {
  if (FakeHost::get().setenv_fails) return static_cast<spank_err_t>(ESPANK_BAD_ARG);
  FakeHost::get().environment[name] = value;
  return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

spank_err_t spank_unsetenv(spank_t, const char* name) {
  FakeHost::get().environment.erase(name);
  return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
int slurm_load_job(job_info_msg_t** answer, slurm_step_id_t id, std::uint16_t) {
  const std::uint32_t job = id.job_id;
#else
int slurm_load_job(job_info_msg_t** answer, std::uint32_t job, std::uint16_t) {
#endif
  FakeHost& host = FakeHost::get();
  ++host.asked[job];
  if (!host.submit_times.contains(job)) return SLURM_ERROR;
  *answer = new job_info_msg_t{};
  (*answer)->job_array = new slurm_job_info_t[2]{};
  (*answer)->record_count = 2;
  (*answer)->job_array[0].job_id = job + 1;  // another task of the array
  (*answer)->job_array[0].submit_time = 1;
  (*answer)->job_array[1].job_id = job;
  (*answer)->job_array[1].submit_time = host.submit_times[job];
  (*answer)->job_array[1].partition = host.partitions[job].data();
  (*answer)->job_array[1].comment = host.comments.contains(job) ? host.comments[job].data() : nullptr;
  (*answer)->job_array[1].job_state = host.job_states.try_emplace(job, JOB_RUNNING).first->second;
  return SLURM_SUCCESS;
}

int slurm_update_job(job_desc_msg_t* wanted) {
  FakeHost& host = FakeHost::get();
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
  const std::uint32_t job = wanted->step_id.job_id;
#else
  const std::uint32_t job = wanted->job_id;
#endif
  if (host.update_error != 0) {
    errno = host.update_error;
    return SLURM_ERROR;
  }
  host.comments[job] = wanted->comment;
  return SLURM_SUCCESS;
}

void slurm_free_job_info_msg(job_info_msg_t* answer) {
  delete[] answer->job_array;
  delete answer;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
int slurm_get_job_steps(slurm_step_id_t* id, job_step_info_response_msg_t** answer, std::uint16_t) {
  const std::uint32_t step = id->step_id;
#else
int slurm_get_job_steps(time_t, std::uint32_t, std::uint32_t step, job_step_info_response_msg_t** answer,
                        std::uint16_t) {
#endif
  FakeHost& host = FakeHost::get();
  *answer = new job_step_info_response_msg_t{};
  (*answer)->job_steps = new job_step_info_t[1]{};
  (*answer)->job_step_count = 1;
  (*answer)->job_steps[0].step_id.step_id = step;
  (*answer)->job_steps[0].state = host.step_states.try_emplace(step, JOB_RUNNING).first->second;
  return SLURM_SUCCESS;
}

void slurm_free_job_step_info_response_msg(job_step_info_response_msg_t* answer) {
  delete[] answer->job_steps;
  delete answer;
}

void slurm_spank_log(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  FakeHost::get().said.push_back(lbf::plugin::formatted(format, arguments));
  va_end(arguments);
}

int slurm_get_log_level() {
  return FakeHost::get().log_level;
}

void slurm_info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  FakeHost::get().logged.push_back(lbf::plugin::formatted(format, arguments));
  va_end(arguments);
}

void slurm_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  FakeHost::get().logged.push_back(lbf::plugin::formatted(format, arguments));
  va_end(arguments);
}

}  // extern "C"
