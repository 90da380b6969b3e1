// See step_rows.h.
#include "report/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "report/answer.h"
#include "report/text.h"
#include "report/whole_lines.h"

namespace lbf::report {
namespace {

using Json = nlohmann::json;

// One value as it was read.
struct Value {
  enum class Type { kNull, kFlag, kCount, kNumber, kText, kTexts };
  Type type = Type::kNull;
  bool flag = false;
  std::uint64_t count = 0;
  double number = 0;
  std::string* text = nullptr;  // may be taken away
  std::vector<std::string>* texts = nullptr;
};

// nullptr: `out` has the value; else what was expected. Null leaves `out` as it is.
using Expected = const char*;

Expected put(std::string& out, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kText) return "text";
  out = printable(*value.text);
  return nullptr;
}

template <std::unsigned_integral Count>
Expected put(std::optional<Count>& out, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kCount) return "a whole number";
  if (value.count > std::numeric_limits<Count>::max()) return "a whole number below 2^32";
  out = static_cast<Count>(value.count);
  return nullptr;
}

Expected put(std::uint64_t& out, const Value& value) {
  std::optional<std::uint64_t> known;
  const Expected expected = put(known, value);
  if (expected == nullptr && known) out = *known;
  return expected;
}

Expected put(std::optional<double>& out, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kNumber && value.type != Value::Type::kCount) return "a number";
  out = value.type == Value::Type::kNumber ? value.number : static_cast<double>(value.count);
  return nullptr;
}

Expected put_seconds(std::optional<double>& out, const Value& value) {
  if (const Expected expected = put(out, value)) return expected;
  return out && !(*out >= 0) ? "a time of 0 or more" : nullptr;
}

Expected put(bool& out, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kFlag) return "true or false";
  out = value.flag;
  return nullptr;
}

Expected put(std::vector<std::string>& out, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (value.type != Value::Type::kTexts) return "a list of texts";
  for (const std::string& text : *value.texts) out.push_back(printable(text));
  return nullptr;
}

// The words, or the line that they were joined to (in steps that were stored before words were kept).
Expected put_command(std::string& out, const Value& value) {
  if (value.type == Value::Type::kText) return put(out, value);
  std::vector<std::string> words;
  if (const Expected expected = put(words, value)) return expected;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_word(word);
  return nullptr;
}

Expected put_state(StepState& out, const Value& value) {
  constexpr Expected kStates = "running, complete or partial";
  if (value.type != Value::Type::kText) return kStates;
  for (const StepState state : {StepState::kRunning, StepState::kComplete, StepState::kPartial}) {
    if (*value.text != state_name(state)) continue;
    out = state;
    return nullptr;
  }
  return kStates;
}

template <typename T>
Expected put_of_cost(Step& step, T Cost::*member, const Value& value) {
  if (value.type == Value::Type::kNull) return nullptr;
  if (!step.cost) step.cost.emplace();
  return put((*step.cost).*member, value);
}

template <typename Record>
struct Key {
  std::string_view name;
  Expected (*put)(Record& record, const Value& value);
};

using S = Step&;
using P = TargetPrediction&;
using V = const Value&;

constexpr std::array<Key<Step>, 53> kStepKeys{{
    {"cluster", [](S s, V v) { return put(s.cluster, v); }},
    {"job", [](S s, V v) { return put(s.job, v); }},
    {"step", [](S s, V v) { return put(s.step, v); }},
    {"restart", [](S s, V v) { return put(s.restart, v); }},
    {"array_job", [](S s, V v) { return put(s.array_job, v); }},
    {"array_task", [](S s, V v) { return put(s.array_task, v); }},
    {"het_job", [](S s, V v) { return put(s.het_job, v); }},
    {"het_offset", [](S s, V v) { return put(s.het_offset, v); }},
    {"user", [](S s, V v) { return put(s.user, v); }},
    {"uid", [](S s, V v) { return put(s.uid, v); }},
    {"account", [](S s, V v) { return put(s.account, v); }},
    {"partition", [](S s, V v) { return put(s.partition, v); }},
    {"job_name", [](S s, V v) { return put(s.job_name, v); }},
    {"command", [](S s, V v) { return put_command(s.command, v); }},
    // Asked for behind the command.
    {"command_cut",
     [](S s, V v) {
       bool cut = false;
       const Expected expected = put(cut, v);
       if (cut) s.command += " ...";
       return expected;
     }},
    {"state", [](S s, V v) { return put_state(s.state, v); }},
    {"why_partial", [](S s, V v) { return put(s.why_partial, v); }},
    {"nodes", [](S s, V v) { return put(s.nodes, v); }},
    {"node_count", [](S s, V v) { return put(s.node_count, v); }},
    {"ranks", [](S s, V v) { return put(s.ranks, v); }},
    {"network", [](S s, V v) { return put(s.network, v); }},
    {"start", [](S s, V v) { return put(s.start_s, v); }},
    {"end", [](S s, V v) { return put(s.end_s, v); }},
    {"measured_s", [](S s, V v) { return put_seconds(s.measured_s, v); }},
    {"events", [](S s, V v) { return put(s.events, v); }},
    {"messages", [](S s, V v) { return put(s.messages, v); }},
    {"bytes_on_wire", [](S s, V v) { return put(s.bytes_on_wire, v); }},
    {"bytes_stored", [](S s, V v) { return put(s.bytes_stored, v); }},
    {"wildcard_receives", [](S s, V v) { return put(s.wildcard_receives, v); }},
    {"lost_events", [](S s, V v) { return put(s.lost_events, v); }},
    {"mpi_s", [](S s, V v) { return put_seconds(s.mpi_s, v); }},
    {"unmodelled_s", [](S s, V v) { return put_seconds(s.unmodelled_s, v); }},
    {"capture_s", [](S s, V v) { return put_seconds(s.capture_s, v); }},
    {"relay_cpu_s", [](S s, V v) { return put_seconds(s.relay_cpu_s, v); }},
    {"lbfd_cpu_s", [](S s, V v) { return put_seconds(s.lbfd_cpu_s, v); }},
    {"notes", [](S s, V v) { return put(s.notes, v); }},
    {"cost.state", [](S s, V v) { return put_of_cost(s, &Cost::state, v); }},
    {"cost.limit_percent", [](S s, V v) { return put_of_cost(s, &Cost::limit_percent, v); }},
    {"cost.predicted_percent", [](S s, V v) { return put_of_cost(s, &Cost::predicted_percent, v); }},
    {"cost.corrected_percent", [](S s, V v) { return put_of_cost(s, &Cost::corrected_percent, v); }},
    {"cost.low_percent", [](S s, V v) { return put_of_cost(s, &Cost::low_percent, v); }},
    {"cost.high_percent", [](S s, V v) { return put_of_cost(s, &Cost::high_percent, v); }},
    {"cost.once_capture_s", [](S s, V v) { return put_of_cost(s, &Cost::once_capture_s, v); }},
    {"cost.once_relay_s", [](S s, V v) { return put_of_cost(s, &Cost::once_relay_s, v); }},
    {"cost.total_low_percent", [](S s, V v) { return put_of_cost(s, &Cost::total_low_percent, v); }},
    {"cost.total_high_percent", [](S s, V v) { return put_of_cost(s, &Cost::total_high_percent, v); }},
    {"cost.program_cpu_s", [](S s, V v) { return put_of_cost(s, &Cost::program_cpu_s, v); }},
    {"cost.recorded_calls", [](S s, V v) { return put_of_cost(s, &Cost::recorded_calls, v); }},
    {"cost.counted_calls", [](S s, V v) { return put_of_cost(s, &Cost::counted_calls, v); }},
    {"cost.windows", [](S s, V v) { return put_of_cost(s, &Cost::windows, v); }},
    {"cost.seen_share", [](S s, V v) { return put_of_cost(s, &Cost::seen_share, v); }},
    {"targets_deferred", [](S s, V v) { return put(s.targets_deferred, v); }},
    {"targets_taken_up", [](S s, V v) { return put(s.targets_taken_up, v); }},
}};

