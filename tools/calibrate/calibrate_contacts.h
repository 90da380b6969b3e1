// What lbf-calibrate makes of the output of its programs about first contacts and about waiting ranks
// (calibrate_contact.h, calibrate_turn.h): keys of a [[path]] and what [about] says of them.
//
// Implements the writing side of docs/formats/network-v1.md. No processes or files in here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// Everything that runs of `lbf-calibrate-pingpong contact` printed.
struct Contacts {
  int complete = 0;                             // runs
  std::vector<Nanoseconds> peer_ns;             // the very first message between two ranks without connections
  std::vector<Nanoseconds> first_remote_ns;     // first between two ranks on two nodes that have some
  std::vector<Nanoseconds> first_self_node_ns;  // first between two ranks on one node
};

// Takes one line of the output. Errors: a line that the program never prints.
Result<void> read_contact_line(std::string_view line, Contacts& measured);

// Everything that one run of `lbf-calibrate-pingpong turn` printed.
struct Turns {
  bool complete = false;
  std::vector<Nanoseconds> turn_ns;  // of each round
  std::vector<Nanoseconds> switch_ns;
};

// As read_contact_line.
Result<void> read_turn_line(std::string_view line, Turns& measured);

enum class Locality { kSelfNode, kRemote };

// Lines with first_message_us, first_peer_us, turn_us and switch_us, as far as they were measured (nothing:
// not): medians, 0 where a median is below that. first_peer_us is what the very first message took longer
// than other first ones, by its third quartile: a rank finds the connection at once or after its interval of
// looking, ranks meet at the same time, and the slowest counts.
std::string contact_keys(Locality locality, const std::optional<Contacts>& contacts, const std::optional<Turns>& turns);

// Lines of [about]: quartiles, means and numbers of samples of the same.
std::string contacts_about(const Contacts& contacts);
std::string turns_about(Locality locality, const Turns& turns);

}  // namespace lbf::tools
