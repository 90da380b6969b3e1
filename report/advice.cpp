#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "advisor/trust/step_trust.h"
#include "base/network_name.h"
#include "base/number.h"
#include "base/times.h"
#include "report/other_programs.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr std::string_view kMap = "map=";
constexpr std::string_view kPlane = "plane=";

// The most ranks that one node gets.
std::optional<std::uint64_t> fullest_node(std::uint64_t ranks, std::uint64_t nodes, std::string_view placement) {
  if (nodes == 0) return std::nullopt;
  if (placement.starts_with(kPlane)) {
    const auto plane = parse_number<std::uint64_t>(placement.substr(kPlane.size()));
    if (!plane || *plane == 0) return std::nullopt;
    // Planes are dealt round robin, so the first node has the most of them, the last plane may be a short
    // one.
    const std::uint64_t planes = (ranks + *plane - 1) / *plane;
    const std::uint64_t of_first = (planes + nodes - 1) / nodes;
    const bool has_last = (planes - 1) % nodes == 0;
    const std::uint64_t last = ranks - (planes - 1) * *plane;
    return has_last ? std::max((of_first - 1) * *plane + last,
                               nodes > 1 && of_first > 1 ? (of_first - 1) * *plane : std::uint64_t{0})
                    : of_first * *plane;
  }
  if (placement.starts_with(kMap)) {
    std::map<std::string_view, std::uint64_t> ranks_of_node;
    std::string_view rest = placement.substr(kMap.size());
    while (true) {
      const std::size_t comma = rest.find(',');
      ++ranks_of_node[rest.substr(0, comma)];
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    std::uint64_t most = 0;
    for (const auto& [node, count] : ranks_of_node) most = std::max(most, count);
    return most;
  }
  return (ranks + nodes - 1) / nodes;  // block and cyclic are even
}

// Against the measured or the self-predicted time, whichever is smaller.
std::optional<advisor::Gain> gain_of(const Step& step, const TargetPrediction& target) {
  const auto reference = reference_s(step, target);
  const auto saying = saying_of(step, target);
  if (!reference || !saying || !(*reference > 0)) return std::nullopt;
  return advisor::gain_of(std::min(*reference, *step.self()->predicted_s), *target.predicted_s,
                          saying->half_width_percent);
}

bool is_sure(const advisor::Gain& gain) {
  return gain.is_certain() && gain.percent >= kNoticeablePercent;
}

const TargetPrediction* faster(const TargetPrediction* best, const TargetPrediction& candidate) {
  return best == nullptr || *candidate.predicted_s < *best->predicted_s ? &candidate : best;
}

std::string error_text(const Step& step) {
  const auto error = step.self_error_percent();
  return error ? fmt::format("self-prediction error {:+.1f} %", *error) : "self-prediction error not known";
}

// "12.30 s instead of 15.20 s (1.24x), give or take 8.7 %", "9.80 s to 14.2 s instead of 15.20 s"
std::string comparison(const Step& step, const TargetPrediction& target) {
  const auto saying = saying_of(step, target).value_or(advisor::Saying{});
  const auto reference = reference_s(step, target);
  const auto ratio = speedup(step, target);
  std::string out = saying.in_words();
  if (reference) out += " instead of " + format_duration(*reference);
  if (!saying.is_number()) return out;
  if (ratio) out += fmt::format(" ({:.2f}x)", *ratio);
  return out + ", give or take " + saying.give_or_take();
}

const std::string& network_of(const Step& step) {
  return step.network.empty() && step.self() != nullptr ? step.self()->network : step.network;
}

// Of the targets on so many nodes whose network nobody measured: the bound, and what is said on each nominal network.
struct Unmeasured {
  std::optional<advisor::Saying> bound;
  std::vector<std::pair<advisor::Saying, std::string_view>> nominal;  // with the network, fastest first
};
Unmeasured unmeasured_of(const Step& step, const TargetPrediction& like) {
  Unmeasured out;
  for (const TargetPrediction& target : step.predictions) {
    if (target.nodes != like.nodes || target.placement != like.placement || !is_unmeasured(step, target)) continue;
    auto saying = saying_of(step, target);
    if (!saying) continue;
    if (saying->form == advisor::Saying::Form::kAtBest) {
      out.bound = std::move(saying);
    } else {
      out.nominal.emplace_back(std::move(*saying), target.network);
    }
  }
  std::stable_sort(out.nominal.begin(), out.nominal.end(),
                   [](const auto& a, const auto& b) { return a.first.predicted_s < b.first.predicted_s; });
  return out;
}

// "partition batch has 4 usable nodes", "whether there are as many nodes is not known here"
std::string why_not_startable(const Step& step) {
  if (!step.usable_nodes) return "whether there are as many nodes is not known here";
  return fmt::format("partition {} has {} usable node{}", printable(step.partition), *step.usable_nodes,
                     *step.usable_nodes == 1 ? "" : "s");
}

std::string up_to(const Step& step, const Advice& advice) {
  const auto most = advice.beyond != nullptr ? startable_nodes(step) : std::nullopt;
  return most ? fmt::format(" on up to {} node{}", *most, *most == 1 ? "" : "s") : std::string();
}

// What is predicted to be faster, and why that is no advice. Empty: nothing is.
std::string doubt(const Step& step, const Advice& advice, std::string_view network) {
  if (advice.doubtful == nullptr) return {};
  const TargetPrediction& target = *advice.doubtful;
  return fmt::format(" {} would take {}: no sure gain.", describe(target, target.network != network),
                     comparison(step, target));
}

std::string command_to_paste(const Step& step, const TargetPrediction& target, std::size_t width) {
  const std::string flags = srun_flags(step, target);
  if (flags.empty()) return {};
  std::string command = step.command_exact && !step.command.empty() ? ' ' + step.command : std::string();
  const bool arbitrary = flags.find("arbitrary") != std::string::npos;
  const std::string head = (arbitrary ? "SLURM_HOSTFILE=FILE srun " : "srun ") + flags;
  if (command.empty() || display_width(head + command) + 4 > width) command = " ...";
  std::string out = "    " + head + command + '\n';
  if (arbitrary) {
    out += wrap("FILE has one line per rank with the name of its node; the nodes in rank order are " +
                    shorten(target.placement.substr(kMap.size()), width / 2) + ".",
                width, 4);
  }
  return out;
}

// What is known of more nodes while nobody has measured the network between them.
std::string unmeasured_note(const Step& step, const TargetPrediction& target, std::string_view so_far,
                            std::size_t width) {
  const Unmeasured known = unmeasured_of(step, target);
  std::string text = describe(target, false) + " would take ";
  if (known.bound) text += known.bound->in_words();
  for (const auto& [saying, network] : known.nominal) {
    const bool is_first = &saying == &known.nominal.front().first;
    if (!is_first || known.bound) text += is_first ? "; " : ", ";
    text += fmt::format("{} on {}", saying.in_words(3), network);
  }
  if (!known.nominal.empty()) text += " (public figures)";
  if (const auto reference = reference_s(step, target)) text += ", instead of " + format_duration(*reference);
  const auto most = startable_nodes(step);
  if (most && target.nodes && *target.nodes > *most) text += "; " + why_not_startable(step);
  return wrap(fmt::format("{}The network between nodes is not measured here: {}. To get numbers, {}.", so_far, text,
                          advisor::kMeasureNetwork),
              width, 0);
}

// Why a target's time is no number, and what to do; of the first such target, as the others are mostly alike. Empty:
// all are numbers, or the network is the reason, of which unmeasured_note() speaks.
std::string why_no_number(const Step& step, std::size_t width) {
  for (const TargetPrediction& target : step.predictions) {
    const auto saying = saying_of(step, target);
    if (!saying || saying->is_number() || is_unmeasured(step, target)) continue;
    return wrap(fmt::format("Why no number: {}. To get one, {}.", saying->why, saying->remedy), width, 0);
  }
  return {};
}

// What is not in the table yet, and where it can be had meanwhile.
std::string deferred_note(const Step& step, std::size_t width) {
  std::size_t deferred = 0;
  bool for_good = false;
  for (const TargetPrediction& target : step.predictions) {
    if (target.why_deferred.empty()) continue;
    ++deferred;
    for_good = for_good || target.deferred_for_good;
  }
  if (deferred == 0) return {};
  const std::string which = fmt::format("{} {} deferred", deferred, deferred == 1 ? "target is" : "targets are");
  if (for_good) return wrap(which + " and will not be predicted: the trace is gone.", width, 0);
  return wrap(fmt::format("{} until lbfd has room; ask again later, or now: lbf-whatif {}", which, job_id(step)), width,
              0);
}

}  // namespace

