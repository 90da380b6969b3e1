// OTF2 archives of other tools (Score-P, EZTrace, lbf-trace export) as events, in one pass.
//
// Place in the event's way: archive -> otf2_stream (records of a rank, by time) -> otf2_rank (records -> events that
// wait for what comes later) -> otf2_collectives (what all ranks say of a collective) -> *sink*. Memory: O(ranks + what
// is in flight), and a chunk of the archive for each location. Implements docs/formats/interchange.md, "OTF2, reading".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event_sink.h"

namespace lbf::tools {

// The anchor file (NAME.otf2) that PATH names, or the only one of the folder PATH; empty: neither.
std::string otf2_anchor(const std::string& path);
// Of the events and local definitions beside an anchor file; 0: cannot be read.
std::uint64_t otf2_bytes(const std::string& anchor);

class Otf2Import {
 public:
  // Reads the definitions, and the beginning of the events for the ranks' clocks. Errors: kIo; kInvalidInput: not an
  // archive, no MPI ranks in it, clocks that contradict each other; kLimit: too few open files; kInvalidInput where
  // this build has no OTF2.
  static Result<std::unique_ptr<Otf2Import>> open(const std::string& anchor);
  virtual ~Otf2Import() = default;

  virtual Rank ranks() const = 0;
  // Node of each rank; empty: the archive does not say.
  virtual const std::vector<std::uint32_t>& node_of_rank() const = 0;
  // Hands all events to `sink`; `progress` gets the share done (0 to 1) now and then. May be called again. Errors name
  // rank and event of the first place that cannot be read in one way only; those of `sink`.
  virtual Result<void> read(const EventBlockSink& sink, const std::function<void(double)>& progress) = 0;
  // What the archive does not say, was rebuilt or left out, one line each. After read().
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace lbf::tools
