#include "tools/report/report_picture.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "report/answer.h"
#include "report/html.h"
#include "report/picture.h"
#include "report/render.h"
#include "report/text.h"
#include "tools/report/report_message.h"
#include "tools/report/report_query.h"
#include "tools/support/environment.h"

namespace lbf::tools {
namespace {

using report::Step;

// The batch step and the extern step have no ranks of a program: the step that has predictions is meant.
// Errors: there are several.
Result<std::size_t> step_of_page(const std::vector<Step>& steps) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].predictions.empty()) candidates.push_back(i);
  }
  if (candidates.empty()) candidates.push_back(0);
  if (candidates.size() > 1) {
    std::string names;
    for (const std::size_t i : candidates) names += (names.empty() ? "" : ", ") + job_id(steps[i]);
    return invalid_input("--html is for one step; name one of " + report::shorten(names, 200) + " with -j JOB.STEP");
  }
  return candidates.front();
}

// What lbfd has of the step's best target: into `page`.
void fetch_picture(HttpClient& client, report::HtmlPage& page) {
  const auto target = chosen_target(*page.step);
  if (!target) return;
  auto response = client.request("GET", address_of(*page.step) + "/picture?target=" + std::to_string(*target));
  if (!response) {
    page.why_no_picture = response.error().message;
  } else if (response->status != 200) {
    page.why_no_picture = error_of_response(*response).message;
  } else if (auto picture = report::parse_picture(response->body)) {
    page.picture = std::move(*picture);
  } else {
    page.why_no_picture = picture.error().message;
  }
}

}  // namespace

std::size_t terminal_width() {
  struct winsize size {};
  if (isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  const int columns = std::atoi(from_environment("COLUMNS", "0").c_str());
  return columns > 0 ? static_cast<std::size_t>(columns) : 80;
}

bool use_unicode(const ReportOptions& options) {
  if (options.ascii) return false;
  (void)std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

bool use_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) != 0 && !dumb && (no_color == nullptr || *no_color == '\0');
}

report::PlotStyle plot_style(const ReportOptions& options) {
  report::PlotStyle style;
  style.width = terminal_width();
  style.unicode = use_unicode(options);
  style.color = use_color(options.color);
  return style;
}

std::string plots(const std::vector<Step>& steps, const ReportOptions& options) {
  const report::PlotStyle style = plot_style(options);
  std::string out;
  for (const Step& step : steps) out += (out.empty() ? "" : "\n") + render_plot(step, style);
  return out;
}

int write_page(const std::string& page, const std::string& path) {
  if (path == "-") return write_report(page);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  errno = 0;
  file << page << std::flush;
  if (!file) {
    return kReportMessages.fail(
        {ErrorCode::kIo, path + ": cannot be written: " + (errno != 0 ? std::strerror(errno) : "disk full?") +
                             "; name another file with --html"});
  }
  return 0;
}

int write_html(HttpClient& client, const std::vector<Step>& steps, const std::string& joined,
               const ReportOptions& options) {
  const Result<std::size_t> chosen = step_of_page(steps);
  if (!chosen) return kReportMessages.fail(chosen.error(), kExitUsage);
  report::HtmlPage page;
  page.step = &steps[*chosen];
  page.version = LBF_VERSION;
  const std::string step_json = report::step_text(joined, *chosen);
  page.step_json = step_json;
  fetch_picture(client, page);
  return write_page(render_html(page), options.html);
}

}  // namespace lbf::tools