std::optional<Seconds> reference_s(const Step& step, const TargetPrediction& target) {
  if (target.speedup && target.predicted_s) return *target.speedup * *target.predicted_s;
  if ((step.running() || target.partial) && target.measured_at_progress_s) return target.measured_at_progress_s;
  return step.measured_s;
}

std::optional<double> speedup(const Step& step, const TargetPrediction& target) {
  if (target.speedup) return target.speedup;
  const auto reference = reference_s(step, target);
  if (!reference || !target.predicted_s || !(*target.predicted_s > 0)) return std::nullopt;
  return *reference / *target.predicted_s;
}

bool is_sure_gain(const Step& step, const TargetPrediction& target) {
  const auto gain = gain_of(step, target);
  return gain && is_sure(*gain);
}

Advice advise(const Step& step) {
  Advice advice;
  const TargetPrediction* self = step.self();
  const auto error = step.self_error_percent();
  if (self == nullptr || !self->predicted_s || !error) return advice;
  advice.self_known = true;
  const std::string& network = network_of(step);
  const auto most_nodes = startable_nodes(step);
  const TargetPrediction* unmeasured_beyond = nullptr;
  for (const TargetPrediction& target : step.predictions) {
    if (target.is_self()) continue;
    const auto gain = gain_of(step, target);
    if (!gain) continue;
    const bool starts = !most_nodes || !target.nodes || *target.nodes <= *most_nodes;
    if (is_unmeasured(step, target)) {
      if (gain->high_percent < kNoticeablePercent) continue;
      auto& best_of = starts ? advice.unmeasured : unmeasured_beyond;
      best_of = faster(best_of, target);
      continue;
    }
    if (saying_of(step, target)->form == advisor::Saying::Form::kCannotTell) continue;
    if (!starts) {
      if (is_sure(*gain)) advice.beyond = faster(advice.beyond, target);
      continue;
    }
    auto& best = !is_sure(*gain) ? advice.doubtful : target.network == network ? advice.here : advice.elsewhere;
    if (is_sure(*gain) || gain->percent >= kNoticeablePercent) best = faster(best, target);
  }
  if (advice.here != nullptr && advice.elsewhere != nullptr &&
      !is_sure(advisor::gain_of(*advice.here->predicted_s, *advice.elsewhere->predicted_s,
                                saying_of(step, *advice.elsewhere)->half_width_percent))) {
    advice.elsewhere = nullptr;
  }
  if (advice.first() != nullptr) advice.doubtful = nullptr;
  if (advice.beyond != nullptr && advice.first() != nullptr &&
      *advice.beyond->predicted_s >= *advice.first()->predicted_s) {
    advice.beyond = nullptr;
  }
  if (advice.unmeasured == nullptr) advice.unmeasured = unmeasured_beyond;
  if (advice.unmeasured != nullptr && advice.first() != nullptr &&
      *advice.unmeasured->predicted_s >= *advice.first()->predicted_s) {
    advice.unmeasured = nullptr;
  }
  return advice;
}

