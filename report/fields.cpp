#include "report/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/hostlist.h"
#include "base/number.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/answer.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr std::size_t kWidestColumn = 10000;

template <typename T>
std::string number(const std::optional<T>& value) {
  if (!value) return {};
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(*value);
  } else {
    return fmt::format("{:.6f}", *value);
  }
}

std::string duration(const std::optional<Seconds>& value) {
  return value ? format_duration(*value) : "";
}
std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}%", *value) : "";
}
std::string signed_percent(const std::optional<double>& value) {
  return value ? fmt::format("{:+.1f}%", *value) : "";
}
std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}x", *value) : "";
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (!out.empty()) out += separator;
    out += item;
  }
  return out;
}

// The fastest target of all whose time is said as a number, the one that ran included.
const TargetPrediction* fastest(const Step& step) {
  const TargetPrediction* best = nullptr;
  for (const TargetPrediction& target : step.predictions) {
    if (!target.predicted_s || (best != nullptr && *best->predicted_s <= *target.predicted_s)) continue;
    if (const auto saying = saying_of(step, target); saying && saying->is_number()) best = &target;
  }
  return best;
}

// What `cell` makes of the target's saying. Empty: it has none.
template <typename Cell>
std::string of_saying(const Step& step, const TargetPrediction* target, const Cell& cell) {
  const auto saying = target != nullptr ? saying_of(step, *target) : std::nullopt;
  return saying ? cell(*saying) : std::string();
}
using advisor::Saying;

std::optional<double> seen_percent(const Step& step) {
  if (step.cost && step.cost->seen_share) return 100 * *step.cost->seen_share;
  const TargetPrediction* self = step.self();
  return self != nullptr && self->seen_share ? std::optional(100 * *self->seen_share) : std::nullopt;
}

using S = const Step&;
using T = const TargetPrediction*;

// What says whether enough was seen for a prediction.
const std::string kSeenEnough = "predictions.seen_share,predictions.low_s,predictions.high_s,";
// What says how a prediction is said (saying_of).
const std::string kSaying =
    kSeenEnough +
    "measured_s,predictions.predicted_s,predictions.why_stuck,predictions.why_deferred,predictions.network,"
    "predictions.nodes,network,predictions.kind,predictions.self_error_percent,predictions.memory_percent,predictions."
    "exchange_percent,lost_events,events,wildcard_receives,messages,unmodelled_s,ranks,why_partial,library,others_s,"
    "limited_s";
const std::string kGain = kSaying + ",state,predictions.speedup,predictions.partial,predictions.measured_at_progress_s";

