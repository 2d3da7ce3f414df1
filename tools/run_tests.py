#!/usr/bin/env python3
"""Runs the suite of a build folder and counts its cases.

    tools/run_tests.py BUILD [ctest arguments, such as -L fast or -R ir]

Shows the output of what failed, every line that a test begins with "count: ", the slowest programs, and at the end
`N passed, N failed` over single cases (a program that is no GoogleTest counts as one case).
"""

import json
import os
import pathlib
import re
import subprocess
import sys

RESULT = re.compile(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.+ *(Passed|\*+\S.*?) +([\d.]+) sec")


def gtest_cases(report):
    """(passed, names of failed, skipped) of one GoogleTest JSON report."""
    passed, failed, skipped = 0, [], 0
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                failed.append(f"{suite['name']}.{case['name']}")
            elif case.get("result") == "SKIPPED":
                skipped += 1
            elif case.get("status") == "RUN":
                passed += 1
    return passed, failed, skipped


def without_address_randomisation():
    """ThreadSanitizer of g++ 12 cannot map its shadow under the wide randomisation of newer kernels."""
    command = ["setarch", "-R"]
    return command if subprocess.run(command + ["true"], stderr=subprocess.DEVNULL).returncode == 0 else []


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reports = build / "test-reports"
    for old in reports.glob("*.json"):
        old.unlink()
    environment = dict(os.environ, GTEST_COLOR="no")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    environment.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    command = ["ctest", "--test-dir", str(build), "--verbose", "--no-tests=error", "-j", str(os.cpu_count())]
    command += sys.argv[2:]
    if build.name == "tsan":
        command = without_address_randomisation() + command

    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               encoding="utf-8", errors="replace")
    output, results = {}, []  # output: {ctest's number of the test: lines}
    for line in process.stdout:
        numbered = re.match(r"^(\d+): (.*)$", line.rstrip("\n"))
        if numbered:
            output.setdefault(numbered[1], []).append(numbered[2])
            if numbered[2].startswith("count: "):
                print(numbered[2], flush=True)
            continue
        result = RESULT.match(line)
        if not result:
            continue
        number = re.search(r"#(\d+):", line)[1]
        name, verdict, seconds = result[1], result[2], float(result[3])
        results.append((name, verdict == "Passed", seconds))
        print(f"{'ok    ' if verdict == 'Passed' else 'FAILED'} {name} ({seconds:.1f} s)", flush=True)
        if verdict != "Passed":
            print("\n".join(output.get(number, [])), f"\n[{name}] {verdict}", flush=True)
        output.pop(number, None)
    status = process.wait()

    passed, failed, skipped = 0, [], 0
    for name, ok, _ in results:
        report = reports / f"{name}.json"
        if report.exists():
            cases = gtest_cases(report)
            passed += cases[0]
            failed += [f"{name}: {case}" for case in cases[1]]
            skipped += cases[2]
            if not ok and not cases[1]:
                failed.append(name)
        elif ok:
            passed += 1
        else:
            failed.append(name)
    for name in failed:
        print(f"failed: {name}")
    if status != 0 and not failed:
        failed.append("ctest")
        print(f"ctest ended with status {status}")
    slowest = sorted(results, key=lambda result: -result[2])[:5]
    print("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, _, seconds in slowest))
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
