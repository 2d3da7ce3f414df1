#!/usr/bin/env python3
"""Compiles the CUDA kernels for every architecture and holds what comes out to their contract. Needs no GPU.

    tools/check_cuda.py --nvcc PATH --results FILE SOURCE.cu... CONTRACT.json

Registers, spills, stack, shared memory and barriers are ptxas's own account; accesses and instructions are counted in
the cubin. FILE remembers what was checked and found good: equal sources, contract and compiler are not compiled again.
Without an nvcc of the release that tools/fetch_nvcc.py names it says so and ends well. Exits 1 with a line for every breach.
"""

import argparse
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
# PTX is made for these; what is newer is assembled of the last one's, and its machine code is not read.
FRONT_ENDS = ["80", "89", "90"]
READABLE = {"80", "89", "90"}
# As the program's own build has them: what is fused is spelled so.
FLAGS = ["-x", "cu", "-std=c++20", "-O3", "-fmad=false", f"-I{ROOT / 'src'}"]
ACCOUNT = re.compile(r"Compiling entry function '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                     r"(\d+) bytes spill loads.*?Used (\d+) registers, used (\d+) barriers(?:, (\d+) bytes smem)?",
                     re.S)


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def compiled(nvcc, ptxas, source, architectures, folder):
    """{(architecture, kernel): (ptxas's account, instructions or None)}"""
    texts = {}
    for front_end in FRONT_ENDS:
        texts[front_end] = folder / f"{source.stem}.{front_end}.ptx"
        run([nvcc, *FLAGS, "-ptx", f"-arch=compute_{front_end}", source, "-o", texts[front_end]])
    found = {}
    for architecture in architectures:
        code = folder / f"{source.stem}.{architecture}.cubin"
        text = texts.get(architecture, texts[FRONT_ENDS[-1]])
        output = run([ptxas, "-v", "-O3", f"-arch=sm_{architecture}", text, "-o", code])
        instructions = cubin.kernels(code) if architecture in READABLE else {}
        for match in ACCOUNT.finditer(output):
            numbers = [int(match[i] or 0) for i in range(2, 8)]
            account = {"stack_bytes": numbers[0], "spilled_bytes": numbers[1] + numbers[2], "registers": numbers[3],
                       "barriers": numbers[4], "shared_bytes": numbers[5]}
            found[architecture, match[1]] = (account, instructions.get(match[1]))
    return found


def breaches_of(rule, account, code, counts_instructions):
    for field in ("registers", "spilled_bytes", "stack_bytes", "shared_bytes", "barriers"):
        if field in rule and account[field] > rule[field]:
            yield f"{field} {account[field]}, at most {rule[field]}"
    if code is None:
        return
    accesses = collections.Counter(filter(None, (one.access() for one in code)))
    names = {one.name for one in code} | set(accesses)
    for name, wanted in rule.get("accesses", {}).items():
        if accesses[name] != wanted:
            yield f"{name} {accesses[name]} times, wanted {wanted}"
    for name in rule.get("never", []):
        if name in names:
            yield f"has {name}"
    if counts_instructions and "instructions_per_element" in rule:
        way = cubin.instructions_of_way(code)
        if way <= 0 or way > rule["instructions_per_element"] * rule["elements"]:
            yield f"{way / rule['elements']:.1f} instructions an element, at most {rule['instructions_per_element']}"


def check(found, rules):
    breaches, used = [], set()
    for (architecture, kernel), (account, code) in sorted(found.items()):
        for pattern, rule in rules.items():
            if re.fullmatch(pattern, kernel):
                used.add(pattern)
                breaches += [f"sm_{architecture} {kernel}: {breach}"
                             for breach in breaches_of(rule, account, code, architecture == "90")]
    breaches += [f"no kernel is called {pattern}" for pattern in rules if pattern not in used]
    return breaches


def key_of(nvcc, sources, contract):
    """Of all that the outcome depends on."""
    digest = hashlib.sha256(run([nvcc, "--version"]).encode())
    folders = sorted({source.parent for source in sources} | {ROOT / "src/kernels/cuda"})
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".cu", ".cuh", ".h")]
    for path in sorted(set(files)) + [contract, pathlib.Path(__file__), pathlib.Path(cubin.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def table(found):
    """One line for each kernel that has a number of instructions."""
    for (architecture, kernel), (account, code) in sorted(found.items()):
        if code is not None:
            way = cubin.instructions_of_way(code)
            print(f"sm_{architecture} {kernel}: {account['registers']} registers, {way} instructions")


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="", help="nothing, or the compiler; ptxas lies beside it or in PATH")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", action="store_true", help="print every kernel's registers and instructions")
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    parser.add_argument("contract", type=pathlib.Path)
    arguments = parser.parse_args()
    tools, problem = find_tools(arguments.nvcc)
    if tools is None:
        print(f"count: the contract of CUDA kernels is skipped: {problem}")
        return 0
    nvcc, ptxas = tools
    contract = json.loads(arguments.contract.read_text())
    key = key_of(nvcc, arguments.sources, arguments.contract)
    if arguments.results and arguments.results.exists() and not arguments.table:
        kept = json.loads(arguments.results.read_text())
        if kept["key"] == key:
            print(kept["text"])
            return 0
    found = {}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        for result in pool.map(lambda source: compiled(nvcc, ptxas, source, contract["architectures"], folder),
                               arguments.sources):
            found.update(result)
    if arguments.table:
        table(found)
    breaches = check(found, contract["kernels"])
    for breach in breaches:
        print(breach)
    kernels = {kernel for _, kernel in found}
    text = (f"count: {len(kernels)} CUDA kernels for sm_{', '.join(contract['architectures'])} "
            f"against {len(contract['kernels'])} rules: {len(breaches)} breaches")
    print(text)
    if not breaches and arguments.results:
        arguments.results.write_text(json.dumps({"key": key, "text": text}))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
