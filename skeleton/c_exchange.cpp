#include "skeleton/c_exchange.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "base/number.h"
#include "skeleton/call_name.h"
#include "skeleton/similarity.h"

namespace lbf::skeleton {
namespace {

std::string with_sign(std::int64_t value) {
  return (value < 0 ? " - " : " + ") + std::to_string(value < 0 ? -value : value);
}

}  // namespace

void CExchangeWriter::line(const std::string& text) {
  functions_ += std::string(static_cast<std::size_t>(2 * indent_), ' ') + text + "\n";
  ++statements_;
}

// By world rank; 0 where a rank is not in the group.
std::string CExchangeWriter::table(const std::vector<Rank>& ranks, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(signature_.ranks), 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) all[static_cast<std::size_t>(ranks[i])] = values[i];
  const std::string name = "table_" + std::to_string(++names_);
  std::string text = "static const int " + name + "[RANKS] = {";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += (i == 0 ? "" : i % 20 == 0 ? ",\n  " : ", ") + std::to_string(all[i]);
  }
  tables_ += text + "};\n";
  return name + "[rank]";
}

std::string CExchangeWriter::times(const std::vector<Rank>& ranks, const std::vector<double>& seconds) {
  constexpr double kAlike = 0.02;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  if (*most - *least <= kAlike * *most) {
    double mean = 0;
    for (const double each : seconds) mean += each / static_cast<double>(seconds.size());
    return format_number(mean * 1e6, "%.6g");
  }
  std::vector<double> all(static_cast<std::size_t>(signature_.ranks), 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) all[static_cast<std::size_t>(ranks[i])] = seconds[i];
  const std::string name = "work_" + std::to_string(++names_);
  tables_ += "static const double " + name + "[RANKS] = {";
  for (std::size_t i = 0; i < all.size(); ++i) {
    tables_ += (i == 0 ? "" : i % 12 == 0 ? ",\n  " : ", ") + format_number(all[i] * 1e6, "%.4g");
  }
  tables_ += "}; /* microseconds */\n";
  return name + "[rank]";
}

// C for "this rank is one of these"; empty: all are.
std::string CExchangeWriter::condition(const std::vector<Rank>& ranks) {
  if (ranks.size() == static_cast<std::size_t>(signature_.ranks)) return "";
  const Rank first = ranks.front();
  if (ranks.size() == 1) return "rank == " + std::to_string(first);
  const Rank step = ranks[1] - first;
  bool regular = true;
  for (std::size_t i = 1; i < ranks.size(); ++i) regular = regular && ranks[i] == ranks[i - 1] + step;
  if (regular) {
    std::string text;
    if (first > 0) text = "rank >= " + std::to_string(first);
    if (ranks.back() + step < signature_.ranks)
      text += (text.empty() ? "" : " && ") + ("rank <= " + std::to_string(ranks.back()));
    if (step > 1) {
      text += (text.empty() ? "" : " && ") + ("rank % " + std::to_string(step) + " == " + std::to_string(first % step));
    }
    return text;
  }
  return table(ranks, std::vector<std::int64_t>(ranks.size(), 1));
}

std::string CExchangeWriter::expression(const Expression& e, const std::vector<Rank>& ranks, std::uint32_t variable) {
  const std::string x = variable == 0 ? "rank" : "rank_in[" + std::to_string(variable) + "]";
  const std::string n = variable == 0 ? "RANKS" : "size_of[" + std::to_string(variable) + "]";
  switch (e.kind) {
    case Expression::Kind::kConstant:
      return std::to_string(e.value);
    case Expression::Kind::kOffset:
      return x + with_sign(e.value);
    case Expression::Kind::kOffsetModulo:
      return e.value < 0 ? "(" + x + with_sign(e.value) + " + " + n + ") % " + n
                         : "(" + x + with_sign(e.value) + ") % " + n;
    case Expression::Kind::kXor:
      return x + " ^ " + std::to_string(e.value);
    case Expression::Kind::kTable:
      return table(ranks, e.table);
  }
  return "0";
}

