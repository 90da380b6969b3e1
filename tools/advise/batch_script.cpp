// #SBATCH lines, see batch_script.h.
#include "tools/advise/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "advisor/advice/schedule.h"
#include "base/number.h"
#include "base/quoted.h"
#include "base/times.h"

namespace lbf::tools {
namespace {

constexpr std::string_view kMagic = "#SBATCH";

enum class Treatment : std::uint8_t {
  kAdvised,    // what an advice may decide
  kPerNode,    // stays, but means something else on another number of nodes
  kForbidding  // fixes what the advice decides
};

struct OptionName {
  std::string_view name;
  char letter;  // 0: none
  bool has_value;
  Treatment treatment;
};

// sbatch's names, the first one of each is the one that is written.
constexpr auto kNames = std::to_array<OptionName>({
    {"nodes", 'N', true, Treatment::kAdvised},
    {"ntasks", 'n', true, Treatment::kAdvised},
    {"ntasks-per-node", 0, true, Treatment::kAdvised},
    {"cpus-per-task", 'c', true, Treatment::kAdvised},
    {"partition", 'p', true, Treatment::kAdvised},
    {"distribution", 'm', true, Treatment::kAdvised},
    {"constraint", 'C', true, Treatment::kAdvised},
    {"overcommit", 'O', false, Treatment::kAdvised},
    {"time", 't', true, Treatment::kAdvised},
    {"export", 0, true, Treatment::kAdvised},
    {"mem", 0, true, Treatment::kPerNode},
    {"tmp", 0, true, Treatment::kPerNode},
    {"mincpus", 0, true, Treatment::kPerNode},
    {"gres", 0, true, Treatment::kPerNode},
    {"gpus-per-node", 0, true, Treatment::kPerNode},
    {"nodelist", 'w', true, Treatment::kForbidding},
    {"nodefile", 'F', true, Treatment::kForbidding},
    {"extra-node-info", 'B', true, Treatment::kForbidding},
    {"ntasks-per-socket", 0, true, Treatment::kForbidding},
    {"ntasks-per-core", 0, true, Treatment::kForbidding},
    {"ntasks-per-gpu", 0, true, Treatment::kForbidding},
});

struct Word {
  std::string text;                // without quotes
  std::size_t begin = 0, end = 0;  // in the line
};

// As sbatch cuts a line: quotes and backslashes as in a shell, '#' ends it.
std::vector<Word> words_of(std::string_view line, std::size_t from) {
  std::vector<Word> words;
  std::size_t i = from;
  const auto is_blank = [&](std::size_t at) { return std::isspace(static_cast<unsigned char>(line[at])) != 0; };
  while (true) {
    while (i < line.size() && is_blank(i)) ++i;
    if (i == line.size() || line[i] == '#') return words;
    Word word{{}, i, i};
    char quote = 0;
    for (; i < line.size() && (quote != 0 || (!is_blank(i) && line[i] != '#')); ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) {
        word.text += line[++i];
      } else if (quote == 0 && (line[i] == '"' || line[i] == '\'')) {
        quote = line[i];
      } else if (line[i] == quote) {
        quote = 0;
      } else {
        word.text += line[i];
      }
    }
    word.end = i;
    words.push_back(std::move(word));
  }
}

struct Option {
  const OptionName* name = nullptr;
  std::string value;
  std::size_t begin = 0, end = 0;  // in the line
  std::size_t line = 0;            // from 0

