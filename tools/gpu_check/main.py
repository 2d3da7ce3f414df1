"""The command line of tools/gpu_check.sh, which says what the verbs do."""

import argparse
import pathlib
import sys

import pack
import report
import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description="Everything that a GPU can answer, in one run.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="make the folder for a machine with a GPU")
    packing.add_argument("folder", nargs="?", default="gpu_check", type=pathlib.Path)
    packing.add_argument("--build", type=pathlib.Path,
                         help="a build folder that is there (else build/gpu is made, with -DWEFT_CUDA=ON)")
    running = verbs.add_parser("run", help="run the packed folder's steps")
    running.add_argument("out", type=pathlib.Path)
    running.add_argument("--minutes", default=8.0, type=float, help="no step begins after them (8)")
    running.add_argument("--fake", action="store_true", help="on a fake device, at small sizes")
    running.add_argument("--only", default="", help="steps by name, as in device,kernels")
    reporting = verbs.add_parser("report", help="print what a run found")
    reporting.add_argument("out", nargs="+", type=pathlib.Path, help="folders of runs; later steps replace earlier ones")
    reporting.add_argument("--into", type=pathlib.Path, help="a page whose tables are filled, as bench/cuda.md")
    arguments = parser.parse_args()
    if arguments.verb == "pack":
        return pack.pack(arguments.folder, arguments.build, ROOT)
    if arguments.verb == "run":
        return run.run(arguments.out, arguments.minutes, arguments.fake, arguments.only)
    return report.report(arguments.out, arguments.into)


if __name__ == "__main__":
    sys.exit(main())
