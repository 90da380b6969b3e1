#include "report/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/quoted.h"
#include "report/answer.h"
#include "report/answer_json.h"
#include "report/read_value.h"
#include "report/text.h"

namespace lbf::report {
namespace {

using Json = nlohmann::json;

// slurm.h: SLURM_BATCH_SCRIPT, SLURM_EXTERN_CONT, SLURM_INTERACTIVE_STEP
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 3> kReservedSteps{
    {{0xfffffffb, "batch"}, {0xfffffffc, "extern"}, {0xfffffffa, "interactive"}}};

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

// Reads the keys of one object; the first key that is not what http-v1 says is remembered, the others are
// read on.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string what) : object_(object), what_(std::move(what)) {}

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return wrong(key, "text"), std::string{};
    return printable(value->get_ref<const std::string&>());
  }

  std::optional<std::uint64_t> count(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) return wrong(key, "a whole number"), std::nullopt;
    return value->get<std::uint64_t>();
  }

  std::optional<double> number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) return wrong(key, "a number"), std::nullopt;
    return value->get<double>();
  }

  std::optional<Seconds> seconds(const char* key) {
    const auto value = number(key);
    if (value && !(*value >= 0)) return wrong(key, "a time of 0 or more"), std::nullopt;
    return value;
  }

  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return wrong(key, "true or false"), false;
    return value->get<bool>();
  }

  template <typename T>
  void put(std::string_view key, T& out, protocol::Unit unit) {
    Value value;
    std::vector<std::string> texts;
    if (const Json* found = find(key)) value = value_of(*found, texts);
    if (const Expected expected = report::put(out, value, unit)) wrong(key, expected);
  }

  // [["MPI_Send",500,0.4],...]
  std::vector<CallTotal> calls(std::string_view key) {
    std::vector<CallTotal> out;
    const Json* value = find(key);
    if (value == nullptr) return out;
    if (!value->is_array()) return wrong(key, "a list of [name, count, seconds]"), out;
    for (const Json& item : *value) {
      if (!item.is_array() || item.size() != 3 || !item[0].is_string() || !item[1].is_number_unsigned() ||
          !item[2].is_number()) {
        return wrong(key, "a list of [name, count, seconds]"), out;
      }
      out.push_back(
          {printable(item[0].get_ref<const std::string&>()), item[1].get<std::uint64_t>(), item[2].get<double>()});
    }
    return out;
  }

  const Json* list(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return nullptr;
    if (!value->is_array()) return wrong(key, "a list"), nullptr;
    return value;
  }

  const Json* find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void wrong(std::string_view key, const char* expected) {
    if (error_.empty()) error_ = fmt::format("{}: '{}' is not {}", what_, key, expected);
  }

  const std::string& error() const { return error_; }

 private:
  static Value value_of(const Json& json, std::vector<std::string>& texts) {
    using Type = Value::Type;
    if (json.is_boolean()) return {.type = Type::kFlag, .flag = json.get<bool>()};
    if (json.is_number_unsigned()) return {.type = Type::kCount, .count = json.get<std::uint64_t>()};
    if (json.is_number()) return {.type = Type::kNumber, .number = json.get<double>()};
    if (json.is_string()) return {.type = Type::kText, .text = &json.get_ref<const std::string&>()};
    if (!json.is_array()) return {.type = Type::kOther};
    for (const Json& item : json) {
      if (!item.is_string()) return {.type = Type::kOther};
      texts.push_back(item.get_ref<const std::string&>());
    }
    return {.type = Type::kTexts, .texts = &texts};
  }

  const Json& object_;
  std::string what_;
  std::string error_;
};

// What the object has of a table of fields.
template <typename Table, typename Record>
void read_fields(ObjectReader& in, const Table& table, Record& out) {
  protocol::for_each_field(table, [&](const auto& field) {
    if (!field.is_in(protocol::In::kDocuments)) return;
    auto& member = out.*field.member;
    if constexpr (requires {
                    in.put(field.key, member, field.unit);
                    report::put(member, Value{}, field.unit);
                  }) {
      in.put(field.key, member, field.unit);
    } else if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, std::vector<CallTotal>>) {
      member = in.calls(field.key);
    }
  });
}

