#include "tools/whatif_trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/http_client.h"
#include "base/scoped_fd.h"
#include "event/wire.h"

namespace lbf {
namespace {

constexpr std::string_view kTextMagic = "lbf-trace";
constexpr Rank kMaxRanks = 1 << 24;

// --- text

class TextTrace final : public WhatIfTrace {
 public:
  TextTrace(std::string path, Rank ranks, std::uintmax_t bytes)
      : path_(std::move(path)), ranks_(ranks), bytes_(bytes) {}
  Rank ranks() const override { return ranks_; }

  Result<void> read(const EventSink& sink, const std::function<void(double)>& progress) override {
    std::ifstream in(path_, std::ios::binary);
    if (!in) return Error{ErrorCode::kIo, path_ + ": cannot open: " + std::strerror(errno)};
    std::uint64_t events = 0;
    const auto count = [&](Rank rank, const Event& event) -> Result<void> {
      constexpr std::uint64_t kEventsPerTick = 1 << 16;
      if (++events % kEventsPerTick == 0 && bytes_ > 0) {
        progress(static_cast<double>(in.tellg()) / static_cast<double>(bytes_));
      }
      return sink(rank, event);
    };
    const Result<TraceInfo> info = read_text_trace(in, path_, count);
    if (!info) return info.error();
    return {};
  }

 private:
  std::string path_;
  Rank ranks_;
  std::uintmax_t bytes_;
};

// The number of the `ranks` line. The reader proper checks it; here only what is needed before the first
// event.
std::optional<Rank> ranks_of_text(std::istream& in) {
  std::string line;
  while (std::getline(in, line)) {
    std::string_view rest = line;
    rest = rest.substr(0, rest.find('#'));
    const auto skip = [&rest] {
      while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    };
    skip();
    if (!rest.starts_with("ranks")) continue;
    rest.remove_prefix(5);
    skip();
    Rank ranks = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ranks);
    if (error != std::errc{} || ranks < 1 || ranks > kMaxRanks) return std::nullopt;
    return ranks;
  }
  return std::nullopt;
}

// --- batches

// Bytes of one file, mapped, or of a string.
class TraceBytes {
 public:
  static Result<std::shared_ptr<TraceBytes>> map(const std::string& path) {
    ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return Error{ErrorCode::kIo, path + ": cannot open: " + std::strerror(errno)};
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return Error{ErrorCode::kIo, path + ": " + std::strerror(errno)};
    auto bytes = std::make_shared<TraceBytes>();
    if (status.st_size == 0) return bytes;
    const std::size_t size = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (data == MAP_FAILED) return Error{ErrorCode::kIo, path + ": cannot map: " + std::strerror(errno)};
    bytes->mapped_ = data;
    bytes->view_ = {static_cast<const std::byte*>(data), size};
    return bytes;
  }
  static std::shared_ptr<TraceBytes> hold(std::string text) {
    auto bytes = std::make_shared<TraceBytes>();
    bytes->text_ = std::move(text);
    bytes->view_ = std::as_bytes(std::span<const char>(bytes->text_));
    return bytes;
  }
  TraceBytes() = default;
  TraceBytes(const TraceBytes&) = delete;
  TraceBytes& operator=(const TraceBytes&) = delete;
  ~TraceBytes() {
    if (mapped_ != nullptr) ::munmap(mapped_, view_.size());
  }
  std::span<const std::byte> view() const { return view_; }

 private:
  void* mapped_ = nullptr;
  std::string text_;
  std::span<const std::byte> view_;
};

struct Source {
  std::string name;
  std::shared_ptr<TraceBytes> bytes;
};

class StoredTrace final : public WhatIfTrace {
 public:
  static Result<std::unique_ptr<WhatIfTrace>> make(std::vector<Source> sources) {
    auto trace = std::make_unique<StoredTrace>();
    trace->sources_ = std::move(sources);
    if (Result<void> indexed = trace->index(); !indexed) return indexed.error();
    Result<Rank> ranks = trace->find_ranks();
    if (!ranks) return ranks.error();
    trace->ranks_ = *ranks;
    return std::unique_ptr<WhatIfTrace>(std::move(trace));
  }
  Rank ranks() const override { return ranks_; }

  Result<void> read(const EventSink& sink, const std::function<void(double)>& progress) override {
    CommunicatorTable communicators;
    BatchDecoder decoder(communicators, ranks_);
    BatchSink batch_sink;
    batch_sink.on_event = sink;
    std::size_t bytes_done = 0;
    // The streams side by side, as they came in: one stream after the other would hold all events in memory.
    std::vector<std::pair<const std::vector<Batch>*, std::size_t>> open;
    for (const auto& [stream, batches] : streams_) open.emplace_back(&batches, 0);
    while (!open.empty()) {
      for (std::size_t i = 0; i < open.size();) {
        auto& [batches, at] = open[i];
        if (at == batches->size()) {
          open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
          continue;
        }
        const Batch& batch = (*batches)[at++];
        if (Result<void> decoded = decode(decoder, batch, batch_sink); !decoded) return decoded;
        bytes_done += batch.bytes.size();
        progress(static_cast<double>(bytes_done) /
                 static_cast<double>(std::max<std::size_t>(total_bytes_, 1)));
        ++i;
      }
    }
    return {};
  }

