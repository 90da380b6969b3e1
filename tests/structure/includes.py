"""Who includes whom: reads the rules from the table in docs/architecture.md and the includes from the sources.

The table under "Folders, and who may include whom" is the one place where the rules stand. A row is
    | `folder/` | what it is | what it may include |
and the last cell is made of
    `name`            that folder, or that one file; {a,b} is expanded; a name with no project folder of that name
                      (`mpi.h`) is a system header that only the folders naming it may include
    all of `name`     every folder under it, with what those may include
    the core          the rows whose folder the heading row of the replay core names: network, match, replay
    everything below them (system headers of other rows too) / nothing of the project
A file that the second cell names in backticks (`predictor/daemon/lbfd.cpp` is wiring) is under the rule of that row.

Beside it stand the promises of the same document and about the world outside the project:
the capture and the replay core do without whole families of system headers (FORBIDDEN_SYSTEM_HEADERS).
"""

import os
import re

SOURCE_SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".cc", ".h.in", ".cpp.in", ".c.in")
# Folders that hold the product's sources; tests and benchmarks may include everything.
FREE_FOLDERS = ("tests", "bench", "build", "docs", "etc", "cmake", "examples")
CORE = ("predictor/engine/network", "predictor/engine/match", "predictor/engine/replay")

# folder -> why, and the system headers that break the promise (regular expression over the included name)
FORBIDDEN_SYSTEM_HEADERS = {
    "base": ("base is below MPI, Slurm and the database", r"mpi\.h|slurm/.*|sqlite3\.h|SQLiteCpp/.*"),
    "event": ("the event formats know no transport and no store", r"mpi\.h|slurm/.*|sqlite3\.h|SQLiteCpp/.*|curl/.*|boost/.*"),
    "spank_plugin/capture": ("the capture is libc and mpi.h only",
                             r"slurm/.*|sqlite3\.h|SQLiteCpp/.*|curl/.*|boost/.*|munge\.h|zstd\.h|spdlog/.*|fmt/.*"),
    "spank_plugin/procedures": ("it comes into the user's program: no MPI, Slurm, network or log library",
                                r"mpi\.h|slurm/.*|sqlite3\.h|SQLiteCpp/.*|curl/.*|boost/.*|munge\.h|zstd\.h|spdlog/.*|fmt/.*|iostream"),
    "spank_plugin/plugin": ("slurmstepd loads no threads and no curl", r"curl/.*|thread|boost/.*|sqlite3\.h|mpi\.h"),
    "predictor/engine/network": ("the core has no sockets, sqlite, threads or clock", None),
    "predictor/engine/match": ("the core has no sockets, sqlite, threads or clock", None),
    "predictor/engine/replay": ("the core has no sockets, sqlite, threads or clock", None),
    "predictor/engine/metric": ("the core has no sockets, sqlite, threads or clock", None),
}
CORE_FORBIDDEN = (r"thread|mutex|shared_mutex|condition_variable|future|atomic|chrono|ctime|time\.h|sys/.*|unistd\.h|"
                  r"netinet/.*|arpa/.*|sqlite3\.h|SQLiteCpp/.*|curl/.*|boost/(asio|beast).*|munge\.h|mpi\.h|slurm/.*")


class RuleError(Exception):
    """The table itself cannot be understood."""


class Rule:
    def __init__(self):
        self.folders = set()          # project folders, with everything in them
        self.files = set()            # single project files
        self.system_headers = set()   # headers that only rows naming them may include
        self.everything = False


def expand_braces(name):
    match = re.search(r"\{([^}]*)\}", name)
    if not match:
        return [name]
    return [expanded for part in match[1].split(",")
            for expanded in expand_braces(name[:match.start()] + part.strip() + name[match.end():])]


def table_rows(markdown):
    """(folder, what, may include) of each row of the table under the heading that says who may include whom."""
    section = re.search(r"^## [^\n]*who may include whom[^\n]*\n(.*?)(?=^## |\Z)", markdown, re.M | re.S)
    if not section:
        raise RuleError("docs/architecture.md has no section 'Folders, and who may include whom'")
    rows = []
    for line in section[1].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            rows.append((cells[0].strip("`").rstrip("/"), cells[1], cells[2]))
    if not rows:
        raise RuleError("the table of docs/architecture.md has no rows of the form | `folder/` | what | may include |")
    return rows


