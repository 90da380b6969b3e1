#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/library_name.h"
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
  const auto half = half_width_percent(step, target);
  if (!reference || !half || !(*reference > 0)) return std::nullopt;
  return advisor::gain_of(std::min(*reference, *step.self()->predicted_s), *target.predicted_s, *half);
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

std::string off_by(const Step& step, const TargetPrediction& target) {
  const auto half = half_width_percent(step, target);
  return half ? fmt::format("{:.{}f} %", *half, *half < 9.95 ? 1 : 0) : "an unknown part";
}

std::string comparison(const Step& step, const TargetPrediction& target) {
  const auto reference = reference_s(step, target);
  const auto ratio = speedup(step, target);
  std::string out = format_duration(*target.predicted_s);
  if (reference) out += " instead of " + format_duration(*reference);
  if (ratio) out += fmt::format(" ({:.2f}x)", *ratio);
  return out + ", give or take " + off_by(step, target);
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
  const std::string& network = step.network.empty() ? self->network : step.network;
  const auto most_nodes = startable_nodes(step);
  for (const TargetPrediction& target : step.predictions) {
    if (target.is_self()) continue;
    const auto gain = gain_of(step, target);
    if (!gain) continue;
    if (most_nodes && target.nodes && *target.nodes > *most_nodes) {
      if (is_sure(*gain)) advice.beyond = faster(advice.beyond, target);
      continue;
    }
    auto& best = !is_sure(*gain) ? advice.doubtful : target.network == network ? advice.here : advice.elsewhere;
    if (is_sure(*gain) || gain->percent >= kNoticeablePercent) best = faster(best, target);
  }
  if (advice.here != nullptr && advice.elsewhere != nullptr &&
      !is_sure(advisor::gain_of(*advice.here->predicted_s, *advice.elsewhere->predicted_s,
                                half_width_percent(step, *advice.elsewhere).value_or(0)))) {
    advice.elsewhere = nullptr;
  }
  if (advice.first() != nullptr) advice.doubtful = nullptr;
  if (advice.beyond != nullptr && advice.first() != nullptr &&
      *advice.beyond->predicted_s >= *advice.first()->predicted_s) {
    advice.beyond = nullptr;
  }
  return advice;
}

std::optional<std::uint64_t> startable_nodes(const Step& step) {
  if (step.usable_nodes) return step.usable_nodes;
  const TargetPrediction* const self = step.self();
  return self != nullptr ? self->nodes : std::nullopt;
}

advisor::Trust trust_of(const Step& step) {
  advisor::Trust trust;
  const auto percent = [](double part, double all) { return all > 0 ? 100 * part / all : 0; };
  trust.self_error_percent = step.self_error_percent();
  const auto lost = static_cast<double>(step.lost_events.value_or(0));
  trust.lost_percent = percent(lost, lost + static_cast<double>(step.events.value_or(0)));
  trust.wildcard_percent =
      percent(static_cast<double>(step.wildcard_receives.value_or(0)), static_cast<double>(step.messages.value_or(0)));
  const TargetPrediction* const self = step.self();
  const double recorded = self != nullptr && self->seen_in_part() ? *self->seen_share : 1;
  trust.unmodelled_percent =
      std::min(percent(step.unmodelled_s.value_or(0),
                       recorded * step.measured_s.value_or(0) * static_cast<double>(step.ranks.value_or(0))),
               100.0);
  trust.why_partial = step.why_partial;
  if (step.library.find(kFamilyBySelfTest) != std::string::npos) trust.unknown_collectives_percent = 100;
  if (self == nullptr || !self->seen_in_part()) return trust;
  trust.unseen_percent = 100 * (1 - *self->seen_share);
  trust.extrapolated_percent.reset();
  if (self->predicted_s && *self->predicted_s > 0 && self->low_s && self->high_s) {
    trust.extrapolated_percent =
        100 * std::max(*self->high_s - *self->predicted_s, *self->predicted_s - *self->low_s) / *self->predicted_s;
  }
  return trust;
}

std::optional<double> half_width_percent(const Step& step, const TargetPrediction& target) {
  const TargetPrediction* const self = step.self();
  const auto known = [](const TargetPrediction& one) { return one.predicted_s && *one.predicted_s > 0; };
  if (self == nullptr || !known(*self) || !known(target)) return std::nullopt;
  return trust_of(step).half_width_percent(*target.predicted_s / *self->predicted_s) +
         target.memory_percent.value_or(0);
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
  const std::string& network = step.network.empty() ? step.self()->network : step.network;
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
  if (advice.first() == nullptr) {
    out += wrap(fmt::format("{}No predicted configuration{} is surely faster than the one that ran: keep it.{}", so_far,
                            up_to(step, advice), doubt(step, advice, network)),
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
  if (const auto error = step.self_error_percent(); error && std::fabs(*error) > kDoubtfulSelfErrorPercent) {
    out += wrap(fmt::format("The self-prediction error is large ({:+.1f} %): the model misses something of this run, "
                            "and every prediction above may be as wrong.",
                            *error),
                width, 0);
  }
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
  if (best == nullptr) {
    const auto now = reference_s(step, *step.self());
    return fmt::format("lbf: {}no predicted configuration{} is surely faster (now{}; {}){}", so_far,
                       up_to(step, advice), now ? ' ' + format_duration(*now, 3) : "", error_text(step), tail);
  }
  const auto now = reference_s(step, *best);
  const auto ratio = speedup(step, *best);
  return fmt::format("lbf: {}{} would take {} on {}, give or take {} (now {}, {:.2f}x; {}){}", so_far,
                     describe(*best, false), format_duration(*best->predicted_s, 3), best->network, off_by(step, *best),
                     now ? format_duration(*now, 3) : "unknown", ratio.value_or(0), error_text(step), tail);
}

}  // namespace lbf::report
