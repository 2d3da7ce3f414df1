#!/usr/bin/env python3
"""tools/gpu_check.sh as a whole, on the fake device: packed, run, reported; and that what is broken on purpose is told.

    tests/gpu_check/gpu_check_test.py BUILD
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu_check"))
import report as reports  # noqa: E402
import run  # noqa: E402
import steps  # noqa: E402

BUILD = None
# A driver for CUDA 11.4, as far as a program asks before it refuses it.
OLD_DRIVER = "int cuDriverGetVersion(int* version) { *version = 11040; return 0; }\nint cuInit(unsigned f) { return 0; }\n"


def gpu_check(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env=os.environ | {"PYTHON": sys.executable} | more)


def first_wanted(launches):
    """Where the bytes begin that the first result of a recorded launch must have (apps/device_check/launch_file.h)."""
    def number(at):
        return int.from_bytes(launches[at:at + 8], "little")

    def sized(at):
        """Where its first literal byte is, and its end."""
        left, first = number(at), at + 16
        at += 8
        while left > 0:
            literal = number(at)
            at, left = at + 8 + literal, left - literal
            if left > 0:
                left, at = left - number(at), at + 9
        return first, at

    after_name = launches.index(b"result 0") + len("result 0")
    _, after_before = sized(after_name + 8 + number(after_name))
    return sized(after_before)[0]


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.folder = cls.scratch / "packed"
        packed = gpu_check(ROOT / "tools" / "gpu_check.sh", "pack", cls.folder, "--build", BUILD)
        assert packed.returncode == 0, packed.stderr
        cls.packed = packed.stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def run_steps(self, name, *words, folder=None, **more):
        out = self.scratch / name
        return gpu_check((folder or self.folder) / "gpu_check.sh", "run", out, *words, **more), out

    def report(self, out, *words):
        return gpu_check(ROOT / "tools" / "gpu_check.sh", "report", out, *words)

    def test_a_whole_run_passes_and_has_no_time_of_a_fake_device(self):
        self.assertIn("of at most 60", self.packed)
        done, out = self.run_steps("whole", "--fake")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = reports.Run(out).steps
        self.assertEqual([name for name, step in found.items() if step["outcome"] == "passed"],
                         ["device", "kernels", "models", "modes", "verify", "engines", "decode", "start"])
        for step in found.values():  # what does not run says why
            self.assertTrue(step["outcome"] == "passed" or step["outcome"] == "skipped" and step["says"], step)
        reported = self.report(out)
        self.assertEqual(reported.returncode, 0, reported.stdout)
        self.assertIn("Nothing failed.", reported.stdout)
        kernels = reported.stdout.partition("## kernels")[2].partition("##")[0]
        self.assertIn("not measured", kernels)
        page = self.scratch / "page.md"
        page.write_text("<!-- gpu_check: device -->\nnot measured\n<!-- end -->\n")
        before = page.read_text()
        self.assertEqual(self.report(out, "--into", page).returncode, 2)
        self.assertEqual(page.read_text(), before)

    def broken(self, change):
        """The packed folder with another program or file in the place of one of its own."""
        folder, programs = self.scratch / "broken", self.scratch / "programs"
        for old in (folder, programs):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        with tarfile.open(folder / "programs.tar.xz") as archive:
            archive.extractall(programs)
        change(programs)
        with tarfile.open(folder / "programs.tar.xz", "w:xz", preset=0) as archive:
            for one in sorted(programs.iterdir()):
                archive.add(one, one.name)
        return folder

    def test_a_kernel_that_gives_other_bits_than_were_recorded(self):
        def change(programs):
            launches = bytearray((programs / "launches.bin").read_bytes())
            launches[first_wanted(launches) + 1] ^= 0x40
            (programs / "launches.bin").write_bytes(launches)

        done, out = self.run_steps("wrong", "--fake", "--only", "device,kernels", folder=self.broken(change))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        reported = self.report(out)
        self.assertEqual(reported.returncode, 1)
        self.assertRegex(reported.stdout, r"kernels failed: \d+ failed of \d+: \w+, ")
        self.assertIn("repeat: ", reported.stdout)

    def test_logits_that_differ_from_the_packed_ones(self):
        folder = self.scratch / "other_logits"
        shutil.copytree(self.folder, folder)
        path = folder / "models" / "expected.json"
        expected = json.loads(path.read_text())
        expected["qwen3-int8"]["fake-cuda"] = expected["qwen3-bf16"]["fake-cuda"]
        path.write_text(json.dumps(expected))
        done, out = self.run_steps("logits", "--fake", "--only", "device,models", folder=folder)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("models failed: qwen3-int8 differs from the emulated device", self.report(out).stdout)

    def test_a_program_that_does_not_start_for_want_of_a_library(self):
        def change(programs):
            next(programs.glob("libspdlog*")).write_bytes(b"")

        done, out = self.run_steps("library", "--fake", folder=self.broken(change))
        self.assertEqual(done.returncode, 4, done.stdout)
        reported = self.report(out).stdout
        self.assertIn("device failed: ", reported)
        self.assertIn("libspdlog", reported)
        self.assertIn("the run ended early (device failed); not seen: kernels, ", reported)

    def test_no_driver(self):
        import ctypes
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            done, out = self.run_steps("no_driver")
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn("libcuda.so.1 was not found", self.report(out).stdout)
        else:
            self.skipTest("this machine has a CUDA driver")

    def test_a_driver_that_is_too_old(self):
        folder = self.scratch / "driver"
        folder.mkdir()
        (folder / "driver.c").write_text(OLD_DRIVER)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True)
        done, out = self.run_steps("old_driver", LD_LIBRARY_PATH=str(folder))
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("must be for CUDA 12.0 or newer, but is for 11.4", self.report(out).stdout)

    def test_a_run_that_is_cut_in_the_middle(self):
        out = self.scratch / "cut"
        process = subprocess.Popen([self.folder / "gpu_check.sh", "run", out, "--fake", "--only", "device,kernels,start"],
                                   stdout=subprocess.DEVNULL, env=os.environ | {"PYTHON": sys.executable})
        results, deadline = out / "results.jsonl", time.monotonic() + 60
        while time.monotonic() < deadline and not (results.exists() and '"kernels", "begins"' in results.read_text()):
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open(results, "a") as file:
            file.write('{"step": "kern')  # as a line that was being written
        reported = self.report(out)
        self.assertEqual(reported.returncode, 1)
        self.assertIn("the run was cut short in kernels; not seen: kernels, start", reported.stdout)
        self.assertIn("| device | passed |", reported.stdout)

    def test_a_step_that_does_not_end(self):
        step = steps.Step("endless", 1, lambda session: subprocess.run(["sleep", "600"]), 1)
        session = run.Session(self.folder, self.folder, self.scratch, True, 1)
        begin = time.monotonic()
        outcome, says, _ = run.run_limited(step, session)
        self.assertEqual((outcome, says), ("cut", "no end after 1 s"))
        self.assertLess(time.monotonic() - begin, 300)

    def test_no_step_begins_after_its_time(self):
        done, out = self.run_steps("late", "--fake", "--minutes", "0", "--only", "device,kernels")
        self.assertEqual({step["outcome"] for step in reports.Run(out).steps.values()}, {"skipped"})
        self.assertIn("were left", self.report(out).stdout)

    def test_a_page_is_filled_with_what_was_measured_alone(self):
        out = self.scratch / "measured"
        out.mkdir(exist_ok=True)
        timing = {"what": "rms_norm", "rows": 8, "columns": 64, "bytes": 3000, "floor_microseconds": 1.0,
                  "microseconds": 2.0, "target_share": 0.0, "target": ""}
        lines = [{"run": "begin", "is_fake": False, "date": "2026-01-01", "steps": ["kernels"]},
                 {"step": "kernels", "outcome": "passed", "says": "", "seconds": 1, "data": {"report": {
                     "copied_bytes_per_second": 3e9, "timings": [timing, timing | {"rows": 9, "microseconds": None}]}}},
                 {"run": "end", "why": ""}]
        (out / "results.jsonl").write_text("\n".join(map(json.dumps, lines)))
        page = self.scratch / "page.md"
        page.write_text("before\n<!-- gpu_check: kernels -->\nold\n<!-- end -->\n<!-- gpu_check: start -->\n<!-- end -->\n")
        self.assertEqual(self.report(out, "--into", page).returncode, 0)
        text = page.read_text()
        self.assertIn("| rms_norm | 8 x 64 | 0.0 | 1.00 | 2.00 | 50 % |", text)
        self.assertIn("| rms_norm | 9 x 64 | 0.0 | 1.00 | not measured | not measured |", text)
        self.assertIn("<!-- gpu_check: start -->\n\nnot measured\n\n<!-- end -->", text)
        self.assertTrue(text.startswith("before\n"))
        self.assertNotIn("old", text)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
