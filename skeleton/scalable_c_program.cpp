#include "skeleton/scalable_c_program.h"

#include <array>
#include <cstdio>

#include "base/crc32c.h"
#include "base/number.h"
#include "skeleton/about.h"
#include "skeleton/c_prelude.h"
#include "skeleton/call_name.h"
#include "skeleton/scalable_prelude.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {
namespace {

constexpr double kMicro = 1e6;
constexpr double kLeast_s = 5e-8;  // as c_exchange: less is not computed

std::string steps_text(StepRange range) {
  switch (range) {
    case StepRange::kDoubling:
      return "for (i = 0, step = 0; i < doublings(); ++i, ++step) {";
    case StepRange::kHalving:
      return "for (i = 0, step = doublings() - 1; step >= 0; ++i, --step) {";
    case StepRange::kTurns:
      return "for (i = 0, step = 1; step < ranks; ++i, ++step) {";
    case StepRange::kRanks:
      return "for (i = 0, step = 0; step < ranks; ++i, ++step) {";
    case StepRange::kOnce:
      break;
  }
  return "{";
}

class Writer {
 public:
  Writer(const ScalableProgram& program, std::uint64_t factor) : program_(program), factor_(factor) {}

  std::string run() {
    const std::string whole = parts(program_.parts, false);
    const std::string rest = parts(program_.parts, true);
    std::string text = tables_ + phases_ + "\n" + declarations_ + bodies_;
    text += "\nenum { PHASES = " + std::to_string(phase_count_) + " };\nstatic void run_phase(int phase) {\n";
    for (int i = 0; i < phase_count_; ++i) {
      text += "  if (phase == " + std::to_string(i) + ") phase_" + std::to_string(i + 1) + "(1);\n";
    }
    // A program without loops is all remainder.
    return text + "}\n\nstatic void run(void) {\n" +
           (factor_ == 1 ? whole : "  const double k = K;\n" + rest) + "}\n";
  }

 private:
  // The calls of a list, each loop whole, or divided by the k that is known there. Of n / k iterations the
  // whole ones are executed, and what is left of them is one iteration that is divided itself: its messages
  // have their latency once.
  std::string parts(const std::vector<ScalablePart>& list, bool divided) {
    std::string text;
    for (const ScalablePart& part : list) {
      const std::string id = std::to_string(id_of(part));
      if (!part.is_loop) {
        text += "  phase_" + id + (divided ? "(k);\n" : "(1);\n");
        continue;
      }
      if (divided) {
        text += "  {\n    const double n = count(" + c_text(part.count) +
                ") / k;\n    long i, whole = (long)(n + 1e-6);\n    for (i = 0; i < whole; ++i) body_" + id +
                "();\n    if (n - whole > 1e-6) rest_" + id + "(1 / (n - whole));\n  }\n";
      } else {
        text += "  {\n    long i, n = count(" + c_text(part.count) + ");\n    for (i = 0; i < n; ++i) body_" +
                id + "();\n  }\n";
      }
    }
    return text;
  }

  // The number of a phase or loop, which is written when it is met first.
  int id_of(const ScalablePart& part) {
    for (const auto& [known, id] : ids_) {
      if (known == &part) return id;
    }
    const int id = part.is_loop ? ++loop_count_ : ++phase_count_;
    ids_.emplace_back(&part, id);
    if (!part.is_loop) {
      phase(part.phase, id);
      return id;
    }
    const std::string name = std::to_string(id);
    declarations_ +=
        "static inline void body_" + name + "(void);\nstatic inline void rest_" + name + "(double k);\n";
    const std::string whole = parts(part.body, false);
    const std::string rest = parts(part.body, true);
    bodies_ += "\nstatic inline void body_" + name + "(void) {\n" + whole + "}\nstatic inline void rest_" +
               name + "(double k) {\n" + (factor_ == 1 ? "  (void)k;\n" : rest) + "}\n";
    return id;
  }

  void line(const std::string& text) {
    phases_ += std::string(static_cast<std::size_t>(2 * indent_), ' ') + text + "\n";
  }

