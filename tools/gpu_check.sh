#!/bin/sh
# Everything that a GPU can answer about Weft, in one run. The machine with the GPU needs nothing but the packed folder.
#
#   tools/gpu_check.sh pack [FOLDER] [--build BUILD]     here: builds with -DWEFT_CUDA=ON in build/gpu and makes the
#                                                        folder (gpu_check), which holds this script, too
#   FOLDER/gpu_check.sh run OUT [--minutes 8] [--fake]   there: the steps in order of worth, a line of JSON in
#                                                        OUT/results.jsonl after each; --fake: on a fake device
#   tools/gpu_check.sh report OUT... [--into bench/cuda.md] prints what was found and what failed; fills the tables of a page
#
# `run` exits 0 where all that ran passed, 1 where a step failed, 2 where it was called wrongly, 4 where there is no
# device. The steps are in gpu_check/steps.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/gpu_check/main.py" "$@"
