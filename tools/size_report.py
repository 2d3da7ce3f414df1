#!/usr/bin/env python3
"""Names the ten longest files and functions, and how many are over the aims (CONTRIBUTING.md). Never fails.

A function's length is from the line of its name to its closing brace, found by matching braces: close enough for a
report. A table is not a function and does not count.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN = 10
DIRECTIVES = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")
LITERALS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
CONTAINER = re.compile(r"\b(namespace|class|struct|enum|union|extern)\b")
NAME = re.compile(r"([A-Za-z_~][\w:~]*|operator\s*\S+?)\s*\(")


def aims(path):
    return (600, 120) if "/kernels/" in path else (400, 60)


def blanked(text):
    """The text with comments, literals, preprocessor lines and attributes replaced by spaces, lines kept."""
    for pattern in (LITERALS, DIRECTIVES, ATTRIBUTE):
        kept = r"[^\n\\]" if pattern is LITERALS else r"[^\n]"
        text = pattern.sub(lambda found: re.sub(kept, " ", found[0]), text)
    return text


def functions(text):
    """(name, first line, lines) of every function not inside another."""
    result, stack, start, line = [], [], 0, 1
    for position, character in enumerate(text):
        if character == "\n":
            line += 1
        elif character == "{":
            head = text[start:position]
            stripped = head.strip()
            named = NAME.search(stripped)
            inside_containers = all(kind == "container" for kind, _, _ in stack)
            if inside_containers and named and not stripped.endswith("="):
                stack.append(("function", named[1], line - stripped.count("\n")))
            elif inside_containers and CONTAINER.search(stripped):
                stack.append(("container", "", line))
            else:
                stack.append(("block", "", line))
            start = position + 1
        elif character == "}":
            if stack:
                kind, name, first = stack.pop()
                if kind == "function":
                    result.append((name, first, line - first + 1))
            start = position + 1
        elif character == ";":
            start = position + 1
    return result


def main():
    files, all_functions = [], []
    for root in ("src", "apps", "include", "tests", "bench", "fuzz", "examples"):
        for path in sorted((ROOT / root).rglob("*")):
            relative = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh") or relative.startswith("tests/data/"):
                continue
            text = path.read_text(errors="replace")
            files.append((text.count("\n"), relative))
            for name, first, length in functions(blanked(text)):
                all_functions.append((length, f"{relative}:{first} {name}"))
    for kind, rows, aim in (("files", files, 0), ("functions", all_functions, 1)):
        over = [row for row in rows if row[0] > aims("/" + row[1])[aim]]
        lines = sum(length for length, _ in rows)
        print(f"size: {len(rows)} {kind}, {lines} lines, {len(over)} over the aim; longest:")
        for length, name in sorted(rows, key=lambda row: (-row[0], row[1]))[:SHOWN]:
            print(f"  {length:5} {name}{'  (over)' if length > aims('/' + name)[aim] else ''}")


if __name__ == "__main__":
    main()
