#!/usr/bin/env python3
"""Checks that sources which are compiled in groups stand alone, too.

    tools/check_alone.py BUILD

In a group a source sees what the ones before it include and name in anonymous namespaces: it may compile and mean
another function than its author did. Each source of the program (tests are namespaces of their own) is read by the
compiler alone, with the flags of its group and the precompiled headers; no code is made.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

INCLUDED = re.compile(r'^#include "([^"]+\.cpp)"', re.MULTILINE)


def commands(build):
    """(source, command that reads it alone) of each source of a group."""
    database = subprocess.run(["ninja", "-C", build, "-t", "compdb"], check=True, capture_output=True, text=True)
    for entry in json.loads(database.stdout):
        group = pathlib.Path(entry["directory"], entry["file"])
        if not re.search(r"/Unity/.*\.cxx$", entry["file"]) or re.search(r"/(test_|weft_test_)", entry["file"]):
            continue
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if re.search(r"/(g|c)\+\+", word)):]
        for option in ("-o", "-MT", "-MF", "-c"):
            if option in words:
                at = words.index(option)
                del words[at:at + 2]
        words = [word for word in words if word not in ("-MD", "-fpch-preprocess")]
        for source in INCLUDED.findall(group.read_text()):
            yield source, words + ["-fsyntax-only", source]


def errors_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    sources = list(commands(build))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for (source, _), errors in zip(sources, threads.map(errors_of, [command for _, command in sources])):
            if errors:
                failed += 1
                print(f"{source} does not stand alone:\n{errors}")
    print(f"alone: {len(sources)} sources of groups, {failed} do not stand alone")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
