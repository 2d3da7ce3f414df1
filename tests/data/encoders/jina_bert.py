"""BERT as Jina's embedding models of version 2 have it, written after its description (arXiv 2310.19923): ALiBi in both
directions in place of positions, and a feed-forward with a gate. transformers has no such model."""

import math
import types

import torch
from torch import nn


def slopes(heads):
    power = 2 ** math.floor(math.log2(heads))
    own = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return own + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]


def modules(**children):
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


class JinaBert(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width, middle = config["hidden_size"], config["intermediate_size"]

        def norm():
            return nn.LayerNorm(width, eps=config["layer_norm_eps"])

        def layer():
            own = modules(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width))
            attention = modules(output=modules(dense=nn.Linear(width, width), LayerNorm=norm()))
            attention.add_module("self", own)
            return modules(attention=attention, mlp=modules(
                gated_layers=nn.Linear(width, 2 * middle, bias=False), wo=nn.Linear(middle, width), layernorm=norm()))

        self.embeddings = modules(
            word_embeddings=nn.Embedding(config["vocab_size"], width),
            token_type_embeddings=nn.Embedding(config["type_vocab_size"], width), LayerNorm=norm())
        self.encoder = modules(layer=nn.ModuleList(layer() for _ in range(config["num_hidden_layers"])))

    def attend(self, attention, x):
        heads = self.config["num_attention_heads"]
        count, own = x.shape[1], getattr(attention, "self")
        query, key, value = (part(x).view(1, count, heads, -1).transpose(1, 2)
                             for part in (own.query, own.key, own.value))
        places = torch.arange(count)
        distance = (places[None, :] - places[:, None]).abs()
        bias = -torch.tensor(slopes(heads))[:, None, None] * distance
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + bias
        found = (scores.softmax(-1) @ value).transpose(1, 2).reshape(1, count, -1)
        return attention.output.LayerNorm(attention.output.dense(found) + x)

    def forward(self, ids):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(ids) + e.token_type_embeddings(torch.zeros_like(ids)))
        for layer in self.encoder.layer:
            x = self.attend(layer.attention, x)
            gate, up = layer.mlp.gated_layers(x).chunk(2, dim=-1)
            x = layer.mlp.layernorm(layer.mlp.wo(nn.functional.gelu(gate) * up) + x)
        return types.SimpleNamespace(last_hidden_state=x)
