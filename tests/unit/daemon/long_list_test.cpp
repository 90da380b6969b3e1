// Lists that are sent while they are read: whole, in lines, and short ones as ever.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <csignal>
#include <sstream>
#include <string>

#include "base/munge_credential.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::long_list_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kCopies = 1500;

class LongList : public DaemonTest {
 protected:
  // Job 7 as it ran, and copies of it under other numbers.
  void start_with_many_steps() {
    start();
    send_all(RingProgram(), 7);
    ASSERT_EQ(wait_until_final(7)["state"], "complete");
    ASSERT_EQ(stop(SIGTERM), 0);
    SQLite::Database db(path("state/lbf.db"), SQLite::OPEN_READWRITE, 5000);
    db.exec("BEGIN");
    for (const std::string table : {"step", "prediction", "call"}) {
      db.exec("CREATE TEMP TABLE of_" + table + " AS SELECT * FROM " + table);
      for (int i = 0; i < kCopies; ++i) {
        db.exec("UPDATE of_" + table + " SET step_row = step_row + 1" + (table == "step" ? ", job = job + 1" : ""));
        db.exec("INSERT INTO " + table + " SELECT * FROM of_" + table);
      }
    }
    db.exec("COMMIT");
    start();
  }
  std::string head_of(const std::string& target) {
    const std::string credential = *encode_munge_credential(munge_payload_of_request("GET", target, ""));
    const std::string answer = raw_exchange("GET " + target +
                                            " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                            "Authorization: Munge " +
                                            credential + "\r\n\r\n");
    return answer.substr(0, answer.find("\r\n\r\n"));
  }
};

TEST_F(LongList, IsWholeAndInLines) {
  ASSERT_NO_FATAL_FAILURE(start_with_many_steps());
  const std::string all = "/v1/steps?limit=10000";
  EXPECT_THAT(head_of(all), HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(head_of("/v1/steps?job=7"), Not(HasSubstr("chunked")));
  EXPECT_THAT(head_of("/v1/steps?job=7"), HasSubstr("Content-Length: "));

  const json original = json_request("GET", "/v1/steps?job=7")["steps"][0];
  const json steps = json_request("GET", all)["steps"];
  ASSERT_EQ(steps.size(), kCopies + 1U);
  for (json step : steps) {
    EXPECT_EQ(step["predictions"], original["predictions"]);
    step["job"] = 7;
    step["lbfd_cpu_s"] = original["lbfd_cpu_s"];
    ASSERT_EQ(step, original);
  }

  for (const std::string& target : {all, all + "&rows=job,step,predictions.target,predictions.predicted_s"}) {
    std::istringstream lines(request("GET", target).body);
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.ends_with('[')) << line;
    for (int i = 0; i <= kCopies; ++i) {
      std::getline(lines, line);
      if (i < kCopies) {
        ASSERT_TRUE(line.ends_with(',')) << line;
        line.pop_back();
      }
      ASSERT_FALSE(json::parse(line, nullptr, false).is_discarded()) << line;
    }
    std::getline(lines, line);
    EXPECT_EQ(line, "]}");
    EXPECT_FALSE(std::getline(lines, line));
  }
}

TEST_F(LongList, ItsConnectionIsGoodForTheNextRequest) {
  ASSERT_NO_FATAL_FAILURE(start_with_many_steps());
  auto client = HttpClient::make("unix:" + socket());
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 3; ++i) {
    std::string body;
    std::size_t pieces = 0;
    const auto answer =
        client->request("GET", "/v1/steps?limit=10000", {}, {}, HttpAuth::kMunge, [&](std::string_view piece) {
          body += piece;
          ++pieces;
        });
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "");
    EXPECT_GT(pieces, 3U);
    EXPECT_EQ(json::parse(body)["steps"].size(), kCopies + 1U);
  }
}

}  // namespace
}  // namespace lbf::test::long_list_test