 private:
  struct Batch {
    std::size_t source;
    std::size_t offset;
    std::span<const std::byte> bytes;
  };

  Result<void> decode(BatchDecoder& decoder, const Batch& batch, const BatchSink& sink) const {
    const Result<BatchHeader> header = decoder.decode(batch.bytes, sink);
    if (header) return {};
    return Error{header.error().code, sources_[batch.source].name + ", batch at byte " +
                                          std::to_string(batch.offset) + ": " + header.error().message};
  }

  Result<void> index() {
    std::map<std::uint32_t, std::uint64_t> last_sequence;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const std::span<const std::byte> all = sources_[s].bytes->view();
      for (std::size_t offset = 0; offset < all.size();) {
        const Result<BatchHeader> header = read_batch_header(all.subspan(offset));
        const std::string where = sources_[s].name + ", byte " + std::to_string(offset) + ": ";
        if (!header) {
          return Error{header.error().code,
                       where + "not a stored trace from here on: " + header.error().message};
        }
        const std::size_t size = kBatchHeaderBytes + header->compressed_bytes;
        if (size > all.size() - offset)
          return invalid_input(where + "the batch is cut off (is the file complete?)");
        // A batch that was stored twice counts once: sequence numbers only rise (http-v1.md).
        std::uint64_t& last = last_sequence[header->stream];
        if (header->sequence > last) {
          last = header->sequence;
          streams_[header->stream].push_back({s, offset, all.subspan(offset, size)});
          total_bytes_ += size;
        }
        offset += size;
      }
    }
    if (streams_.empty()) return invalid_input(sources_.front().name + ": the trace is empty");
    return {};
  }

  // The world's size from the processes' own records (http-v1.md, "process"); in a trace without them as many
  // as have events.
  Result<Rank> find_ranks() const {
    Rank world = 0;
    Rank seen = 0;
    BatchSink sink;
    sink.on_event = [&seen](Rank rank, const Event&) -> Result<void> {
      seen = std::max(seen, rank + 1);
      return {};
    };
    sink.on_control = [&world](std::string_view text) -> Result<void> {
      const nlohmann::json record = nlohmann::json::parse(text, nullptr, false);
      if (record.is_object() && record.value("type", "") == "process" && record.contains("world_size") &&
          record["world_size"].is_number_integer()) {
        world =
            std::max(world, static_cast<Rank>(std::clamp<std::int64_t>(record["world_size"], 0, kMaxRanks)));
      }
      return {};
    };
    CommunicatorTable communicators;
    BatchDecoder decoder(communicators, kMaxRanks);
    for (std::size_t nth = 0;; ++nth) {
      bool more = false;
      for (const auto& [stream, batches] : streams_) {
        if (nth >= batches.size()) continue;
        more = true;
        if (Result<void> decoded = decode(decoder, batches[nth], sink); !decoded) return decoded.error();
      }
      if (world > 0) return std::max(world, seen);
      if (!more) break;
    }
    if (seen == 0) return invalid_input(sources_.front().name + ": the trace has no events");
    return seen;
  }

  std::vector<Source> sources_;
  std::map<std::uint32_t, std::vector<Batch>> streams_;
  std::size_t total_bytes_ = 0;
  Rank ranks_ = 0;
};

Result<std::unique_ptr<WhatIfTrace>> open_path(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    std::vector<std::string> names;
    for (auto it = std::filesystem::directory_iterator(path, error);
         !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with("stream-") && name.ends_with(".lbfw")) names.push_back(it->path().string());
    }
    if (error) return Error{ErrorCode::kIo, path + ": " + error.message()};
    if (names.empty()) return invalid_input(path + ": holds no stored trace (no stream-*.lbfw in it)");
    std::sort(names.begin(), names.end());
    std::vector<Source> sources;
    for (const std::string& name : names) {
      Result<std::shared_ptr<TraceBytes>> bytes = TraceBytes::map(name);
      if (!bytes) return bytes.error();
      sources.push_back({name, std::move(*bytes)});
    }
    return StoredTrace::make(std::move(sources));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{ErrorCode::kIo, path + ": cannot open: " + std::strerror(errno)};
  std::string start(kTextMagic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (in.gcount() == static_cast<std::streamsize>(start.size()) && start == kTextMagic) {
    in.clear();
    in.seekg(0);
    const std::optional<Rank> ranks = ranks_of_text(in);
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (ranks)
      return std::unique_ptr<WhatIfTrace>(std::make_unique<TextTrace>(path, *ranks, error ? 0 : bytes));
    // The reader names the line.
    in.clear();
    in.seekg(0);
    const Result<TraceInfo> info =
        read_text_trace(in, path, [](Rank, const Event&) -> Result<void> { return {}; });
    return info ? invalid_input(path + ": has no 'ranks N' line") : info.error();
  }
  Result<std::shared_ptr<TraceBytes>> bytes = TraceBytes::map(path);
  if (!bytes) return bytes.error();
  if ((*bytes)->view().empty()) return invalid_input(path + ": the file is empty");
  return StoredTrace::make({{path, std::move(*bytes)}});
}

