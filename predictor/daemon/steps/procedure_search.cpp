#include "predictor/daemon/steps/procedure_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace lbf::daemon {
namespace {

constexpr std::size_t kMostNameBytes = 500;
constexpr std::size_t kMostCallers = 8;
constexpr std::size_t kMostCandidateBytes = std::size_t{16} << 20;  // of all names

// What is measured keeps its place against what is not much more: a place that changes hands costs what was measured.
constexpr double kLoyalty = 2;
constexpr Seconds kDecisionS = 1;  // decisions are not closer together, unless something was said

}  // namespace

void ProcedureSearch::take_candidate(std::int32_t rank, std::uint64_t number, std::uint64_t of,
                                     std::uint64_t own_samples, ProcedureCandidate candidate) {
  if (candidates_ >= kMostNames * 64 || name_bytes_ >= kMostCandidateBytes) return;
  const auto [found, is_new] = told_.try_emplace(rank);
  Told& told = found->second;
  if (!is_new && told.is_whole()) --whole_;
  take_candidate(told, number, of, own_samples, std::move(candidate));
  if (told.is_whole()) ++whole_;
}

void ProcedureSearch::take_candidate(Told& told, std::uint64_t number, std::uint64_t of, std::uint64_t own_samples,
                                     ProcedureCandidate candidate) {
  told.of = std::min<std::uint64_t>(of, 64);
  told.own_samples = own_samples;
  changed_ = true;
  if (of == 0 || number >= told.of || candidate.names.empty()) return;
  std::erase_if(candidate.names, [](const std::string& name) { return name.empty() || name.size() > kMostNameBytes; });
  if (candidate.names.size() > kMostCallers) candidate.names.resize(kMostCallers);
  if (candidate.names.empty()) return;
  std::size_t bytes = 0;
  for (const std::string& name : candidate.names) bytes += name.size();
  if (!told.candidates.try_emplace(number, std::move(candidate)).second) return;
  ++candidates_;
  name_bytes_ += bytes;
}

std::size_t ProcedureSearch::memory_bytes() const {
  constexpr std::size_t kOfCandidate = sizeof(ProcedureCandidate) + 64 + kMostCallers * sizeof(std::string);
  return told_.size() * (sizeof(Told) + 64) + candidates_ * kOfCandidate + name_bytes_;
}

void ProcedureSearch::take_off(const std::string& name) {
  if (!is_active() || off_.size() >= kMostNames) return;
  changed_ |= off_.insert(name).second;
}

void ProcedureSearch::take_list(const protocol::ProcedureList& list, Seconds now_s) {
  if (list.generation <= list_.generation) return;
  list_ = list;
  first_told_s_ = first_told_s_.value_or(now_s);
  tests_.clear();
}

bool ProcedureSearch::is_due(Seconds now_s, std::size_t ranks) const {
  if (told_.empty() || list_.generation >= kMostLists) return false;
  if (list_.generation > 0) return changed_ || (!tests_.empty() && now_s - decided_s_ >= kDecisionS);
  const bool all = told_.size() >= ranks && whole_ == told_.size();
  return all || !first_told_s_ || now_s - *first_told_s_ >= kPatienceS;
}

// Samples of a rank count as much as the critical path runs through it.
std::vector<ProcedureSearch::Hypothesis> ProcedureSearch::ranked(const Evidence& evidence) const {
  std::map<std::int32_t, Seconds> path;
  Seconds others_s = 0;
  Seconds all_s = 0;
  for (const auto& [rank, seconds] : evidence.path_of_rank) {
    (rank < 0 ? others_s : path[rank]) += seconds;
    all_s += seconds;
  }
  const double others = static_cast<double>(evidence.ranks) - static_cast<double>(path.size());
  const auto weight_of = [&](std::int32_t rank) {
    if (!(all_s > 0)) return 1.0 / static_cast<double>(std::max<std::size_t>(evidence.ranks, 1));
    const auto found = path.find(rank);
    if (found != path.end()) return found->second / all_s;
    return others > 0 ? others_s / all_s / others : 0.0;
  };
  std::map<std::string, Hypothesis> by_name;
  for (const auto& [rank, told] : told_) {
    if (told.own_samples == 0) continue;
    const double weight = weight_of(rank);
    for (const auto& [number, candidate] : told.candidates) {
      const double share = weight * static_cast<double>(std::min(candidate.samples, told.own_samples)) /
                           static_cast<double>(told.own_samples);
      Hypothesis& one = by_name[candidate.names.front()];
      one.share += share;
      if (one.names.empty() || share > one.weight_of_chain) {
        one.names = candidate.names;
        one.weight_of_chain = share;
      }
    }
  }
  std::vector<Hypothesis> out;
  for (auto& [name, one] : by_name) out.push_back(std::move(one));
  // Names decide among equal ones: the same for whatever order records came in.
  std::stable_sort(out.begin(), out.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.share > b.share; });
  return out;
}

