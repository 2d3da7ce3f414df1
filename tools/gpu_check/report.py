"""What a run found, as text and as the tables of a page. Only measured numbers are written."""

import json
import re
import sys

from steps import STEPS

MARK = re.compile(r"(<!-- gpu_check: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NOT_MEASURED = "not measured"


class Run:
    """Of several folders the steps of later ones take the place of earlier ones."""

    def __init__(self, *folders):
        self.head, self.steps, self.begun, self.end = {}, {}, [], None
        for folder in folders:
            self._read(folder)

    def _read(self, folder):
        self.begun, self.end = [], None
        for line in (folder / "results.jsonl").read_text().splitlines():
            try:
                line = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a run that was cut
            if line.get("run") == "begin":
                steps_before = self.head.get("steps", [])
                self.head = line | {"steps": steps_before + [one for one in line["steps"] if one not in steps_before]}
            elif line.get("run") == "end":
                self.end = line
            elif line.get("begins"):
                self.begun.append(line["step"])
            else:
                self.steps[line["step"]] = line

    def data(self, step):
        return self.steps.get(step, {}).get("data", {})

    @property
    def cut_in(self):
        """The step in which the run was cut short; None of a whole run."""
        if self.end is not None:
            return None
        return next((step for step in self.begun if step not in self.steps), "the beginning")

    @property
    def copy_rate(self):
        """Bytes a second of a copy within the device, read and written both counted."""
        return self.data("kernels").get("report", {}).get("copied_bytes_per_second")


def number(value, form="{:,.0f}"):
    return NOT_MEASURED if value is None else form.format(value)


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


# -- the parts of a page

def device(run):
    found = run.data("device")
    devices = found.get("weft", {}).get("cuda", {}).get("devices", [])
    if run.head["is_fake"] or not devices:
        return f"{NOT_MEASURED}\n"
    driver = found.get("driver", {})
    rate = number(run.copy_rate and run.copy_rate / 1e9) + " GB/s"
    return (f"{devices[0].get('name')}, {run.head['date']}, driver {driver.get('driver_version', 'unknown')}, clocks at "
            f"most {driver.get('clocks.max.sm')} and {driver.get('clocks.max.mem')}. Copy within the device: {rate}, read "
            "and written both counted.\n")


def _timings(run):
    return run.data("kernels").get("report", {}).get("timings", [])


def kernels(run):
    rows = []
    for one in _timings(run):
        floor, took = one["floor_microseconds"], one["microseconds"]
        share = None if floor is None or took is None else 100 * floor / took
        target = f"{100 * one['target_share']:.0f} %: {one['target']}" if one["target_share"] else ""
        rows.append([one["what"], f"{one['rows']} x {one['columns']}", f"{one['bytes'] / 1e6:.1f}",
                     number(floor, "{:.2f}"), number(took, "{:.2f}"), number(share, "{:.0f} %"), target])
    return table(["kernel", "rows x columns", "MB", "at the copy rate, us", "us", "of the copy rate", "target"], rows)


def torch_rows(run):
    ours = {(one["what"], one["rows"]): one["microseconds"] for one in _timings(run)}
    ways, found = ("torch.compile", "eager", "triton"), {}
    for one in run.data("torch_rows").get("rows", []):
        found.setdefault((one["what"], one["rows"], one["columns"]), {})[one["way"]] = one.get("microseconds")
    rows = []
    for (what, count, columns), times in sorted(found.items()):
        own = ours.get((what, count))
        row = [what, f"{count} x {columns}", number(own, "{:.1f}")]
        for way in ways:
            time = times.get(way)
            row.append("" if way not in times else number(time, "{:.1f}") +
                       (f" ({time / own:.2f} x)" if time and own else ""))
        rows.append(row)
    if not rows:
        return f"{NOT_MEASURED}\n"
    return table(["op", "rows x columns", "Weft, us", *(f"{way}, us" for way in ways)], rows)


def models(run):
    peers = {(one["shape"], one["sequences"]): one for one in run.data("torch_decode").get("rows", [])}
    rows = []
    for shape, one in run.data("decode").get("shapes", {}).items():
        for sequences, rate in one["generated"].items():
            floor = run.copy_rate and one["bytes"] / run.copy_rate
            share = floor and rate and 100 * floor * rate / int(sequences)
            peer = peers.get((shape, int(sequences)), {}).get("rate")
            rows.append([shape, sequences, number(rate), number(share, "{:.0f} %"),
                         number(one["eager"]) if sequences == "1" else "",
                         number(one["host_microseconds"], "{:.0f}") if sequences == "1" else "",
                         f"{peer:,.0f} ({rate / peer:.2f} x)" if peer and rate else NOT_MEASURED])
    return table(["shape", "sequences", "tokens/s", "weights at the copy rate", "launch by launch, tokens/s",
                  "host, us a step", "transformers and torch.compile, tokens/s"], rows) if rows else f"{NOT_MEASURED}\n"


def prompts(run):
    peers = {one["shape"]: one.get("prompt_rate") for one in run.data("torch_decode").get("rows", [])
             if one["sequences"] == 1}
    rows = [[shape, count, number(rate), number(rate and 2e-12 * one["parameters"] * rate),
             number(peers.get(shape)) if count == "512" else ""]
            for shape, one in run.data("decode").get("shapes", {}).items() for count, rate in one["prompt"].items()]
    return table(["shape", "prompt", "tokens/s", "TFLOP/s of the weights",
                  "transformers, not compiled, tokens/s"], rows) if rows else f"{NOT_MEASURED}\n"


def start(run):
    rows = [[shape, number(min(one["cold_startup_times"]), "{:.2f}"), number(min(one["warm_startup_times"]), "{:.2f}"),
             number(one["warm_phases_ms"].get("weights"), "{:.0f}"), number(one["warm_phases_ms"].get("pages"), "{:.0f}")]
            for shape, one in run.data("start").items()]
    peers = run.data("torch_decode").get("rows", [])
    text = table(["shape", "cold, s", "warm, s", "of that weights, ms", "pages and captures, ms"], rows) if rows else \
        f"{NOT_MEASURED}\n"
    for one in peers:
        if one.get("compile_seconds"):
            text += (f"\ntorch.compile of {one['shape']}, {one['sequences']} sequences: {one['compile_seconds']:.1f} s to "
                     "the third step.\n")
    return text


def checkpoints(run):
    rows = [[model, number(one["from_emulated"], "{:.5f}"), number(one["from_cpu"], "{:.5f}"),
             f"{one['tokens_as_emulated']} of {one['tokens']}", f"{one['tokens_as_cpu']} of {one['tokens']}"]
            for model, one in run.data("models").get("rows", {}).items()]
    return table(["checkpoint", "logits from the emulated device's", "from the processor's", "greedy tokens as emulated",
                  "as the processor's"], rows) if rows else f"{NOT_MEASURED}\n"


def step_kernels(run):
    text = ""
    for shape, found in run.data("step_kernels").items():
        kernels_of_step = sorted(found["kernels"].items(), key=lambda one: -one[1]["microseconds"])
        rows = [[f"`{name[:70]}`", str(one["launches"]), number(one["microseconds"], "{:.1f}")]
                for name, one in kernels_of_step]
        text += f"{shape}, one generated token:\n\n" + table(["kernel", "launches", "us in all"], rows) + "\n"
    return text or f"{NOT_MEASURED}\n"


def counters(run):
    rows = [[one["name"], f"`{one['kernel'][:60]}`", str(one["grid"]), number(one["microseconds"], "{:.1f}"),
             number(one["dram_percent"], "{:.0f} %"), number(one["instructions"])]
            for one in run.data("counters").get("rows", [])]
    return table(["timing", "kernel", "grid", "us", "of DRAM's peak", "warp instructions"], rows) if rows else \
        f"{NOT_MEASURED}\n"


def steps(run):
    rows = [[name, one["outcome"], number(one["seconds"], "{:.0f}"), one["says"].replace("|", "/")[:300]]
            for name, one in run.steps.items()]
    return table(["step", "outcome", "s", "what was said"], rows)


def plan(run):
    rows = [[step.name, number(step.seconds), number(step.expected), " ".join(step.does.__doc__.split())]
            for step in STEPS]
    return table(["step", "most, s", "expected on an H100, s", "what it does"], rows)


PARTS = {part.__name__: part for part in (plan, device, kernels, torch_rows, models, prompts, start, checkpoints, step_kernels,
                                          counters, steps)}


def failures(run):
    for name, one in run.steps.items():
        if one["outcome"] not in ("failed", "cut"):
            continue
        yield f"{name} {one['outcome']}: {one['says']}"
        for words in one["data"].get("failures", [])[1:]:
            yield f"  {words}"
        if command := one["data"].get("command"):
            yield f"  repeat: {command}"
        yield f"  repeat the step: gpu_check.sh run OUT --only {name}{' --fake' if run.head['is_fake'] else ''}"
    missing = [name for name in run.head.get("steps", []) if name not in run.steps]
    if run.cut_in:
        yield f"the run was cut short in {run.cut_in}; not seen: {', '.join(missing)}"
    elif missing:
        yield f"the run ended early ({run.end['why']}); not seen: {', '.join(missing)}"


def fill(page, run):
    text = page.read_text()
    found = {match[1] for match in MARK.findall(text)}
    if unknown := found - set(PARTS):
        raise ValueError(f"{page} has marks of no part: {', '.join(sorted(unknown))}")
    page.write_text(MARK.sub(lambda match: f"{match[1]}\n{PARTS[match[2]](run)}\n{match[3]}", text))


def report(folders, page):
    try:
        run = Run(*folders)
    except OSError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    if not run.head:
        print(f"gpu_check: {folders[0]}/results.jsonl has no beginning of a run", file=sys.stderr)
        return 2
    print("".join(f"## {name}\n\n{part(run)}\n" for name, part in PARTS.items()))
    found = list(failures(run))
    print("\n".join(["What failed:", *found] if found else ["Nothing failed."]))
    if page is not None:
        if run.head["is_fake"]:
            print("gpu_check: an emulated device has no times to put into a page", file=sys.stderr)
            return 2
        fill(page, run)
        print(f"{page} is filled.")
    return 1 if found else 0
