#include "skeleton/signature.h"

#include <algorithm>
#include <utility>

#include "skeleton/exchanges.h"
#include "skeleton/operation_links.h"
#include "skeleton/similarity.h"
#include "skeleton/wildcards.h"

namespace lbf::skeleton {
namespace {

class Builder {
 public:
  Builder(const ProgramTrace& trace, const OperationLinks& links)
      : trace_(trace),
        exchanges_(find_exchanges(trace, links)),
        similarity_(trace, links, exchanges_),
        distinct_(similarity_.distinct()) {}

  void build(const SignatureOptions& options, Signature& signature) {
    signature.trace_length = trace_.operations();
    double best = -1;
    for (int step = 0;; ++step) {
      const double threshold = options.threshold_step * step;
      if (step > 0 && threshold > options.largest_threshold + 1e-12) break;
      const std::vector<std::uint32_t> clusters = similarity_.cluster(distinct_, threshold);
      LoopBodies bodies;
      const Elements elements = fold(clusters, bodies);
      const std::uint64_t length = length_of(clusters, bodies, elements);
      const double compression =
          length == 0 ? 1 : static_cast<double>(signature.trace_length) / static_cast<double>(length);
      if (compression > best) {
        best = compression;
        clusters_ = clusters;
        signature.bodies = bodies;
        signature.elements = elements;
        signature.signature_length = length;
        signature.similarity_threshold = threshold;
      }
      if (compression >= options.wanted_compression || options.threshold_step <= 0) break;
    }
    fill_exchanges(signature);
  }

 private:
  Elements fold(const std::vector<std::uint32_t>& clusters, LoopBodies& bodies) const {
    LoopFolder folder(bodies);
    for (const std::uint32_t symbol : distinct_.symbol) folder.push_symbol(clusters[symbol]);
    return folder.finish();
  }

  std::uint64_t length_of(const std::vector<std::uint32_t>& clusters, const LoopBodies& bodies,
                          const Elements& elements) const {
    std::vector<std::uint64_t> operations(clusters.size(), 0);
    for (std::size_t s = 0; s < clusters.size(); ++s) {
      operations[clusters[s]] = exchanges_.of(distinct_.exemplar[s]).size();
    }
    return written_length<std::uint64_t>(bodies, elements, [&](std::uint32_t s) { return operations[s]; });
  }

  // Structure and average sizes of the clusters.
  void fill_exchanges(Signature& signature) {
    const std::uint32_t clusters = clusters_.empty() ? 0 : *std::max_element(clusters_.begin(), clusters_.end()) + 1;
    signature.exchanges.resize(clusters);
    std::vector<std::vector<double>> size_sums(clusters);
    std::vector<Bytes> sizes;
    for (std::uint32_t s = 0; s < clusters_.size(); ++s) {
      Exchange& exchange = signature.exchanges[clusters_[s]];
      if (exchange.occurrences == 0) copy(distinct_.exemplar[s], exchange);
      exchange.occurrences += distinct_.count[s];
      similarity_.sizes(distinct_.exemplar[s], Similarity::OfReceives::kAsRecorded, sizes);
      std::vector<double>& sums = size_sums[clusters_[s]];
      sums.resize(sizes.size(), 0);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sums[i] += static_cast<double>(sizes[i]) * static_cast<double>(distinct_.count[s]);
      }
    }
    for (std::uint32_t c = 0; c < clusters; ++c) average(size_sums[c], signature.exchanges[c]);
    find_under_way(signature);
    measure(signature);
  }

  void copy(std::uint32_t from, Exchange& exchange) const {
    std::vector<std::pair<Rank, std::uint32_t>> active;  // requests that started here
    for (const OperationId id : exchanges_.of(from)) {
      const Rank rank = similarity_.rank_of(id);
      Operation operation = similarity_.operation(id);
      if (exchange.parts.empty() || exchange.parts.back().rank != rank) {
        exchange.parts.push_back({rank, static_cast<std::uint32_t>(exchange.operations.size()), 0});
      }
      ++exchange.parts.back().count;
      const auto values = trace_.values_of(operation);
      operation.values_begin = static_cast<std::uint32_t>(exchange.values.size());
      exchange.values.insert(exchange.values.end(), values.begin(), values.end());
      for_each_ended(operation, values, [&](std::uint32_t slot) { end(rank, slot, active, exchange); });
      if (begins_request(operation.kind)) active.emplace_back(rank, operation.slot);
      if (operation.kind == OperationKind::kEnd) exchange.is_end = true;
      exchange.operations.push_back(operation);
    }
    if (!active.empty()) exchange.is_closed = false;
    exchange.computation.resize(exchange.operations.size());
    exchange.idle.resize(exchange.operations.size());
  }

