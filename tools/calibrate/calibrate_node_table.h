// What lbf-calibrate makes of the output of its program about a node's processors (calibrate_node.c): the tables
// [memory] and [threads], and what [about] says of them.
//
// Implements the writing side of docs/formats/network-v1.md. No processes or files in here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// Everything that one run of lbf-calibrate-node printed.
struct NodeTimes {
  std::string node;
  std::string processor;  // model; empty: not said
  std::uint32_t domains = 0;
  std::uint32_t cores = 0;           // of the measured domain, that the program could use ...
  std::uint32_t domain_cores = 0;    // ... and that it has
  std::uint32_t others_percent = 0;  // of the measurement's time others had the processors
  bool complete = false;
  std::map<std::uint32_t, std::vector<Nanoseconds>> gigabyte_ns;  // of 10^9 bytes, by cores
  // Of one region, by runtime and threads.
  std::map<std::string, std::map<std::uint32_t, std::vector<Nanoseconds>>> team_ns;
};

// Takes one line of the output. Errors: a line that the program never prints.
Result<void> read_node_line(std::string_view line, NodeTimes& measured);

// Median bandwidth by cores, in bytes per second.
std::map<std::uint32_t, double> bandwidth_of(const NodeTimes& measured);

// [memory], and [threads] by GNU's runtime, else by the other one that was measured. Nothing where nothing was
// measured.
std::string node_tables(const NodeTimes& measured);

// Lines of [about]: where it was measured, quartiles and numbers of samples, all runtimes.
std::string node_about(const NodeTimes& measured);

// Others had the processors for so long that nothing measured is to be relied on. Empty: they had not.
std::string node_warning(const NodeTimes& measured);

// For the summary on stdout.
std::string node_summary(const NodeTimes& measured);

}  // namespace lbf::tools
