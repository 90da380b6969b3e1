#include "tools/whatif/whatif_trace.h"

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
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/http_client.h"
#include "base/io_error.h"
#include "base/scoped_fd.h"
#include "event/wire.h"
#include "predictor/daemon/intake/stream_merge.h"
#include "predictor/daemon/steps/step_cost.h"
#include "protocol/control_records.h"
#include "report/advice.h"
#include "report/selection.h"
#include "report/step.h"
#include "tools/import/otf2_import.h"
#include "tools/support/announced_ranks.h"
#include "tools/support/compressed_file.h"
#include "tools/whatif/step_query.h"
#include "tools/whatif/trace_procedures.h"

namespace lbf::tools {
namespace {

constexpr std::string_view kTextMagic = "lbf-trace";

// --- text

class TextTrace final : public WhatIfTrace {
 public:
  TextTrace(std::string path, TraceInfo header, std::uintmax_t bytes)
      : path_(std::move(path)), header_(std::move(header)), bytes_(bytes) {}
  std::unique_ptr<WhatIfTrace> another_reader() const override {
    return bytes_ > 0 ? std::make_unique<TextTrace>(*this) : nullptr;  // else it may be a pipe
  }
  Rank ranks() const override { return header_.ranks; }
  const std::string& library() const override { return header_.library; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return header_.node_of_rank; }
  const std::optional<report::TargetPrediction>& self() const override { return no_self_; }
  std::vector<daemon::StreamCost> costs() const override { return {}; }  // text traces do not say

  Result<std::vector<std::string>> procedures(Samples) override {
    std::ifstream in(path_, std::ios::binary);
    if (!in) return Error{ErrorCode::kIo, path_ + ": cannot open: " + std::strerror(errno)};
    Result<TraceInfo> info = read_text_trace(in, path_, [](Rank, const Event&) -> Result<void> { return {}; });
    if (!info) return info.error();
    return std::move(info->procedures);
  }
  // Text traces say neither.
  const std::set<std::string>& switched_off() const override { return none_; }
  const std::set<std::string>& sampled() const override { return none_; }

  Result<void> read(const EventBlockSink& sink, const RoundsSink& /*rounds*/,
                    const std::function<void(double)>& progress) override {
    std::ifstream in(path_, std::ios::binary);
    if (!in) return Error{ErrorCode::kIo, path_ + ": cannot open: " + std::strerror(errno)};
    std::uint64_t events = 0;
    const auto count = [&](Rank rank, const Event& event) -> Result<void> {
      constexpr std::uint64_t kEventsPerTick = 1 << 16;
      if (++events % kEventsPerTick == 0 && bytes_ > 0) {
        progress(static_cast<double>(in.tellg()) / static_cast<double>(bytes_));
      }
      return sink(rank, {&event, 1});
    };
    const Result<TraceInfo> info = read_text_trace(in, path_, count);
    if (!info) return info.error();
    return {};
  }

