"""Steps about the device itself and its kernels: facts, recorded launches, times, and NVIDIA's own checkers."""

import csv
import io
import json
import os
import shutil
import subprocess

from outcomes import Failed, Refused, Skipped, answer, last_words

FACTS_OF_DRIVER = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "clocks.max.sm",
                   "clocks.max.mem")


def device(session):
    """What answers at all. The words of a refusal say what is missing: library, driver, device code."""
    data = {"weft": json.loads(answer([session.weft, "info", "--json", "--device", session.device]))}
    if session.is_fake:
        return "an emulated device", data
    if shutil.which("nvidia-smi"):
        printed = answer(["nvidia-smi", f"--query-gpu={','.join(FACTS_OF_DRIVER)}", "--format=csv,noheader"])
        data["driver"] = dict(zip(FACTS_OF_DRIVER, [word.strip() for word in printed.splitlines()[0].split(",")]))
    found = data["weft"]["cuda"]["devices"][0]
    return json.dumps(found), data


def _failures(report):
    for checks in report["launches"]:
        for failed in checks["failed"]:
            yield f"{checks['kernel']}, {failed['name']}: {failed['text']}"
        if checks["absent"]:
            yield f"{checks['kernel']} is not in the program's device code"
    for part in ("designs", "timed_launches", "faults"):
        for case in report[part]:
            if case["outcome"] == "failed":
                yield f"{case['name']}: {case['text']}"
    if report["launches_problem"]:
        yield f"recorded launches: {report['launches_problem']}"


def _checked(session, parts):
    """The report of weft_device_check, and its command line."""
    path = session.out / "device_check.json"
    words = [session.programs / "weft_device_check", "--only", parts, "--json", path, "--table",
             session.out / f"{parts}.md", "--launches", session.programs / "launches.bin",
             *(["--fake"] if session.is_fake else [])]
    path.unlink(missing_ok=True)
    refusal = None
    try:
        answer(words, session.seconds)
    except Refused as problem:  # status 1 where something failed; the file says what
        refusal = problem
    if not path.exists():
        raise refusal
    return json.loads(path.read_text()), " ".join(map(str, words))


def kernels(session):
    """weft_device_check in whole: recorded launches, both designs, times, faults. A kernel that fails takes the device
    from its process, so that those faults are a process each."""
    report, command = _checked(session, "launches,designs,once,timings,faults")
    for part in ("kernel_fault", "graph_fault"):
        report["faults"] += _checked(session, part)[0]["faults"]
    failures = list(_failures(report))
    passed = sum(checks["passed"] for checks in report["launches"])
    data = {"report": report, "failures": failures, "command": command}
    if failures:
        raise Failed(f"{len(failures)} failed of {passed + len(failures)}: {failures[0][:400]}", data)
    missed = [f"{one['what']} {one['rows']} x {one['columns']}" for one in report["timings"]
              if one["target"] == "missed"]
    return f"{passed} recorded launches; targets missed: {', '.join(missed) or 'none'}", data


# -- NVIDIA's tools

def _tool(session, name):
    if session.is_fake:
        raise Skipped("the emulated device has checks of its own")
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin:/opt/nvidia/nsight-compute")
    if not found:
        raise Skipped(f"there is no {name} on this machine")
    return found


def _sanitized(session, tool):
    """compute-sanitizer over the first recorded launch of each kernel, and each timed launch at a small size."""
    sanitizer = _tool(session, "compute-sanitizer")
    words = [sanitizer, "--tool", tool, "--error-exitcode", "9", session.programs / "weft_device_check", "--only",
             "launches,once", "--one-each", "--json", session.out / f"{tool}.json", "--table",
             session.out / f"{tool}.md", "--launches", session.programs / "launches.bin"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=session.seconds)
    (session.out / f"{tool}.log").write_text(done.stdout + done.stderr)
    summary = [line.strip("= ") for line in done.stdout.splitlines() if "ERROR SUMMARY" in line or "RACECHECK" in line]
    data = {"summary": summary, "command": " ".join(map(str, words))}
    if done.returncode != 0:
        first = [line.strip("= ") for line in done.stdout.splitlines() if line.startswith("=========")][1:3]
        raise Failed(f"status {done.returncode}: {' / '.join(summary + first) or last_words(done.stderr)}", data)
    return ", ".join(summary), data


