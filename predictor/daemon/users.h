// User names and ids, from the system's user database.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace lbf::daemon {

// The uid's name; where the system has none: `otherwise`, or the number.
std::string user_name_of(uid_t uid, std::string_view otherwise = {});

// The uid of a name, or of a decimal number. Errors: kNotFound.
Result<uid_t> uid_of_user(const std::string& name_or_uid);

}  // namespace lbf::daemon