// Which row of a table with a row for each rank of the group is this rank's.
std::string CExchangeWriter::row_of(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return "0";
  if (ranks.back() - ranks.front() + 1 == static_cast<Rank>(ranks.size()))
    return ranks.front() == 0 ? "rank" : "rank - " + std::to_string(ranks.front());
  std::vector<std::int64_t> rows(ranks.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  return table(ranks, rows);
}

void CExchangeWriter::timing(const SpmdOperation& o, const std::vector<Rank>& ranks) {
  constexpr double kLeast_s = 5e-8;
  if (*std::max_element(o.computation_s.begin(), o.computation_s.end()) >= kLeast_s) {
    std::string length = times(ranks, o.computation_s);
    if (const std::vector<double> shape = draws_->unbiased(o.shape); !shape.empty()) {
      const std::string id = std::to_string(++names_);
      tables_ += "static const double shape_" + id + "[8] = {";
      for (std::size_t i = 0; i < shape.size(); ++i) tables_ += (i > 0 ? ", " : "") + format_number(shape[i], "%.4g");
      tables_ += "};\nstatic unsigned turn_" + id + ";\n";
      length += " * draw(shape_" + id + ", &turn_" + id + ")";
    }
    line("compute(" + length + ", k);");
  }
  if (*std::max_element(o.idle_s.begin(), o.idle_s.end()) >= kLeast_s) {
    line("idle(" + times(ranks, o.idle_s) + ", k);");
  }
}

void CExchangeWriter::statement(const SpmdOperation& o, const std::vector<Rank>& ranks) {
  const Operation& operation = o.operation;
  timing(o, ranks);
  const std::string comm = "comm[" + std::to_string(operation.comm) + "]";
  const std::string slot = std::to_string(operation.slot);
  const auto bytes = [&] { return "shrink(" + expression(o.bytes, ranks, operation.comm) + ", k), MPI_BYTE, "; };
  const auto tag = [&] {
    return (operation.flags & kFlagWildcardTag) != 0 ? std::string("MPI_ANY_TAG")
                                                     : expression(o.tag, ranks, operation.comm);
  };
  const auto from = [&] {
    if ((operation.flags & kFlagWildcardSource) != 0) return std::string("MPI_ANY_SOURCE");
    return expression(o.peer, ranks, operation.comm);
  };
  const auto to = [&] { return expression(o.peer, ranks, operation.comm) + ", " + tag() + ", " + comm; };
  const bool sync = (operation.flags & kFlagSync) != 0;
  switch (operation.kind) {
    case OperationKind::kSend:
      if ((operation.flags & kFlagBuffered) != 0) {
        // A buffered send never waits for its receive.
        line("{ MPI_Request sent; MPI_Isend(out, " + bytes() + to() + ", &sent); MPI_Request_free(&sent); }");
      } else {
        line((sync ? "MPI_Ssend(out, " : "MPI_Send(out, ") + bytes() + to() + ");");
      }
      return;
    case OperationKind::kIsend:
      line((sync ? "MPI_Issend(out, " : "MPI_Isend(out, ") + bytes() + to() + ", &request[" + slot + "]);");
      return;
    case OperationKind::kRecv:
      line("MPI_Recv(in, BUFFER_BYTES, MPI_BYTE, " + from() + ", " + tag() + ", " + comm + ", MPI_STATUS_IGNORE);");
      return;
    case OperationKind::kIrecv:
      if (operation.peer < 0) {
        line("MPI_Irecv(in, 0, MPI_BYTE, MPI_PROC_NULL, 0, " + comm + ", &request[" + slot + "]);");
        return;
      }
      line("MPI_Irecv(arriving[" + slot + "], slot_bytes[" + slot + "], MPI_BYTE, " + from() + ", " + tag() + ", " +
           comm + ", &request[" + slot + "]);");
      return;
    case OperationKind::kProbe:
      line("MPI_Probe(" + from() + ", " + tag() + ", " + comm + ", MPI_STATUS_IGNORE);");
      return;
    case OperationKind::kWait: {
      if (o.slots.size() == 1) {
        line("MPI_Wait(&request[" + std::to_string(o.slots[0]) + "], MPI_STATUS_IGNORE);");
        return;
      }
      bool rising = true;
      for (std::size_t i = 1; i < o.slots.size(); ++i) rising = rising && o.slots[i] == o.slots[i - 1] + 1;
      if (rising) {
        line("MPI_Waitall(" + std::to_string(o.slots.size()) + ", &request[" + std::to_string(o.slots[0]) +
             "], MPI_STATUSES_IGNORE);");
        return;
      }
      std::string slots;
      for (const std::uint32_t each : o.slots) slots += (slots.empty() ? "" : ", ") + std::to_string(each);
      line("{ static const int ends[] = {" + slots + "}; wait_for(" + std::to_string(o.slots.size()) + ", ends); }");
      return;
    }
    case OperationKind::kCancel:
      line("MPI_Cancel(&request[" + slot + "]);");
      line("MPI_Wait(&request[" + slot + "], MPI_STATUS_IGNORE);");
      return;
    case OperationKind::kRequestFree:
      line("MPI_Request_free(&request[" + slot + "]);");
      return;
    case OperationKind::kCollective:
    case OperationKind::kIcollective:
      if (o.sizes.empty()) {
        collective(o, ranks);
      } else {
        vector_collective(o, ranks);
      }
      return;
    case OperationKind::kEnd:
    case OperationKind::kCompute:
      return;
  }
}

void CExchangeWriter::collective(const SpmdOperation& o, const std::vector<Rank>& ranks) {
  const Operation& operation = o.operation;
  const bool nonblocking = operation.kind == OperationKind::kIcollective;
  const CollectiveName name = collective_name(operation.op);
  const std::string slot = std::to_string(operation.slot);
  const std::string receive = nonblocking ? "arriving[" + slot + "]" : "in";
  const std::string tail =
      "comm[" + std::to_string(operation.comm) + "]" + (nonblocking ? ", &request[" + slot + "]);" : ");");
  const std::string head = std::string("MPI_") + (nonblocking ? name.nonblocking : name.blocking) + "(";
  const bool has_size = operation.op != CollectiveOp::kBarrier && operation.op != CollectiveOp::kCommCreate;
  // A table is only made where it is used.
  const std::string size = has_size ? "shrink(" + expression(o.bytes, ranks, operation.comm) + ", k)" : "";
  const std::string bytes = size + ", MPI_BYTE, ";
  const auto root = [&] { return expression(o.root, ranks, operation.comm) + ", "; };
  const std::string vector = "items(" + size + "), item(" + size + "), operation(" + size + "), ";
  switch (operation.op) {
    case CollectiveOp::kBarrier:
      return line(head + tail);
    case CollectiveOp::kBcast:
      return line(head + receive + ", " + bytes + root() + tail);
    case CollectiveOp::kReduce:
      return line(head + "out, " + receive + ", " + vector + root() + tail);
    case CollectiveOp::kCommCreate:
      return line(head + "out, " + receive + ", 1, MPI_DOUBLE, MPI_SUM, " + tail);
    case CollectiveOp::kAllreduce:
    case CollectiveOp::kReduceScatterBlock:
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
      return line(head + "out, " + receive + ", " + vector + tail);
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return line(head + "out, " + bytes + receive + ", " + bytes + root() + tail);
    case CollectiveOp::kGatherv:  // not the root
      return line(head + "out, " + bytes + "NULL, NULL, NULL, MPI_BYTE, " + root() + tail);
    case CollectiveOp::kScatterv:
      return line(head + "NULL, NULL, NULL, MPI_BYTE, " + receive + ", " + bytes + root() + tail);
    default:
      return line(head + "out, " + bytes + receive + ", " + bytes + tail);
  }
}

// Collectives with a size for each peer.
void CExchangeWriter::vector_collective(const SpmdOperation& o, const std::vector<Rank>& ranks) {
  const Operation& operation = o.operation;
  const bool nonblocking = operation.kind == OperationKind::kIcollective;
  const bool both = operation.op == CollectiveOp::kAlltoallv || operation.op == CollectiveOp::kAlltoallw;
  const std::string slot = std::to_string(operation.slot);
  const std::string receive = nonblocking ? "arriving[" + slot + "]" : "in";
  const std::string tail =
      "comm[" + std::to_string(operation.comm) + "]" + (nonblocking ? ", &request[" + slot + "]);" : ");");
  const CollectiveName name = collective_name(operation.op);
  const std::string head = std::string("MPI_") + (nonblocking ? name.nonblocking : name.blocking) + "(";
  const std::size_t columns = o.sizes.front().size();
  const std::string n = std::to_string(columns);
  const bool alike = std::all_of(o.sizes.begin(), o.sizes.end(), [&](const auto& row) { return row == o.sizes[0]; });
  const std::string id = std::to_string(++names_);
  tables_ += "static const int sizes_" + id + "[][" + n + "] = {";
  for (std::size_t row = 0; row < (alike ? 1 : o.sizes.size()); ++row) {
    tables_ += row > 0 ? ",\n  {" : "{";
    for (std::size_t i = 0; i < columns; ++i) tables_ += (i > 0 ? ", " : "") + std::to_string(o.sizes[row][i]);
    tables_ += "}";
  }
  tables_ += "};\nstatic int counts_" + id + "[" + n + "], offsets_" + id + "[" + n + "];\n";
  const std::string counts = "counts_" + id;
  const std::string offsets = "offsets_" + id;
  const std::string row = "sizes_" + id + "[" + (alike ? "0" : row_of(ranks)) + "]";
  const std::string half = std::to_string(columns / 2);
  const auto root = [&] { return expression(o.root, ranks, operation.comm) + ", "; };
  if (both) {
    line("layout(" + row + ", " + half + ", k, " + counts + ", " + offsets + ");");
    line("layout(" + row + " + " + half + ", " + half + ", k, " + counts + " + " + half + ", " + offsets + " + " +
         half + ");");
    line(head + "out, " + counts + ", " + offsets + ", MPI_BYTE, " + receive + ", " + counts + " + " + half + ", " +
         offsets + " + " + half + ", MPI_BYTE, " + tail);
    return;
  }
  line("layout(" + row + ", " + n + ", k, " + counts + ", " + offsets + ");");
  const std::string mine = counts + "[rank_in[" + std::to_string(operation.comm) + "]]";
  switch (operation.op) {
    case CollectiveOp::kGatherv:
      return line(head + "out, " + mine + ", MPI_BYTE, " + receive + ", " + counts + ", " + offsets + ", MPI_BYTE, " +
                  root() + tail);
    case CollectiveOp::kScatterv:
      return line(head + "out, " + counts + ", " + offsets + ", MPI_BYTE, " + receive + ", " + mine + ", MPI_BYTE, " +
                  root() + tail);
    case CollectiveOp::kReduceScatter:
      return line(head + "out, " + receive + ", " + counts + ", MPI_BYTE, MPI_BOR, " + tail);
    default:
      return line(head + "out, " + mine + ", MPI_BYTE, " + receive + ", " + counts + ", " + offsets + ", MPI_BYTE, " +
                  tail);
  }
}

// Room for what the operation sends and receives; never less than the unscaled sizes.
void CExchangeWriter::reserve(const SpmdOperation& o, std::uint64_t comm_size) {
  Bytes most = 0;
  const std::size_t rows = o.sizes.size();
  if (o.bytes.kind == Expression::Kind::kTable) {
    most = static_cast<Bytes>(*std::max_element(o.bytes.table.begin(), o.bytes.table.end()));
  } else {
    // An expression of the rank is largest at one of the ends; an upper bound will do.
    most = static_cast<Bytes>(std::max<std::int64_t>(o.bytes.value, 0)) +
           (o.bytes.kind == Expression::Kind::kConstant ? 0 : 2 * comm_size);
  }
  const bool is_collective =
      o.operation.kind == OperationKind::kCollective || o.operation.kind == OperationKind::kIcollective;
  if (is_collective && collective_name(o.operation.op).part_for_each_rank) most *= comm_size;
  for (std::size_t i = 0; i < rows; ++i) {
    Bytes sum = 0;
    for (const std::uint64_t bytes : o.sizes[i]) sum += bytes;
    most = std::max(most, sum);
  }
  buffer_bytes_ = std::max(buffer_bytes_, most);
  const OperationKind kind = o.operation.kind;
  if (kind == OperationKind::kSend || kind == OperationKind::kIsend)
    largest_message_ = std::max(largest_message_, most);
  if (kind == OperationKind::kIsend || kind == OperationKind::kIrecv || kind == OperationKind::kIcollective) {
    if (o.operation.slot >= slot_bytes_.size()) slot_bytes_.resize(o.operation.slot + 1, 0);
    // What arrives at a receive is for its send to say, which may be in another exchange: see slot_bytes().
    if (kind == OperationKind::kIrecv) receiving_slots_.push_back(o.operation.slot);
    if (kind != OperationKind::kIsend) slot_bytes_[o.operation.slot] = std::max(slot_bytes_[o.operation.slot], most);
  }
}

std::vector<Bytes> CExchangeWriter::slot_bytes() const {
  std::vector<Bytes> bytes = slot_bytes_;
  for (const std::uint32_t slot : receiving_slots_) bytes[slot] = std::max(bytes[slot], largest_message_);
  return bytes;
}

Result<void> CExchangeWriter::add(std::uint32_t number, const Exchange& exchange, const Draws& draws) {
  draws_ = &draws;
  if (number >= signature_.exchanges.size())
    functions_ += "\n/* Has requests under way at its ends in the application; ends them itself here. */";
  functions_ += "\nstatic void exchange_" + std::to_string(number + 1) + "(double k) {\n  (void)k;\n";
  for (const RankGroup& group : group_ranks(signature_, variables_, exchange)) {
    const std::string ranks = condition(group.ranks);
    if (!ranks.empty()) line("if (" + ranks + ") {");
    indent_ = ranks.empty() ? 1 : 2;
    for (const SpmdOperation& operation : group.operations) {
      std::uint64_t comm_size = 1;
      for (const std::uint32_t comm : variables_.comms[operation.operation.comm]) {
        comm_size = std::max<std::uint64_t>(comm_size, signature_.comms[comm].size());
      }
      reserve(operation, comm_size);
      statement(operation, group.ranks);
    }
    indent_ = 1;
    if (!ranks.empty()) line("}");
  }
  functions_ += "}\n";
  if (buffer_bytes_ > static_cast<Bytes>(std::numeric_limits<std::int32_t>::max()) - 8) {
    return Error{ErrorCode::kLimit, "exchange E" + std::to_string(number + 1) + " needs a buffer of " +
                                        std::to_string(buffer_bytes_) +
                                        " bytes; skeletons have less than 2 GiB (docs/skeletons.md, limits)"};
  }
  return {};
}

}  // namespace lbf::skeleton
