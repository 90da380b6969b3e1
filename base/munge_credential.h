// Munge credentials: who sends a request to lbfd (docs/formats/http-v1.md).
//
// Both sides talk to the munged of their node; LBF_MUNGE_SOCKET in the environment names another socket than
// the system's (a private munged in tests, a site with several realms).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace lbf {

struct MungeIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string payload;
};

// A credential of this process's user around `payload`. Errors: kUnavailable (no munged), kInternal.
Result<std::string> encode_munge_credential(std::string_view payload);

// Who made the credential, and its payload. Errors: kPermission (expired, replayed, forged, made for another
// user), kInvalidInput (not a credential), kUnavailable (no munged).
Result<MungeIdentity> decode_munge_credential(const std::string& credential);

// The payload that ties a credential to one request: "METHOD TARGET BODY-BYTES CRC32C", the checksum of the
// body in 8 lower-case hex digits. `target` is the request line's, with the query.
std::string munge_payload_of_request(std::string_view method, std::string_view target, std::string_view body);

}  // namespace lbf
