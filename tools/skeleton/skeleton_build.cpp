#include "tools/skeleton/skeleton_build.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/http_client.h"
#include "base/quoted.h"
#include "report/selection.h"
#include "report/step.h"
#include "report/text.h"
#include "skeleton/c_program.h"
#include "skeleton/notation.h"
#include "skeleton/operation_reader.h"
#include "skeleton/scale.h"
#include "tools/skeleton/launch.h"
#include "tools/skeleton/skeleton_message.h"
#include "tools/support/progress.h"
#include "tools/whatif/step_query.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {
namespace {

using skeleton::DominantSequence;
using skeleton::ScaledSignature;
using skeleton::Signature;

Seconds longest_rank_s(const skeleton::ProgramTrace& program) {
  Seconds longest_s = 0;
  for (const auto& operations : program.ranks) {
    Seconds sum_s = 0;
    for (const auto& o : operations) sum_s += static_cast<double>(o.process_s) + o.idle_s + o.call_s;
    longest_s = std::max(longest_s, sum_s);
  }
  return longest_s;
}

void warn_of_limits(const Signature& signature, const ScaledSignature& scaled, std::uint64_t factor) {
  const double wanted_s = signature.application_s / static_cast<double>(factor);
  const DominantSequence dominant = dominant_sequence(signature);
  if (factor > 1 && wanted_s < dominant.shortest_good_s) {
    kSkeletonMessages.warn("a skeleton of " + short_number(wanted_s) +
                           " s has not one whole iteration of the dominant sequence; from " +
                           short_number(dominant.shortest_good_s) + " s on (K up to " +
                           short_number(std::floor(signature.application_s / dominant.shortest_good_s)) +
                           ") it is expected to be good (Sodhi, Subhlok & Xu, Sec. 4.5)");
  }
  const double wanted_q = static_cast<double>(factor) / 2;
  if (factor > 1 && signature.compression() < wanted_q) {
    kSkeletonMessages.warn("the trace was compressed " + short_number(signature.compression()) +
                           " times, less than K / 2 = " + short_number(wanted_q) + ", at similarity threshold " +
                           short_number(signature.similarity_threshold));
  }
  if (factor > 1 && scaled.in_loops == 0 && scaled.grouped == 0) {
    kSkeletonMessages.warn("K = " + std::to_string(factor) + " is larger than the loops allow: no loop has " +
                           std::to_string(factor) + " iterations and no exchange comes " + std::to_string(factor) +
                           " times, so everything is scaled down in its parameters, and latencies count too much");
  }
  if (signature.wildcards_fixed > 0) {
    kSkeletonMessages.warn(std::to_string(signature.wildcards_fixed) + " of " + std::to_string(signature.wildcards) +
                           " wildcard receives get the source that they had: what the rank sends may depend on it");
  }
  if (signature.unmodelled_s > 0) {
    kSkeletonMessages.warn(short_number(signature.unmodelled_s) +
                           " s of all ranks were in MPI calls that no skeleton makes: idle time");
  }
}

// How long the step ran by lbfd's measure, in which time that ranks waited for a shared processor counts,
// too; 0: it does not say. open_trace says what is wrong with the job.
Seconds measured_by_lbfd_s(const std::string& job, const std::string& server) {
  const auto jobs = report::parse_jobs(job);
  Result<HttpClient> client = HttpClient::make(server);
  if (!jobs || jobs->size() != 1 || !client) return 0;
  const Result<HttpResponse> answer = ask_for_steps(*client, "/v1/steps?brief=1&" + report::query_of(jobs->front()));
  if (!answer || answer->status != 200) return 0;
  const Result<std::vector<report::Step>> steps = report::parse_steps(answer->body);
  if (!steps || steps->empty() || steps->back().running()) return 0;
  const std::optional<Seconds> measured_s = steps->back().measured_s;
  return measured_s.value_or(0);
}

// The wanted scaling factor K; 0: none was asked for. Errors: a time that no K gives.
Result<std::uint64_t> factor_of(const BuildOptions& options, Seconds application_s) {
  if (!(options.time_s > 0)) return options.factor;
  const std::string wanted = short_number(options.time_s) + " s";
  if (!(application_s > 0)) {
    return invalid_input("--time: the trace has no times at all, so nobody knows what " + wanted +
                         " are of it; use --factor K");
  }
  const double factor = std::round(application_s / options.time_s);
  if (factor > static_cast<double>(kMostFactor)) {
    return invalid_input("--time " + wanted + " is less than a 2147483647th of the application's " +
                         short_number(application_s) + " s");
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(factor));
}

// Writes the source to `output` (standard output: empty) and compiles it where that is asked for, with what
// it says about both on stderr. An exit status.
int write_skeleton(const std::string& text, const BuildOptions& options, std::uint64_t factor, Seconds application_s) {
  if (options.output.empty()) return kSkeletonMessages.write(text);
  std::ofstream out(options.output, std::ios::binary);
  out << text;
  out.close();
  if (!out) return kSkeletonMessages.fail(kExitFailure, options.output + ": cannot write");
  std::fprintf(stderr, "lbf-skeleton: %s: K = %llu, about %s s; compile: mpicc -O2 %s -o skeleton\n",
               report::printable(options.output).c_str(), static_cast<unsigned long long>(factor),
               short_number(application_s / static_cast<double>(factor)).c_str(),
               shell_word(report::printable(options.output)).c_str());
  if (options.program.empty()) return 0;
  const Result<void> compiled = compile_skeleton(options.compiler, options.output, options.program);
  return compiled ? 0 : kSkeletonMessages.fail(compiled.error());
}

}  // namespace

