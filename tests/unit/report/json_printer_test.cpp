// What --json prints is what nlohmann's document prints, without a document.
#include "report/json_printer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lbf::report::json_printer_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDocuments[] = {
    R"({"steps":[{"job":1,"name":"a\n\"},{é\\","empty":[],"none":{},"x":{"y":[1,{"z":null}]}},{"job":2}]})",
    R"({"steps":[]})",
    R"([[],[[1]],{"a":{}},-1.5e+07,true,"\u001b[31m","","\u007f"])",
    R"("text")",
    R"(7)",
    R"({"emoji":"😀","key é":false})",
};

TEST(JsonPrinter, PrintsWhatTheDocumentPrints) {
  for (const std::string text : kDocuments) {
    const Json document = Json::parse(text);
    const auto pretty = print_json(text, JsonLayout::kPretty);
    ASSERT_TRUE(pretty.ok()) << text;
    // Numbers are passed on as they came: 1.5e+07 stays that.
    EXPECT_EQ(Json::parse(*pretty), document);
    const bool same_numbers = text.find("e+07") == std::string::npos;
    if (same_numbers) {
      EXPECT_EQ(*pretty, document.dump(2, ' ', true) + '\n');
    }
    const auto compact = print_json(text, JsonLayout::kCompact);
    ASSERT_TRUE(compact.ok()) << text;
    if (same_numbers) {
      EXPECT_EQ(*compact, document.dump(-1, ' ', true) + '\n');
    }
  }
}

TEST(JsonPrinter, LineByLineAndWithBlanksItIsTheSame) {
  for (const std::string text : kDocuments) {
    JsonPrinter printer(JsonLayout::kPretty);
    std::string out;
    std::string rest = Json::parse(text).dump(1) + "\n";
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      ASSERT_TRUE(printer.add(rest.substr(0, end)));
      out += printer.text();
      printer.clear();
      rest.erase(0, end + 1);
    }
    EXPECT_TRUE(printer.is_whole());
    EXPECT_EQ(Json::parse(out), Json::parse(text));
    for (const char c : out) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
  }
}

TEST(JsonPrinter, BytesThatAreNoUtf8ArePrintedAsText) {
  const auto text = print_json("[\"a\xff\"]", JsonLayout::kCompact);
  EXPECT_FALSE(text.ok()) << "lbfd sends UTF-8 only";
}

TEST(JsonPrinter, WhatIsNoDocumentIsRefused) {
  for (const char* text : {"", "<html>", "{", "]", "[1}", R"({"steps":[{"job":1},{"job":}]})", "[1,]", "[,1]", "[1 2]",
                           "[1]2", R"(["a)", R"(["a\)", R"(["a\"])", "{\"a\" 1}", "[\"a\":1]", "1,2", "[1"}) {
    EXPECT_FALSE(print_json(text, JsonLayout::kPretty).ok()) << text;
  }
}

TEST(JsonPrinter, WhatIsTooDeepIsRefused) {
  EXPECT_TRUE(print_json(std::string(64, '[') + std::string(64, ']'), JsonLayout::kPretty).ok());
  EXPECT_FALSE(print_json(std::string(65, '[') + std::string(65, ']'), JsonLayout::kPretty).ok());
}

TEST(JsonLayout, IsWhatSlurmJsonSays) {
  EXPECT_EQ(json_layout("compact"), JsonLayout::kCompact);
  for (const char* value : {"", "pretty", "Compact", "x"}) EXPECT_EQ(json_layout(value), JsonLayout::kPretty);
}

}  // namespace
}  // namespace lbf::report::json_printer_test