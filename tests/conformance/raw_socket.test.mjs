// The daemon's own socket, spoken to without the SDK: framing, errors, cancelling, server requests.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { CancellationTokenSource } from "vscode-jsonrpc/node.js";
import { check, Seen, within } from "./support.mjs";

/** A running `loopd serve` and the path of its socket. */
async function serve(place) {
  const daemon = place.daemon(["serve"]);
  return { daemon, path: await daemon.announced(/listening on (\/.+)$/) };
}

/** A connection that shook hands. */
async function dial(place, path) {
  const connection = place.rpc(await place.connect({ path }));
  const hello = await connection.sendRequest("connect", {});
  assert.equal(hello.ok, true);
  assert.equal(hello.protocolVersion, 3);
  return connection;
}

async function open(place, connection, options = {}) {
  const sessionId = randomUUID();
  const params = { sessionId, model: "offline", workingDirectory: place.work, ...options };
  const opened = await connection.sendRequest("session.create", params);
  assert.equal(opened.sessionId, sessionId);
  return sessionId;
}

/** A connection with newline framing: sends objects, collects objects. */
async function lineClient(place, path) {
  const socket = await place.connect({ path });
  const judge = place.judge();
  const messages = new Seen();
  let rest = "";
  socket.on("data", (bytes) => {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) {
      judge.received(message);
      messages.add(message);
    }
  });
  const call = (id, method, params) => {
    const message = { jsonrpc: "2.0", id, method, params };
    judge.sent(message);
    socket.write(`${JSON.stringify(message)}\n`);
    return messages.first((reply) => reply.id === id && reply.method === undefined, `the reply to ${method}`);
  };
  return { call, messages };
}

check("the socket is private to its user", async (place) => {
  const { path } = await serve(place);
  assert.ok(statSync(path).isSocket());
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
});

check("a request is answered and a turn is told in events", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const pong = await connection.sendRequest("ping", { message: "hello" });
  assert.equal(pong.message, "pong: hello");
  const sessionId = await open(place, connection);
  const { messageId } = await connection.sendRequest("session.send", { sessionId, prompt: "hello" });
  assert.equal(typeof messageId, "string");
  await connection.events.event("session.idle");
  const types = connection.events.types();
  const order = ["session.start", "user.message", "assistant.turn_start", "assistant.message", "assistant.turn_end"];
  assert.deepEqual(types.filter((type) => order.includes(type)), order);
});

check("a question is a request of the daemon's and its answer goes on", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const asked = [];
  connection.onRequest("userInput.request", (params) => {
    asked.push(params);
    return { answer: "green", wasFreeform: true };
  });
  const sessionId = await open(place, connection, { requestUserInput: true });
  await connection.sendRequest("session.send", { sessionId, prompt: "ask Which colour?" });
  await connection.events.event("session.idle");
  assert.deepEqual(asked.map((params) => [params.sessionId, params.question]), [[sessionId, "Which colour?"]]);
  const message = connection.events.items.findLast(({ type }) => type === "assistant.message");
  assert.match(message.data.content, /green/);
});

check("parameters that do not fit are refused with the field's name", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const sessionId = await open(place, connection);
  const refused = (method, params, field) =>
    assert.rejects(connection.sendRequest(method, params), { code: -32602, message: new RegExp(`\\b${field}\\b`) });
  await refused("session.send", { sessionId }, "prompt");
  await refused("session.send", { sessionId, prompt: 5 }, "prompt");
  await refused("session.send", { prompt: "hello" }, "sessionId");
  await refused("session.create", { sessionId: randomUUID(), tools: [{ description: "nameless" }] }, "name");
  await refused("session.mode.set", { sessionId, mode: "sideways" }, "mode");
});

check("a method that is not there is refused by name", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const refusal = { code: -32601, message: /Unhandled method session\.teleport/ };
  await assert.rejects(connection.sendRequest("session.teleport", {}), refusal);
});

check("a session that is not there is refused by id", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const sessionId = randomUUID();
  const refusal = { code: -32603, message: /Request session\.send failed with message: Session not found/i };
  await assert.rejects(connection.sendRequest("session.send", { sessionId, prompt: "hello" }), refusal);
});

check("a cancelled request is answered as cancelled, once, and the connection goes on", async (place) => {
  const connection = await dial(place, (await serve(place)).path);
  const sessionId = await open(place, connection);
  const { cursor } = await connection.sendRequest("session.eventLog.tail", { sessionId });
  const source = new CancellationTokenSource();
  const params = { sessionId, cursor, waitMs: 30_000 };
  const reading = connection.sendRequest("session.eventLog.read", params, source.token);
  // Answered after the read has begun: requests of one connection start in order.
  await connection.sendRequest("ping", {});
  source.cancel();
  await assert.rejects(within(reading, "the cancelled read"), { code: -32800 });
  assert.equal((await connection.sendRequest("ping", { message: "after" })).message, "pong: after");
});

check("frames may be lines, beside a connection that frames by length", async (place) => {
  const { path } = await serve(place);
  const connection = await dial(place, path);
  const lines = await lineClient(place, path);
  assert.equal((await lines.call(1, "connect", {})).result.protocolVersion, 3);
  const sessionId = await open(place, connection);
  const resumed = await lines.call(2, "session.resume", { sessionId });
  assert.equal(resumed.result.sessionId, sessionId);
  await connection.sendRequest("session.send", { sessionId, prompt: "hello, both framings" });
  const idle = (message) => message.method === "session.event" && message.params.event.type === "session.idle";
  assert.equal((await lines.messages.first(idle, "session.idle")).params.sessionId, sessionId);
  await connection.events.event("session.idle");
});

for (const [what, bytes] of [
  ["no length", "Content-Type: text/plain\r\n\r\n{}"],
  ["a length that is no number", "Content-Length: many\r\n\r\n{}"],
  ["a length beyond all bounds", "Content-Length: 99999999999999\r\n\r\n"],
  ["neither framing", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
]) {
  check(`a frame with ${what} closes its own connection and no other`, async (place) => {
    const { path } = await serve(place);
    const bystander = await dial(place, path);
    const broken = await place.connect({ path });
    broken.resume().write(bytes);
    await within(broken.gone, "the broken connection to be closed");
    assert.equal((await bystander.sendRequest("ping", { message: "still here" })).message, "pong: still here");
  });
}

check("a client that vanishes leaves a session that another connection takes up", async (place) => {
  const { path } = await serve(place);
  const socket = await place.connect({ path });
  const first = place.rpc(socket);
  await first.sendRequest("connect", {});
  const sessionId = await open(place, first);
  await first.sendRequest("session.send", { sessionId, prompt: "hello" });
  await first.events.event("session.idle");
  socket.destroy();
  const second = await dial(place, path);
  assert.equal((await second.sendRequest("session.resume", { sessionId })).sessionId, sessionId);
  const { events } = await second.sendRequest("session.getMessages", { sessionId });
  assert.deepEqual(events.filter(({ type }) => type === "user.message").map(({ data }) => data.content), ["hello"]);
});
