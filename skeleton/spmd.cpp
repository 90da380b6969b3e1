#include "skeleton/spmd.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "skeleton/similarity.h"

namespace lbf::skeleton {
namespace {

template <typename Function>
bool holds(std::span<const Place> places, std::span<const std::int64_t> values, const Function& function) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (function(places[i]) != values[i]) return false;
  }
  return true;
}

std::int64_t modulo(std::int64_t value, std::int64_t n) {
  return n <= 0 ? 0 : ((value % n) + n) % n;
}

class Grouper {
 public:
  Grouper(const Signature& signature, const CommVariables& variables, const Exchange& exchange)
      : signature_(signature), variables_(variables), exchange_(exchange) {}

  std::vector<RankGroup> run() {
    std::map<std::vector<std::uint64_t>, std::vector<std::size_t>> parts;  // by what they do
    std::vector<const std::vector<std::size_t>*> order;
    for (std::size_t p = 0; p < exchange_.parts.size(); ++p) {
      std::vector<std::size_t>& alike = parts[key(exchange_.parts[p])];
      if (alike.empty()) order.push_back(&alike);
      alike.push_back(p);
    }
    std::vector<RankGroup> groups;
    for (const std::vector<std::size_t>* alike : order) groups.push_back(group(*alike));
    return groups;
  }

 private:
  std::vector<std::uint64_t> key(const Exchange::Part& part) const {
    std::vector<std::uint64_t> key;
    for (std::uint32_t i = 0; i < part.count; ++i) {
      const Operation& o = exchange_.operations[part.begin + i];
      key.push_back(static_cast<std::uint64_t>(o.kind) | std::uint64_t{o.flags} << 8 |
                    static_cast<std::uint64_t>(o.op) << 16 |
                    std::uint64_t{o.kind == OperationKind::kIrecv && o.peer < 0} << 24 |  // cancelled
                    std::uint64_t{variables_.variable[o.comm]} << 32);
      key.push_back(std::uint64_t{o.slot} << 32 | o.values_count);
      if (has_sizes(o)) continue;
      for (std::uint32_t v = 0; v < o.values_count; ++v) key.push_back(exchange_.values[o.values_begin + v]);
    }
    return key;
  }

  RankGroup group(const std::vector<std::size_t>& parts) {
    RankGroup group;
    for (const std::size_t p : parts) group.ranks.push_back(exchange_.parts[p].rank);
    const std::uint32_t count = exchange_.parts[parts.front()].count;
    for (std::uint32_t i = 0; i < count; ++i) group.operations.push_back(operation(parts, i));
    return group;
  }

  SpmdOperation operation(const std::vector<std::size_t>& parts, std::uint32_t index) {
    SpmdOperation result;
    result.operation = exchange_.operations[exchange_.parts[parts.front()].begin + index];
    result.operation.comm = variables_.variable[result.operation.comm];
    std::vector<Place> places;
    std::vector<std::int64_t> peers, tags, roots, bytes;
    std::vector<double> quantiles(kShapeParts, 0);
    for (const std::size_t p : parts) {
      const std::uint32_t at = exchange_.parts[p].begin + index;
      const Operation& mine = exchange_.operations[at];
      const std::vector<Rank>& members = signature_.comms[mine.comm];
      places.push_back({rank_in(mine.comm, exchange_.parts[p].rank), static_cast<std::int64_t>(members.size())});
      // A cancelled receive was posted for anybody as far as the trace knows.
      peers.push_back(has_peer(mine.kind) && mine.peer >= 0 ? rank_in(mine.comm, mine.peer) : -1);
      tags.push_back(mine.tag);
      roots.push_back(mine.root);
      bytes.push_back(static_cast<std::int64_t>(mine.bytes));
      const auto values = std::span(exchange_.values).subspan(mine.values_begin, mine.values_count);
      if (has_sizes(mine)) result.sizes.emplace_back(values.begin(), values.end());
      const TimeDistribution& computation = exchange_.computation[at];
      result.computation_s.push_back(computation.mean_s());
      result.idle_s.push_back(exchange_.idle[at].mean_s());
      const std::vector<double> means = computation.quantile_means_s(kShapeParts);
      for (std::size_t q = 0; q < quantiles.size(); ++q) quantiles[q] += means[q];
    }
    if (result.operation.kind == OperationKind::kWait) {
      const auto slots =
          std::span(exchange_.values).subspan(result.operation.values_begin, result.operation.values_count);
      result.slots.assign(slots.begin(), slots.end());
    }
    result.peer = fit(places, peers);
    result.tag = fit(places, tags);
    result.root = fit(places, roots);
    result.bytes = fit(places, bytes);
    result.shape = shape_of(quantiles);
    return result;
  }

