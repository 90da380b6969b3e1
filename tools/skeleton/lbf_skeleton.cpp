// lbf-skeleton: performance skeletons (Sodhi, Subhlok & Xu): the execution signature of a recorded program,
// and a C/MPI program of a wanted run time made from it.
//
// Implements design.md section 6 and docs/skeletons.md; docs/man/lbf-skeleton.1 has the options.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

#include "advisor/report/text.h"
#include "skeleton/c_program.h"
#include "skeleton/notation.h"
#include "skeleton/operation_reader.h"
#include "skeleton/scale.h"
#include "skeleton/signature.h"
#include "tools/support/progress.h"
#include "tools/whatif/whatif_trace.h"

namespace {

using lbf::skeleton::DominantSequence;
using lbf::skeleton::ScaledSignature;
using lbf::skeleton::Signature;

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr double kMostFactor = 2147483647;

struct Options {
  std::string trace;
  std::string server;
  std::string time;
  std::uint64_t factor = 0;
  double largest_threshold = 0.2;
  double compression = 0;
  std::string output;
  std::string program;
  std::string compiler;
  bool json = false;
};

// File names and traces have others' words in them: one line, nothing that acts on a terminal.
int fail(int status, const std::string& what) {
  std::fprintf(stderr, "lbf-skeleton: error: %s\n", lbf::report::printable(what).c_str());
  return status;
}

void warn(const std::string& what) {
  std::fprintf(stderr, "lbf-skeleton: warning: %s\n", lbf::report::printable(what).c_str());
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// "5s", "500ms", "2m" or "5": seconds; not positive: not understood.
double seconds_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return 0;
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value * 1e-3;
  if (unit == "m" || unit == "min") return value * 60;
  return 0;
}

lbf::Result<lbf::skeleton::ProgramTrace> read_program(const Options& options) {
  lbf::Result<std::unique_ptr<lbf::WhatIfTrace>> trace = lbf::open_trace(options.trace, options.server);
  if (!trace) return trace.error();
  lbf::skeleton::OperationReader reader((*trace)->ranks());
  lbf::Progress progress("lbf-skeleton", "read");
  const auto add = [&](lbf::Rank rank, const lbf::Event& event) { return reader.add(rank, event); };
  lbf::Result<void> read = (*trace)->read(lbf::one_by_one(add), [&](double share) { progress.show(share); });
  if (!read) return lbf::Error{read.error().code, options.trace + ": " + read.error().message};
  lbf::Result<lbf::skeleton::ProgramTrace> program = reader.finish();
  if (!program) return lbf::Error{program.error().code, options.trace + ": " + program.error().message};
  return program;
}

double longest_rank_s(const lbf::skeleton::ProgramTrace& program) {
  double longest = 0;
  for (const auto& operations : program.ranks) {
    double sum = 0;
    for (const auto& o : operations) sum += static_cast<double>(o.process_s) + o.idle_s + o.call_s;
    longest = std::max(longest, sum);
  }
  return longest;
}

// The wanted scaling factor K; 0: none was asked for.
lbf::Result<std::uint64_t> factor_of(const Options& options, double application_s) {
  if (options.time.empty()) return options.factor;
  const double wanted_s = seconds_of(options.time);
  if (!(application_s > 0)) {
    return lbf::invalid_input("--time: the trace has no times at all, so nobody knows what " + options.time +
                              " are of it; use --factor K");
  }
  const double factor = std::round(application_s / wanted_s);
  if (factor > kMostFactor) {
    return lbf::invalid_input("--time " + options.time +
                              " is less than a 2147483647th of the application's " + number(application_s) +
                              " s");
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(factor));
}

lbf::Result<Signature> signature_of(const Options& options, std::uint64_t& factor) {
  lbf::Result<lbf::skeleton::ProgramTrace> program = read_program(options);
  if (!program) return program.error();
  const lbf::Result<std::uint64_t> wanted = factor_of(options, longest_rank_s(*program));
  if (!wanted) return wanted.error();
  factor = *wanted;
  lbf::skeleton::SignatureOptions how;
  how.largest_threshold = options.largest_threshold;
  // Q = K / 2 (Sec. 4.2).
  how.wanted_compression = options.compression > 0 ? options.compression : static_cast<double>(factor) / 2;
  lbf::Result<Signature> signature = lbf::skeleton::make_signature(std::move(*program), how);
  if (!signature) return lbf::Error{signature.error().code, options.trace + ": " + signature.error().message};
  return signature;
}

int show(const Options& options) {
  std::uint64_t factor = 0;
  const lbf::Result<Signature> signature = signature_of(options, factor);
  if (!signature) return fail(kFailure, signature.error().message);
  std::fputs((options.json ? show_json(*signature) : show_text(*signature)).c_str(), stdout);
  return 0;
}

void warn_of_limits(const Signature& signature, const ScaledSignature& scaled, std::uint64_t factor) {
  const double wanted_s = signature.application_s / static_cast<double>(factor);
  const DominantSequence dominant = dominant_sequence(signature);
  if (factor > 1 && wanted_s < dominant.shortest_good_s) {
    warn("a skeleton of " + number(wanted_s) +
         " s has not one whole iteration of the dominant sequence; from " + number(dominant.shortest_good_s) +
         " s on (K up to " + number(std::floor(signature.application_s / dominant.shortest_good_s)) +
         ") it is expected to be good (Sodhi, Subhlok & Xu, Sec. 4.5)");
  }
  const double wanted_q = static_cast<double>(factor) / 2;
  if (factor > 1 && signature.compression() < wanted_q) {
    warn("the trace was compressed " + number(signature.compression()) + " times, less than K / 2 = " +
         number(wanted_q) + ", at similarity threshold " + number(signature.similarity_threshold));
  }
  if (factor > 1 && scaled.in_loops == 0 && scaled.grouped == 0) {
    warn("K = " + std::to_string(factor) + " is larger than the loops allow: no loop has " +
         std::to_string(factor) + " iterations and no exchange comes " + std::to_string(factor) +
         " times, so everything is scaled down in its parameters, and latencies count in full");
  }
  if (signature.wildcards_fixed > 0) {
    warn(std::to_string(signature.wildcards_fixed) + " of " + std::to_string(signature.wildcards) +
         " wildcard receives get the source that they had: what the rank sends may depend on it");
  }
  if (signature.unmodelled_s > 0) {
    warn(number(signature.unmodelled_s) +
         " s of all ranks were in MPI calls that no skeleton makes: idle time");
  }
}

// Compiles options.output into options.program.
int compile(const Options& options) {
  const char* const arguments[] = {options.compiler.c_str(), "-O2",  options.output.c_str(), "-o",
                                   options.program.c_str(),  nullptr};
  pid_t child = 0;
  // posix_spawnp only reads the arguments.
  const int error =
      ::posix_spawnp(&child, arguments[0], nullptr, nullptr, const_cast<char* const*>(arguments), environ);
  if (error != 0) {
    return fail(kFailure, options.compiler + ": no such compiler here (" + std::strerror(error) + "); " +
                              options.output + " is written: compile it where MPI is installed, or name a " +
                              "compiler with --mpicc or MPICC");
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  return fail(kFailure, options.compiler + " could not compile " + options.output + " (its words are above)");
}

int build(const Options& options) {
  std::uint64_t factor = 0;
  const lbf::Result<Signature> signature = signature_of(options, factor);
  if (!signature) return fail(kFailure, signature.error().message);
  const ScaledSignature scaled = lbf::skeleton::scale(*signature, factor);
  const lbf::Result<std::string> text = lbf::skeleton::c_program(*signature, scaled, options.trace);
  if (!text) return fail(kFailure, options.trace + ": " + text.error().message);
  warn_of_limits(*signature, scaled, factor);
  if (options.output.empty()) {
    std::fputs(text->c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : fail(kFailure, "cannot write to stdout");
  }
  std::ofstream out(options.output, std::ios::binary);
  out << *text;
  if (!out.flush()) return fail(kFailure, options.output + ": cannot write");
  std::fprintf(stderr, "lbf-skeleton: %s: K = %llu, about %s s; compile: mpicc -O2 %s -o skeleton\n",
               lbf::report::printable(options.output).c_str(), static_cast<unsigned long long>(factor),
               number(signature->application_s / static_cast<double>(factor)).c_str(),
               lbf::report::printable(options.output).c_str());
  return options.program.empty() ? 0 : compile(options);
}

void add_common(CLI::App& command, Options& options) {
  command.add_option(
      "TRACE", options.trace,
      "a text trace, a stored trace (file, or folder of stream-*.lbfw), or JOB[.STEP] of a job "
      "that lbfd knows");
  command.add_option("--server", options.server,
                     "where lbfd is (default LBF_SERVER or unix:/run/lbf/lbfd.sock)");
  command
      .add_option("--max-similarity", options.largest_threshold,
                  "largest similarity threshold, 0 (only equal messages) to 0.9 (default 0.2)")
      ->check(CLI::Range(0.0, 0.9));
  command.add_option("--compression", options.compression, "wanted compression Q (default K / 2)")
      ->check(CLI::PositiveNumber);
  command.add_option("--factor,-K", options.factor, "scaling factor K")
      ->check(CLI::Range(std::uint64_t{1}, static_cast<std::uint64_t>(kMostFactor)));
  command.add_option("--time", options.time, "wanted run time of the skeleton, as in 5s, 500ms or 2m");
}

int run(int argc, char** argv) {
  Options options;
  const char* server = std::getenv("LBF_SERVER");
  options.server = server != nullptr && *server != '\0' ? server : "unix:/run/lbf/lbfd.sock";
  CLI::App app{"Performance skeletons: short programs whose run time follows an application's.",
               "lbf-skeleton"};
  app.set_version_flag("--version", std::string("lbf-skeleton ") + LBF_VERSION);
  app.require_subcommand(1);
  CLI::App* const show_command = app.add_subcommand("show", "prints the execution signature of a trace");
  add_common(*show_command, options);
  show_command->add_flag("--json", options.json, "print JSON");
  CLI::App* const build_command = app.add_subcommand("build", "writes the skeleton, a C/MPI program");
  add_common(*build_command, options);
  build_command->add_option("-o,--output", options.output, "the program (default: standard output)");
  const char* compiler = std::getenv("MPICC");
  options.compiler = compiler != nullptr && *compiler != '\0' ? compiler : "mpicc";
  CLI::Option* const program =
      build_command->add_option("--compile", options.program, "compile it into this program, too");
  program->needs("--output");
  build_command->add_option("--mpicc", options.compiler, "the compiler (default MPICC or mpicc)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(kUsage, std::string(error.what()) + "; lbf-skeleton --help lists the commands");
  }
  if (options.trace.empty()) return fail(kUsage, "TRACE is missing: what to make a skeleton from; --help");
  if (!options.time.empty() && options.factor > 0)
    return fail(kUsage, "--time and --factor: give one of them");
  if (!options.time.empty() && !(seconds_of(options.time) > 0))
    return fail(kUsage, "--time " + options.time + " is no time: as in 5s, 500ms or 2m");
  if (*show_command) return show(options);
  if (options.time.empty() && options.factor == 0)
    return fail(kUsage, "--time or --factor is missing: how long shall the skeleton run?");
  return build(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return fail(kFailure, error.what());
  }
}
