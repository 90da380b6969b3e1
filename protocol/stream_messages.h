// What relay and lbfd say to each other about one stream, beside its batches (docs/formats/http-v1.md, "From the
// relay").
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "protocol/procedure_list.h"

namespace lbf::protocol {

// The relay's last word: POST .../end.
struct StreamEnd {
  std::uint64_t last_sequence = 0;
  std::uint64_t lost_batches = 0;
  std::string reason;  // "step_end", "relay_terminated", "relay_killed"
  std::string why{};   // batches were lost, for people; empty: not said
};
std::string encode(const StreamEnd& end);
// Errors (kInvalidInput) name the key.
Result<StreamEnd> decode_stream_end(std::string_view text);

// lbfd's answer to a description, a batch or an end.
struct StreamAnswer {
  std::uint64_t next_sequence = 0;  // batches below it are durable; 0: not said
  // What earlier runs of the program let expect; nothing: none tells. Of a description only.
  std::optional<double> expected_calls_per_s{};
  std::optional<Seconds> expected_call_s{};
  std::optional<double> expected_relay_share{};
  std::optional<ProcedureList> procedures{};
};
nlohmann::json json_of(const StreamAnswer& answer);
// Members of a wrong type count as absent. Expectations are not negative.
StreamAnswer decode_stream_answer(std::string_view text);

}  // namespace lbf::protocol
