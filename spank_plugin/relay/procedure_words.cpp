// ProcedureWords, see procedure_words.h.
#include "spank_plugin/relay/procedure_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "event/procedure_table.h"

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

}  // namespace

void ProcedureWords::take(Rank rank, const ring::Record& record, std::span<const std::uint64_t> values,
                          ProcedureClock clock, RecordConverter& converter, Pass& pass) {
  const std::size_t bytes = record.bytes;
  const auto broken = [&] { pass.note("rank " + std::to_string(rank) + ": broken words about a procedure"); };
  if (bytes > values.size() * 8 || bytes > ring::kMaxProcedureTextBytes || record.request > bytes ||
      record.tag < 0 || record.tag >= ring::kProcedureWords) {
    return broken();
  }
  const std::string_view all(reinterpret_cast<const char*>(values.data()), bytes);
  const std::string name = one_line(all.substr(0, record.request));
  std::string_view text = all.substr(record.request);
  const bool call_is_known = clock.call_s > 0 && clock.call_s <= kMostCallS;
  switch (static_cast<ring::ProcedureWord>(record.tag)) {
    case ring::ProcedureWord::kName: {
      const std::string whole = one_line(all);
      if (whole.empty() || record.comm >= kMaxProcedures || !names_.emplace(record.comm, whole).second)
        return;
      converter.name_procedure(record.comm);
      nlohmann::json json{{"type", "procedure"}, {"rank", rank}, {"id", record.comm}, {"name", whole}};
      if (call_is_known) json["call_ns"] = clock.call_s * 1e9;
      return pass.add_control(json);
    }
    case ring::ProcedureWord::kCandidate: {
      std::array<std::uint64_t, 4> numbers{};
      if (!take_numbers(text, numbers)) return broken();
      if (++remarks_ > kMaxRemarks) return;
      nlohmann::json names = nlohmann::json::array();
      if (!name.empty()) names.push_back(name);
      for (text.remove_prefix(std::min<std::size_t>(1, text.size())); !text.empty();) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0) names.push_back(one_line(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
      nlohmann::json json{{"type", "procedure_candidate"}, {"rank", rank},
                          {"number", numbers[0]},          {"of", numbers[1]},
                          {"samples", numbers[2]},         {"own_samples", numbers[3]},
                          {"names", std::move(names)}};
      if (call_is_known) json["call_ns"] = clock.call_s * 1e9;
      return pass.add_control(json);
    }
    case ring::ProcedureWord::kSamples: {
      std::array<std::uint64_t, 3> numbers{};
      if (name.empty() || !take_numbers(text, numbers)) return broken();
      if (++remarks_ > kMaxRemarks) return;
      return pass.add_control({{"type", "procedure_samples"},
                               {"rank", rank},
                               {"name", name},
                               {"inclusive", numbers[0]},
                               {"exclusive", numbers[1]},
                               {"of", numbers[2]}});
    }
    case ring::ProcedureWord::kRefused:
    case ring::ProcedureWord::kNote:
    case ring::ProcedureWord::kOff:
      break;
  }
  if (++remarks_ > kMaxRemarks) return;
  const auto word = static_cast<ring::ProcedureWord>(record.tag);
  nlohmann::json json{{"type", "procedure_remark"},
                      {"rank", rank},
                      {"kind", word == ring::ProcedureWord::kRefused ? "refused"
                               : word == ring::ProcedureWord::kOff   ? "off"
                                                                     : "note"},
                      {"name", name},
                      {"text", one_line(text)}};
  if (word == ring::ProcedureWord::kOff && record.enter > 0 && record.leave > 0)
    json["calls_per_s"] =
        static_cast<double>(record.enter) / (static_cast<double>(record.leave) * clock.tick_s);
  pass.add_control(json);
}

}  // namespace lbf::relay
