#include "tools/whatif/whatif_output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/number.h"
#include "tools/whatif/procedure_output.h"

namespace lbf::tools {
namespace {

std::string count(std::uint64_t value, const char* one, const char* many) {
  return std::to_string(value) + " " + (value == 1 ? one : many);
}

template <typename Value>
nlohmann::ordered_json by_node_or(const std::vector<Value>& by_node, Value everywhere) {
  return by_node.empty() ? nlohmann::ordered_json(everywhere) : nlohmann::ordered_json(by_node);
}

// "2", or "2,1" by node.
template <typename Value>
std::string listed(const std::vector<Value>& by_node, Value everywhere) {
  constexpr std::size_t kMaxShown = 4;
  if (by_node.empty()) return format_number(static_cast<double>(everywhere), "%g");
  std::string text;
  for (std::size_t i = 0; i < std::min(kMaxShown, by_node.size()); ++i) {
    text += (i > 0 ? "," : "") + format_number(static_cast<double>(by_node[i]), "%g");
  }
  return text + (by_node.size() > kMaxShown ? ",..." : "");
}

nlohmann::ordered_json topology_json(const engine::Target& target) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const std::uint32_t node : target.topology_node_of_node) nodes.push_back(target.topology->node_name(node));
  return {{"file", target.topology->file()}, {"nodes", std::move(nodes)}};
}

}  // namespace

// See engine::unknown_demand_percent. Where nobody knows how dense the run was, the worst.
static double memory_percent(const WhatIfResult& result, const engine::Target& target) {
  const engine::RanDensity ran = engine::ran_density(std::max(1U, result.memory.ranks_per_domain),
                                                     result.domains_that_ran, result.stats.region_threads);
  return engine::unknown_demand_percent(ran, target, result.memory.demand);
}

// A line of the table; empty: no target says anything of memory.
static std::string memory_line(const WhatIfResult& result) {
  std::string text;
  if (std::ranges::any_of(result.targets, engine::shares_memory)) {
    text = "  memory: a rank alone in its memory domain demands " +
           format_number(result.memory.demand.bytes_per_s / 1e9, "%.3g") + " GB/s\n";
  }
  double most = 0;
  for (const engine::Target& target : result.targets) most = std::max(most, memory_percent(result, target));
  if (most < 1) return text;
  return text + "  memory: the demand is not known (--memory-demand): times may be off by up to " +
         format_number(most, "%.0f") + " % for it\n";
}

bool is_stuck(const WhatIfResult& result, const engine::Prediction& prediction) {
  return result.why_partial.empty() && !prediction.why_stuck.empty();
}

std::string why_unknown(const WhatIfResult& result, const engine::Prediction& prediction) {
  if (is_stuck(result, prediction)) return {};
  const protocol::SeenRun seen = daemon::seen_run_of(prediction, result.costs);
  return seen.is_too_little() ? seen.why_no_prediction() : std::string();
}

std::optional<advisor::Saying> saying_of(const WhatIfResult& result, std::size_t t) {
  const engine::Prediction& prediction = result.predictions[t];
  if (is_stuck(result, prediction)) return std::nullopt;
  advisor::Saying unknown;
  unknown.why = why_unknown(result, prediction);
  if (!unknown.why.empty()) return unknown;
  protocol::PredictionFields<protocol::Side::kReader> target;
  target.nodes = result.targets[t].nodes;
  target.network = result.targets[t].network->name();
  target.predicted_s = prediction.lbf_s;
  target.seen_share = prediction.seen_share;
  target.memory_percent = memory_percent(result, result.targets[t]);
  target.exchange_percent = prediction.exchange_percent;
  if (prediction.high_s != kNeverS) {
    target.low_s = prediction.low_s;
    target.high_s = prediction.high_s;
  }
  // Where nobody knows what ran, nobody knows how much the prediction changes.
  const bool knows_self = result.self && result.self->is_known() && result.self->predicted_s;
  return knows_self ? advisor::saying_of<protocol::Side::kReader>(result.trust, &*result.self, target)
                    : advisor::saying_of(result.trust, &target, target);
}

static std::string word_of(const advisor::Saying& saying) {
  std::string word(name_of(saying.form));
  std::ranges::replace(word, '_', ' ');
  return word;
}

std::array<std::string, 3> shown_time(const std::optional<advisor::Saying>& saying, const char* format) {
  if (!saying) return {"stuck", "-", "-"};
  std::array<std::string, 3> out{saying->is_number() ? format_number(saying->predicted_s, format) : word_of(*saying),
                                 "-", "-"};
  if (saying->form != advisor::Saying::Form::kCannotTell) out[1] = format_number(saying->low_s, format);
  if (saying->has_interval()) out[2] = format_number(saying->high_s, format);
  return out;
}

