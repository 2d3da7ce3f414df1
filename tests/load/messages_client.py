"""/v1/messages by the client `anthropic`: what it creates, streams, parses and counts, for real_clients_check.py."""

import json
from typing import Literal

from weft_server import Fault

TOWN = {"type": "object", "properties": {"town": {"enum": ["Rome", "Oslo"]}}, "required": ["town"],
        "additionalProperties": False}
TOOL = {"name": "weather", "description": "The weather of a town.", "input_schema": TOWN}
CACHED = {"type": "ephemeral"}
QUESTION = [{"role": "user", "content": "Who are you?"}]
CONVERSATION = [
    {"role": "user", "content": [{"type": "text", "text": "Is it warm?", "cache_control": CACHED}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Where?", "signature": "s"},
                                      {"type": "text", "text": "Let me look."},
                                      {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"town": "Rome"}},
                                      {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"town": "Oslo"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "21 degrees"},
                                 {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True,
                                  "content": [{"type": "text", "text": "no such station"}], "cache_control": CACHED},
                                 {"type": "text", "text": "And now?"}]}]
# As Claude Code sends it: a system message of blocks, tools of nested schemas, and fields of several betas.
CODE_TOOLS = [
    {"name": "Bash", "description": "Runs a command.", "input_schema": {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
        "required": ["command"], "properties": {
            "command": {"type": "string", "description": "The command"}, "timeout": {"type": "number", "maximum": 600000},
            "run_in_background": {"type": "boolean"}}}},
    {"name": "mcp__a_server_with_a_long_name__and_a_tool_that_has_a_long_name_as_well", "description": "Lists tasks.",
     "input_schema": {"type": "object", "required": ["todos"], "properties": {"todos": {"type": "array", "minItems": 1, "items": {
         "type": "object", "required": ["content", "status"], "additionalProperties": False, "properties": {
             "content": {"type": "string", "minLength": 1},
             "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}}}}}}, "cache_control": CACHED}]
CODE_REQUEST = {
    "max_tokens": 32000, "metadata": {"user_id": "user_1_account__session_2"}, "tools": CODE_TOOLS,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;"},
               {"type": "text", "text": "You are a coding agent.", "cache_control": CACHED},
               {"type": "text", "text": "Rules:\n" + "\n".join(f"{i}. Be short." for i in range(40)), "cache_control": CACHED}],
    "thinking": {"type": "enabled", "budget_tokens": 31999}, "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "betas": ["claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27"],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday.\n</system-reminder>"},
                                              {"type": "text", "text": "List the files.", "cache_control": CACHED}]},
                 {"role": "system", "content": "The working folder is /a."}]}


def check(holds, *what):
    if not holds:
        raise Fault(" ".join(map(str, what)))


def blocks_of(message):
    """The blocks without what differs between two answers."""
    return [{key: value for key, value in block.model_dump(exclude_none=True).items()
             if key not in ("id", "signature", "parsed_output")} for block in message.content]


def all_input(usage):
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def check_text(client, openai_client, name):
    settings = {"model": name, "messages": QUESTION, "system": "Be short.", "max_tokens": 12, "extra_body": {"seed": 4}}
    whole = client.messages.create(**settings)
    check(whole.type == "message" and whole.id.startswith("msg_") and whole.role == "assistant", "a message is", whole)
    check(whole.stop_reason in ("end_turn", "max_tokens"), "the reason is", whole.stop_reason)
    check((whole.stop_reason == "max_tokens") == (whole.usage.output_tokens == 12), "usage", whole.usage)
    chat = openai_client.chat.completions.create(model=name, seed=4, max_completion_tokens=12, messages=[
        {"role": "system", "content": "Be short."}, *QUESTION])
    check(chat.choices[0].message.content == whole.content[0].text, "a chat answers", chat, "and not", whole)
    counted = client.messages.count_tokens(model=name, messages=QUESTION, system="Be short.")
    check(counted.input_tokens == all_input(whole.usage) == chat.usage.prompt_tokens, "tokens", counted, whole.usage)
    again = QUESTION + [{"role": "assistant", "content": [block.model_dump() for block in whole.content]},
                        {"role": "user", "content": "And now?"}]
    check(client.messages.create(model=name, messages=again, max_tokens=3).content, "an answer to a conversation")
    check(client.messages.create(model=name, messages=CONVERSATION, tools=[TOOL], max_tokens=3).content, "an answer to results")
    begun = QUESTION + [{"role": "assistant", "content": "I am"}]
    check(client.messages.create(model=name, messages=begun, max_tokens=3).content, "a continued answer")


def check_stop(client, name):
    settings = {"model": name, "messages": QUESTION, "max_tokens": 30, "extra_body": {"temperature": 0}}
    text = client.messages.create(**settings).content[0].text
    stop = text[4:6]
    stopped = client.messages.create(**settings, stop_sequences=["\x00no", stop])
    check(stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == stop, "a stop is", stopped)
    check(blocks_of(stopped) == ([{"type": "text", "text": text[:text.index(stop)]}] if text.index(stop) else []), stopped)
    with client.messages.stream(**settings, stop_sequences=[stop]) as stream:
        check(stream.get_final_message().stop_sequence == stop, "a stream has a stop")


def check_stream(client, name):
    settings = {"model": name, "messages": QUESTION, "max_tokens": 12, "extra_body": {"seed": 4}}
    whole = client.messages.create(**settings)
    events = list(client.messages.create(**settings, stream=True))
    kinds = [event.type for event in events if event.type != "content_block_delta"]
    check(kinds in (["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"],
                    ["message_start", "ping", "content_block_start", "content_block_stop", "message_delta", "message_stop"]),
          "the events are", kinds)
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    check(text == whole.content[0].text, "a stream has", repr(text), "and not", repr(whole.content))
    with client.messages.stream(**settings) as stream:
        check("".join(stream.text_stream) == text, "the text of the client's stream")
        last = stream.get_final_message()
    check(blocks_of(last) == blocks_of(whole) and last.stop_reason == whole.stop_reason, "a stream ends with", last)
    check(all_input(last.usage) == all_input(whole.usage) and last.usage.output_tokens == whole.usage.output_tokens,
          "the usage is", last.usage)


def check_calls(client, name):
    settings = {"model": name, "messages": QUESTION, "tools": [TOOL], "max_tokens": 150, "extra_body": {"temperature": 0}}
    for choice in ({"type": "any"}, {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}):
        whole = client.messages.create(**settings, tool_choice=choice)
        calls = [block for block in whole.content if block.type == "tool_use"]
        if "disable_parallel_tool_use" in choice:
            check(len(calls) == 1 and whole.stop_reason == "tool_use", "one call is", whole)
        check(calls and all(call.name == "weather" and call.input["town"] in ("Rome", "Oslo") for call in calls), calls)
        inputs = {}
        with client.messages.stream(**settings, tool_choice=choice) as stream:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    inputs[event.index] = inputs.get(event.index, "") + event.delta.partial_json
            last = stream.get_final_message()
        check(last.stop_reason == whole.stop_reason, "a stream ends with", last)
        if whole.stop_reason == "tool_use":
            check(blocks_of(last) == blocks_of(whole), "a stream has", last, "and not", whole)
            check([json.loads(text) for text in inputs.values()] == [call.input for call in calls], "inputs are", inputs)
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"} for call in calls]
        longer = QUESTION + [{"role": "assistant", "content": [block.model_dump() for block in whole.content]},
                             {"role": "user", "content": results}]
        check(client.messages.create(model=name, messages=longer, tools=[TOOL], max_tokens=3).content, "an answer to results")
    check(client.messages.create(**settings, tool_choice={"type": "none"}).content[0].type == "text", "an answer without calls")


def check_parsed(client, name, pydantic):
    person = pydantic.create_model("Person", town=(Literal["Rome", "Oslo"], ...), is_old=(bool, ...))
    answer = client.messages.parse(model=name, messages=QUESTION, output_format=person, max_tokens=200)
    check(isinstance(answer.parsed_output, person), "a parsed answer is", answer)
    form = {"format": {"type": "json_schema", "schema": TOWN}}
    formed = client.messages.create(model=name, messages=QUESTION, output_config=form, max_tokens=100)
    check(json.loads(formed.content[0].text)["town"] in ("Rome", "Oslo"), "a form is", formed)


def check_code(client, name):
    settings = {**CODE_REQUEST, "model": name, "extra_body": {"seed": 4, "min_tokens": 2, "stop_token_ids": list(range(300))}}
    counted = client.beta.messages.count_tokens(**{key: settings[key] for key in (
        "model", "messages", "system", "tools", "thinking", "betas", "context_management")})
    with client.beta.messages.stream(**settings) as stream:
        message = stream.get_final_message()
    check(message.type == "message" and message.stop_reason, "a message is", message)
    check(all_input(message.usage) == counted.input_tokens > 200, "tokens", message.usage, counted)
    again = client.beta.messages.create(**{**settings, "max_tokens": 3, "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=fffff;"}, *settings["system"][1:]]})
    check(again.usage.cache_read_input_tokens > 100, "the prefix cache finds", again.usage)


