"""/v1/responses by the client `openai`: what it creates, streams and parses, for real_clients_check.py."""

import json

from weft_server import Fault

TOOL = {"type": "function", "name": "weather", "strict": True, "parameters": {
    "type": "object", "properties": {"town": {"enum": ["Rome", "Oslo"]}}, "required": ["town"],
    "additionalProperties": False}}
CONVERSATION = [{"role": "developer", "content": "Be short."},
                {"role": "user", "content": [{"type": "input_text", "text": "Is it warm?"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Where?"}]},
                {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"town\": \"Rome\"}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "21 degrees"}]


def check(holds, *what):
    if not holds:
        raise Fault(" ".join(map(str, what)))


def without_names(items):
    """The items without what differs between two answers."""
    return [{key: value for key, value in item.model_dump(exclude_none=True).items()
             if key not in ("id", "call_id", "parsed", "parsed_arguments")} for item in items]


def check_text(client, name):
    settings = {"model": name, "input": "Who are you?", "instructions": "Be short.", "max_output_tokens": 12,
                "metadata": {"a": "b"}, "extra_body": {"seed": 4}}
    whole = client.responses.create(**settings, include=["message.output_text.logprobs"], top_logprobs=2)
    check(whole.object == "response" and whole.id.startswith("resp_") and whole.metadata == {"a": "b"}, "a response is", whole)
    usage = whole.usage
    check(usage.total_tokens == usage.input_tokens + usage.output_tokens, "usage", usage)
    if whole.status == "incomplete":
        check(whole.incomplete_details.reason == "max_output_tokens", "an incomplete response is", whole)
        check(usage.output_tokens == 12, "usage", usage)
    else:
        check(whole.status == "completed", "the status is", whole.status)
    part = whole.output[0].content[0]
    check(part.text == whole.output_text and len(part.logprobs[0].top_logprobs) == 2, "a text has", part)
    chat = client.chat.completions.create(model=name, seed=4, max_completion_tokens=12, messages=[
        {"role": "system", "content": "Be short."}, {"role": "user", "content": "Who are you?"}])
    check(chat.choices[0].message.content == whole.output_text, "a chat answers", chat.choices[0].message, "and not", part.text)
    longer = CONVERSATION + [item.model_dump() for item in whole.output] + [{"role": "user", "content": "And now?"}]
    check(client.responses.create(model=name, input=longer, max_output_tokens=3).output, "an answer to a conversation")


def check_stream(client, name):
    settings = {"model": name, "input": "Who are you?", "max_output_tokens": 12, "extra_body": {"seed": 4}}
    whole = client.responses.create(**settings)
    events = list(client.responses.create(**settings, stream=True))
    check([event.sequence_number for event in events] == list(range(len(events))), "sequence numbers", events)
    kinds = [event.type for event in events if event.type != "response.output_text.delta"]
    check(kinds == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                    "response.output_text.done", "response.content_part.done", "response.output_item.done",
                    f"response.{whole.status}"], "the events are", kinds)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check(text == whole.output_text, "a stream has", repr(text), "and not", repr(whole.output_text))
    check(without_names(events[-1].response.output) == without_names(whole.output), "a stream ends with", events[-1])
    check(events[-1].response.usage == whole.usage.model_copy(update={
        "input_tokens_details": events[-1].response.usage.input_tokens_details}), "the usage is", events[-1].response.usage)
    with client.responses.stream(**settings) as stream:
        for event in stream:
            last = event
    check(last.type == f"response.{whole.status}" and last.response.output_text == text, "the client's stream ends with", last)


def check_calls(client, name):
    settings = {"model": name, "input": "Is it warm?", "tools": [TOOL], "temperature": 0, "max_output_tokens": 150}
    for choice in ("required", {"type": "function", "name": "weather"}):
        whole = client.responses.create(**settings, tool_choice=choice)
        call = whole.output[-1]
        check(call.type == "function_call" and call.name == "weather" and call.status == "completed", "a call is", call)
        check(json.loads(call.arguments)["town"] in ("Rome", "Oslo"), "arguments are", call.arguments)
        arguments = ""
        with client.responses.stream(**settings, tool_choice=choice) as stream:
            for event in stream:
                if event.type == "response.function_call_arguments.delta" and event.output_index == len(whole.output) - 1:
                    arguments += event.delta
            last = stream.get_final_response()
        check(arguments == call.arguments and without_names(last.output) == without_names(whole.output), "a stream has", last)
    check(client.responses.create(**settings, tool_choice="none").output[0].type == "message", "an answer without calls")


def check_parsed(client, name, pydantic):
    person = pydantic.create_model("Person", age=(int, pydantic.Field(ge=1, le=99)), is_old=(bool, ...))
    answer = client.responses.parse(model=name, input="Who are you?", text_format=person, max_output_tokens=100)
    check(isinstance(answer.output_parsed, person), "a parsed answer is", answer)
    with client.responses.stream(model=name, input="Who are you?", text_format=person, max_output_tokens=100) as stream:
        check(isinstance(stream.get_final_response().output_parsed, person), "a parsed stream")
    whole = client.responses.create(model=name, input="Who are you?", text={"format": {"type": "json_object"}}, temperature=1,
                                    max_output_tokens=100, extra_body={"seed": 2})
    if whole.status == "completed":
        check(isinstance(json.loads(whole.output_text), dict), "an object is", whole.output_text)


def check_refused(client, openai, name):
    for field, value in (("previous_response_id", "resp_1"), ("conversation", "conv_1"), ("background", True),
                         ("tools", [{"type": "web_search"}]), ("max_output_tokens", 0), ("temperature", 9),
                         ("input", [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}])):
        for streams in (False, True):
            try:
                client.responses.create(**{"model": name, "input": "a", field: value, "stream": streams})
            except openai.BadRequestError as problem:
                check(field in problem.body["message"], "an error is", problem.body)
            else:
                raise Fault(f"{field} wanted 400")


def check_responses(client, openai, pydantic, name):
    check_text(client, name)
    check_stream(client, name)
    check_calls(client, name)
    check_parsed(client, name, pydantic)
    check_refused(client, openai, name)
