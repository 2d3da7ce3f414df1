"""Row-wise ops in PyTorch on a GPU: eager, by torch.compile, and the fused activation and quantization in Triton.

Prints a line of JSON for each op, size and way: microseconds of one call, the median of graphs of 20 calls that take
turns in as many sets of buffers as the second cache does not hold, as weft_device_check measures. A way that fails says
why in its line. Sizes are in an order by which a run that is cut short has the most useful ones.
"""

import json
import statistics

import torch

GROUP, LARGEST_CODE = 128, 448.0
CALLS, GRAPHS = 20, 13


def silu_and_mul(x):
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def group_quant(x):
    groups = x.float().reshape(x.shape[0], -1, GROUP)
    scales = (groups.abs().amax(-1, keepdim=True) / LARGEST_CODE).clamp(min=1e-10)
    codes = (groups / scales).clamp(-LARGEST_CODE, LARGEST_CODE).to(torch.float8_e4m3fn)
    return codes.reshape(x.shape), scales.squeeze(-1)


def rms_norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def fused_add_rms_norm(x, residual, weight):
    total = x + residual
    return rms_norm(total, weight), total


# The names are weft_device_check's.
OPS = {
    "silu_and_mul + group-128 fp8, fused": (14336, lambda x, other, weight: group_quant(silu_and_mul(x))),
    "silu_and_mul": (14336, lambda x, other, weight: silu_and_mul(x)),
    "per_token_group_quant fp8": (14336, lambda x, other, weight: group_quant(other)),
    "rms_norm": (4096, lambda x, other, weight: rms_norm(other, weight)),
    "rms_norm + group-128 fp8": (4096, lambda x, other, weight: group_quant(rms_norm(other, weight))),
    "fused_add_rms_norm": (4096, lambda x, other, weight: fused_add_rms_norm(x[:, :other.shape[1]], other, weight)),
}


def triton_silu_quant():
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, codes, scales, columns, GROUP: tl.constexpr):
        row, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
        at = group * GROUP + tl.arange(0, GROUP)
        gate = tl.load(x + row * 2 * columns + at).to(tl.float32)
        up = tl.load(x + row * 2 * columns + columns + at).to(tl.float32)
        y = (gate * tl.sigmoid(gate) * up).to(tl.bfloat16).to(tl.float32)
        scale = tl.maximum(tl.max(tl.abs(y), 0) / 448.0, 1e-10)
        tl.store(codes + row * columns + at, (y / scale).to(tl.float8e4nv))
        tl.store(scales + row * (columns // GROUP) + group, scale)

    def run(x, other, weight):
        rows, columns = x.shape[0], x.shape[1] // 2
        codes = torch.empty(rows, columns, dtype=torch.float8_e4m3fn, device=x.device)
        scales = torch.empty(rows, columns // GROUP, dtype=torch.float32, device=x.device)
        kernel[(rows, columns // GROUP)](x, codes, scales, columns, GROUP=GROUP)
        return codes, scales

    return run


def microseconds(run, sets):
    def all_calls():
        for i in range(CALLS):
            run(*sets[i % len(sets)])

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            all_calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        all_calls()
    times = []
    for i in range(3 + GRAPHS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        graph.replay()
        after.record()
        after.synchronize()
        if i >= 3:
            times.append(1e3 * before.elapsed_time(after) / CALLS)
    return statistics.median(times)


def buffers(rows, columns):
    bytes_of_set = 2 * rows * columns * 3
    count = min(CALLS, max(1, int(4 * torch.cuda.get_device_properties(0).L2_cache_size / bytes_of_set) + 1))
    make = lambda *shape: torch.randn(*shape, dtype=torch.bfloat16, device="cuda")
    return [(make(rows, 2 * columns), make(rows, columns), make(columns)) for _ in range(count)]


def main():
    compiled = {name: torch.compile(run, dynamic=False) for name, (_, run) in OPS.items()}
    for rows in (1024, 8192, 128):
        for name, (columns, run) in OPS.items():
            ways = {"torch.compile": compiled[name], "eager": run}
            if name.endswith("fused"):
                ways["triton"] = triton_silu_quant()
            sets = buffers(rows, columns)
            for way, function in ways.items():
                line = {"what": name, "rows": rows, "columns": columns, "way": way}
                try:
                    line["microseconds"] = microseconds(function, sets)
                except Exception as error:  # a way that this PyTorch does not take
                    line["problem"] = f"{type(error).__name__}: {error}"[:300]
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
