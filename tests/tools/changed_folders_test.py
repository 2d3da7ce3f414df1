#!/usr/bin/env python3
"""Tests of tools/changed_folders.py: what a change affects, in a small tree and in this one."""

import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import changed_folders  # noqa: E402
import check_layers  # noqa: E402

FILES = {
    "src/base/text.h": "",
    "src/kernels/kernel.h": '#include "base/text.h"',
    "src/kernels/cpu/sum.cpp": '#include "kernels/kernel.h"',
    "src/compiler/compile.h": '#include "kernels/kernel.h"',
    "src/engine/engine.h": '#include "compiler/compile.h"',
    "apps/cli/main.cpp": '#include "engine/engine.h"',
    "tests/support.h": '#include "base/text.h"',
    "tests/support.cpp": '#include "tests/support.h"\n#include "compiler/compile.h"',
    "tests/base/text_test.cpp": '#include "base/text.h"',
    "tests/kernels/sum_test.cpp": '#include "kernels/kernel.h"',
    "tests/compiler/one_test.cpp": '#include "compiler/compile.h"\n#include "tests/base/words.h"',
    "tests/ir/ir_test.cpp": '#include "tests/support.h"',
    "tests/engine/engine_test.cpp": '#include "engine/engine.h"',
    "tests/errors/exit_test.cpp": "run(WEFT_PROGRAM);",
    "tests/check_vectors.cpp": '#include "compiler/compile.h"',
}
# What they may include does not count, only what they do include.
LAYERS = {name: (below, set()) for name, below in [("base", True), ("kernels", False), ("kernels/cpu", True),
                                                   ("compiler", True), ("engine", True), ("apps/cli", True)]}
PROGRAMS = ["tests/test_base", "tests/test_kernels", "tests/test_compiler", "tests/test_ir", "tests/test_engine",
            "tests/test_engine_slow", "tests/test_errors", "check_vectors"]
OF_COMPILER = {"tests/test_compiler", "tests/test_ir", "tests/test_engine", "tests/test_engine_slow",
               "tests/test_errors", "check_vectors"}


class SmallTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def affected(self, *changed):
        included = changed_folders.folders_of_libraries(LAYERS, self.root)
        return {target for target in PROGRAMS
                if changed_folders.is_affected(target, changed, LAYERS, included, self.root)}

    def test_a_folder_with_tests_affects_these(self):
        self.assertEqual(self.affected("src/base/text.h"), {"tests/test_base", "check_vectors"})
        self.assertEqual(self.affected("src/compiler/new.cpp"), {"tests/test_compiler", "check_vectors"})
        self.assertEqual(self.affected("src/engine/engine.h"), {"tests/test_engine", "tests/test_engine_slow"})

    def test_a_folder_below_affects_the_tests_of_the_one_above(self):
        self.assertEqual(self.affected("src/kernels/cpu/sum.cpp"), {"tests/test_kernels", "check_vectors"})

    def test_a_folder_without_tests_affects_what_includes_it_through_others(self):
        self.assertEqual(self.affected("apps/cli/main.cpp"), {"tests/test_errors"})
        (self.root / "tests/kernels/sum_test.cpp").rename(self.root / "tests/sum_test.cpp")
        (self.root / "tests/kernels").rmdir()
        self.assertEqual(self.affected("src/kernels/cpu/sum.cpp"), OF_COMPILER | {"tests/test_kernels"})

    def test_files_of_tests_affect_their_program_and_those_that_include_them(self):
        self.assertEqual(self.affected("tests/base/words.h"), {"tests/test_base", "tests/test_compiler"})
        self.assertEqual(self.affected("tests/engine/engine_test.cpp"), {"tests/test_engine", "tests/test_engine_slow"})

    def test_what_no_rule_covers_affects_everything(self):
        for path in ("tests/support.h", "tests/data/ops/numbers.safetensors", "cmake/tests.cmake", "CMakeLists.txt",
                     "src/new_folder/file.cpp", "tools/layers.txt", "tools/run_tests.py", "something_new"):
            self.assertEqual(self.affected(path), set(PROGRAMS), path)

    def test_what_no_program_reads_affects_nothing(self):
        self.assertEqual(self.affected(), set())
        self.assertEqual(self.affected("README.md", "docs/capture.md", changed_folders.RECORD, "bench/one.cpp"), set())


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patch = mock.patch.object(changed_folders, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        self.git("init", "-q")
        (self.root / "tools").mkdir()
        self.first = self.commit("one.cpp", "1")

    def git(self, *arguments):
        command = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, name, text):
        (self.root / name).write_text(text)
        self.git("add", "-A")
        self.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", name)
        return self.git("rev-parse", "HEAD")

    def record(self, checks, commit):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            changed_folders.record(checks, commit)
        return printed.getvalue()

    def test_committed_changed_deleted_and_new_files_have_changed(self):
        self.commit("two.cpp", "2")
        self.commit("three.cpp", "3")
        (self.root / "three.cpp").write_text("4")
        (self.root / "one.cpp").rename(self.root / "five.cpp")
        self.assertEqual(changed_folders.changed_since(self.first),
                         (["five.cpp", "one.cpp", "three.cpp", "two.cpp"], ""))

    def test_it_is_unknown_without_a_record_and_of_a_commit_outside_the_history(self):
        self.assertIn("has no commit", changed_folders.changed_since(changed_folders.recorded("slow"))[1])
        self.assertIn("not in the history", changed_folders.changed_since("0" * 40)[1])
        other = self.commit("two.cpp", "2")
        self.git("reset", "-q", "--hard", self.first)
        self.assertIn("not in the history", changed_folders.changed_since(other)[1])

    def test_a_record_keeps_the_other_line_and_changes_nothing_that_is_read(self):
        self.record("slow", self.first)
        second = self.commit("two.cpp", "2")
        self.record("sanitize", second)
        self.assertEqual(changed_folders.recorded("slow"), self.first)
        self.assertEqual(changed_folders.recorded("sanitize"), second)
        self.assertEqual(changed_folders.changed_since(second), ([changed_folders.RECORD], ""))

    def test_another_working_tree_is_not_recorded(self):
        (self.root / "new.cpp").write_text("")
        self.assertIn("nothing is recorded", self.record("slow", self.first))
        self.commit("new.cpp", "")
        self.assertIn("nothing is recorded", self.record("slow", self.first))
        self.assertEqual(changed_folders.recorded("slow"), "")


class ThisTree(unittest.TestCase):
    def affected(self, target, path):
        layers = check_layers.read_layers()
        included = changed_folders.folders_of_libraries(layers, ROOT)
        return changed_folders.is_affected(target, [path], layers, included, ROOT)

    def test_folders_reach_what_they_should(self):
        for target in ("tests/test_options", "check_vectors", "fuzz/options"):
            self.assertTrue(self.affected(target, "src/options/options.def"), target)
        for path in ("src/kernels/onednn/new.cpp", "src/codegen/llvm/prelude.cpp", "src/passes/fusion/new.cpp"):
            self.assertTrue(self.affected("check_vectors", path), path)
        for target in ("tests/test_engine", "tests/test_server", "tests/test_models", "tests/test_cli"):
            self.assertTrue(self.affected(target, "src/nn/new.cpp"), target)
        for target in ("tests/test_kernels", "tests/test_kernels_slow", "tests/test_cuda"):
            self.assertTrue(self.affected(target, "src/kernels/cuda/new.cpp"), target)
        for target in ("tests/test_cli", "tests/test_tensor", "tests/test_end_to_end"):
            self.assertFalse(self.affected(target, "src/engine/new.cpp"), target)

    def test_every_file_with_a_planted_bug_is_checked_when_it_changes(self):
        patches = sorted((ROOT / "tests/planted").glob("*.patch"))
        self.assertTrue(patches)
        for patch in patches:
            text = patch.read_text()
            paths = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
            paths += [f"tests/{name}/new_test.cpp" for name in re.findall(r"^(?:Caught by|Passes): test_(\w+)", text, re.M)]
            for path in [*paths, patch.relative_to(ROOT).as_posix()]:
                self.assertTrue(changed_folders.matches(path, changed_folders.FILES["planted_bugs"]), path)


if __name__ == "__main__":
    unittest.main()
