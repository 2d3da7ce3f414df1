"""Compiles CUDA kernels as they ship and reads what comes out, for tools/check_cuda.py and tools/make_ptx.py.

The machine code is what tools/device_code.sh puts into the program: both kinds of mathematics, every architecture by
its own front end. Registers, spills, stack, shared memory and barriers are ptxas's own account; accesses and
instructions are counted in the cubin.
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cubin
import fetch_nvcc

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE_CODE = ROOT / "tools/device_code.sh"
# Of PTX for tests (tools/make_ptx.py); as device_code.sh has them.
FLAGS = ["-x", "cu", "-std=c++20", "-O3", "-fmad=false", f"-I{ROOT / 'src'}"]
ACCOUNT = re.compile(r"Compiling entry function '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                     r"(\d+) bytes spill loads.*?Used (\d+) registers, used (\d+) barriers(?:, (\d+) bytes smem)?",
                     re.S)


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def architectures():
    """That the program has machine code for."""
    return run(["sh", DEVICE_CODE, "architectures"]).split()


def compiled(nvcc, source, architecture, folder):
    """{kernel: facts}: ptxas's account; of machine code that is read also how often it has what, and how many
    instructions lie on the longest way through it."""
    code = folder / f"{source.stem}.{architecture}.cubin"
    output = run(["sh", DEVICE_CODE, "account", nvcc, source, code, architecture])
    instructions = cubin.kernels(code, architecture) if architecture in cubin.ARCHITECTURES else {}
    found = {}
    for match in ACCOUNT.finditer(output):
        numbers = [int(match[i] or 0) for i in range(2, 8)]
        facts = {"stack_bytes": numbers[0], "spilled_bytes": numbers[1] + numbers[2], "registers": numbers[3],
                 "barriers": numbers[4], "shared_bytes": numbers[5]}
        if match[1] in instructions:
            code_of = instructions[match[1]]
            facts["accesses"] = collections.Counter(filter(None, (one.access() for one in code_of)))
            facts["instructions"] = collections.Counter(one.name for one in code_of)
            facts["way"] = cubin.instructions_of_way(code_of)
        found[match[1]] = facts
    return found


def facts_of(nvcc, sources, architectures, results):
    """{(architecture, kernel): facts} of all sources. `results`, a file or None, holds those of the last run."""
    kept = kept_in(results)
    keys = {source: key_of(nvcc, source, architectures) for source in sources}
    stale = [source for source in sources if kept["sources"].get(source.stem, {}).get("key") != keys[source]]
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        jobs = {source: {architecture: pool.submit(compiled, nvcc, source, architecture, folder)
                         for architecture in architectures} for source in stale}
        for source in stale:
            facts = {architecture: job.result() for architecture, job in jobs[source].items()}
            kept["sources"][source.stem] = {"key": keys[source], "facts": facts}
            if results:  # as soon as there is something to keep
                fresh = results.with_suffix(".new")  # whole, or as it was
                fresh.write_text(json.dumps(kept))
                os.replace(fresh, results)
    return {(architecture, kernel): facts for source in sources
            for architecture, kernels in kept["sources"][source.stem]["facts"].items()
            for kernel, facts in kernels.items()}


def kept_in(results):
    try:
        kept = json.loads(results.read_text()) if results else {}
    except (OSError, ValueError):
        kept = {}
    return kept if isinstance(kept, dict) and isinstance(kept.get("sources"), dict) else {"sources": {}}


def read_by(source):
    """The source and the headers of the tree that it includes, directly or not."""
    found, waiting = set(), [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in found and path.exists():
            found.add(path)
            waiting += [ROOT / "src" / name for name in re.findall(r'#include "([^"]+)"', path.read_text())]
    return found


def key_of(nvcc, source, architectures):
    """Of all that a source's machine code and what is read of it depend on."""
    flags = [os.environ.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")]
    digest = hashlib.sha256((run([nvcc, "--version"]) + " ".join([*architectures, *flags])).encode())
    for path in sorted(read_by(source)) + [DEVICE_CODE, pathlib.Path(__file__), pathlib.Path(cubin.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def find_tools(given):
    """nvcc and ptxas; or None and why not. What was fetched stands in for an nvcc of another release."""
    fetched = fetch_nvcc.folder() / "nvidia/cu13/bin/nvcc"
    there = [nvcc for nvcc in (shutil.which(given) if given else None, shutil.which(str(fetched))) if nvcc]
    if not there:
        return None, "there is no nvcc (make test fetches one from PyPI)"
    releases = {nvcc: fetch_nvcc.release_of(nvcc) for nvcc in there}
    nvcc = next((nvcc for nvcc in there if releases[nvcc] == fetch_nvcc.RELEASE), None)
    if nvcc is None:
        return None, f"{there[0]} is of release {releases[there[0]] or 'unknown'}, not {fetch_nvcc.RELEASE}"
    # nvcc may be a link to something else, a compiler cache perhaps.
    places = [pathlib.Path(nvcc).with_name("ptxas"), pathlib.Path(os.path.realpath(nvcc)).with_name("ptxas")]
    ptxas = next((str(place) for place in places if place.exists()), shutil.which("ptxas"))
    return ((nvcc, ptxas), "") if ptxas else (None, f"{nvcc} has no ptxas beside it")
