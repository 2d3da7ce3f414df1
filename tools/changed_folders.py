#!/usr/bin/env python3
"""Runs the tests that a change can affect, where all of them would take too long. The rule is here alone.

    tools/changed_folders.py run BUILD [LABEL]       runs tests of a build, of a label if one is given
    tools/changed_folders.py slow BUILD COMMIT       runs all slow tests and records the commit (make check)
    tools/changed_folders.py record sanitize COMMIT  records that all tests passed under sanitizers (make sanitize)

tools/checked_at.txt holds the two commits; what differs from the commit in the working tree has changed. A test program
that is slow or built with a sanitizer runs when the folder that it tests has changed; with AddressSanitizer the programs
of ALWAYS run every time. A slow test of FILES runs when one of its files has changed. All other tests run every time:
what a change does to the folders above shows there. Each test that does not run is printed with the reason. If the
changes are not known, everything runs: without git, without a recorded commit, or if that commit is not in the history.

A program of tests/NAME tests the layers (of tools/layers.txt) that have NAME in their path, and depends on the headers
and sources of tests/ that it includes. A layer without tests of its own affects every program that depends on it: on a
folder that its sources include, also through tests/, on what the files of these folders include, and on the layers below
each of them, which are linked or opened through its tables. So does a layer of fast tests affect a program without a
folder. A change to a file that no rule covers affects every program.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = "tools/checked_at.txt"
EVERYTHING = "everything"
# Under AddressSanitizer: parsers of files from outside, and what all else is made of.
ALWAYS = re.compile(r"base|options|io|fuzz_replay_.*")
# Nothing that a test program is built of or reads.
UNREAD = ("*.md", "docs/*", "bench/*", "LICENSE*", "Makefile", ".gitignore", ".clang-format", ".githooks/*", ".ci/*", RECORD,
          "tests/planted/*", "tests/tools/*", "tools/changed_folders.py", "tools/check_*", "tools/fetch_*",
          "tools/gpu_check/*", "tools/*device_check.sh", "tools/cubin.py", "tools/cuda_code.py",
          "tools/instruction_counts.*", "tools/make_ptx.py", "tools/relink.py", "tools/run_fuzzers.sh",
          "tools/size_report.py")
# What a test starts, compiles or reads by a path, by the words in its source.
REACHED = {"WEFT_PROGRAM": "apps/cli", "WEFT_EXAMPLE": "examples", "/examples": "examples", "/fuzz/": "fuzz",
           "/tests/passes": "tests/passes"}
LIBRARIES = ("src", "apps", "include", "examples")

COMPILED_ANEW = ("cmake/*", "CMake*", "src/emulator/*", "src/kernels/*.h", "src/kernels/*.cpp", "src/kernels/cuda/*",
                 "src/kernels/cublaslt/*", "src/kernels/reference/*", "src/runtime/*", "src/codegen/*", "src/tensor/*",
                 "tests/cuda/*", "tools/relink.py", "tools/run_tests.py", "tools/setup.sh")
CONTRACT = ("cmake/cuda.cmake", "src/kernels/cuda*", "src/tensor/*", "tools/check_cuda.py", "tools/cuda_code.py",
            "tools/cubin.py", "tools/fetch_nvcc.py")
SERVER = ("cmake/*", "CMake*", "src/engine/*", "src/grammar/*", "src/server/*", "apps/cli/*", "tests/load/*",
          "tests/data/models/qwen2/*", "tools/setup.sh")
# Slow tests that are no test programs, and what they check.
FILES = {
    "load": SERVER,
    "real_clients": SERVER,
    "planted_bugs": (*COMPILED_ANEW, *CONTRACT, "tests/planted/*", "tests/runtime/*", "tests/*.h", "tests/*.cpp",
                     "tools/check_planted.py", "tools/make_ptx.py"),
    "cuda_contract": CONTRACT,
    "cuda_sanitized": (*COMPILED_ANEW, "tools/check_sanitized.py"),
    "gpu_check": (*COMPILED_ANEW, *CONTRACT, "apps/*", "tests/gpu_check/*", "tools/gpu_check*"),
}


def matches(path, patterns):
    """Whether a path is one of the patterns; `tests/*.h` does not reach below tests/, a final `*` does."""
    return any(fnmatch.fnmatchcase(path, pattern) and
               (pattern.endswith("*") or "/" not in pattern or path.count("/") == pattern.count("/"))
               for pattern in patterns)


def folder_of(path, layers):
    """The layer or the folder of tests that a changed file belongs to, EVERYTHING, or None if no program reads it."""
    if matches(path, UNREAD):
        return None
    parts = path.split("/")
    if parts[0] == "tests":
        return "/".join(parts[:2]) if len(parts) > 2 and parts[1] != "data" else EVERYTHING
    # The build links by tools/layers.txt. A header of examples or of fuzz is no library of the build.
    layer = check_layers.layer_of(path.removeprefix("src/").rpartition("/")[0], layers)
    return layer or EVERYTHING


def folders_of_libraries(layers, root):
    """{layer: the layers that its files include, and those below it, which it links or opens through tables}"""
    included = {layer: {other for other in layers if other.startswith(layer + "/")} for layer in layers}
    for relative in check_layers.files_of(LIBRARIES, root):
        layer = check_layers.layer_of(relative.removeprefix("src/").rpartition("/")[0], layers)
        if layer:
            headers = [header for _, header in check_layers.includes_of(relative, root)]
            included[layer] |= {check_layers.layer_of(header.rpartition("/")[0], layers) for header in headers} - {None}
    return included


def closure(folders, included):
    """These folders and all that they reach."""
    reached, open_folders = set(), list(folders)
    while open_folders:
        name = open_folders.pop()
        if name not in reached:
            reached.add(name)
            open_folders += included.get(name, ())
    return reached


def dependencies(sources, layers, included, root):
    """The folders that sources of tests/, given as paths, depend on."""
    folders, seen, open_files = set(), set(), list(sources)
    while open_files:
        name = open_files.pop()
        if name in seen or not (root / name).is_file():
            continue
        seen.add(name)
        text = (root / name).read_text(errors="replace")
        folders |= {folder for word, folder in REACHED.items() if word in text}
        for _, header in check_layers.includes_of(name, root):
            if header.startswith("tests/"):
                open_files += [header, re.sub(r"\.h$", ".cpp", header)]
                if header.count("/") > 1:  # a library of its own, linked whole
                    open_files += sources_below("/".join(header.split("/")[:2]), root)
                    folders.add("/".join(header.split("/")[:2]))
            elif layer := check_layers.layer_of(header.rpartition("/")[0], layers):
                folders.add(layer)
    return closure(folders, included)


def sources_below(folder, root):
    return list(check_layers.files_of([folder], root))


def folder_of_tests(target):
    """The folder of a test program's sources, of `tests/test_engine` or `tests/test_engine_slow` tests/engine."""
    return "tests/" + re.sub("^tests/test_|_slow$", "", target)


