"""What a page, a comment or a manual page refers to exists.

A reference is
    PAGE.md                     a path from the root, from the file's own folder, or of a page in docs/
    PAGE.md, "Section"          a page and one of its headings, or bold words that begin a paragraph
    PAGE.md ("Section")         the same; `http-v1 "Section"` names docs/formats/http-v1.md
    [words](PAGE.md#anchor)     a link of a page in docs/, with GitHub's anchors
    NAME(1)                     a manual page of lbf in docs/man
"""

import os
import re
import subprocess

# Pages of others.
FOREIGN = re.compile(r"https?://\S+")
FOLDERS_WITHOUT_REFERENCES = ("bench/results/", "docs/img/", "tests/structure/")

PAGE = r"[A-Za-z0-9_{}$./-]*[A-Za-z0-9_]\.md\b"
FORMAT = r"\b[a-z]+(?:-[a-z]+)*-v\d+\b"
SECTION = re.compile(rf"({PAGE}|{FORMAT})`?\)?(?:,\s|\s\(|\s)\s*((?:\"[^\"\n]{{2,90}}\"(?:,? and |, )?)+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MANUAL = re.compile(r"\b(lbf(?:d|-[a-z]+)?)(?:\\fR)?\((\d)\)")


def tracked_files(root):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()
    return [name for name in listed if os.path.isfile(os.path.join(root, name))]


def text_of(path):
    """The file's text; empty: it has none."""
    with open(path, "rb") as file:
        content = file.read()
    if b"\0" in content:
        return ""
    return content.decode("utf-8", errors="replace")


def unwrapped(text):
    """Comments as running text: a sentence that goes on in the next line is in one line here."""
    return re.sub(r"\n[ \t]*(?://+|#+(?= )|--|\*(?= )|\.\\\")?[ \t]*", " ", text)


def headings(markdown):
    """Titles of the page: headings, and bold words that begin a paragraph or a row."""
    titles = re.findall(r"^#{1,6} +(.*?) *$", markdown, re.M)
    titles += re.findall(r"^(?:[-|] *)?(?:\*\*|\*|`)(.+?)(?:\*\*|\*|`)", markdown, re.M)
    return {re.sub(r"[`*]", "", title).rstrip(".:") for title in titles}


def names_a_title(section, titles):
    """Whether it is one of the titles, or the words that one begins with."""
    words = section.lower()
    return any(title.lower() == words or re.match(rf"{re.escape(words)}\W", title.lower()) for title in titles)


def anchors(markdown):
    """GitHub's anchors of the page's headings."""
    found = set()
    for title in re.findall(r"^#{1,6} +(.*?) *$", re.sub(r"^```.*?^```", "", markdown, flags=re.M | re.S), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = 0
        while (anchor if number == 0 else f"{anchor}-{number}") in found:
            number += 1
        found.add(anchor if number == 0 else f"{anchor}-{number}")
    return found


def page_of(root, name, reference):
    """The path of the page that `name` refers to; None: there is none."""
    if not reference.endswith(".md"):
        reference = f"docs/formats/{reference}.md"
    for folder in ("", os.path.dirname(name), "docs", "docs/formats"):
        path = os.path.normpath(os.path.join(folder, reference))
        if os.path.isfile(os.path.join(root, path)):
            return path
    return None


def complaints_of(root, name, text, titles_of):
    complaints = []
    flat = FOREIGN.sub("", unwrapped(text))
    for reference in set(re.findall(PAGE, flat)):
        if "{" in reference or "$" in reference or reference.startswith("/"):
            continue
        if not page_of(root, name, reference):
            complaints.append(f"{name}: {reference}: no such page")
    for reference, quoted in SECTION.findall(flat):
        page = page_of(root, name, reference)
        if not page:
            continue
        for section in re.findall(r'"([^"]+)"', quoted):
            if not names_a_title(section.rstrip(".:,"), titles_of(page)[0]):
                complaints.append(f"{name}: {page} has no section \"{section}\"")
    if name.endswith(".md"):
        for target in LINK.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            page = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(os.path.join(root, page)):
                complaints.append(f"{name}: the link {target} leads nowhere")
            elif anchor and page.endswith(".md") and anchor not in titles_of(page)[1]:
                complaints.append(f"{name}: {page} has no anchor #{anchor}")
    for command, number in set(MANUAL.findall(text)):
        if not os.path.isfile(os.path.join(root, f"docs/man/{command}.{number}")):
            complaints.append(f"{name}: {command}({number}): no such manual page")
    return complaints


def check_references(root):
    """All complaints about the tree at `root`, and how many files were read."""
    pages = {}

    def titles_of(page):
        if page not in pages:
            markdown = text_of(os.path.join(root, page))
            pages[page] = (headings(markdown), anchors(markdown))
        return pages[page]

    complaints, files = [], 0
    for name in tracked_files(root):
        if name.startswith(FOLDERS_WITHOUT_REFERENCES) and not name.endswith("README.md"):
            continue
        text = text_of(os.path.join(root, name))
        files += 1
        complaints += complaints_of(root, name, text, titles_of)
    return sorted(complaints), files


def check_folders(root):
    """Folders that a CMakeLists.txt names and that do not exist; CMakeLists.txt that none reaches."""
    complaints, reached, waiting = [], set(), [""]
    while waiting:
        folder = waiting.pop()
        path = os.path.join(folder, "CMakeLists.txt")
        reached.add(path)
        text = re.sub(r"#.*", "", text_of(os.path.join(root, path)))
        named = re.findall(r"add_subdirectory\(\s*([\w./-]+)", text)
        for variable, listed in re.findall(r"foreach\((\w+)\s([^)]*)\)", text):
            if re.search(rf"(?:lbf_part|add_subdirectory)\(\$\{{{variable}\}}", text):
                named += listed.split()
        for name in named:
            child = os.path.normpath(os.path.join(folder, name))
            if not os.path.isfile(os.path.join(root, child, "CMakeLists.txt")):
                complaints.append(f"{path}: {name}: no such folder with a CMakeLists.txt")
            else:
                waiting.append(child)
    for name in tracked_files(root):
        if os.path.basename(name) == "CMakeLists.txt" and name not in reached:
            complaints.append(f"{name}: no other CMakeLists.txt reaches it")
    return sorted(complaints)
