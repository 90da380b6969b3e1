// Api, see api.h.
#include "predictor/daemon/http/api.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/hostlist.h"
#include "base/munge_credential.h"
#include "base/number.h"
#include "predictor/daemon/http/list_pieces.h"
#include "predictor/daemon/http/metrics.h"
#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/http/step_rows.h"
#include "predictor/daemon/users.h"
#include "protocol/stream_messages.h"

namespace lbf::daemon {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = "/v1/";
constexpr std::string_view kScheme = "Munge ";
constexpr std::string_view kTokenScheme = "Bearer ";

// Takes as long for every wrong word of the same length.
bool same_secret(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(secret[i]);
  }
  return differs == 0;
}
constexpr std::size_t kTracePieceBytes = std::size_t{256} << 10;
constexpr std::uint32_t kDefaultListLimit = 1000;
constexpr std::uint32_t kMaxListLimit = 10000;
constexpr std::uint64_t kMaxPictureRows = 256;
constexpr std::uint64_t kMaxPictureColumns = 2000;
constexpr std::size_t kMaxQueryNodes = 4096;
// Of a target, before it is known who sends it.
constexpr std::size_t kMostPathParts = 16;
constexpr std::size_t kMostParameters = 64;
// Of what is kept of a refusal, or of a relay's loss.
constexpr std::size_t kMostWhyBytes = 400;

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kPermission:
      return 403;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kLimit:
      return 507;
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return "invalid_input";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

ApiResponse error_response(const Error& error) {
  return daemon::error_response(status_of(error.code), name_of(error.code), error.message);
}

ApiResponse json_response(const json& value) {
  return {200, "application/json", json_text(value), nullptr};
}

// The first piece decides: what can go wrong goes wrong there, mostly, and a short list is an answer with a length.
ApiResponse in_pieces(std::unique_ptr<ListPieces> pieces) {
  auto first = pieces->next();
  if (!first) return error_response(first.error());
  ApiResponse response{200, "application/json", std::move(*first), nullptr};
  if (!pieces->ended()) response.source = std::move(pieces);
  return response;
}

Error another_request() {
  return {ErrorCode::kPermission,
          "the munge credential was made for another request: its payload must be "
          "'METHOD TARGET BODY-BYTES CRC32C' of this one"};
}

ApiResponse unauthenticated(const Error& error) {
  return daemon::error_response(401, "permission", error.message);
}

// What ANSWER returns; an exception of it is an answer, too.
template <typename Answer>
auto answer_exceptions(const Answer& answer) -> decltype(answer()) {
  try {
    return answer();
  } catch (const std::bad_alloc&) {
    return daemon::error_response(503, "unavailable", "lbfd is out of memory: try again later");
  } catch (const std::exception& exception) {
    return daemon::error_response(500, "internal", std::string("lbfd: ") + exception.what());
  }
}

// With the list for the ranks whose relay asks (docs/procedures.md, "One list for all ranks").
json answer_of(protocol::StreamAnswer answer, const std::shared_ptr<const protocol::ProcedureList>& list) {
  if (list != nullptr) answer.procedures = *list;
  return protocol::json_of(answer);
}

