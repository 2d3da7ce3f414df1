"""Makes the folders beside this file: one tiny encoder of random weights for each architecture, as transformers writes
and runs it, with the pooled hidden states of texts of several lengths; and models that score pairs of texts, with their
scores, or that have classes of texts, with their probabilities. Run with torch, transformers and sentence-transformers
installed; ../README.md says which versions made what is here.

    python3 tests/data/encoders/make.py [FOLDER...]
"""

import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))
from make import IDS as ALL_IDS, randomise, write_tokenizer  # noqa: E402
from jina_bert import JinaBert  # noqa: E402
from reranker import make_reranker  # noqa: E402

# RoBERTa counts the positions of padding, which is token 1, in another way.
IDS = [62 if token == 1 else token for token in ALL_IDS]

SHAPE = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64)

# Two rows of positions that no text has.
ROBERTA = dict(SHAPE, max_position_embeddings=66, pad_token_id=1, type_vocab_size=1)

MODERNBERT = dict(SHAPE, num_hidden_layers=5, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2,
                  sep_token_id=3)

# Windows of 4 and of 5 tokens on each side.
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**SHAPE),
    "xlm_roberta": lambda: transformers.XLMRobertaConfig(**ROBERTA, layer_norm_eps=1e-5),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=64, dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=64),
    "nomic_bert": lambda: transformers.NomicBertConfig(**SHAPE),
    "modernbert": lambda: transformers.ModernBertConfig(**MODERNBERT, local_attention=8),
    "modernbert_biases": lambda: transformers.ModernBertConfig(
        **MODERNBERT, local_attention=11, attention_bias=True, mlp_bias=True, norm_bias=True),
    "eurobert": lambda: transformers.EuroBertConfig(
        **SHAPE, num_key_value_heads=2, pad_token_id=0, bos_token_id=2, eos_token_id=3, mask_token_id=4),
    "embedding_gemma": lambda: transformers.Gemma3TextConfig(
        **dict(SHAPE, num_hidden_layers=7), num_key_value_heads=1, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=10, use_bidirectional_attention=True, pad_token_id=0, bos_token_id=2, eos_token_id=1),
    "mpnet": lambda: transformers.MPNetConfig(**dict(SHAPE, max_position_embeddings=66), pad_token_id=1),
    "electra": lambda: transformers.ElectraConfig(**SHAPE, embedding_size=16),
    "albert": lambda: transformers.AlbertConfig(**dict(SHAPE, num_hidden_layers=3), embedding_size=16),
}

# Decoders, which score the last token. No token of a text is padding.
DECODER = dict(SHAPE, num_key_value_heads=2, tie_word_embeddings=False, pad_token_id=None)

# The keys of published files, where transformers writes newer ones, which it reads, too. None: not there.
PUBLISHED = {
    "nomic_bert": dict(
        hidden_size=None, n_embd=32, num_hidden_layers=None, n_layer=2, num_attention_heads=None, n_head=4,
        intermediate_size=None, n_inner=48, max_position_embeddings=None, n_positions=64, hidden_act=None,
        activation_function="swiglu", layer_norm_eps=None, layer_norm_epsilon=1e-12, rope_parameters=None,
        rotary_emb_base=1000, rotary_emb_fraction=1.0, head_dim=None, qkv_proj_bias=False, mlp_fc1_bias=False,
        mlp_fc2_bias=False, prenorm=False, causal=False),
    "modernbert": dict(layer_types=None, rope_parameters=None, global_attn_every_n_layers=3,
                       global_rope_theta=160000.0, local_rope_theta=10000.0),
}

LENGTHS = [1, 5, 6, 17, 40, 64]

SCORES = {
    "bert_scores": (transformers.BertForSequenceClassification, CONFIGS["bert"]),
    "xlm_roberta_scores": (transformers.XLMRobertaForSequenceClassification, CONFIGS["xlm_roberta"]),
    "distilbert_scores": (transformers.DistilBertForSequenceClassification, CONFIGS["distilbert"]),
    "modernbert_scores": (transformers.ModernBertForSequenceClassification, lambda: transformers.ModernBertConfig(
        **MODERNBERT, local_attention=8, classifier_pooling="mean", classifier_bias=True, norm_bias=True)),
    "mpnet_scores": (transformers.MPNetForSequenceClassification, CONFIGS["mpnet"]),
    "electra_scores": (transformers.ElectraForSequenceClassification, CONFIGS["electra"]),
    "albert_scores": (transformers.AlbertForSequenceClassification, CONFIGS["albert"]),
    "llama_scores": (transformers.LlamaForSequenceClassification, lambda: transformers.LlamaConfig(**DECODER)),
    "mistral_scores": (transformers.MistralForSequenceClassification, lambda: transformers.MistralConfig(
        **DECODER, sliding_window=None)),
    "qwen2_scores": (transformers.Qwen2ForSequenceClassification, lambda: transformers.Qwen2Config(**DECODER)),
    "qwen3_scores": (transformers.Qwen3ForSequenceClassification, lambda: transformers.Qwen3Config(
        **DECODER, head_dim=8)),
    "gemma_scores": (transformers.GemmaForSequenceClassification, lambda: transformers.GemmaConfig(
        **dict(DECODER, tie_word_embeddings=True), head_dim=8)),
}

