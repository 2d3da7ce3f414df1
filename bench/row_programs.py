#!/usr/bin/env python3
"""Generated functions against what the machine can do: a copy of the bytes they move, and the ports they issue to.

    bench/row_programs.py [MODEL] [--threads 2] [--bytes N] [--columns 4096] [--op OP ...] [--mcpu icelake-server]

`weft bench functions` times them (of MODEL, or without one of every op's sample in f32 and bf16); llvm-mca says how many
cycles the loops of their machine code take at least if nothing waits for anything: for each loop the units it issues to,
times its turns, along the shortest way through a row (others are for numbers out of the ordinary). llvm-mca's own "block
throughput" is less: it regards operations that two of four units take apart from those that all four take. `simulated` is
how long its core takes, which waits for results and has so much room for what waits, without caches. A function whose
row by the limit takes longer than its share of the copy is bound by computing, else by memory. Wanted of those bound by
memory: 75 % of the copy's speed; of the others: at most 15 % longer than the limit, measured over rows in a core's own
cache. Sorted by how far they are from that.

Wants llvm-objdump and llvm-mca of LLVM 19, as Debian's package llvm-19 has them.
"""

import argparse
import heapq
import json
import pathlib
import re
import subprocess
import sys
import tempfile

WEFT = pathlib.Path(__file__).resolve().parent.parent / "build" / "weft"
MEMORY_WANTED, COMPUTE_WANTED = 75.0, 100 / 1.15
PASSES = 300
ZEN5 = "znver5"


def output(command, **more):
    return subprocess.run([str(word) for word in command], check=True, text=True, capture_output=True, **more).stdout


