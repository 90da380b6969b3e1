// The syntax of Slurm's configuration files.
#include "predictor/engine/network/slurm_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::slurm_conf_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const Result<std::vector<engine::SlurmLine>>& lines) {
  EXPECT_TRUE(lines.ok()) << (lines.ok() ? "" : lines.error().message);
  std::vector<std::string> texts;
  if (lines.ok()) {
    for (const engine::SlurmLine& line : *lines) texts.push_back(std::to_string(line.number) + ": " + line.text);
  }
  return texts;
}

std::vector<std::string> settings(const std::string& text) {
  const engine::SlurmLine line{"f", 1, text};
  const auto settings = line.settings();
  if (!settings) return {settings.error().message};
  std::vector<std::string> pairs;
  for (const engine::SlurmSetting& setting : *settings) {
    pairs.push_back(std::string(setting.key) + "|" + std::string(setting.value));
  }
  return pairs;
}

TEST(SlurmConf, CommentsContinuationsAndEscapes) {
  EXPECT_THAT(texts(engine::parse_slurm_conf(
                  "# c\n\nA=1 # c\r\n \t\nB=x,\\\ny\\ # c\n z=1\nC=a\\#b\\\\\\\n\\\\ # c\nD=1 \\", "f", "")),
              ElementsAre("3: A=1 ", "5: B=x,y z=1", "8: C=a#b\\\\ ", "10: D=1 "));
}

TEST(SlurmConf, KeysAndValues) {
  EXPECT_THAT(settings("  A = 1\tb_c.D+=\"x y\" E=\"\" F= G=\"q\" H=a\"b"),
              ElementsAre("A|1", "b_c.D|x y", "E|", "F|", "G|q", "H|a\"b"));
  EXPECT_THAT(settings("A=1 B"), ElementsAre("f:1: 'B' is no Key=Value"));
  EXPECT_THAT(settings("A-B=1"), ElementsAre("f:1: 'A-B' is no Key=Value"));
  EXPECT_THAT(settings("A=\"1"), ElementsAre("f:1: a '\"' has no second one"));
}

class SlurmConfIncludes : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() + "/" + name) << text;
  }
  Result<std::vector<engine::SlurmLine>> parse(const std::string& text) {
    return engine::parse_slurm_conf(text, directory_.path() + "/slurm.conf", directory_.path());
  }
  std::string refused(const std::string& text) {
    const auto lines = parse(text);
    EXPECT_FALSE(lines.ok()) << text;
    return lines.ok() ? "" : lines.error().message;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(SlurmConfIncludes, StandInTheirPlaceAndAreLookedForBesideSlurmConf) {
  std::filesystem::create_directory(directory_.path() + "/racks");
  write("racks/r1.conf", "B=2\nInclude r2.conf\n");
  write("r2.conf", "\nC=3\n");
  write("big.conf", "D=4\n");
  write("empty.conf", "");
  EXPECT_THAT(
      texts(parse("ClusterName=BIG\nInclude racks/r1.conf # one\nINCLUDE\t%c.conf\ninclude empty.conf\nInclude " +
                  directory_.path() + "/r2.conf\nE=5\n")),
      ElementsAre("1: ClusterName=BIG", "1: B=2", "2: C=3", "1: D=4", "2: C=3", "6: E=5"));
}

TEST_F(SlurmConfIncludes, ErrorsNameTheLine) {
  write("itself.conf", "Include itself.conf\n");
  write("wrong.conf", std::string("\n\0\n", 3));
  EXPECT_THAT(refused("\nInclude none.conf"),
              HasSubstr("slurm.conf:2: " + directory_.path() + "/none.conf: cannot open"));
  EXPECT_THAT(refused("Include itself.conf"),
              HasSubstr("itself.conf:1: Include 'itself.conf': does a file include itse"));
  EXPECT_THAT(refused("Include wrong.conf"), HasSubstr("wrong.conf:2: a zero byte"));
  EXPECT_THAT(refused("Include *.conf"), HasSubstr(":1: Include '*.conf': Slurm takes no '*'"));
  EXPECT_THAT(refused("Include %c.conf"), HasSubstr(":1: Include '%c.conf': no line before it is ClusterName="));
  EXPECT_THAT(refused("Include a b"), HasSubstr(":1: Include needs one file"));
  EXPECT_THAT(refused("Include"), HasSubstr(":1: Include needs one file"));
}

}  // namespace
}  // namespace lbf::slurm_conf_test
