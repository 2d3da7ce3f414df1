#!/usr/bin/env python3
"""Plants bugs and sees that tests catch them.

    tools/check_seeded_faults.py --build BUILD --results FILE [PATCH...]

A patch of tests/seeded_faults begins with lines of its own:

    What: a sentence on the bug
    Caught by: PROGRAM FILTER       a program of BUILD/tests and a GoogleTest filter
    Says: words                     that the failing test prints
    Layer: CHECK...                 what catches it, words of CHECKS below; almost always one
    Compiles: FILE...               where a header was changed, the sources that need it for those tests; else all
    Passes: PROGRAM FILTER          of one that the contract catches (Caught by: cuda_contract SOURCE): tests of what it does
    PTX: FILE...                    of a bug that the device's code alone has: what nvcc makes of these is tested

Each is applied to a copy of the sources; what it changed is compiled as the build compiles it and linked into a copy of
the program, in front of the libraries; or nvcc makes PTX of it for the program as it is. The tests must then fail with
those words, and pass without the patch. With the checks of its Layer left out (tests/without_check.h) the bug must get
through; where there are several, not with any of them in place. Bugs for which there is no nvcc are passed over, as are
those whose tests skip themselves, and it says so. What a sanitizer alone sees (Layer: threads or addresses) is compiled
for it, and the emulator's fibers and barriers with it; the tests must fail so and pass without the patch, and with the
bug compiled as ever it must get through. Where that sanitizer does not run it is passed over. FILE remembers what was
checked and found good. Exits 1 with a line for every bug that got through, or did not without its checks.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import make_ptx
import relink
import run_tests
from relink import FIBERS, LIBRARIES, ROOT, SANITIZERS, Problem, Skipped, built, failures_of, run, tested

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = (".cu", ".cpp")
# What catches bugs: the words of tests/without_check.h, the rules that tools/check_cuda.py holds machine code to, and
# the sanitizers.
CHECKS = {"places", "races", "shared", "meetings", "traffic", "results", "ptx", "order", "captures", "contract",
          *SANITIZERS}


def header(patch):
    """{What, Caught by, Says, Layer} and perhaps Compiles, Passes or PTX"""
    text = patch.read_text().split("\n--- ", 1)[0]
    fields = dict(re.findall(r"^(What|Caught by|Says|Layer|Compiles|Passes|PTX): (.+)$", text, re.MULTILINE))
    if not {"What", "Caught by", "Says", "Layer"} <= fields.keys():
        raise Problem("must begin with lines What, Caught by, Says and Layer")
    if unknown := [word for word in fields["Layer"].split() if word not in CHECKS]:
        raise Problem(f"names the checks {unknown}, there are {sorted(CHECKS)}")
    if ("contract" in fields["Layer"]) != ("Passes" in fields) or (" " in fields["Layer"] and "Passes" in fields):
        raise Problem("is caught by the contract alone, with a line Passes, or by other checks without one")
    if SANITIZERS.keys() & fields["Layer"].split() and (" " in fields["Layer"] or "PTX" in fields):
        raise Problem("is caught by one sanitizer alone, on the host")
    return fields


def tests_of(fields):
    """A program and a filter."""
    return fields.get("Passes", fields["Caught by"]).split()


def includes_any(source, changed, tree):
    """Whether a source is one of the changed files or includes one, through whatever headers."""
    seen, open_files = set(), [source]
    while open_files:
        name = open_files.pop()
        if name in seen or not (tree / name).exists():
            continue
        seen.add(name)
        open_files += ["src/" + header for header in INCLUDE.findall((tree / name).read_text(errors="replace"))]
    return bool(seen & changed)


def copied(folder):
    """A copy of the sources."""
    tree = folder / "tree"
    for library in LIBRARIES:
        shutil.copytree(ROOT / library, tree / library)
    return tree


def seeded(patch, folder):
    """A copy of the sources with the bug in it."""
    tree = copied(folder)
    # Whatever repository the folder may lie in is none of its business.
    applied = run(["git", "apply", "--whitespace=nowarn", str(patch)], cwd=tree,
                  env=dict(os.environ, GIT_CEILING_DIRECTORIES=str(folder)))
    if applied.returncode != 0:
        raise Problem(f"does not apply: {applied.stderr.strip()}")
    return tree


def ptx_of(build, patch, fields, folder):
    """A folder with PTX of the sources with the bug in them, for each architecture that the build has."""
    nvcc = (build / "ptx/nvcc.txt").read_text()
    tree, to = seeded(patch, folder), folder / "ptx"
    to.mkdir()
    for name in fields["PTX"].split():
        texts = sorted((build / "ptx").glob(f"{pathlib.Path(name).stem}.*.ptx"))
        if not texts:
            raise Problem(f"the build has no PTX of {name}")
        for text in texts:
            architecture = text.name.split(".")[-2]
            result = run(make_ptx.compile_command(nvcc, architecture, tree / "src/kernels/cuda/device" / name,
                                                  to / text.name, tree))
            if result.returncode != 0:
                raise Problem(f"does not compile: {result.stderr.strip()[:2000]}")
    return to


def sources_of(patch, fields, tree):
    """What has to be compiled for the bug."""
    changed = set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE))
    sources = [path.relative_to(tree).as_posix() for path in sorted(tree.rglob("*")) if path.suffix in SOURCES]
    if "Compiles" in fields:
        sources = [source for source in sources if source.rpartition("/")[2] in fields["Compiles"].split()]
    sources = [source for source in sources if includes_any(source, changed, tree)]
    if not sources:
        raise Problem("changes nothing that is compiled")
    return sources


def built_with_bug(build, patch, fields, folder):
    tree = seeded(patch, folder)
    return built(build, tests_of(fields)[0], tree, sources_of(patch, fields, tree), folder)


LOCKS = {}


def passes_without_bug(build, program, pattern):
    """Looked at once for all bugs that the same tests catch."""
    with LOCKS.setdefault((program, pattern), threading.Lock()):
        return status_without_bug(build, program, pattern) == 0


@functools.lru_cache(maxsize=None)
def status_without_bug(build, program, pattern):
    return tested(build / "tests" / program, pattern, build)[0]


def held_to_contract(build, tree, source):
    """What tools/check_cuda.py says of a source's kernels on sm_90."""
    device = tree / "src/kernels/cuda/device"
    if not (tree / "tools").exists():
        shutil.copytree(ROOT / "tools", tree / "tools")
    rules = json.loads((device / "contract.json").read_text())["kernels"]
    (tree / "contract.json").write_text(json.dumps({"architectures": ["90"], "kernels": rules}))
    result = run([sys.executable, str(tree / "tools/check_cuda.py"), "--part", "--nvcc",
                  (build / "ptx/nvcc.txt").read_text(), str(device / source), str(tree / "contract.json")])
    return result.returncode, result.stdout + result.stderr


