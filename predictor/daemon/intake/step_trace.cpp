// StepTrace, see step_trace.h.
#include "predictor/daemon/intake/step_trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/scoped_fd.h"
#include "predictor/daemon/intake/file_io.h"
#include "protocol/control_records.h"

namespace lbf::daemon {
namespace {

using nlohmann::json;

constexpr int kStoreVersion = 2;  // 1: folders without SUBMIT in their name

std::int64_t realtime_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

json json_of(const StoredEnd& end) {
  json out{{"last_sequence", end.last_sequence},
           {"lost_batches", end.lost_batches},
           {"reason", end.reason},
           {"realtime_ns", end.realtime_ns}};
  if (!end.why.empty()) out["why"] = end.why;
  return out;
}

Result<StoredEnd> parse_end(const std::string& text, const std::string& path) {
  const json end = json::parse(text, nullptr, false);
  const auto is_number = [&end](const char* key) { return end.contains(key) && end[key].is_number_unsigned(); };
  if (!end.is_object() || !is_number("last_sequence") || !is_number("lost_batches") || !end.contains("reason") ||
      !end["reason"].is_string()) {
    return invalid_input(path + " is damaged: remove the step's directory");
  }
  const auto why = end.find("why");
  return StoredEnd{{end["last_sequence"].get<std::uint64_t>(), end["lost_batches"].get<std::uint64_t>(),
                    end["reason"].get<std::string>(),
                    why != end.end() && why->is_string() ? why->get<std::string>() : std::string()},
                   end.value("realtime_ns", std::int64_t{0})};
}

// Decodes batches of one stream for their errors only. Communicators are defined once per stream, so batches
// must come in order.
class BatchValidator {
 public:
  Result<void> check(std::span<const std::byte> batch) {
    BatchSink sink;  // without on_events: the batch is only checked, which costs what its bytes are
    // So that every replay can rely on it.
    sink.on_control = [](std::string_view text) -> Result<void> {
      if (const auto record = protocol::decode_control(text); !record) return record.error();
      return {};
    };
    // Its buffers go with it: a step has a stream for each node.
    const auto decoded = BatchDecoder(communicators_, kMaxTraceRanks).decode(batch, sink);
    return decoded ? Result<void>() : decoded.error();
  }
  Bytes memory_bytes() const { return communicators_.memory_bytes(); }

 private:
  CommunicatorTable communicators_;
};

// Reads a file from its begin to its end, in large pieces; a batch is never longer than what at() shows.
class WindowReader {
 public:
  WindowReader(int fd, std::uint64_t file_bytes, const std::string& path)
      : fd_(fd), file_bytes_(file_bytes), path_(path) {}

  // The bytes from `offset` on: kMaxBatchBytes of them, or all up to the end of the file.
  Result<std::span<const std::byte>> at(std::uint64_t offset) {
    const std::uint64_t wanted = std::min<std::uint64_t>(kMaxBatchBytes, file_bytes_ - offset);
    if (offset < begin_ || offset + wanted > begin_ + window_.size()) {
      window_.resize(std::min<std::uint64_t>(2 * kMaxBatchBytes, file_bytes_ - offset));
      begin_ = offset;
      auto got = read_all_at(fd_, std::as_writable_bytes(std::span(window_)), offset, path_);
      if (!got) return got.error();
    }
    return bytes_of(window_).subspan(offset - begin_, wanted);
  }

 private:
  int fd_;
  std::uint64_t file_bytes_;
  const std::string& path_;
  std::uint64_t begin_ = 0;
  std::string window_;
};

}  // namespace

// The writer holds `mutex` through decoding and fdatasync; readers see the last published state without
// waiting for that.
struct StepTrace::Stream {
  explicit Stream(std::string file) : path(std::move(file)) {}

  const std::string path;  // opened for each use: a step has a stream for each node, and descriptors are few

  Mutex mutex;  // taken before state_mutex
  std::uint64_t next_sequence GUARDED_BY(mutex) = 1;
  std::uint64_t durable_bytes GUARDED_BY(mutex) = 0;
  bool torn GUARDED_BY(mutex) = false;  // the file is longer than durable_bytes: cut before the next write
  std::optional<StoredEnd> end GUARDED_BY(mutex);
  std::string damage GUARDED_BY(mutex);
  std::unique_ptr<BatchValidator> validator GUARDED_BY(mutex);
  Bytes validator_bytes GUARDED_BY(mutex) = 0;  // of these, part of the trace's check_bytes_

