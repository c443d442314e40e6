// MCP servers from the package registries, used by sessions of the built daemon. The model is a small server
// of this file: it calls the tool that the prompt names, and answers with what the tool said.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { approveAll } from "@github/copilot-sdk";
import { check, within } from "./support.mjs";

const program = (name) => fileURLToPath(new URL(`node_modules/.bin/mcp-server-${name}`, import.meta.url));
const python = fileURLToPath(new URL("mcp_server.py", import.meta.url));

/** What the model says to a conversation: the tool call of the last prompt, or the result of that call. */
function reply({ messages }) {
  const last = messages.at(-1);
  if (last.role === "tool") return { content: text(last.content) };
  if (Array.isArray(last.content) && last.content.some((part) => part.type === "image_url")) return { content: "a picture" };
  const prompt = text(last.content);
  const asked = /\{"tool".*\}/s.exec(prompt);
  if (!asked) return { content: `sampled: ${prompt}` };
  const { tool, args } = JSON.parse(asked[0]);
  const call = { name: tool, arguments: JSON.stringify(args) };
  return { content: null, tool_calls: [{ index: 0, id: `call-${messages.length}`, type: "function", function: call }] };
}

function text(content) {
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}

/** Starts the model; returns its address. */
async function model(t) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method !== "POST") return response.writeHead(404).end("{}");
    const asked = JSON.parse(body);
    const message = { role: "assistant", ...reply(asked) };
    const finish_reason = message.tool_calls ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const about = { id: "r", created: 0, model: asked.model };
    if (!asked.stream) {
      const choices = [{ index: 0, message, finish_reason }];
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ ...about, object: "chat.completion", choices, usage }));
    }
    const piece = { ...about, object: "chat.completion.chunk", choices: [{ index: 0, delta: message, finish_reason }], usage };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(piece)}\n\ndata: [DONE]\n\n`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.push(() => server.close());
  return `http://127.0.0.1:${server.address().port}/v1`;
}

async function freePort() {
  const socket = createSocket();
  await new Promise((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

/** Starts a server on a port, and waits until it says that it listens. */
async function listening(t, command, args, env) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  t.push(() => child.kill("SIGKILL"));
  let said = "";
  const listens = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes) => /listening|running on/i.test((said += bytes)) && resolve());
    child.on("error", reject).on("exit", (code) => reject(new Error(`it ended with ${code}: ${said}`)));
  });
  await within(listens, `${command} to listen`);
}

/** A session with one server, and what its tools say. */
async function using(place, t, config) {
  const client = place.stdioClient();
  const session = await client.createSession({
    model: "caller",
    provider: { type: "openai", wireApi: "completions", baseUrl: await model(t), apiKey: "k" },
    mcpServers: { box: { tools: ["*"], ...config } },
    onPermissionRequest: approveAll,
  });
  const ask = async (tool, args) => {
    const prompt = JSON.stringify({ tool, args });
    const answer = await session.sendAndWait({ prompt }, 60_000);
    return answer.data.content;
  };
  const call = (tool, args = {}) => ask(`box-${tool}`, args);
  // A tool that works as a task goes on in the background, and its result is read there.
  const research = async (topic) => {
    const begun = await call("simulate-research-query", { topic, ambiguous: false });
    const task = /task (mcp-\d+)/.exec(begun);
    return task ? ask("read_agent", { agent_id: task[1], wait: true, timeout: 50 }) : begun;
  };
  return { session, call, research };
}

/** A test that ends what it started. */
function checked(name, body) {
  check(name, async (place) => {
    const ends = [];
    try {
      await body(place, ends);
    } finally {
      for (const end of ends) end();
    }
  });
}

checked("server-everything: its tools, and a research as a task", async (place, t) => {
  const { session, call, research } = await using(place, t, { type: "local", command: program("everything"), args: [] });
  assert.match(await call("echo", { message: "one" }), /one/);
  assert.match(await call("get-sum", { a: 2, b: 3 }), /5/);
  assert.match(await call("get-structured-content", { location: "Chicago" }), /temperature/);
  assert.match(await call("get-tiny-image"), /a picture/);
  assert.match(await call("get-annotated-message", { messageType: "error" }), /./);
  assert.match(await call("get-resource-reference", { resourceType: "Text", resourceId: 1 }), /./);
  assert.match(await call("get-resource-links", { count: 2 }), /./);
  assert.match(await call("get-env"), /PATH/);
  assert.match(await call("trigger-long-running-operation", { duration: 1, steps: 2 }), /completed/i);
  assert.match(await call("trigger-sampling-request", { prompt: "hello", maxTokens: 20 }), /sampled: .*hello/s);
  assert.match(await call("get-roots-list"), new RegExp(place.work));
  assert.match(await research("tides"), /tides/);
  const { tools } = await session.rpc.mcp.listTools({ serverName: "box" });
  assert.ok(tools.length >= 12, `${tools.length} tools`);
});

checked("server-filesystem: files of a folder and nothing else", async (place, t) => {
  const folder = join(place.root, "files");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.txt"), "the content of a");
  const { call } = await using(place, t, { type: "local", command: program("filesystem"), args: [folder] });
  // The server takes the directories of the session in the place of its arguments.
  writeFileSync(join(place.work, "b.txt"), "the content of b");
  assert.match(await call("read_text_file", { path: join(place.work, "b.txt") }), /the content of b/);
  assert.match(await call("list_directory", { path: place.work }), /b\.txt/);
  assert.match(await call("read_text_file", { path: "/etc/hostname" }), /denied|outside/i);
});

checked("server-memory: what is kept is found again by the next session", async (place, t) => {
  const env = { MEMORY_FILE_PATH: join(place.root, "memory.jsonl") };
  const config = { type: "local", command: program("memory"), args: [], env };
  const first = await using(place, t, config);
  const entity = { name: "loopd", entityType: "program", observations: ["keeps sessions"] };
  assert.match(await first.call("create_entities", { entities: [entity] }), /loopd/);
  await first.session.disconnect();
  const { call } = await using(place, t, config);
  assert.match(await call("search_nodes", { query: "sessions" }), /keeps sessions/);
});

checked("server-everything over HTTP", async (place, t) => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  await listening(t, program("everything"), ["streamableHttp"], { PORT: String(port) });
  const { call, research } = await using(place, t, { type: "http", url });
  assert.match(await call("echo", { message: "two" }), /two/);
  assert.match(await research("moons"), /moons/);
});

for (const lifecycle of ["initialize", "discover"]) {
  checked(`a server of the Python package over stdio, greeted with ${lifecycle}`, async (place, t) => {
    const config = { type: "local", command: process.env.MCP_PYTHON, args: [python], lifecycle };
    const { call } = await using(place, t, config);
    assert.match(await call("forecast", { city: "Kiel" }), /sunny in Kiel/);
    assert.match(await call("read_resource", { uri: "note://one" }), /the note one/);
  });

  checked(`a server of the Python package over HTTP, greeted with ${lifecycle}`, async (place, t) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    await listening(t, process.env.MCP_PYTHON, [python, String(port)], {});
    const { call } = await using(place, t, { type: "http", url, lifecycle });
    assert.match(await call("forecast", { city: "Rom" }), /sunny in Rom/);
  });
}
