// lbf.so, the SPANK plugin: Slurm's symbols, and the dispatch to the file of the context (docs/plugin.md).
// Slurm looks these symbols up by name; everything else stays hidden (lbf.version, -fvisibility=hidden). The
// pragma must come before the first include of spank.h, which declares them.
#pragma GCC visibility push(default)
extern "C" {
#include <slurm/spank.h>
}
#pragma GCC visibility pop

#include "spank_plugin/plugin/boundary.h"
#include "spank_plugin/plugin/plugin.h"

// In C++ a const at namespace scope is internal unless it was declared extern before.
#pragma GCC visibility push(default)
extern "C" {
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(lbf, 1)
}
#pragma GCC visibility pop

using lbf::plugin::guarded;
using lbf::plugin::SpankHandle;

namespace {

std::span<char* const> arguments_of(int ac, char* av[]) {
  return {av, static_cast<std::size_t>(ac > 0 && av != nullptr ? ac : 0)};
}

void dispatch_init_post_opt(SpankHandle spank) {
  const spank_context_t context = spank_context();
  if (context == S_CTX_LOCAL) lbf::plugin::srun::init_post_opt();
  if (context == S_CTX_ALLOCATOR) lbf::plugin::allocator::init_post_opt();
  if (context == S_CTX_REMOTE) lbf::plugin::stepd::init_post_opt(spank);
}

void dispatch_exit() {
  const spank_context_t context = spank_context();
  if (context == S_CTX_LOCAL) lbf::plugin::srun::exit();
  if (context == S_CTX_ALLOCATOR) lbf::plugin::allocator::exit();
  if (context == S_CTX_REMOTE) lbf::plugin::stepd::exit();
}

}  // namespace

extern "C" {

int slurm_spank_init(spank_t spank, int ac, char* av[]) {
  return guarded("init", [&] { lbf::plugin::init(SpankHandle(spank), arguments_of(ac, av)); });
}

int slurm_spank_init_post_opt(spank_t spank, int, char*[]) {
  return guarded("init_post_opt", [&] { dispatch_init_post_opt(SpankHandle(spank)); });
}

int slurm_spank_local_user_init(spank_t spank, int, char*[]) {
  return guarded("local_user_init", [&] { lbf::plugin::srun::local_user_init(SpankHandle(spank)); });
}

int slurm_spank_user_init(spank_t spank, int, char*[]) {
  return guarded("user_init", [&] { lbf::plugin::stepd::user_init(SpankHandle(spank)); });
}

int slurm_spank_task_init(spank_t spank, int, char*[]) {
  return guarded("task_init", [&] { lbf::plugin::stepd::task_init(SpankHandle(spank)); });
}

int slurm_spank_task_exit(spank_t spank, int, char*[]) {
  return guarded("task_exit", [&] { lbf::plugin::stepd::task_exit(SpankHandle(spank)); });
}

int slurm_spank_exit(spank_t, int, char*[]) {
  return guarded("exit", [] { dispatch_exit(); });
}

}  // extern "C"
