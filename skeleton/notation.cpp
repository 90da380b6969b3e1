#include "skeleton/notation.h"

#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/number.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {
namespace {

class NotationWriter {
 public:
  explicit NotationWriter(const LoopBodies& bodies) : bodies_(bodies) {}

  Notation write(const Elements& elements) {
    Notation result;
    result.signature = "{" + list(elements) + "}";
    // Bodies may mention further loops, which get the next numbers.
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::string name = "L_" + std::to_string(i);
      result.loops.push_back(name + " = [" + list(bodies_[order_[i]]) + "]");
    }
    return result;
  }

 private:
  std::string list(const Elements& elements) {
    std::string text;
    for (std::size_t i = 0; i < elements.size(); ++i) text += (i > 0 ? ", " : "") + one(elements[i]);
    return text;
  }
  std::string one(const Element& element) {
    if (!element.is_loop) return "E" + std::to_string(element.value + 1);
    const Elements& body = bodies_[element.value];
    std::string name;
    if (body.size() == 1 && !body.front().is_loop) {
      name = one(body.front());
    } else {
      const auto [known, made] = names_.emplace(element.value, order_.size());
      if (made) order_.push_back(element.value);
      name = "L_" + std::to_string(known->second);
    }
    return "(" + name + ":" + std::to_string(element.count) + ")";
  }

  const LoopBodies& bodies_;
  std::map<std::uint32_t, std::size_t> names_;
  std::vector<std::uint32_t> order_;
};

constexpr std::array<const char*, 23> kCollectives{"Barrier",
                                                   "Bcast",
                                                   "Reduce",
                                                   "Allreduce",
                                                   "Gather",
                                                   "Scatter",
                                                   "Allgather",
                                                   "Alltoall",
                                                   "Reduce_scatter_block",
                                                   "Scan",
                                                   "Exscan",
                                                   "Gatherv",
                                                   "Scatterv",
                                                   "Allgatherv",
                                                   "Alltoallv",
                                                   "Alltoallw",
                                                   "Reduce_scatter",
                                                   "Neighbor_allgather",
                                                   "Neighbor_allgatherv",
                                                   "Neighbor_alltoall",
                                                   "Neighbor_alltoallv",
                                                   "Neighbor_alltoallw",
                                                   "Comm_create"};

std::string expression_text(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::kConstant:
      return std::to_string(e.value);
    case Expression::Kind::kOffset:
      return "rank" + std::string(e.value < 0 ? "" : "+") + std::to_string(e.value);
    case Expression::Kind::kOffsetModulo:
      return "(rank" + std::string(e.value < 0 ? "" : "+") + std::to_string(e.value) + ")%size";
    case Expression::Kind::kXor:
      return "rank^" + std::to_string(e.value);
    case Expression::Kind::kTable:
      break;
  }
  std::string text = "[";
  for (std::size_t i = 0; i < e.table.size() && i < 8; ++i) text += (i > 0 ? "," : "") + std::to_string(e.table[i]);
  return text + (e.table.size() > 8 ? ",...]" : "]");
}

char letter_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::kSend:
    case OperationKind::kIsend:
    case OperationKind::kRecv:
    case OperationKind::kIrecv:
      return 'P';
    case OperationKind::kCollective:
    case OperationKind::kIcollective:
      return 'M';
    default:
      return 'O';
  }
}

// P1, M2, O3 by text, in the order of first mention.
class Symbols {
 public:
  std::string of(const SpmdOperation& operation) {
    const std::string text = operation_text(operation);
    const auto known = names_.find(text);
    if (known != names_.end()) return known->second;
    const char letter = letter_of(operation.operation.kind);
    const std::string name = letter + std::to_string(++counts_[letter]);
    names_.emplace(text, name);
    table_.emplace_back(name, text);
    return name;
  }
  const std::vector<std::pair<std::string, std::string>>& table() const { return table_; }

 private:
  std::map<std::string, std::string> names_;
  std::map<char, int> counts_;
  std::vector<std::pair<std::string, std::string>> table_;
};

// As in {(P1:2), O1}.
std::string group_text(Symbols& symbols, const RankGroup& group) {
  std::vector<std::pair<std::string, int>> runs;
  for (const SpmdOperation& operation : group.operations) {
    const std::string name = symbols.of(operation);
    if (!runs.empty() && runs.back().first == name) {
      ++runs.back().second;
    } else {
      runs.emplace_back(name, 1);
    }
  }
  std::string text = "{";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += i > 0 ? ", " : "";
    text += runs[i].second == 1 ? runs[i].first : "(" + runs[i].first + ":" + std::to_string(runs[i].second) + ")";
  }
  return text + "}";
}