def check_contract(build, patch, fields):
    """What is wrong, or nothing: the contract alone sees the bug, and its tests do not. That all kernels keep it without
    a bug is what the test cuda_contract sees."""
    _, source = fields["Caught by"].split()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = built_with_bug(build, patch, fields, folder)
        status, output = held_to_contract(build, folder / "tree", source)
        if status == 0:
            return f"{patch.name} got through: {fields['What']}"
        if fields["Says"] not in output:
            return f"{patch.name} was caught in other words than '{fields['Says']}': {failures_of(output)}"
        status, output = tested(program, tests_of(fields)[1], build)
        return f"{patch.name} is caught by something else, too: {failures_of(output)}" if status != 0 else ""


def check_sanitized(build, patch, fields, sanitizer):
    """What is wrong, or nothing: the sanitizer alone sees the bug; None where it was passed over."""
    program, pattern = tests_of(fields)
    flags, under = SANITIZERS[sanitizer], run_tests.without_address_randomisation()
    if problem := relink.problem_of(build, program, sanitizer):
        print(f"count: {patch.name} is not seeded: {flags[0]} does not run here: {problem}")
        return None
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: pathlib.Path(name) / kind for kind in ("sound", "with_bug", "plain")}
        for folder in folders.values():
            folder.mkdir()
        tree = seeded(patch, folders["with_bug"])
        sources = sources_of(patch, fields, tree)
        compiled = [*FIBERS, *(source for source in sources if source not in FIBERS)]
        sound = built(build, program, copied(folders["sound"]), compiled, folders["sound"], flags)
        status, output = tested(sound, pattern, build, under, **relink.OPTIONS)
        if status != 0:
            return f"{patch.name}: {pattern} fails with {flags[0]} without the bug: {failures_of(output)}"
        with_bug = built(build, program, tree, compiled, folders["with_bug"], flags)
        status, output = tested(with_bug, pattern, build, under, **relink.OPTIONS)
        if status == 0:
            return f"{patch.name} got through: {fields['What']}"
        if fields["Says"] not in output:
            return f"{patch.name} was caught in other words than '{fields['Says']}': {failures_of(output)}"
        plain = built(build, program, tree, sources, folders["plain"])
        status, output = tested(plain, pattern, build)
        return f"{patch.name} is caught by something else, too: {failures_of(output)}" if status != 0 else ""


