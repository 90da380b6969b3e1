// User names and ids, see users.h.
#include "predictor/daemon/users.h"

#include <pwd.h>

#include <limits>
#include <vector>

#include "predictor/daemon/intake/step_key.h"

namespace lbf::daemon {
namespace {

constexpr std::size_t kEntryBytes = 16384;  // of one user: names and paths

}  // namespace

std::string user_name_of(uid_t uid, std::string_view otherwise) {
  std::vector<char> buffer(kEntryBytes);
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return entry.pw_name;
  return otherwise.empty() ? std::to_string(uid) : std::string(otherwise.substr(0, 256));
}

Result<uid_t> uid_of_user(const std::string& name_or_uid) {
  const auto number = parse_decimal(name_or_uid, std::numeric_limits<uid_t>::max() - 1, "uid");
  if (number) return static_cast<uid_t>(*number);
  std::vector<char> buffer(kEntryBytes);
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (getpwnam_r(name_or_uid.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return Error{ErrorCode::kNotFound, "no user '" + name_or_uid.substr(0, 80) + "' on this machine"};
  }
  return entry.pw_uid;
}

}  // namespace lbf::daemon
