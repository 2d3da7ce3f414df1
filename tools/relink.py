"""Links test programs of a build anew, with sources compiled in another way: with a bug in them (check_seeded_faults.py), for
a sanitizer (check_sanitized.py).
"""

import concurrent.futures
import functools
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

import run_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders of the tree, and the libraries of the build that they are.
LIBRARIES = {"src/codegen": "weft_codegen", "src/emulator": "weft_emulator", "src/kernels/cuda": "weft_kernels_cuda",
             "src/runtime": "weft_runtime"}
# Sanitizers by the flags of cmake/compile_options.cmake, and what tells them of the emulator's threads.
SANITIZERS = {"threads": ["-fsanitize=thread"],
              "addresses": ["-fsanitize=address,undefined", "-fno-sanitize=null,object-size",
                            "-fno-sanitize-recover=all"]}
FIBERS = ["src/emulator/block.cpp", "src/emulator/fiber.cpp"]
OPTIONS = {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=0:intercept_tls_get_addr=0"}


class Problem(Exception):
    pass


class Skipped(Exception):
    """The tests that would catch a bug do not run here."""


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def commands_of(build, target):
    result = run(["ninja", "-C", str(build), "-t", "commands", "-s", target])
    lines = [line for line in result.stdout.splitlines() if line and not line.startswith("ninja:")]
    if result.returncode != 0 or not lines:
        raise Problem(f"the build has no {target}: {result.stderr.strip()}")
    return lines[-1]


def compilation_of(build, source):
    """What compiles the source; in a build of groups, what compiles a group of its library."""
    library = next(library for folder, library in LIBRARIES.items() if source.startswith(folder))
    try:
        return commands_of(build, f"CMakeFiles/{library}.dir/{source}.o")
    except Problem:
        return commands_of(build, f"CMakeFiles/{library}.dir/Unity/unity_0_cxx.cxx.o")


def compile_command(build, source, tree, to, flags):
    """As the build compiles it, but of the tree, plainly, without precompiled headers, and warnings are none: a bug may
    well leave a name unused."""
    words = shlex.split(compilation_of(build, source))
    if "&&" in words:
        words = words[:words.index("&&")]
    kept, skip = [], 0
    for i, word in enumerate(words):
        if skip:
            skip -= 1
        elif word in ("-o", "-MF", "-MT", "-include"):
            skip = 1
        elif i > 0 and words[i - 1] == "-c":
            kept.append(str(tree / source))
        elif word not in ("-MD", "-Winvalid-pch", "-Werror") and not re.fullmatch(r"-O\w", word):
            kept.append(word)
    first_flag = next(i for i, word in enumerate(kept) if word.startswith("-"))
    return kept[:first_flag] + [f"-I{tree / 'src'}"] + kept[first_flag:] + ["-O0", *flags, "-o", str(to)]


def link_command(build, program, objects, to, flags):
    words = shlex.split(commands_of(build, f"tests/{program}"))
    words = words[words.index("&&") + 1:] if words[0] == ":" else words
    words = words[:words.index("&&")] if "&&" in words else words
    words[words.index("-o") + 1] = str(to)
    # In front of all others: of a function that is there twice the first one counts.
    first = next(i for i, word in enumerate(words) if word.endswith(".o"))
    return words[:first] + [*flags, "-Wl,--allow-multiple-definition"] + [str(one) for one in objects] + words[first:]


def built(build, program, tree, sources, folder, flags=(), at_once=1):
    """The program with these sources of the tree in it."""
    objects = [folder / (source.replace("/", "_") + ".o") for source in sources]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda source, to: run(compile_command(build, source, tree, to, flags), cwd=build),
                                sources, objects))
    for result in results:
        if result.returncode != 0:
            raise Problem(f"does not compile: {result.stderr.strip()[:2000]}")
    result = run(link_command(build, program, objects, folder / program, flags), cwd=build)
    if result.returncode != 0:
        raise Problem(f"does not link: {result.stderr.strip()[:2000]}")
    generates_code = build / "libweft_llvm.so"  # which a program looks for beside itself
    if generates_code.exists():
        (folder / generates_code.name).symlink_to(generates_code)
    return folder / program


def tested(program, pattern, build, under=(), **more):
    environment = dict(os.environ, WEFT_DISABLE_COMPILE_CACHE="1", GTEST_COLOR="no", **more)
    environment.pop("GTEST_OUTPUT", None)
    result = run([*under, str(program), f"--gtest_filter={pattern}"], cwd=build, env=environment, timeout=300)
    if re.search(r"\[==========\] (Running )?0 tests", result.stdout):
        raise Problem(f"{pattern} names no test")
    if result.returncode == 0 and "[       OK ]" not in result.stdout:
        raise Skipped
    return result.returncode, result.stdout + result.stderr


@functools.lru_cache(maxsize=None)
def problem_of(build, program, sanitizer):
    """Why nothing that the build's compiler makes runs under it here, or nothing."""
    compiler = next(word for word in shlex.split(commands_of(build, f"tests/{program}")) if word not in (":", "&&"))
    with tempfile.TemporaryDirectory() as name:
        source, empty = pathlib.Path(name) / "empty.cpp", pathlib.Path(name) / "empty"
        source.write_text("int main() {}\n")
        result = run([compiler, *SANITIZERS[sanitizer], str(source), "-o", str(empty)])
        if result.returncode == 0:
            result = run([*run_tests.without_address_randomisation(), str(empty)])
        said = result.stderr.strip().splitlines() or [f"status {result.returncode}"]
        return said[-1] if result.returncode != 0 else ""


def failures_of(output):
    return " | ".join([line for line in output.splitlines() if "Failure" not in line and "[ " not in line][:12])
