#include "skeleton/c_program.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "base/crc32c.h"
#include "base/number.h"
#include "skeleton/about.h"
#include "skeleton/c_exchange.h"
#include "skeleton/c_prelude.h"
#include "skeleton/draws.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {
namespace {

// As C: K where it is that.
std::string divisor_text(const ScaledSignature& scaled, double divisor) {
  return divisor > 1 && divisor == static_cast<double>(scaled.factor) ? "K" : format_number(divisor, "%.6g");
}

void write_elements(const ScaledSignature& scaled, const Elements& elements, int depth, std::string& text) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  for (const Element& element : elements) {
    if (!element.is_loop) {
      const ScaledExchange& symbol = scaled.symbols[element.value];
      text += indent + "exchange_" + std::to_string(symbol.exchange + 1) + "(" + divisor_text(scaled, symbol.divisor) +
              ");\n";
    } else {
      const std::string i = "i" + std::to_string(depth);
      text += indent + "{\n" + indent + "  long " + i + ";\n" + indent + "  for (" + i + " = 0; " + i + " < " +
              std::to_string(element.count) + "; ++" + i + ") {\n";
      write_elements(scaled, scaled.bodies[element.value], depth + 2, text);
      text += indent + "  }\n" + indent + "}\n";
    }
  }
}

// A table of colors and one of keys for each variable, and the function that makes the communicators.
std::string comm_setup(const Signature& signature, const CommVariables& variables) {
  std::string tables;
  std::string body;
  for (std::size_t v = 1; v < variables.comms.size(); ++v) {
    std::vector<std::int64_t> color(static_cast<std::size_t>(signature.ranks), -1);
    std::vector<std::int64_t> key(color.size(), 0);
    for (std::size_t c = 0; c < variables.comms[v].size(); ++c) {
      const std::vector<Rank>& members = signature.comms[variables.comms[v][c]];
      for (std::size_t i = 0; i < members.size(); ++i) {
        color[static_cast<std::size_t>(members[i])] = static_cast<std::int64_t>(c);
        key[static_cast<std::size_t>(members[i])] = static_cast<std::int64_t>(i);
      }
    }
    const std::string name = std::to_string(v);
    for (const auto& [what, values] : {std::pair("color_", &color), std::pair("key_", &key)}) {
      tables += std::string("static const int ") + what + name + "[RANKS] = {";
      for (std::size_t i = 0; i < values->size(); ++i) {
        tables += (i == 0 ? "" : i % 20 == 0 ? ",\n  " : ", ") + std::to_string((*values)[i]);
      }
      tables += "};\n";
    }
    body += "  make_comm(" + name + ", color_" + name + "[rank], key_" + name + "[rank]);\n";
  }
  return tables + "static void make_comms(void) {\n" + (body.empty() ? "  (void)make_comm;\n" : body) + "}\n";
}

std::string head(const Signature& signature, const ScaledSignature& scaled, const std::string& source) {
  std::string safe;
  for (const char c : source) safe += c == '*' || c == '/' || static_cast<unsigned char>(c) < 32 ? '_' : c;
  return "/* Performance skeleton, made by lbf-skeleton from " + safe + ".\n" + "   " +
         std::to_string(signature.ranks) + " ranks; application " + format_number(signature.application_s, "%.6g") +
         " s, scaling factor K = " + std::to_string(scaled.factor) +
         ".\n   Computation is plain processor work, calibrated at the start: not the application's memory "
         "accesses.\n   mpicc -O2 FILE.c -o skeleton && mpirun -n " +
         std::to_string(signature.ranks) +
         " ./skeleton\n   LBF_SKELETON_RATE=R takes the work per second from an earlier run (its rate=R): on "
         "nodes of\n   another speed the same work then takes another time. */\n";
}

std::string constants(const Signature& signature, const ScaledSignature& scaled, const CExchangeWriter& writer,
                      const CommVariables& variables) {
  const std::vector<Bytes> slot_bytes = writer.slot_bytes();
  const std::size_t slots = std::max<std::size_t>(slot_bytes.size(), 1);
  std::string text =
      "#define _POSIX_C_SOURCE 199309L\n#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "
      "<time.h>\n\n";
  text += "enum { RANKS = " + std::to_string(signature.ranks) + ", K = " + std::to_string(scaled.factor) +
          ", COMMS = " + std::to_string(variables.comms.size()) + ", SLOTS = " + std::to_string(slots) +
          ", BUFFER_BYTES = " + std::to_string(writer.buffer_bytes()) + " };\n";
  text += "static const int slot_bytes[SLOTS] = {";
  for (std::size_t i = 0; i < slots; ++i) {
    const Bytes bytes = i < slot_bytes.size() ? slot_bytes[i] : 0;
    text += (i == 0 ? "" : i % 16 == 0 ? ",\n  " : ", ") + std::to_string(bytes);
  }
  return text + "};\n";
}

}  // namespace

Result<std::string> c_program(const Signature& signature, const ScaledSignature& scaled, const std::string& source) {
  const CommVariables variables = comm_variables(signature.comms);
  CExchangeWriter writer(signature, variables);
  std::set<std::uint32_t> used;
  for (const ScaledExchange& symbol : scaled.symbols) used.insert(symbol.exchange);
  const std::vector<Draws> draws = draws_of(signature, scaled);
  const auto too_long = [&](std::uint64_t statements) {
    return Error{ErrorCode::kLimit,
                 "the skeleton would have more than " + std::to_string(statements) +
                     " statements: the application hardly repeats itself at this scaling factor; ask for a "
                     "longer skeleton, or allow less similar messages (--max-similarity)"};
  };
  const std::uint64_t calls =
      written_length<std::uint64_t>(scaled.bodies, scaled.elements, [](auto) { return std::uint64_t{1}; });
  if (calls > kMostStatements) return too_long(kMostStatements);
  for (const std::uint32_t exchange : used) {
    if (Result<void> added = writer.add(exchange, scaled.exchange_of(signature, exchange), draws[exchange]); !added)
      return added.error();
    if (writer.statements() > kMostStatements) return too_long(kMostStatements);
  }
  if (scaled.factor > 2147483647) return invalid_input("a scaling factor above 2147483647");
  std::string text = constants(signature, scaled, writer, variables) + kCPrelude;
  text += "\n" + comm_setup(signature, variables) + "\n" + writer.tables() + writer.functions();
  text += "\nstatic void run(void) {\n";
  write_elements(scaled, scaled.elements, 1, text);
  text += "}\n";
  std::array<char, 9> id{};
  std::snprintf(id.data(), id.size(), "%08x", crc32c(text));
  const About about{signature.ranks, scaled.factor, signature.application_s, id.data()};
  // Of external linkage: the compiler keeps it.
  return head(signature, scaled, source) + text +
         "\n/* For lbf-skeleton run. */\nextern const char lbf_skeleton_about[];\n" +
         "const char lbf_skeleton_about[] = \"" + about_text(about) + "\";\n";
}

}  // namespace lbf::skeleton
