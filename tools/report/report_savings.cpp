#include "tools/report/report_savings.h"

#include <cstdio>
#include <string>

#include "report/savings.h"
#include "report/text.h"
#include "tools/report/report_message.h"
#include "tools/report/report_picture.h"
#include "tools/report/report_query.h"

namespace lbf::tools {
namespace {

// The table between the sentences; scripts get the table on standard output, and the sentences on stderr.
int print_table(const report::Savings& savings, const report::Selection& selection, const ReportOptions& options) {
  const std::string sum = report::savings_sentence(savings, selection);
  const std::string unknown = report::unknown_sentence(savings);
  const std::string table = render_savings(savings, table_style(options));
  if (options.any_parsable()) {
    if (!unknown.empty()) kReportMessages.note(unknown);
    return write_report(table);
  }
  std::string out = report::wrap(sum, report::kTextWidth, 0);
  if (!table.empty()) out += '\n' + table;
  if (!unknown.empty()) out += '\n' + report::wrap(unknown, report::kTextWidth, 0);
  return write_report(out);
}

}  // namespace

int print_savings(HttpClient& client, report::Selection& selection, const ReportOptions& options) {
  report::Savings savings;
  const auto is_whole = ask_all_rows(client, selection, [&savings](report::Step& step) { savings.add(step); });
  if (!is_whole) return kReportMessages.fail(is_whole.error());
  if (!*is_whole)
    kReportMessages.warn("more steps began in one second than lbfd lists: some are missing; ask with -A or -r");
  if (options.json) return write_report(savings_json(savings, selection));
  if (!options.html.empty()) return write_page(savings_html(savings, selection, LBF_VERSION), options.html);
  if (!options.plot) return print_table(savings, selection, options);
  const auto characters = use_unicode(options) ? report::PlotCharacters::kUnicode : report::PlotCharacters::kAscii;
  return write_report(plot_savings(savings, selection, terminal_width(), characters));
}

}  // namespace lbf::tools
