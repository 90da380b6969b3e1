// Slurm's configuration files, see slurm_conf.h.
#include "predictor/engine/network/slurm_conf.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/quoted.h"

namespace lbf::engine {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr std::size_t kMaxDepth = 16;  // of Include in included files
constexpr std::size_t kMaxTotalBytes = std::size_t{16} << 20;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_key_character(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9') || l == '_' || l == '.';
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
}

std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, std::min(text.find_first_of(kBlanks), text.size()));
  text.remove_prefix(word.size());
  return word;
}

// "Key", blanks, "=" or an operator ("+="), taken from `text`. Empty: it begins with something else.
std::string_view take_key(std::string_view& text) {
  std::string_view rest = text;
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_key_character);
  const std::string_view key = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(key.size());
  skip_blanks(rest);
  if (!rest.empty() && std::string_view("-*+/").find(rest.front()) != std::string_view::npos) rest.remove_prefix(1);
  if (key.empty() || !rest.starts_with('=')) return {};
  rest.remove_prefix(1);
  text = rest;
  return key;
}

// "n5, n6", which scontrol prints without the quotes that the file has.
void take_rest_of_list(std::string_view& text, std::string_view& value) {
  while (value.ends_with(',')) {
    std::string_view rest = text;
    skip_blanks(rest);
    std::string_view next = rest;
    if (rest.empty() || !take_key(next).empty()) return;
    take_word(rest);
    value = {value.data(), static_cast<std::size_t>(rest.data() - value.data())};
    text = rest;
  }
}

// Up to a '#' that no '\' escapes.
std::string_view without_comment(std::string_view line) {
  bool escaped = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '#' && !escaped) return line.substr(0, at);
    escaped = line[at] == '\\' && !escaped;
  }
  return line;
}

// Up to the '\' that continues the line: the last of an odd number of them. npos: it is the line's end.
std::size_t continuation(std::string_view line) {
  const std::size_t last = line.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) return std::string_view::npos;
  const std::size_t before = line.substr(0, last + 1).find_last_not_of('\\');
  const std::size_t backslashes = before == std::string_view::npos ? last + 1 : last - before;
  return backslashes % 2 == 1 ? last : std::string_view::npos;
}

std::string without_escapes(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\' && ++at == line.size()) break;
    text += line[at];
  }
  return text;
}

class SlurmConfReader {
 public:
  explicit SlurmConfReader(const std::string& folder) : folder_(folder) {}

