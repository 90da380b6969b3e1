// The execution signature (Sodhi, Subhlok & Xu, Sec. 4.2), coordinated: one for the traces of all ranks.
//
// Place in the skeleton's way: operations -> exchanges -> *execution signature* -> skeleton. A symbol of the
// signature is an exchange of all ranks that take part in it, so that loops count the same for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "skeleton/loop_folder.h"
#include "skeleton/operation.h"
#include "skeleton/time_distribution.h"

namespace lbf::skeleton {

// A cluster of similar exchanges; its "average event" (Sec. 4.2).
struct Exchange {
  struct Part {  // one rank's operations
    Rank rank = 0;
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  // A receive that was started in an earlier exchange and ends in this one.
  struct UnderWay {
    std::uint32_t part = 0;
    Operation receive;
  };
  std::vector<Part> parts;            // by rank
  std::vector<Operation> operations;  // bytes: averages, rounded down; values: in `values`
  std::vector<std::uint64_t> values;
  std::vector<UnderWay> under_way;  // by part, in the order in which they were started; those of its first occurrence
  std::vector<TimeDistribution> computation;  // before each operation
  std::vector<TimeDistribution> idle;         // before each operation
  std::uint64_t occurrences = 0;
  double seconds = 0;     // of one occurrence: mean over the program's ranks of computation, idle and call time
  bool is_closed = true;  // every request that starts in it ends in it, and the other way round
  bool is_end = false;    // the ranks end

  std::span<const std::uint64_t> values_of(const Operation& operation) const {
    return std::span(values).subspan(operation.values_begin, operation.values_count);
  }
};

struct Signature {
  Rank ranks = 0;
  std::vector<std::vector<Rank>> comms;  // ProgramTrace::comms
  std::vector<Exchange> exchanges;       // by symbol, in the order of their first occurrence
  LoopBodies bodies;
  Elements elements;  // the signature; symbols are indices of exchanges

  std::uint64_t events = 0;
  std::uint64_t trace_length = 0;      // operations of all ranks
  std::uint64_t signature_length = 0;  // operations of all ranks, each loop's body once
  double similarity_threshold = 0;
  double application_s = 0;           // longest rank: computation, idle and call time
  double computation_s = 0;           // all ranks
  double calls_s = 0;                 // all ranks: in MPI calls
  double unmodelled_s = 0;            // all ranks
  double blocked_s = 0;               // all ranks
  std::uint64_t wildcards = 0;        // receives with MPI_ANY_SOURCE or MPI_ANY_TAG
  std::uint64_t wildcards_fixed = 0;  // of these: replayed with the match that happened

  // Q of Table 2.
  double compression() const {
    return signature_length == 0 ? 1 : static_cast<double>(trace_length) / static_cast<double>(signature_length);
  }
};

struct SignatureOptions {
  double wanted_compression = 1;   // Q; the paper: K / 2
  double threshold_step = 0.02;    // similarity threshold, Table 2
  double largest_threshold = 0.2;  // "always less than .2" (Sec. 4.2)
};

// Table 2. The similarity threshold starts with 0 and rises until the wanted compression is reached, or else
// stays at the smallest one of those that compressed most. Errors: link_operations'.
Result<Signature> make_signature(ProgramTrace trace, const SignatureOptions& options);

}  // namespace lbf::skeleton
