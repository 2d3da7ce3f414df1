#!/usr/bin/env python3
"""Checks which instructions the objects of a build folder hold (release: elsewhere templates are not inlined).

    tools/check_isa.py BUILD

One program serves every x86-64-v2 machine, so two things must not happen:
* An object built for a newer instruction set (src/kernels/cpu/<variant>/) defines a weak symbol, such as an instance of
  a std template: the linker keeps one copy for all, and it may be the one that an older machine cannot run.
* Any other object holds an instruction in VEX or EVEX encoding.

Objects of tests and benchmarks are left out: no user runs them.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

VARIANT = re.compile(r"/src/kernels/cpu/(?:.*/)?(avx2|avx512|avx512_vnni|avx512_bf16|amx)/")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\s+(?:\{\w+\}\s+)?(\S+)\s*(.*)$")
# VEX-encoded instructions on general registers (BMI1, BMI2) and on mask registers.
OTHER_VEX = re.compile(r"^(andn|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext|rorx|s[ah][lr]x|k(mov|and|andn|or|xor|xnor|not|"
                       r"ortest|test|shift[lr]|unpck|add)[bwdq]*)[lq]?$")
AMX = re.compile(r"^(ldtilecfg|sttilecfg|tile(zero|loadd|loaddt1|stored|release)|tdp(bf16ps|b[su][su]d))$")


def is_vex(mnemonic, operands):
    if mnemonic.startswith("v") and (re.search(r"%[xyz]mm|%k[0-7]", operands) or mnemonic.startswith("vzero")):
        return True
    return bool(OTHER_VEX.match(mnemonic)) or bool(AMX.match(mnemonic))


def weak_symbols(path):
    lines = subprocess.run(["nm", "--demangle", "--defined-only", path], check=True, capture_output=True, text=True)
    return [line.split(maxsplit=2)[2] for line in lines.stdout.splitlines() if line.split(maxsplit=2)[1] in "WwVvu"]


def vex_instructions(path):
    """(how many instructions, the first in VEX or EVEX encoding as text or None)"""
    process = subprocess.Popen(["objdump", "--disassemble", "--no-show-raw-insn", path],
                               stdout=subprocess.PIPE, text=True)
    count, function, first = 0, "", None
    for line in process.stdout:
        instruction = INSTRUCTION.match(line)
        if instruction:
            count += 1
            if first is None and is_vex(instruction[1], instruction[2]):
                first = f"{function}: {instruction[1]} {instruction[2]}"
        elif line.endswith(">:\n"):
            function = line.split("<", 1)[1][:-3]
    if process.wait() != 0:
        sys.exit(f"objdump could not read {path}")
    return count, first


def is_shipped(path, objects):
    return not path.relative_to(objects).parts[0].startswith(("bench_", "check_", "fuzz_", "test_", "weft_test_"))


def main():
    build = pathlib.Path(sys.argv[1])
    objects = build / "CMakeFiles"
    shipped = [path for path in sorted(objects.rglob("*.o")) if is_shipped(path, objects)]
    variants = [path for path in shipped if VARIANT.search(path.as_posix())]
    baseline = [path for path in shipped if path not in variants]
    breaches, instructions = [], 0
    for path in variants:
        breaches += [f"{path}: weak symbol {symbol}" for symbol in weak_symbols(path)]
    with concurrent.futures.ProcessPoolExecutor() as processes:
        for path, (count, first) in zip(baseline, processes.map(vex_instructions, baseline)):
            instructions += count
            if first:
                breaches.append(f"{path}: {first}")
    for breach in breaches:
        print(breach)
    print(f"instruction sets: {len(variants)} variant objects without weak symbols, {len(baseline)} baseline objects with "
          f"{instructions} instructions and none in VEX or EVEX encoding, {len(breaches)} breaches"
          if not breaches else f"instruction sets: {len(breaches)} breaches")
    if not baseline:
        sys.exit(f"{build} holds no objects")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
