// A step with every field set, as lbfd writes it (tests/unit/daemon/every_field_test.cpp): each column shows its field.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

#include "report/fields.h"
#include "report/step_rows.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::every_field_test {
namespace {

std::string columns_of(const std::vector<Step>& steps) {
  setenv("TZ", "UTC", 1);
  tzset();
  std::string names;
  for (const Field& field : all_fields()) (names += names.empty() ? "" : ",") += field.name;
  std::string out;
  for (const bool parsable : {false, true})
    out += render_table(steps, parse_format(names).value(), {.parsable = parsable});
  return out;
}

TEST(EveryField, ShowsInItsColumn) {
  const std::string text = columns_of(fixture("every_field/full.json"));
  if (std::getenv("LBF_WRITE_GOLDEN") != nullptr)
    std::ofstream(std::string(LBF_FIXTURES) + "/every_field/columns.txt") << text;
  EXPECT_EQ(text, fixture_text("every_field/columns.txt"));
}

TEST(EveryField, ShowsInItsColumnFromEachForm) {
  EXPECT_EQ(columns_of(fixture("every_field/list.json")), fixture_text("every_field/columns.txt"));
  const auto rows = parse_rows(fixture_text("every_field/rows.json"));
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(columns_of(*rows), fixture_text("every_field/columns.txt"));
}

}  // namespace
}  // namespace lbf::report::every_field_test
