// lbf-trace as users run it, and programs to run it on.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "event/event.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::trace_test {

class TraceCommand : public testing::Test {
 protected:
  // `arguments` are quoted by the test. They run in the test's own directory.
  test::Outcome run(const std::string& arguments) { return run(LBF_TRACE, arguments); }
  test::Outcome run(const std::string& program, const std::string& arguments);
  // The output of a run that says nothing on stderr.
  std::string output_of(const std::string& arguments);
  std::string write(const std::string& name, const std::string& content);
  std::string read(const std::string& name);
  void expect_error(int status, const std::string& arguments, const std::string& says);
  double predicted_s(const std::string& trace, const std::string& options);

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
  const std::string fig3_ = std::string(LBF_GOLDEN_DIR) + "/fig3.lbf";
};

// A text trace of a random program that can always run to its end: messages blocking and not, collectives on
// the world and on communicators, blocked time. Its times are whole nanoseconds. Requests of one channel
// complete in the order in which they were posted.
std::string random_program(std::uint64_t seed, Rank ranks, bool communicators, int actions);

// The lines of each rank, in their order.
std::vector<std::vector<std::string>> lines_of_ranks(const std::string& text, Rank ranks);

// Events of ranks as a stored trace.
struct RankEvent {
  Rank rank;
  Event event;
};
std::string stored(Rank ranks, const std::vector<RankEvent>& events,
                   const std::vector<std::uint32_t>& node_of_rank = {});

}  // namespace lbf::trace_test
