"""Makes the folders beside this file: one weight each, in a quantized format as another program packs it, and the
numbers that this program makes of the codes (`expected.weight`, f32). Run with torch, compressed-tensors 0.17.0,
bitsandbytes 0.50.2 and the source of auto-gptq 0.7.1, whose compiled kernels are not needed; of mlx, with mlx 0.32.4 for
the processor.

    python3 tests/data/weights/make.py [FOLDER...]
"""

import importlib.util
import json
import os
import sys

import torch
from safetensors.torch import save_file

ROWS, COLUMNS = 32, 128
MODULE = "model.layers.0.mlp.up_proj"


def random_weight(seed, rows=ROWS, columns=COLUMNS):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def write(name, quantization, tensors, numbers, key="quantization_config"):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    os.makedirs(path, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", key: quantization}
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    tensors = {f"{MODULE}.{key}": value.contiguous() for key, value in tensors.items()}
    save_file({**tensors, "expected.weight": numbers.float().contiguous()}, os.path.join(path, "model.safetensors"))


def compressed_tensors(name, seed, bits, symmetric, group, shuffled=False):
    from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    arguments = dict(num_bits=bits, type="int", symmetric=symmetric,
                     strategy="channel" if group == COLUMNS else "group")
    if group != COLUMNS:
        arguments["group_size"] = group
    if shuffled:
        arguments["actorder"] = "group"
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**arguments))
    weight, count = random_weight(seed), COLUMNS // group
    generator = torch.Generator().manual_seed(seed)
    groups = weight.reshape(ROWS, count, group)
    scale = ((groups.amax(-1) - groups.amin(-1)) / (2 ** bits - 2)).to(torch.bfloat16)
    zero = torch.zeros(ROWS, count, dtype=torch.int8)
    if not symmetric:
        zero = torch.randint(-2 ** (bits - 2), 2 ** (bits - 2), (ROWS, count), generator=generator).to(torch.int8)
    state = {"weight": weight.to(torch.bfloat16), "weight_scale": scale, "weight_zero_point": zero}
    if shuffled:
        order = torch.randperm(COLUMNS, generator=generator)
        state["weight_g_idx"] = (order // group).to(torch.int32)
    packed = PackedQuantizationCompressor.compress(state, scheme)
    # The numbers in f32: with scales of bf16 they would be rounded to bf16.
    wide = dict(packed, weight_scale=packed["weight_scale"].float())
    numbers = PackedQuantizationCompressor.decompress(wide, scheme)["weight"]
    packed["weight_shape"] = packed["weight_shape"].to(torch.int64)
    group_0 = {"targets": ["Linear"], "weights": arguments, "input_activations": None}
    write(name, {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
                 "config_groups": {"group_0": group_0}}, packed, numbers)


def gptq_linear():
    """The layer alone: its package wants much more."""
    file = "auto_gptq/nn_modules/qlinear/qlinear_cuda.py"
    path = next(os.path.join(folder, file) for folder in sys.path if os.path.exists(os.path.join(folder, file)))
    spec = importlib.util.spec_from_file_location("qlinear_cuda", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.QuantLinear


def gptq(name, seed, bits, symmetric, group, shuffled=False):
    generator = torch.Generator().manual_seed(seed)
    linear = torch.nn.Linear(COLUMNS, ROWS, bias=False, dtype=torch.float16)
    linear.weight.data = random_weight(seed).half()
    count, most = COLUMNS // group, 2 ** bits - 1
    scale = (torch.rand(ROWS, count, generator=generator) / most * 6 + 0.01).half()
    middle = torch.full((ROWS, count), (most + 1) // 2)
    zero = middle if symmetric else torch.randint(1, most + 1, (ROWS, count), generator=generator)
    order = torch.randperm(COLUMNS, generator=generator) if shuffled else torch.arange(COLUMNS)
    groups = (order // group).to(torch.int32)
    # Weights that have codes.
    codes = torch.randint(0, most + 1, (ROWS, COLUMNS), generator=generator)
    linear.weight.data = ((codes - zero[:, groups.long()]) * scale[:, groups.long()].float()).half()
    layer = gptq_linear()(bits, group, COLUMNS, ROWS, bias=False)
    layer.pack(linear, scale.float(), zero, groups)
    packed = {key: getattr(layer, key).clone() for key in ("qweight", "qzeros", "scales", "g_idx")}
    layer.scales = layer.scales.float()
    numbers = layer(torch.eye(COLUMNS)).T
    write(name, {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": shuffled, "sym": symmetric,
                 "checkpoint_format": "gptq"}, packed, numbers)


def bitsandbytes(name, seed, kind, columns, nested=False):
    import bitsandbytes.functional as functional
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
    weight = random_weight(seed, columns=columns)
    codes, state = functional.quantize_4bit(weight, quant_type=kind, blocksize=64, compress_statistics=nested)
    absmax = state.absmax
    if nested:
        absmax = functional.dequantize_blockwise(state.absmax, state.state2) + state.offset
    # Without the processor's own kernel, whose blocks begin anew in each row.
    numbers = _dequantize_4bit_compute(codes.reshape(-1), absmax, state.code, 64, (ROWS, columns), torch.float32)
    tensors = {"weight": codes, **{f"weight.{key}": value for key, value in state.as_dict(packed=True).items()}}
    write(name, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind,
                 "bnb_4bit_use_double_quant": nested}, tensors, numbers)


def bitsandbytes_of_bytes(name, seed):
    import bitsandbytes.functional as functional
    codes, scales, _ = functional.int8_vectorwise_quant(random_weight(seed).half())
    numbers = functional.int8_vectorwise_dequant(codes, scales)
    write(name, {"quant_method": "bitsandbytes", "load_in_8bit": True},
          {"weight": codes, "SCB": scales, "weight_format": torch.tensor(0, dtype=torch.uint8)}, numbers)


def mlx(name, seed, bits, group, mode="affine", columns=COLUMNS):
    import mlx.core as core
    import numpy
    weight = core.array(random_weight(seed, columns=columns).numpy()).astype(core.float16)
    parts = core.quantize(weight, group, bits, mode=mode)
    wide = [part.astype(core.float32) if core.issubdtype(part.dtype, core.floating) else part for part in parts]
    numbers = core.dequantize(*wide, group_size=group, bits=bits, mode=mode, dtype=core.float32)
    tensors = {key: torch.from_numpy(numpy.array(value).copy())
               for key, value in zip(("weight", "scales", "biases"), parts)}
    write(name, {"group_size": group, "bits": bits, "mode": mode}, tensors,
          torch.from_numpy(numpy.array(numbers).copy()), key="quantization")


FOLDERS = {
    "w8a16_groups": lambda name: compressed_tensors(name, 1, 8, True, 32),
    "w8a16_channels": lambda name: compressed_tensors(name, 2, 8, True, COLUMNS),
    "w8a16_zero_points": lambda name: compressed_tensors(name, 3, 8, False, 64),
    "w8a16_zero_points_shuffled": lambda name: compressed_tensors(name, 4, 8, False, 32, shuffled=True),
    "w4a16_zero_points": lambda name: compressed_tensors(name, 5, 4, False, 32),
    "gptq_2": lambda name: gptq(name, 6, 2, False, 32),
    "gptq_3": lambda name: gptq(name, 7, 3, False, 64),
    "gptq_3_shuffled": lambda name: gptq(name, 8, 3, False, 32, shuffled=True),
    "gptq_4": lambda name: gptq(name, 9, 4, False, 32),
    "gptq_8": lambda name: gptq(name, 10, 8, True, 32),
    "gptq_8_zero_points": lambda name: gptq(name, 11, 8, False, 32),
    "gptq_8_zero_points_shuffled": lambda name: gptq(name, 12, 8, False, 32, shuffled=True),
    "nf4": lambda name: bitsandbytes(name, 13, "nf4", COLUMNS),
    "nf4_nested": lambda name: bitsandbytes(name, 14, "nf4", COLUMNS, nested=True),
    "nf4_of_80_columns": lambda name: bitsandbytes(name, 15, "nf4", 80),
    "fp4": lambda name: bitsandbytes(name, 16, "fp4", COLUMNS),
    "fp4_nested_of_80_columns": lambda name: bitsandbytes(name, 17, "fp4", 80, nested=True),
    "bytes_of_rows": lambda name: bitsandbytes_of_bytes(name, 18),
    "mlx_2": lambda name: mlx(name, 19, 2, 32),
    "mlx_3": lambda name: mlx(name, 20, 3, 64),
    "mlx_4": lambda name: mlx(name, 21, 4, 64),
    "mlx_5": lambda name: mlx(name, 22, 5, 128),
    "mlx_6": lambda name: mlx(name, 23, 6, 64),
    "mlx_8": lambda name: mlx(name, 24, 8, 32),
    "mlx_mxfp4": lambda name: mlx(name, 25, 4, 32, "mxfp4"),
    "mlx_nvfp4": lambda name: mlx(name, 26, 4, 16, "nvfp4"),
    "mlx_nvfp4_of_80_columns": lambda name: mlx(name, 27, 4, 16, "nvfp4", columns=80),
    "mlx_mxfp8": lambda name: mlx(name, 28, 8, 32, "mxfp8"),
}

if __name__ == "__main__":
    for folder, make in FOLDERS.items():
        if folder in sys.argv[1:] or len(sys.argv) == 1:
            make(folder)