std::optional<std::uint64_t> startable_nodes(const Step& step) {
  if (step.usable_nodes) return step.usable_nodes;
  const TargetPrediction* const self = step.self();
  return self != nullptr ? self->nodes : std::nullopt;
}

advisor::Trust trust_of(const Step& step) {
  advisor::Trust trust = advisor::trust_of(step, step.self(), step.seen());
  trust.self_error_percent = step.self_error_percent();
  return trust;
}

std::optional<advisor::Saying> saying_of(const Step& step, const TargetPrediction& target) {
  return advisor::saying_of(trust_of(step), step.self(), target);
}

bool is_unmeasured(const Step& step, const TargetPrediction& target) {
  const auto nodes = target.nodes.value_or(1);
  return !is_measured(target.network, nodes) && (is_bound(target.network, nodes) || target.network != network_of(step));
}

// Of each rank.
static std::uint64_t threads_of(const TargetPrediction& target) {
  return std::max<std::uint64_t>(target.threads.value_or(0), 1);
}

bool is_oversubscribed(const Step& step, const TargetPrediction& target) {
  if (!target.nodes || !step.ranks || !target.cores_per_node) return false;
  const auto fullest = fullest_node(*step.ranks, *target.nodes, target.placement);
  return fullest && *fullest * threads_of(target) > *target.cores_per_node;
}

