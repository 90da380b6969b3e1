// Many jobs at once: what lbfd acknowledges it replays, whoever else is there, and nobody waits for all
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <thread>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::many_steps_test {
namespace {

using nlohmann::json;

using ManySteps = DaemonTest;

constexpr std::uint32_t kSteps = 32;

// One relay: its batches one after the other, as they are acknowledged. Returns what went wrong.
std::string deliver(const std::string& server, const std::string& stream, const std::string& description,
                    const std::vector<std::string>& batches, std::latch& all_began) {
  auto client = HttpClient::make(server);
  const auto accepted = [&](const char* method, const std::string& target, const std::string& body) {
    const auto answer = client->request(method, target, body);
    if (!answer) return target + ": " + answer.error().message;
    return answer->status == 200 ? std::string() : target + ": " + answer->body;
  };
  std::string wrong = accepted("PUT", stream, description);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (wrong.empty()) wrong = accepted("POST", stream + "/batches/" + std::to_string(i + 1), batches[i]);
    if (i == 0) all_began.arrive_and_wait();
  }
  const json end{{"last_sequence", batches.size()}, {"lost_batches", 0}, {"reason", "step_end"}};
  return wrong.empty() ? accepted("POST", stream + "/end", end.dump()) : wrong;
}

TEST_F(ManySteps, AllAreWholeAndNoneIsLeftBehind) {
  start();
  RingProgram program;
  program.rounds = 250;
  program.batches = 8;
  send_all(program, 1000);
  const json alone = wait_until_final(1000);
  ASSERT_EQ(alone["state"], "complete") << alone["why_partial"];

  const std::vector<std::vector<std::string>> batches{program.batches_of(0), program.batches_of(1)};
  std::latch all_began(2 * kSteps);
  std::vector<std::string> wrong(2 * kSteps);
  std::vector<std::jthread> relays;
  for (std::uint32_t i = 0; i < 2 * kSteps; ++i) {
    const std::uint32_t job = 1 + i / 2;
    const std::uint32_t node = i % 2;
    relays.emplace_back([&, i, job, node] {
      wrong[i] = deliver("unix:" + socket(), stream(job, node), program.description(node, job).dump(), batches[node],
                         all_began);
    });
  }
  // When the first step is over, all others have been replayed in part: they take turns.
  std::vector<std::int64_t> events_then;
  while (events_then.empty()) {
    const json steps = json_request("GET", "/v1/steps?since=0");
    ASSERT_FALSE(HasFailure());
    bool any_is_over = false;
    for (const json& step : steps["steps"]) any_is_over |= step["job"] != 1000 && step["state"] != "running";
    if (!any_is_over) continue;
    for (const json& step : steps["steps"]) {
      if (step["job"] != 1000) events_then.push_back(step["events"].get<std::int64_t>());
    }
  }
  for (std::jthread& relay : relays) relay.join();
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
  ASSERT_EQ(events_then.size(), kSteps);
  EXPECT_GT(*std::min_element(events_then.begin(), events_then.end()), 0);

  for (std::uint32_t job = 1; job <= kSteps; ++job) {
    const json step = wait_until_final(job);
    EXPECT_EQ(step["state"], "complete") << step["why_partial"];
    EXPECT_EQ(step["events"], alone["events"]);
    ASSERT_EQ(step["predictions"].size(), alone["predictions"].size());
    for (std::size_t t = 0; t < step["predictions"].size(); ++t) {
      EXPECT_EQ(step["predictions"][t]["predicted_s"], alone["predictions"][t]["predicted_s"]);
    }
  }
}

}  // namespace
}  // namespace lbf::test::many_steps_test