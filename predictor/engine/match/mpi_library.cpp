// See mpi_library.h.
#include "predictor/engine/match/mpi_library.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/library_name.h"

namespace lbf::engine {
namespace {

constexpr std::array<const char*, kMpiLibraryCount> kNames = {"openmpi-4.1", "openmpi-5.0", "mpich-4.0"};

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

MpiRules rules_by_name(std::string_view text) {
  if (const auto rest = after(text, "Open MPI")) {
    const Version version = first_version(*rest);
    if (version.major == 4 && version.minor == 1) return {MpiLibrary::kOpenMpi4, true};
    if (version.major == 5 && version.minor == 0) return {MpiLibrary::kOpenMpi5, true};
    return {version.major >= 5 ? MpiLibrary::kOpenMpi5 : MpiLibrary::kOpenMpi4, false};
  }
  // MVAPICH and Cray MPICH say "MPICH" too, each with rules of its own; Intel MPI is MPICH underneath.
  for (const std::string_view derived : {"MVAPICH", "CRAY MPICH", "Intel(R) MPI", "ParaStation"}) {
    if (after(text, derived)) return {MpiLibrary::kMpich4, false};
  }
  if (const auto rest = after(text, "MPICH")) {
    const Version version = first_version(*rest);
    return {MpiLibrary::kMpich4, version.major == 4 && version.minor == 0};
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

std::optional<MpiLibrary> mpi_library_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<MpiLibrary>(i);
  }
  return std::nullopt;
}

MpiSetup mpi_setup(std::string_view library_version, std::vector<std::uint32_t> node_of_rank) {
  return {library_version.empty() ? MpiRules{} : mpi_rules_of(library_version), std::move(node_of_rank)};
}

std::string mpi_rules_note(const MpiRules& rules, std::string_view library_version) {
  if (rules.exact) return {};
  const auto tested = after(library_version, kFamilyBySelfTest);
  const std::string_view name = tested.value_or(library_version);
  std::string shown;
  for (const char c : name.substr(0, name.find('\n'))) {
    if (shown.size() == 60) break;
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return (tested ? "\"" + shown + "\": family by self-test, collectives' algorithms unknown: those of "
                 : "the rules of \"" + shown + "\" for collectives are not known here: those of ") +
         mpi_library_name(rules.library) + " were taken, and all collectives count as approximated";
}

}  // namespace lbf::engine
