"""Getting started with PyPI's github-copilot-sdk. ../README.md says what each scenario has to show."""

import asyncio
import os
import re
from importlib.metadata import version
from pathlib import Path

from copilot import CopilotClient, RuntimeConnection
from copilot.generated.rpc import PermissionDecisionApproveOnce
from copilot.tools import define_tool
from pydantic import BaseModel

LOOPD_BIN = os.environ["LOOPD_BIN"]
PLACE = Path(os.environ["PLACE"])
WORK = PLACE / "work"
PATIENCE = 10.0

# From this version on a wait ends with its own run, and an aborted run is an error.
TELLS_RUNS_APART = tuple(map(int, version("github-copilot-sdk").split(".")[:3])) >= (1, 0, 25)


def equal(found, expected):
    """Fails with both values when they differ."""
    assert found == expected, f"{found!r} is not {expected!r}"


async def scenario(name, body):
    try:
        async with asyncio.timeout(PATIENCE):
            await body()
        print(f"ok {name}", flush=True)
    except Exception as error:  # Whatever it is, it belongs into the table.
        why = re.sub(r"\s+", " ", str(error)) or f"{type(error).__name__} within {PATIENCE} s"
        print(f"FAIL {name}: {why}", flush=True)


class Gate:
    """A tool call that goes on until the program opens the gate."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.opened = asyncio.get_running_loop().create_future()

    def open(self, word):
        if not self.opened.done():
            self.opened.set_result(word)


class Lookup(BaseModel):
    word: str


class Nothing(BaseModel):
    pass


class Program:
    def __init__(self):
        self.events = []
        self.watchers = []
        self.tools = []
        self.permissions = []
        self.questions = []
        self.gate = Gate()
        self.session = None
        self.client = self.new_client(RuntimeConnection.for_stdio(path=LOOPD_BIN))
        self.second = self.new_client(RuntimeConnection.for_stdio(path=LOOPD_BIN))
        self.over_tcp = self.new_client(RuntimeConnection.for_tcp(path=LOOPD_BIN))

    def new_client(self, connection):
        return CopilotClient(connection=connection, base_directory=str(PLACE / "home"), working_directory=str(WORK))

    def config(self):
        @define_tool(description="Looks a word up.")
        def lookup(params: Lookup) -> str:
            self.tools.append(params.word)
            return f"{params.word} is a fruit"

        @define_tool(description="Waits.")
        async def gate(params: Nothing) -> str:
            waiting = self.gate
            waiting.entered.set()
            return await asyncio.shield(waiting.opened)

        return {
            "model": "scripted",
            "provider": {"type": "openai", "base_url": os.environ["MODEL_URL"], "api_key": "none"},
            "streaming": True,
            "on_event": self.on_event,
            "on_permission_request": self.on_permission,
            "on_user_input_request": self.on_question,
            "tools": [lookup, gate],
        }

    def on_event(self, event):
        self.events.append(event)
        for watcher in list(self.watchers):
            watcher(event)

    def on_permission(self, request, _invocation):
        self.permissions.append(request)
        return PermissionDecisionApproveOnce()

    def on_question(self, request, _invocation):
        self.questions.append(request["question"])
        return {"answer": "green", "wasFreeform": True}

    def next(self, kind, fits=lambda event: True):
        """The next event of a type that fits. Call it before what causes the event."""
        seen = asyncio.get_running_loop().create_future()

        def look(event):
            if event.type.value == kind and fits(event) and not seen.done():
                self.watchers.remove(look)
                seen.set_result(event)

        self.watchers.append(look)
        return seen

    async def ask(self, session, prompt, timeout=PATIENCE):
        message = await session.send_and_wait(prompt, timeout=timeout)
        return message and message.data.content

    async def start_stdio(self):
        await self.client.start()
        equal((await self.client.ping("hello")).message, "pong: hello")

    async def start_tcp(self):
        await self.over_tcp.start()
        other = await self.over_tcp.create_session(**self.config())
        equal(await self.ask(other, "say over tcp"), "over tcp")
        await other.disconnect()

    async def create(self):
        self.session = await self.client.create_session(**self.config())
        equal(await self.ask(self.session, "say created"), "created")

    async def stream(self):
        before = len(self.events)
        equal(await self.ask(self.session, "say one two three"), "one two three")
        new = self.events[before:]
        pieces = [event.data.delta_content for event in new if event.type.value == "assistant.message_delta"]
        assert len(pieces) > 1, f"{len(pieces)} pieces"
        equal("".join(pieces), "one two three")

    async def client_tool(self):
        equal(await self.ask(self.session, 'call lookup {"word":"fig"}'), "lookup said: fig is a fruit")
        equal(self.tools, ["fig"])

    async def permission(self):
        command = '{"command":"echo made > made.txt","description":"make a file"}'
        answer = await self.ask(self.session, f"call bash {command}")
        assert "exit code 0" in answer, answer
        assert (WORK / "made.txt").exists(), "the command did not run"
        shell = [request.full_command_text for request in self.permissions if request.kind == "shell"]
        equal(shell, ["echo made > made.txt"])

    async def question(self):
        answer = await self.ask(self.session, 'call ask_user {"question":"Which colour?"}')
        assert "green" in answer, answer
        equal(self.questions, ["Which colour?"])

    async def two_waits(self):
        self.gate = Gate()
        before = len(self.events)
        first = asyncio.create_task(self.ask(self.session, "call gate {}"))
        await self.gate.entered.wait()
        queued = self.next("pending_messages.modified")
        second = asyncio.create_task(self.ask(self.session, "say second"))
        await queued
        self.gate.open("open")
        # Without ids every wait ends with the session, and with its last message.
        own = ["gate said: open", "second"]
        equal(await asyncio.gather(first, second), own if TELLS_RUNS_APART else ["second", "second"])
        new = self.events[before:]
        said = [event.data.content for event in new if event.type.value == "assistant.message" and event.data.content]
        equal(said, own)

    async def abort(self):
        self.gate = Gate()
        idle = self.next("session.idle")
        wait = asyncio.create_task(self.ask(self.session, "call gate {}"))
        await self.gate.entered.wait()
        await self.session.abort()
        equal((await idle).data.aborted, True)
        if TELLS_RUNS_APART:
            (error,) = await asyncio.gather(wait, return_exceptions=True)
            assert "aborted" in str(error), f"the wait ended with {error!r}"
        else:
            await wait
        self.gate.open("too late")
        equal(await self.ask(self.session, "say after abort"), "after abort")

    async def wait_timeout(self):
        self.gate = Gate()
        answered = self.next("assistant.message", lambda event: event.data.content == "gate said: open")
        idle = self.next("session.idle")
        try:
            await self.ask(self.session, "call gate {}", timeout=0.3)
            raise AssertionError("the wait did not end with a timeout")
        except TimeoutError:
            pass
        await self.gate.entered.wait()
        self.gate.open("open")
        await answered
        await idle
        equal(await self.ask(self.session, "say after timeout"), "after timeout")

    async def resume(self):
        await self.session.disconnect()
        await self.second.start()
        self.session = await self.second.resume_session(self.session.session_id, **self.config())
        kept = await self.session.get_events()
        prompts = [event.data.content for event in kept if event.type.value == "user.message"]
        equal(prompts[0], "say created")
        equal(await self.ask(self.session, "say resumed"), "resumed")

    async def listed(self):
        return [each.session_id for each in await self.second.list_sessions()]

    async def list(self):
        assert self.session.session_id in await self.listed(), "the session is not listed"

    async def delete(self):
        await self.session.disconnect()
        await self.second.delete_session(self.session.session_id)
        assert self.session.session_id not in await self.listed(), "the session is still listed"
        try:
            await self.second.resume_session(self.session.session_id, **self.config())
        except Exception:
            return
        raise AssertionError("a deleted session was resumed")

    async def stop(self):
        for client in [self.over_tcp, self.second, self.client]:
            await client.stop()


async def main():
    program = Program()
    for body in [
        program.start_stdio,
        program.start_tcp,
        program.create,
        program.stream,
        program.client_tool,
        program.permission,
        program.question,
        program.two_waits,
        program.abort,
        program.wait_timeout,
        program.resume,
        program.list,
        program.delete,
        program.stop,
    ]:
        await scenario(body.__name__, body)


asyncio.run(main())
