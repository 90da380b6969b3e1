#include "tools/whatif/procedure_question.h"

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/number.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kMaxScenarios = 1024;
constexpr std::size_t kMaxNear = 5;
constexpr int kCurveStep = 10;

std::optional<double> percent_of(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 && *value <= 100 ? value : std::nullopt;
}

// "receiver", "sender", "rank:N"
struct Destination {
  engine::MoveTo to;
  Rank rank;
};
std::optional<Destination> parse_destination(const std::string& text) {
  if (text == "receiver") return Destination{engine::MoveTo::kReceiver, kAnyRank};
  if (text == "sender") return Destination{engine::MoveTo::kSender, kAnyRank};
  if (!text.starts_with("rank:")) return std::nullopt;
  const auto rank = parse_number<Rank>(std::string_view(text).substr(5));
  if (!rank || *rank < 0) return std::nullopt;
  return Destination{engine::MoveTo::kRank, *rank};
}

std::string destination_words(const std::string& to) {
  return to.starts_with("rank:") ? "rank " + to.substr(5) : "the " + to;
}

// NAME=PERCENT; a name may hold '=' (operators of C++): the last one counts.
std::pair<std::string, std::string> split_faster(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {text, ""};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Names between commas; those of templates and arguments, f<a, b>(c, d), are the name's.
std::vector<std::string> split(const std::string& text, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), text) != known.end()) return {text};
  std::vector<std::string> names{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  std::erase(names, "");
  return names;
}

std::vector<std::string> split(const std::vector<std::string>& texts, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    for (std::string& name : split(text, known)) names.push_back(std::move(name));
  }
  return names;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Numbers of the procedures that a name or pattern means.
Result<std::vector<std::uint32_t>> find(const std::string& pattern, const std::vector<std::string>& known) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t number = 0; number < known.size(); ++number) {
    if (known[number] == pattern) return std::vector<std::uint32_t>{number};
    if (::fnmatch(pattern.c_str(), known[number].c_str(), 0) == 0) found.push_back(number);
  }
  if (!found.empty()) return found;
  if (known.empty()) {
    return Error{ErrorCode::kNotFound, "the trace has no procedure times: no procedure '" + pattern +
                                           "' (record them with --lbf-procedures=" + pattern + ")"};
  }
  const std::vector<std::string> near = near_names(pattern, known);
  std::string list;
  for (const std::string& name : near) list += (list.empty() ? "" : ", ") + name;
  return Error{ErrorCode::kNotFound,
               "no procedure '" + pattern + "' in the trace" +
                   (near.empty() ? "; it has " + std::to_string(known.size()) + ", --procedures '*' lists them"
                                 : "; near: " + list)};
}

class Builder {
 public:
  Builder(const std::vector<std::string>& known, const std::set<std::string>& switched_off)
      : known_(known), switched_off_(switched_off) {}

  // As find(), without what was switched off, as long as something else is left.
  Result<std::vector<std::uint32_t>> usable(const std::string& pattern) {
    Result<std::vector<std::uint32_t>> found = find(pattern, known_);
    if (!found) return found;
    std::vector<std::uint32_t> kept;
    std::string off;
    for (const std::uint32_t number : *found) {
      if (!switched_off_.contains(known_[number])) {
        kept.push_back(number);
        continue;
      }
      off = known_[number];
      auto& left_out = question_.left_out;
      if (std::find(left_out.begin(), left_out.end(), off) == left_out.end()) left_out.push_back(off);
    }
    if (!kept.empty()) return kept;
    return invalid_input(
        off +
        " was switched off while it ran: it is called too often for the overhead limit. The trace has a "
        "part of its times, and what ran before says nothing of what ran after. Measure what calls it");
  }

  std::size_t look_at(std::uint32_t procedure) {
    auto& profiled = question_.plan.profiled;
    const auto found = std::find(profiled.begin(), profiled.end(), procedure);
    if (found != profiled.end()) return static_cast<std::size_t>(found - profiled.begin());
    profiled.push_back(procedure);
    question_.names.push_back(known_[procedure]);
    return profiled.size() - 1;
  }
  void add(ProcedureScenario what, engine::Scenario scenario) {
    question_.scenarios.push_back(what);
    question_.plan.scenarios.push_back(std::move(scenario));
  }
  ProcedureQuestion& question() { return question_; }

 private:
  const std::vector<std::string>& known_;
  const std::set<std::string>& switched_off_;
  ProcedureQuestion question_;
};

}  // namespace

void add_procedure_options(CLI::App& command, ProcedureOptions& options) {
  const std::string group = "Procedures (docs/procedures.md)";
  command
      .add_option(
          "--procedures", options.procedures,
          "procedures to look at, names or patterns, as in servBusy1,'solve*' (may be repeated): time, critical "
          "path, procedure LBF, Critical Path Zeroing")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--move", options.move, "what if these ran in the other process (may be repeated)")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--to", options.to,
                  "where to: receiver or sender of the messages that they lie next to, or rank:N (default receiver)")
      ->group(group);
  command.add_option("--share", options.share, "the part of their time that is moved, 0 to 1 (default 1)")
      ->group(group);
  command.add_option("--faster", options.faster, "NAME=PERCENT: what if it took so much less time (may be repeated)")
      ->allow_extra_args(false)
      ->group(group);
  command.add_flag("--curve", options.curve, "the gain for 10, 20 ... 100 percent, moved and made faster")
      ->group(group);
}