Result<TargetPrediction> read_prediction(const Json& json, const std::string& what) {
  if (!json.is_object()) return answer_error(what + " is not an object");
  ObjectReader in(json, what);
  TargetPrediction out;
  read_fields(in, protocol::kPredictionTable<protocol::Side::kReader>, out);
  if (!in.error().empty()) return answer_error(in.error());
  if (const auto topology = json.find("topology"); topology != json.end() && !topology->is_null()) {
    if (!topology->is_object()) return answer_error(what + ": topology is not an object");
    ObjectReader where(*topology, what + ": topology");
    read_fields(where, protocol::kTopologyTable, out.topology);
    if (!where.error().empty()) return answer_error(where.error());
  }
  out.keep_what_is_known();
  return out;
}

// [0, 0.2, 0.15, 1000, 0, 30.0]
bool read_rank_cost(const Json& json, CostPart& out) {
  if (!json.is_array() || json.size() != 6 || !json[0].is_number_unsigned() || !json[3].is_number_unsigned() ||
      !json[4].is_number_unsigned()) {
    return false;
  }
  for (const std::size_t i : {1, 2, 5}) {
    if (!json[i].is_number() || !(json[i].get<double>() >= 0)) return false;
  }
  out = {json[0].get<std::uint64_t>(),
         "",
         json[5].get<double>(),
         json[1].get<double>(),
         json[2].get<double>(),
         {},
         {},
         {},
         json[3].get<std::uint64_t>(),
         json[4].get<std::uint64_t>()};
  return true;
}

Result<void> read_cost_parts(ObjectReader& in, const std::string& what, Cost& out) {
  if (const Json* const nodes = in.list("nodes")) {
    for (const Json& json : *nodes) {
      if (!json.is_object()) return answer_error(what + ": nodes is not a list of objects");
      ObjectReader of_node(json, what + ": nodes");
      CostPart& part = out.nodes.emplace_back();
      part.number = of_node.count("node_index").value_or(0);
      part.state = of_node.text("state");
      part.program_cpu_s = of_node.seconds("program_cpu_s").value_or(0);
      part.direct_s = of_node.seconds("direct_s").value_or(0);
      part.ideal_s = of_node.seconds("ideal_s").value_or(0);
      part.relay_cpu_s = of_node.seconds("relay_cpu_s");
      part.held_up_s = of_node.seconds("held_up_s");
      const auto capture_s = of_node.seconds("once_capture_s");
      const auto relay_s = of_node.seconds("once_relay_s");
      if (capture_s && relay_s) part.once_s = *capture_s + *relay_s;
      if (!of_node.error().empty()) return answer_error(of_node.error());
    }
  }
  if (const Json* const ranks = in.list("ranks")) {
    for (const Json& json : *ranks) {
      if (!read_rank_cost(json, out.ranks.emplace_back()))
        return answer_error(what + ": ranks is not a list of [rank, direct, ideal, recorded, counted, program's time]");
    }
  }
  return {};
}

Result<Cost> read_cost(const Json& json, const std::string& what) {
  if (!json.is_object()) return answer_error(what + " is not an object");
  ObjectReader in(json, what);
  Cost out;
  read_fields(in, protocol::kCostTable<protocol::Side::kReader>, out);
  if (auto parts = read_cost_parts(in, what, out); !parts) return parts.error();
  if (!in.error().empty()) return answer_error(in.error());
  return out;
}

Result<CriticalPath> read_path(const Json& json, const std::string& what) {
  if (!json.is_object()) return answer_error(what + " is not an object");
  ObjectReader in(json, what);
  CriticalPath out;
  read_fields(in, protocol::kCriticalPathTable, out);
  const auto pairs = [&](const char* key, const auto& add) {
    const Json* const list = in.list(key);
    if (list == nullptr) return;
    for (const Json& item : *list) {
      if (!item.is_array() || item.size() != 2 || !item[1].is_number() || !add(item[0], item[1].get<double>()))
        return in.wrong(key, "a list of [name, seconds]");
    }
  };
  pairs("ranks", [&](const Json& rank, Seconds rank_s) {
    if (!rank.is_null() && !rank.is_number_unsigned()) return false;
    out.ranks.emplace_back(rank.is_null() ? std::optional<std::uint64_t>() : rank.get<std::uint64_t>(), rank_s);
    return true;
  });
  pairs("functions", [&](const Json& name, Seconds function_s) {
    if (!name.is_string()) return false;
    out.functions.emplace_back(printable(name.get_ref<const std::string&>()), function_s);
    return true;
  });
  if (!in.error().empty()) return answer_error(in.error());
  return out;
}