std::string dominant_text(const DominantSequence& dominant) {
  if (dominant.parts.empty()) {
    return "dominant sequence: none (no loops make up " + format_number(100 * kDominantShare, "%.0f") +
           " % of the time); shortest good skeleton: " + format_number(dominant.shortest_good_s, "%.6g") + " s\n";
  }
  return "dominant sequence: " + std::to_string(dominant.parts.size()) +
         (dominant.parts.size() == 1 ? " loop" : " loops") + " with " + format_number(100 * dominant.share, "%.1f") +
         " % of the time; shortest good skeleton: " + format_number(dominant.shortest_good_s, "%.6g") + " s\n";
}

}  // namespace

Notation notation(const LoopBodies& bodies, const Elements& elements) {
  return NotationWriter(bodies).write(elements);
}

std::string operation_text(const SpmdOperation& o) {
  const Operation& operation = o.operation;
  const std::string comm = operation.comm == 0 ? "" : ", comm_" + std::to_string(operation.comm);
  const std::string bytes = expression_text(o.bytes) + " bytes";
  const std::string tag = (operation.flags & kFlagWildcardTag) != 0 ? "any tag" : "tag " + expression_text(o.tag);
  const std::string from =
      (operation.flags & kFlagWildcardSource) != 0 ? "from any" : "from " + expression_text(o.peer);
  const std::string to = "to " + expression_text(o.peer);
  const bool sync = (operation.flags & kFlagSync) != 0;
  switch (operation.kind) {
    case OperationKind::kSend:
      return std::string((operation.flags & kFlagBuffered) != 0 ? "MPI_Bsend("
                         : sync                                 ? "MPI_Ssend("
                                                                : "MPI_Send(") +
             to + ", " + bytes + ", " + tag + comm + ")";
    case OperationKind::kIsend:
      return std::string(sync ? "MPI_Issend(" : "MPI_Isend(") + to + ", " + bytes + ", " + tag + comm + ")";
    case OperationKind::kRecv:
      return "MPI_Recv(" + from + ", " + bytes + ", " + tag + comm + ")";
    case OperationKind::kIrecv:
      return "MPI_Irecv(" + from + ", " + bytes + ", " + tag + comm + ")";
    case OperationKind::kProbe:
      return "MPI_Probe(" + from + ", " + tag + comm + ")";
    case OperationKind::kWait:
      return o.slots.size() == 1 ? "MPI_Wait()" : "MPI_Waitall(" + std::to_string(o.slots.size()) + ")";
    case OperationKind::kCancel:
      return "MPI_Cancel()";
    case OperationKind::kRequestFree:
      return "MPI_Request_free()";
    case OperationKind::kEnd:
      return "end";
    case OperationKind::kCompute:
      return "compute";
    case OperationKind::kCollective:
    case OperationKind::kIcollective:
      break;
  }
  std::string name = kCollectives[static_cast<std::size_t>(operation.op)];
  if (operation.kind == OperationKind::kIcollective) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    name = "I" + name;
  }
  std::string text = "MPI_" + name + "(" + bytes;
  const bool rooted = operation.op == CollectiveOp::kBcast || operation.op == CollectiveOp::kReduce ||
                      operation.op == CollectiveOp::kGather || operation.op == CollectiveOp::kScatter ||
                      operation.op == CollectiveOp::kGatherv || operation.op == CollectiveOp::kScatterv;
  if (rooted) text += ", root " + expression_text(o.root);
  return text + comm + ")";
}