 private:
  std::string path_;
  TraceInfo header_;
  const std::set<std::string> none_;
  const std::optional<report::TargetPrediction> no_self_;
  std::uintmax_t bytes_;
};

// --- batches

// Bytes of one file, mapped, or of a string.
class TraceBytes {
 public:
  static Result<std::shared_ptr<TraceBytes>> map(const std::string& path) {
    ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return Error{ErrorCode::kIo, path + ": cannot open: " + std::strerror(errno)};
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return io_error(path);
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
  static Result<std::unique_ptr<WhatIfTrace>> make(std::vector<Source> sources,
                                                   std::optional<report::TargetPrediction> self = {}) {
    auto trace = std::make_unique<StoredTrace>();
    trace->sources_ = std::move(sources);
    trace->self_ = std::move(self);
    if (Result<void> indexed = trace->index(); !indexed) return indexed.error();
    if (Result<void> looked = trace->look_at_start(); !looked) return looked.error();
    return std::unique_ptr<WhatIfTrace>(std::move(trace));
  }
  std::unique_ptr<WhatIfTrace> another_reader() const override { return std::make_unique<StoredTrace>(*this); }
  Rank ranks() const override { return ranks_; }
  const std::string& library() const override { return library_; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return node_of_rank_; }
  const std::optional<report::TargetPrediction>& self() const override { return self_; }
  std::vector<daemon::StreamCost> costs() const override {
    std::vector<daemon::StreamCost> costs;
    for (const auto& [node, cost] : costs_) costs.push_back(cost);
    return costs;
  }

  Result<std::vector<std::string>> procedures(Samples samples) override {
    procedures_ = StoredProcedures();
    BatchSink sink;
    sink.on_events = [this](Rank rank, std::span<const Event> events) -> Result<void> {
      procedures_.take_events(rank, events);
      return {};
    };
    sink.on_control = [this](std::string_view text) -> Result<void> {
      const auto record = protocol::decode_control(text);
      return record ? procedures_.take(*record) : Result<void>{};
    };
    CommunicatorTable communicators;
    BatchDecoder decoder(communicators, ranks_);
    for (const auto& [stream, batches] : streams_) {
      for (const Batch& batch : batches) {
        if (Result<void> decoded = decode(decoder, batch, sink); !decoded) return decoded.error();
      }
    }
    procedures_.finish(samples == Samples::kStandIn);
    return procedures_.names();
  }
  const std::set<std::string>& switched_off() const override { return procedures_.switched_off(); }
  const std::set<std::string>& sampled() const override { return procedures_.sampled(); }

  Result<void> read(const EventBlockSink& sink, const RoundsSink& rounds,
                    const std::function<void(double)>& progress) override {
    CommunicatorTable communicators;
    std::size_t bytes_done = 0;
    std::vector<std::unique_ptr<daemon::BatchSource>> sources;
    for (const auto& [stream, batches] : streams_) {
      sources.push_back(std::make_unique<StreamBatches>(*this, batches, bytes_done));
    }
    daemon::StreamMerge merge(communicators, ranks_, std::move(sources));
    BatchSink batch_sink;
    batch_sink.on_events = sink;
    batch_sink.on_rounds = rounds;
    costs_.clear();
    batch_sink.on_control = [this](std::string_view text) {
      take_cost(text);
      return Result<void>{};
    };
    if (!procedures_.names().empty()) {
      batch_sink.on_rounds = {};
      batch_sink.on_events = [&](Rank rank, std::span<const Event> events) {
        return sink(rank, procedures_.translated(rank, events));
      };
    }
    for (;;) {
      const Result<bool> more = merge.next(batch_sink);
      if (!more) return more.error();
      progress(static_cast<double>(bytes_done) / static_cast<double>(std::max<std::size_t>(total_bytes_, 1)));
      if (!*more) return {};
    }
  }

 private:
  struct Batch {
    std::size_t source;
    std::size_t offset;
    std::span<const std::byte> bytes;
  };

  class StreamBatches final : public daemon::BatchSource {
   public:
    // Adds the size of each batch to `bytes_done`.
    StreamBatches(const StoredTrace& trace, const std::vector<Batch>& batches, std::size_t& bytes_done)
        : trace_(trace), batches_(batches), bytes_done_(bytes_done) {}
    Result<std::span<const std::byte>> next() override {
      if (at_ == batches_.size()) return std::span<const std::byte>();
      bytes_done_ += batches_[at_].bytes.size();
      return batches_[at_++].bytes;
    }
    Error located(const Error& error) const override { return trace_.located(batches_[at_ - 1], error); }

   private:
    const StoredTrace& trace_;
    const std::vector<Batch>& batches_;
    std::size_t& bytes_done_;
    std::size_t at_ = 0;
  };

  Error located(const Batch& batch, const Error& error) const {
    return {error.code,
            sources_[batch.source].name + ", batch at byte " + std::to_string(batch.offset) + ": " + error.message};
  }
  Result<void> decode(BatchDecoder& decoder, const Batch& batch, const BatchSink& sink) const {
    const Result<BatchHeader> header = decoder.decode(batch.bytes, sink);
    if (header) return {};
    return located(batch, header.error());
  }

  // What a node's relay said last is what counts (http-v1.md, "cost").
  void take_cost(std::string_view text) {
    const auto record = protocol::decode_control(text);
    const auto* cost = record ? std::get_if<protocol::CostRecord>(&*record) : nullptr;
    if (cost == nullptr || !cost->node_index) return;
    const auto index = static_cast<std::uint32_t>(std::min<std::uint64_t>(*cost->node_index, kMaxRanks));
    costs_[index] = daemon::stream_cost_of(*cost, index, ranks_);
  }

  Result<void> index() {
    std::map<std::uint32_t, std::uint64_t> last_sequence;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const std::span<const std::byte> all = sources_[s].bytes->view();
      for (std::size_t offset = 0; offset < all.size();) {
        const Result<BatchHeader> header = read_batch_header(all.subspan(offset));
        const std::string where = sources_[s].name + ", byte " + std::to_string(offset) + ": ";
        if (!header) {
          return Error{header.error().code, where + "not a stored trace from here on: " + header.error().message +
                                                (offset == 0 ? " (and a text trace begins with 'lbf-trace 1')" : "")};
        }
        const std::size_t size = kBatchHeaderBytes + header->compressed_bytes;
        if (size > all.size() - offset) return invalid_input(where + "the batch is cut off (is the file complete?)");
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

  // The world's size, library and nodes from the processes' own records (http-v1.md, "process"); in a trace
  // without them as many ranks as have events.
  Result<void> look_at_start() {
    constexpr std::size_t kMostBatches = 16;  // of one stream, once the world's size is known
    Rank world = 0;
    Rank seen = 0;
    std::map<Rank, std::uint32_t> nodes;
    BatchSink sink;
    sink.on_events = one_by_one([&seen](Rank rank, const Event&) -> Result<void> {
      seen = std::max(seen, rank + 1);
      return {};
    });
    sink.on_control = [&](std::string_view text) -> Result<void> {
      const auto record = protocol::decode_control(text);
      const auto* process = record ? std::get_if<protocol::ProcessRecord>(&*record) : nullptr;
      if (process == nullptr) return {};
      const auto number = [](std::int64_t said) { return std::clamp<std::int64_t>(said, -1, kMaxRanks); };
      world = std::max(world, static_cast<Rank>(number(process->world_size.value_or(-1))));
      if (library_.empty()) {
        library_ = process->library;
        set_mpi_settings(process->mpi_settings);
      }
      const std::int64_t node = number(process->node_index.value_or(-1));
      if (process->rank >= 0 && node >= 0)
        nodes[static_cast<Rank>(number(process->rank))] = static_cast<std::uint32_t>(node);
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
      const bool all_nodes = nodes.empty() || nodes.size() == static_cast<std::size_t>(world);
      if (!more || (world > 0 && (all_nodes || nth + 1 == kMostBatches))) break;
    }
    ranks_ = std::max(world, seen);
    if (ranks_ == 0) return invalid_input(sources_.front().name + ": the trace has no events");
    if (auto checked = check_announced_ranks(sources_.front().name, ranks_, total_bytes_); !checked) return checked;
    if (nodes.size() == static_cast<std::size_t>(ranks_) && nodes.rbegin()->first == ranks_ - 1) {
      for (const auto& [rank, node] : nodes) node_of_rank_.push_back(node);
    }
    return {};
  }

  std::vector<Source> sources_;
  std::map<std::uint32_t, std::vector<Batch>> streams_;
  StoredProcedures procedures_;
  std::size_t total_bytes_ = 0;
  Rank ranks_ = 0;
  std::string library_;
  std::vector<std::uint32_t> node_of_rank_;
  std::optional<report::TargetPrediction> self_;
  std::map<std::uint32_t, daemon::StreamCost> costs_;  // by node
};

// --- archives of other tools

class ImportedTrace final : public WhatIfTrace {
 public:
  explicit ImportedTrace(std::unique_ptr<Otf2Import> archive) : archive_(std::move(archive)) {}
  // Opening it again would look through the whole archive again, for its clocks.
  std::unique_ptr<WhatIfTrace> another_reader() const override { return nullptr; }
  Rank ranks() const override { return archive_->ranks(); }
  const std::string& library() const override { return library_; }
  const std::vector<std::uint32_t>& node_of_rank() const override { return archive_->node_of_rank(); }
  const std::optional<report::TargetPrediction>& self() const override { return no_self_; }
  Result<std::vector<std::string>> procedures(Samples) override { return std::vector<std::string>(); }
  std::vector<daemon::StreamCost> costs() const override { return {}; }
  const std::set<std::string>& switched_off() const override { return none_; }
  const std::set<std::string>& sampled() const override { return none_; }
  std::vector<std::string> notes() const override { return archive_->notes(); }
  Result<void> read(const EventBlockSink& sink, const RoundsSink& /*rounds*/,
                    const std::function<void(double)>& progress) override {
    return archive_->read(sink, progress);
  }

 private:
  std::unique_ptr<Otf2Import> archive_;
  const std::string library_;  // the archive does not say
  const std::optional<report::TargetPrediction> no_self_;
  const std::set<std::string> none_;
};

Result<std::unique_ptr<WhatIfTrace>> open_path(const std::string& path) {
  std::error_code error;
  if (const std::string anchor = otf2_anchor(path); !anchor.empty()) {
    Result<std::unique_ptr<Otf2Import>> archive = Otf2Import::open(anchor);
    if (!archive) return archive.error();
    return std::unique_ptr<WhatIfTrace>(std::make_unique<ImportedTrace>(std::move(*archive)));
  }
  if (std::filesystem::is_directory(path, error)) {
    std::vector<std::string> names;
    for (auto it = std::filesystem::directory_iterator(path, error);
         !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with("stream-") && name.ends_with(".lbfw")) names.push_back(it->path().string());
    }
    if (error) return Error{ErrorCode::kIo, path + ": " + error.message()};
    if (names.empty())
      return invalid_input(path +
                           ": holds no stored trace (no stream-*.lbfw in it): give a step's folder of "
                           "lbfd's state_dir/traces, or a file");
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
    Result<TraceInfo> header = read_text_trace_header(in, path);
    if (!header) return header.error();
    std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) bytes = 0;
    if (auto checked = check_announced_ranks(path, header->ranks, bytes); !checked) return checked.error();
    return std::unique_ptr<WhatIfTrace>(std::make_unique<TextTrace>(path, std::move(*header), bytes));
  }
  if (auto checked = check_not_compressed(path); !checked) return checked.error();
  Result<std::shared_ptr<TraceBytes>> bytes = TraceBytes::map(path);
  if (!bytes) return bytes.error();
  if ((*bytes)->view().empty())
    return invalid_input(path + ": the file is empty: a trace was never written to it, or not yet");
  return StoredTrace::make({{path, std::move(*bytes)}});
}

// --- lbfd

KnownMemory memory_of(const report::Step& step) {
  KnownMemory memory{{}, step.ranks_per_domain.value_or(0), step.network};
  memory.demand.bytes_per_s = step.memory_demand_MBps.value_or(0) * 1e6;
  const double most_MBps = step.memory_most_MBps.value_or(0);
  if (most_MBps > 0) memory.demand.most_bytes_per_s = most_MBps * 1e6;
  return memory;
}

Result<HttpClient> client_of_traces(const std::string& server) {
  HttpClientOptions options;
  options.total_timeout_s = 0;  // a trace may be gigabytes
  options.response_limit_bytes = Bytes{4} << 30;
  return HttpClient::make(server, options);
}

Result<std::unique_ptr<WhatIfTrace>> fetch_events(HttpClient& client, const report::Step& step,
                                                  const std::string& name) {
  Result<HttpResponse> answer = client.request("GET", "/v1/steps/" + report::key_of(step) + "/trace");
  if (!answer) return answer.error();
  if (answer->status != 200) return error_of_response(*answer);
  if (answer->body.empty()) return Error{ErrorCode::kNotFound, name + ": no events are stored yet"};
  const report::TargetPrediction* const self = step.self();
  return StoredTrace::make({{"trace of " + name, TraceBytes::hold(std::move(answer->body))}},
                           self != nullptr ? std::optional(*self) : std::nullopt);
}

Result<std::unique_ptr<WhatIfTrace>> fetch(const report::JobSelector& wanted, const std::string& server) {
  Result<HttpClient> client = client_of_traces(server);
  if (!client) return client.error();
  Result<HttpResponse> answer = ask_for_steps(*client, "/v1/steps?summary=1&" + report::query_of(wanted));
  if (!answer) {
    Error error = answer.error();
    if (error.code == ErrorCode::kUnavailable) error.message += "; another address: --server or LBF_SERVER";
    return error;
  }
  if (answer->status != 200) return error_of_response(*answer);
  const std::string name = "job " + report::text_of(wanted);
  const Result<std::vector<report::Step>> steps = report::parse_steps(answer->body);
  if (!steps) return Error{ErrorCode::kInternal, server + ": " + steps.error().message};
  // A restarted job has its step once per restart, and a number may be given again: the last one counts. Two clusters'
  // jobs may have one number.
  std::map<std::pair<std::string, std::string>, const report::Step*> last_restart;
  if (report::are_of_several_clusters(*steps)) report::set_cluster_names(report::ClusterNames::kShown);
  const auto run_of = [](const report::Step& step) { return std::pair(step.submit_s, step.restart); };
  for (const report::Step& step : *steps) {
    const report::Step*& known = last_restart[{step.cluster, report::job_id(step)}];
    if (known == nullptr || run_of(*known) < run_of(step)) known = &step;
  }
  if (last_restart.empty()) {
    return Error{ErrorCode::kNotFound, name +
                                           ": lbfd has no step of it that you may see (was it run with "
                                           "--lbf-predict?), and no file has that name"};
  }
  if (last_restart.size() > 1) {
    std::string list;
    for (const auto& [key, step] : last_restart) list += (list.empty() ? "" : ", ") + key.second;
    return invalid_input(name + " has several steps, say which: " + list);
  }
  const report::Step& step = *last_restart.begin()->second;
  auto trace = fetch_events(*client, step, name);
  if (!trace) return trace;
  (*trace)->set_memory(memory_of(step));
  (*trace)->set_trust(report::trust_of(step));
  return trace;
}

// The one job that TEXT names; nothing: it names none, or several.
std::optional<report::JobSelector> job_named(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  const auto jobs = report::parse_jobs(text);
  if (!jobs || jobs->size() != 1) return std::nullopt;
  return jobs->front();
}

}  // namespace

Result<std::unique_ptr<WhatIfTrace>> open_trace(const std::string& what, const std::string& server) {
  std::error_code error;
  if (std::filesystem::exists(what, error)) return open_path(what);
  if (!job_named(what)) {
    return Error{ErrorCode::kNotFound,
                 what +
                     ": no such trace file or folder, and no job either (JOB, JOB_TASK or JOB+OFFSET, and "
                     ".STEP or @CLUSTER behind it)"};
  }
  return open_job_trace(what, server);
}

Result<std::unique_ptr<WhatIfTrace>> open_job_trace(const std::string& job, const std::string& server) {
  const auto named = job_named(job);
  if (!named) return invalid_input(job + ": no job: JOB, JOB_TASK or JOB+OFFSET, and .STEP or @CLUSTER behind it");
  return fetch(*named, server);
}

Result<std::unique_ptr<WhatIfTrace>> open_step_trace(const report::Step& step, const std::string& server) {
  Result<HttpClient> client = client_of_traces(server);
  if (!client) return client.error();
  return fetch_events(*client, step, "job " + report::job_id(step));
}

}  // namespace lbf::tools
