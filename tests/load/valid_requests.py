"""Valid requests of every kind, drawn at random. A request with the same number is the same, and so must its answer be."""

import random

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"town": {"enum": ["Rome", "Oslo"]}}, "required": ["town"]}}},
         {"type": "function", "function": {"name": "clock", "description": "The time"}}]
WORDS = "the a of river town Zürich 水 🙂 never 12 {x} <b> \\n \"quoted\" code();".split()

# Fields that any completion may have, with a valid value; and those of one endpoint.
SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.02, "presence_penalty": 0.5, "seed": 7,
            "frequency_penalty": -0.5, "stop": ["zz", "qq"], "ignore_eos": True}
OF_BOTH = {"n": 2, "repetition_penalty": 1.1, "stop_token_ids": [5], "include_stop_str_in_output": True, "min_tokens": 2,
           "logit_bias": {"9": -5}, "allowed_token_ids": list(range(3, 60)), "bad_words": ["bad"],
           "skip_special_tokens": False, "spaces_between_special_tokens": False, "stream_interval": 3, "cache_salt": "s",
           "truncate_prompt_tokens": 9, "return_token_ids": True, "prompt_logprobs": 1, "request_id": "mine",
           "return_tokens_as_token_ids": True, "user": "someone", "echo": False, "priority": 0}
OF_CHATS = {"logprobs": True, "top_logprobs": 2, "add_generation_prompt": True, "parallel_tool_calls": False,
            "chat_template_kwargs": {"x": 1}, "documents": [{"title": "a", "text": "b"}], "reasoning_effort": "low"}


def text_of(chance, most=40):
    return " ".join(chance.choices(WORDS, k=chance.randint(1, most)))


def some_of(chance, fields, most=3):
    return {name: fields[name] for name in chance.sample(list(fields), chance.randint(0, most))}


def completion(chance):
    prompt = chance.choice([text_of(chance), [chance.randint(3, 200) for _ in range(chance.randint(1, 60))],
                            [text_of(chance), text_of(chance)]])
    body = {"prompt": prompt, "max_tokens": chance.choice([1, 4, 16, 48, 200]), "temperature": chance.choice([0, 1]), "seed": 3,
            **some_of(chance, SAMPLING), **some_of(chance, OF_BOTH, 2)}
    if chance.random() < 0.2:
        body["logprobs"] = chance.choice([0, 1, 4])
    return "/v1/completions", body


def chat(chance):
    messages = [{"role": "user", "content": text_of(chance)}]
    if chance.random() < 0.4:
        messages = [{"role": "system", "content": "Be brief."}, *messages, {"role": "assistant", "content": "Yes."},
                    {"role": "user", "content": [{"type": "text", "text": text_of(chance)}]}]
    return "/v1/chat/completions", {"messages": messages, "max_tokens": chance.choice([1, 8, 32, 100]), "seed": 5,
                                    **some_of(chance, SAMPLING), **some_of(chance, OF_BOTH, 1),
                                    **some_of(chance, {"logprobs": True}, 1)}


def chat_with_tools(chance):
    path, body = "/v1/chat/completions", {"messages": [{"role": "user", "content": text_of(chance)}], "max_tokens": 60,
                                          "seed": 1, "tools": TOOLS}
    named = {"type": "function", "function": {"name": "weather"}}
    return path, {**body, "tool_choice": chance.choice(["auto", "none", "required", named])}


def structured(chance):
    form = chance.choice([{"json": SCHEMA}, {"regex": r"[a-c]{2,9}\d"}, {"choice": ["yes", "no", "perhaps"]},
                          {"grammar": 'root ::= "a" ("b" | "c"){1,6}'}])
    path, body = completion(chance)
    # A request that leaves no token which the form allows is answered by 500.
    for name in ("allowed_token_ids", "bad_words", "logit_bias", "echo", "stop_token_ids", "stop", "ignore_eos",
                 "min_tokens"):
        body.pop(name, None)
    if "json" in form and chance.random() < 0.5:
        schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
        return path, {**body, "max_tokens": 64, "response_format": schema}
    return path, {**body, "max_tokens": 64, "structured_outputs": form}


def llama(chance):
    body = {"prompt": text_of(chance), "n_predict": chance.choice([1, 8, 32]), "seed": 9}
    return "/completion", {**body, **some_of(chance, {"repeat_penalty": 1.1, "json_schema": SCHEMA, "return_tokens": True,
                                                      "cache_prompt": True, "temperature": 0.0, "top_k": 5})}


def other(chance):
    return chance.choice([("/tokenize", {"prompt": text_of(chance)}), ("/detokenize", {"tokens": [5, 6, 7]}),
                          ("/tokenize", {"messages": [{"role": "user", "content": "hi"}]}),
                          ("/apply-template", {"messages": [{"role": "user", "content": "hi"}]})])


KINDS = {completion: 6, chat: 4, chat_with_tools: 2, structured: 3, llama: 2, other: 1}


def request_of(number):
    """(path, body) of the request with this number."""
    chance = random.Random(number)
    path, body = chance.choices(list(KINDS), list(KINDS.values()))[0](chance)
    if path in ("/v1/completions", "/v1/chat/completions", "/completion") and chance.random() < 0.5:
        body["stream"] = True
        # What a stream cannot have.
        body.pop("prompt_logprobs", None)
        if path != "/completion" and chance.random() < 0.5:
            body["stream_options"] = {"include_usage": True}
    return path, body