  mutable Mutex state_mutex;
  StreamState published GUARDED_BY(state_mutex);
  std::vector<std::uint64_t> batch_ends GUARDED_BY(state_mutex);  // in the file; batch N ends at [N - 1]

  Result<void> cut(const ScopedFd& fd) REQUIRES(mutex) {
    if (!torn) return {};
    if (::ftruncate(fd.get(), static_cast<off_t>(durable_bytes)) != 0) return system_error("cut", path, errno);
    torn = false;
    return {};
  }

  StreamState state() const {
    const MutexLock lock(state_mutex);
    return published;
  }

  void publish(std::uint32_t number) REQUIRES(mutex) {
    const MutexLock lock(state_mutex);
    published = {number, next_sequence, durable_bytes, end, damage};
  }

  Result<ScopedFd> open_file(int flags) const {
    ScopedFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return system_error("open", path, errno);
    return fd;
  }

  void add_batch(std::uint64_t bytes) REQUIRES(mutex) {
    durable_bytes += bytes;
    ++next_sequence;
    const MutexLock lock(state_mutex);
    batch_ends.push_back(durable_bytes);
  }

  // Reads every batch of the file; what a crash tore off at its end is cut. A damaged batch that is followed
  // by a good one was acknowledged once: nothing is cut then, the stream stops before it with `damage` set.
  // Of a stream that takes no more batches it is only found out where they are; of one that does, whether they are
  // whole: what they say was checked when they came, and is looked at again when the next one comes, so that nobody's
  // events hold up a start.
  enum class Recovery { kFindBatches, kCheckAndCut, kDecode };
  Result<void> recover(std::uint32_t number, Recovery how) REQUIRES(mutex);
  // A validator that has seen all batches, of a stream that was opened without.
  Result<void> catch_up(std::uint32_t number) REQUIRES(mutex);
  // The first use of a stream: a new one, and a stored one with what END_PATH says of its end.
  Result<void> create(std::uint32_t number, const std::function<Result<void>()>& store);
  Result<void> load(std::uint32_t number, const std::string& end_path, Purpose purpose);
};

Result<void> StepTrace::Stream::create(std::uint32_t number, const std::function<Result<void>()>& store) {
  const MutexLock lock(mutex);
  validator = std::make_unique<BatchValidator>();
  if (auto opened = open_file(O_RDWR | O_CREAT | O_TRUNC); !opened) return opened.error();
  if (auto stored = store(); !stored) return stored;
  publish(number);
  return {};
}

Result<void> StepTrace::Stream::load(std::uint32_t number, const std::string& end_path, Purpose purpose) {
  const MutexLock lock(mutex);
  auto end_text = read_whole_file(end_path, std::size_t{1} << 16);
  if (end_text) {
    auto stored = parse_end(*end_text, end_path);
    if (!stored) return stored.error();
    end = std::move(stored).value();
  } else if (end_text.error().code != ErrorCode::kNotFound) {
    return end_text.error();
  }
  const bool takes_more = purpose == Purpose::kWrite && !end;
  if (auto recovered = recover(number, takes_more ? Recovery::kCheckAndCut : Recovery::kFindBatches); !recovered)
    return recovered;
  publish(number);
  return {};
}

Result<void> StepTrace::Stream::catch_up(std::uint32_t number) {
  // Beside this stream: replays go on reading its batches meanwhile.
  Stream again(path);
  const MutexLock again_lock(again.mutex);
  if (auto recovered = again.recover(number, Recovery::kDecode); !recovered) return recovered;
  if (again.damage.empty() && again.next_sequence != next_sequence)
    again.damage = "stored batches of stream " + std::to_string(number) + " are not all there any more";
  if (damage.empty()) damage = again.damage;
  validator = std::move(again.validator);
  return {};
}

Result<void> StepTrace::Stream::recover(std::uint32_t number, Recovery how) {
  const auto fd = open_file(O_RDWR);
  if (!fd) return fd.error();
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return system_error("look at", path, errno);
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  WindowReader window(fd->get(), file_bytes, path);
  if (how == Recovery::kDecode) validator = std::make_unique<BatchValidator>();
  while (durable_bytes < file_bytes) {
    auto bytes = window.at(durable_bytes);
    if (!bytes) return bytes.error();
    const auto header = read_batch_header(*bytes);
    std::string wrong;
    if (!header) {
      wrong = header.error().message;
    } else if (header->stream != number || header->sequence != next_sequence) {
      wrong = "another batch is in its place";
    } else if (const auto batch = bytes->first(kBatchHeaderBytes + header->compressed_bytes);
               how == Recovery::kCheckAndCut) {
      if (!has_whole_payload(batch)) wrong = "the checksum of its payload is wrong";
    } else if (how == Recovery::kDecode) {
      const auto checked = validator->check(batch);
      if (!checked) wrong = checked.error().message;
    }
    if (wrong.empty()) {
      add_batch(kBatchHeaderBytes + header->compressed_bytes);
      continue;
    }
    // A torn tail is one batch that was never acknowledged; where the header of a later one follows, or where
    // the stream had ended, what is broken is not a torn tail.
    bool torn_tail = how == Recovery::kCheckAndCut;
    for (std::size_t offset = 1; torn_tail && offset + kBatchHeaderBytes <= bytes->size(); ++offset) {
      const auto later = read_batch_header(bytes->subspan(offset));
      if (later && later->stream == number && later->sequence == next_sequence + 1) torn_tail = false;
    }
    if (torn_tail) {
      torn = true;
      return cut(*fd);
    }
    damage = "stored batch " + std::to_string(next_sequence) + " of stream " + std::to_string(number) +
             " is damaged: " + wrong;
    return {};
  }
  return {};
}

StepTrace::StepTrace(StepKey key, std::string directory, protocol::StepDescription description,
                     std::size_t description_bytes, uid_t owner, Nanoseconds created_realtime_ns)
    : key_(std::move(key)),
      directory_(std::move(directory)),
      description_(std::move(description)),
      description_bytes_(description_bytes),
      owner_(owner),
      created_realtime_ns_(created_realtime_ns) {}

StepTrace::~StepTrace() = default;

std::string StepTrace::stream_path(std::uint32_t stream, std::string_view suffix) const {
  return directory_ + "/stream-" + std::to_string(stream) + std::string(suffix);
}

Result<std::shared_ptr<StepTrace>> StepTrace::create(StepKey key, std::string directory,
                                                     const protocol::StepDescription& first, uid_t owner) {
  if (auto made = make_directory_durably(directory); !made) return made.error();
  const Nanoseconds created_ns = realtime_ns();
  const json step = {{"version", kStoreVersion},
                     {"owner_uid", owner},
                     {"created_realtime_ns", created_ns},
                     {"description", first.raw}};
  const std::string text = step.dump();
  if (auto written = write_file_durably(directory + "/step.json", text); !written) return written.error();
  return std::shared_ptr<StepTrace>(
      new StepTrace(std::move(key), std::move(directory), first, text.size(), owner, created_ns));
}

Result<std::shared_ptr<StepTrace>> StepTrace::open(StepKey key, std::string directory) {
  return open_for(Purpose::kWrite, std::move(key), std::move(directory));
}

Result<std::shared_ptr<StepTrace>> StepTrace::open_to_read(StepKey key, std::string directory) {
  return open_for(Purpose::kRead, std::move(key), std::move(directory));
}

Result<std::shared_ptr<StepTrace>> StepTrace::open_for(Purpose purpose, StepKey key, std::string directory) {
  const std::string path = directory + "/step.json";
  auto text = read_whole_file(path, 2 * protocol::kMaxDescriptionBytes);
  if (!text && text.error().code == ErrorCode::kLimit) return invalid_input(text.error().message);  // no full disk
  if (!text) return text.error();
  const json step = json::parse(*text, nullptr, false);
  if (!step.is_object() || !step.contains("version") || !step["version"].is_number_integer() ||
      !step.contains("owner_uid") || !step["owner_uid"].is_number_unsigned() || !step.contains("description")) {
    return invalid_input(path + " is damaged: remove the directory");
  }
  const int version = step["version"].get<int>();
  if (version < 1 || version > kStoreVersion) {
    return invalid_input(path + ": trace store version " + step["version"].dump() + ", this lbfd knows " +
                         std::to_string(kStoreVersion) + ": use the lbfd that wrote it");
  }
  auto description = protocol::decode_step_description(step["description"].dump());
  if (!description) return invalid_input(path + ": " + description.error().message);
  std::shared_ptr<StepTrace> trace(new StepTrace(std::move(key), std::move(directory), std::move(description).value(),
                                                 text->size(), step["owner_uid"].get<uid_t>(),
                                                 step["created_realtime_ns"].get<Nanoseconds>()));
  if (auto loaded = trace->load_streams(purpose); !loaded) return loaded.error();
  return trace;
}

// A stream counts as registered from its stream-S.json on (written last, when its file is there).
Result<void> StepTrace::load_streams(Purpose purpose) {
  const MutexLock lock(mutex_);
  for (std::uint32_t number = 0; number < description_.nodes.size(); ++number) {
    const std::string path = stream_path(number, ".json");
    auto text = read_whole_file(path, 2 * protocol::kMaxDescriptionBytes);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text && text.error().code == ErrorCode::kLimit) return invalid_input(text.error().message);
    if (!text) return text.error();
    auto description = protocol::decode_stream_description(json::parse(*text, nullptr, false), description_);
    if (!description)
      return invalid_input(path + " is damaged, remove the step's directory: " + description.error().message);

    auto stream = std::make_unique<Stream>(stream_path(number, ".lbfw"));
    if (auto loaded = stream->load(number, stream_path(number, ".end"), purpose); !loaded) return loaded;
    streams_.emplace(number, std::move(stream));
    descriptions_.emplace(number, std::move(description).value());
  }
  return {};
}

