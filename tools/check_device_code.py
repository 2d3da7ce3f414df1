#!/usr/bin/env python3
"""Sees that a program with device code reads it: what -DWEFT_CUDA=ON does, of one small file and in seconds.

    tools/check_device_code.py --build BUILD [--nvcc PATH]

tools/device_code.sh compiles gather_rows for every architecture and makes the table in which it stands for every file of
kernels; a copy of the test program is linked with that table in place of its empty one, and its tests of device code run.
Without an nvcc of the release that tools/fetch_nvcc.py names it says so and ends well.
"""

import argparse
import pathlib
import shlex
import sys
import tempfile

import cuda_code
import relink

PROGRAM = "test_cuda"
# `weft info` is another program, without the code.
TESTS = "DeviceCode.*-DeviceCode.IsNamedByInfo"


def table_in(folder, nvcc):
    """The source of the table, and what it names beside it."""
    device = relink.ROOT / "src/kernels/cuda/device"
    compiled = folder / "gather_rows.fatbin"
    cuda_code.run(["sh", cuda_code.DEVICE_CODE, "compile", nvcc, device / "gather_rows.cu", compiled])
    names = sorted(path.stem for path in device.glob("*.cu"))
    for name in names:
        if not (image := folder / f"{name}.fatbin").exists():
            image.symlink_to(compiled)
    table = folder / "device_code_table.cpp"
    table.write_text(cuda_code.run(["sh", cuda_code.DEVICE_CODE, "table", folder, *names]))
    return table


def check(build, nvcc):
    """Whether the tests passed, and what to say."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table, program = table_in(folder, nvcc), folder / PROGRAM
        compiler = next(word for word in shlex.split(relink.commands_of(build, f"tests/{PROGRAM}"))
                        if word not in (":", "&&"))
        to = table.with_suffix(".o")
        cuda_code.run([compiler, "-std=c++20", f"-I{relink.ROOT / 'src'}", "-c", table, "-o", to])
        cuda_code.run(["env", "-C", build, *relink.link_command(build, PROGRAM, [to], program, [])])
        status, output = relink.tested(program, TESTS, build)
    if status != 0 or "SKIPPED" in output:
        return False, output
    return True, f"count: {output.count('[       OK ]')} tests of device code inside a program"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--nvcc", default="")
    arguments = parser.parse_args()
    tools, problem = cuda_code.find_tools(arguments.nvcc)
    if tools is None:
        print(f"count: device code inside a program is skipped: {problem}")
        return 0
    is_good, text = check(arguments.build.resolve(), tools[0])
    print(text)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
