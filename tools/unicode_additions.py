#!/usr/bin/env python3
"""Writes src/io/unicode_additions.def: the code points that Unicode 15 to 16 assigned, with their category and script.

    tools/unicode_additions.py > src/io/unicode_additions.def

It needs a Python with Unicode 14 in `unicodedata` (3.11), unicodedata2==16.0.0 and fonttools from PyPI.
"""

import sys
import unicodedata

import unicodedata2
from fontTools import unicodedata as scripts

HEADER = """\
// Written by tools/unicode_additions.py from unicodedata2 {new} (PyPI) and the scripts of fontTools: the code points
// that Unicode assigned after version {old}, which is the version of PCRE2 10.42.
// WEFT_UNICODE_ADDITION(first, last, category, script)"""


def rows():
    for code in range(0x110000):
        character = chr(code)
        category = unicodedata2.category(character)
        if unicodedata.category(character) == "Cn" and category != "Cn":
            yield code, category, scripts.script_name(scripts.script(character))


def main():
    if (unicodedata.unidata_version, unicodedata2.unidata_version) != ("14.0.0", "16.0.0"):
        sys.exit(f"unicode_additions.py wants Unicode 14.0.0 and 16.0.0, but has {unicodedata.unidata_version} and "
                 f"{unicodedata2.unidata_version}")
    ranges = []
    for code, category, script in rows():
        if ranges and ranges[-1][1:] == [code - 1, category, script]:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, category, script])
    print(HEADER.format(new=unicodedata2.unidata_version, old=unicodedata.unidata_version))
    for first, last, category, script in ranges:
        print(f'WEFT_UNICODE_ADDITION(0x{first:04X}, 0x{last:04X}, "{category}", "{script.replace(" ", "_")}")')


main()
