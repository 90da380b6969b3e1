// StoredTraceWriter: events -> batches of a stored trace, for programs that make or convert traces
// (lbf-trace, benchmarks). What a job's relays send is made by spank_plugin/relay. Implements
// docs/formats/wire-v1.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/wire.h"

namespace lbf {

struct StoredTraceOptions {
  Rank ranks_per_stream = 0;                           // 0: all ranks in stream 0
  std::size_t batch_raw_bytes = std::size_t{1} << 20;  // where batches are cut, as relays do
  // A first control record that says how many ranks there are (http-v1.md, "process"): readers of a trace
  // without it take those that have events.
  bool with_world_size = true;
  std::string library{};                    // MPI_Get_library_version of the run, for that record; empty: not known
  std::vector<std::string> mpi_settings{};  // the same of the settings of collectives
  // Node of each rank where the program ran, for those records (one for each rank then); empty: not known.
  std::vector<std::uint32_t> node_of_rank{};
  // Names by procedure number: each rank's own control record comes before its first event of the procedure.
  std::vector<std::string> procedures{};
  // Those of them of which the trace has a part of their times (record procedure_remark, kind off).
  std::set<std::string> switched_off{};
};

class StoredTraceWriter {
 public:
  // Takes each finished batch; an error ends the writing.
  using BatchWriter = std::function<Result<void>(std::uint32_t stream, std::string batch)>;

  // REQUIRES: options.node_of_rank is empty or has one node for each rank.
  StoredTraceWriter(Rank ranks, BatchWriter write, StoredTraceOptions options = {});

  // A rank's events in its order. Communicators: any numbers that the rank defines with kCommCreate events
  // before it uses them. Errors: a rank out of range, an event too large for a batch, those of the
  // BatchWriter.
  Result<void> add(Rank rank, const Event& event);
  // Writes what is left. Nothing may be added afterwards.
  Result<void> finish();

  std::uint64_t events() const { return events_; }
  std::uint64_t bytes() const { return bytes_; }  // of all batches so far

 private:
  Result<void> begin();
  Result<void> cut(std::size_t stream);
  void name_procedure(Rank rank, std::uint64_t procedure, BatchEncoder& encoder);

  Rank ranks_;
  BatchWriter write_;
  StoredTraceOptions options_;
  std::vector<std::unique_ptr<BatchEncoder>> encoders_;  // by stream
  std::vector<std::uint64_t> sequence_;                  // of the last batch, by stream
  std::unordered_set<std::uint64_t> named_;              // rank << 16 | procedure
  bool begun_ = false;
  std::uint64_t events_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace lbf