// A stream of a node that never reported, in lbfd's name.
Result<void> StepTrace::store_missing(std::uint32_t number) const {
  const json own = {{"node_index", number}, {"task_ids", nullptr}, {"registered_by_lbfd", true}};
  return write_file_durably(stream_path(number, ".json"), own.dump());
}

Result<void> StepTrace::store_description(std::uint32_t number, const protocol::StepDescription& description) const {
  // Only what differs from the step's description: a step on 1,000 nodes names its nodes once.
  json own = json::object();
  for (const auto& [key, value] : description.raw.items()) {
    const auto same = description_.raw.find(key);
    if (same == description_.raw.end() || *same != value) own[key] = value;
  }
  own["node_index"] = number;
  if (!description.raw.contains("task_ids")) own["task_ids"] = nullptr;  // not those of the first stream
  return write_file_durably(stream_path(number, ".json"), own.dump());
}

Result<void> StepTrace::end_missing_stream(std::uint32_t number) {
  {
    const MutexLock lock(mutex_);
    if (streams_.contains(number)) return {};
    const protocol::StreamDescription description{{}, description_.cpus_on_node, true};
    if (auto added = add_stream(number, description, [&] { return store_missing(number); }); !added) return added;
  }
  auto ended = end_stream(number, {0, 0, std::string(kReasonStreamTimeout)});
  if (!ended) return ended.error();
  return {};
}

