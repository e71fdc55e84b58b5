#!/usr/bin/env python3
"""Holds the rules that no compiler holds: who may include whom, how long a file may be, what lies where.

    lint.py [ROOT]             checks the tree at ROOT (default: this repository) against rules.py
    lint.py --format [ROOT]    checks the formatting of C++ sources; exits 77 (skipped) where clang-format is missing

Every finding is one line, "path:line: what is wrong [rule]". Needs nothing but Python.
"""
import os
import re
import shutil
import subprocess
import sys

import rules

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CPP_SUFFIXES = (".cpp", ".h", ".hpp", ".c")
SKIPPED = 77


class Tree:
    """The files of the repository: what git tracks or would track, else everything outside build folders."""

    def __init__(self, root):
        self.root = root
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True) if os.path.exists(os.path.join(root, ".git")) else None
        if listed is not None and listed.returncode == 0:
            names = [n for n in listed.stdout.decode().split("\0") if n]
            self.paths = sorted(n for n in set(names) if os.path.isfile(os.path.join(root, n)))
        else:
            self.paths = sorted(self._walk())
        self.known = set(self.paths)

    def _walk(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f != ".git" and f != "__pycache__" and not f.startswith("build")]
            for f in files:
                yield os.path.relpath(os.path.join(folder, f), self.root)

    def lines(self, path):
        """The lines of a text file; none for a binary one."""
        with open(os.path.join(self.root, path), "rb") as f:
            data = f.read()
        return [] if b"\0" in data[:4096] else data.decode(errors="replace").splitlines()

    def includes(self, path):
        for number, line in enumerate(self.lines(path), 1):
            m = INCLUDE.match(line)
            if m:
                yield number, m.group(1), m.group(2)


def layer_of(path):
    """The longest entry of LAYERS that the path belongs to; an entry is a folder, or a file with or without suffix."""
    owners = [l for l in rules.LAYERS if path.startswith(l + "/") or l in (path, os.path.splitext(path)[0])]
    return max(owners, key=len, default=None)


def allowed_layers(layer):
    """The layer, all that it lists, and all that those list."""
    found, todo = set(), [layer]
    while todo:
        l = todo.pop()
        if l not in found:
            found.add(l)
            todo += rules.LAYERS[l]
    return found


def resolve(tree, path, quote, include):
    """The file of this repository that an include names, or None."""
    if quote == "<" and not include.startswith("quernel/"):
        return None
    own = path.split("/")[0]
    sides = [own] + [s for s in ("compiler", "runtime", "tests") if s != own]
    roots = [os.path.dirname(path)] if quote == '"' else []
    for side in sides:
        roots += [side, side + "/include"]
    for r in roots + ["schemas", ""]:
        candidate = os.path.normpath(os.path.join(r, include))
        if candidate in tree.known:
            return candidate
    return None


def check_layers(tree):
    for path in tree.paths:
        if not path.endswith(CPP_SUFFIXES) or path.startswith("."):
            continue
        layer = layer_of(path)
        if layer is None:
            yield path, 1, "belongs to no folder of LAYERS in tests/lint/rules.py: move it, or add the folder there"
            continue
        allowed = allowed_layers(layer)
        for number, quote, include in tree.includes(path):
            target = resolve(tree, path, quote, include)
            if target is None or (layer == "examples" and quote == "<"):
                continue
            target_layer = layer_of(target)
            if target_layer is not None and target_layer not in allowed:
                yield path, number, f"{layer} includes {target}: expected only {', '.join(sorted(allowed))}"


def check_libraries(tree):
    for path in tree.paths:
        if not path.endswith(CPP_SUFFIXES):
            continue
        for number, _, include in tree.includes(path):
            for pattern, owners, why in rules.LIBRARIES:
                if re.match(pattern, include) and not path.startswith(owners):
                    yield path, number, f"includes <{include}>: {why}; expected only in {', '.join(owners)}"


def standard_headers(tree, path, known):
    """The headers of the standard library that a file includes, itself or by files of this repository."""
    if path not in known:
        known[path] = set()  # of a file that includes itself: nothing more
        for _, quote, include in tree.includes(path):
            target = resolve(tree, path, quote, include)
            known[path] |= {include} if target is None else standard_headers(tree, target, known)
    return known[path]


