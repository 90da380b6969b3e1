// SimGrid's time-independent traces as events: what SMPI of SimGrid 3.32 writes
// (--cfg=tracing/smpi/format:TI) and `smpirun -replay` replays. Implements docs/formats/interchange.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/text_trace.h"

namespace lbf::tools {

class TiTrace {
 public:
  // PATH: a list of the ranks' files (one a line), or one file with the actions of all ranks. Errors: kIo;
  // kInvalidInput names file and line.
  static Result<std::unique_ptr<TiTrace>> open(const std::string& path, double flops_per_second);
  virtual ~TiTrace() = default;
  virtual Rank ranks() const = 0;
  // Hands all events to `sink`; `progress` gets the share done (0 to 1) now and then. Errors name file and
  // line.
  virtual Result<void> read(const EventSink& sink, const std::function<void(double)>& progress) = 0;
  // What was read over, one line each: "12 test actions: ...". After read().
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace lbf::tools