Result<void> StepTrace::add_stream(std::uint32_t number, protocol::StreamDescription description,
                                   const std::function<Result<void>()>& store) {
  auto stream = std::make_unique<Stream>(stream_path(number, ".lbfw"));
  if (auto created = stream->create(number, store); !created) return created;
  streams_.emplace(number, std::move(stream));
  descriptions_.emplace(number, std::move(description));
  return {};
}

Result<std::uint64_t> StepTrace::register_stream(const protocol::StepDescription& description) {
  if (description.nodes != description_.nodes || description.tasks != description_.tasks) {
    return invalid_input("step " + key_.text() +
                         ": this stream describes other nodes or another number of tasks than the step's first one");
  }
  const std::uint32_t number = description.node_index;
  const MutexLock lock(mutex_);
  if (const auto found = streams_.find(number); found != streams_.end()) {
    protocol::StreamDescription& known = descriptions_.at(number);
    if (known.registered_by_lbfd) {  // now its relay has come after all
      if (auto stored = store_description(number, description); !stored) return stored.error();
      known = protocol::StreamDescription::of(description);
    }
    return found->second->state().next_sequence;
  }
  const auto store = [&] { return store_description(number, description); };
  if (auto added = add_stream(number, protocol::StreamDescription::of(description), store); !added)
    return added.error();
  return std::uint64_t{1};
}