// What is computed from several fields.
std::vector<Field> computed_fields() {
  return {
      {"Best", 10, false, false, kSaying,
       [](S s, T) { return fastest(s) != nullptr ? duration(fastest(s)->predicted_s) : std::string(); }},
      {"BestGain", 8, false, false, kGain,
       [](S s, T) {
         const TargetPrediction* const best = fastest(s);
         if (best == nullptr) return std::string();
         // Of the configuration that ran it is the self-prediction error, and no gain.
         return best->is_self() || is_sure_gain(s, *best) ? ratio(speedup(s, *best)) : std::string();
       }},
      {"BestTarget", 24, true, false, kSaying + ",predictions.target,predictions.placement,predictions.threads",
       [](S s, T) { return fastest(s) != nullptr ? describe(*fastest(s), true) : std::string(); }},
      {"Command", 24, true, false, "command,command_cut", [](S s, T) { return command_line(s); }},
      {"End", 19, false, false, "state,end",
       [](S s, T) { return s.running() && !s.end_s ? std::string("Unknown") : format_timestamp(s.end_s.value_or(0)); }},
      {"High", 10, false, true, kSaying,
       [](S s, T t) {
         return of_saying(s, t, [](const Saying& said) {
           return said.has_interval() ? format_duration(said.high_s) : std::string();
         });
       }},
      {"JobID", 10, true, false, "", [](S s, T) { return job_id(s); }, nullptr, true},
      {"JobIDRaw", 10, true, false, "", [](S s, T) { return raw_job_id(s); }, nullptr, true},
      {"Low", 10, false, true, kSaying,
       [](S s, T t) {
         return of_saying(s, t, [](const Saying& said) {
           return said.form == Saying::Form::kCannotTell ? std::string() : format_duration(said.low_s);
         });
       }},
      {"MeasuredRaw", 14, false, false, "measured_s", [](S s, T) { return number(s.measured_s); }},
      {"NNodes", 6, false, false, "node_count",
       [](S s, T) {
         const std::uint64_t nodes = s.node_count.value_or(s.nodes.size());
         return nodes == 0 ? std::string() : std::to_string(nodes);
       }},
      {"Overhead", 8, false, false, "capture_s,relay_cpu_s,cost.once_relay_s,measured_s,ranks",
       [](S s, T) { return percent(s.overhead_percent()); }},
      {"OverheadOnce", 12, false, false, "cost.once_capture_s,cost.once_relay_s",
       [](S s, T) { return s.cost ? duration(s.cost->once_s()) : std::string(); }},
      {"Predicted", 11, false, true, kSaying,
       [](S s, T t) {
         if (t != nullptr && !t->why_stuck.empty()) return std::string("stuck");
         if (t != nullptr && !t->why_deferred.empty()) return std::string("deferred");
         if (t != nullptr && t->seen_too_little()) return Saying{}.in_words();
         return of_saying(s, t, [](const Saying& said) {
           const bool is_told = said.is_number() || said.form == Saying::Form::kCannotTell;
           return is_told ? said.in_words() : std::string();  // Low and High have it
         });
       }},
      {"PredictedRaw", 14, false, true, kSaying,
       [](S s, T t) {
         return of_saying(
             s, t, [](const Saying& said) { return said.is_number() ? number(std::optional(said.predicted_s)) : ""; });
       }},
      {"Seen", 7, false, false, "cost.seen_share,predictions.kind,predictions.seen_share",
       [](S s, T) { return percent(seen_percent(s)); }},
      {"SelfError", 9, false, false, kSeenEnough + "predictions.kind,predictions.self_error_percent",
       [](S s, T) { return signed_percent(s.self_error_percent()); }},
      {"Speedup", 8, false, true, kGain,
       [](S s, T t) {
         return of_saying(s, t, [&](const Saying& said) { return said.is_number() ? ratio(speedup(s, *t)) : ""; });
       }},
      {"Trust", 11, true, true, kSaying,
       [](S s, T t) { return of_saying(s, t, [](const Saying& said) { return std::string(name_of(said.form)); }); }},
      {"UnmodelledPct", 13, false, false, "unmodelled_s,mpi_s", [](S s, T) { return percent(s.unmodelled_percent()); }},
      {"User", 9, false, false, "user,uid", [](S s, T) { return s.user_name.empty() ? number(s.uid) : s.user_name; }},
  };
}

std::string show(const std::string& text, protocol::Unit) {
  return text;
}
std::string show(std::uint32_t count, protocol::Unit) {
  return std::to_string(count);
}
std::string show(std::uint64_t count, protocol::Unit unit) {
  return unit == protocol::Unit::kEpochSeconds ? format_timestamp(static_cast<double>(count)) : std::to_string(count);
}
std::string show(StepState state, protocol::Unit) {
  return name_of(state);
}
std::string show(const std::vector<std::string>& texts, protocol::Unit unit) {
  return unit == protocol::Unit::kNodes ? hostlist(texts) : joined(texts, "; ");
}
template <std::integral Count>
std::string show(const std::optional<Count>& count, protocol::Unit) {
  return number(count);
}
std::string show(const std::optional<double>& value, protocol::Unit unit) {
  switch (unit) {
    case protocol::Unit::kSeconds:
      return duration(value);
    case protocol::Unit::kEpochSeconds:
      return format_timestamp(value.value_or(0));
    case protocol::Unit::kPercent:
      return percent(value);
    case protocol::Unit::kFactor:
      return value ? fmt::format("{:g}", *value) : std::string();
    default:
      return number(value);
  }
}