def sources_of(target, root):
    """The sources in tests/ of a program of the build; of a folder all of them. None of a program that has none there."""
    if (root / f"tests/{target}.cpp").exists():
        return [f"tests/{target}.cpp"]
    return sources_below(folder_of_tests(target), root) if target.startswith("tests/test_") else []


def is_tested_elsewhere(folder, root):
    """Whether a layer has a folder of tests."""
    return any((root / "tests" / name).is_dir() for name in folder.split("/"))


def is_affected(target, changed, layers, included, root):
    """Whether a test program is to run after changes of these paths."""
    folders = {folder_of(path, layers) for path in changed} - {None}
    sources = sources_of(target, root)
    if EVERYTHING in folders or not sources:
        return True
    own = folder_of_tests(target)
    if own in folders or any(own.removeprefix("tests/") in folder.split("/") for folder in folders):
        return True
    if (root / own).is_dir():
        folders = {folder for folder in folders if folder.startswith("tests/") or not is_tested_elsewhere(folder, root)}
    return bool(folders & dependencies(sources, layers, included, root))


def git(*arguments):
    """(whether it succeeded, output)"""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    except OSError as problem:
        return False, str(problem)
    return done.returncode == 0, done.stdout


def recorded(checks):
    """The commit at which these checks all passed, or an empty string."""
    path = ROOT / RECORD
    found = re.search(rf"^{checks} ([0-9a-f]{{40}})$", path.read_text(), re.MULTILINE) if path.exists() else None
    return found[1] if found else ""


def changed_since(commit):
    """(paths that differ from a commit, why that is not known or an empty string)"""
    if not commit:
        return [], f"{RECORD} has no commit"
    if not git("merge-base", "--is-ancestor", commit, "HEAD")[0]:
        return [], f"the commit {commit[:12]} of {RECORD} is not in the history"
    is_known, changed = git("diff", "--name-only", "--no-renames", "-z", commit, "--")
    is_listed, new = git("ls-files", "--others", "--exclude-standard", "-z")
    if not is_known or not is_listed:
        return [], "git does not list the changes"
    return sorted({path for path in (changed + new).split("\0") if path}), ""


