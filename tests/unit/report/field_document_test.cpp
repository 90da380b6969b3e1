// docs/formats/http-v1.md has the tables of fields of protocol/. With LBF_WRITE_GOLDEN in the environment they are
// written there, not compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "protocol/cost_fields.h"
#include "protocol/prediction_fields.h"
#include "protocol/procedure_fields.h"
#include "protocol/saying_fields.h"
#include "protocol/step_fields.h"
#include "report/fields.h"

namespace lbf::field_document_test {
namespace {

using protocol::Side;
using protocol::Unit;

std::string type_of(const std::string&, Unit) {
  return "text";
}
std::string type_of(bool, Unit) {
  return "true or false";
}
std::string type_of(protocol::StepState, Unit) {
  return "text";
}
std::string type_of(const protocol::Topology&, Unit) {
  return "object";
}
std::string type_of(const protocol::CommandView&, Unit) {
  return "list of texts";
}
std::string type_of(const std::vector<std::string>&, Unit) {
  return "list of texts";
}
std::string type_of(const std::vector<std::uint32_t>&, Unit) {
  return "list of numbers";
}
std::string type_of(const std::vector<Seconds>&, Unit) {
  return "list of seconds";
}
std::string type_of(const std::vector<protocol::CallTotal>&, Unit) {
  return "list of [function, calls, seconds]";
}
std::string type_of(std::integral auto, Unit unit) {
  if (unit == Unit::kEpochSeconds) return "seconds since 1970";
  return unit == Unit::kCount ? "count" : unit == Unit::kBytes ? "bytes" : "number";
}
std::string type_of(double, Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return "seconds";
    case Unit::kEpochSeconds:
      return "seconds since 1970";
    case Unit::kPercent:
      return "percent";
    case Unit::kShare:
      return "share";
    case Unit::kFactor:
      return "factor";
    default:
      return "number";
  }
}
template <typename T>
std::string type_of(const std::optional<T>&, Unit unit) {
  return type_of(T{}, unit) + " or null";
}

// Those that documents have.
template <typename Record, typename Table>
std::string markdown(const Table& table) {
  std::string out = "| key | value | meaning |\n|---|---|---|\n";
  protocol::for_each_field(table, [&](const auto& field) {
    if (!field.is_in(protocol::In::kDocuments)) return;
    std::string type = type_of(std::invoke(field.member, Record{}), field.unit);
    if (field.when == protocol::When::kKnown && !type.ends_with("null")) type += " or null";
    out.append("| `").append(field.key).append("` | ").append(type).append(" | ").append(field.meaning).append(" |\n");
  });
  return out;
}

constexpr const char* kDocument = LBF_DOCS "/formats/http-v1.md";

std::string text_of_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What stands in the section `title`.
std::string section_of(const std::string& document, const std::string& title) {
  const std::size_t begin = document.find("\n### " + title + "\n");
  return begin == std::string::npos ? "" : document.substr(begin, document.find("\n### ", begin + 1) - begin);
}

// The table of the section `title` is the one of its fields.
template <typename Record, typename Table>
void expect_documented(const std::string& title, const Table& table) {
  const std::string document = text_of_file(kDocument);
  const std::string section = section_of(document, title);
  const std::size_t begin = section.find("| key | value | meaning |\n");
  ASSERT_NE(begin, std::string::npos) << title;
  std::size_t end = begin;
  while (section[end] == '|') end = section.find('\n', end) + 1;
  const std::string expected = markdown<Record>(table);
  if (std::getenv("LBF_WRITE_GOLDEN") != nullptr) {
    std::string written = document;
    written.replace(document.find(section) + begin, end - begin, expected);
    std::ofstream(kDocument) << written;
    return;
  }
  EXPECT_EQ(section.substr(begin, end - begin), expected) << title;
}

TEST(FieldDocument, HasTheFieldsOfAStep) {
  expect_documented<protocol::StepFields<Side::kLbfd>>("STEP", protocol::kStepTable<Side::kLbfd>);
}

TEST(FieldDocument, HasTheFieldsOfItsCost) {
  expect_documented<protocol::CostFields<Side::kLbfd>>("COST", protocol::kCostTable<Side::kLbfd>);
}

TEST(FieldDocument, HasTheFieldsOfAPrediction) {
  expect_documented<protocol::PredictionFields<Side::kLbfd>>("PREDICTION", protocol::kPredictionTable<Side::kLbfd>);
}

TEST(FieldDocument, HasTheFieldsOfASaying) {
  expect_documented<protocol::SayingFields>("SAYING", protocol::kSayingTable);
}

TEST(FieldDocument, HasTheFieldsOfAProcedure) {
  expect_documented<protocol::ProcedureFields<Side::kLbfd>>("PROCEDURES", protocol::kProcedureTable<Side::kLbfd>);
}

TEST(FieldDocument, HasTheFieldsOfTheCriticalPath) {
  expect_documented<protocol::CriticalPathFields>("CRITICAL_PATH", protocol::kCriticalPathTable);
}

// The keys that ROWS have and documents have not, and the other way round.
TEST(FieldDocument, NamesWhatIsOtherInRows) {
  const std::string rows = section_of(text_of_file(kDocument), "ROWS");
  const auto named = [](std::string_view key) { return testing::HasSubstr("`" + std::string(key) + "`"); };
  protocol::for_each_field(protocol::kStepTable<Side::kLbfd>, [&](const auto& field) {
    if (field.is_in(protocol::In::kDocuments) == field.is_in(protocol::In::kRows)) return;
    EXPECT_THAT(rows, named(field.key));
  });
  protocol::for_each_field(protocol::kCostTable<Side::kLbfd>, [&](const auto& field) {
    if (field.is_in(protocol::In::kDocuments) && !field.is_in(protocol::In::kRows)) {
      EXPECT_THAT(rows, named(field.key));
    }
  });
}

TEST(FieldDocument, TheManualPageHasEachColumn) {
  const std::string page = text_of_file(LBF_DOCS "/man/lbf-report.1");
  for (const report::Field& field : report::all_fields())
    EXPECT_THAT(page, testing::ContainsRegex("[ ,]" + std::string(field.name) + "[, \n]"));
}

}  // namespace
}  // namespace lbf::field_document_test