// The columns of a table of fields, of which record_of() has the record; nullptr: there is none.
template <const auto& kTable, auto kRecordOf>
void add_columns(std::string_view prefix, bool of_target, std::vector<Field>& fields) {
  protocol::for_each_number<kTable>([&](auto number) {
    constexpr const auto& kField = std::get<number()>(kTable);
    if constexpr (!kField.column.name.empty()) {
      Field& field = fields.emplace_back();
      field.name = kField.column.name;
      field.width = kField.column.width;
      field.left = kField.column.align == protocol::Align::kLeft;
      field.of_target = of_target;
      field.keys.append(prefix).append(kField.key);
      field.value = [](S s, T t) {
        const auto* const record = kRecordOf(s, t);
        return record != nullptr ? show(record->*kField.member, kField.unit) : std::string();
      };
      if constexpr (kField.unit == protocol::Unit::kBytes) field.bytes = [](S s) { return s.*kField.member; };
    }
  });
}

// -e prints them in alphabetical order, and a cut name takes the first that fits.
const std::vector<Field> kFields = [] {
  constexpr auto kReader = protocol::Side::kReader;
  std::vector<Field> fields = computed_fields();
  add_columns<protocol::kStepTable<kReader>, [](S s, T) { return &s; }>("", false, fields);
  add_columns<protocol::kCostTable<kReader>, [](S s, T) { return s.cost ? &*s.cost : nullptr; }>("cost.", false,
                                                                                                 fields);
  add_columns<protocol::kPredictionTable<kReader>, [](S, T t) { return t; }>("predictions.", true, fields);
  add_columns<protocol::kTopologyTable, [](S, T t) { return t != nullptr ? &t->topology : nullptr; }>(
      "predictions.topology.", true, fields);
  std::sort(fields.begin(), fields.end(), [](const Field& a, const Field& b) { return a.name < b.name; });
  return fields;
}();

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool starts_with_name(std::string_view name, std::string_view start) {
  return name.size() >= start.size() && std::equal(start.begin(), start.end(), name.begin(), same_letter);
}

const Field* find_field(std::string_view name) {
  const Field* first = nullptr;
  for (const Field& field : kFields) {
    if (!starts_with_name(field.name, name)) continue;
    if (field.name.size() == name.size()) return &field;
    if (first == nullptr) first = &field;
  }
  return name.empty() ? nullptr : first;
}

std::string line_without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Around the cell of a column that grows, until its longest one is known. No cell has control characters.
constexpr char kCellBegins = '\x02';
constexpr char kCellEnds = '\x03';

// The cells of a line. What does not change from one line to the next is formatted once.
class LineWriter {
 public:
  LineWriter(std::vector<Column>& columns, const TableStyle& style)
      : columns_(columns), style_(style), cells_(columns.size()) {}

  void set(std::size_t column, std::string text) {
    Column& shown = columns_[column];
    if (style_.parsable || !shown.grows) {
      cells_[column] = shown_cell(std::move(text), shown.width, shown.left, style_);
      return;
    }
    shown.width = std::max(shown.width, display_width(text));
    cells_[column] = kCellBegins + std::move(text) + kCellEnds;
  }

  void append_to(std::string& out) const {
    const std::size_t start = out.size();
    const std::string_view separator = style_.parsable ? std::string_view(style_.delimiter) : " ";
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (i > 0) out += separator;
      out += cells_[i];
    }
    if (style_.parsable) {
      if (style_.trailing) out += style_.delimiter;
    } else {
      while (out.size() > start && out.back() == ' ') out.pop_back();
    }
    out += '\n';
  }

 private:
  std::vector<Column>& columns_;
  const TableStyle& style_;
  std::vector<std::string> cells_;
};