def processor():
    """The scheduling model of llvm-mca that is next to this machine, or ZEN5, of which it has none. That of
    sapphirerapids has no divider (LLVM 19)."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    if "AuthenticAMD" in text and re.search(r"^cpu family\s*: 26$", text, re.M):
        return ZEN5
    if "AuthenticAMD" in text:
        return "znver4" if " avx512f " in text else "znver3"
    return "icelake-server" if " avx512f " in text else "haswell"


class Function:
    """The instructions of one object file, as (address, text)."""

    def __init__(self, path):
        self.code = []
        for line in output(["llvm-objdump-19", "-d", "--no-show-raw-insn", path]).splitlines():
            match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
            if match:
                self.code.append((int(match[1], 16), re.sub(r"\s*(<.*>|#.*)", "", match[2]).replace("\t", " ").strip()))

    def loops(self):
        """(first, last) instruction of every backward jump, the outermost, which goes over rows, last."""
        index = {address: i for i, (address, _) in enumerate(self.code)}
        found = []
        for i, (address, text) in enumerate(self.code):
            match = re.match(r"j\w+ 0x([0-9a-f]+)$", text)
            if match and int(match[1], 16) <= address:
                found.append((index[int(match[1], 16)], i))
        return sorted(found, key=lambda loop: loop[1] - loop[0])

    def turns(self, first, last):
        """How often a loop of the form `add $step, r; cmp $end, r; jb` runs, r set before it, or of the form `lea
        step(r), next; ... mov next, r; cmp $end, next; jb`; None for another form."""
        compare = re.match(r"cmp[lq]? \$(-?\w+), (%\w+)$", self.code[last - 1][1])
        if not compare:
            return None
        step = value = None
        register = compare[2]
        for _, text in self.code[first:last]:
            match = re.match(r"lea[lq]? (-?0x\w+)\((%\w+)\), " + compare[2] + "$", text)
            if match:
                step, register = int(match[1], 0), match[2]
            match = re.match(r"(add|sub)[lq]? \$(-?\w+), (%\w+)$", text)
            if match and match[3] == compare[2]:
                step = int(match[2], 0) * (1 if match[1] == "add" else -1)
            elif re.match(r"inc[lq]? " + compare[2] + "$", text):
                step = 1
        for _, text in reversed(self.code[:first]):
            match = re.match(r"mov[lqabs]* \$(-?\w+), (%\w+)$", text)
            if match and same_register(match[2], register):
                value = int(match[1], 0)
                break
            match = re.match(r"xorl? (%\w+), (%\w+)$", text)
            if match and match[1] == match[2] and same_register(match[1], register):
                value = 0
                break
        if step is None or value is None or step <= 0:
            return None
        return max(1, -(-(int(compare[1], 0) - value) // step))

    def limit(self, mcpu):
        """Cycles that a row takes at least by the units it issues to, on the shortest way from the head of the loop over
        rows back to it, and how many are simulated there; None where a loop has a form we do not read."""
        loops = self.loops()
        if not loops:
            return None
        head = loops[-1][0]
        inner = {first: last for first, last in loops if first != head}
        if any(a < b <= c for a, c in inner.items() for b in inner):
            return None
        index = {address: i for i, (address, _) in enumerate(self.code)}
        found, costs = [((0.0, 0.0), head, True)], {}
        plus = lambda cost, turns, lines: tuple(a + turns * b for a, b in zip(cost, cycles(lines, mcpu)))
        while found:
            cost, at, begins = heapq.heappop(found)
            if at == head and not begins:
                return cost
            if at in costs:
                continue
            costs[at] = cost
            if at in inner:
                turns = self.turns(at, inner[at])
                if turns is None:
                    return None
                lines = [self.code[i][1] for i in range(at, inner[at] + 1)]
                heapq.heappush(found, (plus(cost, turns, lines), inner[at] + 1, False))
                continue
            lines, end = [], at
            is_end = lambda i: i == len(self.code) or self.code[i][1].startswith("ret")
            while not is_end(end) and (end == at or end not in inner) and not self.code[end][1].startswith("j"):
                lines.append(self.code[end][1])
                end += 1
            if is_end(end):
                continue  # the way out
            jump = re.match(r"(j\w+) 0x([0-9a-f]+)$", self.code[end][1])
            cost = plus(cost, 1, lines + [self.code[end][1]] * bool(jump))
            if jump:
                heapq.heappush(found, (cost, index[int(jump[2], 16)], False))
            if not jump or jump[1] != "jmp":
                heapq.heappush(found, (cost, end + bool(jump), False))
        return None


def same_register(one, other):
    """%ebx and %rbx, %r9d and %r9."""
    plain = lambda name: re.sub(r"^%(r?)(\w+?)d?$", r"\2", re.sub(r"^%e", "%r", name))
    return plain(one) == plain(other)


def as_zen4(text):
    """Instructions for Zen 4's model of what Zen 5 makes of them, which LLVM 19 does not know: a vector of 512 bits
    takes a unit as long as one of 256, where Zen 4's units take it in two halves."""
    narrow = text.replace("%zmm", "%ymm").replace("{1to16}", "{1to8}")
    tried = subprocess.run(["llvm-mc-19", "-triple=x86_64-linux", "-mcpu=znver4", "-filetype=null", "-"], input=narrow,
                           text=True, capture_output=True)
    without = {int(number) - 1 for number in re.findall(r"^<stdin>:(\d+):\d+: error", tried.stderr, re.M)}
    lines = zip(text.splitlines(), narrow.splitlines())
    return "\n".join(wide if i in without else line for i, (wide, line) in enumerate(lines)) + "\n"


