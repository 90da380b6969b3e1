// Measuring without a capture: with LBF_PROCEDURES_ALONE in the environment and this library preloaded, procedures are
// measured from the program's start, and a table is written to LBF_PROCEDURES_REPORT when it ends
// (docs/procedures.md, "Alone").
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/measuring.h"
#include "spank_plugin/procedures/sampler.h"

namespace lbf::procedures {
namespace {

void write_report(std::FILE* out) {
  const double rate = ticks_per_s();
  std::fprintf(out, "# procedure\tcalls\tinclusive_s\tself_s\tleft_by_jump\tstate\n");
  for (const SelectedProcedure& procedure : measuring.procedures->selection().selected) {
    if (procedure.entries == 0) continue;
    const CallSums sums = sums_of(procedure.id);
    static constexpr const char* kStates[] = {"measured", "off", "off-by-cost"};
    std::fprintf(out, "%s\t%llu\t%.9f\t%.9f\t%llu\t%s\n", procedure.name.c_str(),
                 static_cast<unsigned long long>(sums.calls), static_cast<double>(sums.inclusive_ticks) / rate,
                 static_cast<double>(sums.self_ticks) / rate, static_cast<unsigned long long>(sums.left_by_jump),
                 kStates[static_cast<int>(measuring.procedures->state(procedure.id))]);
  }
  std::fprintf(out, "# missed\t%llu\n# call_ns\t%.2f\n", static_cast<unsigned long long>(missed_calls()),
               measuring.call_ticks / rate * 1e9);
}

void write_samples(std::FILE* out) {
  LoadedSymbols symbols;
  const Result<std::size_t> read = symbols.read("liblbf_procedures");
  if (!read) return say(read.error().message);
  const SampleProfile profile = Sampler::profile(symbols);
  std::fprintf(out, "# samples\t%llu\tdropped\t%llu\n# procedure\tinclusive\texclusive\n",
               static_cast<unsigned long long>(profile.samples), static_cast<unsigned long long>(profile.dropped));
  for (const SampledProcedure& procedure : profile.procedures) {
    const auto samples = static_cast<double>(profile.samples);
    std::fprintf(out, "%s\t%.4f\t%.4f\n", procedure.name.c_str(), static_cast<double>(procedure.inclusive) / samples,
                 static_cast<double>(procedure.exclusive) / samples);
  }
}

std::FILE* report_file(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  std::FILE* file = std::fopen(path, "we");
  if (file == nullptr) say(std::string("the report ") + path + " cannot be written: " + std::strerror(errno));
  return file;
}

pid_t own_process = 0;
bool samples_alone = false;

[[gnu::constructor]] void begin_alone() {
  const char* list = std::getenv("LBF_PROCEDURES_ALONE");
  const char* samples = std::getenv("LBF_PROCEDURES_SAMPLES");
  own_process = getpid();
  if (samples != nullptr && *samples != '\0') {
    guarded(
        [] {
          const Result<std::size_t> started = Sampler::start();
          if (!started) say(started.error().message);
          return samples_alone = started.ok();
        },
        false);
  }
  if (list == nullptr || *list == '\0') return;
  measuring.alone = true;
  const char* limit = std::getenv("LBF_PROCEDURES_LIMIT");
  start(list, limit != nullptr ? std::atof(limit) : 0, 0);
}

[[gnu::destructor]] void end_alone() {
  if (getpid() != own_process) return;
  guarded(
      [] {
        const NotMeasured no_times;
        if (samples_alone) {
          Sampler::stop();
          if (std::FILE* out = report_file("LBF_PROCEDURES_SAMPLES")) {
            write_samples(out);
            std::fclose(out);
          }
        }
        if (measuring.procedures != nullptr) {
          if (std::FILE* out = report_file("LBF_PROCEDURES_REPORT")) {
            write_report(out);
            std::fclose(out);
          }
        }
        return true;
      },
      false);
}

}  // namespace
}  // namespace lbf::procedures
