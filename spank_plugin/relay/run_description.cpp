// See run_description.h.
#include "spank_plugin/relay/run_description.h"

#include <string>
#include <string_view>

namespace lbf::relay {

protocol::StepDescription description_of(const FoundRun& run) {
  constexpr std::size_t kMaxWords = 256;  // as the plugin: for people, not for a parser
  constexpr std::size_t kMaxWordBytes = 1024;
  protocol::StepDescription out;
  out.step = step_number_of_run(run.run);
  out.run = run.run;
  out.tasks = run.world_size;
  out.task_ids = run.ranks;
  out.start_realtime_ns = static_cast<Nanoseconds>(run.start_realtime_ns);
  out.command_cut = run.command.cut;
  for (std::string_view rest = run.command.words; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(word.size() + 1);
    out.command_cut |= out.command.size() == kMaxWords || word.size() > kMaxWordBytes;
    if (out.command.size() == kMaxWords) break;
    out.command.emplace_back(word.substr(0, kMaxWordBytes));
  }
  return out;
}

}  // namespace lbf::relay