StepTrace::Stream* StepTrace::find_stream(std::uint32_t stream) const {
  const MutexLock lock(mutex_);
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second.get();  // streams are never removed
}

Result<AppendResult> StepTrace::append(std::uint32_t number, std::uint64_t sequence, std::span<const std::byte> batch) {
  Stream* stream = find_stream(number);
  if (stream == nullptr) {
    return Error{ErrorCode::kNotFound, "step " + key_.text() + ": stream " + std::to_string(number) +
                                           " is not registered: PUT its description first"};
  }
  const MutexLock lock(stream->mutex);
  if (sequence < stream->next_sequence) return AppendResult{AppendOutcome::kDuplicate, stream->next_sequence};
  if (stream->end) return AppendResult{AppendOutcome::kEnded, stream->next_sequence};
  if (sequence > stream->next_sequence) return AppendResult{AppendOutcome::kGap, stream->next_sequence};
  if (stream->validator == nullptr) {
    if (auto done = stream->catch_up(number); !done) return done.error();
  }
  if (!stream->damage.empty()) return Error{ErrorCode::kIo, stream->damage};
  const auto header = read_batch_header(batch);
  if (!header) return header.error();
  if (header->stream != number || header->sequence != sequence) {
    return invalid_input("the batch says stream " + std::to_string(header->stream) + ", sequence " +
                         std::to_string(header->sequence) + ", the request stream " + std::to_string(number) +
                         ", sequence " + std::to_string(sequence));
  }
  if (batch.size() != kBatchHeaderBytes + header->compressed_bytes) {
    return invalid_input("the body is not exactly one batch: " + std::to_string(batch.size()) + " bytes, " +
                         std::to_string(kBatchHeaderBytes + header->compressed_bytes) + " by its header");
  }
  const auto checked = stream->validator->check(batch);
  const Bytes checked_bytes = stream->validator->memory_bytes();
  check_bytes_ += checked_bytes - std::exchange(stream->validator_bytes, checked_bytes);  // wraps where it shrinks
  if (!checked) return checked.error();

  const auto fd = stream->open_file(O_WRONLY);
  if (!fd) return fd.error();
  if (auto cut = stream->cut(*fd); !cut) return cut.error();
  stream->torn = true;  // until the new end is durable
  auto written = write_all_at(fd->get(), batch, stream->durable_bytes, stream->path);
  // After a failed fdatasync the kernel may call the pages clean: they are cut and written anew by the retry.
  if (written && ::fdatasync(fd->get()) != 0) written = system_error("synchronise", stream->path, errno);
  if (!written) {
    (void)stream->cut(*fd).ok();  // otherwise before the next write
    return written.error();
  }
  stream->torn = false;
  stream->add_batch(batch.size());
  stream->publish(number);
  return AppendResult{AppendOutcome::kStored, stream->next_sequence};
}

Result<AppendResult> StepTrace::end_stream(std::uint32_t number, const protocol::StreamEnd& end) {
  Stream* stream = find_stream(number);
  if (stream == nullptr) {
    return Error{ErrorCode::kNotFound, "step " + key_.text() + ": stream " + std::to_string(number) +
                                           " is not registered: PUT its description first"};
  }
  const MutexLock lock(stream->mutex);
  if (stream->end) return AppendResult{AppendOutcome::kDuplicate, stream->next_sequence};
  if (end.last_sequence >= stream->next_sequence && end.lost_batches == 0) {
    return AppendResult{AppendOutcome::kGap, stream->next_sequence};
  }
  if (stream->torn) {
    const auto fd = stream->open_file(O_WRONLY);
    if (!fd) return fd.error();
    if (auto cut = stream->cut(*fd); !cut) return cut.error();
  }
  StoredEnd dated{end, realtime_ns()};
  auto written = write_file_durably(stream_path(number, ".end"), json_of(dated).dump());
  if (!written) return written.error();
  stream->end = std::move(dated);
  stream->publish(number);
  return AppendResult{AppendOutcome::kStored, stream->next_sequence};
}

