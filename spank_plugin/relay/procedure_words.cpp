// ProcedureWords, see procedure_words.h.
#include "spank_plugin/relay/procedure_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "event/procedure_table.h"
#include "protocol/control_records.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kMaxRemarks = 1024;  // of a process
constexpr Seconds kMostCallS = 1e-3;       // a ring's word is not believed for more

// COUNT numbers with a blank between them from the beginning of TEXT on, which are taken off it. False: they
// are not there.
template <std::size_t Count>
bool take_numbers(std::string_view& text, std::array<std::uint64_t, Count>& out) {
  for (std::uint64_t& number : out) {
    if (&number != out.data()) {
      if (text.empty() || text.front() != ' ') return false;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return true;
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }, '?');
  return out;
}

std::string_view name_of(ring::ProcedureWord word) {
  if (word == ring::ProcedureWord::kRefused) return protocol::kRefused;
  return word == ring::ProcedureWord::kOff ? protocol::kSwitchedOff : protocol::kRemarked;
}

}  // namespace

void ProcedureWords::take(Rank rank, const ring::Record& record, std::span<const std::uint64_t> values,
                          ProcedureClock clock, RecordConverter& converter, Pass& pass) {
  const ring::ProcedureText said = ring::procedure_text_of(record);
  const std::size_t bytes = said.text_bytes;
  const auto broken = [&] { pass.note("rank " + std::to_string(rank) + ": broken words about a procedure"); };
  if (bytes > values.size() * 8 || bytes > ring::kMaxProcedureTextBytes || said.name_bytes > bytes ||
      static_cast<std::uint32_t>(said.word) >= ring::kProcedureWords) {
    return broken();
  }
  const std::string_view all(reinterpret_cast<const char*>(values.data()), bytes);
  const std::string name = one_line(all.substr(0, said.name_bytes));
  std::string_view text = all.substr(said.name_bytes);
  const double call_ns = clock.call_s > 0 && clock.call_s <= kMostCallS ? clock.call_s * 1e9 : 0;
  switch (said.word) {
    case ring::ProcedureWord::kName: {
      const std::string whole = one_line(all);
      if (whole.empty() || said.id >= kMaxProcedures) return;
      if (named_.size() <= said.id) named_.resize(said.id + std::size_t{1});
      if (named_[said.id]) return;
      named_[said.id] = true;
      converter.name_procedure(said.id);
      return pass.add_control(protocol::ProcedureRecord{rank, said.id, whole, call_ns});
    }
    case ring::ProcedureWord::kCandidate: {
      std::array<std::uint64_t, 4> numbers{};
      if (!take_numbers(text, numbers)) return broken();
      if (++remarks_ > kMaxRemarks) return;
      std::vector<std::string> names;
      if (!name.empty()) names.push_back(name);
      for (text.remove_prefix(std::min<std::size_t>(1, text.size())); !text.empty();) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0) names.push_back(one_line(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
      return pass.add_control(protocol::ProcedureCandidateRecord{rank, numbers[0], numbers[1], numbers[2], numbers[3],
                                                                 std::move(names), call_ns});
    }
    case ring::ProcedureWord::kSamples: {
      std::array<std::uint64_t, 3> numbers{};
      if (name.empty() || !take_numbers(text, numbers)) return broken();
      if (++remarks_ > kMaxRemarks) return;
      return pass.add_control(protocol::ProcedureSamplesRecord{rank, name, numbers[0], numbers[1], numbers[2]});
    }
    case ring::ProcedureWord::kRefused:
    case ring::ProcedureWord::kNote:
    case ring::ProcedureWord::kOff:
      break;
  }
  if (++remarks_ > kMaxRemarks) return;
  protocol::ProcedureRemarkRecord remark{rank, std::string(name_of(said.word)), name, one_line(text)};
  if (said.word == ring::ProcedureWord::kOff && said.calls > 0 && said.ticks > 0)
    remark.calls_per_s = static_cast<double>(said.calls) / (static_cast<double>(said.ticks) * clock.tick_s);
  pass.add_control(remark);
}

}  // namespace lbf::relay
