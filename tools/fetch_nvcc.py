#!/usr/bin/env python3
"""Fetches the CUDA compiler from PyPI into the cache, for the contract of CUDA kernels, where the machine has none.

    tools/fetch_nvcc.py

The packages go to $XDG_CACHE_HOME/weft/nvcc-VERSION (default ~/.cache/weft), under a temporary name that is renamed when
all is there. Nothing happens when nvcc of that release is in PATH, or there already. Where the packages cannot be had it says so and ends
well: what needs nvcc is then skipped, and says so too.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

VERSION = "13.0.88"
RELEASE = VERSION.rpartition(".")[0]
PACKAGES = [f"nvidia-cuda-nvcc=={VERSION}", f"nvidia-nvvm=={VERSION}", f"nvidia-cuda-crt=={VERSION}",
            "nvidia-cuda-runtime==13.0.96"]


def folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "weft" / f"nvcc-{VERSION}"


def release_of(nvcc):
    """As it says itself, 13.0; nothing where it says none."""
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return ""
    found = re.search(r"release (\d+\.\d+)", text)
    return found[1] if found else ""


def main():
    target = folder()
    installed = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if target.exists() or installed and release_of(installed) == RELEASE:
        return
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        print("fetch_nvcc: the packages are for Linux on x86-64; CUDA kernels are not compiled here", file=sys.stderr)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".nvcc-", dir=target.parent) as temporary:
        whole = pathlib.Path(temporary) / "whole"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--target", str(whole), *PACKAGES]
        print(f"fetching nvcc {VERSION} from PyPI", file=sys.stderr, flush=True)
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            print("fetch_nvcc: pip could not install it; CUDA kernels are not compiled here", file=sys.stderr)
            return
        os.rename(whole, target)


if __name__ == "__main__":
    main()
