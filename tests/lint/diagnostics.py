#!/usr/bin/env python3
"""Every diagnostic of the compiler and the runtime is provoked by a test that asserts its text.

    diagnostics.py [ROOT]    checks the tree at ROOT (default: this repository)

A statement is a diagnostic when it calls something that makes one, or when one of its literals reads like one. A test
covers it when a file below tests/ holds a piece of its text: one that no other diagnostic has, else the longest. What
cannot be provoked is listed in untested_diagnostics.txt with a reason; defects of Quernel itself (internal errors) need
no entry. Every finding is one line, "path:line: text: what to do".
"""
import collections
import os
import re
import sys

SOURCES = ("compiler", "runtime")
TESTS = ("tests/error", "tests/golden", "tests/unit", "tests/end_to_end", "tests/fuzz/differential")
EXEMPTIONS = "tests/lint/untested_diagnostics.txt"

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)\'|"((?:[^"\\\n]|\\.)*)"|[;{}]|^[ \t]*#[^\n]*|\n', re.S | re.M)
MAKERS = re.compile(r"\b(invalid_input|unsupported|invalid|refuse|fail|failed|fail_\w+|Failure|malformed|broken|error|error_"
                    r"|wrong_\w+|\w+_mismatch|\w+_error|unexpected|out_of_range|check|report)\(")
READS_LIKE_ONE = re.compile(r"\b(expected|cannot|unexpected|malformed|too large|lies outside|no such|damaged)\b|"
                            r"\b(is|are) not\b|\bnot supported\b|(?<![-\w])unknown(?![-\w])")
# Broken invariants of our own code, and texts that are no diagnostics.
NOT_ONE = re.compile(r"\b(internal_error|link_error|QUERNEL_UNREACHABLE|QUERNEL_ASSERT|static_assert|fatal|add_option"
                     r"|add_flag|add_subcommand|footer|runtime_error)\(")
# A function of a file, or a lambda, that makes nothing but internal errors.
MAKES_INTERNAL = re.compile(r"(\w+)(?: = \[&?\])?\((?:[^;{}()]|\{\}|\([^()]*\))*\)(?: const)? \{\s*"
                            r"(?:return |errors_\.push_back\()internal_error\(")
SHORTEST = 8


def files(root, folders, suffixes):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(place, name)
                    with open(path, encoding="utf-8", errors="replace") as f:
                        yield os.path.relpath(path, root), f.read()


def unescaped(literal):
    return re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), literal)


def pieces(literal):
    """The fixed parts of a message that a test may quote: without placeholders, quotes at the ends and ", found"."""
    text = unescaped(literal)
    parts = re.split(r"\{[^{}]*\}|%[-\d.]*l*[a-z]|,? found\b|\n", text)
    return [p for p in (part.strip(" ,;:.'\"()") for part in parts) if len(p) >= SHORTEST and re.search("[a-z]{3}", p)]


def statements(text):
    """Line, code without literals, and literals (adjacent ones joined) of each statement."""
    line, first, code, literals, end = 1, 1, "", [], 0
    for m in TOKEN.finditer(text):
        between = text[end:m.start()]
        if between.strip() and not code.strip():
            first = line
        code, end, token = code + between, m.end(), m.group()
        if m.group(1) is not None:
            if literals and code.endswith('""') or literals and re.search(r'""\s+$', code):
                literals[-1] += m.group(1)
            else:
                literals.append(m.group(1))
            code = code.rstrip() + '""'
        elif token in (";", "{", "}"):
            # A brace inside an expression, as in {.file = path}, does not end the statement.
            if token == ";" or code.count("(") <= code.count(")"):
                yield first, code, literals
                code, literals = "", []
            else:
                code += token
        line += token.count("\n")


def diagnostics(root):
    """(path, line, pieces) of each diagnostic in the sources."""
    for path, text in files(root, SOURCES, (".cpp", ".h")):
        internal = set(MAKES_INTERNAL.findall(text))
        for line, code, literals in statements(text):
            is_one = MAKERS.search(code) or any(READS_LIKE_ONE.search(l) for l in literals)
            found = [p for literal in literals for p in pieces(literal)]
            is_internal = NOT_ONE.search(code) or any(re.search(rf"\b{name}\(", code) for name in internal)
            if is_one and found and not is_internal:
                yield path, line, found


def quoted_by_tests(root):
    """All text of the tests; literals of code that continue on the next line are joined."""
    texts = [text if path.endswith(".test") else re.sub(r"\\([\"'\\])", r"\1", re.sub(r'"\s+f?"', "", text))
             for path, text in files(root, TESTS, (".cpp", ".h", ".py", ".test"))]
    return "\n".join(texts)


def exemptions(root):
    """Piece of text → line number. Lines are "text | reason"."""
    path = os.path.join(root, EXEMPTIONS)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        lines = [(number, line.strip()) for number, line in enumerate(f, 1)]
    return {line.split(" | ")[0]: number for number, line in lines if line and not line.startswith("#") and " | " in line}


def findings(root):
    found, tests, exempt = list(diagnostics(root)), quoted_by_tests(root), exemptions(root)
    uses = collections.Counter(p for _, _, texts in found for p in set(texts))
    needed = set()
    for path, line, texts in found:
        own = [p for p in texts if uses[p] == 1] or [max(texts, key=len)]
        if any(p in tests for p in own):
            continue
        excuses = [e for e in exempt if any(e in p for p in texts)]
        needed.update(excuses)
        if not excuses:
            yield (f"{path}:{line}: \"{max(own, key=len)}\": no test provokes this diagnostic: write one that asserts its "
                   f"text (tests/error/README.md says where), or say in {EXEMPTIONS} why it cannot be provoked")
    for text in sorted(set(exempt) - needed):
        yield f"{EXEMPTIONS}:{exempt[text]}: \"{text}\": exempts nothing: remove the line"


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(here))
    found = list(findings(root))
    print(*found, sep="\n")
    print(f"{len(list(diagnostics(root)))} diagnostics, {len(exemptions(root))} exemptions, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
