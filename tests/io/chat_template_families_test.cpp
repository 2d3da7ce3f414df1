// Templates in the style of popular model families, each for a conversation with a tool call. The expected texts are
// those of Jinja 3.1.6 in the environment of transformers 5.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/chat_template.h"

namespace weft::chat_template_families_test {

constexpr const char* kConversation = R"json({
 "messages": [
  {
   "role": "system",
   "content": " Be brief. "
  },
  {
   "role": "user",
   "content": "Weather in Zürich?"
  },
  {
   "role": "assistant",
   "content": "<think>\nI need a tool.\n</think>\n\nLet me look.",
   "tool_calls": [
    {
     "id": "call00001",
     "type": "function",
     "function": {
      "name": "weather",
      "arguments": {
       "city": "Zürich",
       "days": 3
      }
     }
    }
   ]
  },
  {
   "role": "tool",
   "tool_call_id": "call00001",
   "content": "{\"t\": 3.5}"
  },
  {
   "role": "tool",
   "tool_call_id": "call00001",
   "content": "dry"
  },
  {
   "role": "assistant",
   "content": "It is 3.5 & dry."
  }
 ],
 "tools": [
  {
   "type": "function",
   "function": {
    "name": "weather",
    "description": "Says \"how\" it is",
    "parameters": {
     "type": "object",
     "properties": {
      "city": {
       "type": "string"
      },
      "days": {
       "type": [
        "integer",
        "null"
       ]
      },
      "unit": {
       "enum": [
        "C",
        "F"
       ]
      },
      "at": {
       "type": "array",
       "items": {
        "type": "object",
        "properties": {
         "hour": {
          "type": "number"
         }
        }
       }
      }
     },
     "required": [
      "city"
     ]
    }
   }
  }
 ],
 "bos_token": "<s>",
 "eos_token": "</s>",
 "add_generation_prompt": true,
 "enable_thinking": false
})json";

std::string render(const char* source) {
  return ChatTemplate(source).render(nlohmann::ordered_json::parse(kConversation));
}

TEST(ChatTemplateFamilies, HeadersWithToolsAndToolResults) {
  EXPECT_EQ(render(R"jinja({{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|header|>system<|end|>\n\nToday: " + date_string + "\n" }}
{%- if tools is not none and not tools_in_user_message is defined %}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- "\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message ~ "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|header|>' + message['role'] + '<|end|>\n\n' + message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}<|eot|>" }}
    {%- else %}
        {{- "<|header|>tool<|end|>" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|header|>assistant<|end|>\n\n' }}
{%- endif %}
)jinja"),
            R"text(<s><|header|>system<|end|>

Today: 26 Jul 2024
{
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Says \"how\" it is",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {
                    "type": "string"
                },
                "days": {
                    "type": [
                        "integer",
                        "null"
                    ]
                },
                "unit": {
                    "enum": [
                        "C",
                        "F"
                    ]
                },
                "at": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "hour": {
                                "type": "number"
                            }
                        }
                    }
                }
            },
            "required": [
                "city"
            ]
        }
    }
}
Be brief.<|eot|><|header|>user<|end|>

Weather in Zürich?<|eot|>{"name": "weather", "parameters": {"city": "Zürich", "days": 3}}<|eot|><|header|>tool<|end|>"{\"t\": 3.5}"<|eot|><|header|>tool<|end|>"dry"<|eot|><|header|>assistant<|end|>

It is 3.5 & dry.<|eot|><|header|>assistant<|end|>

)text");
}