Result<ProcedureTimes> read_procedures(const Json& json, const std::string& what) {
  if (!json.is_object()) return answer_error(what + " is not an object");
  ObjectReader in(json, what);
  ProcedureTimes out;
  out.why_deferred = in.text("why_deferred");
  if (const Json* const list = in.list("procedures")) {
    for (const Json& item : *list) {
      if (!item.is_object()) return answer_error(what + ": a procedure is not an object");
      ObjectReader of_one(item, what);
      Procedure& one = out.procedures.emplace_back();
      read_fields(of_one, protocol::kProcedureTable<protocol::Side::kReader>, one);
      if (!of_one.error().empty()) return answer_error(of_one.error());
    }
  }
  if (!in.error().empty()) return answer_error(in.error());
  if (const Json* const of_path = in.find("critical_path")) {
    auto path = read_path(*of_path, what + ", critical path");
    if (!path) return path.error();
    out.path = std::move(*path);
  }
  return out;
}

// Whether a shell that reads the line starts the same program. Of words that were joined to a line no quotes tell where
// a word ends.
bool is_exact(const Json& command, const std::string& line) {
  if (command.is_array()) {
    return std::all_of(command.begin(), command.end(), [](const Json& json) {
      // Made printable here, or by lbfd where it was no UTF-8: not the word that the program got.
      const auto& word = json.get_ref<const std::string&>();
      return printable(word) == word && word.find(kReplacementCharacter) == std::string::npos;
    });
  }
  for (std::size_t start = 0; start < line.size();) {
    const std::size_t end = std::min(line.find(' ', start), line.size());
    const std::string word = line.substr(start, end - start);
    if (shell_word(word) != word) return false;
    start = end + 1;
  }
  return true;
}

constexpr std::uint64_t kMostNumber = 0xffffffff;

Result<Step> read_step(const Json& json, std::size_t number) {
  const std::string place = fmt::format("step {} of the answer", number);
  if (!json.is_object()) return answer_error(place + " is not an object");
  Step out;
  {
    ObjectReader in(json, place);
    const auto job = in.count("job");
    const auto step = in.count("step");
    if (!job || !step) {
      return answer_error(in.error().empty() ? place + " has no 'job' or 'step' number" : in.error());
    }
    if (*job > kMostNumber || *step > kMostNumber) return answer_error(place + " has no 'job' or 'step' number");
    out.job = static_cast<std::uint32_t>(*job);
    out.step = static_cast<std::uint32_t>(*step);
  }
  ObjectReader in(json, "job " + raw_job_id(out));
  read_fields(in, protocol::kStepTable<protocol::Side::kReader>, out);
  if (!in.error().empty()) return answer_error(in.error());
  const auto command = json.find("command");
  out.command_exact = !out.command_cut && (command == json.end() || is_exact(*command, out.command));
  if (out.command_cut) out.command += " ...";

  if (const Json* of_cost = in.find("cost")) {
    auto cost = read_cost(*of_cost, fmt::format("job {}, cost", raw_job_id(out)));
    if (!cost) return cost.error();
    out.cost = std::move(*cost);
  }

  if (const Json* of_procedures = in.find("procedures")) {
    auto procedures = read_procedures(*of_procedures, fmt::format("job {}, procedures", raw_job_id(out)));
    if (!procedures) return procedures.error();
    out.procedures = std::move(*procedures);
  }

  if (const Json* list = in.list("predictions")) {
    for (const Json& item : *list) {
      auto prediction =
          read_prediction(item, fmt::format("job {}, prediction {}", raw_job_id(out), out.predictions.size()));
      if (!prediction) return prediction.error();
      out.predictions.push_back(std::move(*prediction));
    }
  }
  if (!in.error().empty()) return answer_error(in.error());
  return out;
}

// nullopt: something in there is no JSON; what, the whole document says.
std::optional<Result<std::vector<Step>>> steps_one_by_one(std::string_view json) {
  const auto texts = texts_of_steps(json);
  if (!texts) return std::nullopt;
  std::vector<Step> out;
  out.reserve(texts->size());
  for (const std::string_view text : *texts) {
    const Json document = json_of_answer(text);
    if (document.is_discarded()) return std::nullopt;
    auto step = read_step(document, out.size() + 1);
    if (!step) return Result<std::vector<Step>>(step.error());
    out.push_back(std::move(*step));
  }
  return Result<std::vector<Step>>(std::move(out));
}

}  // namespace