constexpr std::array<Key<TargetPrediction>, 23> kPredictionKeys{{
    {"target", [](P p, V v) { return put(p.target, v); }},
    {"nodes", [](P p, V v) { return put(p.nodes, v); }},
    {"cores", [](P p, V v) { return put(p.cores, v); }},
    {"placement", [](P p, V v) { return put(p.placement, v); }},
    {"network", [](P p, V v) { return put(p.network, v); }},
    {"contention", [](P p, V v) { return put(p.contention, v); }},
    {"speed", [](P p, V v) { return put(p.speed, v); }},
    {"kind", [](P p, V v) { return put(p.kind, v); }},
    {"predicted_s", [](P p, V v) { return put_seconds(p.predicted_s, v); }},
    {"why_stuck", [](P p, V v) { return put(p.why_stuck, v); }},
    {"why_deferred", [](P p, V v) { return put(p.why_deferred, v); }},
    {"deferred_for_good", [](P p, V v) { return put(p.deferred_for_good, v); }},
    {"taken_up", [](P p, V v) { return put(p.taken_up, v); }},
    {"speedup", [](P p, V v) { return put(p.speedup, v); }},
    {"self_error_percent", [](P p, V v) { return put(p.self_error_percent, v); }},
    {"partial", [](P p, V v) { return put(p.partial, v); }},
    {"progress_s", [](P p, V v) { return put_seconds(p.progress_s, v); }},
    {"measured_at_progress_s", [](P p, V v) { return put_seconds(p.measured_at_progress_s, v); }},
    {"seen_share", [](P p, V v) { return put(p.seen_share, v); }},
    {"low_s", [](P p, V v) { return put_seconds(p.low_s, v); }},
    {"high_s", [](P p, V v) { return put_seconds(p.high_s, v); }},
    {"topology.file", [](P p, V v) { return put(p.topology_file, v); }},
    {"topology.nodes", [](P p, V v) { return put(p.topology_nodes, v); }},
}};

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
  bool string(std::string& text) { return take({.type = Value::Type::kText, .text = &text}); }
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
        return prediction_column_ == prediction_keys_.size() || wrong("a prediction has too few values");
      case Place::kPredictions:
        place_ = Place::kRow;
        ++column_;
        return true;
      case Place::kRow:
        place_ = Place::kRows;
        if (column_ != step_keys_.size() + (with_predictions_ ? 1 : 0)) return wrong("it has too few values");
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
  enum class Place {
    kOutside,
    kDocument,
    kNames,
    kRows,
    kRow,
    kTexts,
    kPredictions,
    kPrediction,
    kTextsOfPrediction
  };

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

  template <typename Record, std::size_t kCount>
  static const Key<Record>* find(const std::array<Key<Record>, kCount>& keys, const std::string& name) {
    const auto found =
        std::find_if(keys.begin(), keys.end(), [&name](const Key<Record>& key) { return key.name == name; });
    return found == keys.end() ? nullptr : &*found;
  }

  bool take(const Value& value) {
    switch (place_) {
      case Place::kNames:
        if (value.type != Value::Type::kText) return wrong("a key is not text");
        if (member_ == "keys") {
          step_keys_.push_back(find(kStepKeys, *value.text));
        } else {
          prediction_keys_.push_back(find(kPredictionKeys, *value.text));
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
        if (value.type != Value::Type::kText) return wrong("a list has something else than texts");
        texts_.push_back(std::move(*value.text));
        return true;
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