TEST(ChatTemplateFamilies, ThinkingIsKeptOnlyBehindTheLastQuestion) {
  EXPECT_EQ(render(R"jinja({%- set ns = namespace(searching=true, last_query=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if (loop.first and content) or (not loop.first) %}
                {{- '\n' }}
            {%- endif %}
            {%- if tool_call.function %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '<call>' ~ tool_call.name ~ ' ' }}
            {{- tool_call.arguments if tool_call.arguments is string else tool_call.arguments | tojson }}
            {{- '</call>' }}
        {%- endfor %}
        {{- '<|end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' ~ message.content ~ '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|end|>\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|start|>' + message.role + '\n' + message.content + '<|end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}
    {{- '<|start|>assistant\n<think>\n\n</think>\n\n' }}
{%- endif %})jinja"),
            R"text(<|start|>system
 Be brief. <|end|>
<|start|>user
Weather in Zürich?<|end|>
<|start|>assistant
<think>
I need a tool.
</think>

Let me look.
<call>weather {"city": "Zürich", "days": 3}</call><|end|>
<|start|>user
<tool_response>
{"t": 3.5}
</tool_response>
<tool_response>
dry
</tool_response><|end|>
<|start|>assistant
<think>

</think>

It is 3.5 & dry.<|end|>
<|start|>assistant
<think>

</think>

)text");
}

TEST(ChatTemplateFamilies, AlternatingRolesWithToolsAtTheLastQuestion) {
  EXPECT_EQ(
      render(R"jinja({%- set rest = messages[1:] if messages[0]["role"] == "system" else messages %}
{%- set queries = rest | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in rest if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
    {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
        {{- raise_exception("roles must alternate") }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}
{%- for message in rest %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and message == queries[-1] %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- for key, val in tool.function.items() if key != "return" %}
                    {{- '"' + key + '": ' + ('"' + val + '"' if val is string else val | tojson) }}
                    {%- if not loop.last %}, {% endif %}
                {%- endfor %}
                {{- "]" if loop.last else ", " }}
            {%- endfor %}
        {%- endif %}
        {{- "[INST] " + message["content"] + "[/INST]" }}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function | tojson %}
            {{- out[:-1] ~ ', "id": "' + tool_call.id + '"}' }}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token }}
    {%- else %}
        {{- '[RESULT] {"content": ' + message.content | string + ', "id": "' + message.tool_call_id + '"}' }}
    {%- endif %}
{%- endfor %}
)jinja"),
      R"text([TOOLS] ["name": "weather", "description": "Says "how" it is", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}, "unit": {"enum": ["C", "F"]}, "at": {"type": "array", "items": {"type": "object", "properties": {"hour": {"type": "number"}}}}}, "required": ["city"]}][INST] Weather in Zürich?[/INST]{"name": "weather", "arguments": {"city": "Zürich", "days": 3}, "id": "call00001"}[RESULT] {"content": {"t": 3.5}, "id": "call00001"}[RESULT] {"content": dry, "id": "call00001"} It is 3.5 & dry.</s>)text");
}

TEST(ChatTemplateFamilies, ToolParametersWrittenByARecursiveMacro) {
  EXPECT_EQ(
      render(R"jinja({%- macro type_of(spec, required) -%}
    {%- if spec.type == "array" -%}
        {{- type_of(spec['items'], []) ~ "[]" if spec['items'] else "any[]" }}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string -%}
        {{- spec.type | join(" | ") }}
    {%- elif spec.enum -%}
        {{- '"' + spec.enum | join('" | "') + '"' -}}
    {%- elif spec.type == "object" and spec.properties -%}
        {{- "{" }}
        {%- for name, inner in spec.properties.items() -%}
            {{- name ~ ("?" if name not in (required or [])) ~ ": " }}
            {{- type_of(inner, inner.required) }}
            {%- if not loop.last -%}
                {{- ", " }}
            {%- endif -%}
        {%- endfor -%}
        {{- "}" }}
    {%- else -%}
        {{- spec.type or "any" }}
    {%- endif -%}
{%- endmacro -%}
{%- for tool in tools | default([], true) %}
type {{ tool.function.name }} = {{ type_of(tool.function.parameters, tool.function.parameters.required) }};
{%- endfor %}
{% set kinds = messages | map(attribute="role") | unique | list %}
{{ kinds | join("/") }}: {{ messages | rejectattr("role", "in", ["user", "tool"]) | map(attribute="role") | list }}
)jinja"),
      R"text(type weather = {city: string, days?: integer | null, unit?: "C" | "F", at?: {hour?: number}[]};system/user/assistant/tool: ['system', 'assistant', 'assistant'])text");
}

}  // namespace weft::chat_template_families_test