std::optional<std::vector<std::string_view>> texts_of_steps(std::string_view json) {
  constexpr std::string_view kBegin = "{\"steps\":[";
  constexpr std::string_view kEnd = "]}";
  while (!json.empty() && (json.back() == '\n' || json.back() == ' ')) json.remove_suffix(1);
  if (!json.starts_with(kBegin) || !json.ends_with(kEnd)) return std::nullopt;
  json = json.substr(kBegin.size(), json.size() - kBegin.size() - kEnd.size());
  std::vector<std::string_view> texts;
  while (!json.empty()) {
    if (!texts.empty()) {
      if (json.front() != ',') return std::nullopt;
      json.remove_prefix(1);
    }
    std::size_t depth = 0;
    bool in_string = false;
    std::size_t at = 0;
    for (; at < json.size(); ++at) {
      const char c = json[at];
      if (in_string) {
        if (c == '\\') ++at;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
        break;
      }
      if (depth == 0) return std::nullopt;
    }
    if (at >= json.size()) return std::nullopt;
    texts.push_back(json.substr(0, at + 1));
    json.remove_prefix(at + 1);
  }
  return texts;
}

Error answer_error(const std::string& what) {
  return invalid_input("the answer does not keep to HTTP API version 1: " + what +
                       "; is this the lbfd that belongs to this lbf-report (lbf-report --version)?");
}

StepOrder order_of(const Step& step) {
  const std::uint64_t array_job = step.array_job.value_or(0);
  const std::uint64_t het_job = step.het_job.value_or(0);
  return {array_job != 0 ? array_job : (het_job != 0 ? het_job : step.job),
          step.array_task.value_or(0),
          step.het_offset.value_or(0),
          step.job,
          step.step,
          step.submit_s,
          step.restart};
}

void put_in_order(std::vector<Step>& steps) {
  const auto before = [](const Step& a, const Step& b) { return order_of(a) < order_of(b); };
  // Mostly they are: steps are large, and jobs begin in the order of their numbers.
  if (!std::is_sorted(steps.begin(), steps.end(), before)) std::stable_sort(steps.begin(), steps.end(), before);
}

const TargetPrediction* Step::self() const {
  for (const TargetPrediction& prediction : predictions) {
    if (prediction.is_self()) return &prediction;
  }
  return nullptr;
}

protocol::SeenRun Step::seen() const {
  protocol::SeenRun seen;
  if (const TargetPrediction* const of_self = self()) {
    seen.share = of_self->seen_share.value_or(1);
    seen.has_interval = of_self->low_s && of_self->high_s;
  }
  if (cost) {
    seen.limit_percent = cost->limit_percent;
    seen.corrected_percent = cost->corrected_percent;
  }
  return seen;
}

void TargetPrediction::keep_what_is_known() {
  if (!seen_too_little()) return;
  predicted_s.reset();
  speedup.reset();
  self_error_percent.reset();
}

std::optional<double> Step::mpi_percent() const {
  if (!mpi_s || !measured_s || !ranks || !(*measured_s > 0) || *ranks == 0) return std::nullopt;
  const double recorded = cost && cost->seen_in_part() ? *cost->seen_share : 1;
  const double percent = 100 * *mpi_s / (*measured_s * static_cast<double>(*ranks) * recorded);
  if (recorded < 1 && !(percent <= 100)) return std::nullopt;
  return percent;
}

std::optional<double> Step::self_error_percent() const {
  if (const TargetPrediction* of_self = self()) return of_self->self_error_percent;
  for (const TargetPrediction& prediction : predictions) {
    if (prediction.self_error_percent) return prediction.self_error_percent;
  }
  return std::nullopt;
}

std::optional<Seconds> Step::running_relay_s() const {
  if (!relay_cpu_s) return std::nullopt;
  return std::max(*relay_cpu_s - (cost ? cost->once_relay_s.value_or(0) : 0), 0.0);
}

