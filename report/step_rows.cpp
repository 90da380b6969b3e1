// See step_rows.h.
#include "report/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/answer.h"
#include "report/read_value.h"
#include "report/whole_lines.h"

namespace lbf::report {
namespace {

using Json = nlohmann::json;

template <typename Record>
struct Key {
  std::string name;
  Expected (*put)(Record& record, const Value& value);
};

// The keys of the fields of `kTable`.
template <typename Record, const auto& kTable>
void add_keys_of(std::vector<Key<Record>>& keys) {
  protocol::for_each_number<kTable>([&keys](auto number) {
    constexpr const auto& kField = std::get<number()>(kTable);
    if constexpr (requires(Record record) { report::put(record.*kField.member, Value{}, kField.unit); }) {
      keys.push_back({std::string(kField.key), [](Record& record, const Value& value) {
                        return report::put(record.*kField.member, value, kField.unit);
                      }});
    }
  });
}

const std::vector<Key<Step>>& step_keys() {
  static const std::vector<Key<Step>> keys = [] {
    std::vector<Key<Step>> out;
    add_keys_of<Step, protocol::kStepTable<protocol::Side::kReader>>(out);
    protocol::for_each_number<protocol::kCostTable<protocol::Side::kReader>>([&out](auto number) {
      constexpr const auto& kField = std::get<number()>(protocol::kCostTable<protocol::Side::kReader>);
      out.push_back({"cost." + std::string(kField.key), [](Step& step, const Value& value) -> Expected {
                       if (value.type == Value::Type::kNull) return nullptr;
                       if (!step.cost) step.cost.emplace();
                       return report::put(*step.cost.*kField.member, value, kField.unit);
                     }});
    });
    return out;
  }();
  return keys;
}

const std::vector<Key<TargetPrediction>>& prediction_keys() {
  static const std::vector<Key<TargetPrediction>> keys = [] {
    std::vector<Key<TargetPrediction>> out;
    add_keys_of<TargetPrediction, protocol::kPredictionTable<protocol::Side::kReader>>(out);
    protocol::for_each_number<protocol::kTopologyTable>([&out](auto number) {
      constexpr const auto& kField = std::get<number()>(protocol::kTopologyTable);
      out.push_back({"topology." + std::string(kField.key), [](TargetPrediction& target, const Value& value) {
                       return report::put(target.topology.*kField.member, value, kField.unit);
                     }});
    });
    return out;
  }();
  return keys;
}

// The answer, value by value as it is read: a document in memory of it took longer than the steps themselves.
class RowsReader {
 public:
  explicit RowsReader(const std::function<void(Step&)>& take) : take_(take) {}

  std::string error;  // the first thing that is not as http-v1 says

  // A row alone, after everything that stands before the rows.
  void begin_row() { place_ = Place::kRows; }

  bool null() { return take({}); }
  bool boolean(bool flag) { return take({.type = Value::Type::kFlag, .flag = flag}); }
  bool number_unsigned(std::uint64_t count) { return take({.type = Value::Type::kCount, .count = count}); }
  bool number_integer(std::int64_t number) {
    return take({.type = Value::Type::kNumber, .number = static_cast<double>(number)});
  }
  bool number_float(double number, const std::string&) {
    return take({.type = Value::Type::kNumber, .number = number});
  }
  bool string(std::string& text) {
    if (place_ != Place::kTexts && place_ != Place::kTextsOfPrediction)
      return take({.type = Value::Type::kText, .text = &text});
    texts_.push_back(std::move(text));
    return true;
  }
  bool binary(Json::binary_t&) { return wrong("it has bytes"); }

  bool start_object(std::size_t) {
    if (place_ != Place::kOutside) return wrong("an object is where a value should be");
    place_ = Place::kDocument;
    return true;
  }
  bool key(std::string& name) {
    member_ = name;
    return true;
  }
  bool end_object() {
    place_ = Place::kOutside;
    return has_rows_ || wrong("it has no rows");
  }

  bool start_array(std::size_t) {
    switch (place_) {
      case Place::kDocument:
        return start_member();
      case Place::kRows:
        place_ = Place::kRow;
        column_ = 0;
        ++rows_;
        most_predictions_ = std::max(most_predictions_, step_.predictions.size());
        step_ = Step{};
        step_.predictions.reserve(most_predictions_);
        return true;
      case Place::kRow:
        if (column_ == step_keys_.size() && with_predictions_) {
          place_ = Place::kPredictions;
        } else {
          place_ = Place::kTexts;
          texts_.clear();
        }
        return true;
      case Place::kPredictions:
        place_ = Place::kPrediction;
        prediction_column_ = 0;
        step_.predictions.emplace_back();
        return true;
      case Place::kPrediction:
        place_ = Place::kTextsOfPrediction;
        texts_.clear();
        return true;
      default:
        return wrong("a list is where a value should be");
    }
  }

  bool end_array() {
    switch (place_) {
      case Place::kNames:
      case Place::kRows:
        place_ = Place::kDocument;
        return true;
      case Place::kTexts:
        place_ = Place::kRow;
        return take({.type = Value::Type::kTexts, .texts = &texts_});
      case Place::kTextsOfPrediction:
        place_ = Place::kPrediction;
        return take({.type = Value::Type::kTexts, .texts = &texts_});
      case Place::kPrediction:
        place_ = Place::kPredictions;
        step_.predictions.back().keep_what_is_known();
        return prediction_column_ == prediction_keys_.size() || wrong("a prediction has too few values");
      case Place::kPredictions:
        place_ = Place::kRow;
        ++column_;
        return true;
      case Place::kRow:
        place_ = Place::kRows;
        if (column_ != step_keys_.size() + (with_predictions_ ? 1 : 0)) return wrong("it has too few values");
        if (step_.command_cut) step_.command += " ...";
        take_(step_);
        return true;
      default:
        return wrong("it is not a list of steps");
    }
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return wrong("it is not a JSON object");
  }

