// StepSayings: how a step's predictions are said in documents (SAYING of docs/formats/http-v1.md).
#pragma once

#include "advisor/trust/trust.h"
#include "predictor/daemon/steps/step_run.h"
#include "protocol/saying_fields.h"

namespace lbf::daemon {

// By what is known of the step when it is made. REQUIRES: the step outlives it.
class StepSayings {
 public:
  explicit StepSayings(const StepView& step);
  // PREDICTION: one of the step's.
  protocol::SayingFields of(const db::PredictionRecord& prediction) const;

 private:
  const db::PredictionRecord* self_ = nullptr;  // the configuration that ran
  advisor::Trust trust_;
};

}  // namespace lbf::daemon
