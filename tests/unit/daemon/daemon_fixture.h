// A real lbfd, as a child process on a Unix socket in a directory of its own, with a munged of its own; and a
// small MPI program's batches to feed it with.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "tests/support/temporary_directory.h"

namespace lbf::test {

// Which ranks run on which node, and how often they pass a message around the ring.
struct RingProgram {
  std::vector<std::vector<int>> ranks_of_node = {{0, 1}, {2, 3}};
  int rounds = 40;
  unsigned threads = 0;                     // above 0: a rank's work is a parallel region of so many
  unsigned threads_given = 0;               // what the relays say that each rank was given
  double more_work = 1;                     // of each rank than of the one before it, in ms a round
  double others_s = 0;                      // above 0: other programs have rank 0's processor so long in each round
  int batches = 4;                          // of each stream
  std::string library = "Open MPI v4.1.4";  // MPI_Get_library_version, of every process
  std::vector<std::string> mpi_settings;    // of the environment of every process
  std::string build_id;                     // of the program; empty: the relay does not say
  int killed_rank = -1;
  // Above 0: the capture ended with the last batch, so long before each rank's end, and nobody saw the rest.
  double unseen_s = 0;
  nlohmann::json cost;                       // more keys of each node's `cost` record; null: there is none
  bool all_send_first = false;               // relies on buffers: where no message is eager nobody gets further
  std::vector<nlohmann::json> more_stats;    // keys for the stats of the ranks, by rank
  std::vector<nlohmann::json> more_records;  // of each node's last batch

  int ranks() const;
  nlohmann::json description(std::uint32_t node, std::uint32_t job) const;
  // Batches 1 .. batches of one node's stream.
  std::vector<std::string> batches_of(std::uint32_t node) const;
};

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override;  // skips the test, with the reason, where munge cannot be had
  void TearDown() override;

  void write_config(const std::string& more = "");
  void start(const std::vector<std::string>& more_arguments = {});  // waits until it answers
  int start_and_wait_for_end();                                     // its wait status; -1: it answers, as after start()
  int stop(int signal);                       // and the wait status, which must be that of an end by this signal
  void limit_file_size(std::uint64_t bytes);  // of every file that lbfd writes: a full disk

  HttpResponse request(const std::string& method, const std::string& target, const std::string& body = {});
  nlohmann::json json_request(const std::string& method, const std::string& target, const std::string& body = {},
                              int expected_status = 200);
  // As another user: in a child process. REQUIRES: running as root.
  HttpResponse request_as(uid_t uid, const std::string& method, const std::string& target,
                          const std::string& body = {});
  // Bytes to the socket, and what comes back until lbfd closes.
  std::string raw_exchange(const std::string& bytes);

  std::string key(std::uint32_t job) const { return "/v1/steps/" + cluster_ + "/" + std::to_string(job) + "/0/0"; }
  std::string stream(std::uint32_t job, std::uint32_t node) const {
    return key(job) + "/streams/" + std::to_string(node);
  }
  void put(const RingProgram& program, std::uint32_t job, std::uint32_t node);
  void post(std::uint32_t job, std::uint32_t node, std::uint64_t sequence, const std::string& batch);
  void end(std::uint32_t job, std::uint32_t node, std::uint64_t last_sequence);
  void send_all(const RingProgram& program, std::uint32_t job);
  // Asks until `is_reached(step)`, at most 30 s (with the thread sanitizer four times as long).
  nlohmann::json wait_for(std::uint32_t job, const std::function<bool(const nlohmann::json&)>& is_reached);
  nlohmann::json wait_until_final(std::uint32_t job);

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string socket() const { return path("lbfd.sock"); }
  std::string log() const;

  std::string cluster_ = "c";  // of the steps

 private:
  void start_munged();
  bool launch(const std::vector<std::string>& more_arguments, int& wait_status);

  TemporaryDirectory directory_;
  pid_t munged_ = -1;
  pid_t lbfd_ = -1;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace lbf::test