  void phase(const Phase& phase, int id) {
    phases_ +=
        "\nstatic void phase_" + std::to_string(id) + "(double k) {\n  int i = 0, step = 0, peer = 0;\n";
    phases_ += "  (void)i, (void)step, (void)peer, (void)k;\n";
    std::uint32_t number = 0;
    for (const Block& block : phase.blocks) {
      const bool once = block.range == StepRange::kOnce;
      if (!once) line(steps_text(block.range));
      indent_ += once ? 0 : 1;
      for (const Term& term : block.terms) this->term(term, number++, !once);
      indent_ -= once ? 0 : 1;
      if (!once) line("}");
    }
    phases_ += "}\n";
  }

  static bool is_anything(const RankLaw& law) { return law.factor >= kLeast_s || law.offset >= kLeast_s; }

  void time(const char* call, const RankLaw& first, const RankLaw& again, bool steps,
            const std::string& shape) {
    if (!is_anything(first) && !(steps && is_anything(again))) return;
    std::string length = c_text(first, kMicro);
    if (steps) length = "(i == 0 ? " + length + " : " + c_text(again, kMicro) + ")";
    if (!shape.empty() && !steps) length = "(" + length + ")";
    line(std::string(call) + "(" + length + shape + ", k);");
  }

  std::string shape_of(const Term& term) {
    if (term.shape.empty()) return "";
    const std::string id = std::to_string(++tables_made_);
    tables_ += "static const double shape_" + id + "[8] = {";
    for (std::size_t i = 0; i < term.shape.size(); ++i)
      tables_ += (i > 0 ? ", " : "") + format_number(term.shape[i], "%.4g");
    tables_ += "};\nstatic unsigned turn_" + id + ";\n";
    return " * draw(shape_" + id + ", &turn_" + id + ")";
  }

  void times(const Term& term, bool steps) {
    const bool timed = is_anything(term.computation_s) || (steps && is_anything(term.computation_again_s));
    time("computed", term.computation_s, term.computation_again_s, steps, timed ? shape_of(term) : "");
    time("idled", term.idle_s, term.idle_again_s, steps, "");
  }

  void term(const Term& term, std::uint32_t id, bool steps) {
    const std::string guard = c_text(term.guard);
    if (!guard.empty()) {
      line("if (" + guard + ") {");
      ++indent_;
    }
    if (has_peer(term.kind)) {
      line("peer = " + c_text(term.peer) + ";");
      if (has_borders(term.peer.kind)) {
        times(term, steps);
        line("if (peer >= 0) " + message(term, id));
      } else {
        line("if (peer >= 0) {");
        ++indent_;
        times(term, steps);
        line(message(term, id));
        --indent_;
        line("}");
      }
    } else {
      times(term, steps);
    }
    if (term.kind == OperationKind::kWait) {
      std::string terms;
      for (const std::uint32_t each : term.waits) terms += (terms.empty() ? "" : ", ") + std::to_string(each);
      line("{ static const int terms[] = {" + terms + "}; wait_for(terms, " +
           std::to_string(term.waits.size()) + "); }");
    } else if (!has_peer(term.kind) && term.kind != OperationKind::kEnd) {
      collective(term, id);
    }
    if (!guard.empty()) {
      --indent_;
      line("}");
    }
  }

  std::string message(const Term& term, std::uint32_t id) const {
    const std::string bytes = c_text(term.bytes);
    const std::string ends = c_text(term.tag) + ", " + std::to_string(term.comm);
    const std::string sync = (term.flags & kFlagSync) != 0 ? ", 1" : ", 0";
    const std::string number = std::to_string(id);
    switch (term.kind) {
      case OperationKind::kSend:
        if ((term.flags & kFlagBuffered) != 0)
          return "buffered_send_to(peer, " + bytes + ", " + ends + ", k);";
        return "send_to(peer, " + bytes + ", " + ends + sync + ", k);";
      case OperationKind::kIsend:
        return "start_send(" + number + ", peer, " + bytes + ", " + ends + sync + ", k);";
      case OperationKind::kRecv:
        return "receive_from(peer, " + bytes + ", " + ends + ");";
      case OperationKind::kIrecv:
        return "start_receive(" + number + ", peer, " + bytes + ", " + ends + ");";
      default:
        return "probe_from(peer, " + ends + ");";
    }
  }