  static std::vector<double> shape_of(std::vector<double> quantiles) {
    double mean = 0;
    for (const double quantile : quantiles) mean += quantile / kShapeParts;
    if (!(mean > 0)) return {};
    bool differs = false;
    for (double& quantile : quantiles) {
      quantile /= mean;
      differs = differs || quantile < 1 - kShapeDifference || quantile > 1 + kShapeDifference;
    }
    return differs ? quantiles : std::vector<double>();
  }

  std::int64_t rank_in(std::uint32_t comm, Rank rank) {
    if (comm == 0) return rank;
    std::unordered_map<Rank, std::int64_t>& ranks = ranks_in_[comm];
    if (ranks.empty()) {
      const std::vector<Rank>& members = signature_.comms[comm];
      for (std::size_t i = 0; i < members.size(); ++i) ranks[members[i]] = static_cast<std::int64_t>(i);
    }
    const auto found = ranks.find(rank);
    return found == ranks.end() ? -1 : found->second;
  }

  const Signature& signature_;
  const CommVariables& variables_;
  const Exchange& exchange_;
  std::unordered_map<std::uint32_t, std::unordered_map<Rank, std::int64_t>> ranks_in_;
};

}  // namespace

Expression fit(std::span<const Place> places, std::span<const std::int64_t> values) {
  using Kind = Expression::Kind;
  const std::int64_t first = values[0];
  const std::int64_t x = places[0].x;
  if (holds(places, values, [&](const Place&) { return first; })) return {Kind::kConstant, first, {}};
  const std::int64_t offset = first - x;
  if (holds(places, values, [&](const Place& p) { return p.x + offset; })) return {Kind::kOffset, offset, {}};
  // Negative steps as n - k would differ between communicators of different size; -k mod n does not.
  for (const std::int64_t step : {modulo(offset, places[0].n), modulo(offset, places[0].n) - places[0].n}) {
    if (holds(places, values, [&](const Place& p) { return modulo(p.x + step, p.n); }))
      return {Kind::kOffsetModulo, step, {}};
  }
  const std::int64_t bits = first ^ x;
  if (first >= 0 && holds(places, values, [&](const Place& p) { return p.x ^ bits; })) return {Kind::kXor, bits, {}};
  return {Kind::kTable, 0, {values.begin(), values.end()}};
}

std::int64_t evaluate(const Expression& expression, std::size_t index, const Place& place) {
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return expression.value;
    case Expression::Kind::kOffset:
      return place.x + expression.value;
    case Expression::Kind::kOffsetModulo:
      return modulo(place.x + expression.value, place.n);
    case Expression::Kind::kXor:
      return place.x ^ expression.value;
    case Expression::Kind::kTable:
      return expression.table[index];
  }
  return 0;
}

CommVariables comm_variables(const std::vector<std::vector<Rank>>& comms) {
  CommVariables result;
  std::vector<std::vector<bool>> taken;  // by variable, rank
  const std::size_t ranks = comms.empty() ? 0 : comms[0].size();
  for (std::uint32_t comm = 0; comm < comms.size(); ++comm) {
    std::uint32_t variable = comm == 0 ? 0 : 1;
    const auto is_free = [&] {
      return std::none_of(comms[comm].begin(), comms[comm].end(),
                          [&](Rank r) { return taken[variable][static_cast<std::size_t>(r)]; });
    };
    while (variable < taken.size() && !is_free()) ++variable;
    if (variable >= taken.size()) {
      taken.resize(variable + 1, std::vector<bool>(ranks, false));
      result.comms.resize(variable + 1);
    }
    for (const Rank rank : comms[comm]) taken[variable][static_cast<std::size_t>(rank)] = true;
    result.comms[variable].push_back(comm);
    result.variable.push_back(variable);
  }
  return result;
}

std::vector<RankGroup> group_ranks(const Signature& signature, const CommVariables& variables,
                                   const Exchange& exchange) {
  return Grouper(signature, variables, exchange).run();
}

std::string text_of(std::span<const Rank> ranks) {
  constexpr std::size_t kMostShown = 8;
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < ranks.size(); ++shown) {
    if (shown == kMostShown) return std::to_string(ranks.size()) + " ranks: " + text + ",...";
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace lbf::skeleton
