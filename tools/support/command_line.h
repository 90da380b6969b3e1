// What the mains have in common: the options are parsed, errors become a message and an exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <optional>
#include <string>

#include "tools/support/message.h"

namespace lbf::tools {

// An exit status where there is nothing more to do: --help and --version are printed, or the options are
// wrong.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv, const Messages& messages) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto given = app.get_subcommands();
    const bool has_commands = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
    const std::string command = app.get_name() + (given.empty() ? "" : " " + given.front()->get_name());
    return messages.fail(kExitUsage, std::string(error.what()) + "; " + command + " --help lists the " +
                                         (has_commands && given.empty() ? "commands" : "options"));
  }
}

// The exit status of `run`; what it throws is an error of the command.
inline int run_command(int (*run)(int argc, char** argv), int argc, char** argv, const Messages& messages) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return messages.fail(kExitFailure, error.what());
  }
}

}  // namespace lbf::tools
