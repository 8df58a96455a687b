"""The tools that ask the client: by requests in the handshake era, by their result in the modern."""

import json

from call import ROOTS, STRING, InputRequiredError, RpcError, content, elicit, sample, text, tool

NAME = elicit("What is your name?", {"name": STRING}, "name")
CONFIRM = {"confirm": elicit("Please confirm", {"ok": {"type": "boolean"}}, "ok")}


@tool("test_sampling", "Asks the client's model", {"prompt": STRING}, ("prompt",))
async def sampling(call, arguments):
    answers = await call.ask({"sample": sample(arguments.get("prompt", ""))})
    return text("LLM response: " + content(answers["sample"]).get("text", "No response"))


async def elicited(call, message, properties, *required, said="Elicitation completed"):
    answers = await call.ask({"ask": elicit(message, properties, *required)})
    answer = answers["ask"]
    shown = json.dumps(content(answer))
    return text(f"{said}: action={answer.get('action')}, content={shown}")


@tool("test_elicitation", "Asks the user", {"message": STRING}, ("message",))
async def elicitation(call, arguments):
    fields = {
        "username": {**STRING, "description": "User's response"},
        "email": {**STRING, "description": "User's email address"},
    }
    message = arguments.get("message", "")
    return await elicited(call, message, fields, "username", "email", said="User response")


@tool("test_elicitation_sep1034_defaults", "Elicitation with defaults")
async def defaults(call, arguments):
    fields = {
        "name": {**STRING, "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await elicited(call, "Please review the defaults", fields)


@tool("test_elicitation_sep1330_enums", "Elicitation with every enum form")
async def enums(call, arguments):
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    plain = ["option1", "option2", "option3"]
    named = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]}
    fields = {
        "untitledSingle": {**STRING, "enum": plain},
        "titledSingle": {**STRING, "oneOf": titled},
        "legacyEnum": {**STRING, **named},
        "untitledMulti": {"type": "array", "items": {**STRING, "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await elicited(call, "Please choose", fields)


@tool("test_streaming_elicitation", "Progress, then a question")
async def streaming(call, arguments):
    call.progress(1, 2)
    if call.modern and "elicitation" not in call.client_offers:
        needed = {"requiredCapabilities": {"elicitation": {}}}
        raise RpcError(-32021, "the elicitation capability is required", needed)
    await call.ask({"user_name": NAME})
    return text("thanks")


def accepted(answers):
    answer = answers.get("user_name")
    return isinstance(answer, dict) and answer.get("action") == "accept" and bool(content(answer))


@tool("test_input_required_result_elicitation", "One elicitation")
async def one_elicitation(call, arguments):
    answers = await call.ask({"user_name": NAME}, valid=accepted)
    return text(f"Hello, {content(answers['user_name']).get('name')}!")


@tool("test_input_required_result_sampling", "One sampling request")
async def one_sampling(call, arguments):
    answers = await call.ask({"capital_question": sample("What is the capital of France?")})
    return text("Model said: " + content(answers["capital_question"]).get("text", "?"))


@tool("test_input_required_result_list_roots", "One roots request")
async def one_roots(call, arguments):
    answers = await call.ask({"client_roots": ROOTS})
    roots = (answers["client_roots"] or {}).get("roots", [])
    return text(f"Client exposed {len(roots)} root(s).")


@tool("test_input_required_result_request_state", "A question whose state comes back")
async def request_state(call, arguments):
    wanted = {"nonce": "request-state"}
    await call.ask(CONFIRM, wanted, valid=lambda _: not call.modern or call.state == wanted)
    return text("state-ok: confirmation received")


@tool("test_input_required_result_tampered_state", "Refuses state that was altered")
async def tampered_state(call, arguments):
    if call.state is None:
        await call.ask(CONFIRM, {"round": 1}, valid=lambda _: not call.modern)
    return text(f"state-ok: {call.state}")


@tool("test_input_required_result_multiple_inputs", "Three questions at once")
async def multiple_inputs(call, arguments):
    questions = {
        "user_name": NAME,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    await call.ask(questions, {"multi": True})
    return text("All inputs received.")


@tool("test_input_required_result_multi_round", "Two questions, one after the other")
async def multi_round(call, arguments):
    state = call.state or {"round": 1}
    if state["round"] == 1:
        question = elicit("Step 1: your name?", {"name": STRING}, "name")
        answers = await call.ask({"step1": question}, {"round": 1})
        state = {"round": 2, "name": content(answers["step1"]).get("name")}
    question = elicit("Step 2: your favourite colour?", {"color": STRING}, "color")
    answers = await call.ask({"step2": question}, state)
    return text(f"{state['name']} likes {content(answers['step2']).get('color')}.")


@tool("test_input_required_result_capabilities", "Asks only for what the client declared")
async def capabilities(call, arguments):
    questions = {"sampling": sample("Say hello", 50), "elicitation": NAME}
    declared = {key: asked for key, asked in questions.items() if key in call.client_offers}
    if call.modern and not declared:
        raise InputRequiredError({}, {"gated": True})
    await call.ask(declared, {"gated": True}, valid=lambda _: True)
    return text("asked for what was declared")
