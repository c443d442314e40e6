// Getting started with npm's @github/copilot-sdk. ../README.md says what each scenario has to show.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";

const { SDK, LOOPD_BIN, MODEL_URL, PLACE } = process.env;
const { CopilotClient, RuntimeConnection, defineTool } = await import(SDK);
const work = join(PLACE, "work");
const PATIENCE = 10_000;

/** Waits for a promise, but not forever. */
async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE} ms in vain for ${what}`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function scenario(name, body) {
  try {
    await within(body(), "the scenario's end");
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}: ${String(error?.message ?? error).replaceAll(/\s+/g, " ")}`);
  }
}

/** A tool call that goes on until the program opens the gate. */
class Gate {
  constructor() {
    this.entered = new Promise((resolve) => (this.enter = resolve));
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}

let gate = new Gate();
const asked = { tools: [], permissions: [], questions: [] };
const events = [];
const watchers = new Set();

function onEvent(event) {
  events.push(event);
  for (const look of watchers) look(event);
}

/** The next event of a type that fits. Call it before what causes the event. */
function next(type, fits = () => true) {
  const seen = new Promise((resolve) => {
    watchers.add(function look(event) {
      if (event.type !== type || !fits(event)) return;
      watchers.delete(look);
      resolve(event);
    });
  });
  return within(seen, type);
}

const config = {
  model: "scripted",
  provider: { type: "openai", baseUrl: MODEL_URL, apiKey: "none" },
  streaming: true,
  onEvent,
  onPermissionRequest: (request) => (asked.permissions.push(request), { kind: "approve-once" }),
  onUserInputRequest: ({ question }) => (asked.questions.push(question), { answer: "green", wasFreeform: true }),
  tools: [
    defineTool("lookup", {
      description: "Looks a word up.",
      parameters: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
      handler: (args) => (asked.tools.push(args), `${args.word} is a fruit`),
    }),
    defineTool("gate", {
      description: "Waits.",
      parameters: { type: "object", properties: {} },
      handler: async () => {
        const { enter, opened } = gate;
        enter();
        return opened;
      },
    }),
  ],
};

function newClient(connection) {
  return new CopilotClient({ connection, baseDirectory: join(PLACE, "home"), workingDirectory: work });
}

const ask = async (session, prompt) => (await session.sendAndWait({ prompt }, PATIENCE))?.data.content;

const client = newClient(RuntimeConnection.forStdio({ path: LOOPD_BIN }));
const second = newClient(RuntimeConnection.forStdio({ path: LOOPD_BIN }));
const overTcp = newClient(RuntimeConnection.forTcp({ path: LOOPD_BIN }));
let session;

await scenario("start_stdio", async () => {
  await client.start();
  assert.equal((await client.ping("hello")).message, "pong: hello");
});

await scenario("start_tcp", async () => {
  await overTcp.start();
  const other = await overTcp.createSession(config);
  assert.equal(await ask(other, "say over tcp"), "over tcp");
  await other.disconnect();
});

await scenario("create", async () => {
  session = await client.createSession(config);
  assert.equal(await ask(session, "say created"), "created");
});

await scenario("stream", async () => {
  const before = events.length;
  assert.equal(await ask(session, "say one two three"), "one two three");
  const pieces = events.slice(before).filter(({ type }) => type === "assistant.message_delta");
  assert.ok(pieces.length > 1, `${pieces.length} pieces`);
  assert.equal(pieces.map(({ data }) => data.deltaContent).join(""), "one two three");
});

await scenario("client_tool", async () => {
  assert.equal(await ask(session, 'call lookup {"word":"fig"}'), "lookup said: fig is a fruit");
  assert.deepEqual(asked.tools, [{ word: "fig" }]);
});

await scenario("permission", async () => {
  const answer = await ask(session, 'call bash {"command":"echo made > made.txt","description":"make a file"}');
  assert.match(answer, /exit code 0/);
  assert.ok(existsSync(join(work, "made.txt")), "the command did not run");
  const shell = asked.permissions.filter(({ kind }) => kind === "shell");
  assert.deepEqual(shell.map(({ fullCommandText }) => fullCommandText), ["echo made > made.txt"]);
});

await scenario("question", async () => {
  const answer = await ask(session, 'call ask_user {"question":"Which colour?"}');
  assert.match(answer, /green/);
  assert.deepEqual(asked.questions, ["Which colour?"]);
});

await scenario("two_waits", async () => {
  gate = new Gate();
  const before = events.length;
  const waits = [ask(session, "call gate {}")];
  await within(gate.entered, "the gate");
  const queued = next("pending_messages.modified");
  waits.push(ask(session, "say second"));
  await queued;
  gate.open("open");
  // This package does not tell runs apart: every wait ends with the session, and with its last message.
  assert.deepEqual(await Promise.all(waits), ["second", "second"]);
  const said = events.slice(before).filter(({ type, data }) => type === "assistant.message" && data.content);
  assert.deepEqual(said.map(({ data }) => data.content), ["gate said: open", "second"]);
});

await scenario("abort", async () => {
  gate = new Gate();
  const idle = next("session.idle");
  const wait = ask(session, "call gate {}");
  await within(gate.entered, "the gate");
  await session.abort();
  assert.equal((await idle).data.aborted, true);
  // This package takes the end of an aborted run for the end of any other.
  await within(wait, "the end of the wait");
  gate.open("too late");
  assert.equal(await ask(session, "say after abort"), "after abort");
});

await scenario("wait_timeout", async () => {
  gate = new Gate();
  const answered = next("assistant.message", ({ data }) => data.content === "gate said: open");
  const idle = next("session.idle");
  await assert.rejects(session.sendAndWait({ prompt: "call gate {}" }, 300), /Timeout after 300ms/);
  await within(gate.entered, "the gate");
  gate.open("open");
  await answered;
  await idle;
  assert.equal(await ask(session, "say after timeout"), "after timeout");
});

await scenario("resume", async () => {
  await session.disconnect();
  await second.start();
  session = await second.resumeSession(session.sessionId, config);
  const prompts = (await session.getEvents()).filter(({ type }) => type === "user.message").map(({ data }) => data.content);
  assert.equal(prompts[0], "say created");
  assert.equal(await ask(session, "say resumed"), "resumed");
});

const listed = async () => (await second.listSessions()).map(({ sessionId }) => sessionId);

await scenario("list", async () => {
  assert.ok((await listed()).includes(session.sessionId), "the session is not listed");
});

await scenario("delete", async () => {
  await session.disconnect();
  await second.deleteSession(session.sessionId);
  assert.ok(!(await listed()).includes(session.sessionId), "the session is still listed");
  await assert.rejects(second.resumeSession(session.sessionId, config));
});

await scenario("stop", async () => {
  for (const each of [overTcp, second, client]) assert.deepEqual(await each.stop(), []);
});
