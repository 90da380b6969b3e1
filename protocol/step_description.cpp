// StepDescription, see step_description.h.
#include "protocol/step_description.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "protocol/json_fields.h"

namespace lbf::protocol {
namespace {

using nlohmann::json;

Error wrong(const char* key, const std::string& what) {
  return invalid_input(std::string("step description: '") + key + "' " + what);
}

// Absent or null: nothing. REQUIRES: description is an object.
const json* find(const json& description, const char* key) {
  const auto found = description.find(key);
  return found == description.end() || found->is_null() ? nullptr : &*found;
}

template <typename Number>
Result<std::optional<Number>> optional_number(const json& description, const char* key, std::uint64_t maximum) {
  const json* value = find(description, key);
  if (value == nullptr) return std::optional<Number>{};
  if (!value->is_number_integer() ||
      (value->is_number_integer() && !value->is_number_unsigned() && value->get<std::int64_t>() < 0)) {
    return wrong(key, "must be a whole number, not negative");
  }
  const auto number = value->get<std::uint64_t>();
  if (number > maximum) return wrong(key, "must be at most " + std::to_string(maximum));
  return std::optional<Number>(static_cast<Number>(number));
}

Result<std::uint64_t> optional_submit(const json& description) {
  const auto submit_s = optional_number<std::uint64_t>(description, "submit", kMaxSubmitS);
  if (!submit_s) return submit_s.error();
  return submit_s->value_or(0);
}

Result<bool> optional_flag(const json& description, const char* key) {
  const json* value = find(description, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return wrong(key, "must be true or false");
  return value->get<bool>();
}

Result<std::string> optional_text(const json& description, const char* key) {
  const json* value = find(description, key);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return wrong(key, "must be a string");
  return value->get<std::string>();
}

Result<std::vector<std::string>> optional_texts(const json& description, const char* key, std::size_t maximum) {
  std::vector<std::string> texts;
  const json* value = find(description, key);
  if (value == nullptr) return texts;
  if (!value->is_array() || value->size() > maximum) {
    return wrong(key, "must be an array of at most " + std::to_string(maximum) + " strings");
  }
  for (const json& text : *value) {
    if (!text.is_string()) return wrong(key, "must be an array of strings");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

template <typename Number>
Result<std::vector<Number>> optional_numbers(const json& description, const char* key, std::size_t maximum_count,
                                             std::uint64_t maximum) {
  std::vector<Number> numbers;
  const json* value = find(description, key);
  if (value == nullptr) return numbers;
  if (!value->is_array() || value->size() > maximum_count) {
    return wrong(key, "must be an array of at most " + std::to_string(maximum_count) + " numbers");
  }
  for (const json& number : *value) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > maximum) {
      return wrong(key, "must be an array of whole numbers up to " + std::to_string(maximum));
    }
    numbers.push_back(static_cast<Number>(number.get<std::uint64_t>()));
  }
  return numbers;
}

Result<cost::Limits> optional_limits(const json& description) {
  cost::Limits limits;
  const json* given = find(description, "limits");
  if (given == nullptr) return limits;
  if (!given->is_object()) return wrong("limits", "must be an object");
  for (const cost::Limit limit : cost::kLimitsOfLbfd) {
    const std::string name(cost::rule_of(limit).name);
    const json* value = find(*given, name.c_str());
    if (value == nullptr) continue;
    const auto read =
        value->is_number() ? cost::read_limit(limit, value->dump()) : Result<double>(invalid_input("must be a number"));
    if (!read) return wrong("limits", name + ": " + read.error().message);
    limits[limit] = *read;
  }
  return limits;
}

// Brackets within brackets: copying and writing JSON recurse.
bool is_too_deep(std::string_view text) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
      continue;
    }
    if (c == '"') in_text = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMostDepth) return true;
  }
  return false;
}

// A node's name goes into lines of a log and into tables: it is one word.
bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNodeNameBytes &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

// Of a user, an account, a partition. Directories of a site have blanks and letters of all languages in them.
bool is_name(std::string_view name) {
  return name.size() <= kMaxNameBytes &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

// What lbfd hardly reads: of a wrong type it counts as absent.
void take_unchecked(const json& raw, StepDescription& description) {
  JsonReader fields(raw);
  std::optional<std::uint64_t> gid;
  fields.whole("gid", gid);
  if (gid && *gid <= std::numeric_limits<gid_t>::max()) description.gid = static_cast<gid_t>(*gid);
  fields.text("submit_host", description.submit_host);
  fields.text("node", description.node);
  fields.text("run", description.run);
  fields.number("overhead_limit_percent", description.overhead_limit_percent);
}

constexpr const char* kRegisteredByLbfd = "registered_by_lbfd";

}  // namespace

