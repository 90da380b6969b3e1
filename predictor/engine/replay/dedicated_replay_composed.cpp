// The replay of times that know what they are made of.
#include "predictor/engine/replay/dedicated_replay_impl.h"

namespace lbf::engine {

template class DedicatedReplayOf<Composed>;

}  // namespace lbf::engine
