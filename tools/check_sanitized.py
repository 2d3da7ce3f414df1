#!/usr/bin/env python3
"""Runs every CUDA kernel in the emulator under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer.

    tools/check_sanitized.py --build BUILD [--results FILE]

A build with a sanitizer takes long; this one takes the test program as it was built and compiles the kernels and the
emulator's fibers and barriers anew, in front of it. FILE remembers which program passed. Where a sanitizer does not run
it says so and ends well. Exits 1 with what the program printed where it failed.
"""

import argparse
import hashlib
import os
import pathlib
import sys
import tempfile

import relink
import run_tests

PROGRAM = "test_cuda"
TESTS = {
    # Every kernel on every sample, layout and recorded call, and the fused ones by designs and forms.
    "addresses": "EveryCudaKernel.*:CudaSiluAndMul*",
    # Every kernel once: which threads share what does not depend on the numbers.
    "threads": "EmulatedThreads.OfEveryKernelKeepWhatTheyShareInOrder",
}


def key_of(build):
    digest = hashlib.sha256((build / "tests" / PROGRAM).read_bytes())
    for path in (__file__, relink.__file__):
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def check(build, sanitizer):
    """Whether all passed, and what it says."""
    flags = relink.SANITIZERS[sanitizer]
    if problem := relink.problem_of(build, PROGRAM, sanitizer):
        return True, f"count: the emulator's kernels are not run under {flags[0]}: {problem}"
    kernels = sorted(path.relative_to(relink.ROOT).as_posix()
                     for path in (relink.ROOT / "src/kernels/cuda/device").glob("*.cu"))
    with tempfile.TemporaryDirectory() as name:
        program = relink.built(build, PROGRAM, relink.ROOT, [*relink.FIBERS, *kernels], pathlib.Path(name), flags,
                               at_once=os.cpu_count())
        status, output = relink.tested(program, TESTS[sanitizer], build, run_tests.without_address_randomisation(),
                                       **relink.OPTIONS)
    if status != 0:
        return False, output
    return True, f"count: {output.count('[       OK ]')} tests of {len(kernels)} files of CUDA kernels under {flags[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    key = key_of(build)
    if arguments.results and arguments.results.exists():
        kept_key, _, text = arguments.results.read_text().partition("\n")
        if kept_key == key:
            print(text)
            return 0
    try:
        checked = [check(build, sanitizer) for sanitizer in TESTS]
        is_good, text = all(good for good, _ in checked), "\n".join(said for _, said in checked)
    except relink.Problem as problem:
        is_good, text = False, str(problem)
    print(text)
    if is_good and arguments.results:
        arguments.results.write_text(f"{key}\n{text}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
