"""The tools that the conformance suite wants and that ask nothing of the client."""

import asyncio
import base64
import json

from call import STRING, RpcError, sample, text, tool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
_FORMAT = b"\x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
WAV = base64.b64encode(b"RIFF&\0\0\0WAVEfmt " + _FORMAT + b"data\x02\0\0\0\0\0").decode()
STEP = 0.02  # seconds between two notifications of one call
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri, mime, body):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": body}}


@tool("test_simple_text", "Plain text")
async def simple_text(call, arguments):
    return text("This is a simple text response for testing.")


@tool("test_image_content", "An image")
async def image(call, arguments):
    return {"content": [IMAGE]}


@tool("test_audio_content", "A sound")
async def audio(call, arguments):
    return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}


@tool("test_embedded_resource", "An embedded resource")
async def embedded_resource(call, arguments):
    said = "This is an embedded resource content."
    return {"content": [embedded("test://embedded-resource", "text/plain", said)]}


@tool("test_multiple_content_types", "Text, image and resource together")
async def multiple(call, arguments):
    said = {"type": "text", "text": "Multiple content types test:"}
    body = '{"test":"data","value":123}'
    mixed = embedded("test://mixed-content-resource", "application/json", body)
    return {"content": [said, IMAGE, mixed]}


@tool("test_tool_with_logging", "Logs three times")
@tool("test_logging_tool", "Logs three times")
async def logging(call, arguments):
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.log(step)
        await asyncio.sleep(STEP)
    return text("Tool with logging executed successfully")


@tool("test_error_handling", "Always fails")
async def failing(call, arguments):
    return {**text("This tool intentionally returns an error for testing"), "isError": True}


@tool("test_tool_with_progress", "Reports progress three times")
async def progress(call, arguments):
    for done in (0, 50, 100):
        call.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP)
    return text(str(call.token))


@tool("test_reconnection", "Works for a while, logging before and after")
async def reconnection(call, arguments):
    call.log("before")
    await asyncio.sleep(6 * STEP)
    call.log("after")
    return text("Reconnection test completed")


@tool(
    "test_x_mcp_header",
    "Has a parameter that clients mirror into a header",
    {"region": {**STRING, "x-mcp-header": "Region"}, "query": STRING},
)
async def mirrored(call, arguments):
    return text(f"region={arguments.get('region')}")


@tool("test_missing_capability", "Needs the client's sampling capability")
async def missing_capability(call, arguments):
    if "sampling" not in call.client_offers:
        code = -32021 if call.modern else -32600
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise RpcError(code, "the sampling capability is required", needed)
    if not call.modern:
        await call.ask({"sample": sample("Say hello")})
    return text("sampling was declared")


@tool("test_trigger_tool_change", "Announces a change of the tool list")
async def tools_change(call, arguments):
    call.server.changed("tools")
    return text("tool list changed")


@tool("test_trigger_prompt_change", "Announces a change of the prompt list")
async def prompts_change(call, arguments):
    call.server.changed("prompts")
    return text("prompt list changed")


ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": STRING, "city": STRING},
}


@tool(
    "json_schema_2020_12_tool",
    "A schema with 2020-12 keywords",
    whole={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": ADDRESS},
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {**STRING, "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema(call, arguments):
    return text(json.dumps(arguments))
