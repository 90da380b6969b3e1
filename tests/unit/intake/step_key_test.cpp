// StepKey: hostile names must not become paths.
#include "predictor/daemon/intake/step_key.h"

#include <gtest/gtest.h>

namespace lbf::step_key_test {
namespace {

TEST(StepKey, IsTextAndDirectory) {
  const auto key = daemon::make_step_key("c-1.example_x", "12", "4294967291", "3");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->text(), "c-1.example_x/12/4294967291/3");
  EXPECT_EQ(key->directory_name(), "12.4294967291.3");
  const auto back = daemon::step_key_of_directory("c-1.example_x", key->directory_name());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, *key);
}

// Slurm gives a job number again: the submit time tells the jobs apart. Relays that do not say it keep their names.
TEST(StepKey, TellsJobsOfOneNumberApart) {
  const auto first = daemon::make_step_key("c", "7", "0", "0", "1700000000");
  const auto second = daemon::make_step_key("c", "7", "0", "0", "1700000060");
  const auto unknown = daemon::make_step_key("c", "7", "0", "0");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(unknown.ok());
  EXPECT_NE(*first, *second);
  EXPECT_LT(*unknown, *first);
  EXPECT_LT(*first, *second);
  EXPECT_EQ(first->text(), "c/7/0/0/1700000000");
  EXPECT_EQ(first->directory_name(), "7.0.0.1700000000");
  EXPECT_EQ(unknown->text(), "c/7/0/0");
  EXPECT_EQ(unknown->directory_name(), "7.0.0");
  for (const auto& key : {*first, *second, *unknown}) {
    const auto back = daemon::step_key_of_directory("c", key.directory_name());
    ASSERT_TRUE(back.ok()) << key.directory_name();
    EXPECT_EQ(*back, key);
    const auto read = daemon::step_key_of_text(key.text());
    ASSERT_TRUE(read.ok()) << key.text();
    EXPECT_EQ(*read, key);
  }
  for (const char* text : {"", "c", "c/7", "c/7/0", "c/7/0/0/", "c/7/0/0/01", "c/7/0/0/1/1", "/7/0/0", "c.7.0.0"}) {
    EXPECT_FALSE(daemon::step_key_of_text(text).ok()) << text;
  }
  for (const char* submit : {"", "-1", "1e9", "9007199254740993", "99999999999999999999"}) {
    EXPECT_FALSE(daemon::make_step_key("c", "7", "0", "0", submit).ok()) << submit;
  }
}

TEST(StepKey, RefusesClusterNamesThatAreNotSafeAsDirectories) {
  const std::string names[] = {"",
                               ".",
                               "..",
                               "../etc",
                               ".hidden",
                               "a/b",
                               "a\\b",
                               "a b",
                               "a\nb",
                               std::string(65, 'a'),
                               std::string("a\0b", 3),
                               "%2e%2e",
                               "\xc3\xa9"};
  for (const std::string& name : names) {
    EXPECT_FALSE(daemon::make_step_key(name, "1", "0", "0").ok()) << name;
  }
  EXPECT_TRUE(daemon::make_step_key(std::string(64, 'a'), "1", "0", "0").ok());
}

TEST(StepKey, RefusesNumbersThatAreNotPlainDecimal) {
  for (const char* number :
       {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "4294967296", "99999999999999999999999", "one"}) {
    EXPECT_FALSE(daemon::make_step_key("c", number, "0", "0").ok()) << number;
    EXPECT_FALSE(daemon::make_step_key("c", "0", number, "0").ok()) << number;
    EXPECT_FALSE(daemon::make_step_key("c", "0", "0", number).ok()) << number;
  }
}

TEST(StepKey, OneStepHasOneDirectoryName) {
  EXPECT_FALSE(daemon::step_key_of_directory("c", "007.0.0").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0.0.0").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0.0.01").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0.0.1.1").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0.0.").ok());
  EXPECT_FALSE(daemon::step_key_of_directory("c", "7.0.0~").ok());
  EXPECT_TRUE(daemon::step_key_of_directory("c", "7.0.0").ok());
}

TEST(StepKey, ErrorsStayOneLine) {
  const auto key = daemon::make_step_key("evil\nname\x1b[31m", "1", "0", "0");
  ASSERT_FALSE(key.ok());
  EXPECT_EQ(key.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(key.error().message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace lbf::step_key_test