std::string srun_flags(const Step& step, const TargetPrediction& target) {
  if (!target.nodes || *target.nodes == 0 || !step.ranks) return {};
  std::string flags = fmt::format("-N{} -n{}", *target.nodes, *step.ranks);
  const auto fullest = fullest_node(*step.ranks, *target.nodes, target.placement);
  const bool shares = is_oversubscribed(step, target);
  const bool other_threads = step.self() != nullptr && threads_of(target) != threads_of(*step.self());
  if (*target.nodes > 1) {
    if (target.placement.starts_with(kMap)) {
      flags += " --distribution=arbitrary";
    } else if (target.placement == "block" || target.placement == "cyclic" || target.placement.starts_with(kPlane)) {
      flags += " --distribution=" + target.placement;
      // -N and -n alone leave it to Slurm, which fills the first of nodes that other jobs use, too. Where ranks share
      // processors it would want one for each all the same.
      if (fullest && !shares) flags += fmt::format(" --ntasks-per-node={}", *fullest);
    }
  }
  if (shares) {
    flags += " --overcommit";
    // Alone it is one processor for each node; with -c it is this many for each node, not for each task.
    if (*target.cores_per_node > 1) flags += fmt::format(" --cpus-per-task={}", *target.cores_per_node);
  } else if (threads_of(target) > 1 || other_threads) {
    flags += fmt::format(" --cpus-per-task={}", threads_of(target));
  }
  if (other_threads) flags += fmt::format(" --export=ALL,OMP_NUM_THREADS={}", threads_of(target));
  return flags;
}

std::string describe(const TargetPrediction& target, bool with_network) {
  std::string out = target.target;
  if (target.nodes) {
    out = fmt::format("{} node{}", *target.nodes, *target.nodes == 1 ? "" : "s");
    // On one node every placement is the same, and block is what srun does anyway.
    if (*target.nodes > 1 && !target.placement.empty() && target.placement != "block") {
      out += ", " + target.placement;
    }
    if (target.threads.value_or(0) > 0)
      out += fmt::format(", {} thread{}", *target.threads, *target.threads == 1 ? "" : "s");
  }
  if (with_network && !target.network.empty()) out += ", " + target.network;
  return out;
}

std::string closing_note(const Step& step, std::size_t width) {
  const std::string so_far = step.running() ? "So far: " : "";
  if (step.predictions.empty()) {
    return wrap(step.running() ? "No prediction yet: the step is still running; ask again in a moment."
                               : "No predictions: nothing of this step could be replayed.",
                width, 0);
  }
  if (const protocol::SeenRun seen = step.seen(); seen.is_too_little())
    return wrap("No prediction: " + seen.why_no_prediction() + '.', width, 0);
  const Advice advice = advise(step);
  if (!advice.self_known) {
    return wrap(so_far +
                    "The configuration that ran has no prediction yet, so that there is nothing to judge the "
                    "others by.",
                width, 0);
  }
  const std::string& network = network_of(step);
  std::string out;
  if (advice.here != nullptr) {
    out += wrap(
        fmt::format("{}On {} it would take {}:", so_far, describe(*advice.here, false), comparison(step, *advice.here)),
        width, 0);
    out += command_to_paste(step, *advice.here, width);
  }
  if (advice.elsewhere != nullptr) {
    if (advice.here == nullptr) {
      out += wrap(fmt::format("{}On the network that ran ({}) nothing is surely faster.", so_far, network), width, 0);
    }
    out += wrap(fmt::format("{}On network {}, {}, it would take {}; the network is not chosen by an srun flag but "
                            "by the partition, a constraint or settings of MPI, with these flags:",
                            so_far, advice.elsewhere->network, describe(*advice.elsewhere, false),
                            comparison(step, *advice.elsewhere)),
                width, 0);
    out += command_to_paste(step, *advice.elsewhere, width);
  }
  if (advice.unmeasured != nullptr) out += unmeasured_note(step, *advice.unmeasured, so_far, width);
  if (advice.first() == nullptr) {
    out += wrap(fmt::format("{}No {}configuration{} is surely faster than the one that ran: keep it.{}", so_far,
                            advice.unmeasured != nullptr ? "other predicted " : "predicted ", up_to(step, advice),
                            doubt(step, advice, network)),
                width, 0);
  }
  if (advice.beyond != nullptr) {
    out += wrap(
        fmt::format("A what-if: {} would take {}; {}.", describe(*advice.beyond, advice.beyond->network != network),
                    comparison(step, *advice.beyond), why_not_startable(step)),
        width, 0);
  }
  out += deferred_note(step, width);
  if (step.cost && step.cost->seen_in_part()) {
    out +=
        wrap(fmt::format("Only {:.1f} % of the run was captured{}: take a gain for one where the predicted intervals "
                         "do not overlap.",
                         100 * *step.cost->seen_share,
                         step.cost->limit_percent
                             ? fmt::format(", to keep the overhead below {:g} %", *step.cost->limit_percent)
                             : std::string()),
             width, 0);
  }
  out += why_no_number(step, width);
  return out;
}

