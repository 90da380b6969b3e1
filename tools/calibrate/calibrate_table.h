// What lbf-calibrate makes of the output of its programs: medians, quartiles, eager limits, the rate of the
// link, and the network file.
//
// Implements the writing side of docs/formats/network-v1.md. No processes or files in here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "tools/calibrate/calibrate_contacts.h"
#include "tools/calibrate/calibrate_local_table.h"
#include "tools/calibrate/calibrate_node_table.h"

namespace lbf::tools {

// A line that no program of lbf-calibrate prints.
Error broken_line(std::string_view line);

// A TOML basic string.
std::string toml_string(std::string_view text);

// Everything that one run of lbf-calibrate-pingpong printed.
struct PingPong {
  std::string library;
  std::string nodes[2];   // where rank 0 and rank 1 ran
  bool yielded = false;   // the ranks had one processor each at most and gave it away while they waited
  bool complete = false;  // the last line was there
  std::map<Bytes, std::vector<Nanoseconds>> half_round_trips_ns;
  // Processor time of one message, measured apart from all waiting; for eager messages between nodes only.
  std::map<Bytes, std::vector<Nanoseconds>> send_work_ns;
  std::map<Bytes, std::vector<Nanoseconds>> recv_work_ns;
  // The same of longer messages, whose ranks sleep between polls: shown, not used.
  std::map<Bytes, std::vector<Nanoseconds>> long_send_work_ns;
  std::map<Bytes, std::vector<Nanoseconds>> long_recv_work_ns;
  enum class Eager { kNotMeasured, kUpToLimit, kAll };
  Eager eager = Eager::kNotMeasured;  // kNotMeasured: the program printed that it could not tell
  Bytes eager_limit_bytes = 0;        // the largest message that needs no receive to be sent (kUpToLimit)
};

// Takes one line of the output. Errors: a line that the program never prints.
Result<void> read_pingpong_line(std::string_view line, PingPong& measured);

// Everything that one run of lbf-calibrate-pingpong link printed.
struct LinkRates {
  std::string nodes[2];  // from, to
  bool complete = false;
  std::map<int, std::vector<double>> bytes_per_s;  // by number of pairs that streamed: of each round
};

// As read_pingpong_line.
Result<void> read_link_line(std::string_view line, LinkRates& measured);

// What a node's link carries: the larger of the medians.
struct LinkBandwidth {
  std::map<int, double> median_bytes_per_s;  // by number of pairs
  double bytes_per_s = 0;
  bool grew = false;  // the most pairs were faster than one by more than a tenth, or there was only one: it
                      // may carry more still
};
// REQUIRES: at least one rate.
LinkBandwidth link_bandwidth(const LinkRates& measured);

// Message of the streams: long, but some of them go through within a round of `round_s`.
Bytes stream_message_bytes(const PingPong& remote, Seconds round_s);

struct Spread {
  Seconds quartile1_s = 0;
  Seconds median_s = 0;
  Seconds quartile3_s = 0;
  std::size_t samples = 0;
};
// Linear interpolation between the two nearest samples. REQUIRES: at least one sample.
Spread spread_of(std::vector<Nanoseconds> samples_ns);

// A half round trip in the parts that predictor/engine/network/network.h adds up.
struct MessageCost {
  Seconds send_cpu_s = 0;
  Seconds flight_s = 0;
  Seconds recv_cpu_s = 0;
};
// By size; empty without measured work. Where the two ranks shared one processor it worked all the time: all
// of it but the switch from one to the other (docs/engine.md, "Turns") is work, half of it of each. Sizes
// beyond the measured work: the line through its last three points. Where the works together exceed the half
// round trip (they overlapped), both are cut in proportion, so that the sum, and the switch, is always what
// was measured.
std::map<Bytes, MessageCost> split_costs(const PingPong& measured, Seconds switch_s = 0);

struct Calibration {
  std::string name;
  std::string date;                   // "2026-11-21T12:00:00Z"
  std::string command;                // as it was typed
  Bytes footprint_bytes = 0;          // of the buffers in turn; 0: always the same one
  std::optional<PingPong> self_node;  // one of the two may be missing
  std::optional<PingPong> remote;
  std::optional<LinkRates> link;  // nothing: no contention in the file
  Bytes link_message_bytes = 0;
  std::optional<Contacts> contacts;  // nothing: no keys of first contacts in the file
  std::optional<Turns> remote_turns;
  std::optional<Turns> self_node_turns;
  std::optional<LocalTimes> local;  // nothing: no [local] in the file
  std::optional<NodeTimes> node;    // nothing: no [memory] and [threads] in the file
};

// The text of the network file.
std::string network_file(const Calibration& calibration);

// "0,1K,64K,4M" -> bytes, ascending, without doubles. Errors: not a number, larger than 1 GiB, nothing.
Result<std::vector<Bytes>> parse_sizes(std::string_view list);

// 0 to 4 MiB: powers of two, and points right below and above Open MPI's eager limits (4 KiB in shared
// memory, 64 KiB over TCP), where the cost jumps.
std::vector<Bytes> default_sizes();

// Letters, digits, '-', '_' and '.'; not empty, no leading '.'.
bool is_network_name(std::string_view name);

// Splits a command at blanks; '...', "..." and \x quote. Errors: an open quote, nothing.
Result<std::vector<std::string>> split_command(std::string_view command);

}  // namespace lbf::tools
