// lbf-watch: follows a running step in the terminal (docs/man/lbf-watch.1).
//
// Place in the event's way: db and replay -> lbfd -> HTTP -> *lbf-watch*. What a look shows is
// report/watch.h.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "report/advice.h"
#include "report/selection.h"
#include "report/step.h"
#include "report/watch.h"
#include "tools/report/report_query.h"
#include "tools/report/usable_nodes.h"
#include "tools/support/environment.h"
#include "tools/support/message.h"

namespace lbf::tools {
namespace {

using report::Selection;
using report::Step;
using report::WatchSample;
using report::WatchStyle;

constexpr Seconds kRequestTimeoutS = 10;
// lbfd may be started anew while somebody watches: so many looks in a row may fail.
constexpr int kPatience = 5;

constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";
volatile std::sig_atomic_t on_screen = 0;

// At once, also while lbfd is asked and does not answer. All that was written before was flushed.
extern "C" void end_watch(int) {
  if (on_screen != 0) (void)!::write(STDOUT_FILENO, kLeaveScreen.data(), kLeaveScreen.size());
  ::_exit(0);
}

constexpr Messages kMessages{"lbf-watch"};
int fail(const Error& error, int status = kExitFailure) {
  return kMessages.fail(error, status);
}

bool put(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

// The alternate screen, as top and less have it: what was there comes back at the end.
class Screen {
 public:
  explicit Screen(bool used) : used_(used) {
    if (!used_) return;
    on_screen = 1;
    put(std::string(kEnterScreen));
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { leave(); }
  void leave() {
    if (used_) put(std::string(kLeaveScreen));
    used_ = false;
    on_screen = 0;
  }

 private:
  bool used_;
};

WatchStyle style_of_terminal() {
  WatchStyle style;
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    style.width = size.ws_col;
    style.height = size.ws_row;
  }
  const char* const no_color = std::getenv("NO_COLOR");
  style.color = no_color == nullptr || *no_color == '\0';
  return style;
}

// The step to follow: a running one before those that are over, the one with most ranks before batch and
// extern.
Step* pick(std::vector<Step>& steps) {
  Step* best = nullptr;
  const auto rank = [](const Step& step) {
    return std::pair(step.running() || !step.predictions.empty() ? 1 : 0, step.ranks.value_or(0));
  };
  for (Step& step : steps) {
    if (best == nullptr || rank(step) >= rank(*best)) best = &step;
  }
  return best;
}

void sleep_for(double seconds) {
  timespec rest{static_cast<std::time_t>(seconds),
                static_cast<long>((seconds - static_cast<double>(static_cast<std::time_t>(seconds))) * 1e9)};
  (void)::nanosleep(&rest, nullptr);
}

struct Options {
  std::string job;
  double interval_s = 2;
  bool once = false;
  std::string server;
  bool version = false;
};

int watch(const Options& options) {
  auto jobs = report::parse_jobs(options.job);
  if (!jobs) return fail(jobs.error(), kExitUsage);
  if (jobs->size() != 1) return fail(invalid_input("-j takes one job or step, for example 123.0"), kExitUsage);
  Selection selection;
  selection.jobs = std::move(*jobs);
  HttpClientOptions http;
  http.total_timeout_s = kRequestTimeoutS;
  auto client = HttpClient::make(options.server.empty() ? default_server() : options.server, http);
  if (!client) return fail(client.error(), kExitUsage);

  const bool terminal = isatty(STDOUT_FILENO) != 0 && !options.once;
  std::optional<Screen> screen;
  std::optional<WatchSample> before;
  int failures = 0;
  for (;;) {
    const auto joined = ask(*client, selection);
    auto steps = joined ? report::parse_steps(*joined) : Result<std::vector<Step>>(joined.error());
    if (!steps) {
      const bool may_come_back = steps.error().code == ErrorCode::kUnavailable && before;
      if (!may_come_back || ++failures >= kPatience) {
        screen.reset();
        return fail(steps.error());
      }
      sleep_for(options.interval_s);
      continue;
    }
    failures = 0;
    Step* const step = pick(*steps);
    if (step == nullptr) {
      screen.reset();
      return fail(nothing_known(*client, selection));
    }
    if (options.once || !step->running()) find_usable_nodes({step, 1}, kRequestTimeoutS);
    const WatchSample now = sample_of(*step, std::chrono::steady_clock::now());
    const WatchSample* const last = before ? &*before : nullptr;
    bool written = true;
    if (terminal && step->running()) {
      if (!screen) screen.emplace(true);
      const WatchStyle style = style_of_terminal();
      written = put("\x1b[H\x1b[J" + render_watch(*step, last, now, style));
    } else if (options.once) {
      written = put(render_watch(*step, last, now, WatchStyle{}));
    } else if (!terminal) {
      written = put(watch_line(*step, last, now) + '\n');
    }
    if (!written) {
      screen.reset();
      return fail({ErrorCode::kIo, "cannot write the output; is the disk full or the pipe closed?"});
    }
    if (options.once) return 0;
    if (!step->running()) {
      screen.reset();
      return put(brief_line(*step) + '\n') ? 0 : kExitFailure;
    }
    before = now;
    sleep_for(options.interval_s);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Follows a running job step: progress, rates, predictions so far. Ends with the step.", "lbf-watch");
  app.add_option("-j,--job,JOB", options.job, "JOB[_TASK|+OFFSET][.STEP]: of several steps the one that runs")
      ->type_name("JOB");
  app.add_option("-n,--interval", options.interval_s, "seconds between two looks (default 2)")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  app.add_flag("--once", options.once, "one look, and end");
  app.add_option(
         "--server", options.server,
         std::string("where lbfd is: unix:PATH or http://HOST:PORT (default: LBF_SERVER, else ") + kDefaultServer + ")")
      ->type_name("SERVER");
  app.add_flag("-V,--version", options.version, "print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return put(app.help()) ? 0 : kExitFailure;
  } catch (const CLI::ParseError& error) {
    return fail(invalid_input(std::string(error.what()) + "; lbf-watch --help lists the options"), kExitUsage);
  }
  if (options.version) return put(std::string("lbf-watch ") + LBF_VERSION + '\n') ? 0 : kExitFailure;
  if (options.job.empty()) return fail(invalid_input("-j JOB[.STEP] is needed: which job to follow"), kExitUsage);
  struct sigaction action {};
  action.sa_handler = end_watch;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) (void)::sigaction(signal, &action, nullptr);
  return watch(options);
}

}  // namespace
}  // namespace lbf::tools

int main(int argc, char** argv) {
  try {
    return lbf::tools::run(argc, argv);
  } catch (const std::exception& error) {
    return lbf::tools::fail(
        {lbf::ErrorCode::kInternal, std::string("broken inside: ") + error.what() + "; please report it"});
  }
}
