"""Writes renderings.json: what transformers makes of the conversations with the templates of this folder.

usage: make.py [FOLDER]        (FOLDER: this one)

The templates are Weft's own. They use what templates of published models use: macros that call themselves, namespaces,
sliced and filtered loops, reprs of Python, tojson with indents, switches of thinking. Run with transformers 5.24.0 and
Jinja 3.1.6. `text` is what apply_chat_template(tokenize=False) returns; `fails` where it raises an error."""
import json, os, sys
import jinja2, tokenizers, transformers

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<cls>", "sep_token": "<sep>"}
TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": " Says \"how\" it is — outside ", "parameters": {
            "type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "description": "Name of a city"},
                "days": {"type": ["integer", "null"], "default": 1},
                "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
                "exact": {"type": "boolean", "nullable": True},
                "at": {"type": "array", "items": {"type": "object", "properties": {"hour": {"type": "number"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "number"}},
                "any": {"oneOf": [{"type": "string", "description": "as text"}, {"type": "number"}], "default": "x"}}}}},
    {"type": "function", "function": {
        "name": "now", "description": "The time", "strict": True, "parameters": {"type": "object", "properties": {}, "required": []}}},
]
# Keyword arguments that only some templates read. A list has the variants of a template, after the one without any.
VARIANTS = {
    "thinking_switch": [{"enable_thinking": False}, {"enable_thinking": True}],
    "modes_in_system": [{"enable_thinking": False}, {"python_tools": ["def now():\n    'time'"]}],
    "visible_text": [{"enable_thinking": False}],
    "role_table": [{"enable_thinking": True}, {"skip_think": False}],
    "extra_keys_as_xml": [{"enable_thinking": False}, {"truncate_history_thinking": False}],
    "sorted_declarations": [{"enable_thinking": True}],
    "flags_in_namespace": [{"thinking": True}],
    "channels": [{"reasoning_effort": "high", "model_identity": "You are a lamp."}],
    "documents_and_controls": [{"controls": {"citations": True, "length": "long"}}, {"thinking": True}, {"controls": {"hallucinations": True}}],
    "headers": [{"tools_in_user_message": False}, {"builtin_tools": ["weather", "interpreter"]}],
    "budgets": [{"thinking_budget": 0}, {"thinking_budget": 1000}, {"thinking_budget": 99999}],
    "sentence_tokens": [{"sep_token": "<other>"}],
}
# These templates print a date that is part of every rendering.
DATED = {"modes_in_system", "documents_and_controls", "headers", "channels"}
CONTINUED = ("unfinished", "unfinished_trimmed", "thoughts_last", "thoughts_in_text", "question")


def tokenizer():
    vocabulary = {text: i for i, text in enumerate(TOKENS.values())}
    model = tokenizers.models.WordLevel(vocabulary, unk_token=TOKENS["unk_token"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model), **TOKENS)


def rendering(engine, source, conversation, arguments, case):
    given = dict(conversation)
    if given.get("tools") == "all": given["tools"] = TOOLS
    try:
        text = engine.apply_chat_template(
            given["messages"], chat_template=source, tools=given.get("tools"), documents=given.get("documents"), tokenize=False,
            add_generation_prompt=case.get("add_generation_prompt", False), continue_final_message=case.get("continue_final_message", False), **arguments)
        return {"text": text}
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, KeyError) as error:
        return {"fails": f"{type(error).__name__}: {error}"[:100]}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    conversations = json.load(open(f"{folder}/conversations.json", encoding="utf-8"))
    engine, cases = tokenizer(), []
    for file in sorted(f for f in os.listdir(folder) if f.endswith(".jinja")):
        name = file[:-len(".jinja")]
        source = open(f"{folder}/{file}", encoding="utf-8").read()
        date = {"date_string": "3 May 2031"} if name in DATED else {}
        for conversation, content in conversations.items():
            variants = [({}, True)] + [({}, False)] * (conversation in ("long_dialogue", "calls", "thoughts_last", "parts"))
            variants += [(one, True) for one in VARIANTS.get(name, []) if conversation in ("question", "system", "thoughts", "thoughts_last", "calls", "tools", "documents", "documents_and_tools")]
            for arguments, prompt in variants:
                case = {"template": name, "conversation": conversation, "add_generation_prompt": prompt}
                cases.append((source, content, {**date, **arguments}, case))
            if conversation in CONTINUED:
                cases.append((source, content, date, {"template": name, "conversation": conversation, "continue_final_message": True}))
    recorded = []
    for source, content, arguments, case in cases:
        if arguments: case["arguments"] = arguments
        recorded.append({**case, **rendering(engine, source, content, arguments, case)})
    with open(f"{folder}/renderings.json", "w", encoding="utf-8") as out:
        out.write(json.dumps({"transformers": transformers.__version__, "jinja": jinja2.__version__, "tokens": TOKENS}, ensure_ascii=False)[:-1])
        out.write(',\n"tools": ' + json.dumps(TOOLS, ensure_ascii=False) + ',\n"cases": [\n')
        out.write(",\n".join(json.dumps(one, ensure_ascii=False) for one in recorded) + "\n]}\n")
    print(f"{len(recorded)} cases, {sum('fails' in one for one in recorded)} of them errors")


if __name__ == "__main__": main()