  std::string shown() const {
    return fmt::format("--{}{}{}", name->name, value.empty() ? "" : "=", on_one_line(value));
  }
};

// By its whole name, or by as much of a longer one as getopt_long takes.
const OptionName* find_name(std::string_view given) {
  const auto* const exact = std::ranges::find(kNames, given, &OptionName::name);
  if (exact != kNames.end()) return exact;
  const auto* const begun = std::ranges::find_if(
      kNames, [&](const OptionName& one) { return given.size() >= 4 && one.name.starts_with(given); });
  return begun == kNames.end() ? nullptr : begun;
}

const OptionName* find_letter(char letter) {
  const auto* const found = std::ranges::find(kNames, letter, &OptionName::letter);
  return found == kNames.end() ? nullptr : found;
}

// Those of kNames among WORDS: --nodes=4, --nodes 4, -N4, -N 4.
std::vector<Option> options_in(const std::vector<Word>& words, std::size_t line) {
  std::vector<Option> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    Option option;
    std::optional<std::string> value;
    if (text.starts_with("--")) {
      const std::size_t equals = text.find('=');
      option.name = find_name(std::string_view(text).substr(2, equals == std::string::npos ? equals : equals - 2));
      if (equals != std::string::npos) value = text.substr(equals + 1);
    } else if (text.size() >= 2 && text.front() == '-') {
      option.name = find_letter(text[1]);
      if (text.size() > 2) value = text.substr(2);
    }
    if (option.name == nullptr) continue;
    option.begin = words[i].begin;
    option.end = words[i].end;
    option.line = line;
    if (option.name->has_value && !value && i + 1 < words.size()) {
      value = words[++i].text;
      option.end = words[i].end;
    }
    option.value = value.value_or("");
    found.push_back(std::move(option));
  }
  return found;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_command(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r\f\v");
  return first != std::string_view::npos && line[first] != '#';
}

// The number that VALUE begins with: of "2-4" 2.
std::optional<std::uint32_t> first_number(std::string_view value) {
  return parse_number<std::uint32_t>(value.substr(0, value.find_first_not_of("0123456789")));
}

class Change {
 public:
  Change(std::string_view script, const std::string& name, const ScriptAdvice& advice)
      : name_(name), advice_(advice), lines_(lines_of(script)) {
    for (const Word& word : words_of(advice.flags, 0)) {
      for (Option& option : options_in({word}, 0)) advised_.push_back(std::move(option));
    }
  }

  Result<ChangedScript> run() {
    if (lines_.empty() || !lines_.front().starts_with("#!"))
      return invalid_input(name_ + ":1: no batch script: sbatch wants #! and an interpreter in the first line");
    read();
    if (const Result<void> checked = check(); !checked) return checked.error();
    for (const Option& advised : advised_) change(advised);
    for (const char* gone : {"ntasks-per-node", "overcommit"}) remove_unless_advised(gone);
    if (!edits_.empty() || !added_.empty()) look_at_what_stays();
    look_at_commands();
    write();
    for (const std::string& line : lines_) out_.text += line + "\n";
    return std::move(out_);
  }

 private:
  std::string at(std::size_t line) const { return fmt::format("{}:{}: ", name_, line + 1); }

  // The options of the #SBATCH lines, and where these end.
  void read() {
    for (first_command_ = 0; first_command_ < lines_.size() && !is_command(lines_[first_command_]); ++first_command_) {
      const std::string& line = lines_[first_command_];
      if (!line.starts_with(kMagic)) continue;
      const std::vector<Word> words = words_of(line, kMagic.size());
      if (!words.empty() && (words.front().text == "hetjob" || words.front().text == "packjob"))
        het_line_ = first_command_;
      for (Option& option : options_in(words, first_command_)) options_.push_back(std::move(option));
      last_directive_ = first_command_;
    }
  }

  Result<void> check() const {
    if (het_line_)
      return invalid_input(at(*het_line_) + "a heterogeneous job: take the flags of each of its sruns from --flags");
    const Option* const host_file = find(advised_, "nodelist");
    if (host_file != nullptr && host_file->value.find('/') != std::string::npos)
      return invalid_input(
          "--script: what is advised needs a host file, which #SBATCH lines cannot ask for: --flags writes it");
    for (const Option& option : options_) {
      if (option.name->treatment == Treatment::kForbidding)
        return invalid_input(at(option.line) + option.shown() +
                             " decides what lbf-advise would: remove it, then ask again");
      if (option.name->name == "ntasks" && first_number(option.value) != static_cast<std::uint32_t>(advice_.ranks)) {
        return invalid_input(fmt::format("{}{}, but the run had {} ranks: was it this script's?", at(option.line),
                                         option.shown(), advice_.ranks));
      }
    }
    const Option* const threads = find(options_, "cpus-per-task");
    if (threads == nullptr || find(advised_, "cpus-per-task") != nullptr) return {};
    const auto number = first_number(threads->value);
    if (number && std::uint64_t{*number} * advice_.ranks_per_node > advice_.cores) {
      return invalid_input(
          fmt::format("{}{}: the advised {} ranks of a node would need more than its {} processors, "
                      "and the run showed no threads: remove it, then ask again",
                      at(threads->line), threads->shown(), advice_.ranks_per_node, advice_.cores));
    }
    return {};
  }

