#include "tools/report/report_scaling.h"

#include <string>
#include <utility>
#include <vector>

#include "report/scaling.h"
#include "report/text.h"
#include "tools/report/report_message.h"
#include "tools/report/report_picture.h"
#include "tools/report/report_query.h"

namespace lbf::tools {
namespace {

// The table between the sentences, or the plot; below it a command. Scripts get the table on standard output, and the
// sentences on stderr.
std::string text_of(const report::ScalingAnswer& answer, const ReportOptions& options) {
  if (options.plot) return plot_scaling(answer, plot_style(options));
  const std::string table = render_scaling(answer, table_style(options));
  const std::string sentences = scaling_sentences(answer);
  if (options.any_parsable()) {
    if (!sentences.empty()) kReportMessages.note(sentences);
    return table;
  }
  std::string out = report::wrap(scaling_head(answer), report::kTextWidth, 0);
  if (!table.empty()) out += '\n' + table;
  if (!sentences.empty()) out += '\n' + report::wrap(sentences, report::kTextWidth, 0);
  if (const std::string command = whatif_command(answer); !command.empty())
    out += "A replay of the program itself at a rank count that did not run:\n  " + command + '\n';
  return out;
}

}  // namespace

int print_scaling(HttpClient& client, report::Selection& selection, const ReportOptions& options) {
  const bool are_named = !selection.jobs.empty();
  std::vector<report::Step> steps;
  const auto take = [&steps](report::Step& step) { steps.push_back(std::move(step)); };
  if (are_named) {
    if (auto asked = ask_rows(client, selection, take); !asked) return kReportMessages.fail(asked.error());
  } else {
    const auto is_whole = ask_all_rows(client, selection, take);
    if (!is_whole) return kReportMessages.fail(is_whole.error());
    if (!*is_whole)
      kReportMessages.warn("more steps began in one second than lbfd lists: some are missing; ask with -A or -r");
  }
  if (steps.empty() && are_named) return kReportMessages.fail(nothing_known(client, selection));
  const report::ScalingQuestion question{options.weak ? advisor::Problem::kSameForEachRank : advisor::Problem::kSame,
                                         options.ranks};
  std::vector<std::vector<report::Step>> families;
  if (are_named) {
    families.push_back(std::move(steps));
  } else {
    families = families_of(std::move(steps));
  }
  std::vector<report::ScalingAnswer> answers;
  for (const std::vector<report::Step>& family : families) {
    auto answer = scaling_of(family, question);
    if (!answer && are_named) return kReportMessages.fail(answer.error());
    if (answer) {
      answers.push_back(std::move(*answer));
    } else {
      kReportMessages.note(command_line(family.front()) + ": " + answer.error().message);
    }
  }
  if (options.json) return write_report(scaling_json(answers));
  if (answers.empty()) {
    kReportMessages.note("no program ran with the same arguments at two rank counts" +
                         report::describe_window(selection) + "; name runs with -j, or an earlier -S");
  }
  if (!options.html.empty()) return write_page(scaling_html(answers, LBF_VERSION), options.html);
  std::string out;
  for (const report::ScalingAnswer& answer : answers) out += (out.empty() ? "" : "\n") + text_of(answer, options);
  return write_report(out);
}

}  // namespace lbf::tools
