// About: what a skeleton says of itself, in a constant of its source that its compiled form keeps, so that
// whoever runs it knows for how many ranks it was made without running it (as what(1) does).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace lbf::skeleton {

struct About {
  Rank ranks = 0;
  std::uint64_t factor = 0;   // K
  Seconds application_s = 0;  // recorded run time of the application; 0: the trace had no times
  std::string id;             // of the source's text: measurements of another skeleton are not this one's
};

// "@(#)lbf-skeleton 1 ranks=4 factor=10 application_s=12.5 id=0a1b2c3d".
std::string about_text(const About& about);

// Finds it in a source or in a program. Errors: kInvalidInput: it has none.
Result<About> find_about(std::string_view bytes);
// Of a file. Errors: kNotFound, kIo; kInvalidInput: no skeleton, or one of another version of lbf.
Result<About> read_about(const std::string& path);

}  // namespace lbf::skeleton
