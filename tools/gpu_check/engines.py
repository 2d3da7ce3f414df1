"""Two models of one process on a device, through libweft.so: engines.py LIBRARY DEVICE MODEL MODEL SHAPE.

Prints JSON: the greedy tokens of each model alone, of both at the same time from two threads, and after a model that does
not fit the device was refused; and the refusals of that model, at its own length and at the longest that all of the
device's memory would hold, were nothing else in it.
"""

import ctypes
import json
import re
import sys
import threading

import checkpoints
from logits import GREEDY_TOKENS


class WeftError(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("text", ctypes.c_char * 2044)]


class Option(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Sampling(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("max_tokens", ctypes.c_int64), ("temperature", ctypes.c_double),
                ("top_k", ctypes.c_int64), ("top_p", ctypes.c_double), ("min_p", ctypes.c_double),
                ("repetition_penalty", ctypes.c_double), ("frequency_penalty", ctypes.c_double),
                ("presence_penalty", ctypes.c_double), ("seed", ctypes.c_uint64),
                ("stop", ctypes.POINTER(ctypes.c_char_p)), ("stop_count", ctypes.c_size_t),
                ("ignore_end", ctypes.c_int64)]


OnToken = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32)


class Weft:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        error = WeftError()
        if getattr(self._library, name)(*arguments, ctypes.byref(error)) != 0:
            raise RuntimeError(error.status, error.text.decode(errors="replace"))

    def open(self, path, options):
        rows = (Option * len(options))(*[Option(key.encode(), value.encode()) for key, value in options.items()])
        context, model = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("weft_context_create", rows, ctypes.c_size_t(len(rows)), ctypes.byref(context))
        try:
            self.call("weft_model_open", context, path.encode(), ctypes.byref(model))
        finally:
            self._library.weft_context_destroy(context)
        return model

    def complete(self, model):
        sampling, tokens = Sampling(size=ctypes.sizeof(Sampling)), []
        self.call("weft_model_sampling", model, ctypes.byref(sampling))
        sampling.max_tokens, sampling.temperature, sampling.ignore_end = GREEDY_TOKENS, 0, 1
        take = OnToken(lambda state, text, length, token: tokens.append(token) or 0)
        self.call("weft_model_complete", model, checkpoints.PROMPT.encode(), ctypes.byref(sampling), take, None, None)
        return tokens

    def refusal(self, path, options):
        try:
            model = self.open(path, options)
        except RuntimeError as error:
            return {"status": error.args[0], "text": error.args[1]}
        self.call("weft_model_close", model)
        return {"status": 0, "text": "it was opened"}


def both_at_once(weft, models):
    answers = {}

    def answer(name):
        answers[name] = weft.complete(models[name])

    threads = [threading.Thread(target=answer, args=(name,)) for name in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def main(library, device, first, second, shape):
    weft, options = Weft(library), {"device": device}
    models = {"first": weft.open(first, options), "second": weft.open(second, options)}
    found = {name: {"alone": weft.complete(model)} for name, model in models.items()}
    for name, tokens in both_at_once(weft, models).items():
        found[name]["together"] = tokens
    options |= {"load-format": "dummy"}
    found["too long"] = weft.refusal(shape, options)
    longest = re.search(r"at most (\d+)", found["too long"]["text"])
    if longest:
        found["memory"] = weft.refusal(shape, options | {"max-model-len": longest[1]})
    for name, model in models.items():
        found[name]["after"] = weft.complete(model)
        weft.call("weft_model_close", model)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
