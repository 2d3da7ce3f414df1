"""Requests that are allowed, or refused only late, and ask for a lot of work: none may hold up the server."""

COMPLETIONS, CHATS = "/v1/completions", "/v1/chat/completions"
MESSAGE = [{"role": "user", "content": "hi"}]
RULES = 20000


def structured(form, **more):
    return COMPLETIONS, {"prompt": "a", "max_tokens": 8, "structured_outputs": form, **more}


def heavy_requests():
    """{name: (path, body)}"""
    rules = "root ::= " + " | ".join(f"r{i}" for i in range(RULES)) + "".join(f'\nr{i} ::= "a{i}"' for i in range(RULES))
    listed = {"enum": [f"e{i}" for i in range(100000)]}
    many = {"anyOf": [{"const": i} for i in range(15000)]}
    return {
        "16,384 choices": (COMPLETIONS, {"prompt": "a", "n": 16384, "max_tokens": 1}),
        "16,384 choices of a stream": (COMPLETIONS, {"prompt": "a", "n": 16384, "max_tokens": 1, "stream": True}),
        "many log probabilities": (COMPLETIONS, {"prompt": "a", "n": 100, "max_tokens": 60, "logprobs": 20,
                                                 "ignore_eos": True}),
        "log probabilities of a long prompt": (COMPLETIONS, {"prompt": [5] * 2000, "max_tokens": 1, "prompt_logprobs": 20}),
        "many bad words": (COMPLETIONS, {"prompt": "a", "max_tokens": 20, "bad_words": [f"b{i}x" for i in range(50000)]}),
        "a long bad word": (COMPLETIONS, {"prompt": "a", "max_tokens": 20, "bad_words": ["b" * 1000000]}),
        "many allowed tokens": (COMPLETIONS, {"prompt": "a", "max_tokens": 20, "allowed_token_ids": [5, 6, 7] * 300000}),
        "many messages": (CHATS, {"messages": MESSAGE * 50000, "max_tokens": 1}),
        "many tools": (CHATS, {"messages": MESSAGE, "max_tokens": 1, "tool_choice": "required",
                               "tools": [{"type": "function", "function": {"name": f"f{i}"}} for i in range(10000)]}),
        "a text of 6 MB": (COMPLETIONS, {"prompt": "ab cd " * 1000000, "max_tokens": 1}),
        "a word of 5 MB": (COMPLETIONS, {"prompt": "a" * 5000000, "max_tokens": 1}),
        "spaces": (COMPLETIONS, {"prompt": " " * 3000000, "max_tokens": 1}),
        "accents": (COMPLETIONS, {"prompt": "\u0301" * 1000000, "max_tokens": 1}),
        "a long text to tokenize": ("/tokenize", {"prompt": "ab " * 200000, "return_token_strs": True}),
        "many tokens as text": ("/detokenize", {"tokens": [5] * 500000}),
        "a long pattern": structured({"regex": "a" * 200000}),
        "a pattern of many ways": structured({"regex": "|".join(f"w{i}" for i in range(100000))}),
        "a pattern of large repetitions": structured({"regex": "(a{0,900}b{0,900}){0,900}"}),
        "many choices of an answer": structured({"choice": [f"w{i}" * 5 for i in range(100000)]}),
        "many rules": structured({"grammar": rules}),
        "a long list of values": structured({"json": listed}),
        "two long lists of values": structured({"json": {"allOf": [listed, listed]}}),
        "many schemas": structured({"json": many}),
        "many schemas of which one holds": structured({"json": {"oneOf": many["anyOf"]}}),
        "schemas beside a long list": structured({"json": {**listed, "anyOf": [{"type": "string"}] * 15000}}),
    }
