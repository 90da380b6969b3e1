// What --yaml prints, read again by a library, is the JSON that it was made from.
#include "report/yaml_printer.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lbf::report::yaml_printer_test {
namespace {

using Json = nlohmann::json;

Json read_again(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& member : node) out[member.first.as<std::string>()] = read_again(member.second);
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const auto& item : node) out.push_back(read_again(item));
    return out;
  }
  if (node.Tag() == "!") return node.as<std::string>();  // it had quotes
  return Json::parse(node.as<std::string>(), nullptr, false);
}

TEST(YamlPrinter, IsTheJsonThatItWasMadeFrom) {
  for (
      const std::string text : {
          R"({"steps":[{"job":1,"name":"a: 'b' \"c\" \\ \n","empty":[],"none":{},"x":{"y":[1,-2.5,null,true]}},{"job":2}]})",
          R"({"steps":[]})",
          R"({"a":[{"b":[[1,2],["x",3]]},{},[],[{}],[[[]]],null],"no":"no","1":"1e3","c d":2})",
          R"([[],[{"a":{"b":{"c":[{"d":1}]}}}],"text",7])",
          R"("text")",
          R"({"odd":"é 😀 \u001b[2J \ud83d\ude00 #x","p":1e-07})",
      }) {
    const auto yaml = print_yaml(text);
    ASSERT_TRUE(yaml.ok()) << text;
    EXPECT_EQ(read_again(YAML::Load(*yaml)), Json::parse(text)) << *yaml;
    for (const char c : *yaml) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << *yaml;
  }
}

TEST(YamlPrinter, LooksLikeThis) {
  const auto yaml = print_yaml(
      R"({"steps":[{"job":1,"nodes":["a","b"],"cost":null,"calls":[["MPI_Send",5,0.25]],"none":{}},{"job":2,"p":1e-07}]})");
  ASSERT_TRUE(yaml.ok());
  EXPECT_EQ(*yaml,
            "---\n"
            "steps:\n"
            "  - job: 1\n"
            "    nodes: [\"a\", \"b\"]\n"
            "    cost: null\n"
            "    calls:\n"
            "      - [\"MPI_Send\", 5, 0.25]\n"
            "    none: {}\n"
            "  - job: 2\n"
            "    p: 1.0e-07\n");
}

TEST(YamlPrinter, InPartsItIsTheSame) {
  const std::string parts[] = {"{\"steps\":[", R"({"job":1,"nodes":["a"]},)", R"({"job":2,"nodes":[]})", "]}"};
  YamlPrinter printer;
  std::string whole;
  std::string out;
  for (const std::string& part : parts) {
    ASSERT_TRUE(printer.add(part));
    out += printer.text();
    printer.clear();
    whole += part;
  }
  EXPECT_TRUE(printer.is_whole());
  EXPECT_EQ(out, *print_yaml(whole));
}

TEST(YamlPrinter, WhatIsNoDocumentIsRefused) {
  for (const char* text : {"", "<html>", "{", "[1}", R"({"steps":[{"job":1},{"job":}]})"}) {
    EXPECT_FALSE(print_yaml(text).ok()) << text;
  }
}

}  // namespace
}  // namespace lbf::report::yaml_printer_test