#!/usr/bin/env python3
"""Fetches the CUDA compilers from PyPI into the cache where the machine has none: nvcc, for the contract and the PTX of
CUDA kernels, and NVRTC, which compiles while the program runs.

    tools/fetch_nvcc.py

The packages go to $XDG_CACHE_HOME/weft/nvcc-VERSION and nvrtc-VERSION (default ~/.cache/weft), each under a temporary name
that is renamed when all is there. Nothing happens for one that is there already, in PATH or beside the nvcc in PATH. Where
the packages cannot be had it says so and ends well: what needs them is then skipped, and says so too.
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
NVRTC_PACKAGES = [f"nvidia-cuda-nvrtc=={VERSION}"]


def folder(tool="nvcc"):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "weft" / f"{tool}-{VERSION}"


def release_of(nvcc):
    """As it says itself, 13.0; nothing where it says none."""
    try:
        text = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return ""
    found = re.search(r"release (\d+\.\d+)", text)
    return found[1] if found else ""


def fetch(tool, packages):
    target = folder(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{tool}-", dir=target.parent) as temporary:
        whole = pathlib.Path(temporary) / "whole"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--target", str(whole), *packages]
        print(f"fetching {tool} {VERSION} from PyPI", file=sys.stderr, flush=True)
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            print(f"fetch_nvcc: pip could not install {tool}; what needs it is skipped", file=sys.stderr)
            return
        try:
            os.rename(whole, target)
        except OSError:
            if not target.exists():  # else somebody was faster
                raise


def main():
    installed = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    has_release = bool(installed) and release_of(installed) == RELEASE
    wanted = []
    if not has_release and not folder().exists():
        wanted.append(("nvcc", PACKAGES))
    # Beside that nvcc, or where the program looks for a toolkit.
    places = [pathlib.Path(installed).resolve().parents[1]] if has_release else []
    places.append(pathlib.Path("/usr/local/cuda"))
    if not folder("nvrtc").exists() and not any(list(place.glob("lib64/libnvrtc.so.1[23]*")) for place in places):
        wanted.append(("nvrtc", NVRTC_PACKAGES))
    if wanted and (platform.system() != "Linux" or platform.machine() != "x86_64"):
        print("fetch_nvcc: the packages are for Linux on x86-64; CUDA kernels are not compiled here", file=sys.stderr)
        return
    for tool, packages in wanted:
        fetch(tool, packages)


if __name__ == "__main__":
    main()