class Test(NamedTuple):
    target: str  # of the build; an empty string where it runs a program of the system
    is_slow: bool


def tests_of(build, label):
    """{name: Test}"""
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1", *(["-L", f"^{label}$"] if label else [])]
    listed = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    text = (build / "CTestTestfile.cmake").read_text()
    programs = dict(re.findall(r'^add_test\(\[=\[(.+?)\]=\] "([^"]+)"', text, re.MULTILINE))
    found = {}
    for test in listed["tests"]:
        program = programs[test["name"]]
        target = pathlib.Path(program).relative_to(build).as_posix() if program.startswith(f"{build}/") else ""
        properties = {each["name"]: each["value"] for each in test["properties"]}
        found[test["name"]] = Test(target, "slow" in properties.get("LABELS", []))
    return found


def skipped_of(tests, build):
    """{name of a test: why it need not run}"""
    layers = check_layers.read_layers()
    sanitizer = re.search("^WEFT_SANITIZE:STRING=(.*)", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    checks, command = ("sanitize", "make sanitize") if sanitizer else ("slow", "make check")
    commit = recorded(checks)
    changed, unknown = changed_since(commit)
    if unknown:
        print(f"runs all of {command}: {unknown}")
        return {}
    included = folders_of_libraries(layers, ROOT)

    def has_changed(name):
        if name in FILES:
            return any(matches(path, FILES[name]) for path in changed)
        return is_affected(tests[name].target, changed, layers, included, ROOT)

    def may_skip(name):
        return not ALWAYS.fullmatch(name) if sanitizer == "address" else sanitizer or tests[name].is_slow

    return {name: f"nothing that it checks has changed since {commit[:12]}; {command} runs it always"
            for name in tests if may_skip(name) and not has_changed(name)}


def run(build, label):
    tests = tests_of(build, label)
    skipped = skipped_of(tests, build)
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}", flush=True)
    left = [name for name in tests if name not in skipped]
    if not left:
        print("0 passed, 0 failed")
        return 0
    if targets := sorted({tests[name].target for name in left} - {""}):
        subprocess.run(["ninja", "-C", str(build), *targets], check=True)
    command = [sys.executable, str(ROOT / "tools/run_tests.py"), str(build)]
    return subprocess.run([*command, "-R", f"^({'|'.join(map(re.escape, left))})$"]).returncode


def run_slow(build, commit):
    """All slow tests. Without an nvcc they skip what needs one, and nothing is recorded."""
    status = subprocess.run([sys.executable, str(ROOT / "tools/run_tests.py"), str(build), "-L", "^slow$"]).returncode
    if status == 0 and (build / "ptx/nvcc.txt").exists():
        record("slow", commit)
    return status


def record(checks, commit):
    """Keeps the other lines. Of a working tree that is not the commit's nothing is known."""
    others = ("--", ".", f":!{RECORD}")
    if not git("diff", "--quiet", commit, *others)[0] or git("ls-files", "-o", "--exclude-standard", *others)[1]:
        print(f"changed_folders: the working tree is not that of the commit {commit or '(none)'}: nothing is recorded")
        return
    path = ROOT / RECORD
    lines = path.read_text().splitlines() if path.exists() else [
        "# The commits at which checks that .ci/run repeats only for what changed since then all passed.",
        "# `make sanitize` and `make check` write them: tools/changed_folders.py."]
    lines = [line for line in lines if not line.startswith(checks + " ")] + [f"{checks} {commit}"]
    path.write_text("\n".join(lines) + "\n")
    print(f"{RECORD}: {checks} {commit}; commit this file")


def main():
    arguments = sys.argv[1:]
    if len(arguments) in (2, 3) and arguments[0] == "run":
        return run(pathlib.Path(arguments[1]).resolve(), *(arguments[2:] or [""]))
    if len(arguments) == 3 and arguments[0] == "slow":
        return run_slow(pathlib.Path(arguments[1]).resolve(), arguments[2])
    if len(arguments) == 3 and arguments[:2] == ["record", "sanitize"]:
        return record(*arguments[1:])
    return __doc__


if __name__ == "__main__":
    sys.exit(main())