def memcheck(session):
    """compute-sanitizer's memcheck of every kernel once, and that it sees a fault that is provoked on purpose."""
    words = [_tool(session, "compute-sanitizer"), "--tool", "memcheck", session.programs / "weft_device_check", "--only",
             "kernel_fault", "--json", session.out / "fault.json", "--table", session.out / "fault.md"]
    printed = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=session.seconds)
    if "Misaligned" not in printed.stdout and "misaligned" not in printed.stdout:
        raise Failed(f"memcheck does not see a misaligned access: {last_words(printed.stdout)}")
    return _sanitized(session, "memcheck")


def racecheck(session):
    """compute-sanitizer's racecheck of every kernel once."""
    return _sanitized(session, "racecheck")


def synccheck(session):
    """compute-sanitizer's synccheck of every kernel once."""
    return _sanitized(session, "synccheck")


def _profiled(session, metrics, program, *options):
    """A row for each launch that ncu saw: {"Kernel Name": .., metric: value}. Clocks stay as they are."""
    ncu = _tool(session, "ncu")
    words = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(metrics), *options,
             *program]
    printed = answer(words, session.seconds, env=os.environ | {"TMPDIR": str(session.out)})
    lines = printed.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise Failed(f"ncu printed no table: {last_words(printed)}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    return rows[1:], " ".join(map(str, words))  # the first row has units


def _number(text):
    try:
        return float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None


DRAM, INSTRUCTIONS, TIME = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "smsp__inst_executed.sum",
                            "gpu__time_duration.sum")
COUNTED = ("silu_and_mul + group-128 fp8, fused, 8192 x", "attention of a prompt, matrix units, 2048 x",
           "attention of single tokens, 4096 in each cache, 16 x")


def counters(session):
    """DRAM throughput and instructions of the fused kernel and of attention, in launches of their timings."""
    found = []
    for name in COUNTED:
        program = [session.programs / "weft_device_check", "--only", "timings", "--name", name, "--json",
                   session.out / "counters.json", "--table", session.out / "counters.md"]
        rows, command = _profiled(session, (DRAM, INSTRUCTIONS, TIME), program, "--launch-count", "3",
                                  "--launch-skip", "2")
        found += [{"name": name, "kernel": row["Kernel Name"], "grid": row.get("Grid Size"),
                   "microseconds": _number(row[TIME]) / 1e3, "dram_percent": _number(row[DRAM]),
                   "instructions": _number(row[INSTRUCTIONS])} for row in rows]
    return f"{len(found)} launches", {"rows": found, "command": command}


def step_kernels(session):
    """Which kernels a generated token of a model takes, and how long each is on the device."""
    data = {}
    for shape in ("llama-3-8b-bf16", "smollm2-135m-bf16"):
        program = [session.weft, "bench", "model", session.shape(shape), "--load-format", "dummy", "--device", "cuda",
                   "-p", "0", "-n", "1", "-r", "1", "-d", "1", "--no-warmup", "-cc.cudagraph_mode=NONE"]
        rows, command = _profiled(session, (TIME,), program)
        rows = rows[len(rows) // 2:]  # of two equal steps, the token before and the one that is generated
        kernels = {}
        for row in rows:
            kernel = kernels.setdefault(row["Kernel Name"], {"launches": 0, "microseconds": 0.0})
            kernel["launches"] += 1
            kernel["microseconds"] += _number(row[TIME]) / 1e3
        data[shape] = {"kernels": kernels, "command": command}
    totals = {shape: sum(one["microseconds"] for one in found["kernels"].values()) for shape, found in data.items()}
    return ", ".join(f"{shape} {total:.0f} us in kernels" for shape, total in totals.items()), data