// --- lbfd

struct JobStep {
  std::string job;
  std::string step;  // empty: any
};

std::optional<JobStep> parse_job_step(std::string_view text) {
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.size() <= 10 &&
           std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  const std::size_t dot = text.find('.');
  const std::string_view job = text.substr(0, dot);
  const std::string_view step = dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (!digits(job) || (dot != std::string_view::npos && !digits(step))) return std::nullopt;
  return JobStep{std::string(job), std::string(step)};
}

bool has_no_steps(const std::string& body) {
  const nlohmann::json list = nlohmann::json::parse(body, nullptr, false);
  return list.is_object() && list.contains("steps") && list["steps"].is_array() && list["steps"].empty();
}

Result<std::unique_ptr<WhatIfTrace>> fetch(const JobStep& wanted, const std::string& server) {
  HttpClientOptions options;
  options.total_timeout_s = 0;  // a trace may be gigabytes
  Result<HttpClient> client = HttpClient::make(server, options);
  if (!client) return client.error();
  std::string query = "/v1/steps?brief=1&job=" + wanted.job;
  if (!wanted.step.empty()) query += "&step=" + wanted.step;
  Result<HttpResponse> answer = client->request("GET", query);
  if (!answer) return answer.error();
  if (answer->status == 200 && has_no_steps(answer->body)) {
    // None of the caller's own; an operator may mean somebody else's, and only an operator is answered.
    Result<HttpResponse> everybodys = client->request("GET", query + "&all=1");
    if (!everybodys) return everybodys.error();
    if (everybodys->status == 200) answer = std::move(everybodys);
  }
  if (answer->status != 200) return error_of_response(*answer);
  const nlohmann::json list = nlohmann::json::parse(answer->body, nullptr, false);
  const std::string name = "job " + wanted.job + (wanted.step.empty() ? "" : "." + wanted.step);
  if (!list.is_object() || !list.contains("steps") || !list["steps"].is_array()) {
    return Error{ErrorCode::kInternal,
                 server + ": the answer about " + name + " is not understood (versions differ?)"};
  }
  // A restarted job has its step once per restart: the last one counts.
  std::map<std::string, std::pair<std::int64_t, std::string>> key_of_step;
  for (const nlohmann::json& step : list["steps"]) {
    try {
      const std::string number = std::to_string(step.at("step").get<std::int64_t>());
      const std::int64_t restart = step.value("restart", std::int64_t{0});
      const std::string key = step.at("cluster").get<std::string>() + "/" +
                              std::to_string(step.at("job").get<std::int64_t>()) + "/" + number + "/" +
                              std::to_string(restart);
      const auto known = key_of_step.find(number);
      if (known == key_of_step.end() || known->second.first < restart) key_of_step[number] = {restart, key};
    } catch (const nlohmann::json::exception&) {
      return Error{ErrorCode::kInternal,
                   server + ": the answer about " + name + " is not understood (versions differ?)"};
    }
  }
  if (key_of_step.empty()) {
    return Error{ErrorCode::kNotFound, name +
                                           ": lbfd has no step of it that you may see (was it run with "
                                           "--lbf-predict?), and no file has that name"};
  }
  if (key_of_step.size() > 1) {
    std::string steps;
    for (const auto& [number, key] : key_of_step)
      steps += (steps.empty() ? "" : ", ") + wanted.job + "." + number;
    return invalid_input(name + " has several steps, say which: " + steps);
  }
  const std::string key = key_of_step.begin()->second.second;
  answer = client->request("GET", "/v1/steps/" + key + "/trace");
  if (!answer) return answer.error();
  if (answer->status != 200) return error_of_response(*answer);
  if (answer->body.empty()) return Error{ErrorCode::kNotFound, name + ": no events are stored yet"};
  return StoredTrace::make({{"trace of " + name, TraceBytes::hold(std::move(answer->body))}});
}

}  // namespace

Result<std::unique_ptr<WhatIfTrace>> open_trace(const std::string& what, const std::string& server) {
  std::error_code error;
  if (std::filesystem::exists(what, error)) return open_path(what);
  const std::optional<JobStep> job = parse_job_step(what);
  if (!job)
    return Error{ErrorCode::kNotFound, what + ": no such trace file or folder, and not JOBID[.STEP] either"};
  return fetch(*job, server);
}

}  // namespace lbf
