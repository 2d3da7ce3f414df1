"""transformers with torch.compile and a static cache: torch_decode.py CONFIG_FOLDER...

Random weights of the shape, bf16. Prints a line of JSON for each shape and number of sequences: seconds until the first
compiled step was done, tokens/s of prompts of 512 tokens (not compiled) and of generation, one step a call.
"""

import json
import statistics
import sys
import time

import torch
import transformers

PROMPT, TOKENS = 512, 32


def synchronized_seconds(run):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def measure(model, sequences):
    cache = transformers.StaticCache(config=model.config, max_cache_len=4096)
    ids = torch.randint(0, model.config.vocab_size, (sequences, PROMPT), device="cuda")
    positions = torch.arange(PROMPT, device="cuda")

    def prompt():
        cache.reset()
        model(input_ids=ids, past_key_values=cache, cache_position=positions, logits_to_keep=1)

    position = torch.tensor([PROMPT], device="cuda")
    token = ids[:, :1].clone()

    def step():
        logits = model.compiled(input_ids=token, past_key_values=cache, cache_position=position,
                                position_ids=position[None], logits_to_keep=1).logits
        token.copy_(logits[:, -1:].argmax(-1))
        position.add_(1)

    prompt()
    prompt_rate = sequences * PROMPT / min(synchronized_seconds(prompt) for _ in range(3))
    compile_seconds = synchronized_seconds(lambda: [step() for _ in range(3)])
    position.fill_(PROMPT)
    times = [synchronized_seconds(step) for _ in range(TOKENS)]
    return {"sequences": sequences, "compile_seconds": compile_seconds, "prompt_rate": prompt_rate,
            "rate": sequences / statistics.median(times)}


@torch.no_grad()
def main(folders):
    torch.set_default_dtype(torch.bfloat16)
    for folder in folders:
        config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(config).eval()
        for sequences in (1, 8):
            torch._dynamo.reset()
            model.compiled = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)
            line = {"shape": folder.rstrip("/").rsplit("/", 1)[-1], "torch": torch.__version__,
                    "transformers": transformers.__version__}
            try:
                line |= measure(model, sequences)
            except Exception as error:  # what this version does not take
                line |= {"sequences": sequences, "problem": f"{type(error).__name__}: {error}"[:400]}
            print(json.dumps(line), flush=True)
        del model
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1:])