  void collective(const Term& term, std::uint32_t id) {
    const bool nonblocking = term.kind == OperationKind::kIcollective;
    const CollectiveName name = collective_name(term.op);
    const std::string comm = std::to_string(term.comm);
    const std::string head = std::string("MPI_") + (nonblocking ? name.nonblocking : name.blocking) + "(";
    const std::string tail = "comm[" + comm + "]" + (nonblocking ? ", &slot->request);" : ");");
    const std::string root = c_text(term.root) + ", ";
    line("if (!counting) {");
    ++indent_;
    const bool has_bytes = term.op != CollectiveOp::kBarrier && term.op != CollectiveOp::kCommCreate;
    line("const int n = " + (has_bytes ? "bytes_of(" + c_text(term.bytes) + ", k)" : "8") +
         ", last = size_of[" + comm + "] - 1;");
    line("const double all = (double)n * " + std::string(name.part_for_each_rank ? "(last + 1)" : "1") + ";");
    std::string out = "out_of(all)";
    std::string in = "in_of(all)";
    if (nonblocking) {
      line("struct slot *slot = start(" + std::to_string(id) + ");");
      line("char *const memory = room_of(&slot->memory, &slot->size, 2 * all);");
      line("(void)memory;");
      out = "memory";
      in = "memory + (size_t)all";
    }
    line("(void)n, (void)last, (void)all;");
    line(head + arguments(term.op, out, in, root) + tail);
    --indent_;
    line("}");
  }

  static std::string arguments(CollectiveOp op, const std::string& out, const std::string& in,
                               const std::string& root) {
    const std::string vector = "items(n), item(n), operation(n), ";
    const std::string bytes = "n, MPI_BYTE, ";
    const std::string each = "each_of(n, last + 1), each_of(n, last + 1) + last + 1, MPI_BYTE, ";
    switch (op) {
      case CollectiveOp::kBarrier:
        return "";
      case CollectiveOp::kBcast:
        return out + ", " + bytes + root;
      case CollectiveOp::kReduce:
        return out + ", " + in + ", " + vector + root;
      case CollectiveOp::kCommCreate:
        return out + ", " + in + ", 1, MPI_DOUBLE, MPI_SUM, ";
      case CollectiveOp::kAllreduce:
      case CollectiveOp::kReduceScatterBlock:
      case CollectiveOp::kScan:
      case CollectiveOp::kExscan:
        return out + ", " + in + ", " + vector;
      case CollectiveOp::kGather:
      case CollectiveOp::kScatter:
        return out + ", " + bytes + in + ", " + bytes + root;
      case CollectiveOp::kGatherv:
        return out + ", " + bytes + in + ", " + each + root;
      case CollectiveOp::kScatterv:
        return out + ", " + each + in + ", " + bytes + root;
      case CollectiveOp::kAllgatherv:
        return out + ", " + bytes + in + ", " + each;
      case CollectiveOp::kAlltoallv:
      case CollectiveOp::kAlltoallw:
        return out + ", " + each + in + ", " + each;
      case CollectiveOp::kReduceScatter:
        return out + ", " + in + ", each_of(n, last + 1), MPI_BYTE, MPI_BOR, ";
      default:
        return out + ", " + bytes + in + ", " + bytes;
    }
  }