Result<void> StepTrace::reopen_stream(std::uint32_t number) {
  Stream* stream = find_stream(number);
  if (stream == nullptr) return {};
  const MutexLock lock(stream->mutex);
  if (!stream->end || stream->end->reason != kReasonStreamTimeout) return {};
  if (stream->validator == nullptr) {
    if (auto done = stream->catch_up(number); !done) return done;
  }
  const std::string path = stream_path(number, ".end");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("remove", path, errno);
  if (auto synced = sync_directory(directory_); !synced) return synced.error();
  stream->end.reset();
  stream->publish(number);
  return {};
}

std::map<std::uint32_t, protocol::StreamDescription> StepTrace::stream_descriptions() const {
  const MutexLock lock(mutex_);
  return descriptions_;
}

std::vector<StreamState> StepTrace::streams() const {
  const MutexLock lock(mutex_);
  std::vector<StreamState> states;
  for (const auto& [number, stream] : streams_) states.push_back(stream->state());
  return states;
}

std::optional<StreamState> StepTrace::stream(std::uint32_t number) const {
  const Stream* stream = find_stream(number);
  if (stream == nullptr) return std::nullopt;
  return stream->state();
}

bool StepTrace::all_registered_locked() const {
  if (streams_.size() >= description_.nodes.size()) return true;
  if (description_.launcher.empty()) return false;
  std::size_t ranks = 0;
  for (const auto& [number, stream] : descriptions_) ranks += stream.task_ids.size();
  return ranks >= static_cast<std::size_t>(description_.tasks);
}

bool StepTrace::all_registered() const {
  const MutexLock lock(mutex_);
  return all_registered_locked();
}

bool StepTrace::all_ended() const {
  const MutexLock lock(mutex_);
  if (!all_registered_locked()) return false;
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second->state().end.has_value(); });
}

Bytes StepTrace::memory_bytes() const {
  constexpr Bytes kOfStream = sizeof(Stream) + 256;
  const MutexLock lock(mutex_);
  Bytes bytes = bytes_of_description(description_bytes_) + check_bytes_;
  for (const auto& [number, stream] : streams_) {
    bytes += kOfStream + stream->state().next_sequence * sizeof(std::uint64_t);
  }
  for (const auto& [number, description] : descriptions_) bytes += description.task_ids.capacity() * sizeof(Rank);
  return bytes;
}

std::uint64_t StepTrace::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const StreamState& state : streams()) bytes += state.durable_bytes;
  return bytes;
}

Result<void> StepTrace::read_batch(std::uint32_t number, std::uint64_t sequence, std::string& buffer) const {
  const Stream* stream = find_stream(number);
  if (stream == nullptr) return Error{ErrorCode::kNotFound, "no stream " + std::to_string(number)};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  {
    const MutexLock lock(stream->state_mutex);
    if (sequence == 0 || sequence > stream->batch_ends.size()) {
      return Error{ErrorCode::kNotFound, "no batch " + std::to_string(sequence)};
    }
    end = stream->batch_ends[sequence - 1];
    begin = sequence == 1 ? 0 : stream->batch_ends[sequence - 2];
  }
  // Durable bytes never change: no lock while reading.
  const auto fd = stream->open_file(O_RDONLY);
  if (!fd) return fd.error();
  buffer.resize(end - begin);
  return read_all_at(fd->get(), std::as_writable_bytes(std::span(buffer)), begin, stream->path);
}

Result<void> StepTrace::read_raw(std::uint32_t number, std::uint64_t offset, std::size_t limit_bytes,
                                 std::string& buffer) const {
  const auto state = stream(number);
  if (!state || offset > state->durable_bytes) return Error{ErrorCode::kNotFound, "no such part of the trace"};
  buffer.resize(std::min<std::uint64_t>(limit_bytes, state->durable_bytes - offset));
  if (buffer.empty()) return {};
  const Stream* stream = find_stream(number);
  const auto fd = stream->open_file(O_RDONLY);
  if (!fd) return fd.error();
  return read_all_at(fd->get(), std::as_writable_bytes(std::span(buffer)), offset, stream->path);
}

}  // namespace lbf::daemon
