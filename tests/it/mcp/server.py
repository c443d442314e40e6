"""An MCP server for tests. The first argument says how it behaves; it needs no packages.

It speaks newline-delimited JSON-RPC on standard input and output, or with `--http` over HTTP at an
address that it prints. `--mark FILE` appends a line to FILE
when it starts; `--seen FILE` appends each message that it reads.
"""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOUR = sys.argv[1] if len(sys.argv) > 1 else "good"
OUT = threading.Lock()
CANCELLED = set()
ANSWERS = {}
NEXT = [1000]
EXTRA_TOOLS = []


def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def note(file, text):
    if file:
        with open(file, "a") as out:
            out.write(text + "\n")


def send(message):
    if "--http" in sys.argv:
        # There is no stream for what nobody asked for.
        return
    with OUT:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def tool(name, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


def ask(method, params):
    """Asks the client and waits for its answer."""
    with OUT:
        NEXT[0] += 1
        number = NEXT[0]
    done = threading.Event()
    ANSWERS[number] = [done, None]
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    done.wait(20)
    return ANSWERS.pop(number)[1]


def slow(id, params):
    args = params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    steps = args.get("steps", 4)
    for step in range(steps):
        for _ in range(int(args.get("ms", 100) / 10)):
            if id in CANCELLED:
                note(option("--seen"), f"stopped {id}")
                return None
            time.sleep(0.01)
        if token is not None and args.get("progress", True):
            progress = {"progressToken": token, "progress": step + 1, "total": steps, "message": "working"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    return text("done slowly")


def task_state(task):
    """Returns what `tasks/get` says, in the dialect of the server."""
    state = {"taskId": task["id"], "status": task["status"], "createdAt": "2026-01-01T00:00:00Z",
             "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    if task.get("message"):
        state["statusMessage"] = task["message"]
    if BEHAVIOUR == "new-tasks":
        state.update({"resultType": "complete", "ttlMs": 60000, "pollIntervalMs": 20})
        if task["status"] == "completed":
            state["result"] = task["result"]
        if task["status"] == "failed":
            state["error"] = {"code": -32000, "message": "it did not work out"}
        if task["status"] == "input_required":
            schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
            state["inputRequests"] = {"q": {"method": "elicitation/create", "params": {
                "mode": "form", "message": "Which colour?", "requestedSchema": schema}}}
    else:
        state.update({"ttl": 60000, "pollInterval": 20})
    return state


def start_task(id, params):
    """Begins a task that takes some steps; its state is kept in a file if there is one."""
    args = params.get("arguments", {})
    task = {"id": f"t{len(TASKS) + 1}", "status": "working", "args": args,
            "token": params.get("_meta", {}).get("progressToken")}
    TASKS[task["id"]] = task
    threading.Thread(target=run_task, args=(task,), daemon=True).start()
    state = task_state(task)
    if BEHAVIOUR == "new-tasks":
        return {**state, "resultType": "task"}
    return {"task": state}


def run_task(task):
    args = task["args"]
    for step in range(args.get("steps", 3)):
        waited = 0
        while waited < args.get("ms", 50) and task["status"] == "working":
            time.sleep(0.01)
            waited += 10
        if task["status"] != "working":
            return
        task["message"] = f"step {step + 1}"
        if task["token"] is not None and args.get("progress"):
            progress = {"progressToken": task["token"], "progress": step + 1, "total": args.get("steps", 3),
                        "message": "counting"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    while args.get("until") and not os.path.exists(args["until"]):
        time.sleep(0.01)
    if args.get("ask"):
        task["status"] = "input_required"
        task["answered"] = threading.Event()
        task["answered"].wait(20)
    task["result"] = text(args.get("says") or json.dumps(task.get("answer", "worked")))
    task["status"] = "failed" if args.get("fails") else "completed"
    method = "notifications/tasks" if BEHAVIOUR == "new-tasks" else "notifications/tasks/status"
    send({"jsonrpc": "2.0", "method": method, "params": task_state(task)})


def tasks(method, params):
    task = TASKS.get(params.get("taskId"))
    if task is None:
        return {"error": {"code": -32602, "message": f"no task {params.get('taskId')}"}}
    if method == "tasks/get":
        return task_state(task)
    if method == "tasks/cancel":
        task["status"] = "cancelled"
        return task_state(task) if BEHAVIOUR != "new-tasks" else {"resultType": "complete"}
    if method == "tasks/update":
        task["answer"] = params["inputResponses"]["q"]
        task["status"] = "working"
        task["answered"].set()
        return {"resultType": "complete"}
    if task["status"] == "input_required":
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        task["answer"] = ask("elicitation/create", {"mode": "form", "message": "Which colour?",
                                                    "requestedSchema": schema})
        task["answered"].set()
    while task["status"] not in ("completed", "failed", "cancelled"):
        time.sleep(0.01)
    if task["status"] == "failed":
        return {"error": {"code": -32000, "message": "it did not work out"}}
    return task["result"]


def call(id, params):
    name, args = params["name"], params.get("arguments", {})
    if name == "echo":
        return text(args.get("text", ""))
    if name == "add":
        total = args["a"] + args["b"]
        return text(str(total), structuredContent={"total": total})
    if name == "env":
        return text(os.environ.get(args["name"], "(not set)"))
    if name == "environment":
        return text(" ".join(sorted(os.environ)))
    if name == "where":
        return text(os.getcwd())
    if name == "meta":
        meta = {key: value for key, value in params.get("_meta", {}).items() if key != "progressToken"}
        return text(json.dumps(meta))
    if name == "picture":
        data = "iVBORw0KGgo="
        return {"content": [{"type": "text", "text": "a picture"},
                            {"type": "image", "data": data, "mimeType": "image/png"},
                            {"type": "resource", "resource": {"uri": "test://r", "text": "embedded"}}]}
    if name == "fail":
        return text("it did not work", isError=True)
    if name == "slow":
        return slow(id, params)
    if name == "crash":
        print("about to crash", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "close":
        # The output ends now, the program a little later.
        os.close(1)
        time.sleep(args.get("ms", 500) / 1000)
        os._exit(7)
    if name == "push":
        for number in range(args.get("times", 1)):
            content = args.get("text", "news") + (f" {number + 1}" if number else "")
            send({"jsonrpc": "2.0", "method": "notifications/claude/channel",
                  "params": {"content": content, "meta": {"room": "7"}}})
        return text("pushed")
    if name == "change_resources":
        send({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"})
        return text("changed")
    if name == "log":
        send({"jsonrpc": "2.0", "method": "notifications/message",
              "params": {"level": "warning", "logger": "x", "data": args.get("text", "careful")}})
        return text("logged")
    if name == "ask_often":
        asked = {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
        answers = [None] * args["times"]
        token = params.get("_meta", {}).get("progressToken")
        def one(at):
            answers[at] = ask("elicitation/create", asked)["action"]
            done = sum(answer is not None for answer in answers)
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": token, "progress": done}})
        threads = [threading.Thread(target=one, args=(at,)) for at in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return text(" ".join(sorted(answers)))
    if name == "ask_long":
        return text(json.dumps(ask("elicitation/create", {
            "mode": "form", "message": "x" * 100_000, "requestedSchema": {"type": "object", "properties": {}}})))
    if name == "ask":
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
        answer = ask("elicitation/create", {"mode": "form", "message": "Which colour?", "requestedSchema": schema})
        return text(json.dumps(answer))
    if name == "visit":
        answer = ask("elicitation/create", {"mode": "url", "message": "Log in there.",
                                            "url": "https://a.example/x", "elicitationId": "e1"})
        return text(json.dumps(answer))
    if name == "sample":
        message = {"role": "user", "content": {"type": "text", "text": args.get("text", "Say hi.")}}
        answer = ask("sampling/createMessage", {"messages": [message], "maxTokens": 100})
        return text(json.dumps(answer))
    if name == "roots":
        return text(json.dumps(ask("roots/list", {})))
    if name == "grow":
        EXTRA_TOOLS.append(tool("grown"))
        for _ in range(args.get("times", 1)):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "grown":
        return text("I am new")
    if name == "fork":
        child = subprocess.Popen([sys.executable, "-c",
                                  "import signal,time,sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)",
                                  option("--mark") or "x"], start_new_session=True)
        return text(str(child.pid))
    if name in ("research", "maybe"):
        if BEHAVIOUR == "new-tasks" or "task" in params:
            return start_task(id, params)
        if name == "research":
            return {"error": {"code": -32601, "message": "research needs to be called as a task"}}
        return text("worked at once")
    if name == "secret":
        return text("the key is " + os.environ.get("LEAK", ""))
    return {"error": {"code": -32602, "message": f"no tool {name}"}}


TOOLS = [
    tool("echo", {"text": {"type": "string"}}, annotations={"readOnlyHint": True, "title": "Echo"}),
    tool("add", {"a": {"type": "number"}, "b": {"type": "number"}}),
    tool("env", {"name": {"type": "string"}}), tool("environment"), tool("where"), tool("meta"), tool("picture"),
    tool("fail"), tool("slow", {"ms": {"type": "number"}, "steps": {"type": "number"}}), tool("crash"),
    tool("ask"), tool("visit"), tool("sample", {"text": {"type": "string"}}), tool("roots"),
    tool("grow", {"times": {"type": "number"}}), tool("fork"), tool("secret"), tool("close"), tool("push"),
    tool("log"), tool("change_resources"), tool("ask_often", {"times": {"type": "number"}}), tool("ask_long"),
]
TASKS = {}
TASK_ARGS = {"steps": {"type": "number"}, "ms": {"type": "number"}, "says": {"type": "string"}}
TASK_TOOLS = [tool("research", TASK_ARGS, execution={"taskSupport": "required"}),
              tool("maybe", TASK_ARGS, execution={"taskSupport": "optional"})]


def tools():
    if BEHAVIOUR == "odd-tools":
        return [tool("echo", {"text": {"type": "string"}}), {"description": "no name"},
                {"name": "bad", "inputSchema": 7}, tool("echo")]
    if BEHAVIOUR == "long-names":
        return [tool("a" * 80), tool("a" * 80 + "b"), tool("with space"), tool("with.space")]
    if BEHAVIOUR == "huge-tools":
        return [{**tool(f"tool{number}"), "description": "x" * 7_000} for number in range(300)]
    if BEHAVIOUR in ("tasks", "new-tasks"):
        return TASK_TOOLS
    return TOOLS + EXTRA_TOOLS


def answer(id, method, params):
    if method == "initialize":
        more = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}} if BEHAVIOUR == "tasks" else {}
        return {"protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {},
                                 **more},
                "serverInfo": {"name": "test", "version": "1"}, "instructions": "Use me well."}
    if method == "ping":
        return {}
    if method == "tools/list":
        if BEHAVIOUR == "half":
            return None
        everything = tools()
        if BEHAVIOUR == "pages":
            start = int(params.get("cursor", "0"))
            page = {"tools": everything[start:start + 5]}
            if start + 5 < len(everything):
                page["nextCursor"] = str(start + 5)
            return page
        return {"tools": everything}
    if method == "tools/call":
        return call(id, params)
    if method.startswith("tasks/"):
        return tasks(method, params)
    if method == "resources/list":
        return {"resources": [{"uri": "test://a", "name": "a"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "test://{x}", "name": "any"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "content of " + params["uri"]}]}
    if method == "prompts/list" and BEHAVIOUR == "no-prompts":
        return None
    if method == "prompts/list" and BEHAVIOUR == "pages":
        start = int(params.get("cursor", "0"))
        return {"prompts": [{"name": f"prompt{start}"}], **({"nextCursor": str(start + 1)} if start < 3 else {})}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "description": "Greets.",
                             "arguments": [{"name": "who", "required": True}]}]}
    if method == "prompts/get":
        who = params.get("arguments", {}).get("who", "nobody")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Greet {who} warmly."}}]}
    return {"error": {"code": -32601, "message": f"no method {method}"}}


class Web(BaseHTTPRequestHandler):
    """Answers each request in its own response, as servers may that never ask anything."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(option("--seen"), json.dumps(message))
        body = b""
        if "id" in message and "method" in message:
            result = answer(message["id"], message["method"], message.get("params") or {})
            kind = {"error": result["error"]} if "error" in result else {"result": result}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **kind}).encode()
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def serve():
    web = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    print(f"http://127.0.0.1:{web.server_port}/mcp", flush=True)
    web.serve_forever()


def handle(message):
    id, method = message.get("id"), message.get("method")
    if method is None:
        waiting = ANSWERS.get(id)
        if waiting:
            waiting[1] = message.get("result", {"error": message.get("error")})
            waiting[0].set()
        return
    if method == "notifications/cancelled":
        CANCELLED.add(message["params"].get("requestId"))
        return
    if id is None:
        return
    result = answer(id, method, message.get("params") or {})
    if result is None:
        return
    if BEHAVIOUR == "wrong-id" and method == "tools/list":
        send({"jsonrpc": "2.0", "id": 99999, "result": result})
    if BEHAVIOUR == "noise":
        with OUT:
            sys.stdout.write("Loading... 50%\n{not json\n\n\x1b[31mred\x1b[0m\n")
            sys.stdout.flush()
    if "error" in result:
        send({"jsonrpc": "2.0", "id": id, "error": result["error"]})
    else:
        send({"jsonrpc": "2.0", "id": id, "result": result})


def main():
    note(option("--mark"), str(os.getpid()))
    if BEHAVIOUR == "silent":
        time.sleep(600)
    if BEHAVIOUR == "dies":
        print("no key was given", os.environ.get("LEAK_TOKEN", ""), file=sys.stderr, flush=True)
        sys.exit(3)
    if BEHAVIOUR == "asks-without-end":
        # Asks and reads no answers after the greeting.
        handle(json.loads(sys.stdin.readline()))
        while True:
            send({"jsonrpc": "2.0", "id": NEXT[0], "method": "ping"})
            NEXT[0] += 1
    if BEHAVIOUR == "floods":
        threading.Thread(target=flood, daemon=True).start()
    if BEHAVIOUR == "long-line":
        sys.stdout.write("x" * (20 * 1024 * 1024))
        sys.stdout.write("\n")
        sys.stdout.flush()
    if BEHAVIOUR == "deaf":
        # Answers the greeting and reads nothing more.
        message = json.loads(sys.stdin.readline())
        handle(message)
        time.sleep(600)
    if "--http" in sys.argv:
        serve()
    if BEHAVIOUR == "slow-start":
        time.sleep(1)
    for line in sys.stdin:
        message = json.loads(line)
        note(option("--seen"), line.strip())
        threading.Thread(target=handle, args=(message,), daemon=True).start()
    if BEHAVIOUR == "stays":
        # Ignores the end of its input.
        time.sleep(600)


def flood():
    while True:
        sys.stderr.write("E: " + "x" * 1000 + "\n")


if __name__ == "__main__":
    main()
