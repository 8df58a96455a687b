"""The prompts and resources that the conformance suite wants."""

import json
import re

from call import STRING, RpcError, content, elicit
from tools import IMAGE, PNG, embedded

ASKING = "test_input_required_result_prompt"
PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    ASKING: [],
}
RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", None),
    "test://watched-resource": ("text/plain", "Watched resource content"),
}
TEMPLATE = "test://template/{id}/data"


def user(shown):
    return {"role": "user", "content": shown}


def say(words):
    return user({"type": "text", "text": words})


def list_prompts():
    return {
        "prompts": [
            {
                "name": name,
                "description": name.replace("_", " "),
                "arguments": [{"name": argument, "required": True} for argument in arguments],
            }
            for name, arguments in PROMPTS.items()
        ]
    }


async def get_prompt(call):
    name = call.params.get("name")
    arguments = call.params.get("arguments") or {}
    if name not in PROMPTS:
        raise RpcError(-32602, f"Unknown prompt: {name}")
    if name == ASKING:
        question = elicit("What context?", {"context": STRING}, "context")
        answers = await call.ask({"user_context": question})
        said = [say(f"Context: {content(answers['user_context']).get('context')}")]
    elif name == "test_simple_prompt":
        said = [say("This is a simple prompt for testing.")]
    elif name == "test_prompt_with_arguments":
        first, second = arguments.get("arg1"), arguments.get("arg2")
        said = [say(f"Prompt with arguments: arg1='{first}', arg2='{second}'")]
    elif name == "test_prompt_with_embedded_resource":
        uri, body = arguments.get("resourceUri", ""), "Embedded resource content for testing."
        embed = user(embedded(uri, "text/plain", body))
        said = [embed, say("Please process the embedded resource above.")]
    else:
        said = [user(IMAGE), say("Please analyze the image above.")]
    return {"messages": said}


def list_resources():
    return {
        "resources": [
            {"uri": uri, "name": uri.split("//")[1], "mimeType": mime}
            for uri, (mime, _) in RESOURCES.items()
        ]
    }


def list_templates():
    template = {"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [template]}


def read_resource(call):
    uri = call.params.get("uri")
    if uri in RESOURCES:
        mime, body = RESOURCES[uri]
        shown = {"text": body} if body is not None else {"blob": PNG}
        return {"contents": [{"uri": uri, "mimeType": mime, **shown}]}
    if match := re.fullmatch(r"test://template/([^/]+)/data", str(uri)):
        data = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
        body = {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
        return {"contents": [body]}
    raise RpcError(-32602 if call.modern else -32002, "Resource not found", {"uri": uri})
