#include "tests/unit/tools_trace/fixture.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "event/stored_trace_writer.h"

namespace lbf::trace_test {

using testing::HasSubstr;

test::Outcome TraceCommand::run(const std::string& program, const std::string& arguments) {
  return test::run_command("cd " + dir_ + " && " + program + " " + arguments);
}

std::string TraceCommand::output_of(const std::string& arguments) {
  const test::Outcome result = run(arguments);
  EXPECT_EQ(result.status, 0) << arguments << ": " << result.err;
  EXPECT_EQ(result.err, "") << arguments;
  return result.out;
}

std::string TraceCommand::write(const std::string& name, const std::string& content) {
  const std::string path = dir_ + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string TraceCommand::read(const std::string& name) {
  std::ifstream in(name.starts_with('/') ? name : dir_ + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void TraceCommand::expect_error(int status, const std::string& arguments, const std::string& says) {
  const test::Outcome result = run(arguments);
  EXPECT_EQ(result.status, status) << arguments << ": " << result.err;
  EXPECT_EQ(result.out, "") << arguments;
  EXPECT_THAT(result.err, testing::AllOf(testing::StartsWith("lbf-trace: error: "), HasSubstr(says))) << arguments;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

double TraceCommand::predicted_s(const std::string& trace, const std::string& options) {
  const test::Outcome result = run(LBF_WHATIF, trace + " --json " + options);
  EXPECT_EQ(result.status, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  return json.is_object() ? json["predictions"][0]["lbf_s"].get<double>() : -1;
}

namespace {

class Program {
 public:
  Program(std::uint64_t seed, Rank ranks, bool communicators) : random_(seed), ranks_(ranks) {
    text_ = "lbf-trace 1\nranks " + std::to_string(ranks) + "\n";
    members_.resize(1);
    members_[0].resize(static_cast<std::size_t>(ranks));
    std::iota(members_[0].begin(), members_[0].end(), 0);
    for (int comm = 1; communicators && comm <= 2; ++comm) {
      // Rank 0 is in all of them and comes first, so that every reader meets them in this order.
      std::vector<Rank> members = members_[0];
      std::shuffle(members.begin() + 1, members.end(), random_);
      members.resize(static_cast<std::size_t>(std::max<Rank>(2, ranks - comm)));
      text_ += "comm " + std::to_string(comm) + ' ';
      for (std::size_t i = 0; i < members.size(); ++i) text_ += (i > 0 ? "," : "") + std::to_string(members[i]);
      text_ += '\n';
      members_.push_back(members);
    }
    line(0, "compute");
  }

  void act() {
    switch (below(6)) {
      case 0:
        line(rank(), "compute");
        break;
      case 1:
        line(rank(), "blocked", " off=" + seconds());
        break;
      case 2:
        collective();
        break;
      case 3:
        message();
        break;
      default:
        exchange();
        break;
    }
  }

  std::string finish() {
    for (Rank r = 0; r < ranks_; ++r) line(r, "exit");
    return std::move(text_);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Rank rank() { return static_cast<Rank>(below(static_cast<std::uint64_t>(ranks_))); }
  // Nanoseconds as every form of a trace reads them: the double nearest to n * 1e-9.
  std::string seconds() {
    const double value = seconds_from_ns(static_cast<Nanoseconds>(below(3) == 0 ? 0 : below(100000)));
    std::array<char, 64> digits;
    return {digits.data(),
            std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr};
  }
  void line(Rank r, const std::string& kind, const std::string& rest = "") {
    text_ += std::to_string(r) + ' ' + kind + ' ' + seconds() + rest + '\n';
  }
  static std::string comm_key(std::size_t comm) { return comm == 0 ? "" : " comm=" + std::to_string(comm); }

  void collective() {
    static const std::vector<std::string> kOps{"barrier", "bcast",     "reduce",   "allreduce",      "gather",
                                               "scatter", "allgather", "alltoall", "reduce_scatter", "scan"};
    const std::string op = kOps[below(kOps.size())];
    const std::size_t comm = below(members_.size());
    const bool rooted = op == "bcast" || op == "reduce" || op == "gather" || op == "scatter";
    const Bytes bytes = op == "barrier" ? 0 : 8 * (1 + below(4000));
    const std::uint64_t root = rooted ? below(members_[comm].size()) : 0;
    for (Rank r : members_[comm]) {
      line(r, "coll",
           " op=" + op + (bytes > 0 ? " bytes=" + std::to_string(bytes) : "") +
               (root > 0 ? " root=" + std::to_string(root) : "") + comm_key(comm));
    }
  }

  void message() {
    const std::size_t comm = below(members_.size());
    const auto& members = members_[comm];
    const std::size_t from = below(members.size());
    const std::size_t to = (from + 1 + below(members.size() - 1)) % members.size();
    const std::string tag = " tag=" + std::to_string(below(3));
    const std::string bytes = " bytes=" + std::to_string(below(2) == 0 ? 0 : below(100000));
    const bool wildcard = below(4) == 0;
    line(members[from], "send", " to=" + std::to_string(to) + tag + bytes + comm_key(comm));
    line(members[to], "startRecv", " from=" + (wildcard ? "any" : std::to_string(from)) + tag + comm_key(comm));
    line(members[to], "endRecv", " from=" + std::to_string(from) + tag + bytes + comm_key(comm));
  }

  // Every member posts a receive from the one before it and sends to the one after it.
  void exchange() {
    const std::size_t comm = below(members_.size());
    const auto& members = members_[comm];
    const std::string tag = " tag=" + std::to_string(3 + below(3));
    const std::uint64_t count = 1 + below(2);
    const Bytes bytes = 1 + below(50000);
    const auto request = [](std::uint64_t n) { return " req=" + std::to_string(n); };
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string before = " from=" + std::to_string((i + members.size() - 1) % members.size());
      const std::string after = " to=" + std::to_string((i + 1) % members.size());
      for (std::uint64_t n = 0; n < count; ++n)
        line(members[i], "startRecv", before + tag + comm_key(comm) + request(n));
      for (std::uint64_t n = 0; n < count; ++n) {
        line(members[i], "isend",
             after + tag + " bytes=" + std::to_string(bytes + n) + request(count + n) + comm_key(comm));
      }
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string before = " from=" + std::to_string((i + members.size() - 1) % members.size());
      for (std::uint64_t n = 0; n < count; ++n) {
        line(members[i], "endRecv", before + tag + " bytes=" + std::to_string(bytes + n) + comm_key(comm) + request(n));
      }
      line(members[i], "wait", " req=" + std::to_string(count) + (count > 1 ? "," + std::to_string(count + 1) : ""));
    }
  }

  std::mt19937_64 random_;
  Rank ranks_;
  std::vector<std::vector<Rank>> members_;  // by communicator
  std::string text_;
};

}  // namespace

std::string random_program(std::uint64_t seed, Rank ranks, bool communicators, int actions) {
  Program program(seed, ranks, communicators);
  for (int i = 0; i < actions; ++i) program.act();
  return program.finish();
}

std::vector<std::vector<std::string>> lines_of_ranks(const std::string& text, Rank ranks) {
  std::vector<std::vector<std::string>> lines(static_cast<std::size_t>(ranks));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() < '0' || line.front() > '9') continue;
    lines.at(static_cast<std::size_t>(std::stoi(line))).push_back(line);
  }
  return lines;
}

std::string stored(Rank ranks, const std::vector<RankEvent>& events, const std::vector<std::uint32_t>& node_of_rank) {
  std::string bytes;
  StoredTraceOptions options;
  options.node_of_rank = node_of_rank;
  StoredTraceWriter writer(
      ranks,
      [&bytes](std::uint32_t, const std::string& batch) -> Result<void> {
        bytes += batch;
        return {};
      },
      options);
  for (const RankEvent& e : events) {
    const Result<void> added = writer.add(e.rank, e.event);
    EXPECT_TRUE(added.ok()) << added.error().message;
  }
  EXPECT_TRUE(writer.finish().ok());
  return bytes;
}

}  // namespace lbf::trace_test