def check_standard_names(tree):
    known = {}
    for path in tree.paths:
        if not path.startswith(("compiler/", "tests/")) or not path.endswith((".cpp", ".h")):
            continue
        text = re.sub(r'"(\\.|[^"\\\n])*"|//[^\n]*', "", "\n".join(tree.lines(path)))
        for header, names in rules.STANDARD_NAMES.items():
            m = re.search(names, text)
            if m and header not in standard_headers(tree, path, known):
                yield path, text.count("\n", 0, m.start()) + 1, f"names {m[0].rstrip('(<')} without <{header}>"


def arguments_at(text, start):
    """The arguments of a call: what stands from `start`, behind its parenthesis, to the one that closes it."""
    depth = 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i]
    return text[start:]


def check_lowering(tree):
    for path in tree.paths:
        if not path.startswith(rules.LOWERING) or not path.endswith(CPP_SUFFIXES):
            continue
        text = re.sub(r'"[^"\n]*"|//[^\n]*', "", "\n".join(tree.lines(path)))
        line_of = lambda place: text.count("\n", 0, place) + 1  # noqa: E731
        for m in re.finditer(r"\btarget_?\s*(?:\.|->)\s*(\w+)", text):
            if m[1] not in rules.LOWERING_ASKS:
                yield path, line_of(m.start()), (f"asks a target for {m[1]}: expected only {', '.join(rules.LOWERING_ASKS)}; "
                                                 "decide it in compiler/schedule/plans")
        for m in re.finditer(r"\bschedule::(\w+)\(", text):
            if re.search(r"\btarget_?\b", arguments_at(text, m.end())):
                yield path, line_of(m.start()), f"calls schedule::{m[1]} with a target: decide it in compiler/schedule/plans"


def check_length(tree):
    for path in tree.paths:
        if not path.endswith(rules.SOURCE_SUFFIXES):
            continue
        lines = tree.lines(path)
        if len(lines) > rules.TOO_LONG_FILE:
            yield path, 1, f"{len(lines)} lines: split it, {rules.TOO_LONG_FILE} is the limit"
        elif len(lines) > rules.LONG_FILE and not re.search(rules.REASON, "\n".join(lines[:rules.REASON_WITHIN])):
            yield path, 1, (f"{len(lines)} lines: split it, or say at its top why not "
                            f"(\"over {rules.LONG_FILE} lines because ...\")")


def check_headers(tree):
    for path in tree.paths:
        if path.endswith((".h", ".hpp")):
            lines = tree.lines(path)
            if not lines or not lines[0].startswith(("//", "/*")):
                yield path, 1, "a header opens with a comment: what it is, and which invariant it relies on"


def check_test_names(tree):
    for path in tree.paths:
        if not (path.startswith("tests/") and path.endswith((".cpp", ".h"))):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            m = re.match(rules.TEST, line)
            if m and not re.fullmatch(rules.TEST_NAME, m[1]):
                yield path, number, f"expected a test named in words joined by underscores (a_name_like_this), found {m[1]}"


def check_machine_paths(tree):
    for path in tree.paths:
        for number, line in enumerate(tree.lines(path), 1):
            m = re.search(rules.MACHINE_PATH, line)
            if m:
                yield path, number, f"a path of one machine: {line[m.start():m.start() + 40].strip()}"


def check_top_level(tree):
    seen = set()
    for path in tree.paths:
        first = path.split("/")[0]
        if not first.startswith(".") and first not in rules.TOP_LEVEL and first not in seen:
            seen.add(first)
            yield first, 1, f"not part of the top level: {', '.join(sorted(rules.TOP_LEVEL))}"


def check_documented(tree):
    for folder in rules.DOCUMENTED:
        prefix = "" if folder == "." else folder + "/"
        readme = prefix + "README.md"
        if readme not in tree.known and any(p.startswith(prefix) for p in tree.paths):
            yield readme, 1, "missing: the folder holds files and says nowhere what they are"