  const ScalableProgram& program_;
  const std::uint64_t factor_;
  std::string tables_, phases_, declarations_, bodies_;
  std::vector<std::pair<const ScalablePart*, int>> ids_;
  int phase_count_ = 0;
  int loop_count_ = 0;
  int tables_made_ = 0;
  int indent_ = 1;
};

std::string list_of(const std::vector<Rank>& counts) {
  std::string text;
  for (const Rank count : counts) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

std::string geometry_name(Geometry::Kind kind) {
  switch (kind) {
    case Geometry::Kind::kBalanced:
      return "LONGEST_FIRST";
    case Geometry::Kind::kBalancedUp:
      return "SHORTEST_FIRST";
    case Geometry::Kind::kFixedColumns:
      return "COLUMNS";
    case Geometry::Kind::kFixedRows:
      return "ROWS";
    default:
      return "NO_GRID";
  }
}

std::string head(const ScalableProgram& program, std::uint64_t factor, const std::string& source) {
  std::string safe;
  for (const char c : source) safe += c == '*' || c == '/' || static_cast<unsigned char>(c) < 32 ? '_' : c;
  return "/* Scalable performance skeleton, made by lbf-skeleton from " + safe + ".\n   Runs of " +
         list_of(program.counts) + " ranks, " + text_of(program.geometry) +
         "; scaling factor K = " + std::to_string(factor) +
         ".\n   Peers, sizes, loops and computation are functions of rank and ranks that hold for these "
         "runs.\n"
         "   Computation is plain processor work, calibrated at the start: not the application's memory "
         "accesses.\n"
         "   mpicc -O2 FILE.c -o skeleton && mpirun -n RANKS ./skeleton\n   LBF_SKELETON_RATE=R takes the "
         "work "
         "per second from an earlier run (its rate=R). */\n";
}

std::string constants(const ScalableProgram& program, std::uint64_t factor) {
  return "#define _POSIX_C_SOURCE 199309L\n#include <mpi.h>\n#include <stdio.h>\n#include "
         "<stdlib.h>\n#include <time.h>\n\nenum {\n  NO_GRID, LONGEST_FIRST, SHORTEST_FIRST, COLUMNS, "
         "ROWS,\n  K = " +
         std::to_string(factor) + ", COMMS = " + std::to_string(program.comms.size()) +
         ", GRID = " + geometry_name(program.geometry.kind) +
         ", DIMS = " + std::to_string(program.geometry.dims) +
         ", FIXED = " + std::to_string(std::max<Rank>(program.geometry.fixed, 1)) +
         "\n};\n\nstatic int rank, ranks;            /* in MPI_COMM_WORLD */\nstatic int shape[3] = {1, 1, "
         "1}; "
         "  /* of the grid that the ranks make, row-major */\nstatic MPI_Comm comm[COMMS];        /* "
         "comm[0]: "
         "MPI_COMM_WORLD */\nstatic int rank_in[COMMS];\nstatic int size_of[COMMS];\nstatic int "
         "*rank_of[COMMS];   "
         "      /* by rank in MPI_COMM_WORLD */\nstatic double rate;                 /* units of work per "
         "second of "
         "processor time */\n";
}

std::string conditions(const ScalableProgram& program) {
  std::vector<CCondition> all = conditions_of(program.geometry);
  if (needs_power_of_two(program))
    all.push_back({"(ranks & (ranks - 1)) == 0", "a power of two, as those of the recorded runs"});
  std::string text = "\nstatic const char *why_not(void) {\n";
  for (const CCondition& each : all) {
    text += "  if (!(" + each.condition + ")) return \"the formulas hold for " + each.text + "\";\n";
  }
  return text + "  return NULL;\n}\n";
}

std::string comms(const ScalableProgram& program) {
  std::string body;
  for (std::size_t i = 1; i < program.comms.size(); ++i)
    body += "  make_comm(" + std::to_string(i) + ", " + c_text(program.comms[i]) + ");\n";
  return "\nstatic void make_comm(int number, int color);\nstatic void make_comms(void) {\n" +
         (body.empty() ? "  (void)make_comm;\n" : body) + "}\n";
}

}  // namespace

std::string scalable_c_program(const ScalableProgram& program, std::uint64_t factor,
                               const std::string& source) {
  std::string text =
      constants(program, factor) + kCWork + kScalablePrelude + conditions(program) + comms(program);
  text += "\nstatic inline long count(double iterations) { return (long)(iterations + 0.5); }\n";
  text += "\n" + Writer(program, factor).run() + kScalableMain;
  std::array<char, 9> id{};
  std::snprintf(id.data(), id.size(), "%08x", crc32c(text));
  const About about{0, factor, 0, id.data()};
  return head(program, factor, source) + text +
         "\n/* For lbf-skeleton run. */\nextern const char lbf_skeleton_about[];\n" +
         "const char lbf_skeleton_about[] = \"" + about_text(about) + "\";\n";
}

}  // namespace lbf::skeleton