 private:
  enum class Place { kOutside, kDocument, kNames, kRows, kRow, kTexts, kPredictions, kPrediction, kTextsOfPrediction };

  bool start_member() {
    if (member_ == "keys" || member_ == "prediction_keys") {
      place_ = Place::kNames;
      return true;
    }
    if (member_ != "rows") return wrong("'" + member_ + "' is not known");
    const auto has = [this](std::string_view name) {
      return std::any_of(step_keys_.begin(), step_keys_.end(),
                         [name](const Key<Step>* key) { return key != nullptr && key->name == name; });
    };
    if (!has("job") || !has("step")) return wrong("it has no 'job' or 'step' numbers");
    with_predictions_ = !prediction_keys_.empty();
    has_rows_ = true;
    place_ = Place::kRows;
    return true;
  }

  template <typename Record>
  static const Key<Record>* find(const std::vector<Key<Record>>& keys, const std::string& name) {
    const auto found =
        std::find_if(keys.begin(), keys.end(), [&name](const Key<Record>& key) { return key.name == name; });
    return found == keys.end() ? nullptr : &*found;
  }

  bool take(const Value& value) {
    switch (place_) {
      case Place::kNames:
        if (value.type != Value::Type::kText) return wrong("a key is not text");
        if (member_ == "keys") {
          step_keys_.push_back(find(step_keys(), *value.text));
        } else {
          prediction_keys_.push_back(find(prediction_keys(), *value.text));
        }
        return true;
      case Place::kRow: {
        if (column_ >= step_keys_.size()) return wrong("it has too many values");
        const Key<Step>* const key = step_keys_[column_++];
        return key == nullptr || expect(key->put(step_, value), key->name);
      }
      case Place::kPrediction: {
        if (prediction_column_ >= prediction_keys_.size()) return wrong("a prediction has too many values");
        const Key<TargetPrediction>* const key = prediction_keys_[prediction_column_++];
        return key == nullptr || expect(key->put(step_.predictions.back(), value), key->name);
      }
      case Place::kTexts:
      case Place::kTextsOfPrediction:
        return wrong("a list has something else than texts");
      default:
        return wrong("it is not a list of steps");
    }
  }

  bool expect(Expected expected, std::string_view name) {
    return expected == nullptr || wrong(fmt::format("'{}' is not {}", name, expected));
  }

  bool wrong(const std::string& what) {
    if (error.empty()) error = rows_ == 0 ? what : fmt::format("row {}: {}", rows_, what);
    return false;
  }

  const std::function<void(Step&)>& take_;
  Place place_ = Place::kOutside;
  Step step_;  // of the row that is being read
  std::size_t rows_ = 0;
  std::size_t most_predictions_ = 0;
  std::string member_;
  bool has_rows_ = false;
  bool with_predictions_ = false;
  std::vector<const Key<Step>*> step_keys_;  // nullptr: not known here
  std::vector<const Key<TargetPrediction>*> prediction_keys_;
  std::size_t column_ = 0;
  std::size_t prediction_column_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace

class RowsStream::State {
 public:
  explicit State(std::function<void(Step&)> take) : take_(std::move(take)) {}

  void add(std::string_view piece) {
    lines_.add(piece, [this](std::string_view line) { add_line(line); });
  }

  Result<void> end() {
    add_line(lines_.rest());
    if (form_ == Form::kWhole) {
      read(whole_);
    } else if (form_ != Form::kEnded) {
      fail("it is not a JSON object");
    }
    if (!reader_.error.empty()) return answer_error(reader_.error);
    return {};
  }

 private:
  enum class Form { kUnknown, kLines, kEnded, kWhole };
  static constexpr std::string_view kEndOfHead = "\"rows\":[";
  static constexpr std::string_view kTail = "]}";

  void add_line(std::string_view line) {
    if (!reader_.error.empty()) return;
    switch (form_) {
      case Form::kUnknown:
        if (line.ends_with(kEndOfHead)) {
          form_ = Form::kLines;
          read(std::string(line) + std::string(kTail));
          return;
        }
        form_ = Form::kWhole;
        [[fallthrough]];
      case Form::kWhole:
        whole_ += line;
        return;
      case Form::kLines:
        if (line == kTail) {
          form_ = Form::kEnded;
          return;
        }
        if (line.ends_with(',')) line.remove_suffix(1);
        reader_.begin_row();
        read(line);
        return;
      case Form::kEnded:
        if (!line.empty()) fail("something comes after its end");
        return;
    }
  }

  void read(std::string_view json) {
    if (!Json::sax_parse(json, &reader_)) fail("it is not a JSON object");
  }
  void fail(std::string_view why) {
    if (reader_.error.empty()) reader_.error = why;
  }

  std::function<void(Step&)> take_;
  RowsReader reader_{take_};
  WholeLines lines_;
  Form form_ = Form::kUnknown;
  std::string whole_;
};

RowsStream::RowsStream(std::function<void(Step&)> take) : state_(std::make_unique<State>(std::move(take))) {}
RowsStream::~RowsStream() = default;

void RowsStream::add(std::string_view piece) {
  state_->add(piece);
}

Result<void> RowsStream::end() {
  return state_->end();
}

Result<std::vector<Step>> parse_rows(std::string_view json) {
  std::vector<Step> steps;
  RowsStream stream([&steps](Step& step) { steps.push_back(std::move(step)); });
  stream.add(json);
  if (auto read = stream.end(); !read) return read.error();
  return steps;
}

}  // namespace lbf::report
