// lbf-trace export --format otf2 of a build without the OTF2 library.
#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::otf2_refused_test {
namespace {

TEST_F(TraceCommand, Otf2IsRefusedWithTheReason) {
  expect_error(1, "export " + fig3_ + " --format otf2 --nodes 1 -o out", "libopen-trace-format2-dev");
}

}  // namespace
}  // namespace lbf::trace_test::otf2_refused_test