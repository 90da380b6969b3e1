// The replay of plain times, alone in its file: the compiler then inlines more of it (bench/compare).
#include "predictor/engine/replay/dedicated_replay_impl.h"
#include "predictor/engine/replay/memory_sharing.h"

namespace lbf::engine {

bool is_dedicated(const Target& target) {
  return target.network->contention() == Contention::kNone && !is_oversubscribed(target) && !shares_memory(target);
}

template class DedicatedReplayOf<Seconds>;

}  // namespace lbf::engine
