"""Makes the files beside this one: tensors as torch.save writes them, and the same ones by safetensors. Run with torch
and safetensors installed; README.md of the folder above says which versions made what is here.

    python3 tests/data/pytorch/make.py
"""

import collections
import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent


def tensors():
    torch.manual_seed(7)
    numbers = torch.randn(6, 5)
    result = {f"of.{dtype}": (numbers * 10).to(dtype)
              for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32,
                            torch.int16, torch.int8, torch.bool)}
    result["of.torch.uint8"] = (numbers.abs() * 10).to(torch.uint8)
    result["part"] = numbers[2:4]
    result["again"] = numbers[2:4]
    result["scalar"] = torch.tensor(3.5)
    result["empty"] = torch.zeros(0, 4)
    result["one.column"] = torch.randn(3, 1)
    return result


def main():
    same = tensors()
    save_file({name: tensor.clone() for name, tensor in same.items()}, FOLDER / "tensors.safetensors")
    torch.save(same, FOLDER / "tensors.bin")
    ordered = collections.OrderedDict((name, torch.nn.Parameter(tensor, requires_grad=False))
                                      for name, tensor in same.items())
    ordered._metadata = collections.OrderedDict([("", {"version": 1})])
    torch.save(ordered, FOLDER / "parameters.bin")
    torch.save(ordered, FOLDER / "protocol_4.bin", pickle_protocol=4)
    torch.save(same, FOLDER / "before_1_6.bin", _use_new_zipfile_serialization=False)
    torch.save({"transposed": same["part"].t()}, FOLDER / "transposed.bin")
    torch.save({"epoch": 3, "model": same}, FOLDER / "training.bin")
    torch.save({"path": pathlib.PurePosixPath("x")}, FOLDER / "other_object.bin")


main()