std::vector<std::string> why_no_numbers(const WhatIfResult& result) {
  std::vector<std::string> lines;
  for (std::size_t t = 0; t < result.targets.size(); ++t) {
    const auto saying = saying_of(result, t);
    if (!saying || saying->remedy.empty()) continue;
    std::string line = word_of(*saying) + ": " + saying->why + "; to get a number, " + saying->remedy;
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

bool is_beside_others(const WhatIfResult& result, const engine::Target& target) {
  return result.stats.other_programs_s > 0 && target.other_programs == engine::OtherPrograms::kAsTheyRan;
}

std::string others_note(const WhatIfResult& result) {
  if (!(result.stats.other_programs_s > 0)) return {};
  const std::string took = "other programs had the processors for " +
                           format_number(result.stats.other_programs_s, "%.3f") + " s of all ranks together, ";
  if (std::ranges::any_of(result.targets, [&](const auto& target) { return is_beside_others(result, target); }))
    return took + "which are in the time of the configuration that ran (+) and in no other";
  return took + "which are in no time here: no target is known to be the configuration that ran";
}

std::string whatif_json(const WhatIfResult& result) {
  nlohmann::ordered_json predictions = nlohmann::ordered_json::array();
  for (std::size_t t = 0; t < result.targets.size(); ++t) {
    const engine::Target& target = result.targets[t];
    const engine::Prediction& prediction = result.predictions[t];
    nlohmann::ordered_json entry;
    entry["nodes"] = target.nodes;
    entry["cores"] = by_node_or(target.cores_of_node, target.cores_per_node);
    if (target.threads != 0) entry["threads"] = target.threads;
    entry["placement"] = target.placement;
    entry["network"] = target.network->name();
    entry["contention"] = contention_name(target.network->contention());
    entry["speed"] = by_node_or(target.speed_of_node, target.speed);
    entry["waiting"] = engine::waiting_name(target.waiting);
    if (result.stats.other_programs_s > 0) entry["beside_other_programs"] = is_beside_others(result, target);
    entry["oversubscribed"] = engine::is_oversubscribed(target, result.stats.region_threads);
    entry["memory_percent"] = memory_percent(result, target);
    entry["exchange_percent"] = prediction.exchange_percent;
    if (target.topology != nullptr) entry["topology"] = topology_json(target);
    const std::string why = why_unknown(result, prediction);
    const bool is_known = why.empty() && !is_stuck(result, prediction);
    entry["lbf_s"] = is_known ? nlohmann::ordered_json(prediction.lbf_s) : nlohmann::ordered_json();
    if (!why.empty()) entry["why_unknown"] = why;
    if (const auto saying = saying_of(result, t)) add_saying(*saying, entry);
    if (prediction.seen_share < 1) {
      const bool told = !is_stuck(result, prediction) && prediction.high_s != kNeverS;
      entry["low_s"] = told ? nlohmann::ordered_json(prediction.low_s) : nlohmann::ordered_json();
      entry["high_s"] = told ? nlohmann::ordered_json(prediction.high_s) : nlohmann::ordered_json();
      entry["seen_share"] = prediction.seen_share;
    }
    entry["why_stuck"] = prediction.why_stuck;
    entry["rank_finish_s"] = prediction.rank_finish_s;
    if (result.sensitivity && prediction.complete) {
      entry["sensitivity"] = sensitivity_json({*result.sensitivity, target, prediction, result.sensitivity->curves[t]});
    }
    entry["partial"] = !result.why_partial.empty() || !prediction.complete;
    predictions.push_back(std::move(entry));
  }
  nlohmann::ordered_json root;
  root["predictions"] = std::move(predictions);
  root["ranks"] = result.ranks;
  root["memory_demand_MBps"] = result.memory.demand.bytes_per_s / 1e6;
  root["events"] = result.stats.events;
  root["messages"] = result.stats.messages;
  root["collectives"] = result.stats.collectives;
  root["approximated_collectives"] = result.stats.approximated_collectives;
  root["mpi_library"] = engine::mpi_library_name(result.mpi_rules.library);
  root["mpi_note"] = result.mpi_note;
  root["wildcard_receives"] = result.stats.wildcard_receives;
  root["one_sided_operations"] = result.stats.one_sided_operations;
  root["io_calls"] = result.stats.io_calls;
  root["io_s"] = result.stats.io_s;
  root["io_bytes_read"] = result.stats.bytes_read;
  root["io_bytes_written"] = result.stats.bytes_written;
  root["unmodelled_calls"] = result.stats.unmodelled_calls;
  root["unmodelled_s"] = result.stats.unmodelled_s;
  root["other_programs_s"] = result.stats.other_programs_s;
  root["lost_events"] = result.stats.lost_events;
  root["why_partial"] = result.why_partial;
  if (result.procedures) add_procedure_json(*result.procedures, result.predictions, root);
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string whatif_table(const WhatIfResult& result) {
  std::string text = result.trace + ": " + count(static_cast<std::uint64_t>(result.ranks), "rank", "ranks") + ", " +
                     count(result.stats.events, "event", "events") + ", " +
                     count(result.stats.messages, "message", "messages") + ", " +
                     count(result.stats.collectives, "collective call", "collective calls") + "\n";
  if (result.stats.one_sided_operations > 0) {
    text += "  " + count(result.stats.one_sided_operations, "one-sided operation", "one-sided operations") + "\n";
  }
  if (result.stats.io_calls > 0) {
    text += "  " + count(result.stats.io_calls, "MPI-IO call", "MPI-IO calls") + ", " +
            format_number(result.stats.io_s, "%.3f") + " s kept as measured; " +
            std::to_string(result.stats.bytes_read) + " bytes read, " + std::to_string(result.stats.bytes_written) +
            " written\n";
  }
  if (result.stats.unmodelled_calls > 0) {
    text += "  " + count(result.stats.unmodelled_calls, "call is", "calls are") + " not modelled, " +
            format_number(result.stats.unmodelled_s, "%.3f") + " s kept as measured\n";
  }
  if (result.stats.approximated_collectives > 0) {
    text += "  " + count(result.stats.approximated_collectives, "collective call is", "collective calls are") +
            " approximated (rules of " + engine::mpi_library_name(result.mpi_rules.library) + ")\n";
  }
  if (const std::string others = others_note(result); !others.empty()) text += "  " + others + "\n";
  if (!result.targets.empty() && result.targets.front().waiting == engine::Waiting::kSpin) {
    text += "  ranks that wait for a message keep their share of the processor\n";
  }
  if (!result.targets.empty() && result.targets.front().topology != nullptr) {
    text += "  switch hops between nodes as in " + result.targets.front().topology->file() + "\n";
  }
  text += memory_line(result);
  std::set<std::string> nominal;
  for (const engine::Target& target : result.targets) {
    if (target.network->nominal()) nominal.insert(target.network->name());
  }
  for (const std::string& name : nominal) text += "  " + name + " is from public figures, not measured here\n";
  constexpr std::size_t kMaxPlacementWidth = 32;
  std::vector<std::string> titles{"NODES", "CORES",       "PLACEMENT", "NETWORK", "CONTENTION",
                                  "SPEED", "PREDICTED_S", "LOW_S",     "HIGH_S"};
  const bool has_threads = !result.targets.empty() && result.targets.front().threads != 0;
  const double seen_share = result.predictions.empty() ? 1 : result.predictions.front().seen_share;
  if (!result.predictions.empty() && result.predictions.front().whole_run_s > 0) {
    const engine::Prediction& prediction = result.predictions.front();
    const Seconds measured_s = *std::ranges::max_element(prediction.rank_measured_s);
    text += "  predicted: the part that the program asked for with MPI_Pcontrol, " + format_number(measured_s, "%.3g") +
            " of " + format_number(prediction.whole_run_s, "%.3g") + " s\n";
  }
  if (seen_share < 1) {
    const std::string why = why_unknown(result, result.predictions.front());
    text += "  " +
            (why.empty() ? format_number(100 * seen_share, "%.1f") +
                               " % of the run was captured: times are extrapolated from it"
                         : "no prediction: " + why) +
            "\n";
  }
  if (has_threads) titles.emplace_back("THREADS");
  std::vector<std::vector<std::string>> rows{titles};
  for (std::size_t t = 0; t < result.targets.size(); ++t) {
    const engine::Target& target = result.targets[t];
    std::string placement = target.placement;
    if (placement.size() > kMaxPlacementWidth) placement = placement.substr(0, kMaxPlacementWidth - 3) + "...";
    const auto [predicted, low, high] = shown_time(saying_of(result, t), "%.6f");
    rows.push_back({std::to_string(target.nodes), listed(target.cores_of_node, target.cores_per_node), placement,
                    target.network->name(), contention_name(target.network->contention()),
                    listed(target.speed_of_node, target.speed),
                    predicted + (result.why_partial.empty() ? "" : " partial"), low, high});
    if (has_threads) rows.back().push_back(std::to_string(target.threads));
  }
  std::vector<std::size_t> width(titles.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  bool any_oversubscribed = false;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::vector<std::string>& row = rows[r];
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(width[i] - row[i].size(), ' ');
      const bool left = i >= 2 && i <= 4;  // words
      line += (i > 0 ? "  " : "") + (left ? row[i] + pad : pad + row[i]);
    }
    const bool marked = r > 0 && engine::is_oversubscribed(result.targets[r - 1], result.stats.region_threads);
    any_oversubscribed |= marked;
    text += line + (r > 0 && is_beside_others(result, result.targets[r - 1]) ? " +" : "") + (marked ? " *\n" : "\n");
  }
  if (any_oversubscribed) text += "  * more ranks or threads than processors on a node: the least exact predictions\n";
  for (const std::string& line : why_no_numbers(result)) text += "  " + line + "\n";
  if (result.sensitivity) text += sensitivity_table(*result.sensitivity, result.targets, result.predictions);
  if (result.procedures) text += procedure_table(*result.procedures, result.targets, result.predictions);
  return text;
}

}  // namespace lbf::tools
