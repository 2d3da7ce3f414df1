"""Writes cases.json: for each set of other files of a folder the ids and the text that transformers gives. Such a set
in FOLDERS is with vocab.json and merges.txt the whole folder. Both are trained on text of this repository if missing.

    python3 tests/data/tokenizers/vocab_merges/make.py
"""

import json
import os
import shutil
import tempfile

import tokenizers
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..", "..")
SIZE = 900

TEXTS = [
    "", " ", "  ", "a", " a", "Hello, world!", " Hello, world!", "Hello  world", "Hello   world ", "\n", "\n\n", " \n ",
    "a\n\nb", "tab\tand\r\nline end", "It's we'll I'm THEY'RE don't", "'s 'S", "1", "12", " 123 4567", "3.14159e-10",
    "x=1;y=2", "for (int i = 0; i < 10; ++i) {\n    sum += a[i];\n}", "snake_case and CamelCase", "caf\u00e9 na\u00efve",
    "cafe\u0301", "\u00fcber stra\u00dfe", "\u4e2d\u6587\u5b57", "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c", "\ud55c\uad6d\uc5b4",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", "\u0645\u0631\u062d\u0628\u0627", "\u0939\u093f\u0928\u094d\u0926\u0940",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467", "\u00a0no\u00a0break\u3000wide", "\u2028line\u2029paragraph",
    "\u00bd \u2167 \u0663", "zero\u200bwidth", "a\u0000b", "</s>", "a</s>b", "a </s> b", "<s>text</s>", "<pad><unk>",
    "a <pad> b", "<|endoftext|>", "a<|endoftext|>b", "<|user|> a <|user|>", "<|user|", "</s", "the the the thethe", "!!! ???",
]  # fmt: skip


def token(text, **flags):
    return {"content": text, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False, **flags}


def typed(text):
    return {"__type": "AddedToken", **token(text)}


FOLDERS = {
    # As facebook/opt-125m: one token is in front of each text.
    "opt": {
        "tokenizer_config.json": {
            "errors": "replace", "unk_token": typed("</s>"), "bos_token": typed("</s>"), "eos_token": typed("</s>"),
            "pad_token": typed("<pad>"), "add_prefix_space": False, "add_bos_token": True, "special_tokens_map_file": None,
            "tokenizer_class": "GPT2Tokenizer",
        },
        "special_tokens_map.json": {
            "bos_token": token("</s>"), "eos_token": token("</s>"), "unk_token": token("</s>"), "pad_token": token("<pad>"),
        },
    },
    # As older GPT-2 folders: no file names the token that begins and ends a text.
    "gpt2": {"tokenizer_config.json": {"model_max_length": 1024}},
    # Tokens outside of vocab.json, one of them special and with flags, and a space in front of texts.
    "gpt_neo": {
        "tokenizer_config.json": {"add_prefix_space": True, "add_bos_token": False, "tokenizer_class": "GPT2Tokenizer"},
        "special_tokens_map.json": {
            "pad_token": token("<pad>", lstrip=True, rstrip=True), "additional_special_tokens": ["<s>", "</s>"],
        },
        "added_tokens.json": {"<|user|>": SIZE},
    },
    "starcoder2": {
        "tokenizer_config.json": {
            "add_prefix_space": False, "bos_token": "<|endoftext|>", "eos_token": "<|user|>", "unk_token": "<|endoftext|>",
            "added_tokens_decoder": {
                str(SIZE): token("<|user|>", normalized=False, special=True),
                str(SIZE + 1): token("snake", normalized=False, special=False, single_word=True),
            },
            "add_bos_token": True, "add_eos_token": True, "tokenizer_class": "GPT2Tokenizer",
        },
    },
    # Of another pattern.
    "qwen2": {
        "tokenizer_config.json": {
            "add_prefix_space": False, "bos_token": None, "eos_token": "<|user|>", "pad_token": "<|endoftext|>",
            "added_tokens_decoder": {str(SIZE): token("<|user|>", normalized=False, special=True)},
            "additional_special_tokens": ["<|user|>"], "tokenizer_class": "Qwen2Tokenizer",
        },
    },
}  # fmt: skip


def corpus():
    for name in ("README.md", "CONTRIBUTING.md", "src/io/tokenizer.cpp", "docs/model-files.md"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            yield file.read()


def train():
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(
        corpus(), vocab_size=SIZE - 1, min_frequency=2, show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>"]
    )
    trained.save_model(HERE)
    path = os.path.join(HERE, "vocab.json")
    with open(path, encoding="utf-8") as file:
        vocab = json.load(file)
    assert len(vocab) == SIZE - 1
    vocab["<|endoftext|>"] = len(vocab)  # the last one, as in GPT-2's file
    write(path, vocab)


def write(path, value, **how):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, **how)
        file.write("\n")


def record(model_type, files):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(os.path.join(HERE, name), folder)
        for name, value in {"config.json": {"model_type": model_type}, **files}.items():
            write(os.path.join(folder, name), value)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        print(model_type, type(tokenizer).__name__, len(tokenizer), tokenizer.all_special_tokens)
        cases = []
        for text in TEXTS:
            ids = tokenizer(text)["input_ids"]
            cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, clean_up_tokenization_spaces=False)})
        named = {key: getattr(tokenizer, key + "_id") for key in ("bos_token", "eos_token", "pad_token")}
        return {"files": {"config.json": {"model_type": model_type}, **files}, **named, "cases": cases}


def main():
    if not os.path.exists(os.path.join(HERE, "vocab.json")):
        train()
    result = {name: record(name, files) for name, files in FOLDERS.items()}
    text = json.dumps({"reference": "transformers " + transformers.__version__, "folders": result}, ensure_ascii=False)
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as file:
        file.write(text.replace(', {"text"', ',\n{"text"') + "\n")


main()