  static void end(Rank rank, std::uint32_t slot, std::vector<std::pair<Rank, std::uint32_t>>& active,
                  Exchange& exchange) {
    const auto found = std::find(active.begin(), active.end(), std::pair(rank, slot));
    if (found == active.end()) {
      exchange.is_closed = false;
    } else {
      active.erase(found);
    }
  }

  // Exchange::under_way.
  void find_under_way(Signature& signature) const {
    constexpr std::uint32_t kNotCopied = ~0u;
    std::vector<std::uint32_t> copied_to(trace_.operations(), kNotCopied);  // by operation: the cluster
    std::vector<bool> seen(signature.exchanges.size(), false);
    for (std::uint32_t s = 0; s < clusters_.size(); ++s) {
      if (seen[clusters_[s]]) continue;
      seen[clusters_[s]] = true;
      for (const OperationId id : exchanges_.of(distinct_.exemplar[s])) copied_to[id] = clusters_[s];
    }
    std::vector<std::pair<std::uint32_t, OperationId>> found;  // cluster, start of a receive
    OperationId id = 0;
    for (const std::vector<Operation>& operations : trace_.ranks) {
      std::vector<OperationId> started;  // by slot
      for (const Operation& operation : operations) {
        const std::uint32_t cluster = copied_to[id];
        if (begins_request(operation.kind)) {
          started.resize(std::max<std::size_t>(started.size(), operation.slot + 1));
          started[operation.slot] = id;
        }
        for_each_ended(operation, trace_.values_of(operation), [&](std::uint32_t slot) {
          const OperationId start = started[slot];
          const Operation& request = similarity_.operation(start);
          const bool receives = request.kind == OperationKind::kIrecv && request.peer >= 0;
          if (cluster != kNotCopied && copied_to[start] != cluster && receives) found.emplace_back(cluster, start);
        });
        ++id;
      }
    }
    std::sort(found.begin(), found.end());
    for (const auto& [cluster, start] : found) {
      Exchange& exchange = signature.exchanges[cluster];
      const Rank rank = similarity_.rank_of(start);
      const auto part = std::find_if(exchange.parts.begin(), exchange.parts.end(),
                                     [&](const Exchange::Part& each) { return each.rank == rank; });
      exchange.under_way.push_back(
          {static_cast<std::uint32_t>(part - exchange.parts.begin()), similarity_.operation(start)});
    }
  }

  static void average(const std::vector<double>& sums, Exchange& exchange) {
    std::size_t next = 0;
    const auto mean = [&] {
      return static_cast<std::uint64_t>(sums[next++] / static_cast<double>(exchange.occurrences));
    };
    for (Operation& operation : exchange.operations) {
      operation.bytes = mean();
      if (!has_sizes(operation)) continue;
      for (std::uint32_t i = 0; i < operation.values_count; ++i) {
        exchange.values[operation.values_begin + i] = mean();
      }
    }
  }

  // Times of all occurrences.
  void measure(Signature& signature) const {
    std::vector<double> rank_s(trace_.ranks.size(), 0);
    for (std::uint32_t e = 0; e < exchanges_.size(); ++e) {
      Exchange& exchange = signature.exchanges[clusters_[distinct_.symbol[e]]];
      std::size_t i = 0;
      for (const OperationId id : exchanges_.of(e)) {
        const Operation& operation = similarity_.operation(id);
        exchange.computation[i].add(operation.process_s);
        exchange.idle[i].add(operation.idle_s);
        ++i;
        const double all = static_cast<double>(operation.process_s) + operation.idle_s + operation.call_s;
        exchange.seconds += all;
        rank_s[static_cast<std::size_t>(similarity_.rank_of(id))] += all;
        signature.computation_s += operation.process_s;
        signature.calls_s += operation.call_s;
      }
    }
    for (Exchange& exchange : signature.exchanges) {
      exchange.seconds /= static_cast<double>(exchange.occurrences) * static_cast<double>(trace_.ranks.size());
    }
    for (const double seconds : rank_s) signature.application_s = std::max(signature.application_s, seconds);
  }

  const ProgramTrace& trace_;
  Exchanges exchanges_;
  Similarity similarity_;
  DistinctExchanges distinct_;
  std::vector<std::uint32_t> clusters_;
};

}  // namespace

Result<Signature> make_signature(ProgramTrace trace, const SignatureOptions& options) {
  Signature signature;
  const WildcardCount wildcards = fix_wildcards(trace);
  signature.wildcards = wildcards.all;
  signature.wildcards_fixed = wildcards.fixed;
  signature.ranks = static_cast<Rank>(trace.ranks.size());
  signature.events = trace.events;
  signature.unmodelled_s = trace.unmodelled_s;
  signature.blocked_s = trace.blocked_s;
  const Result<OperationLinks> links = link_operations(trace);
  if (!links) return links.error();
  Builder(trace, *links).build(options, signature);
  signature.comms = std::move(trace.comms);
  return signature;
}

}  // namespace lbf::skeleton
