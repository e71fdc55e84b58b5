#!/usr/bin/python3
"""Writes unicode_ranges.h, the ranges of characters that unicode.cpp looks up, from Python's table of Unicode.

  unicode_ranges.py > unicode_ranges.h
"""
import unicodedata

LAST = 0x10FFFF


def ranges(property_of):
    """[first, last, value] where `property_of` is not 0."""
    found = []
    for code in range(LAST + 1):
        value = int(property_of(chr(code)))
        if value and found and found[-1][1] == code - 1 and found[-1][2] == value:
            found[-1][1] = code
        elif value:
            found.append([code, code, value])
    return found


def may_compose():
    """The characters that NFC composes with one before them."""
    found = set(map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]))  # Hangul vowels and finals
    for code in range(LAST + 1):
        parts = unicodedata.decomposition(chr(code))
        if parts and not parts.startswith("<") and " " in parts:
            text = "".join(chr(int(part, 16)) for part in parts.split())
            if unicodedata.normalize("NFC", text) == chr(code):
                found.add(text[1])
    return found


def table(comment, name, entries, form):
    print(f"\n// {comment}\ninline constexpr {form} {name}[] = {{")
    line = "   "
    for first, last, value in entries:
        item = f" {{0x{first:x}, 0x{last:x}" + (f", {value}}}," if form == "ClassRange" else "},")
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def main():
    compose = may_compose()
    print(f"""// Ranges of characters, of Unicode {unicodedata.unidata_version}; unicode_ranges.py writes this file.
#pragma once

#include <cstdint>

// clang-format off
namespace language_model {{

struct Range {{
  uint32_t first, last;
}};
struct ClassRange {{
  uint32_t first, last, value;
}};""")
    table("General category L.", "kLetters", ranges(lambda c: unicodedata.category(c)[0] == "L"), "Range")
    table("General category N.", "kNumbers", ranges(lambda c: unicodedata.category(c)[0] == "N"), "Range")
    table("Canonical combining classes other than 0.", "kCombining", ranges(unicodedata.combining), "ClassRange")
    table("Characters that NFC replaces, or composes with one before them.", "kNotSurelyNfc",
          ranges(lambda c: c in compose or unicodedata.normalize("NFC", c) != c), "Range")
    print("\n}  // namespace language_model")


if __name__ == "__main__":
    main()
