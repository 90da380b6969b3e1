#include "predictor/engine/metric/critical_path.h"

#include <algorithm>

namespace lbf::engine {

void CriticalPath::add(std::vector<std::pair<std::int32_t, Seconds>>& entries, std::int32_t key, Seconds seconds) {
  if (seconds <= 0) return;
  const auto named = [&](std::int32_t wanted) {
    return std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == wanted; });
  };
  if (const auto found = named(key); found != entries.end()) {
    found->second += seconds;
    return;
  }
  entries.emplace_back(key, seconds);
  if (entries.size() <= PathProfile::kMaxEntries) return;
  auto least = entries.end();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry->first == PathProfile::kOthers) continue;
    if (least == entries.end() || entry->second < least->second) least = entry;
  }
  const Seconds least_s = least->second;
  entries.erase(least);
  if (const auto others = named(PathProfile::kOthers); others != entries.end()) {
    others->second += least_s;
  } else {
    entries.emplace_back(PathProfile::kOthers, least_s);
  }
}

CriticalPath::Path& CriticalPath::path_of(const TimelineOp& op) {
  if (paths_.size() <= op.process) paths_.resize(op.process + std::size_t{1});
  Path& path = paths_[op.process];
  if (path.profile.procedure_s.empty()) path.profile.procedure_s.resize(profiled_, 0.0);
  path.named = !op.actor;
  path.profile.ends_at = op.rank;
  return path;
}

// On a slower or a shared processor all of it takes longer alike. What a kSend has beyond its work is protocol
// processing.
void CriticalPath::work(Path& path, const TimelineOp& op, Seconds until_s) const {
  PathProfile& profile = path.profile;
  Seconds took_s = until_s - profile.length_s;
  if (took_s <= 0) return;
  profile.length_s = until_s;
  add(profile.rank_s, op.rank, took_s);
  if (op.kind == OpKind::kSend && took_s > op.work_s) {
    const Seconds protocol_s = took_s - op.work_s;
    profile.mpi_s += protocol_s;
    add(profile.function_s, op.function, protocol_s);
    took_s = op.work_s;
  }
  Seconds in_procedures_s = 0;
  if (op.self_s != nullptr && op.work_s > 0) {
    for (std::size_t p = 0; p < profiled_; ++p) {
      const Seconds part_s = took_s * std::min(op.self_s[p] / op.work_s, 1.0);
      profile.procedure_s[p] += part_s;
      in_procedures_s += part_s;
    }
  }
  profile.other_work_s += std::max(took_s - in_procedures_s, 0.0);
}

void CriticalPath::mpi(Path& path, const TimelineOp& op, Seconds until_s) const {
  const Seconds took_s = until_s - path.profile.length_s;
  if (took_s <= 0) return;
  path.profile.length_s = until_s;
  path.profile.mpi_s += took_s;
  add(path.profile.function_s, op.function, took_s);
}

void CriticalPath::on_ready(const TimelineOp& op) {
  Path& path = path_of(op);
  work(path, op, op.acted_s);
  sent_[static_cast<std::uint32_t>(op.message_id)] = {op.message_id, path.profile};
}

void CriticalPath::on_op(const TimelineOp& op) {
  Path& path = path_of(op);
  if (op.kind != OpKind::kSend) work(path, op, op.acted_s);
  if (op.kind == OpKind::kRecv) {
    const auto sent = sent_.find(static_cast<std::uint32_t>(op.message_id));
    if (sent != sent_.end() && sent->second.message_id == op.message_id) {
      if (op.waited_s > op.acted_s) path.profile = std::move(sent->second.profile);
      sent_.erase(sent);
    }
  }
  path.profile.ends_at = op.rank;
  if (passes_measured_time(op.kind)) {
    path.profile.blocked_s += op.waited_s - path.profile.length_s;
    path.profile.length_s = op.waited_s;
  }
  if (op.kind == OpKind::kWindowOpen) {
    path.profile.unseen_s += op.end_s - path.profile.length_s;
    path.profile.length_s = op.end_s;
  }
  mpi(path, op, op.waited_s);
  if (op.kind == OpKind::kRecv || is_local_work(op.kind))
    add(path.profile.rank_s, op.rank, op.end_s - path.profile.length_s);
  mpi(path, op, op.end_s);
}

PathProfile CriticalPath::profile() const {
  const Path* longest = nullptr;
  for (const Path& path : paths_) {
    if (!path.named) continue;
    if (longest == nullptr || path.profile.length_s > longest->profile.length_s) longest = &path;
  }
  if (longest == nullptr) return {};
  PathProfile profile = longest->profile;
  for (auto* entries : {&profile.rank_s, &profile.function_s}) {
    std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
  }
  return profile;
}

}  // namespace lbf::engine