  Result<void> read(std::string_view text, const std::string& file, std::size_t depth) {
    bytes_ += text.size();
    if (bytes_ > kMaxTotalBytes) return Error{ErrorCode::kLimit, file + ": all included files are over 16 MiB"};
    SlurmLine line{file, 1, {}};
    std::string whole;  // a line with its continuations
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view part = text.substr(at, end - at);
      at = end + 1;
      ++number;
      if (part.find('\0') != std::string_view::npos) {
        return error_in_file(file, number, "a zero byte: is it a text file?");
      }
      part = without_comment(part);
      const std::size_t goes_on = continuation(part);
      whole += part.substr(0, goes_on);
      if (goes_on != std::string_view::npos && at < text.size()) continue;
      line.text = without_escapes(whole);
      whole.clear();
      if (Result<void> taken = take(std::move(line), depth); !taken) return taken;
      line = {file, number + 1, {}};
    }
    return {};
  }

  std::vector<SlurmLine> take_lines() { return std::move(lines_); }

 private:
  Result<void> take(SlurmLine line, std::size_t depth) {
    std::string_view rest = line.text;
    skip_blanks(rest);
    if (rest.empty()) return {};
    std::string_view after_word = rest;
    const bool include = is_same_key(take_word(after_word), "Include");
    skip_blanks(after_word);
    if (!include || after_word.starts_with('=')) {
      lines_.push_back(std::move(line));
      return {};
    }
    const std::string_view name = take_word(after_word);
    skip_blanks(after_word);
    if (name.empty() || !after_word.empty()) return line.error("Include needs one file: Include FILE");
    return read_included(line, std::string(name), depth);
  }

  Result<void> read_included(const SlurmLine& line, std::string name, std::size_t depth) {
    if (folder_.empty()) return line.error("Include is for files: put the lines of " + lbf::quoted(name) + " here");
    if (name.find('*') != std::string::npos) {
      return line.error("Include " + lbf::quoted(name) + ": Slurm takes no '*' there: name each file");
    }
    if (depth == kMaxDepth) return line.error("Include " + lbf::quoted(name) + ": does a file include itself?");
    for (std::size_t at = name.find("%c"); at != std::string::npos; at = name.find("%c")) {
      const std::string cluster = cluster_name();
      if (cluster.empty()) return line.error("Include " + lbf::quoted(name) + ": no line before it is ClusterName=");
      name.replace(at, 2, cluster);
    }
    const std::string path = name.starts_with('/') ? name : folder_ + "/" + name;
    Result<std::string> text = read_slurm_file(path, "included file");
    if (!text) return error_in_file(line.file, line.number, on_one_line(text.error().message), text.error().code);
    return read(*text, on_one_line(path), depth + 1);
  }

  // In small letters, as Slurm puts it into names.
  std::string cluster_name() const {
    std::string name;
    for (const SlurmLine& line : lines_) {
      if (!is_same_key(line.first_word(), "ClusterName")) continue;
      const Result<std::vector<SlurmSetting>> settings = line.settings();
      if (settings) name = settings->front().value;
    }
    std::transform(name.begin(), name.end(), name.begin(), lower);
    std::replace(name.begin(), name.end(), '%', '_');
    return name;
  }

  const std::string& folder_;
  std::size_t bytes_ = 0;
  std::vector<SlurmLine> lines_;
};

}  // namespace

Error error_in_file(const std::string& file, std::size_t line, const std::string& what, ErrorCode code) {
  return {code, file + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what};
}

bool is_same_key(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view SlurmLine::first_word() const {
  std::string_view rest = text;
  skip_blanks(rest);
  const std::size_t end = rest.find('=');
  rest = rest.substr(0, end);
  return take_word(rest);
}

Result<std::vector<SlurmSetting>> SlurmLine::settings() const& {
  std::vector<SlurmSetting> settings;
  std::string_view rest = text;
  for (skip_blanks(rest); !rest.empty(); skip_blanks(rest)) {
    SlurmSetting setting;
    const std::string_view here = rest;
    setting.key = take_key(rest);
    if (setting.key.empty()) {
      return error(lbf::quoted(here.substr(0, here.find_first_of(here.starts_with('=') ? kBlanks : " \t\r=\v\f"))) +
                   " is no Key=Value");
    }
    std::string_view behind = rest;
    skip_blanks(behind);
    std::string_view next = behind;
    // "Nodes= Switches=s1", as scontrol prints a switch without nodes.
    const bool no_value = behind.empty() || (behind.size() < rest.size() && !take_key(next).empty());
    rest = behind;
    if (rest.starts_with('"')) {
      const std::size_t end = rest.find('"', 1);
      if (end == std::string_view::npos) return error("a '\"' has no second one");
      setting.value = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    } else if (!no_value) {
      setting.value = take_word(rest);
      take_rest_of_list(rest, setting.value);
    }
    settings.push_back(setting);
  }
  return settings;
}

Result<std::vector<SlurmLine>> parse_slurm_conf(std::string_view text, const std::string& file_name,
                                                const std::string& folder) {
  SlurmConfReader reader(folder);
  if (Result<void> read = reader.read(text, file_name, 0); !read) return read.error();
  return reader.take_lines();
}

Result<std::string> read_slurm_file(const std::string& path, const std::string& kind) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int code = errno;
    return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 path + ": cannot open the " + kind + ": " + std::strerror(code)};
  }
  std::string text(kMaxSlurmFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorCode::kIo, path + ": cannot read the " + kind + " (is it a folder?)"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxSlurmFileBytes) return Error{ErrorCode::kLimit, path + ": is over 1 MiB: not a " + kind};
  return text;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace lbf::engine
