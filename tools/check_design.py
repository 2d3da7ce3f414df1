#!/usr/bin/env python3
"""Fails when a dump in DESIGN.md or docs/ (PAGES) is not what the program shows.

    tools/check_design.py [BUILD]

Every fenced block of these pages without a language, or of C++, is compared with the dumps of SmolLM2-135M on AVX2: its
passes, `weft dump` and the machine code of its functions. Some one of them must have all of the block's lines in their
order. `...` stands for anything, as a line for any lines; `# v8` and the like after machine code are the page's own.
Blocks of `console` are commands. Wants the model (`make model`) and objdump.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("DESIGN.md", "docs/codegen.md", "docs/generated-piece.md")
MODEL = "smollm2-135m"


def blocks(text):
    """(line, lines) of each block that shows a dump."""
    found, begin, language = [], None, ""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if begin is None:
            begin, language = number, line[3:]
        else:
            if language in ("", "cpp"):
                found.append((begin + 1, lines[begin:number - 1]))
            begin = None
    return found


def output(command, environment):
    return subprocess.run([str(word) for word in command], check=True, text=True, capture_output=True,
                          env=environment).stdout


def machine_code(entry, folder, environment):
    """What objdump makes of the ELF object in an entry of the compile cache."""
    content = entry.read_bytes()
    at = content.find(b"\x7fELF")
    if at < 0:
        return ""
    path = pathlib.Path(folder) / "function.o"
    path.write_bytes(content[at:])
    return output(["objdump", "-d", "--no-show-raw-insn", "-M", "att,suffix", path], environment)


def dumps(weft):
    """{where from: lines} of all that there is to be seen."""
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        environment = dict(os.environ, WEFT_CPU_FEATURES="avx2", WEFT_DEBUG_DUMP_PATH=str(home / "passes"))
        timed = json.loads(output([weft, "bench", "model", MODEL, "-p", "1", "-n", "0", "-r", "1", "--json"], os.environ))
        model, cache = timed[0]["model_filename"], home / "cache"
        entries = dict(environment, WEFT_CACHE_ROOT=str(cache))
        output([weft, "complete", model, "-p", "Hi", "-n", "1"], entries)
        kernels = ["--cc.pass_config.fuse_norm_quant=false", "--ir-op-priority.fused_add_rms_norm=cpu"]
        by_kernels = dict(environment, WEFT_DEBUG_DUMP_PATH=str(home / "by_kernels"))
        output([weft, "complete", model, "-p", "Hi", "-n", "1"] + kernels, by_kernels)
        found = {str(path.relative_to(home)): path.read_text() for path in home.glob("*/*.graph")}
        for kind in (["graph", MODEL, "--stage", "traced"], ["graph", MODEL, "--stage", "split"], ["code", MODEL],
                     ["plan", MODEL]):
            found["weft dump " + " ".join(kind)] = output([weft, "dump"] + kind, environment)
        for entry in sorted((cache / "compile" / "rows").iterdir()):
            found[entry.name] = machine_code(entry, folder, environment)
    return {name: [line for _, line in plain(text.splitlines())] for name, text in found.items()}


def plain(lines):
    """(number, line) without what the page leaves out or adds: indentation, origins, notes after machine code, and
    between lines of a head such as that of `piece p2(`."""
    found, head = [], None
    for number, line in enumerate(lines):
        line = re.sub(r"\s+", " ", re.sub(r"\s+#[@ ].*", "", line)).strip()
        if head is not None:
            found[-1] = (head, found[-1][1] + ("" if found[-1][1].endswith("(") else " ") + line)
        else:
            found.append((number, line))
        if re.match(r"(graph|piece) \S+\($", line):
            head = number
        elif line.endswith("{"):
            head = None
    return found


def pattern(line):
    return re.compile(".*".join(re.escape(part) for part in line.split("...")))


def first_missing(lines, dump):
    """The number of the first line that the dump does not have after those before it; None when it has all."""
    at = 0
    for number, line in plain(lines):
        if line in ("...", ""):
            continue
        wanted = pattern(line)
        while at < len(dump) and not wanted.search(dump[at]):
            at += 1
        if at == len(dump):
            return number
        at += 1
    return None


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    found, wrong = dumps(build / "weft"), 0
    shown = [(page, *block) for page in PAGES for block in blocks((ROOT / page).read_text())]
    for page, begin, lines in shown:
        missing = {name: first_missing(lines, dump) for name, dump in found.items()}
        if None in missing.values():
            continue
        nearest = max(missing, key=missing.get)
        print(f"{page}:{begin + missing[nearest]}: no dump shows this; {nearest} has what comes before it:\n"
              f"  {lines[missing[nearest]]}")
        wrong += 1
    print(f"{len(shown) - wrong} of {len(shown)} blocks are what the program shows")
    every_page = {page for page, _, _ in shown} == set(PAGES)
    return 1 if wrong or not every_page else 0


if __name__ == "__main__":
    sys.exit(main())
