// What the SPANK plugin tells a relay when the step ends: how its tasks ended, and why Slurm ended them (docs/relay.md,
// "Ends"). The byte that ends the step follows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lbf::protocol {

struct TaskEnds {
  std::map<std::int32_t, int> status_of_pid;  // as waitpid() gives it; of tasks that did not exit with 0
  std::string killed_by;                      // StepKilledRecord::by; empty: Slurm did not end the step
};

// No line begins with the byte that ends a step.
inline constexpr char kStepEnds = 'e';
std::string encode(const TaskEnds& ends);
// Takes one line of encode(), without its newline. What breaks the form changes nothing.
void take_line(std::string_view line, TaskEnds& ends);

}  // namespace lbf::protocol
