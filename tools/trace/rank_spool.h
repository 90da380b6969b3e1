// RankSpool: what is written for all ranks side by side and read one rank after the other, for formats that
// want it so (GOAL). Memory is O(ranks); the text waits in a temporary file without a name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/units.h"

namespace lbf::tools {

class RankSpool {
 public:
  // In `folder` (empty: TMPDIR, else /tmp). Errors: kIo.
  static Result<RankSpool> make(Rank ranks, const std::string& folder);

  Result<void> add(Rank rank, std::string_view text);
  // All text of `rank` in the order in which it was added. REQUIRES: nothing is added afterwards.
  Result<void> read(Rank rank, const std::function<Result<void>(std::string_view)>& sink);

 private:
  struct Part {
    std::string pending;
    std::uint64_t first = 0;  // offset of the rank's first chunk, plus 1; 0: none
    std::uint64_t last = 0;
  };
  RankSpool(ScopedFd fd, Rank ranks);
  Result<void> flush(Part& part);

  ScopedFd fd_;
  std::uint64_t end_ = 0;
  std::size_t limit_;  // of `pending`
  std::vector<Part> parts_;
};

}  // namespace lbf::tools
