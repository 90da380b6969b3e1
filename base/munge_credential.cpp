// Munge credentials, see munge_credential.h.
#include "base/munge_credential.h"

#include <munge.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/crc32c.h"
#include "base/unique_handle.h"

namespace lbf {
namespace {

struct DestroyContext {
  void operator()(munge_ctx_t context) const noexcept { munge_ctx_destroy(context); }
};
using MungeContext = UniqueHandle<munge_ctx_t, DestroyContext>;

struct FreeMemory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// Said by munge_encode/decode in the context where there is one: it names the socket, say.
std::string message_of(munge_err_t code, const MungeContext& context) {
  const char* text = munge_ctx_strerror(context.get());
  return text != nullptr ? text : munge_strerror(code);
}

Error unavailable(munge_err_t code, const MungeContext& context) {
  return {ErrorCode::kUnavailable,
          "munge does not answer: " + message_of(code, context) + ": is munged running? (systemctl status munge)"};
}

Result<MungeContext> make_context() {
  MungeContext context(munge_ctx_create());
  if (!context) return Error{ErrorCode::kLimit, "munge: out of memory"};
  const char* socket = std::getenv("LBF_MUNGE_SOCKET");
  if (socket != nullptr && *socket != '\0') {
    if (munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
      return invalid_input(std::string("LBF_MUNGE_SOCKET=") + socket + ": " + message_of(EMUNGE_BAD_ARG, context));
    }
  }
  return context;
}

}  // namespace

Result<std::string> encode_munge_credential(std::string_view payload) {
  auto context = make_context();
  if (!context) return context.error();
  char* text = nullptr;
  const munge_err_t code = munge_encode(&text, context->get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, FreeMemory> owned(text);
  if (code == EMUNGE_SOCKET || code == EMUNGE_TIMEOUT) return unavailable(code, *context);
  if (code != EMUNGE_SUCCESS) {
    return Error{ErrorCode::kInternal, "munge made no credential: " + message_of(code, *context)};
  }
  return std::string(text);
}

Result<MungeIdentity> decode_munge_credential(const std::string& credential) {
  auto context = make_context();
  if (!context) return context.error();
  MungeIdentity identity;
  void* payload = nullptr;
  int payload_bytes = 0;
  const munge_err_t code =
      munge_decode(credential.c_str(), context->get(), &payload, &payload_bytes, &identity.uid, &identity.gid);
  // munge hands out the payload of an expired or replayed credential too.
  const std::unique_ptr<void, FreeMemory> owned(payload);
  switch (code) {
    case EMUNGE_SUCCESS:
      break;
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
      return unavailable(code, *context);
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
      return Error{ErrorCode::kPermission, "munge credential refused: " + message_of(code, *context) +
                                               ": do the clocks of the nodes agree? (chronyc tracking)"};
    case EMUNGE_CRED_INVALID:
      return Error{ErrorCode::kPermission, "munge credential refused: " + message_of(code, *context) +
                                               ": is it the same munge.key on every node?"};
    case EMUNGE_CRED_REPLAYED:
    case EMUNGE_CRED_UNAUTHORIZED:
      return Error{ErrorCode::kPermission, "munge credential refused: " + message_of(code, *context)};
    default:
      return invalid_input("not a munge credential: " + message_of(code, *context));
  }
  if (payload_bytes > 0) {
    identity.payload.assign(static_cast<const char*>(payload), static_cast<std::size_t>(payload_bytes));
  }
  return identity;
}

std::string munge_payload_of_request(std::string_view method, std::string_view target, std::string_view body) {
  std::array<char, 16> checksum{};
  std::snprintf(checksum.data(), checksum.size(), "%08x", static_cast<unsigned>(crc32c(body)));
  std::string payload;
  payload.append(method).append(" ").append(target).append(" ");
  payload.append(std::to_string(body.size())).append(" ").append(checksum.data());
  return payload;
}

}  // namespace lbf