std::string show_text(const Signature& s) {
  std::string text =
      std::to_string(s.ranks) + " ranks, " + std::to_string(s.events) + " events, " + std::to_string(s.trace_length) +
      " operations; application " + format_number(s.application_s, "%.6g") + " s\nsimilarity threshold " +
      format_number(s.similarity_threshold, "%.2f") + "; compression Q = " + format_number(s.compression(), "%.1f") +
      " (" + std::to_string(s.signature_length) + " operations in the signature)\n";
  text += dominant_text(dominant_sequence(s));
  if (s.wildcards > 0) {
    text += "wildcard receives: " + std::to_string(s.wildcards) + ", of which " + std::to_string(s.wildcards_fixed) +
            " are replayed with the match that happened\n";
  }
  if (s.unmodelled_s > 0)
    text += "calls that no skeleton makes: " + format_number(s.unmodelled_s, "%.4g") +
            " s of all ranks, kept as idle time\n";
  if (s.blocked_s > 0)
    text += "off the processor: " + format_number(s.blocked_s, "%.4g") + " s of all ranks, kept as idle time\n";

  const CommVariables variables = comm_variables(s.comms);
  Symbols symbols;
  std::string exchanges;
  for (std::size_t e = 0; e < s.exchanges.size(); ++e) {
    const Exchange& exchange = s.exchanges[e];
    exchanges += "  E" + std::to_string(e + 1) + ": " + std::to_string(exchange.occurrences) + " times, " +
                 format_number(exchange.seconds, "%.4g") + " s each" +
                 (exchange.is_closed ? "\n" : ", with requests under way at its ends\n");
    for (const RankGroup& group : group_ranks(s, variables, exchange)) {
      exchanges += "    rank " + text_of(group.ranks) + ": " + group_text(symbols, group) + "\n";
    }
  }
  for (std::size_t v = 1; v < variables.comms.size(); ++v) {
    text += "comm_" + std::to_string(v) + ":";
    for (std::size_t c = 0; c < variables.comms[v].size() && c < 8; ++c)
      text += std::string(c > 0 ? "; " : " ") + text_of(s.comms[variables.comms[v][c]]);
    text += variables.comms[v].size() > 8 ? "; ...\n" : "\n";
  }
  text += "\nsymbols\n";
  for (const auto& [name, what] : symbols.table()) text += "  " + name + ": " + what + "\n";
  const Notation written = notation(s.bodies, s.elements);
  text += "\nexchanges\n" + exchanges + "\nsignature\n  " + written.signature + "\n";
  for (const std::string& loop : written.loops) text += "  " + loop + "\n";
  return text;
}

namespace {

nlohmann::ordered_json elements_json(const LoopBodies& bodies, const Elements& elements) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Element& element : elements) {
    if (element.is_loop) {
      list.push_back({{"iterations", element.count}, {"body", elements_json(bodies, bodies[element.value])}});
    } else {
      list.push_back("E" + std::to_string(element.value + 1));
    }
  }
  return list;
}

}  // namespace

std::string show_json(const Signature& s) {
  nlohmann::ordered_json json;
  json["ranks"] = s.ranks;
  json["events"] = s.events;
  json["operations"] = s.trace_length;
  json["signature_operations"] = s.signature_length;
  json["compression"] = s.compression();
  json["similarity_threshold"] = s.similarity_threshold;
  json["application_s"] = s.application_s;
  json["computation_s"] = s.computation_s;
  json["calls_s"] = s.calls_s;
  json["unmodelled_s"] = s.unmodelled_s;
  json["blocked_s"] = s.blocked_s;
  json["wildcards"] = s.wildcards;
  json["wildcards_fixed"] = s.wildcards_fixed;
  const DominantSequence dominant = dominant_sequence(s);
  json["dominant_share"] = dominant.share;
  json["shortest_good_s"] = dominant.shortest_good_s;
  const CommVariables variables = comm_variables(s.comms);
  json["exchanges"] = nlohmann::ordered_json::array();
  for (std::size_t e = 0; e < s.exchanges.size(); ++e) {
    const Exchange& exchange = s.exchanges[e];
    nlohmann::ordered_json entry;
    entry["name"] = "E" + std::to_string(e + 1);
    entry["occurrences"] = exchange.occurrences;
    entry["seconds"] = exchange.seconds;
    entry["closed"] = exchange.is_closed;
    entry["groups"] = nlohmann::ordered_json::array();
    for (const RankGroup& group : group_ranks(s, variables, exchange)) {
      nlohmann::ordered_json operations = nlohmann::ordered_json::array();
      for (const SpmdOperation& operation : group.operations) {
        nlohmann::ordered_json one;
        one["operation"] = operation_text(operation);
        one["computation_s"] = operation.computation_s;
        if (!operation.shape.empty()) one["distribution"] = operation.shape;
        operations.push_back(std::move(one));
      }
      entry["groups"].push_back({{"ranks", group.ranks}, {"operations", std::move(operations)}});
    }
    json["exchanges"].push_back(std::move(entry));
  }
  json["signature"] = elements_json(s.bodies, s.elements);
  return json.dump(2) + "\n";
}

}  // namespace lbf::skeleton