// Fills the marked cells of `text` up to the widths of `columns`.
std::string widened(std::string_view text, const std::vector<Column>& columns) {
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    if (column.grows) widths.push_back(column.width);
  }
  std::string out;
  for (std::size_t number = 0;; ++number) {
    const std::size_t begin = text.find(kCellBegins);
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin + 1);
    const std::string_view cell = text.substr(0, text.find(kCellEnds));
    text.remove_prefix(cell.size() + 1);
    out += cell;
    if (!text.starts_with('\n')) out.append(widths[number % widths.size()] - display_width(cell), ' ');
  }
}

bool is_all(std::string_view name) {
  return name.size() == 3 && starts_with_name(name, "all");
}

}  // namespace

std::string shown_cell(std::string text, std::size_t width, bool left, const TableStyle& style) {
  if (!style.parsable) return fit(text, width, left);
  if (style.delimiter.empty()) return text;
  // Of a longer one its first character: the end of a text and the begin of a delimiter must not make one, too.
  const std::string reserved = first_character(style.delimiter);
  const char* const otherwise = reserved == "?" ? "_" : "?";
  for (std::size_t at = text.find(reserved); at != std::string::npos; at = text.find(reserved, at + 1))
    text.replace(at, reserved.size(), otherwise);
  return text;
}

std::string_view gain_keys() {
  return kGain;
}

const std::vector<Field>& all_fields() {
  return kFields;
}

Result<std::vector<Column>> parse_format(std::string_view format) {
  std::vector<Column> out;
  std::string_view rest = format;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t mark = item.find('%');
    const std::string_view name = item.substr(0, mark);
    if (is_all(item)) {
      for (const Field& field : kFields) out.push_back({&field, field.width, field.left, field.is_id});
      if (comma == std::string_view::npos) return out;
      rest.remove_prefix(comma + 1);
      continue;
    }
    const Field* field = find_field(name);
    if (field == nullptr) {
      return invalid_input(fmt::format("'{}' is no field; lbf-report -e lists them", name));
    }
    Column column{field, field->width, field->left, field->is_id};
    if (mark != std::string_view::npos) {
      column.grows = false;
      std::string_view width = item.substr(mark + 1);
      column.left = width.starts_with('-');
      if (column.left) width.remove_prefix(1);
      column.width = parse_number<std::size_t>(width).value_or(0);
      if (column.width == 0 || column.width > kWidestColumn) {
        return invalid_input(
            fmt::format("'{}': after % stands a width of 1 to {}, for example {}%20 or {}%-20 for the left side", item,
                        kWidestColumn, field->name, field->name));
      }
    }
    out.push_back(column);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

bool needs_targets(const std::vector<Column>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const Column& column) { return column.field->of_target; });
}

std::string format_bytes(std::uint64_t bytes, const TableStyle& style) {
  if (!style.convert) return std::to_string(bytes);
  constexpr std::string_view kUnits = "KMGTP";
  auto value = static_cast<double>(bytes);
  char unit = '\0';
  for (const char next : kUnits) {
    if (style.unit == '\0' ? value < 1024 : unit == style.unit) break;
    value /= 1024;
    unit = next;
  }
  return unit == '\0' ? std::to_string(bytes) : fmt::format("{:.2f}{}", value, unit);
}

std::string_view default_step_format(bool many_users) {
  return many_users ? "JobID,User%8,JobName%-8,State%8,NTasks%6,NNodes%6,Measured%9,Best%9,BestGain%8"
                    : "JobID,JobName%-14,State%8,NTasks%6,NNodes%6,Measured%10,Best%10,BestGain%8";
}

std::string_view default_target_format() {
  return "JobID,Nodes,Network%-13,Placement%-8,Predicted,Low%8,High%8,Speedup%7";
}

std::string_view long_format() {
  return "JobID,User,JobName,State,Start,End,NTasks,NodeList,RunNetwork,MeasuredRaw,Target,Nodes,Cores,"
         "Network,"
         "Placement,Contention,Topology,Speed,Kind,PredictedRaw,Trust,Speedup,SelfError,MPITime,UnmodelledPct,"
         "Wildcards,"
         "Overhead,OverheadLimit,OverheadPredicted,OverheadLow,OverheadHigh,OverheadOnce,OverheadTotal,CaptureState,"
         "Seen,Low,High,"
         "Deferred,Events,Messages,LostEvents,Reason,Notes";
}