// Measured for long enough, and hardly on the critical path.
bool ProcedureSearch::is_wrong(const std::string& name, const Evidence& evidence) const {
  if (wrong_.contains(name)) return true;
  const auto test = tests_.find(name);
  const auto own = evidence.path_of_procedure.find(name);
  if (test == tests_.end() || own == evidence.path_of_procedure.end()) return false;
  const Seconds tested_s = evidence.path_s - test->second.path_s;
  return tested_s >= kTestS && own->second - test->second.own_s < kLeastShare * tested_s;
}

bool ProcedureSearch::decide(const Evidence& evidence) {
  if (told_.empty()) return false;
  if (!first_told_s_) first_told_s_ = evidence.now_s;
  if (!is_due(evidence.now_s, evidence.ranks)) return false;
  changed_ = false;
  decided_s_ = evidence.now_s;
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  struct Wanted {
    std::string name;
    const std::string* leaf;
    double share;
    double rank;
  };
  const std::vector<Hypothesis> hypotheses = ranked(evidence);
  const auto known_cost = [&](const std::string& name) {
    return evidence.known_cost ? evidence.known_cost(name).value_or(0) : 0;
  };
  std::vector<Wanted> wanted;
  std::vector<std::string> wrong;
  for (const Hypothesis& hypothesis : hypotheses) {
    if (hypothesis.share < kLeastShare / 2) break;
    // The first of the procedure and its callers that may be measured.
    const auto name = std::find_if(hypothesis.names.begin(), hypothesis.names.end(), [&](const std::string& one) {
      return !off_.contains(one) && known_cost(one) <= evidence.cost_limit;
    });
    if (name == hypothesis.names.end()) continue;
    if (is_wrong(*name, evidence)) {
      wrong.push_back(*name);
      continue;
    }
    const double rank = hypothesis.share * (is_in(list_.names, *name) ? kLoyalty : 1);
    wanted.push_back({*name, &hypothesis.names.front(), hypothesis.share, rank});
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) { return a.rank > b.rank; });
  std::vector<std::string> names;
  std::string text;
  double cost = 0;
  std::size_t bytes = 0;
  std::size_t waiting = 0;  // hypotheses that there was no place for
  for (const Wanted& one : wanted) {
    if (is_in(names, one.name)) continue;
    const double its_cost = known_cost(one.name);
    if (names.size() == kMostMeasured || cost + its_cost > evidence.cost_limit ||
        bytes + one.name.size() + 1 > kMostBytes) {
      ++waiting;
      continue;
    }
    cost += its_cost;
    bytes += one.name.size() + 1;
    names.push_back(one.name);
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", one.name, 100 * one.share);
    if (one.name != *one.leaf) text += " (calls " + *one.leaf + ")";
  }
  // What is wrong stays as long as nobody wants its place: its times are right.
  for (const std::string& name : wrong) {
    if (wrong_.contains(name) || is_in(names, name) || !is_in(list_.names, name)) continue;
    if (names.size() < kMostMeasured && waiting == 0) {
      names.push_back(name);
    } else {
      wrong_.insert(name);
    }
  }
  std::vector<std::string> before = list_.names;
  std::vector<std::string> after = names;
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  std::erase_if(tests_, [&](const auto& test) { return !std::binary_search(after.begin(), after.end(), test.first); });
  for (const std::string& name : names) {
    const auto own = evidence.path_of_procedure.find(name);
    tests_.try_emplace(name, Test{evidence.path_s, own == evidence.path_of_procedure.end() ? 0 : own->second});
  }
  if (waiting == 0) tests_.clear();
  if (before == after) return false;
  list_.generation += 1;
  list_.names = std::move(names);
  list_.text = std::move(text);
  return true;
}

}  // namespace lbf::daemon