std::optional<double> Step::overhead_percent() const {
  if (!capture_s || !relay_cpu_s || !measured_s || !ranks) return std::nullopt;
  const double available_s = *measured_s * static_cast<double>(*ranks);
  if (!(available_s > 0)) return std::nullopt;
  return 100 * (*capture_s + *running_relay_s()) / available_s;
}

std::optional<double> Step::unmodelled_percent() const {
  if (!unmodelled_s) return std::nullopt;
  if (*unmodelled_s == 0) return 0;
  if (!mpi_s || !(*mpi_s > 0)) return std::nullopt;
  return 100 * *unmodelled_s / *mpi_s;
}

std::string step_name(std::uint64_t step) {
  for (const auto& [number, name] : kReservedSteps) {
    if (step == number) return std::string(name);
  }
  if (step >= kFirstRunNumber && step <= kLastRunNumber) {
    return fmt::format("{}{:07x}", kRunPrefix, step - kFirstRunNumber);
  }
  return std::to_string(step);
}

std::vector<Step> one_per_job(std::vector<Step> steps) {
  std::vector<Step> out;
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>, std::size_t> place_of_job;
  for (Step& step : steps) {
    const auto [place, is_new] =
        place_of_job.try_emplace({step.cluster, step.job, step.submit_s, step.restart}, out.size());
    step.stands_for_job = true;
    if (is_new) {
      out.push_back(std::move(step));
    } else if (Step& other = out[place->second]; step.measured_s.value_or(0) > other.measured_s.value_or(0)) {
      other = std::move(step);
    }
  }
  return out;
}

std::string raw_job_id(const Step& step) {
  if (step.stands_for_job) return std::to_string(step.job);
  return fmt::format("{}.{}", step.job, step_name(step.step));
}

std::string key_of(const Step& step) {
  std::string key = fmt::format("{}/{}/{}/{}", step.cluster, step.job, step.step, step.restart);
  if (step.submit_s > 0) key += fmt::format("/{}", step.submit_s);
  return key;
}

static ClusterNames cluster_names = ClusterNames::kHidden;

void set_cluster_names(ClusterNames names) {
  cluster_names = names;
}

bool are_of_several_clusters(const std::vector<Step>& steps) {
  return std::ranges::any_of(steps, [&](const Step& step) { return step.cluster != steps.front().cluster; });
}

std::string job_id(const Step& step) {
  std::string tail = step.stands_for_job ? std::string() : '.' + step_name(step.step);
  if (cluster_names == ClusterNames::kShown) tail += '@' + step.cluster;
  if (step.array_job && step.array_task && *step.array_job != 0) {
    return fmt::format("{}_{}{}", *step.array_job, *step.array_task, tail);
  }
  if (step.het_job && step.het_offset && *step.het_job != 0) {
    return fmt::format("{}+{}{}", *step.het_job, *step.het_offset, tail);
  }
  return std::to_string(step.job) + tail;
}

std::string command_line(const Step& step) {
  const std::size_t word_end = step.command.find(' ');
  const std::size_t slash = step.command.rfind('/', word_end);
  // A quoted first word keeps its quotes, and so its folder.
  if (slash == std::string::npos || slash + 1 == word_end || slash + 1 == step.command.size() ||
      step.command.starts_with('\'')) {
    return step.command;
  }
  return step.command.substr(slash + 1);
}

std::string program_of(const Step& step) {
  const std::string command = command_line(step);
  const std::string program = command.substr(0, command.find(' '));
  return program.empty() ? "-" : program;
}

Result<std::vector<Step>> parse_steps(std::string_view json) {
  if (auto steps = steps_one_by_one(json)) {
    if (*steps) put_in_order(**steps);
    return std::move(*steps);
  }
  const Json document = json_of_answer(json);
  if (document.is_discarded() || !document.is_object()) return answer_error("it is not a JSON object");
  std::vector<Step> out;
  const auto steps = document.find("steps");
  if (steps == document.end()) {
    auto step = read_step(document, 1);
    if (!step) return step.error();
    out.push_back(std::move(*step));
    return out;
  }
  if (!steps->is_array()) return answer_error("'steps' is not a list");
  for (const Json& item : *steps) {
    auto step = read_step(item, out.size() + 1);
    if (!step) return step.error();
    out.push_back(std::move(*step));
  }
  put_in_order(out);
  return out;
}

}  // namespace lbf::report