def read_rules(markdown):
    """{folder or file: Rule} from the text of docs/architecture.md."""
    rows = table_rows(markdown)
    folders = [folder for folder, _, _ in rows]
    top_folders = {folder.split("/")[0] for folder in folders}
    rules, pending = {}, []
    for folder, what, cell in rows:
        rule = Rule()
        rules[folder] = rule
        for name in re.findall(r"`([^`]+\.(?:cpp|h))`", what):
            rules[name] = rule
        rest = cell
        for phrase in re.findall(r"all of `([^`]+)`", rest):
            pending.append((rule, phrase.rstrip("/")))
        for listed in re.findall(r"`([^`]+)`", rest):
            for name in expand_braces(listed):
                name = name.rstrip("/")
                if name.split("/")[0] not in top_folders:
                    rule.system_headers.add(name)
                elif name.endswith((".h", ".hpp")):
                    rule.files.add(name)
                else:
                    rule.folders.add(name)
        words = re.sub(r"`[^`]+`", "", rest)
        if re.search(r"\bthe core\b", words):
            pending.extend((rule, name) for name in CORE)
        if "everything below them" in words:
            rule.everything = True
        unknown = re.sub(r"all of|the core|everything below them|nothing of the project|[,.\s]|\band\b", "", words)
        if unknown:
            raise RuleError(f"docs/architecture.md, row `{folder}`: the words '{unknown}' in \"{cell}\" mean nothing to this test")
    # "all of X" and "the core" bring what those folders may include themselves.
    for rule, name in pending:
        rule.folders.add(name)
        for folder in folders:
            if folder == name or folder.startswith(name + "/"):
                rule.folders |= rules[folder].folders
    return rules


def rule_of(path, rules):
    """The rule of the longest folder (or file) that `path` lies in, with that name; (None, None) without one."""
    if path in rules:
        return path, rules[path]
    folder = os.path.dirname(path)
    while folder:
        if folder in rules:
            return folder, rules[folder]
        folder = os.path.dirname(folder)
    return None, None


def includes_of(text):
    """(line number, '"' or '<', name) of each include directive; comments are no directives."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]', line)
        if match:
            found.append((number, match[1], match[2]))
    return found


def check_file(path, text, rules, project_folders):
    """Complaints, one line each, about the includes of one source file. `path` is relative to the root."""
    own_folder, rule = rule_of(path, rules)
    if rule is None:
        return [f"{path}: docs/architecture.md says nothing about its folder; add a row to the table"]
    own_folder = os.path.dirname(path) if own_folder == path else own_folder
    complaints = []
    named_system_headers = set().union(*(other.system_headers for other in rules.values()))
    why, forbidden = FORBIDDEN_SYSTEM_HEADERS.get(own_folder, ("", None))
    if why and forbidden is None:
        forbidden = CORE_FORBIDDEN
    for number, _, name in includes_of(text):
        where = f"{path}:{number}: includes {name}"
        if name.split("/")[0] not in project_folders or "/" not in name:
            if name.startswith("..") or "/../" in name:
                complaints.append(f"{where}: name it from the project's root")
            elif name in named_system_headers and name not in rule.system_headers and not rule.everything:
                complaints.append(f"{where}, which the table of docs/architecture.md gives to other folders only")
            elif forbidden and re.fullmatch(forbidden, name):
                complaints.append(f"{where}: {why}")
            continue
        if rule.everything or name.startswith(own_folder + "/") or name in rule.files:
            continue
        if any(name.startswith(folder + "/") for folder in rule.folders):
            continue
        complaints.append(f"{where}, but `{own_folder}` may include only: "
                          + (", ".join(sorted(rule.folders | rule.files)) or "nothing of the project"))
    return complaints


def check_tree(root):
    """All complaints about the tree at `root`, and how many files and includes were looked at."""
    with open(os.path.join(root, "docs/architecture.md"), encoding="utf-8") as file:
        rules = read_rules(file.read())
    project_folders = {folder.split("/")[0] for folder in rules}
    complaints, files, includes = [], 0, 0
    for folder, subfolders, names in os.walk(root):
        relative = os.path.relpath(folder, root)
        relative = "" if relative == "." else relative
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".")
                               and os.path.join(relative, name) not in FREE_FOLDERS)
        for name in sorted(names):
            if not name.endswith(SOURCE_SUFFIXES):
                continue
            path = os.path.join(relative, name)
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            files += 1
            includes += len(includes_of(text))
            complaints += check_file(path, text, rules, project_folders)
    return complaints, files, includes