std::string check_procedure_options(const ProcedureOptions& options) {
  if (!parse_destination(options.to)) {
    return "--to " + options.to + ": receiver, sender or rank:N";
  }
  if (!(options.share >= 0 && options.share <= 1)) return "--share is a number from 0 to 1";
  for (const std::string& text : split(options.faster, {})) {
    const auto [name, percent] = split_faster(text);
    if (name.empty() || !percent_of(percent)) {
      return "--faster " + text + ": NAME=PERCENT, with PERCENT from 0 to 100";
    }
  }
  if (options.curve && !options.given()) return "--curve needs --procedures, --move or --faster: of what?";
  return {};
}

std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  const std::string wanted = lower(name);
  for (const std::string& each : known) {
    const std::string candidate = lower(each);
    const bool within = candidate.find(wanted) != std::string::npos || wanted.find(candidate) != std::string::npos;
    // Long ones are templates: their beginning decides, and the time stays bounded.
    const std::size_t distance = within ? 0 : edit_distance(wanted.substr(0, 64), candidate.substr(0, 64));
    if (within || distance <= std::max<std::size_t>(2, wanted.size() / 3)) ranked.emplace_back(distance, each);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMaxNear, ranked.size()); ++i) names.push_back(ranked[i].second);
  return names;
}

Result<ProcedureQuestion> make_procedure_question(const ProcedureOptions& options,
                                                  const std::vector<std::string>& known, Rank ranks,
                                                  const std::set<std::string>& switched_off) {
  Builder builder(known, switched_off);
  const Destination to = *parse_destination(options.to);
  builder.question().to = destination_words(options.to);
  if (to.to == engine::MoveTo::kRank && to.rank >= ranks) {
    return invalid_input("--to rank:" + std::to_string(to.rank) + ": the program has ranks 0 to " +
                         std::to_string(ranks - 1));
  }
  std::vector<std::size_t> listed;
  for (const std::string& pattern : split(options.procedures, known)) {
    const Result<std::vector<std::uint32_t>> found = builder.usable(pattern);
    if (!found) return found.error();
    for (const std::uint32_t procedure : *found) {
      const std::size_t at = builder.look_at(procedure);
      if (std::find(listed.begin(), listed.end(), at) == listed.end()) listed.push_back(at);
    }
  }
  engine::Scenario asked;
  asked.rank = to.rank;
  std::string& words = builder.question().asked;
  const auto change = [&](std::uint32_t procedure, engine::MoveTo where, double share) -> Result<void> {
    builder.look_at(procedure);
    for (const engine::ProcedureChange& other : asked.changes) {
      if (other.procedure == procedure) {
        return invalid_input(known[procedure] + " is named twice by --move and --faster");
      }
    }
    asked.changes.push_back({procedure, where, share});
    return {};
  };
  for (const std::string& pattern : split(options.move, known)) {
    const Result<std::vector<std::uint32_t>> found = builder.usable(pattern);
    if (!found) return found.error();
    for (const std::uint32_t procedure : *found) {
      if (Result<void> ok = change(procedure, to.to, options.share); !ok) return ok.error();
      words += (words.empty() ? "" : ", ") + known[procedure] + " moved to " + destination_words(options.to);
      if (options.share < 1) words += " by " + std::to_string(std::lround(options.share * 100)) + " %";
    }
  }
  for (const std::string& text : split(options.faster, known)) {
    const auto [name, percent] = split_faster(text);
    const Result<std::vector<std::uint32_t>> found = builder.usable(name);
    if (!found) return found.error();
    for (const std::uint32_t procedure : *found) {
      if (Result<void> ok = change(procedure, engine::MoveTo::kNowhere, *percent_of(percent) / 100); !ok)
        return ok.error();
      words += (words.empty() ? "" : ", ") + known[procedure] + " faster by " + percent + " %";
    }
  }
  using Kind = ProcedureScenario::Kind;
  for (const std::size_t at : listed) {
    const std::uint32_t procedure = builder.question().plan.profiled[at];
    builder.add({Kind::kLbf, at, 100}, {{{procedure, engine::MoveTo::kReceiver, 1}}, kAnyRank});
    builder.add({Kind::kZeroing, at, 100}, {{{procedure, engine::MoveTo::kNowhere, 1}}, kAnyRank});
  }
  if (!asked.changes.empty()) builder.add({Kind::kAsked, 0, 100}, asked);
  for (int percent = kCurveStep; options.curve && percent <= 100; percent += kCurveStep) {
    const double share = percent / 100.0;
    for (const std::size_t at : listed) {
      const std::uint32_t procedure = builder.question().plan.profiled[at];
      builder.add({Kind::kCurveMoved, at, percent}, {{{procedure, to.to, share}}, to.rank});
      builder.add({Kind::kCurveFaster, at, percent}, {{{procedure, engine::MoveTo::kNowhere, share}}, kAnyRank});
    }
    if (asked.changes.empty()) continue;
    engine::Scenario part = asked;
    for (engine::ProcedureChange& each : part.changes) each.share *= share;
    builder.add({Kind::kCurveAsked, 0, percent}, std::move(part));
  }
  if (builder.question().scenarios.size() > kMaxScenarios) {
    return invalid_input("that is " + std::to_string(builder.question().scenarios.size()) + " scenarios, more than " +
                         std::to_string(kMaxScenarios) + ": name fewer procedures, or leave --curve out");
  }
  return std::move(builder.question());
}

std::vector<engine::Target> with_scenarios(const std::vector<engine::Target>& targets,
                                           const ProcedureQuestion& question) {
  std::vector<engine::Target> all = targets;
  for (std::uint32_t v = 1; v <= question.scenarios.size(); ++v) {
    for (const engine::Target& target : targets) {
      all.push_back(target);
      all.back().scenario = v;
    }
  }
  return all;
}

}  // namespace lbf::tools
