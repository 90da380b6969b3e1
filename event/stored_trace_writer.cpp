#include "event/stored_trace_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "event/procedure_table.h"

namespace lbf {
namespace {

std::string quoted_plainly(std::string_view text) {
  std::string quoted(text);
  for (char& c : quoted) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    if (!plain) c = '?';
  }
  return '"' + quoted + '"';
}

// ,"library":"...","mpi_settings":[...] of a JSON object.
std::string library_members(const StoredTraceOptions& options) {
  std::string members;
  if (!options.library.empty()) members = R"(,"library":)" + quoted_plainly(options.library);
  for (const std::string& setting : options.mpi_settings) {
    members += (&setting == &options.mpi_settings.front() ? R"(,"mpi_settings":[)" : ",") + quoted_plainly(setting);
  }
  return options.mpi_settings.empty() ? members : members + ']';
}

}  // namespace

StoredTraceWriter::StoredTraceWriter(Rank ranks, BatchWriter write, StoredTraceOptions options)
    : ranks_(ranks), write_(std::move(write)), options_(std::move(options)) {
  const Rank per_stream = options_.ranks_per_stream > 0 ? options_.ranks_per_stream : std::max(ranks, 1);
  const auto streams = static_cast<std::size_t>((std::max(ranks, 1) - 1) / per_stream + 1);
  for (std::size_t stream = 0; stream < streams; ++stream) {
    encoders_.push_back(std::make_unique<BatchEncoder>());
  }
  sequence_.resize(streams, 0);
  options_.ranks_per_stream = per_stream;
}

// The processes' records, before any event: one that says how many ranks there are, or one for each rank with its node.
Result<void> StoredTraceWriter::begin() {
  begun_ = true;
  if (!options_.with_world_size) return {};
  const bool with_nodes = !options_.node_of_rank.empty();
  const std::string of_world = R"(,"world_size":)" + std::to_string(ranks_) + library_members(options_);
  for (Rank rank = 0; rank < (with_nodes ? ranks_ : 1); ++rank) {
    const auto stream = static_cast<std::size_t>(rank / options_.ranks_per_stream);
    std::string record = R"({"type":"process","rank":)" + std::to_string(rank) + of_world;
    if (with_nodes) {
      record += R"(,"node_index":)" + std::to_string(options_.node_of_rank[static_cast<std::size_t>(rank)]);
    }
    encoders_[stream]->add_control(record + '}');
    if (encoders_[stream]->raw_bytes() < options_.batch_raw_bytes) continue;
    if (Result<void> done = cut(stream); !done) return done;
  }
  return {};
}

Result<void> StoredTraceWriter::add(Rank rank, const Event& event) {
  if (rank < 0 || rank >= ranks_) {
    return invalid_input("event of rank " + std::to_string(rank) + " in a trace of " + std::to_string(ranks_) +
                         " ranks");
  }
  if (!begun_) {
    if (Result<void> done = begin(); !done) return done;
  }
  const auto stream = static_cast<std::size_t>(rank / options_.ranks_per_stream);
  // An event costs at most some hundred bytes beside its values, a value at most 10.
  constexpr std::size_t kRoomBytes = std::size_t{64} << 10;
  constexpr std::size_t kMaxValues = (kMaxBatchRawBytes - kMaxBatchRawBytes / 64 - kRoomBytes) / 10;
  if (event.values.size() > kMaxValues) {
    return Error{ErrorCode::kLimit, "an event of rank " + std::to_string(rank) + " with " +
                                        std::to_string(event.values.size()) + " values is too large to be stored"};
  }
  BatchEncoder& encoder = *encoders_[stream];
  if (!encoder.empty() &&
      encoder.raw_bytes() + 10 * event.values.size() + kRoomBytes > kMaxBatchRawBytes - kMaxBatchRawBytes / 64) {
    if (Result<void> done = cut(stream); !done) return done;
  }
  if (is_procedure_event(event.kind) && !event.values.empty()) name_procedure(rank, event.values[0], encoder);
  encoder.add(rank, event);
  ++events_;
  return encoder.raw_bytes() >= options_.batch_raw_bytes ? cut(stream) : Result<void>();
}

void StoredTraceWriter::name_procedure(Rank rank, std::uint64_t procedure, BatchEncoder& encoder) {
  if (procedure >= options_.procedures.size()) return;
  if (!named_.insert(static_cast<std::uint64_t>(rank) << 16 | procedure).second) return;
  std::string name;
  for (const char c : options_.procedures[static_cast<std::size_t>(procedure)]) {
    if (c == '"' || c == '\\') name += '\\';
    name += c;
  }
  encoder.add_control(R"({"type":"procedure","rank":)" + std::to_string(rank) + R"(,"id":)" +
                      std::to_string(procedure) + R"(,"name":")" + name + R"("})");
  if (!options_.switched_off.contains(options_.procedures[static_cast<std::size_t>(procedure)])) return;
  encoder.add_control(R"({"type":"procedure_remark","rank":)" + std::to_string(rank) + R"(,"kind":"off","name":")" +
                      name + R"(","text":"its calls and times are those until it was switched off"})");
}

Result<void> StoredTraceWriter::finish() {
  if (!begun_) {
    if (Result<void> done = begin(); !done) return done;
  }
  for (std::size_t stream = 0; stream < encoders_.size(); ++stream) {
    if (encoders_[stream]->empty()) continue;
    if (Result<void> done = cut(stream); !done) return done;
  }
  return {};
}

Result<void> StoredTraceWriter::cut(std::size_t stream) {
  std::string batch = encoders_[stream]->finish(static_cast<std::uint32_t>(stream), ++sequence_[stream]);
  bytes_ += batch.size();
  return write_(static_cast<std::uint32_t>(stream), std::move(batch));
}

}  // namespace lbf
