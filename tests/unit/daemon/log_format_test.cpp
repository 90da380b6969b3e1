// Lines of lbfd's log. A user registered a step whose node was called "n1\n2026-11-27T... error disk failed": the log
// had a line that lbfd never said.
#include "predictor/daemon/log_format.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

namespace lbf::log_format_test {
namespace {

using daemon::log_text;

TEST(LogFormat, NoTextMakesALineOfItsOwn) {
  EXPECT_EQ(log_text("n1\n2026 error x"), "n1\\x0a2026 error x");
  EXPECT_EQ(log_text("a\rb\tc\x1b[2Jd\x7f"), "a\\x0db\\x09c\\x1b[2Jd\\x7f");
  EXPECT_EQ(log_text(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(log_text("\xc2\x85 \xe2\x80\xa8 \xe2\x80\xae"), "\\xc2\\x85 \\xe2\\x80\\xa8 \\xe2\\x80\\xae")
      << "next line, line separator, right to left";
}

TEST(LogFormat, NamesOfPeopleStayAsTheyAre) {
  EXPECT_EQ(log_text("J\xc3\xbcrgen \xe5\xb1\xb1 \xf0\x9f\x98\x80"), "J\xc3\xbcrgen \xe5\xb1\xb1 \xf0\x9f\x98\x80");
}

TEST(LogFormat, BytesThatAreNoTextAreNumbers) {
  EXPECT_EQ(log_text("\xff \xc3 \xc0\xaf \xed\xa0\x80 \xe2\x80"), "\\xff \\xc3 \\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x80");
}

TEST(LogFormat, ALongMessageIsCut) {
  const std::string text = log_text(std::string(1 << 20, 'x'));
  EXPECT_EQ(text, std::string(daemon::kMostLogBytes, 'x') + "...");
}

TEST(LogFormat, TheLoggerUsesItForEveryMessage) {
  std::ostringstream out;
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  logger.set_formatter(daemon::make_log_formatter(daemon::LogFormat::kText));
  logger.warn("node {} is gone", "n1\nx");
  const std::string line = out.str();
  EXPECT_NE(line.find(" warning node n1\\x0ax is gone\n"), std::string::npos) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

std::string line_of(daemon::LogFormat format, const std::string& message) {
  std::ostringstream out;
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_st>(out));
  logger.set_formatter(daemon::make_log_formatter(format));
  logger.warn("{}", message);
  return out.str();
}

TEST(LogFormat, JsonHasTheStepAndTheStreamAsKeys) {
  const auto json_of = [](const std::string& message) {
    const std::string line = line_of(daemon::LogFormat::kJson, message);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    return nlohmann::json::parse(line);
  };
  auto line = json_of("step c/12/0/0/1700000000: started, user a\"\\b\n");
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["step"], "c/12/0/0/1700000000");
  EXPECT_EQ(line["msg"], "started, user a\"\\b\\x0a");
  EXPECT_FALSE(line.contains("stream"));
  EXPECT_TRUE(std::regex_match(line["time"].get<std::string>(),
                               std::regex("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z")))
      << line["time"];
  line = json_of("step c/12/0/0, stream 3: no room");
  EXPECT_EQ(line["stream"], "3");
  EXPECT_EQ(line["msg"], "no room");
  for (const char* message : {"step by step: x", "lbfd ended", "step a/b: x", ""}) {
    line = json_of(message);
    EXPECT_EQ(line["msg"], message);
    EXPECT_FALSE(line.contains("step")) << message;
  }
}

TEST(LogFormat, LogfmtQuotesWhatIsMoreThanAWord) {
  const auto rest_of = [](const std::string& line) { return line.substr(line.find(' ') + 1); };
  EXPECT_EQ(rest_of(line_of(daemon::LogFormat::kLogfmt, "step c/1/0/0: is \"x=y\"")),
            "level=warning step=c/1/0/0 msg=\"is \\\"x=y\\\"\"\n");
  EXPECT_EQ(rest_of(line_of(daemon::LogFormat::kLogfmt, "done")), "level=warning msg=done\n");
  EXPECT_EQ(rest_of(line_of(daemon::LogFormat::kLogfmt, "a\nlevel=error msg=x")),
            "level=warning msg=\"a\\\\x0alevel=error msg=x\"\n");
}

}  // namespace
}  // namespace lbf::log_format_test