std::string brief_line(const Step& step) {
  const std::string tail = fmt::format(": lbf-report -j {}", job_id(step));
  std::string so_far = step.running() ? "so far, " : step.state == StepState::kPartial ? "(partial) " : "";
  if (const protocol::SeenRun seen = step.seen(); seen.is_too_little())
    return fmt::format("lbf: no prediction: {}{}", seen.in_words(), tail);
  if (lost_s(step) > 0)
    so_far += fmt::format("others had the processors for {} of {}, ", format_duration(lost_s(step), 3),
                          format_duration(step.measured_s.value_or(0), 3));
  if (step.predictions.empty() || !step.self() || !step.self()->predicted_s) {
    const std::string why = step.why_partial.empty() ? "" : ": " + printable(step.why_partial);
    return fmt::format("lbf: no prediction {}{}",
                       step.running() ? "yet, the step is being completed" : "was possible" + why, tail);
  }
  const Advice advice = advise(step);
  if (!advice.self_known) return fmt::format("lbf: {}predicted, {}{}", so_far, error_text(step), tail);
  const TargetPrediction* best = advice.first();
  const auto now = reference_s(step, best != nullptr ? *best : *step.self());
  const std::string now_text = now ? format_duration(*now, 3) : "unknown";
  const auto most = startable_nodes(step);
  if (const TargetPrediction* const unmeasured = advice.unmeasured;
      best == nullptr && unmeasured != nullptr && (!most || unmeasured->nodes.value_or(1) <= *most)) {
    const Unmeasured known = unmeasured_of(step, *unmeasured);
    std::string text = known.bound ? known.bound->in_words(3) : "";
    if (!known.nominal.empty()) {
      advisor::Saying all = known.nominal.front().first;
      for (const auto& [saying, name] : known.nominal) all.high_s = std::max(all.high_s, saying.high_s);
      text += fmt::format("{}{} on nominal networks", text.empty() ? "" : ", ", all.in_words(3));
    }
    return fmt::format("lbf: {}{} would take {} (now {}; {}; {}){}", so_far, describe(*unmeasured, false), text,
                       now_text, error_text(step), advisor::kMeasureNetwork, tail);
  }
  if (best == nullptr) {
    return fmt::format("lbf: {}no predicted configuration{} is surely faster (now {}; {}){}", so_far,
                       up_to(step, advice), now_text, error_text(step), tail);
  }
  const advisor::Saying saying = *saying_of(step, *best);
  const std::string what =
      fmt::format("lbf: {}{} would take {} on {}", so_far, describe(*best, false), saying.in_words(3), best->network);
  if (!saying.is_number())
    return fmt::format("{} (now {}; {}: to get a number, {}){}", what, now_text, saying.why, saying.remedy, tail);
  return fmt::format("{}, give or take {} (now {}, {:.2f}x; {}){}", what, saying.give_or_take(), now_text,
                     speedup(step, *best).value_or(0), error_text(step), tail);
}

}  // namespace lbf::report
