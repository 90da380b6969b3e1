// The description of the stream of one program that mpirun starts, from what the relay finds of it.
#pragma once

#include "protocol/step_description.h"
#include "spank_plugin/relay/run_finder.h"

namespace lbf::relay {

// What is the run's own; the rest is the same for all runs of the job (protocol::RelayStreams::runs).
protocol::StepDescription description_of(const FoundRun& run);

}  // namespace lbf::relay
