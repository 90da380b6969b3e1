// Messages about one stream: ends and answers.
#include "protocol/stream_messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lbf::stream_messages_test {
namespace {

using namespace protocol;

TEST(StreamEnd, HasItsBytes) {
  const std::string bytes = R"({"last_sequence":7,"lost_batches":1,"reason":"relay_killed"})";
  EXPECT_EQ(encode(protocol::StreamEnd{7, 1, "relay_killed"}), bytes);
  EXPECT_EQ(encode(*decode_stream_end(bytes)), bytes);
  const std::string with_why = R"({"last_sequence":7,"lost_batches":1,"reason":"step_end","why":"lbfd refused: x"})";
  EXPECT_EQ(encode(protocol::StreamEnd{7, 1, "step_end", "lbfd refused: x"}), with_why);
  EXPECT_EQ(encode(*decode_stream_end(with_why)), with_why);
}

TEST(StreamEnd, NeedsTheLastSequenceOnly) {
  const auto end = decode_stream_end(R"({"last_sequence":0,"reason":5})");
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->lost_batches, 0u);
  EXPECT_EQ(end->reason, "");
  for (const char* text :
       {"", "[]", "7", "{}", R"({"last_sequence":-1})", R"({"last_sequence":"1"})", R"({"last_sequence":1.5})",
        R"({"last_sequence":1,"lost_batches":-1})", R"({"last_sequence":1,"lost_batches":null})"}) {
    const auto refused = decode_stream_end(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_EQ(decode_stream_end("{}").error().message, "end of a stream: 'last_sequence' must be a whole number");
}

TEST(StreamAnswer, HasItsBytes) {
  StreamAnswer answer{.next_sequence = 3};
  EXPECT_EQ(protocol::json_of(answer).dump(), R"({"next_sequence":3})");
  answer.expected_calls_per_s = 1000.0;
  answer.expected_call_s = 2e-7;
  answer.expected_relay_share = 0.25;
  answer.procedures = ProcedureList{1, {"solve"}, "why"};
  const std::string bytes = R"({"expected_call_s":2e-07,"expected_calls_per_s":1000.0,"expected_relay_share":0.25,)"
                            R"("next_sequence":3,"procedures":{"generation":1,"names":["solve"],"text":"why"}})";
  EXPECT_EQ(protocol::json_of(answer).dump(), bytes);
  EXPECT_EQ(protocol::json_of(decode_stream_answer(bytes)).dump(), bytes);
}

TEST(StreamAnswer, AWrongTypeIsAsIfAbsent) {
  for (const char* text : {"", "[]", "null", R"({"next_sequence":-1})", R"({"next_sequence":"2"})"})
    EXPECT_EQ(decode_stream_answer(text).next_sequence, 0u) << text;
  const auto answer = decode_stream_answer(
      R"({"next_sequence":2,"expected_calls_per_s":"x","expected_call_s":-1,"expected_relay_share":[],"procedures":{"generation":0}})");
  EXPECT_EQ(answer.next_sequence, 2u);
  EXPECT_FALSE(answer.expected_calls_per_s);
  EXPECT_EQ(answer.expected_call_s, 0);
  EXPECT_FALSE(answer.expected_relay_share);
  EXPECT_FALSE(answer.procedures);
}

}  // namespace
}  // namespace lbf::stream_messages_test
