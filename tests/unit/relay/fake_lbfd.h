// A small lbfd: the relay's three requests of http-v1.md, in memory, with the faults that tests ask for.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/http_client.h"
#include "event/wire.h"

namespace lbf::relay {

class FakeLbfd {
 public:
  HttpResponse handle(std::string_view method, std::string_view target, std::string_view body) {
    const std::lock_guard lock(mutex_);
    ++requests;
    std::this_thread::sleep_for(answer_after.load());
    if (status_for_all != 0) return {status_for_all, R"({"error":"told to","code":"internal"})"};
    const std::size_t streams = target.find("/streams/");
    if (streams == std::string_view::npos) return {404, "{}"};
    const std::size_t slash = target.find('/', streams + 9);
    const std::string key(target.substr(0, slash));
    const std::string_view rest = slash == std::string_view::npos ? "" : target.substr(slash);
    if (method == "PUT" && rest.empty()) {
      known[key] = std::string(body);
      return answer(200, key);
    }
    if (!known.contains(key)) return {404, R"({"error":"unknown stream","code":"not_found"})"};
    if (rest == "/end") {
      ends[key] = nlohmann::json::parse(body);
      return {200, "{}"};
    }
    if (!rest.starts_with("/batches/")) return {404, "{}"};
    const auto sequence = std::stoull(std::string(rest.substr(9)));
    auto& stored = batches[key];
    if (refuse_batch != 0 && sequence >= refuse_batch) return {400, R"({"error":"bad batch","code":"invalid_input"})"};
    if (sequence > stored.size() + 1) return answer(409, key);
    if (sequence == stored.size() + 1) {
      auto header = read_batch_header(std::as_bytes(std::span(body.data(), body.size())));
      if (!header || header->sequence != sequence) return {400, R"({"error":"wrong number","code":"invalid_input"})"};
      stored.emplace_back(body);
      if (lose_answers > 0) {  // durable, but the relay never hears of it
        --lose_answers;
        return {503, R"({"error":"answer lost","code":"unavailable"})"};
      }
    } else {
      ++repeated;
    }
    return answer(200, key);
  }

  // Its stream was registered; also while requests come.
  bool has_heard_of(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return known.contains(key);
  }

  // Sizes of the batches that came; also while requests come (of a relay that did not wait for the last answer).
  std::vector<std::size_t> batch_bytes(const std::string& key) {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> bytes;
    for (const std::string& batch : batches[key]) bytes.push_back(batch.size());
    return bytes;
  }

  struct Decoded {
    std::vector<std::pair<Rank, Event>> events;  // values are not kept
    std::vector<nlohmann::json> controls;
  };
  Decoded decode(const std::string& key, Rank max_ranks = 64) {
    const std::lock_guard lock(mutex_);
    Decoded out;
    CommunicatorTable communicators;
    BatchDecoder decoder(communicators, max_ranks);
    BatchSink sink;
    sink.on_events = one_by_one([&](Rank rank, const Event& event) -> Result<void> {
      out.events.emplace_back(rank, event);
      out.events.back().second.values = {};
      return {};
    });
    sink.on_control = [&](std::string_view json) -> Result<void> {
      out.controls.push_back(nlohmann::json::parse(json));
      return {};
    };
    for (const std::string& batch : batches[key]) {
      auto header = decoder.decode(std::as_bytes(std::span(batch.data(), batch.size())), sink);
      EXPECT_TRUE(header.ok()) << header.error().message;
    }
    return out;
  }

  std::map<std::string, std::string> known;  // by target of the stream: its description
  std::map<std::string, std::vector<std::string>> batches;
  std::map<std::string, nlohmann::json> ends;
  int requests = 0;
  int repeated = 0;
  std::atomic<int> status_for_all = 0;                                                // set while the server runs
  std::atomic<std::chrono::milliseconds> answer_after{std::chrono::milliseconds(0)};  // set while the server runs
  int lose_answers = 0;
  nlohmann::json procedures;        // of every answer; null: none
  double expected_calls_per_s = 0;  // 0: not said
  double expected_call_s = 0;
  double expected_relay_share = 0;
  std::atomic<std::uint64_t> refuse_batch = 0;

 private:
  HttpResponse answer(int status, const std::string& key) {
    nlohmann::json json{{"next_sequence", batches[key].size() + 1}};
    if (expected_calls_per_s > 0) json["expected_calls_per_s"] = expected_calls_per_s;
    if (expected_call_s > 0) json["expected_call_s"] = expected_call_s;
    if (expected_relay_share > 0) json["expected_relay_share"] = expected_relay_share;
    if (!procedures.is_null()) json["procedures"] = procedures;
    return {status, json.dump()};
  }
  std::mutex mutex_;
};

}  // namespace lbf::relay