def cycles(lines, mcpu):
    """Cycles of one pass over a block, repeated: at least by the units it issues to, and simulated."""
    text = "\n".join(re.sub(r"^(j\w+|call\w*) .*", "nop", line) for line in lines) + "\n"
    is_zen5, zen5_dispatches = mcpu == ZEN5, 8
    text, mcpu = (as_zen4(text), "znver4") if is_zen5 else (text, mcpu)
    command = ["llvm-mca-19", "-mtriple=x86_64-linux", f"-mcpu={mcpu}", "-all-views=false", "-summary-view"]
    out = output(command + [f"-iterations={PASSES}", "-"], input=text)
    dispatched = len(lines) / zen5_dispatches if is_zen5 else float(re.search(r"Block RThroughput:\s+([\d.]+)", out)[1])
    return max(dispatched, issue(text, mcpu)), float(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / PASSES


def issue(text, mcpu):
    """Cycles of the most wanted units: for each set of units what only they take, divided by how many they are."""
    out = output(["llvm-mca-19", "-mtriple=x86_64-linux", f"-mcpu={mcpu}", "-instruction-tables", "-"], input=text)
    kinds = []  # of units that stand for one another: FP0, FP1; by column
    for unit, part, name in re.findall(r"^\[(\d+)(\.\d+)?\] +- (\w+)$", out, re.M):
        kinds.append(name if part else re.sub(r"\d+$", "", name))
    wanted = {}  # cycles, by the units that may be taken
    for line in out[out.index("Resource pressure by instruction:"):].splitlines()[2:]:
        busy = {i: float(word) for i, word in enumerate(line.split()[:len(kinds)]) if word != "-"}
        for kind in {kinds[i] for i in busy}:
            units = frozenset(i for i in busy if kinds[i] == kind)
            wanted[units] = wanted.get(units, 0) + sum(busy[i] for i in units)
    sets = set(wanted)
    for units in wanted:
        sets |= {units | other for other in sets if kinds[min(units)] == kinds[min(other)]}
    return max((sum(wanted[one] for one in wanted if one <= units) / len(units) for units in sets), default=0)


def names_of(model):
    """What each function of a model computes."""
    if model is None:
        return {}
    functions = json.loads(output([WEFT, "dump", "code", model, "--json"]))["functions"]
    names = {}
    for function in functions:
        ops = [re.sub(r"_\d+$", "", node) for node in function["nodes"]]
        names[function["name"]] = " ".join(dict.fromkeys(op for op in ops if op != "cast"))
    return names


def measure(arguments, folder):
    command = [WEFT, "bench", "functions", "--json", "--objects", folder, "-t", arguments.threads]
    command += ["-r", arguments.repetitions, "--bytes", arguments.bytes, "--columns", arguments.columns]
    command += [arguments.model] if arguments.model else []
    for op in arguments.op:
        command += ["--op", op]
    return json.loads(output(command))


def judged(row, threads, clock_ghz, limit):
    """The row with `bound`, `share` in percent of what binds it, and whether that is enough."""
    limit, row["simulated_cycles"] = limit or (None, None)
    copy_ns = row["copy_us"] * 1e3 * threads / row["rows"]
    row["limit_cycles"] = limit
    row["of_limit"] = None if limit is None else 100 * limit / row["cached_row_cycles"]
    computes = limit is not None and limit / clock_ghz > copy_ns
    row["bound"] = "compute" if computes else "memory"
    row["share"] = row["of_limit"] if computes else row["percent_of_copy"]
    row["missing"] = (COMPUTE_WANTED if computes else MEMORY_WANTED) - row["share"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--bytes", default="0")
    parser.add_argument("--columns", default="4096")
    parser.add_argument("--op", action="append", default=[])
    parser.add_argument("--mcpu", default=processor())
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        report = measure(arguments, folder)
        names = [row["function"] for row in report["rows"]]
        limits = {name: Function(f"{folder}/{name}.o").limit(arguments.mcpu) for name in names}
    machine, names = report["machine"], names_of(arguments.model)
    rows = [judged(row, machine["n_threads"], machine["clock_ghz"], limits[row["function"]]) for row in report["rows"]]

    model = "znver4, with 512 bits at once" if arguments.mcpu == ZEN5 else arguments.mcpu
    print(f"{machine['cpu_info']}, {machine['cpu_features']}, {machine['n_threads']} threads at {machine['clock_ghz']:.2f} "
          f"GHz; limits by llvm-mca for {model}\n")
    print("| function | row bytes | GB/s | copy GB/s | % of copy | cycles | simulated | limit | % of limit | bound by | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|")
    for row in sorted(rows, key=lambda row: -row["missing"]):
        limit, simulated = ("?" if row[name] is None else f"{row[name]:.0f}"
                            for name in ("limit_cycles", "simulated_cycles"))
        of_limit = "?" if row["of_limit"] is None else f"{row['of_limit']:.0f}"
        name = names.get(row["function"], row["source"])
        print(f"| {row['function'][5:11]} {name} | {row['row_bytes']} | {row['gb_s']:.2f} | {row['copy_gb_s']:.2f} | "
              f"{row['percent_of_copy']:.0f} | {row['cached_row_cycles']:.0f} | {simulated} | "
              f"{limit} | {of_limit} | {row['bound']} | "
              f"{'below' if row['missing'] > 0 else ''} |")
    for bound, wanted in (("memory", MEMORY_WANTED), ("compute", COMPUTE_WANTED)):
        own = [row for row in rows if row["bound"] == bound]
        good = sum(row["missing"] <= 0 for row in own)
        print(f"{'' if bound == 'compute' else chr(10)}Bound by {bound}: {good} of {len(own)} at or above {wanted:.0f} %.")
    for refused in report["refused"]:
        print(f"Without a function: {refused['source']}: {refused['reason']}", file=sys.stderr)


if __name__ == "__main__":
    main()