std::string help_format() {
  constexpr std::size_t kPerLine = 4;
  constexpr std::size_t kWidth = 20;
  std::string out;
  std::string line;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    line += fit(kFields[i].name, kWidth, true);
    if (i % kPerLine == kPerLine - 1 || i + 1 == kFields.size()) {
      out += line_without_trailing_blanks(std::move(line)) + '\n';
      line.clear();
    }
  }
  return out;
}

// Lines of a table.
class Table::Lines {
 public:
  Lines(std::vector<Column> columns, TableStyle style)
      : columns_(std::move(columns)), style_(std::move(style)), writer_(columns_, style_) {}

  // The header, and `lines`, to which no more will come.
  std::string finish(const std::string& lines) {
    std::string out;
    append_header(out);
    out += lines;
    const bool grows = std::any_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.grows; });
    return grows && !style_.parsable ? widened(out, columns_) : out;
  }

  void append_step(const Step& step, std::string& out) {
    const TargetPrediction* const first =
        per_target_ && !step.predictions.empty() ? &step.predictions.front() : nullptr;
    append(
        [&](const Column& column) {
          const auto bytes = column.field->bytes != nullptr ? column.field->bytes(step) : std::nullopt;
          return bytes ? format_bytes(*bytes, style_) : column.field->value(step, first);
        },
        out);
    if (first == nullptr) return;
    for (const TargetPrediction& target : step.predictions) {
      if (&target == first) continue;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i].field->of_target) writer_.set(i, columns_[i].field->value(step, &target));
      }
      writer_.append_to(out);
    }
  }

 private:
  void append_header(std::string& out) {
    if (!style_.header) return;
    append([](const Column& column) { return std::string(column.field->name); }, out);
    if (!style_.parsable) append([](const Column& column) { return std::string(column.width, '-'); }, out);
  }
  template <typename CellOf>
  void append(const CellOf& cell_of, std::string& out) {
    for (std::size_t i = 0; i < columns_.size(); ++i) writer_.set(i, cell_of(columns_[i]));
    writer_.append_to(out);
  }

  std::vector<Column> columns_;  // a column that grows has the width of its longest cell so far
  const TableStyle style_;
  LineWriter writer_;
  const bool per_target_ = needs_targets(columns_);
};

// A step's lines: text_ from `begin` to `end`.
struct Table::Part {
  StepOrder order;
  std::size_t begin;
  std::size_t end;
};

Table::Table(std::vector<Column> columns, TableStyle style)
    : lines_(std::make_unique<Lines>(std::move(columns), std::move(style))) {}
Table::~Table() = default;

std::size_t Table::steps() const {
  return parts_.size();
}

void Table::add(const Step& step) {
  const std::size_t begin = text_.size();
  lines_->append_step(step, text_);
  parts_.push_back({order_of(step), begin, text_.size()});
}

std::string Table::take_text() {
  const auto before = [](const Part& a, const Part& b) { return a.order < b.order; };
  std::vector<Part> parts = std::exchange(parts_, {});
  std::string text = std::exchange(text_, {});
  // Mostly they are: jobs begin in the order of their numbers.
  if (std::is_sorted(parts.begin(), parts.end(), before)) return lines_->finish(text);
  std::string sorted;
  sorted.reserve(text.size());
  std::stable_sort(parts.begin(), parts.end(), before);
  for (const Part& part : parts) sorted.append(text, part.begin, part.end - part.begin);
  return lines_->finish(sorted);
}

std::string render_table(const std::vector<Step>& steps, const std::vector<Column>& columns, const TableStyle& style) {
  Table::Lines lines(columns, style);
  std::string out;
  for (const Step& step : steps) lines.append_step(step, out);
  return lines.finish(out);
}

}  // namespace lbf::report