Result<StreamDescription> decode_stream_description(const json& own, const StepDescription& step) {
  if (!own.is_object()) return invalid_input("stream description: not a JSON object");
  StreamDescription stream = StreamDescription::of(step);
  if (own.contains("task_ids")) {
    auto ids = optional_numbers<Rank>(own, "task_ids", kMaxStepTasks, static_cast<std::uint64_t>(step.tasks) - 1);
    if (!ids) return ids.error();
    stream.task_ids = std::move(*ids);
  }
  if (own.contains("cpus_on_node")) {
    const auto cpus = optional_number<std::uint32_t>(own, "cpus_on_node", kMaxCpusOnNode);
    if (!cpus) return cpus.error();
    stream.cpus_on_node = cpus->value_or(0);
  }
  const auto by_lbfd = optional_flag(own, kRegisteredByLbfd);
  if (!by_lbfd) return by_lbfd.error();
  stream.registered_by_lbfd = *by_lbfd;
  return stream;
}

Result<StepDescription> decode_step_description(std::string_view text) {
  constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
  if (text.size() > kMaxDescriptionBytes) return invalid_input("step description: longer than 8 MiB");
  if (is_too_deep(text)) return invalid_input("step description: nested too deeply");
  json raw = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!raw.is_object()) return invalid_input("step description: not a JSON object");
  for (const char* key : {"job", "step", "nodes", "node_index", "tasks"}) {
    if (find(raw, key) == nullptr) return wrong(key, "is missing");
  }

  StepDescription description;
// Each key in one line; the first wrong one is the error.
#define LBF_TAKE(member, expression)               \
  do {                                             \
    auto taken = (expression);                     \
    if (!taken) return taken.error();              \
    description.member = std::move(taken).value(); \
  } while (false)
  LBF_TAKE(cluster, optional_text(raw, "cluster"));
  LBF_TAKE(job, optional_number<std::uint32_t>(raw, "job", kMaxU32));
  LBF_TAKE(step, optional_number<std::uint32_t>(raw, "step", kMaxU32));
  LBF_TAKE(restart, optional_number<std::uint32_t>(raw, "restart", kMaxU32));
  LBF_TAKE(submit_s, optional_submit(raw));
  LBF_TAKE(array_job, optional_number<std::uint32_t>(raw, "array_job", kMaxU32));
  LBF_TAKE(array_task, optional_number<std::uint32_t>(raw, "array_task", kMaxU32));
  LBF_TAKE(het_job, optional_number<std::uint32_t>(raw, "het_job", kMaxU32));
  LBF_TAKE(het_offset, optional_number<std::uint32_t>(raw, "het_offset", kMaxU32));
  LBF_TAKE(user, optional_text(raw, "user"));
  LBF_TAKE(uid, optional_number<uid_t>(raw, "uid", kMaxU32 - 1));
  LBF_TAKE(launcher, optional_text(raw, "launcher"));
  LBF_TAKE(account, optional_text(raw, "account"));
  LBF_TAKE(partition, optional_text(raw, "partition"));
  LBF_TAKE(job_name, optional_text(raw, "job_name"));
  LBF_TAKE(nodes, optional_texts(raw, "nodes", kMaxStepNodes));
  LBF_TAKE(tasks_per_node, optional_numbers<std::uint32_t>(raw, "tasks_per_node", kMaxStepNodes, kMaxStepTasks));
  LBF_TAKE(task_ids, optional_numbers<Rank>(raw, "task_ids", kMaxStepTasks, kMaxStepTasks - 1));
  LBF_TAKE(command, optional_texts(raw, "command", std::size_t{1} << 20));
  LBF_TAKE(command_cut, optional_flag(raw, "command_cut"));
  LBF_TAKE(networks, optional_texts(raw, "networks", 1024));
  LBF_TAKE(limits, optional_limits(raw));
