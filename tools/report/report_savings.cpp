#include "tools/report/report_savings.h"

#include <cstdio>
#include <optional>
#include <string>

#include "report/savings.h"
#include "report/text.h"
#include "tools/report/report_message.h"
#include "tools/report/report_picture.h"
#include "tools/report/report_query.h"

namespace lbf::tools {
namespace {

report::SavingsWindow window_of(const report::Selection& selection) {
  const auto seconds = [](const std::optional<std::time_t>& time) {
    return time ? std::optional<double>(static_cast<double>(*time)) : std::nullopt;
  };
  return {seconds(selection.since), seconds(selection.until)};
}

// The table between the sentences; scripts get the table on standard output, and the sentences on stderr.
int print_table(const report::Savings& savings, const report::SavingsWindow& window, const ReportOptions& options) {
  const std::string sum = report::savings_sentence(savings, window);
  const std::string left_out = report::left_out_sentence(savings);
  const std::string table = render_savings(savings, table_style(options));
  if (options.any_parsable()) {
    if (!left_out.empty()) kReportMessages.note(left_out);
    return write_report(table);
  }
  std::string out = report::wrap(sum, report::kTextWidth, 0);
  if (!table.empty()) out += '\n' + table;
  if (!left_out.empty()) out += '\n' + report::wrap(left_out, report::kTextWidth, 0);
  return write_report(out);
}

}  // namespace

int print_savings(HttpClient& client, report::Selection& selection, const ReportOptions& options) {
  report::Savings savings;
  const auto is_whole = ask_all_rows(client, selection, [&savings](report::Step& step) { savings.add(step); });
  if (!is_whole) return kReportMessages.fail(is_whole.error());
  if (!*is_whole) kReportMessages.warn("more steps than lbfd lists at once: the oldest are missing; narrow -S and -E");
  const report::SavingsWindow window = window_of(selection);
  if (options.json) return write_report(savings_json(savings, window));
  if (!options.html.empty()) return write_page(savings_html(savings, window, LBF_VERSION), options.html);
  if (!options.plot) return print_table(savings, window, options);
  const auto characters = use_unicode(options) ? report::PlotCharacters::kUnicode : report::PlotCharacters::kAscii;
  return write_report(plot_savings(savings, window, terminal_width(), characters));
}

}  // namespace lbf::tools
