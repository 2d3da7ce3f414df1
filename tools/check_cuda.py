#!/usr/bin/env python3
"""Compiles the CUDA kernels as they ship and holds what comes out to their contract. Needs no GPU.

    tools/check_cuda.py --nvcc PATH --results FILE SOURCE.cu... CONTRACT.json

What was compiled and read: tools/cuda_code.py. FILE remembers what each source compiled to: a source that is as it was,
with the same headers, flags and compiler, is not compiled again. Without an nvcc of the release that
tools/fetch_nvcc.py names it says so and ends well. Exits 1 with a line for every breach.

CONTRACT.json has "kernels", {pattern: rule}. A kernel is held to all rules whose patterns match its whole name; where
two name the same limit the later one counts. A limit is a number, or {"80": one, "other": another} by architecture:

    registers, spilled_bytes, stack_bytes, shared_bytes, barriers    at most
    accesses      {"LDG.128": 4}: exactly so many; [3, 9]: from 3 to 9. Loads and stores of global memory of a width
                  that no rule names are a breach; so is a kernel with no rule for its loads or its stores.
    instructions  {"HMMA": 96}: exactly so many
    never         accesses and instructions that it must not have
    elements, instructions_per_element
                  a budget: instructions on the longest way of those that store the most (tools/cubin.py), of so many
                  elements. A kernel without one is a breach; so is one that spends less than a third of it.
    way           exactly so many instructions on that way; of an architecture that is not named any number
"""

import argparse
import json
import pathlib
import re
import sys

import cubin
import cuda_code


def rule_of(kernel, rules):
    """All that is asked of it."""
    whole = {}
    for pattern, rule in rules.items():
        if re.fullmatch(pattern, kernel):
            for field, limit in rule.items():
                if field in ("accesses", "instructions"):
                    limit = {**whole.get(field, {}), **limit}
                elif field == "never":
                    limit = whole.get(field, []) + limit
                whole[field] = limit
    return whole


def of_architecture(limit, architecture):
    """One number, or one for some architectures and for all others."""
    return limit.get(architecture, limit["other"]) if isinstance(limit, dict) else limit


def range_text(least, most):
    return f"{least}" if least == most else f"{least} to {most}"


def breaches_of_counts(rule, facts, architecture):
    for kind in ("accesses", "instructions"):
        for name, limit in rule.get(kind, {}).items():
            wanted = of_architecture(limit, architecture)
            least, most = wanted if isinstance(wanted, list) else (wanted, wanted)
            if not least <= (count := facts[kind].get(name, 0)) <= most:
                yield f"{name} {count} times, wanted {range_text(least, most)}"
    for name in rule.get("never", []):
        if name in facts["accesses"] or name in facts["instructions"]:
            yield f"has {name}"


def breaches_of_widths(rule, facts):
    """Every width of its loads and stores of global memory must be known, or narrow ones come unseen."""
    named = rule.get("accesses", {}).keys()
    for operation in ("LDG", "STG"):
        if not any(name.startswith(operation) for name in named):
            yield f"has no rule for its accesses by {operation}"
        else:
            for name in sorted(facts["accesses"].keys() - named):
                if name.startswith(operation):
                    yield f"{name} {facts['accesses'][name]} times, which no rule names"


def breaches_of_budget(rule, facts, architecture):
    if "instructions_per_element" not in rule or "elements" not in rule:
        yield "has no budget of instructions"
        return
    budget, elements = of_architecture(rule["instructions_per_element"], architecture), rule["elements"]
    spent = facts["way"] / elements
    way = rule.get("way", facts["way"])
    if isinstance(way, dict):
        way = way.get(architecture, facts["way"])
    if facts["way"] != way:
        yield f"{facts['way']} instructions on the longest way, wanted {way}"
    if spent > budget:
        yield f"{spent:.1f} instructions an element, at most {budget}"
    # Such a budget holds nothing; or what was read is no whole way.
    if spent < budget / 3:
        yield f"{spent:.1f} instructions an element, less than a third of {budget}"


def breaches_of(rule, facts, architecture):
    for field in ("registers", "spilled_bytes", "stack_bytes", "shared_bytes", "barriers"):
        if field in rule and facts[field] > (most := of_architecture(rule[field], architecture)):
            yield f"{field} {facts[field]}, at most {most}"
    if "accesses" in facts:
        yield from breaches_of_counts(rule, facts, architecture)
        yield from breaches_of_widths(rule, facts)
        yield from breaches_of_budget(rule, facts, architecture)


def check(found, rules, is_part):
    breaches = []
    for (architecture, kernel), facts in sorted(found.items()):
        breaches += [f"sm_{architecture} {kernel}: {breach}"
                     for breach in breaches_of(rule_of(kernel, rules), facts, architecture)]
    kernels = {kernel for _, kernel in found}
    if not is_part:
        breaches += [f"no kernel is called {pattern}" for pattern in rules
                     if not any(re.fullmatch(pattern, kernel) for kernel in kernels)]
    return breaches


def table(found):
    """One line for each kernel that has a number of instructions."""
    for (architecture, kernel), facts in sorted(found.items()):
        if "way" in facts:
            print(f"sm_{architecture} {kernel}: {facts['registers']} registers, {facts['way']} instructions")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="", help="nothing, or the compiler; ptxas lies beside it or in PATH")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--part", action="store_true", help="not all sources: a rule may name none of their kernels")
    parser.add_argument("--table", action="store_true", help="print every kernel's registers and instructions")
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    parser.add_argument("contract", type=pathlib.Path)
    arguments = parser.parse_args()
    tools, problem = cuda_code.find_tools(arguments.nvcc)
    if tools is None:
        print(f"count: the contract of CUDA kernels is skipped: {problem}")
        return 0
    contract = json.loads(arguments.contract.read_text())
    architectures = contract.get("architectures") or cuda_code.architectures()
    found = cuda_code.facts_of(tools[0], arguments.sources, architectures, arguments.results)
    if arguments.table:
        table(found)
    breaches = check(found, contract["kernels"], arguments.part)
    for breach in breaches:
        print(breach)
    unread = [architecture for architecture in architectures if architecture not in cubin.ARCHITECTURES]
    if unread:
        print(f"count: of sm_{', '.join(unread)} registers, stack and spills alone are looked at")
    kernels = {kernel for _, kernel in found}
    print(f"count: {len(kernels)} CUDA kernels for sm_{', '.join(architectures)} "
          f"against {len(contract['kernels'])} rules: {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
