"""Makes the folders beside this file: a tiny BitNet of random weights in each form of its quantized linear layers, as
transformers runs it. Inputs of these layers are quantized by token, in the folders and in what is recorded.

    TORCHDYNAMO_DISABLE=1 python3 tests/data/bitnet/make.py
"""

import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers.integrations.bitnet import pack_weights, replace_with_bitnet_linear
from transformers.utils.quantization_config import BitNetQuantConfig

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))
from make import COUNT, IDS, POSITIONS, WITHOUT_HEAD_DIM, randomise, write_tokenizer  # noqa: E402

FORMS = {"packed": dict(linear_class="autobitlinear", quantization_mode="offline"),
         "divided": dict(linear_class="bitlinear", quantization_mode="offline"),
         "rounded": dict(linear_class="autobitlinear", quantization_mode="online")}


def is_linear(name):
    return name.endswith("_proj.weight")


def parts_of(name, weight, form):
    """The tensors of one linear layer in the folder, and those of transformers' module."""
    if form == "rounded":
        return {name: weight}, {name: weight}
    mean = weight.abs().mean()
    codes = (weight / mean).round().clamp(-1, 1)
    scale = (1 / mean if form == "divided" else mean).reshape(1)
    packed, of_scale = pack_weights(codes.clone()), name + "_scale"  # it changes what it packs
    return {name: packed, of_scale: scale}, {name: packed if form == "divided" else codes, of_scale: scale}


def make(form, seed):
    path = os.path.join(HERE, form)
    os.makedirs(path, exist_ok=True)
    config = transformers.BitNetConfig(**WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=500000.0))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    randomise(model, seed)
    stored, loaded = {}, {}
    for name, weight in model.state_dict().items():
        of_folder, of_module = parts_of(name, weight, form) if is_linear(name) else ({name: weight},) * 2
        stored.update(of_folder)
        loaded.update(of_module)
    replace_with_bitnet_linear(model, ["lm_head"], BitNetQuantConfig(**FORMS[form]))
    missing = model.load_state_dict(loaded, strict=True, assign=True)
    assert not missing.missing_keys and not missing.unexpected_keys
    for module in model.modules():  # the packed modules multiply in a dtype of their own
        if type(module).__name__ == "BitLinear":
            module.dtype = torch.float32
    model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([IDS[:COUNT]])).logits[0]
    save_file({name: tensor.detach().contiguous() for name, tensor in stored.items()},
              os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    text = dict(config.to_dict(), quantization_config=dict(FORMS[form], quant_method="bitnet"),
                architectures=["BitNetForCausalLM"], rope_theta=500000.0, dtype="float32")
    del text["rope_parameters"]
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(text, file, indent=2, default=str)
        file.write("\n")
    write_tokenizer(path, config.vocab_size)
    with open(os.path.join(path, "logits.json"), "w") as file:
        json.dump({"ids": IDS[:COUNT], "positions": POSITIONS,
                   "logits": [[round(v, 7) for v in logits[at].tolist()] for at in POSITIONS]}, file)
        file.write("\n")
    print(f"{form}: logits of {logits.std():.3f} around 0")


if __name__ == "__main__":
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, Python {sys.version.split()[0]}")
    for number, name in enumerate(FORMS):
        make(name, number + 1)
