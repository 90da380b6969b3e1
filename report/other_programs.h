// Who had the processors beside the job, in sentences (docs/relay.md, "Other programs").
#pragma once

#include <string>
#include <vector>

#include "report/step.h"

namespace lbf::report {

// Of the rank that lost most, where it shows (protocol::noticeable_loss_s), in seconds of the measured time.
Seconds lost_s(const Step& step);

// "Other programs had the processors for 4.20 s of 8.40 s." and the like, each without a line end; empty: nobody had.
std::vector<std::string> disturbances(const Step& step);

}  // namespace lbf::report
