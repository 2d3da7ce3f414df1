"""Makes a reranker that generates text, as sentence-transformers writes it and runs it: the score of two texts is the
logit of one token less that of another, after a prompt by the model's template."""

import json
import os
import shutil
import tempfile

import torch
import transformers
from make import randomise, write_tokenizer

TRUE_TOKEN, FALSE_TOKEN = 24, 13

# The bytes of the tokenizer's letters: other characters are dropped.
TEMPLATE = """{%- set instruction = messages | selectattr("role", "eq", "system") | map(attribute="content") | first |
    default("none is given") -%}
Instruct {{ instruction }}
Query {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
Document {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}
Answer"""

PAIRS = [("where is the cat", "a cat sits on a mat"), ("where is the cat", "dogs run"), ("x", "y")]


def make_reranker(path, seed):
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder.modules import LogitScore, Transformer
    config = transformers.Qwen3Config(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=256, tie_word_embeddings=False, pad_token_id=0,
        bos_token_id=2, eos_token_id=3)
    with tempfile.TemporaryDirectory() as folder:
        model = transformers.Qwen3ForCausalLM(config)
        randomise(model, seed)
        model.save_pretrained(folder)
        write_tokenizer(folder, config.vocab_size)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=os.path.join(folder, "tokenizer.json"), pad_token="a")
        tokenizer.chat_template = TEMPLATE
        tokenizer.save_pretrained(folder)
        encoder = CrossEncoder(
            modules=[Transformer(folder, transformer_task="text-generation"), LogitScore(TRUE_TOKEN, FALSE_TOKEN)],
            prompts={"query": "find the cat"}, default_prompt_name="query", activation_fn=torch.nn.Identity())
    shutil.rmtree(path, ignore_errors=True)
    encoder.save_pretrained(path)
    os.remove(os.path.join(path, "README.md"))
    texts = []
    for query, document in PAIRS:
        logit = float(encoder.predict([(query, document)])[0])
        other = float(encoder.predict([(query, document)], prompt="find the dog")[0])
        tokens = encoder.preprocess([(query, document)], prompt="find the cat")["input_ids"].shape[1]
        texts.append({"query": query, "document": document, "logit": round(logit, 7), "tokens": tokens,
                      "logit_with_other_instruction": round(other, 7)})
    with open(os.path.join(path, "reranked.json"), "w") as file:
        json.dump({"other_instruction": "find the dog", "pairs": texts}, file)
        file.write("\n")
    print(f"{os.path.basename(path)}: {texts}")
