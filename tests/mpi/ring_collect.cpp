// ring_collect: the relay without its network. Drains the rings of a running program through the relay's
// Collector, and reads the batches back as lbfd would.
//
// Place in the event's way: capture -> ring -> *Collector -> batches -> BatchDecoder*. Where ring_dump reads
// rings that nobody drained, this sees what comes out at the other end while the program runs.
//
// usage: ring_collect DIR TASKS OUTPUT [--wait-for FILE] [--pause-ms N]
//   drains from when FILE exists, every N ms (default 5), until SIGTERM, and makes FILE.drained when it has
//   found the rings empty after it had found something; then writes OUTPUT:
//     batches N
//     refused TEXT                              for a batch that the decoder refuses (the rest is not read)
//     control JSON                              for each control record
//     event RANK KIND FUNCTION COMM PEER TAG BYTES REQUEST PROCESS_NS CALL_NS
// Exit status 0: OUTPUT was written.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "event/mpi_function_table.h"
#include "event/wire.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/collector.h"
#include "tests/mpi/kind_names.h"

namespace {

std::atomic<bool> g_stop{false};

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

long long ns(lbf::Seconds seconds) {
  return std::llround(seconds * 1e9);
}

void write_output(const std::vector<std::string>& batches, lbf::Rank tasks, std::ostream& out) {
  out << "batches " << batches.size() << "\n";
  lbf::CommunicatorTable communicators;
  lbf::BatchDecoder decoder(communicators, tasks);
  lbf::BatchSink sink;
  sink.on_events = lbf::one_by_one([&](lbf::Rank rank, const lbf::Event& event) -> lbf::Result<void> {
    const auto name = event.function != 0 ? lbf::mpi_function_name(event.function) : std::string_view("-");
    out << "event " << rank << " " << lbf::test::kKindNames[static_cast<std::size_t>(event.kind)] << " " << name << " "
        << event.comm << " " << event.peer << " " << event.tag << " " << event.bytes << " " << event.request << " "
        << ns(event.process_s) << " " << ns(event.call_s) << "\n";
    return {};
  });
  sink.on_control = [&](std::string_view json) -> lbf::Result<void> {
    out << "control " << json << "\n";
    return {};
  };
  for (const std::string& batch : batches) {
    const auto decoded = decoder.decode(std::as_bytes(std::span(batch.data(), batch.size())), sink);
    if (decoded.ok()) continue;
    out << "refused " << decoded.error().message << "\n";
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: ring_collect DIR TASKS OUTPUT [--wait-for FILE] [--pause-ms N]\n";
    return 2;
  }
  std::string wait_for;
  int between_ms = 5;
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--wait-for") {
      wait_for = argv[i + 1];
    } else if (option == "--pause-ms") {
      between_ms = std::stoi(argv[i + 1]);
    } else {
      std::cerr << "ring_collect: unknown option " << option << "\n";
      return 2;
    }
  }
  std::signal(SIGTERM, [](int) { g_stop = true; });
  const auto tasks = static_cast<lbf::Rank>(std::stoi(argv[2]));
  auto collector = lbf::relay::Collector::make({argv[1], tasks, 0});
  if (!collector) {
    std::cerr << "ring_collect: " << collector.error().message << "\n";
    return 1;
  }
  std::vector<std::string> batches;
  lbf::relay::BatchBuilder builder([&batches](std::unique_ptr<lbf::BatchEncoder> encoder) {
    batches.push_back(encoder->finish(0, batches.size() + 1));
  });
  lbf::relay::TickRate rate(lbf::relay::read_clocks());
  while (!rate.ready()) {
    pause_ms(10);
    rate.observe(lbf::relay::read_clocks());
  }
  while (!g_stop && !wait_for.empty() && !std::filesystem::exists(wait_for)) pause_ms(5);
  bool found_something = false;
  while (!g_stop) {
    const auto now = lbf::relay::read_clocks();
    rate.observe(now);
    const auto pass = collector->pass(now, rate, builder);
    if (found_something && pass.bytes == 0 && !wait_for.empty()) std::ofstream(wait_for + ".drained");
    found_something |= pass.bytes > 0;
    pause_ms(between_ms);
  }
  collector->finish(lbf::relay::read_clocks(), rate, builder);
  std::ofstream out(argv[3]);
  write_output(batches, tasks, out);
  out.close();
  return out ? 0 : 1;
}
