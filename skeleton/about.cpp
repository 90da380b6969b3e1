#include "skeleton/about.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace lbf::skeleton {
namespace {

constexpr std::string_view kMark = "@(#)lbf-skeleton 1 ";
constexpr const char* kFormat = "ranks=%d factor=%llu application_s=%lg id=%8[0-9a-f]";

}  // namespace

std::string about_text(const About& about) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "ranks=%d factor=%llu application_s=%.9g id=%s", about.ranks,
                static_cast<unsigned long long>(about.factor), about.application_s, about.id.c_str());
  return std::string(kMark) + text.data();
}

Result<About> find_about(std::string_view bytes) {
  const std::size_t at = bytes.find(kMark);
  if (at == std::string_view::npos) return invalid_input("no skeleton that this lbf-skeleton made");
  const std::string text(bytes.substr(at + kMark.size(), 200));
  About about;
  unsigned long long factor = 0;
  std::array<char, 9> id{};
  if (std::sscanf(text.c_str(), kFormat, &about.ranks, &factor, &about.application_s, id.data()) != 4 ||
      about.ranks <= 0 || factor == 0 || !(about.application_s >= 0)) {
    return invalid_input("a skeleton whose words about itself are damaged; build it again");
  }
  about.factor = factor;
  about.id = id.data();
  return about;
}

Result<About> read_about(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid_input(path + ": a folder, not a skeleton");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 path + ": cannot open the skeleton: " + std::strerror(errno)};
  }
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  Result<About> about = find_about(bytes);
  if (!about) {
    return Error{about.error().code,
                 path + ": " + about.error().message + " (lbf-skeleton build TRACE -o skel.c makes one)"};
  }
  return about;
}

}  // namespace lbf::skeleton