// %XX and '+' of a query. Errors: kInvalidInput.
Result<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out.push_back(' ');
    } else if (text[i] == '%') {
      const std::string_view digits = text.substr(i + 1, 2);
      const auto value = parse_number<unsigned>(digits, 16);
      if (digits.size() != 2 || !value) return invalid_input("the request's query has a broken %XX");
      out.push_back(static_cast<char>(*value));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Result<double> parse_time(const std::string& text, const char* what) {
  const auto value = parse_number<double>(text);
  if (!value) return invalid_input(std::string(what) + " must be seconds since the epoch");
  return *value;
}

// A trace as it was when it was asked for: stream 0 whole, then 1 ...
class TraceSource : public BodySource {
 public:
  explicit TraceSource(std::shared_ptr<StepTrace> trace) : trace_(std::move(trace)), streams_(trace_->streams()) {
    for (const StreamState& stream : streams_) size_bytes_ += stream.durable_bytes;
  }
  std::optional<std::uint64_t> size_bytes() const override { return size_bytes_; }
  Result<std::string> next() override {
    while (at_ < streams_.size() && offset_ == streams_[at_].durable_bytes) {
      ++at_;
      offset_ = 0;
    }
    std::string piece;
    if (at_ == streams_.size()) return piece;
    const std::uint64_t left = streams_[at_].durable_bytes - offset_;
    auto read = trace_->read_raw(streams_[at_].stream, offset_,
                                 static_cast<std::size_t>(std::min<std::uint64_t>(left, kTracePieceBytes)), piece);
    if (!read) return read.error();
    offset_ += piece.size();
    return piece;
  }

 private:
  std::shared_ptr<StepTrace> trace_;
  std::vector<StreamState> streams_;
  std::uint64_t size_bytes_ = 0;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
};

// At most `most` parts: what is behind the last one is left out.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

// At most BYTES of TEXT, which is UTF-8, without half of a character at the end: strict writers of JSON refuse that.
std::string_view whole_characters(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

Result<protocol::StreamEnd> stream_end_of(std::string_view body) {
  constexpr std::size_t kMostReasonBytes = 200;
  auto end = protocol::decode_stream_end(body);
  if (!end) return end;
  end->reason.resize(whole_characters(end->reason, kMostReasonBytes).size());
  end->why.resize(whole_characters(end->why, kMostWhyBytes).size());
  return end;
}

}  // namespace

ApiResponse error_response(int status, std::string_view code, std::string_view message) {
  return {status, "application/json", json_text({{"error", message}, {"code", code}}), nullptr};
}

// A request's target, taken apart.
struct Api::RequestTarget {
  std::vector<std::string_view> path;  // without "/v1/"; empty: /metrics
  std::map<std::string, std::string> query;

  static Result<RequestTarget> parse(std::string_view text) {
    RequestTarget target;
    const std::size_t mark = text.find('?');
    const std::string_view path = text.substr(0, mark);
    if (text == kMetricsTarget) return target;
    if (!path.starts_with(kPrefix)) {
      return Error{ErrorCode::kNotFound, "there is nothing but /v1/ and /metrics here: see docs/formats/http-v1.md"};
    }
    target.path = split(path.substr(kPrefix.size()), '/', kMostPathParts);  // no request has as many
    if (mark == std::string_view::npos) return target;
    const auto pairs = split(text.substr(mark + 1), '&', kMostParameters + 1);
    if (pairs.size() > kMostParameters) return invalid_input("the request's query has more than 64 parameters");
    for (const std::string_view pair : pairs) {
      if (pair.empty()) continue;
      const std::size_t equals = pair.find('=');
      auto key = percent_decoded(pair.substr(0, equals));
      if (!key) return key.error();
      auto value = equals == std::string_view::npos ? Result<std::string>(std::string("1"))
                                                    : percent_decoded(pair.substr(equals + 1));
      if (!value) return value.error();
      target.query[*key] = std::move(value).value();
    }
    return target;
  }

  bool is_set(const std::string& key) const {
    const auto found = query.find(key);
    return found != query.end() && found->second != "0" && !found->second.empty();
  }
};

Api::Api(Steps& steps, std::set<uid_t> operators, std::string version, ApiTokens tokens)
    : steps_(steps), operators_(std::move(operators)), version_(std::move(version)), tokens_(std::move(tokens)) {}

std::size_t Api::body_limit_bytes(std::string_view method, std::string_view target) {
  if (method == "PUT") return protocol::kMaxDescriptionBytes;
  if (method == "POST") return target.find("/batches/") != std::string_view::npos ? kMaxBatchBytes : 65536;
  return 0;
}

bool Api::is_open_to_all(std::string_view method, std::string_view target) {
  return method == "GET" && (target == "/v1/health" || target.starts_with("/v1/health?"));
}

Result<Sender> Api::sender_of(const RequestHead& head) const {
  if (tokens_.any() && head.authorization.starts_with(kTokenScheme)) {
    if (head.channel == Channel::kOpen && tokens_.least == Channel::kPrivate)
      return Error{ErrorCode::kPermission,
                   "a token is for a Unix socket, this host's own addresses 127.0.0.1 and ::1, or TLS"};
    const std::string_view given = std::string_view(head.authorization).substr(kTokenScheme.size());
    const auto is = [given](const std::string& token) { return !token.empty() && same_secret(given, token); };
    if (is(tokens_.user) || (head.target == kMetricsTarget && is(tokens_.metrics)))
      return Sender{{::geteuid(), true}, {}};
    if (is(tokens_.metrics)) return Error{ErrorCode::kPermission, "this token is for GET /metrics alone"};
    return Error{ErrorCode::kPermission, "the token is not this lbfd's"};
  }
  if (!head.authorization.starts_with(kScheme)) {
    return Error{ErrorCode::kPermission, "a munge credential is needed: Authorization: Munge CREDENTIAL"};
  }
  auto identity = decode_munge_credential(head.authorization.substr(kScheme.size()));
  if (!identity) return identity.error();
  // All but the body's checksum.
  const std::string start = head.method + ' ' + head.target + ' ' + std::to_string(head.body_bytes) + ' ';
  if (!identity->payload.starts_with(start)) return another_request();
  return Sender{{identity->uid, operators_.contains(identity->uid)}, std::move(identity->payload)};
}

std::variant<Sender, ApiResponse> Api::authenticate(const RequestHead& head) {
  return answer_exceptions([&]() -> std::variant<Sender, ApiResponse> {
    const auto target = RequestTarget::parse(head.target);
    if (!target) return error_response(target.error());
    auto sender = sender_of(head);
    if (sender) return std::move(sender).value();
    if (sender.error().code == ErrorCode::kUnavailable) return error_response(sender.error());
    return unauthenticated(sender.error());
  });
}

ApiResponse Api::handle_open(const RequestHead& head) {
  (void)head;
  return answer_exceptions([&]() -> ApiResponse {
    nlohmann::json health = {{"status", "ok"},
                             {"version", version_},
                             {"steps_running", steps_.running()},
                             {"disk_full", steps_.disk_full()}};
    if (auto clusters = steps_.cluster_names(); !clusters.empty()) health["clusters"] = std::move(clusters);
    return json_response(health);
  });
}

ApiResponse Api::handle(const RequestHead& head, std::string_view body, const Sender& sender) {
  return answer_exceptions([&]() -> ApiResponse {
    const auto target = RequestTarget::parse(head.target);
    if (!target) return error_response(target.error());
    if (!sender.munge_payload.empty() &&
        sender.munge_payload != munge_payload_of_request(head.method, head.target, body)) {
      return unauthenticated(another_request());
    }
    return route(sender.caller, head, body, *target);
  });
}

ApiResponse Api::route(const Caller& caller, const RequestHead& head, std::string_view body,
                       const RequestTarget& target) {
  const auto& path = target.path;
  if (path.empty() && head.method == "GET") return metrics(caller);
  const auto nothing_here = [&] {
    return error_response(Error{
        ErrorCode::kNotFound,
        "no " + head.method.substr(0, 16) + " " + head.target.substr(0, 200) + " here: see docs/formats/http-v1.md"});
  };
  if (path.empty()) return nothing_here();
  if (path[0] == "accuracy" && path.size() == 1 && head.method == "GET") return accuracy(caller, target);
  if (path[0] == "refused" && path.size() == 1 && head.method == "GET") return refused(caller, target);
  if (path[0] == "networks" && path.size() == 1 && head.method == "GET")
    return json_response({{"networks", steps_.network_names()}});
  if (path[0] != "steps") return nothing_here();
  if (head.method == "GET" && path.size() == 1) return list_steps(caller, target);
  if (path.size() < 5) return nothing_here();
  // A key has four or five numbers and names; what comes behind it is a word.
  const bool has_submit = path.size() > 5 && !path[5].empty() && path[5][0] >= '0' && path[5][0] <= '9';
  const auto key = make_step_key(path[1], path[2], path[3], path[4], has_submit ? path[5] : "0");
  if (!key) return error_response(key.error());
  const std::vector<std::string_view> rest(path.begin() + (has_submit ? 6 : 5), path.end());
  if (rest.size() >= 2 && rest[0] == "streams") return stream_request(caller, head, body, *key, rest);
  if (head.method != "GET" || rest.size() > 1) return nothing_here();
  if (rest.empty()) {
    const StepDetail detail = target.is_set("brief") ? StepDetail::kBrief : StepDetail::kFull;
    const auto step = steps_.get(caller, *key, detail);
    return step ? json_response(step_json(*step, detail)) : error_response(step.error());
  }
  if (rest[0] == "accuracy") {
    const auto fit = steps_.fit_of(caller, *key);
    return fit ? json_response(error_fit_json(*fit)) : error_response(fit.error());
  }
  if (rest[0] == "picture") return picture(caller, *key, target);
  if (rest[0] != "trace") return nothing_here();
  auto trace = steps_.trace(caller, *key);
  if (!trace) return error_response(trace.error());
  return {200, "application/x-lbf-trace", {}, std::make_unique<TraceSource>(std::move(trace).value())};
}

// Of all users together: for those who see all.
ApiResponse Api::metrics(const Caller& caller) {
  if (!caller.is_operator) return error_response(Error{ErrorCode::kPermission, "metrics are for operators"});
  const StepsNow now = steps_.now();
  return {200, std::string(kMetricsType), metrics_text({version_, steps_.counts(), now, http_counts()}), nullptr};
}

ApiResponse Api::picture(const Caller& caller, const StepKey& key, const RequestTarget& target) {
  PictureSize size;
  std::uint64_t number = 0;
  for (const auto& [name, value] : target.query) {
    const bool known = name == "target" || name == "blocks" || name == "rows" || name == "columns";
    if (!known) {
      return error_response(
          invalid_input("unknown parameter '" + name.substr(0, 40) + "': target, blocks, rows, columns"));
    }
    const auto parsed =
        parse_decimal(value, name == "rows" || name == "blocks" ? kMaxPictureRows : kMaxPictureColumns, name);
    if (!parsed) return error_response(parsed.error());
    if (name != "target" && *parsed < 2) return error_response(invalid_input(name + ": at least 2 are needed"));
    const auto count = static_cast<std::uint32_t>(*parsed);
    if (name == "target") number = *parsed;
    if (name == "blocks") size.blocks = count;
    if (name == "rows") size.rows = count;
    if (name == "columns") size.columns = count - count % 2;
  }
  const auto made = steps_.picture(caller, key, number, size);
  return made ? json_response(*made) : error_response(made.error());
}

ApiResponse Api::stream_request(const Caller& caller, const RequestHead& head, std::string_view body,
                                const StepKey& key, std::span<const std::string_view> path) {
  const auto number = parse_decimal(path[1], protocol::kMaxStepNodes - 1, "stream");
  if (!number) return error_response(number.error());
  const auto stream = static_cast<std::uint32_t>(*number);

  if (head.method == "PUT" && path.size() == 2) {
    const auto next = steps_.register_stream(caller, key, stream, body);
    if (!next) {
      refused_steps_.add(caller.uid, key, std::string(whole_characters(next.error().message, kMostWhyBytes)));
      return error_response(next.error());
    }
    refused_steps_.forget(caller.uid, key);
    return json_response(answer_of({next->next_sequence, next->expected_calls_per_s, next->expected_call_s,
                                    next->expected_relay_share, std::nullopt},
                                   steps_.procedure_list(key)));
  }
  const auto answer = [&](const Result<AppendResult>& result, const char* gap, const char* ended) {
    if (!result) return error_response(result.error());
    const protocol::StreamAnswer said{.next_sequence = result->next_sequence};
    if (result->outcome == AppendOutcome::kGap || result->outcome == AppendOutcome::kEnded) {
      json refusal = protocol::json_of(said);
      refusal["error"] = result->outcome == AppendOutcome::kGap ? gap : ended;
      refusal["code"] = "invalid_input";
      return ApiResponse{409, "application/json", json_text(refusal), nullptr};
    }
    return json_response(answer_of(said, steps_.procedure_list(key)));
  };
  if (head.method == "POST" && path.size() == 4 && path[2] == "batches") {
    const auto sequence = parse_decimal(path[3], std::numeric_limits<std::int64_t>::max(), "sequence number");
    if (!sequence) return error_response(sequence.error());
    if (*sequence == 0) return error_response(invalid_input("sequence numbers begin with 1"));
    return answer(steps_.append(caller, key, stream, *sequence, std::as_bytes(std::span(body.data(), body.size()))),
                  "batches before this one are missing: send next_sequence", "the stream has ended");
  }
  if (head.method == "POST" && path.size() == 3 && path[2] == "end") {
    const auto end = stream_end_of(body);
    if (!end) return error_response(end.error());
    return answer(steps_.end_stream(caller, key, stream, *end),
                  "batches up to last_sequence are missing: send next_sequence, or count them in lost_batches",
                  "the stream has ended");
  }
  return error_response(Error{ErrorCode::kNotFound, "streams take PUT, POST .../batches/N and POST .../end"});
}

ApiResponse Api::accuracy(const Caller& caller, const RequestTarget& target) {
  db::OutcomeQuery query;
  query.uid = caller.uid;
  if (target.is_set("all")) {
    if (!caller.is_operator) {
      return error_response(Error{ErrorCode::kPermission, "only operators see everybody's programs: leave out all=1"});
    }
    query.uid.reset();
  }
  for (const auto& [name, value] : target.query) {
    if (name == "all") continue;
    if (name == "user") {
      const auto uid = uid_of_user(value);
      if (!caller.is_operator && (!uid || *uid != caller.uid)) {
        return error_response(
            Error{ErrorCode::kPermission, "only operators see other users' programs: leave out user="});
      }
      if (!uid) return error_response(uid.error());
      query.uid = *uid;
    } else if (name == "since" || name == "until") {
      const auto time_s = parse_time(value, name.c_str());
      if (!time_s) return error_response(time_s.error());
      (name == "since" ? query.since_s : query.until_s) = *time_s;
    } else {
      return error_response(invalid_input("unknown parameter '" + name.substr(0, 40) + "': user, all, since, until"));
    }
  }
  const auto found = steps_.accuracy(query);
  return found ? json_response(accuracy_json(*found)) : error_response(found.error());
}

ApiResponse Api::refused(const Caller& caller, const RequestTarget& target) const {
  const auto given = target.query.find("job");
  if (given == target.query.end()) return error_response(invalid_input("refused: job= is needed"));
  const auto job = parse_decimal(given->second, std::numeric_limits<std::uint32_t>::max(), "job");
  if (!job) return error_response(job.error());
  json all = json::array();
  const auto whose = caller.is_operator ? std::nullopt : std::optional(caller.uid);
  for (const RefusedSteps::Refusal& one : refused_steps_.of(whose, static_cast<std::uint32_t>(*job))) {
    all.push_back({{"cluster", one.key.cluster},
                   {"job", one.key.job},
                   {"step", one.key.step},
                   {"restart", one.key.restart},
                   {"submit", one.key.submit_s},
                   {"why", one.why}});
  }
  return json_response({{"refused", all}});
}

ApiResponse Api::list_steps(const Caller& caller, const RequestTarget& target) {
  db::StepQuery query;
  query.limit = kDefaultListLimit;
  const bool all = target.is_set("all");
  if (all && !caller.is_operator) {
    return error_response(Error{ErrorCode::kPermission, "only operators see everybody's steps: leave out all=1"});
  }
  if (!all) query.uid = caller.uid;
  if (!target.is_set("duplicates") && target.is_set("job")) query.duplicates = db::Duplicates::kLatest;
  std::optional<RowColumns> rows;
  constexpr std::uint64_t kMaxId = std::numeric_limits<std::uint32_t>::max();
  for (const auto& [name, value] : target.query) {
    if (name == "all" || name == "brief" || name == "detail" || name == "summary" || name == "duplicates") continue;
    if (name == "rows") {
      auto parsed = parse_rows(value);
      if (!parsed) return error_response(parsed.error());
      rows = std::move(parsed).value();
    } else if (name == "cluster") {
      if (auto checked = check_cluster_name(value); !checked) return error_response(checked.error());
      query.cluster = value;
    } else if (name == "job" || name == "array_task" || name == "het_offset" || name == "step" || name == "restart" ||
               name == "limit") {
      const auto number = parse_decimal(value, name == "limit" ? kMaxListLimit : kMaxId, name);
      if (!number) return error_response(number.error());
      const auto id = static_cast<std::uint32_t>(*number);
      if (name == "job") query.job_group = id;
      if (name == "array_task") query.array_task = id;
      if (name == "het_offset") query.het_offset = id;
      if (name == "step") query.step = id;
      if (name == "restart") query.restart = id;
      if (name == "limit") query.limit = id;
    } else if (name == "submit") {
      const auto submit_s = parse_decimal(value, protocol::kMaxSubmitS, name);
      if (!submit_s) return error_response(submit_s.error());
      query.submit_s = *submit_s;
    } else if (name == "user") {
      const auto uid = uid_of_user(value);
      if (!caller.is_operator && (!uid || *uid != caller.uid)) {
        return error_response(Error{ErrorCode::kPermission, "only operators see other users' steps: leave out user="});
      }
      if (!uid) return error_response(uid.error());
      query.uid = *uid;
    } else if (name == "account") {
      query.account = value;
    } else if (name == "partition") {
      query.partition = value;
    } else if (name == "name") {
      query.job_name = value;
    } else if (name == "state") {
      for (const std::string_view state : split(value, ',', kMostParameters)) {
        const auto found = protocol::state_of_name(state);
        if (!found) {
          return error_response(invalid_input("'" + std::string(state.substr(0, 40)) +
                                              "' is no state: running, complete and partial are"));
        }
        query.states.push_back(*found);
      }
    } else if (name == "nodelist") {
      auto nodes = expand_hostlist(value, kMaxQueryNodes);
      if (!nodes) return error_response(nodes.error());
      query.nodes = std::move(nodes).value();
    } else if (name == "since" || name == "until") {
      const auto time_s = parse_time(value, name.c_str());
      if (!time_s) return error_response(time_s.error());
      (name == "since" ? query.since_s : query.until_s) = *time_s;
    } else {
      return error_response(invalid_input(
          "unknown parameter '" + name.substr(0, 40) +
          "': cluster, job, array_task, het_offset, step, restart, submit, user, account, partition, name, state, "
          "nodelist, all, since, until, limit, duplicates, brief, summary, detail, rows"));
    }
  }
  if (rows) {
    db::ListValues values = rows->values();
    values.every_target = !target.is_set("summary");
    auto listed = steps_.list(query, values);
    if (!listed) return error_response(listed.error());
    return in_pieces(row_pieces(steps_, std::move(*listed), std::move(*rows), std::move(values)));
  }
  const StepDetail detail = target.is_set("brief")     ? StepDetail::kBrief
                            : target.is_set("summary") ? StepDetail::kSummary
                            : target.is_set("detail")  ? StepDetail::kFull
                                                       : StepDetail::kList;
  auto found = steps_.find_without_predictions(query, detail);
  if (!found) return error_response(found.error());
  return in_pieces(step_pieces(steps_, std::move(*found), detail));
}

}  // namespace lbf::daemon