def prose_of_readme(lines):
    """(line, words) of Markdown without its code; words "" end a paragraph, an item of a list or a row of a table."""
    fenced = False
    for number, line in enumerate(lines, 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fence or fenced:
            yield number, ""
            continue
        words, begins = re.subn(r"^\s*(\||#+|-\s|\*\s|\d+\.\s)\s*", "", line)
        if begins:
            yield number, ""
        yield number, re.sub(r"`[^`]*`", "`", words).replace("**", "").strip()


def prose_of_comments(lines):
    """(line, words) of the comments of C or C++; words "" end a comment."""
    inside = False                                                       # of /* */
    for number, line in enumerate(lines, 1):
        if not inside:
            code = re.sub(r'"(\\.|[^"\\])*"', lambda s: " " * len(s[0]), line)
            opening = re.search(r"//|/\*", code)
            if not opening or code[:opening.start()].strip():
                yield number, ""
            if not opening:
                continue
            line, inside = line[opening.end():], opening[0] == "/*"
        words, end, _ = line.partition("*/") if inside else (line, "", "")
        inside = inside and not end
        yield number, words.strip(" *<!")


def check_prose(tree):
    for path in tree.paths:
        is_readme = os.path.basename(path) == "README.md"
        if not is_readme and path not in rules.PROSE_HEADERS:
            continue
        text, places = "", []                                            # paragraphs; where each line begins there
        for number, words in (prose_of_readme if is_readme else prose_of_comments)(tree.lines(path)):
            text += "\n" if not words else "" if text.endswith("\n") else " "
            places.append((len(text), number))
            text += words
        found = [(m.start(), f'expected {instead}, found "{m[0].strip()}"')
                 for pattern, instead in rules.PRIVATE_WORDS for m in re.finditer(pattern, text, re.MULTILINE)]
        for start, message in sorted(found):
            yield path, max(number for place, number in places if place <= start), message


ARCHITECTURE_LINE = re.compile(r'QNL_ARCHITECTURE\((\w+), (\d+), "([^"]*)"\)')
FEATURE_LINE = re.compile(r'QNL_FEATURE\((\w+), (\w+), (\d+), "([^"]*)", "([^"]*)", "([^"]*)", ([\w |]+), "([^"]*)"\)$')


def check_features(tree):
    """The table of features in the README has a row for each line of the list that has an option, in its order, and no other."""
    if rules.FEATURES not in tree.known:
        return
    names, rows = {}, []
    for number, line in enumerate(tree.lines(rules.FEATURES), 1):
        if m := ARCHITECTURE_LINE.match(line):
            names[m.group(1)] = m.group(3)
        elif m := FEATURE_LINE.match(line):
            arch, _, _, name, option, _, _, sentence = m.groups()
            if option:
                rows.append(f"| `+{option}` | {names.get(arch, arch)} | {name} | {sentence} |")
        elif line.startswith("QNL_"):
            yield rules.FEATURES, number, "expected QNL_FEATURE(arch, constant, bit, \"name\", \"option\", \"llvm\", needs, \"sentence\")"
    found = [(n, l) for n, l in enumerate(tree.lines(rules.FEATURE_TABLE), 1) if l.startswith("| `+")] \
        if rules.FEATURE_TABLE in tree.known else []
    for i, row in enumerate(rows):
        number, line = found[i] if i < len(found) else (found[-1][0] if found else 1, "no row")
        if line != row:
            yield rules.FEATURE_TABLE, number, f"expected '{row}' of {rules.FEATURES}, found {line}"
    for number, line in found[len(rows):]:
        yield rules.FEATURE_TABLE, number, f"a row that {rules.FEATURES} does not have: {line}"


CHECKS = {"layers": check_layers, "libraries": check_libraries, "lowering": check_lowering, "standard-names": check_standard_names,
          "length": check_length, "headers": check_headers,
          "test-names": check_test_names,
          "machine-paths": check_machine_paths, "top-level": check_top_level, "documented": check_documented,
            "prose": check_prose, "features": check_features}


def findings(tree):
    for rule, check in CHECKS.items():
        for path, line, message in check(tree):
            yield f"{path}:{line}: {message} [{rule}]"


def check_format(tree):
    """Exit status of the formatting check."""
    tool = shutil.which("clang-format")
    if tool is None:
        print("skipped: clang-format is not installed")
        return SKIPPED
    sources = [p for p in tree.paths if p.endswith(CPP_SUFFIXES)]
    run = subprocess.run([tool, "--dry-run", "--Werror", "--ferror-limit=1", *sources], cwd=tree.root,
                         capture_output=True, text=True) if sources else None
    if run is None or run.returncode == 0:
        print(f"{len(sources)} files, all formatted")
        return 0
    bad = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "-Wclang-format-violations" in line})
    print(*(f"{p}: not formatted (clang-format -i {p}) [format]" for p in bad), sep="\n")
    return 1


def main(arguments):
    wants_format = "--format" in arguments
    roots = [a for a in arguments if not a.startswith("--")]
    here = os.path.dirname(os.path.abspath(__file__))
    tree = Tree(roots[0] if roots else os.path.dirname(os.path.dirname(here)))
    if wants_format:
        return check_format(tree)
    found = list(findings(tree))
    print(*found, sep="\n")
    print(f"{len(tree.paths)} files, {len(CHECKS)} rules, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
