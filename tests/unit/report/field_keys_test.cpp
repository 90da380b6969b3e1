// Lists ask lbfd for what their columns show: nothing may be missing.
#include "report/field_keys.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/answer.h"
#include "report/savings.h"
#include "report/step_rows.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::field_keys_test {
namespace {

using nlohmann::json;

json value_at(const json& object, std::string key) {
  if (key == "node_count") return object.contains("nodes") ? object["nodes"].size() : 0;
  if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
    const std::string part = key.substr(0, dot);
    return object.contains(part) && object[part].is_object() ? value_at(object[part], key.substr(dot + 1)) : json();
  }
  return object.contains(key) ? object[key] : json();
}

// What lbfd answers to rows=`keys`, made from what it answers without.
std::string as_rows(const json& answer, const std::string& keys) {
  json step_keys = json::array();
  json prediction_keys = json::array();
  std::istringstream in(keys);
  const std::string of_predictions = "predictions.";
  for (std::string key; std::getline(in, key, ',');) {
    if (key.starts_with(of_predictions)) {
      prediction_keys.push_back(key.substr(of_predictions.size()));
    } else {
      step_keys.push_back(key);
    }
  }
  json rows = json::array();
  for (const json& step : answer["steps"]) {
    json row = json::array();
    for (const json& key : step_keys) row.push_back(value_at(step, key));
    if (!prediction_keys.empty()) {
      json predictions = json::array();
      for (const json& prediction : step.value("predictions", json::array())) {
        json values = json::array();
        for (const json& key : prediction_keys) values.push_back(value_at(prediction, key));
        predictions.push_back(values);
      }
      row.push_back(predictions);
    }
    rows.push_back(row);
  }
  // By hand: the reader wants the keys before the rows.
  return "{\"keys\":" + step_keys.dump() + ",\"prediction_keys\":" + prediction_keys.dump() +
         ",\"rows\":" + rows.dump() + "}";
}

constexpr const char* kFixtures[] = {"normal.json",    "running.json", "partial.json",   "no_predictions.json",
                                     "odd_texts.json", "windows.json", "procedures.json"};

// What the fixtures have, and the same with predictions that memory bandwidth and exchanges make less sure.
std::vector<json> answers_with_doubts() {
  std::vector<json> out;
  for (const char* name : kFixtures) {
    out.push_back(json::parse(fixture_text(name)));
    for (const double percent : {3.0, 60.0}) {
      json answer = out.back();
      for (json& step : answer["steps"]) {
        if (!step.contains("predictions")) continue;
        for (json& prediction : step["predictions"]) {
          prediction["memory_percent"] = percent;
          prediction["exchange_percent"] = percent / 2;
        }
      }
      out.push_back(std::move(answer));
    }
  }
  return out;
}

TEST(RowKeys, OfEachFieldAreEnoughForIt) {
  for (const json& answer : answers_with_doubts()) {
    const std::vector<Step> full = parse_steps(answer.dump()).value();
    const std::string name = full.empty() ? "" : full.front().job_name;
    for (const Field& field : all_fields()) {
      auto thin = parse_rows(as_rows(answer, row_keys_of({{&field, 10, true}})));
      ASSERT_TRUE(thin.ok()) << field.name << ": " << thin.error().message;
      const std::vector<Step>& steps = *thin;
      put_in_order(*thin);
      ASSERT_EQ(steps.size(), full.size());
      for (std::size_t i = 0; i < full.size(); ++i) {
        EXPECT_EQ(field.value(steps[i], nullptr), field.value(full[i], nullptr)) << name << ' ' << field.name;
        if (field.bytes != nullptr) {
          EXPECT_EQ(field.bytes(steps[i]), field.bytes(full[i])) << field.name;
        }
        if (!field.of_target) continue;
        ASSERT_EQ(steps[i].predictions.size(), full[i].predictions.size()) << field.name;
        for (std::size_t t = 0; t < full[i].predictions.size(); ++t) {
          EXPECT_EQ(field.value(steps[i], &steps[i].predictions[t]), field.value(full[i], &full[i].predictions[t]))
              << name << ' ' << field.name;
        }
      }
    }
  }
}

TEST(RowKeys, OfSavingsAreEnoughForThem) {
  std::size_t advised = 0;
  for (const json& answer : answers_with_doubts()) {
    Savings of_full;
    Savings of_thin;
    const std::vector<Step> full = parse_steps(answer.dump()).value();
    const std::vector<Step> thin = parse_rows(as_rows(answer, row_keys_of_savings())).value();
    for (const Step& step : full) of_full.add(step);
    for (const Step& step : thin) of_thin.add(step);
    EXPECT_EQ(savings_json(of_thin, {}), savings_json(of_full, {}));
    advised += of_full.all().advised;
  }
  EXPECT_GT(advised, 0u);
}

TEST(RowKeys, NoneIsAskedForTwice) {
  const auto columns = parse_format(long_format());
  ASSERT_TRUE(columns.ok());
  std::istringstream in(with_key(row_keys_of(*columns), "measured_s,notes,uid"));
  std::set<std::string> seen;
  for (std::string key; std::getline(in, key, ',');) EXPECT_TRUE(seen.insert(key).second) << key;
  EXPECT_TRUE(seen.contains("notes"));
  EXPECT_TRUE(seen.contains("predictions.predicted_s"));
}

}  // namespace
}  // namespace lbf::report::field_keys_test