#!/usr/bin/env python3
"""Writes src/io/unicode_differences.def: characters of which Hugging Face's tokenizers has other properties than utf8proc

    tools/unicode_differences.py > src/io/unicode_differences.def

It needs libutf8proc.so.2, and tokenizers from PyPI.
"""

import ctypes

import tokenizers
from tokenizers import normalizers, pre_tokenizers

HEADER = """\
// Written by tools/unicode_differences.py with tokenizers {version} (PyPI): the characters of which it has other
// properties than utf8proc {utf8proc}, which has Unicode {unicode}.
// WEFT_UNICODE_DIFFERENCE(first, last, property)"""

WHITE_SPACE = set("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
JOINERS = "\u200c\u200d"
# So and yet Alphabetic: circled, squared and negative letters.
LETTER_SIGNS = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]


CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
# The options of utf8proc_map: stable, and decomposed or also compatible.
FORMS = {"NFD": 2 | 16, "NFKD": 2 | 16 | 4}

library = ctypes.CDLL("libutf8proc.so.2")
library.utf8proc_version.restype = ctypes.c_char_p
library.utf8proc_unicode_version.restype = ctypes.c_char_p
library.utf8proc_map.restype = ctypes.c_ssize_t


def category(character):
    return CATEGORIES[library.utf8proc_category(ord(character))]


def in_form(name, character):
    text = character.encode()
    result = ctypes.c_char_p()
    library.utf8proc_map(text, ctypes.c_ssize_t(len(text)), ctypes.byref(result), FORMS[name])
    return result.value.decode()


def is_word(character):
    signs = any(first <= ord(character) <= last for first, last in LETTER_SIGNS)
    return category(character)[0] in "LM" or category(character) in ("Nd", "Nl", "Pc") or signs or character in JOINERS


def bert(**what):
    given = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**given, **what})


def splits(step, character):
    return len(step.pre_tokenize_str("a" + character + "b")) > 1


def forms_differ(character):
    return any(getattr(normalizers, name)().normalize_str(character) != in_form(name, character) for name in FORMS)


def differences():
    clean, strip = bert(clean_text=True), bert(strip_accents=True)
    combining, punctuation = normalizers.StripAccents(), pre_tokenizers.Punctuation()
    digits, words = pre_tokenizers.Digits(), pre_tokenizers.Whitespace()
    for code in range(1, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        if c not in WHITE_SPACE and c != "\ufffd":
            if (clean.normalize_str(c) == "") != (category(c) in ("Cc", "Cf", "Co")):
                yield code, "control"
        if (strip.normalize_str(c) == "") != (category(c) == "Mn"):
            yield code, "nonspacing_mark"
        is_mark = combining.normalize_str(c) == ""
        if is_mark != (category(c)[0] == "M"):
            yield code, "combining_mark"
        # The tables of the forms are those of combining marks: a mark that they lack does not combine.
        if forms_differ(c) or (category(c)[0] == "M" and not is_mark):
            yield code, "form"
        if splits(punctuation, c) != (category(c)[0] == "P" or c in "$+<=>^`|~"):
            yield code, "punctuation"
        if splits(digits, c) != (category(c)[0] == "N"):
            yield code, "numeric"
        if c not in WHITE_SPACE and splits(words, c) == is_word(c):
            yield code, "word"


def main():
    ranges = {}
    for code, name in differences():
        of_name = ranges.setdefault(name, [])
        if of_name and of_name[-1][1] == code - 1:
            of_name[-1][1] = code
        else:
            of_name.append([code, code])
    print(HEADER.format(version=tokenizers.__version__, utf8proc=library.utf8proc_version().decode(),
                        unicode=library.utf8proc_unicode_version().decode()))
    for name in sorted(ranges):
        for first, last in ranges[name]:
            print(f"WEFT_UNICODE_DIFFERENCE(0x{first:04X}, 0x{last:04X}, {name})")


if __name__ == "__main__":
    main()
