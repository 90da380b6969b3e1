// See mpi_library.h.
#include "predictor/engine/match/mpi_library.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/library_name.h"

namespace lbf::engine {
namespace {

constexpr std::array<const char*, kMpiLibraryCount> kNames = {"openmpi-4.1", "openmpi-5.0", "openmpi-6.0", "mpich-4.0",
                                                              "mpich-5.0"};

// "4.1" of "v4.1.4" or "4.1.4rc1": major and minor number; 0, 0 where there is none.
struct Version {
  int major = 0;
  int minor = 0;
};

Version first_version(std::string_view text) {
  constexpr int kMost = 10000;
  Version version;
  std::size_t at = 0;
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  while (at < text.size() && !is_digit(at)) ++at;
  for (; is_digit(at); ++at) version.major = std::min(version.major * 10 + (text[at] - '0'), kMost);
  if (at >= text.size() || text[at] != '.') return version;
  for (++at; is_digit(at); ++at) version.minor = std::min(version.minor * 10 + (text[at] - '0'), kMost);
  return version;
}

// What follows `word`; nothing where the text does not have it.
std::optional<std::string_view> after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + word.size());
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMostBytes = 60;
  std::string shown(text.substr(0, kMostBytes));
  for (char& c : shown) c = std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return shown;
}

// "A=1, B=2 and 3 more".
std::string listed(std::span<const std::string> words) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (const std::string& word : words.first(std::min(words.size(), kMost))) {
    text += (text.empty() ? "" : ", ") + printable(word);
  }
  return words.size() > kMost ? text + " and " + std::to_string(words.size() - kMost) + " more" : text;
}

MpiRules rules_by_name(std::string_view text) {
  if (const auto rest = after(text, "Open MPI")) {
    const Version version = first_version(*rest);
    if (version.major == 4 && version.minor == 1) return {MpiLibrary::kOpenMpi4, true};
    const bool exact = version.minor == 0 && (version.major == 5 || version.major == 6);
    if (version.major >= 6) return {MpiLibrary::kOpenMpi6, exact};
    return {version.major == 5 ? MpiLibrary::kOpenMpi5 : MpiLibrary::kOpenMpi4, exact};
  }
  // MVAPICH and Cray MPICH say "MPICH" too, each with rules of its own; Intel MPI is MPICH underneath.
  for (const std::string_view derived : {"MVAPICH", "CRAY MPICH", "Intel(R) MPI", "ParaStation"}) {
    if (after(text, derived)) return {MpiLibrary::kMpich4, false};
  }
  if (const auto rest = after(text, "MPICH")) {
    const Version version = first_version(*rest);
    const bool exact = version.minor == 0 && (version.major == 4 || version.major == 5);
    return {version.major >= 5 ? MpiLibrary::kMpich5 : MpiLibrary::kMpich4, exact};
  }
  return {MpiLibrary::kOpenMpi4, false};
}

}  // namespace

MpiRules mpi_rules_of(std::string_view text) {
  if (!after(text, kFamilyBySelfTest)) return rules_by_name(text);
  return {text.starts_with("MPICH") ? MpiLibrary::kMpich4 : rules_by_name(text).library, false, true};
}

const char* mpi_library_name(MpiLibrary library) {
  return kNames[static_cast<std::size_t>(library)];
}

std::vector<std::string> mpi_library_names() {
  return {kNames.begin(), kNames.end()};
}

std::optional<MpiLibrary> mpi_library_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<MpiLibrary>(i);
  }
  return std::nullopt;
}

MpiSetup mpi_setup(std::string_view library_version, std::vector<std::uint32_t> node_of_rank,
                   std::span<const std::string> environment) {
  const MpiRules rules = library_version.empty() ? MpiRules{} : mpi_rules_of(library_version);
  return {rules, std::move(node_of_rank), mpi_settings(rules.library, environment)};
}

void replace_library(MpiSetup& setup, MpiLibrary library) {
  setup.rules = {library, true};
  setup.settings = {};
}

std::string mpi_rules_note(const MpiRules& rules, std::string_view library_version) {
  if (rules.exact) return {};
  const auto tested = after(library_version, kFamilyBySelfTest);
  const std::string_view name = tested.value_or(library_version);
  const std::string shown = printable(name.substr(0, name.find('\n')));
  return (tested ? "\"" + shown + "\": family by self-test, collectives' algorithms unknown: those of "
                 : "the rules of \"" + shown + "\" for collectives are not known here: those of ") +
         mpi_library_name(rules.library) + " were taken, and all collectives count as approximated";
}

std::string mpi_settings_note(const MpiSettings& settings) {
  std::string note;
  if (!settings.followed.empty()) note = listed(settings.followed) + ": followed";
  if (!settings.ignored.empty()) {
    note +=
        (note.empty() ? "" : "; ") + listed(settings.ignored) + ": not modelled, all collectives count as approximated";
  }
  return note.empty() ? note : "the run's environment sets " + note;
}

std::string mpi_note(const MpiSetup& setup, std::string_view library_version) {
  const std::string rules = mpi_rules_note(setup.rules, library_version);
  const std::string settings = mpi_settings_note(setup.settings);
  return rules.empty() || settings.empty() ? rules + settings : rules + "; " + settings;
}

}  // namespace lbf::engine
