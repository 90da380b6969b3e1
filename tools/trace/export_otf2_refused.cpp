// make_otf2_export of a build without the OTF2 library.
#include "tools/trace/export_otf2.h"

namespace lbf::tools {

Result<std::unique_ptr<TimelineExport>> make_otf2_export(Rank /*ranks*/, const engine::Target& /*target*/,
                                                         const std::string& /*folder*/) {
  return invalid_input(
      "--format otf2: this lbf-trace was built where libopen-trace-format2-dev was not installed; install "
      "it and build again, or use --format timeline");
}

}  // namespace lbf::tools
