#!/usr/bin/env python3
"""Runs the suite of a build folder and counts its cases.

    tools/run_tests.py BUILD [ctest arguments, such as -L fast or -R ir]

Shows the output of what failed, of a GoogleTest without the lines that say which cases passed; every line that a test
begins with "count: "; the slowest programs; once more what failed, cut short; and at the end `N passed, N failed` over
single cases (a program that is no GoogleTest counts as one case).
"""

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

# The leak checker's own end, once all tests of a program have passed: where it may not trace threads, for one.
LEAK_CHECKER_DIED = "LeakSanitizer has encountered a fatal error"
SKIPPED = "***Skipped"  # ctest's word for a program whose output says that it is skipped
RESULT = re.compile(r"^\s*\d+/\d+ Test +#\d+: (\S+) \.+ *(Passed|[^*]*\*+\S.*?) +([\d.]+) sec")
RUN, FAILED = "[ RUN      ] ", "[  FAILED  ] "
PASSED = re.compile(r"\[( RUN      |       OK |----------)\]")
LINES_OF_A_CASE, LAST_LINES = 40, 60


class Result(NamedTuple):
    """Of one program."""

    passed: bool
    verdict: str
    seconds: float
    lines: list


def failed_cases(lines):
    """{name: what it printed} of the failed cases of a GoogleTest, and of the one in which it died."""
    cases, name, begin = {}, None, 0
    for i, line in enumerate(lines):
        if line.startswith(RUN):
            name, begin = line[len(RUN):], i + 1
        elif name and (end := re.search(r"(\[.{10}\] )" + re.escape(name) + r"($|,| \()", line)):
            if end[1] == FAILED:
                cases[name] = lines[begin:i]
            name = None
    if name:
        cases[name] = lines[begin:]
    return cases


def without_passed(lines, cases):
    """The lines but those that say of cases other than these that they began or passed."""
    return [line for line in lines if not PASSED.match(line) or (line.startswith(RUN) and line[len(RUN):] in cases)]


def print_failure(name, result):
    """What is worth reading at the end of a log."""
    cases = failed_cases(result.lines)
    for case, lines in cases.items():
        left_out = [f"... {len(lines) - LINES_OF_A_CASE} more lines"] if len(lines) > LINES_OF_A_CASE else []
        print("\n".join([f"failed: {name}: {case}"] + lines[:LINES_OF_A_CASE] + left_out))
    if not cases or not any(re.match(r"\[={10}\] .* ran\.", line) for line in result.lines):
        print("\n".join([f"failed: {name}: {result.verdict}; its last lines:"] + result.lines[-LAST_LINES:]))


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
    """(status, {name: Result}, names of programs that only the leak checker failed); prints as it goes."""
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
        lines = output.pop(re.search(r"#(\d+):", line)[1], [])
        results[name] = Result(verdict in ("Passed", SKIPPED), verdict, seconds, lines)
        if verdict == "Passed":
            print(f"ok     {name} ({seconds:.1f} s)", flush=True)
            continue
        if verdict == SKIPPED:
            print(f"skipped {name}: {lines[-1] if lines else 'it says no reason'}", flush=True)
            continue
        cases = failed_cases(lines)
        print(f"FAILED {name} ({seconds:.1f} s): {', '.join(cases) or verdict}")
        print("\n".join(without_passed(lines, cases)), f"\n[{name}] {verdict}", flush=True)
        if any(LEAK_CHECKER_DIED in line for line in lines):
            again.append(name)
    return process.wait(), results, again


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reports = build / "test-reports"
    for old in reports.glob("*.json"):
        old.unlink()
    environment = dict(os.environ, GTEST_COLOR="no")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    # The runtime of g++ 12 takes thread-local memory of an opened library that begins 16 bytes into a page for that of an
    # old glibc, and its leak checker then reads memory that is nobody's.
    given = environment.get("ASAN_OPTIONS")
    environment["ASAN_OPTIONS"] = "intercept_tls_get_addr=0" + (f":{given}" if given else "")
    suppressions = pathlib.Path(__file__).resolve().with_name("thread_sanitizer_suppressions.txt")
    environment.setdefault("TSAN_OPTIONS", f"halt_on_error=1 suppressions={suppressions}")
    command = ["ctest", "--test-dir", str(build), "--verbose", "--no-tests=error", "-j", str(os.cpu_count())]
    command += sys.argv[2:]
    if build.name == "tsan":
        command = without_address_randomisation() + command

    status, results, again = run_ctest(command, environment)
    if again:
        print(f"once more, for the leak checker died: {', '.join(again)}")
        failures = [name for name, result in results.items() if not result.passed and name not in again]
        status, repeated, _ = run_ctest(command + ["-R", f"^({'|'.join(again)})$"], environment)
        status = status or len(failures)
        results.update(repeated)

    passed, failed, skipped = 0, [], 0
    for name, result in results.items():
        report = reports / f"{name}.json"
        if report.exists():
            cases = gtest_cases(report)
            passed += cases[0]
            failed += [f"{name}: {case}" for case in cases[1]]
            skipped += cases[2]
            if not result.passed and not cases[1]:
                failed.append(name)
        elif result.verdict == SKIPPED:
            skipped += 1
        elif result.passed:
            passed += 1
        else:
            failed.append(name)
    slowest = sorted(results.items(), key=lambda item: -item[1].seconds)[:5]
    print("slowest: " + ", ".join(f"{name} {result.seconds:.1f} s" for name, result in slowest))
    for name, result in results.items():
        if not result.passed:
            print_failure(name, result)
    if status != 0 and not failed:
        failed.append("ctest")
        print(f"ctest ended with status {status}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
