// ProgramProfile, see program_profile.h.
#include "predictor/daemon/steps/program_profile.h"

#include <algorithm>
#include <utility>

#include "event/mpi_function_table.h"

namespace lbf::daemon {
namespace {

constexpr std::size_t kMostWordBytes = 200;
constexpr std::size_t kMostPrograms = 8;  // of one step (srun --multi-prog)
// Of the time that was seen the program has this share at least, whatever the capture says of itself; and of a rank's
// time its processors, whatever it waited for.
constexpr double kLeastOfSeen = 0.1;

std::string word_of(const std::string& text) {
  return text.substr(0, kMostWordBytes);
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Whose number depends on how fast others are, or which nobody waits in: they say nothing about the program's input.
bool varies_by_itself(MpiRole role) {
  switch (role) {
    case MpiRole::kTest:
    case MpiRole::kTestany:
    case MpiRole::kTestall:
    case MpiRole::kTestsome:
    case MpiRole::kWaitsome:
    case MpiRole::kRequestGetStatus:
    case MpiRole::kIprobe:
    case MpiRole::kImprobe:
    case MpiRole::kWinTest:
    case MpiRole::kLocal:
      return true;
    default:
      return false;
  }
}

// Its bytes leave the rank.
bool is_sent(EventKind kind) {
  switch (kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
    case EventKind::kCollective:
    case EventKind::kIcollective:
    case EventKind::kOneSided:
      return true;
    default:
      return false;
  }
}

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : "+") + word;
  return out;
}

}  // namespace

void ProgramProfile::take_process(Rank rank, const protocol::ProcessRecord& record) {
  const std::string build_id = word_of(record.build_id);
  if (build_id.empty()) return;
  const std::string script = word_of(record.script);
  if (build_ids_.size() < kMostPrograms) build_ids_.insert(build_id);
  if (!script.empty() && scripts_.size() < kMostPrograms) scripts_.insert(script);
  const std::string name = script.empty() ? base_name(word_of(record.executable)) : script.substr(0, script.rfind(':'));
  const auto known = lowest_ranks_.find(name);
  if (known != lowest_ranks_.end()) {
    known->second = std::min(known->second, rank);
  } else if (lowest_ranks_.size() < kMostPrograms) {
    lowest_ranks_.emplace(name, rank);
  }
}

std::vector<std::pair<Rank, std::string>> ProgramProfile::by_lowest_rank() const {
  std::vector<std::pair<Rank, std::string>> programs;
  for (const auto& [name, rank] : lowest_ranks_) programs.emplace_back(rank, name);
  std::sort(programs.begin(), programs.end());
  return programs;
}

std::string ProgramProfile::several() const {
  std::string out;
  if (lowest_ranks_.size() < 2) return out;
  for (const auto& [rank, name] : by_lowest_rank())
    out += (out.empty() ? "" : ", ") + name + " (rank " + std::to_string(rank) + ")";
  return out;
}

void ProgramProfile::take_events(std::span<const Event> events, ProgramScope& scope) {
  for (const Event& event : events) {
    process_s_ += event.process_s;
    seen_s_ += event.process_s + event.call_s + event.off_s;
    if (is_sent(event.kind)) sent_bytes_ += static_cast<double>(event.bytes);
    switch (event.kind) {
      case EventKind::kWindowClose:
      case EventKind::kGap:
        windows_ = true;
        break;
      case EventKind::kWindowOpen:
        seen_s_ -= event.call_s;  // the time while nobody looked
        if (scope.outside) scope.outside_s += event.call_s;
        break;
      case EventKind::kPhase:
        scope.outside = is_outside_after(event, scope.outside);
        break;
      case EventKind::kSkipped:
        capture_ended_ = capture_ended_ || skipped_side(event) == SkippedSide::kEverything;
        break;
      default:
        break;
    }
  }
}

void ProgramProfile::take_rounds(const Rounds& rounds) {
  for (const Rounds::Times& times : rounds.times) {
    const Seconds process_s = seconds_from_ns(static_cast<Nanoseconds>(times.process_ns));
    process_s_ += process_s;
    seen_s_ += process_s + seconds_from_ns(static_cast<Nanoseconds>(times.call_ns));
  }
  const std::size_t length = rounds.events.size();
  for (std::size_t place = 0; place < length; ++place) {
    const Event& event = rounds.events[place];
    const std::size_t times = (rounds.times.size() + length - 1 - place) / length;
    if (is_sent(event.kind)) sent_bytes_ += static_cast<double>(times) * static_cast<double>(event.bytes);
  }
}

std::optional<db::ProgramRun> ProgramProfile::run(const std::vector<std::uint64_t>& calls, std::size_t ranks_of_run,
                                                  Seconds rank_s, const Watched& watched) const {
  if (build_ids_.empty() || ranks_of_run == 0) return std::nullopt;
  const auto ranks = static_cast<double>(ranks_of_run);
  db::ProgramRun out;
  out.build_id = joined(build_ids_);
  out.script = joined(scripts_);
  for (const auto& [rank, name] : by_lowest_rank()) out.name += (out.name.empty() ? "" : "+") + name;
  if (capture_ended_) {
    // Nobody counted the rest of the calls, by which it would be recognised. Until then all were recorded or counted,
    // in a time that is known: the recorded part alone is a moment, in which a program may call as often as never
    // again. What the capture took made calls rarer than they are.
    if (watched.watched_s > 0) {
      out.calls = watched.recorded_calls + watched.counted_calls;
      out.rank_s = std::max(watched.watched_s - watched.capture_s, kLeastOfSeen * watched.watched_s);
      // As of other runs: processor time, in which the ranks' threads add up, and waiting without polling does not
      // count.
      if (watched.program_cpu_s > 0 && rank_s > 0) out.rank_s *= std::max(watched.program_cpu_s / rank_s, kLeastOfSeen);
    } else {
      out.calls = watched.recorded_calls;
      out.rank_s = std::max(seen_s_ - watched.recording_s, kLeastOfSeen * seen_s_);
    }
    if (out.calls == 0 || !(out.rank_s > 0)) return std::nullopt;
    out.seen_process_s = process_s_;
    return out;
  }
  out.rank_s = rank_s;
  for (std::size_t id = 1; id < calls.size(); ++id) {
    const MpiFunction* function = mpi_function(static_cast<std::uint16_t>(id));
    if (function == nullptr || calls[id] == 0) continue;
    out.calls += calls[id];
    if (varies_by_itself(function->role)) continue;
    out.calls_per_rank.emplace_back(std::string(function->name), static_cast<double>(calls[id]) / ranks);
  }
  // What was not seen is taken to be as what was.
  const double seen_share = rank_s > 0 && seen_s_ > 0 ? std::min(1.0, seen_s_ / rank_s) : 1.0;
  out.work_s = process_s_ / (windows_ ? seen_share : 1.0) / ranks;
  if (!windows_) out.sent_bytes = sent_bytes_ / ranks;
  return out;
}

}  // namespace lbf::daemon