def check_refused(client, anthropic, name):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
    for word, field, value in (("image", "messages", [{"role": "user", "content": [image]}]),
                               ("document", "messages", [{"role": "user", "content": [document]}]),
                               ("web_search_20250305", "tools", [{"type": "web_search_20250305", "name": "web_search"}]),
                               ("max_tokens", "max_tokens", 0), ("temperature", "extra_body", {"temperature": 9}),
                               ("container", "container", "c"), ("mcp_servers", "extra_body", {"mcp_servers": [{"name": "a"}]}), ("thinking", "thinking", {"type": "always"}),
                               ("prompt is too long", "messages", [{"role": "user", "content": "word " * 9000}])):
        for streams in (False, True):
            try:
                client.messages.create(**{"model": name, "messages": QUESTION, "max_tokens": 4, field: value, "stream": streams})
            except anthropic.BadRequestError as problem:
                check(problem.body["type"] == "error" and problem.type == "invalid_request_error", "an error is", problem.body)
                check(word in problem.body["error"]["message"], "an error is", problem.body)
            else:
                raise Fault(f"{field} {value} wanted 400")
    try:
        client.messages.create(model="nobody", messages=QUESTION, max_tokens=4)
    except anthropic.NotFoundError as problem:
        check(problem.type == "not_found_error", "an error is", problem.body)
    else:
        raise Fault("another model wanted 404")


def check_messages(server, openai_client, anthropic, pydantic, name):
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="none", max_retries=0, timeout=60)
    check_text(client, openai_client, name)
    check_stop(client, name)
    check_stream(client, name)
    check_calls(client, name)
    check_parsed(client, name, pydantic)
    check_code(client, name)
    check_refused(client, anthropic, name)