# Models with several classes, and transformers' word for what they are.
LABELS = {0: "no", 1: "perhaps", 2: "yes"}
CLASSES = {
    "bert_classes": (transformers.BertForSequenceClassification, CONFIGS["bert"], "single_label_classification"),
    "xlm_roberta_classes": (transformers.XLMRobertaForSequenceClassification, CONFIGS["xlm_roberta"],
                            "multi_label_classification"),
    "qwen3_classes": (transformers.Qwen3ForSequenceClassification, SCORES["qwen3_scores"][1], None),
}
ACTIVATIONS = {"multi_label_classification": torch.sigmoid}

# As publishers write it.
JINA = dict(
    SHAPE, hidden_size=48, num_attention_heads=6, architectures=["JinaBertForMaskedLM"], model_type="bert",
    position_embedding_type="alibi", feed_forward_type="geglu", emb_pooler="mean", type_vocab_size=2,
    layer_norm_eps=1e-12, hidden_act="gelu", pad_token_id=0, torch_dtype="float32")

# After all others, whose seeds are their places.
LATER = ["mpnet", "mpnet_scores", "jina_bert", "electra", "electra_scores", "albert", "albert_scores", "llama_scores",
         "mistral_scores", "qwen2_scores", "qwen3_scores", "gemma_scores", *CLASSES, "qwen3_reranker"]

# Where the second text begins in so many ids.
PAIRS = [(3, 8), (20, 21), (30, 64), (1, 2)]


def make_jina_bert(seed):
    path = os.path.join(HERE, "jina_bert")
    os.makedirs(path, exist_ok=True)
    model = JinaBert(JINA)
    randomise(model, seed)
    model.eval()
    save_file(model.state_dict(), os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(JINA, file, indent=2)
        file.write("\n")
    write_tokenizer(path, JINA["vocab_size"])
    record_embeddings(path, model)


def make(name, seed):
    if name == "jina_bert":
        return make_jina_bert(seed)
    path = os.path.join(HERE, name)
    if name == "qwen3_reranker":
        return make_reranker(path, seed)
    scores = name in SCORES
    with_head = {**SCORES, **CLASSES}
    config = with_head[name][1]() if name in with_head else CONFIGS[name]()
    config.num_labels = 1 if scores else config.num_labels
    if name in CLASSES:
        config.id2label, config.label2id = LABELS, {label: i for i, label in LABELS.items()}
        config.problem_type = CLASSES[name][2]
    model = with_head[name][0](config) if name in with_head else transformers.AutoModel.from_config(
        config, attn_implementation="eager", dtype=torch.float32)
    randomise(model, seed)
    model.eval()
    model.save_pretrained(path)
    with open(os.path.join(path, "config.json")) as file:
        written = json.load(file)
    written.update(PUBLISHED.get(name, {}))
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump({key: value for key, value in written.items() if key not in PUBLISHED.get(name, {}) or
                   value is not None}, file, indent=2)
        file.write("\n")
    write_tokenizer(path, config.vocab_size)
    if scores:
        return record_scores(path, model, config)
    if name in CLASSES:
        return record_classes(path, model, ACTIVATIONS.get(CLASSES[name][2], lambda x: torch.softmax(x, -1)))
    record_embeddings(path, model)


def record_embeddings(path, model):
    texts = []
    for length in LENGTHS:
        with torch.no_grad():
            hidden = model(torch.tensor([IDS[:length]])).last_hidden_state[0]
        pooled = {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1]}
        texts.append({"length": length, **{key: [round(x, 7) for x in row.tolist()] for key, row in pooled.items()}})
    with open(os.path.join(path, "embeddings.json"), "w") as file:
        json.dump({"ids": IDS[:max(LENGTHS)], "texts": texts}, file)
        file.write("\n")
    print(f"{os.path.basename(path)}: {sum(p.numel() for p in model.parameters())} weights")


def record_scores(path, model, config):
    pairs = []
    for second, length in PAIRS:
        types = torch.tensor([[0] * second + [1] * (length - second)])
        arguments = dict(token_type_ids=types) if getattr(config, "type_vocab_size", 1) > 1 else {}
        with torch.no_grad():
            logit = model(input_ids=torch.tensor([IDS[:length]]), **arguments).logits[0, 0].item()
        pairs.append({"second": second, "length": length, "logit": round(logit, 7)})
    with open(os.path.join(path, "scores.json"), "w") as file:
        json.dump({"ids": IDS[:64], "pairs": pairs}, file)
        file.write("\n")
    print(f"{os.path.basename(path)}: {[pair['logit'] for pair in pairs]}")


def record_classes(path, model, activation):
    texts = []
    for length in LENGTHS[:4]:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([IDS[:length]])).logits[0]
        texts.append({"length": length, "probabilities": [round(x, 7) for x in activation(logits).tolist()]})
    with open(os.path.join(path, "classes.json"), "w") as file:
        json.dump({"ids": IDS[:64], "labels": list(LABELS.values()), "texts": texts}, file)
        file.write("\n")
    print(f"{os.path.basename(path)}: {texts[-1]}")


if __name__ == "__main__":
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, Python {sys.version.split()[0]}")
    names = [name for name in [*CONFIGS, *SCORES] if name not in LATER] + LATER
    for seed, name in enumerate(names):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            make(name, seed + 1)
