#include "tools/import/otf2_import.h"

namespace lbf::tools {

Result<std::unique_ptr<Otf2Import>> Otf2Import::open(const std::string& anchor) {
  return invalid_input(anchor +
                       ": this build has no OTF2: install libopen-trace-format2-dev and build again, or use a package");
}

}  // namespace lbf::tools