  static const Option* find(const std::vector<Option>& options, std::string_view name) {
    const auto found = std::ranges::find_if(options, [&](const Option& one) { return one.name->name == name; });
    return found == options.end() ? nullptr : &*found;
  }

  void change(Option advised) {
    // srun does not take --cpus-per-task from the job that it is in (since Slurm 22.05).
    const Option* const threads = find(advised_, "cpus-per-task");
    const bool is_export = advised.name->name == "export";
    if (is_export && threads != nullptr) advised.value += ",SRUN_CPUS_PER_TASK=" + threads->value;
    bool is_there = false;
    for (const Option& option : options_) {
      if (option.name != advised.name) continue;
      is_there = true;
      if (is_export) {
        out_.notes.push_back(at(option.line) + option.shown() + " stays; the advice has " + advised.shown());
        continue;
      }
      // "cyclic:block": what is after the colon is about sockets, which no advice is.
      const std::size_t colon = option.value.find(':');
      const std::string sockets =
          option.name->name == "distribution" && colon != std::string::npos && !advised.value.starts_with("plane")
              ? option.value.substr(colon)
              : "";
      if (option.value != advised.value + sockets)
        edits_.push_back({option, with_value(option, advised.value + sockets)});
    }
    if (!is_there) added_.push_back(advised.shown());
  }

  void remove_unless_advised(std::string_view name) {
    if (find(advised_, name) != nullptr) return;
    for (const Option& option : options_) {
      if (option.name->name == name) edits_.push_back({option, ""});
    }
  }

  // In the form that the script has it: "-N 4" stays "-N 2".
  std::string with_value(const Option& option, const std::string& value) const {
    const std::string old = lines_[option.line].substr(option.begin, option.end - option.begin);
    if (old.starts_with("--")) {
      const std::size_t end = old.find_first_of("= \t");
      return old.substr(0, end) + (end != std::string::npos && old[end] != '=' ? " " : "=") + value;
    }
    return old.substr(0, 2) + (old.size() > 2 && std::isspace(static_cast<unsigned char>(old[2])) != 0 ? " " : "") +
           value;
  }

