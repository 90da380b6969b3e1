// Reader and writer of a JSON object's members, for the encoders and decoders of protocol/ only.
//
// A record's members are listed once, in a function `members(fields, record)`. With a JsonWriter it encodes, with a
// JsonReader it decodes; a member of a wrong type counts as absent and leaves the record's default. The method says
// what a member may be:
//   integer  any whole number                 seconds  a number, not negative
//   count    a whole number, 0 if negative    amount   the same within bounds, for the cost's sums
//   whole    a whole number, not negative     text     a string
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lbf::protocol {

inline constexpr double kMostAmount = 1e12;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

// One line; arguments and names of files may hold bytes that are no UTF-8, which become U+FFFD.
inline std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonWriter {
 public:
  template <typename Record>
  using Of = const Record&;

  nlohmann::json take() { return std::move(json_); }

  void integer(const char* key, const std::int64_t& value) { json_[key] = value; }
  void integer(const char* key, const std::optional<std::int64_t>& value) { set(key, value); }
  void count(const char* key, const std::uint64_t& value) { json_[key] = value; }
  void whole(const char* key, const std::uint64_t& value) { json_[key] = value; }
  void whole(const char* key, const std::optional<std::uint64_t>& value) { set(key, value); }
  void amount(const char* key, const std::optional<double>& value) { set(key, value); }
  void amount_count(const char* key, const std::optional<std::uint64_t>& value) { set(key, value); }
  void seconds(const char* key, const double& value) { json_[key] = value; }
  // Absent where they are 0.
  void seconds_unless_zero(const char* key, const double& value) { number_unless_zero(key, value); }
  void number_unless_zero(const char* key, const double& value) {
    if (value != 0) json_[key] = value;
  }
  void text(const char* key, const std::string& value) { json_[key] = value; }
  void text(const char* key, const std::optional<std::string>& value) { set(key, value); }
  void texts(const char* key, const std::vector<std::string>& value, std::size_t /*most*/) { json_[key] = value; }
  // Absent where there are none.
  void texts_unless_empty(const char* key, const std::vector<std::string>& value, std::size_t most) {
    if (!value.empty()) texts(key, value, most);
  }

  // An array whose items ITEM turns into JSON.
  template <typename Item, typename ToJson, typename FromJson>
  void items(const char* key, const std::optional<std::vector<Item>>& value, const ToJson& to_json, const FromJson&) {
    if (!value) return;
    auto list = nlohmann::json::array();
    for (const Item& item : *value) list.push_back(to_json(item));
    json_[key] = std::move(list);
  }
  template <typename Record, typename Members>
  void object(const char* key, const std::optional<Record>& value, const Members& members) {
    if (!value) return;
    JsonWriter inner;
    members(inner, *value);
    json_[key] = inner.take();
  }

 private:
  template <typename Value>
  void set(const char* key, const std::optional<Value>& value) {
    if (value) json_[key] = *value;
  }
  nlohmann::json json_ = nlohmann::json::object();
};

class JsonReader {
 public:
  template <typename Record>
  using Of = Record&;

  // REQUIRES: JSON is an object and outlives the reader.
  explicit JsonReader(const nlohmann::json& json) : json_(json) {}

  template <typename Number>
  void integer(const char* key, Number& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number_integer())
      value = found->get<std::int64_t>();
  }
  // Beyond 63 bits: absent.
  void count(const char* key, std::uint64_t& value) {
    std::int64_t signed_value = 0;
    integer(key, signed_value);
    value = static_cast<std::uint64_t>(std::max<std::int64_t>(0, signed_value));
  }
  template <typename Number>
  void whole(const char* key, Number& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number_unsigned())
      value = found->get<std::uint64_t>();
  }
  // Of costs: within bounds that their sums can bear.
  void amount(const char* key, std::optional<double>& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number())
      value = std::clamp(found->get<double>(), 0.0, kMostAmount);
  }
  void amount_count(const char* key, std::optional<std::uint64_t>& value) {
    whole(key, value);
    if (value) value = std::min(*value, kMostCount);
  }
  void seconds(const char* key, double& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number())
      value = std::max(0.0, found->get<double>());
  }
  void seconds_unless_zero(const char* key, double& value) { seconds(key, value); }
  void number_unless_zero(const char* key, double& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number()) value = found->get<double>();
  }
  void number(const char* key, std::optional<double>& value) {
    if (const auto* found = find(key); found != nullptr && found->is_number()) value = found->get<double>();
  }
  template <typename Text>
  void text(const char* key, Text& value) {
    if (const auto* found = find(key); found != nullptr && found->is_string()) value = found->get<std::string>();
  }
  // At most MOST; what is no string is left out.
  void texts(const char* key, std::vector<std::string>& value, std::size_t most) {
    const auto* found = find(key);
    if (found == nullptr || !found->is_array()) return;
    value.clear();
    for (const nlohmann::json& item : *found) {
      if (item.is_string() && value.size() < most) value.push_back(item.get<std::string>());
    }
  }
  void texts_unless_empty(const char* key, std::vector<std::string>& value, std::size_t most) {
    texts(key, value, most);
  }

  template <typename Item, typename ToJson, typename FromJson>
  void items(const char* key, std::optional<std::vector<Item>>& value, const ToJson&, const FromJson& from_json) {
    const auto* found = find(key);
    if (found == nullptr || !found->is_array()) return;
    value.emplace();
    for (const nlohmann::json& entry : *found) {
      if (std::optional<Item> item = from_json(entry)) value->push_back(std::move(*item));
    }
  }
  template <typename Record, typename Members>
  void object(const char* key, std::optional<Record>& value, const Members& members) {
    const auto* found = find(key);
    if (found == nullptr || !found->is_object()) return;
    JsonReader inner(*found);
    members(inner, value.emplace());
  }

 private:
  const nlohmann::json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const nlohmann::json& json_;
};

}  // namespace lbf::protocol