def without_layer(fields, run_without):
    """What is wrong where checks are left out, or nothing. `run_without` runs the tests with the bug."""
    checks = fields["Layer"].split()
    status, output = run_without(checks)
    if status != 0:
        return f"is caught by something else, too, without {' and '.join(checks)}: {failures_of(output)}"
    for one in checks:
        others = [other for other in checks if other != one]
        if others and run_without(others)[0] == 0:
            return f"gets through without {' and '.join(others)} alone: {one} does not catch it"
    return ""


def check(build, patch):
    """What is wrong, or nothing; None where it was passed over."""
    try:
        fields = header(patch)
        if fields["Layer"] == "contract":
            return check_contract(build, patch, fields)
        program, pattern = tests_of(fields)
        try:
            if not passes_without_bug(build, program, pattern):
                return f"{patch.name}: {pattern} fails without the bug"
        except Skipped:
            return None
        if fields["Layer"] in SANITIZERS:
            return check_sanitized(build, patch, fields, fields["Layer"])
        with tempfile.TemporaryDirectory() as folder:
            if "PTX" in fields:
                with_bug = build / "tests" / program
                more = {"WEFT_TEST_PTX": str(ptx_of(build, patch, fields, pathlib.Path(folder)))}
            else:
                with_bug, more = built_with_bug(build, patch, fields, pathlib.Path(folder)), {}
            status, output = tested(with_bug, pattern, build, **more)
            if status == 0:
                return f"{patch.name} got through: {fields['What']}"
            if fields["Says"] not in output:
                return f"{patch.name} was caught in other words than '{fields['Says']}': {failures_of(output)}"
            problem = without_layer(fields, lambda checks: tested(with_bug, pattern, build, **more,
                                                                  WEFT_TEST_WITHOUT=" ".join(checks)))
            return f"{patch.name} {problem}" if problem else ""
    except Problem as problem:
        return f"{patch.name} {problem}"
    except subprocess.TimeoutExpired as late:
        return f"{patch.name} ends nowhere: {late.cmd[-1]} took more than {late.timeout:.0f} s"
    except Skipped:
        return f"{patch.name} got through: its test skips itself with the bug"
    return ""


def key_of(build, patches):
    digest = hashlib.sha256()
    contract = [*(ROOT / "tools" / name for name in ("check_cuda.py", "cuda_code.py", "cubin.py")),
                ROOT / "src/kernels/cuda/device/contract.json", build / "ptx/nvcc.txt"]
    for path in [*(pathlib.Path(one) for one in (__file__, relink.__file__, make_ptx.__file__)), *contract, *patches,
                 *sorted((build / "ptx").glob("*.ptx"))]:
        digest.update(path.read_bytes() if path.exists() else b"")
    for program in sorted({tests_of(header(patch))[0] for patch in patches}):
        digest.update((build / "tests" / program).read_bytes())
    generates_code = build / "libweft_llvm.so"
    if generates_code.exists():
        digest.update(generates_code.read_bytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("patches", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    patches = [path.resolve() for path in arguments.patches] or sorted((ROOT / "tests/seeded_faults").glob("*.patch"))
    if (build / "ptx/absent.txt").exists():
        device_alone = [patch for patch in patches if {"PTX", "Passes"} & header(patch).keys()]
        patches = [patch for patch in patches if patch not in device_alone]
        print(f"count: {len(device_alone)} bugs of device code are not seeded: {(build / 'ptx/absent.txt').read_text()}")
    key = key_of(build, patches)
    if arguments.results and arguments.results.exists():
        kept = json.loads(arguments.results.read_text())
        if kept["key"] == key:
            print(kept["text"])
            return 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda patch: check(build, patch), patches))
    problems = [result for result in results if result]
    for problem in problems:
        print(problem)
    checked = len(results) - results.count(None)
    text = f"count: {checked} seeded bugs, {checked - len(problems)} caught as they should be, and not without"
    if None in results:
        text += f"\ncount: {results.count(None)} bugs are not seeded: what would catch them does not run here"
    print(text)
    if not problems and None not in results and arguments.results:
        arguments.results.write_text(json.dumps({"key": key, "text": text}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
