// relay_throughput: what the relay's work costs, from records in rings to compressed batches.
//
// Rings of several ranks are filled with the records of a 2-D stencil (4 Irecv, 4 Isend, Waitall, Allreduce
// every 10 iterations; jitter in the times), as many as they hold; then the Collector drains them and every
// batch is finished (zstd, checksums), in one thread; only that part is timed. Sending is not in it. Repeated
// until --seconds of processor time are over. One line: records and their share of time per stage.
//
// usage: relay_throughput [--ranks N] [--threads N] [--ring-mb N] [--seconds S]
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "event/event.h"
#include "event/mpi_function_table.h"
#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/batch_builder.h"
#include "spank_plugin/relay/collector.h"

namespace {

using lbf::EventKind;
using lbf::ring::Header;
using lbf::ring::Record;

double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::uint16_t id_of(const char* name) {
  return lbf::mpi_function(std::string_view(name))->id;
}

// A ring as capture makes it, mapped; `fill` writes until it is full.
class Ring {
 public:
  Ring(const std::string& dir, std::int32_t tid, std::int32_t rank, std::int32_t world, std::uint64_t capacity,
       std::uint32_t thread_level)
      : capacity_(capacity), rank_(rank), world_(world), random_(static_cast<std::uint32_t>(tid)) {
    const std::string path = dir + "/" + std::to_string(pid_of(rank)) + "." + std::to_string(tid) + ".ring";
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    bytes_ = sizeof(Header) + capacity;
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0) std::abort();
    void* pages = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (pages == MAP_FAILED) std::abort();
    ::close(fd);
    header_ = static_cast<Header*>(pages);
    data_ = static_cast<std::byte*>(pages) + sizeof(Header);
    header_->version = lbf::ring::kVersion;
    header_->header_bytes = sizeof(Header);
    header_->capacity_bytes = capacity;
    header_->pid = pid_of(rank);
    header_->tid = tid;
    header_->clock_source = 1;
    header_->thread_level = thread_level;
    header_->rank = rank;
    header_->world_size = world;
    header_->state = static_cast<std::uint32_t>(lbf::ring::ProcessState::kRunning);
    header_->init_leave_ticks = now_;
    header_->magic = lbf::ring::kMagic;
  }
  ~Ring() { ::munmap(header_, bytes_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Any process that lives: the collector looks whether it does. Ranks need different ones.
  static std::int32_t pid_of(std::int32_t rank) { return pids.at(static_cast<std::size_t>(rank)); }
  static inline std::vector<std::int32_t> pids;

  // Returns the records written.
  std::uint64_t fill() {
    std::uint64_t written = 0;
    while (room() >= 40 * sizeof(Record)) written += iteration();
    header_->head.store(head_, std::memory_order_release);
    return written;
  }

 private:
  std::uint64_t room() const { return capacity_ - (head_ - header_->tail.load(std::memory_order_acquire)); }

  void put(EventKind kind, std::uint16_t function, std::int32_t peer, std::uint32_t request, std::uint64_t bytes,
           bool first = true, lbf::CollectiveOp op = lbf::CollectiveOp::kBarrier) {
    const std::uint64_t offset = head_ & (capacity_ - 1);
    if (capacity_ - offset < sizeof(Record)) {
      const auto words = static_cast<std::uint32_t>((capacity_ - offset) / 8);
      std::memcpy(data_ + offset, &words, 4);
      data_[offset + 4] = std::byte{lbf::ring::kRecordPad};
      head_ += capacity_ - offset;
    }
    if (first) now_ += 300 + random_() % 2000;
    Record r{};
    r.words_and_op = lbf::ring::kRecordWords | static_cast<std::uint32_t>(op) << 24;
    r.kind = static_cast<std::uint8_t>(kind);
    r.flags = static_cast<std::uint8_t>((first ? lbf::kFlagCallBegin : 0) | (request != 0 ? lbf::kFlagHasRequest : 0));
    r.function = function;
    r.enter = now_;
    if (first) now_ += 80 + random_() % 500;
    r.leave = now_;
    if (!first) r.enter = now_;
    r.peer = peer;
    r.tag = 7;
    r.request = request;
    r.bytes = bytes;
    std::memcpy(data_ + (head_ & (capacity_ - 1)), &r, sizeof r);
    head_ += sizeof r;
  }

  std::uint64_t iteration() {
    static const std::uint16_t irecv = id_of("MPI_Irecv"), isend = id_of("MPI_Isend"), waitall = id_of("MPI_Waitall"),
                               allreduce = id_of("MPI_Allreduce");
    const std::int32_t peers[4] = {(rank_ + 1) % world_, (rank_ + world_ - 1) % world_, (rank_ + 2) % world_,
                                   (rank_ + world_ - 2) % world_};
    const std::uint32_t base = request_;
    for (const std::int32_t peer : peers) put(EventKind::kStartRecv, irecv, peer, ++request_, 8192);
    for (const std::int32_t peer : peers) put(EventKind::kIsend, isend, peer, ++request_, 8192);
    for (std::uint32_t i = 0; i < 4; ++i) put(EventKind::kEndRecv, waitall, peers[i], base + 1 + i, 8192, i == 0);
    for (std::uint32_t i = 4; i < 8; ++i) put(EventKind::kWait, waitall, 0, base + 1 + i, 0, false);
    if (++iterations_ % 10 != 0) return 16;
    put(EventKind::kCollective, allreduce, 0, 0, 8, true, lbf::CollectiveOp::kAllreduce);
    return 17;
  }

  Header* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t capacity_;
  std::uint64_t head_ = 0;
  std::uint64_t now_ = 1'000'000'000;
  std::uint32_t request_ = 0;
  std::uint64_t iterations_ = 0;
  std::int32_t rank_;
  std::int32_t world_;
  std::mt19937 random_;
};

// A process to own a rank's rings.
std::int32_t make_sleeper() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  if (pid < 0) std::abort();
  return pid;
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 16;
  int threads = 1;
  int ring_mb = 8;
  double seconds = 5;
  CLI::App app("Cost of a record in the relay, from ring to compressed batch.");
  app.add_option("--ranks", ranks, "of this node")->check(CLI::Range(1, 1024));
  app.add_option("--threads", threads, "rings of each rank")->check(CLI::Range(1, 64));
  app.add_option("--ring-mb", ring_mb, "size of a ring, a power of two")->check(CLI::Range(1, 64));
  app.add_option("--seconds", seconds, "processor time to spend");
  CLI11_PARSE(app, argc, argv);

  std::string dir = "/dev/shm/lbf-relay-bench-XXXXXX";
  if (::mkdtemp(dir.data()) == nullptr) return 1;
  for (int rank = 0; rank < ranks; ++rank) Ring::pids.push_back(make_sleeper());
  std::vector<std::unique_ptr<Ring>> rings;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int thread = 0; thread < threads; ++thread) {
      rings.push_back(std::make_unique<Ring>(dir, Ring::pids[static_cast<std::size_t>(rank)] + thread, rank, ranks,
                                             std::uint64_t{1} << (20 + __builtin_ctz(static_cast<unsigned>(ring_mb))),
                                             threads > 1 ? 3U : 0U));
    }
  }
  auto collector = lbf::relay::Collector::make({dir, ranks, 0});
  if (!collector) return 1;
  double finish_s = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t sequence = 0;
  std::uint64_t events = 0;
  lbf::relay::BatchBuilder builder([&](std::unique_ptr<lbf::BatchEncoder> encoder) {
    events += encoder->events();
    const double before = cpu_s();
    stored_bytes += encoder->finish(0, ++sequence).size();
    finish_s += cpu_s() - before;
  });
  lbf::relay::TickRate rate({0, 0});
  rate.observe({3'000'000'000, 3'000'000'000});
  // Time stands far behind all records; it moves on so that rings are looked for and processes asked after.
  std::uint64_t now_ns = std::uint64_t{1} << 50;
  std::uint64_t records = 0;
  double spent_s = 0;
  while (spent_s < seconds) {
    for (const auto& ring : rings) records += ring->fill();
    const double before = cpu_s();
    for (;;) {
      now_ns += 5'000'000;
      if (collector->pass({now_ns, now_ns}, rate, builder).bytes == 0) break;
    }
    spent_s += cpu_s() - before;
  }
  builder.flush();
  std::printf(
      "%d ranks x %d rings: %.2f M records/s of one core, %.0f ns per record (%.0f of them to compress), "
      "%.2f bytes per event\n",
      ranks, threads, static_cast<double>(records) / spent_s * 1e-6, spent_s / static_cast<double>(records) * 1e9,
      finish_s / static_cast<double>(records) * 1e9, static_cast<double>(stored_bytes) / static_cast<double>(events));
  const bool complete = events >= records;
  if (!complete)
    std::fprintf(stderr, "relay_throughput: %llu records became %llu events\n",
                 static_cast<unsigned long long>(records), static_cast<unsigned long long>(events));
  for (const std::int32_t pid : Ring::pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  return complete ? 0 : 1;
}