#undef LBF_TAKE
  const auto node_index = optional_number<std::uint32_t>(raw, "node_index", kMaxStepNodes - 1);
  if (!node_index) return node_index.error();
  description.node_index = **node_index;
  const auto tasks = optional_number<Rank>(raw, "tasks", kMaxStepTasks);
  if (!tasks) return tasks.error();
  description.tasks = **tasks;
  const auto cpus = optional_number<std::uint32_t>(raw, "cpus_on_node", kMaxCpusOnNode);
  if (!cpus) return cpus.error();
  description.cpus_on_node = cpus->value_or(0);
  const auto threads = optional_number<std::uint32_t>(raw, "threads_per_task", kMaxCpusOnNode);
  if (!threads) return threads.error();
  description.threads_per_task = threads->value_or(0);
  const auto start = optional_number<Nanoseconds>(raw, "start_realtime_ns",
                                                  static_cast<std::uint64_t>(std::numeric_limits<Nanoseconds>::max()));
  if (!start) return start.error();
  description.start_realtime_ns = start->value_or(0);
  take_unchecked(raw, description);

  // One without the other names nothing; plugins of lbf 0.1 wrote "array_job" for every job.
  if (!description.array_job || !description.array_task) {
    description.array_job.reset();
    description.array_task.reset();
  }
  if (!description.het_job || !description.het_offset) {
    description.het_job.reset();
    description.het_offset.reset();
  }
  if (description.tasks < 1) return wrong("tasks", "must be at least 1");
  if (description.nodes.empty()) return wrong("nodes", "must name at least one node");
  for (const std::string& node : description.nodes) {
    if (!is_node_name(node)) return wrong("nodes", "must be names of 1 to 255 printable characters without blanks");
  }
  for (const auto& [key, name] : {std::pair{"user", &description.user}, std::pair{"account", &description.account},
                                  std::pair{"partition", &description.partition}}) {
    if (!is_name(*name)) return wrong(key, "must have at most 255 bytes, none of them a control character");
  }
  if (description.node_index >= description.nodes.size()) {
    return wrong("node_index", "must be below the number of nodes, " + std::to_string(description.nodes.size()));
  }
  if (!description.tasks_per_node.empty()) {
    if (description.tasks_per_node.size() != description.nodes.size()) {
      return wrong("tasks_per_node", "must have one number per node");
    }
    const auto sum =
        std::accumulate(description.tasks_per_node.begin(), description.tasks_per_node.end(), std::uint64_t{0});
    if (sum != static_cast<std::uint64_t>(description.tasks)) {
      return wrong("tasks_per_node", "must add up to 'tasks', " + std::to_string(description.tasks));
    }
  }
  for (const Rank task : description.task_ids) {
    if (task >= description.tasks) return wrong("task_ids", "must be below 'tasks'");
  }
  // It is stored as it is written here: 1e14 has 4 bytes in TEXT, and then 17.
  if (text.size() > kMaxDescriptionBytes / 8 && text_of(raw).size() > kMaxDescriptionBytes)
    return invalid_input("step description: longer than 8 MiB when its numbers are written out");
  description.raw = std::move(raw);
  return description;
}

json json_of(const StepDescription& description) {
  json out = json::object();
  const auto put = [&out](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  const auto put_unless_empty = [&out](const char* key, const auto& value) {
    if (!value.empty()) out[key] = value;
  };
  put_unless_empty("cluster", description.cluster);
  put("job", description.job);
  put("step", description.step);
  put("restart", description.restart);
  if (description.submit_s > 0) out["submit"] = description.submit_s;
  put("array_job", description.array_job);
  put("array_task", description.array_task);
  put("het_job", description.het_job);
  put("het_offset", description.het_offset);
  put_unless_empty("user", description.user);
  put("uid", description.uid);
  put("gid", description.gid);
  put_unless_empty("account", description.account);
  put_unless_empty("partition", description.partition);
  put_unless_empty("job_name", description.job_name);
  put_unless_empty("submit_host", description.submit_host);
  put_unless_empty("nodes", description.nodes);
  if (!description.nodes.empty()) out["node_index"] = description.node_index;
  put_unless_empty("node", description.node);
  if (description.tasks > 0) out["tasks"] = description.tasks;
  put_unless_empty("tasks_per_node", description.tasks_per_node);
  put_unless_empty("task_ids", description.task_ids);
  if (description.cpus_on_node > 0) out["cpus_on_node"] = description.cpus_on_node;
  if (description.threads_per_task > 0) out["threads_per_task"] = description.threads_per_task;
  if (description.start_realtime_ns > 0) out["start_realtime_ns"] = description.start_realtime_ns;
  put_unless_empty("command", description.command);
  if (description.command_cut) out["command_cut"] = true;
  put_unless_empty("launcher", description.launcher);
  put_unless_empty("run", description.run);
  out["networks"] = description.networks;
  put("overhead_limit_percent", description.overhead_limit_percent);
  for (const cost::Limit limit : cost::kLimitsOfLbfd) {
    if (const auto& value = description.limits[limit])
      out["limits"][std::string(cost::rule_of(limit).name)] = json::parse(cost::shown_number(*value));
  }
  return out;
}

std::string encode(const StepDescription& description) {
  return text_of(json_of(description));
}

}  // namespace lbf::protocol