  // From the last one to the first: what is before an edit stays where it is.
  void write() {
    std::ranges::sort(edits_, [](const Edit& a, const Edit& b) {
      return std::pair(a.option.line, a.option.begin) < std::pair(b.option.line, b.option.begin);
    });
    std::vector<std::size_t> emptied;
    for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit) {
      std::string& line = lines_[edit->option.line];
      line.replace(edit->option.begin, edit->option.end - edit->option.begin, edit->becomes);
      if (words_of(line, kMagic.size()).empty()) emptied.push_back(edit->option.line);
    }
    for (const Edit& edit : edits_) {
      out_.changes.push_back(at(edit.option.line) + edit.option.shown() +
                             (edit.becomes.empty() ? " removed" : " becomes " + on_one_line(edit.becomes)));
    }
    // Behind the #SBATCH lines, else behind #!. Lines that have become empty go, from the last one on.
    std::size_t place = last_directive_.value_or(0) + 1;
    for (const std::size_t line : emptied) {
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(line));
      --place;
    }
    for (const std::string& option : added_) {
      lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(place++), std::string(kMagic) + " " + option);
      out_.changes.push_back(fmt::format("{}: {} added", name_, option));
    }
  }

  void look_at_what_stays() {
    for (const Option& option : options_) {
      if (option.name->treatment == Treatment::kPerNode) {
        out_.notes.push_back(fmt::format("{}{} stays; it is for each node, which gets up to {} ranks", at(option.line),
                                         option.shown(), advice_.ranks_per_node));
      }
      if (option.name->name != "time" || find(advised_, "time") != nullptr) continue;
      const std::optional<Seconds> limit_s = advisor::parse_time_limit(option.value);
      if (limit_s && *limit_s < advice_.predicted_s) {
        out_.notes.push_back(fmt::format("{}{} stays, but the prediction is {}: give it more time", at(option.line),
                                         option.shown(), format_duration(advice_.predicted_s)));
      }
    }
  }

  // srun and mpirun with a layout of their own, and OMP_NUM_THREADS where threads are advised.
  void look_at_commands() {
    const bool threads = find(advised_, "export") != nullptr;
    for (std::size_t i = first_command_; i < lines_.size(); ++i) {
      std::string command = lines_[i];
      for (std::size_t next = i + 1; command.ends_with('\\') && next < lines_.size(); ++next)
        command.replace(command.size() - 1, 1, " " + lines_[next]);
      const std::vector<Word> words = words_of(command, 0);
      const auto launcher = std::ranges::find_if(words, [](const Word& word) {
        const std::string_view program = std::string_view(word.text).substr(word.text.rfind('/') + 1);
        return program == "srun" || program == "mpirun" || program == "mpiexec";
      });
      const std::string own = launcher == words.end() ? "" : layout_of({launcher + 1, words.end()});
      if (!own.empty()) {
        out_.notes.push_back(fmt::format("{}{} has {}, which goes before the #SBATCH lines: change it by hand", at(i),
                                         launcher->text, on_one_line(own)));
      }
      if (threads && lines_[i].find("OMP_NUM_THREADS=") != std::string::npos &&
          lines_[i].find("SLURM_CPUS_PER_TASK") == std::string::npos)
        out_.notes.push_back(at(i) +
                             "OMP_NUM_THREADS is set here, which goes before the #SBATCH lines: change it by hand");
    }
  }

  // The launcher's own options of kAdvised in WORDS, up to the program; a value of Slurm's own ($SLURM_NTASKS) follows
  // the job.
  static std::string layout_of(const std::vector<Word>& words) {
    static constexpr auto kWithoutValue =
        std::to_array<std::string_view>({"--exclusive", "--exact", "--overlap", "--label", "--unbuffered",
                                         "--kill-on-bad-exit", "--lbf-predict", "--multi-prog", "--quiet", "--verbose",
                                         "--oversubscribe", "--overcommit", "-l", "-u", "-K", "-Q", "-v", "-O"});
    std::string out;
    for (std::size_t i = 0; i < words.size() && words[i].text.starts_with('-'); ++i) {
      const std::string& text = words[i].text;
      std::vector<Word> option{words[i]};
      const bool is_whole = text.find('=') != std::string::npos ||
                            (text[1] != '-' && text.size() > 2 && text != "-np") ||
                            std::ranges::find(kWithoutValue, text) != kWithoutValue.end();
      if (!is_whole && i + 1 < words.size() && !words[i + 1].text.starts_with('-')) option.push_back(words[++i]);
      if (option.back().text.find("SLURM_") != std::string::npos) continue;
      const std::vector<Option> known = options_in(option, 0);
      const bool decides =
          text == "-np" || std::ranges::any_of(known, [](const Option& one) {
            const std::string_view name = one.name->name;
            return name == "nodes" || name == "distribution" || name.starts_with("ntasks") || name == "nodelist";
          });
      if (!decides) continue;
      for (const Word& word : option) out += (out.empty() ? "" : " ") + word.text;
    }
    return out;
  }

  struct Edit {
    Option option;
    std::string becomes;  // empty: it goes
  };

  const std::string& name_;
  const ScriptAdvice& advice_;
  std::vector<std::string> lines_;
  std::size_t first_command_ = 0;
  std::optional<std::size_t> last_directive_;
  std::optional<std::size_t> het_line_;
  std::vector<Option> options_;  // of the script
  std::vector<Option> advised_;
  std::vector<Edit> edits_;
  std::vector<std::string> added_;
  ChangedScript out_;
};

}  // namespace

Result<ChangedScript> change_script(std::string_view script, const std::string& name, const ScriptAdvice& advice) {
  return Change(script, name, advice).run();
}

}  // namespace lbf::tools
