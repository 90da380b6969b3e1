// Runs a fuzz target without libFuzzer: a bounded number of random mutations of the target's seeds, the same
// ones for the same --seed. usage: TARGET [--iterations N | --seconds N] [--seed S] [FILE...]; with files it runs just
// these (to see a failure again). The input at hand is in crash-TARGET.bin after a crash, or when it takes too long.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"

namespace {

const std::string* g_input = nullptr;
char g_crash_file[256] = "crash.bin";

void write_input() {
  if (g_input == nullptr) return;
  const int fd = open(g_crash_file, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (fd < 0) return;
  const char* at = g_input->data();
  for (std::size_t left = g_input->size(); left > 0;) {
    const ssize_t written = write(fd, at, left);
    if (written <= 0) break;
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  close(fd);
}

extern "C" void on_crash(int signal_number) {
  write_input();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

// One to eight changes: bits, bytes, numbers, pieces removed, doubled, or taken from another seed.
std::string mutate(const std::vector<std::string>& seeds, std::mt19937_64& random) {
  std::string input = seeds[random() % seeds.size()];
  const std::uint64_t changes = 1 + random() % 8;
  for (std::uint64_t i = 0; i < changes; ++i) {
    if (input.empty()) input += static_cast<char>(random());
    const std::size_t at = random() % input.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 16, input.size() - at);
    switch (random() % 8) {
      case 0:
        input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 1:
        input[at] = static_cast<char>(random());
        break;
      case 2:
        input.insert(at, 1, static_cast<char>(random()));
        break;
      case 3:
        input.erase(at, length);
        break;
      case 4:
        input.insert(at, input.substr(at, length));
        break;
      case 5: {
        constexpr std::string_view kEdges[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                               "\x80\x80\x80\x80\x10",
                                               "-1",
                                               "4294967296",
                                               "1e308",
                                               "any",
                                               ",",
                                               "=",
                                               "\n",
                                               "#",
                                               " "};
        input.insert(at, kEdges[random() % std::size(kEdges)]);
        break;
      }
      case 6: {
        const std::string& other = seeds[random() % seeds.size()];
        const std::size_t from = random() % other.size();
        input.insert(at, other.substr(from, 1 + random() % 64));
        break;
      }
      default:
        input.resize(at);
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned kMostSecondsOfInput = 120;
  std::uint64_t iterations = 10000;
  Clock::time_point until = Clock::time_point::max();
  std::uint64_t seed = 1;
  std::vector<const char*> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--iterations" && i + 1 < argc) {
      iterations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seconds" && i + 1 < argc) {
      iterations = ~std::uint64_t{0};
      until = Clock::now() + std::chrono::seconds(std::strtoull(argv[++i], nullptr, 10));
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      files.push_back(argv[i]);
    }
  }
  const char* slash = std::strrchr(argv[0], '/');
  std::snprintf(g_crash_file, sizeof g_crash_file, "crash-%s.bin", slash != nullptr ? slash + 1 : argv[0]);
  for (const int signal_number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    std::signal(signal_number, on_crash);

  const auto run = [](const std::string& input) {
    g_input = &input;
    alarm(kMostSecondsOfInput);
    // A copy of exactly that size, so that a sanitizer sees every read beyond it.
    const std::vector<std::uint8_t> exact(input.begin(), input.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    g_input = nullptr;
  };
  for (const char* file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s: cannot be read\n", file);
      return 2;
    }
    run(std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
  }
  if (!files.empty()) return 0;

  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& input : seeds) run(input);
  std::mt19937_64 random(seed);
  std::uint64_t done = 0;
  for (; done < iterations && Clock::now() < until; ++done) run(mutate(seeds, random));
  std::printf("%zu seeds, %llu mutations: nothing found\n", seeds.size(), static_cast<unsigned long long>(done));
  return 0;
}