Result<skeleton::ProgramTrace> read_program(const std::string& trace, const std::string& server, TraceName named) {
  Result<std::unique_ptr<WhatIfTrace>> opened =
      named == TraceName::kJob ? open_job_trace(trace, server) : open_trace(trace, server);
  if (!opened) return opened.error();
  skeleton::OperationReader reader((*opened)->ranks());
  Progress progress("lbf-skeleton", "read");
  const auto add = [&](Rank rank, const Event& event) { return reader.add(rank, event); };
  Result<void> read = (*opened)->read(one_by_one(add), [&](double share) { progress.show(share); });
  if (!read) return Error{read.error().code, trace + ": " + read.error().message};
  for (const std::string& note : (*opened)->notes()) kSkeletonMessages.warn(note);
  Result<skeleton::ProgramTrace> program = reader.finish();
  if (!program) return Error{program.error().code, trace + ": " + program.error().message};
  return program;
}

Result<BuiltSignature> build_signature(const BuildOptions& options) {
  Result<skeleton::ProgramTrace> program = read_program(options.trace, options.server, options.named);
  if (!program) return program.error();
  Seconds application_s = options.application_s;
  if (!(application_s > 0) && options.named == TraceName::kJob)
    application_s = measured_by_lbfd_s(options.trace, options.server);
  if (!(application_s > 0)) application_s = longest_rank_s(*program);
  const Result<std::uint64_t> factor = factor_of(options, application_s);
  if (!factor) return factor.error();
  skeleton::SignatureOptions how;
  how.largest_threshold = options.largest_threshold;
  how.wanted_compression = options.compression > 0 ? options.compression : static_cast<double>(*factor) / 2;
  Result<Signature> signature = skeleton::make_signature(std::move(*program), how);
  if (!signature) return Error{signature.error().code, options.trace + ": " + signature.error().message};
  signature->application_s = application_s;
  return BuiltSignature{std::move(*signature), *factor};
}

int skeleton_show(const BuildOptions& options) {
  const Result<BuiltSignature> built = build_signature(options);
  if (!built) return kSkeletonMessages.fail(built.error());
  return kSkeletonMessages.write(options.json ? show_json(built->signature) : show_text(built->signature));
}

int skeleton_build(const BuildOptions& options) {
  const Result<BuiltSignature> built = build_signature(options);
  if (!built) return kSkeletonMessages.fail(built.error());
  const Signature& signature = built->signature;
  const ScaledSignature scaled = skeleton::scale(signature, built->factor);
  const Result<std::string> text = skeleton::c_program(signature, scaled, options.trace);
  if (!text) return kSkeletonMessages.fail(kExitFailure, options.trace + ": " + text.error().message);
  warn_of_limits(signature, scaled, built->factor);
  return write_skeleton(*text, options, built->factor, signature.application_s);
}

}  // namespace lbf::tools
