// Messages about one stream, see stream_messages.h.
#include "protocol/stream_messages.h"

#include "protocol/json_fields.h"

namespace lbf::protocol {

using nlohmann::json;

std::string encode(const StreamEnd& end) {
  json out{{"last_sequence", end.last_sequence}, {"lost_batches", end.lost_batches}, {"reason", end.reason}};
  if (!end.why.empty()) out["why"] = end.why;
  return text_of(out);
}

Result<StreamEnd> decode_stream_end(std::string_view text) {
  const json end = json::parse(text, nullptr, false);
  if (!end.is_object()) return invalid_input("end of a stream: not a JSON object");
  for (const char* key : {"last_sequence", "lost_batches"}) {
    const auto found = end.find(key);
    const bool may_be_absent = std::string_view(key) == "lost_batches";
    if (found == end.end() ? !may_be_absent : !found->is_number_unsigned())
      return invalid_input(std::string("end of a stream: '") + key + "' must be a whole number");
  }
  StreamEnd out;
  JsonReader fields(end);
  fields.whole("last_sequence", out.last_sequence);
  fields.whole("lost_batches", out.lost_batches);
  fields.text("reason", out.reason);
  fields.text("why", out.why);
  return out;
}

json json_of(const StreamAnswer& answer) {
  json out{{"next_sequence", answer.next_sequence}};
  if (answer.expected_calls_per_s) out["expected_calls_per_s"] = *answer.expected_calls_per_s;
  if (answer.expected_call_s) out["expected_call_s"] = *answer.expected_call_s;
  if (answer.expected_relay_share) out["expected_relay_share"] = *answer.expected_relay_share;
  if (answer.procedures) out["procedures"] = json_of(*answer.procedures);
  return out;
}

StreamAnswer decode_stream_answer(std::string_view text) {
  StreamAnswer out;
  const json answer = json::parse(text, nullptr, false);
  if (!answer.is_object()) return out;
  JsonReader fields(answer);
  fields.whole("next_sequence", out.next_sequence);
  const auto expectation = [&](const char* key, std::optional<double>& value) {
    fields.number(key, value);
    if (value) value = std::max(0.0, *value);
  };
  expectation("expected_calls_per_s", out.expected_calls_per_s);
  expectation("expected_call_s", out.expected_call_s);
  expectation("expected_relay_share", out.expected_relay_share);
  if (const auto list = answer.find("procedures"); list != answer.end()) out.procedures = procedure_list_of(*list);
  return out;
}

}  // namespace lbf::protocol
