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

# The leak checker's own end, at random, once all tests of a program have passed.
LEAK_CHECKER_DIED = "LeakSanitizer has encountered a fatal error"
RESULT = re.compile(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.+ *(Passed|[^*]*\*+\S.*?) +([\d.]+) sec")


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


def run_ctest(command, environment):
    """(status, {name: (passed, seconds)}, names of programs that only the leak checker failed); prints as it goes."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               encoding="utf-8", errors="replace")
    output, results, again = {}, {}, []  # output: {ctest's number of the test: lines}
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
        name, verdict, seconds = result[1], result[2], float(result[3])
        results[name] = (verdict == "Passed", seconds)
        print(f"{'ok    ' if verdict == 'Passed' else 'FAILED'} {name} ({seconds:.1f} s)", flush=True)
        text = "\n".join(output.pop(re.search(r"#(\d+):", line)[1], []))
        if verdict != "Passed":
            print(text, f"\n[{name}] {verdict}", flush=True)
            if LEAK_CHECKER_DIED in text:
                again.append(name)
    return process.wait(), results, again


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reports = build / "test-reports"
    for old in reports.glob("*.json"):
        old.unlink()
    environment = dict(os.environ, GTEST_COLOR="no")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    suppressions = pathlib.Path(__file__).resolve().with_name("thread_sanitizer_suppressions.txt")
    environment.setdefault("TSAN_OPTIONS", f"halt_on_error=1 suppressions={suppressions}")
    command = ["ctest", "--test-dir", str(build), "--verbose", "--no-tests=error", "-j", str(os.cpu_count())]
    command += sys.argv[2:]
    if build.name == "tsan":
        command = without_address_randomisation() + command

    status, results, again = run_ctest(command, environment)
    if again:
        print(f"once more, for the leak checker died: {', '.join(again)}")
        failures = [name for name, (ok, _) in results.items() if not ok and name not in again]
        status, repeated, _ = run_ctest(command + ["-R", f"^({'|'.join(again)})$"], environment)
        status = status or len(failures)
        results.update(repeated)

    passed, failed, skipped = 0, [], 0
    for name, (ok, _) in results.items():
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
    slowest = sorted(results.items(), key=lambda result: -result[1][1])[:5]
    print("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, (_, seconds) in slowest))
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
