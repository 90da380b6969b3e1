// Fuzzes the text trace reader: any input gives events or an error; what could be read can be written, and
// reads back to as many events.
#include <sstream>

#include "event/text_trace.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> fuzz_seeds() {
  return {
      "lbf-trace 1\nranks 3\n0 startRecv 1 from=2 tag=0\n1 compute 2\n0 endRecv 0 from=2 tag=0 bytes=0\n"
      "2 send 5 to=0 tag=0 bytes=0\n1 exit 1\n2 exit 1\n0 exit 2\n",
      "lbf-trace 1\nranks 4\ncomm 1 3,1\n0 isend 0.1 to=1 tag=7 bytes=1024 req=5 sync=1\n"
      "1 startRecv 0.000000123 from=any tag=any req=9\n1 endRecv 2.5 from=0 tag=7 bytes=1024 req=9\n"
      "3 send 1 to=1 tag=3 bytes=64 comm=1\n0 isend 0 to=2 tag=1 bytes=8 req=6\n0 wait 0.25 req=6,5\n",
      "lbf-trace 1\nranks 2\n# all the rest\n0 coll 0.5 op=barrier\n1 coll 1e-3 op=reduce bytes=8 root=1\n"
      "0 blocked 0.125 off=3.75\n0 enter 0 proc=main\n0 leave 1 proc=main\n0 exit 1\n1 exit "
      "0.30000000000000004\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  struct Kept {
    lbf::Rank rank;
    lbf::Event event;
    std::vector<std::uint64_t> values;
  };
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<Kept> events;
  const auto info = lbf::read_text_trace(in, "input", [&](lbf::Rank rank, const lbf::Event& event) {
    events.push_back({rank, event, {event.values.begin(), event.values.end()}});
    return lbf::Result<void>();
  });
  if (!info) {
    fuzz_require(info.error().message.starts_with("input:"), "an error names file and line");
    fuzz_require(info.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  std::ostringstream out;
  lbf::TextTraceWriter writer(out, info->ranks, info->procedures);
  for (Kept& kept : events) {
    kept.event.values = kept.values;
    fuzz_require(writer.add(kept.rank, kept.event).ok(), "what was read can be written");
  }
  std::istringstream again(out.str());
  std::size_t count = 0;
  const auto second = lbf::read_text_trace(again, "again", [&](lbf::Rank, const lbf::Event&) {
    ++count;
    return lbf::Result<void>();
  });
  fuzz_require(second.ok(), "what was written can be read");
  fuzz_require(second->ranks == info->ranks, "the ranks are the same");
  // A communicator is written at its first member's next event; members that had none before that get it too.
  fuzz_require(count >= events.size(), "no event was lost");
  return 0;
}
