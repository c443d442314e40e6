// The official SDK over TCP: a connection token, and several clients on one session.

import assert from "node:assert/strict";
import { approveAll, defineTool, ToolSet } from "@github/copilot-sdk";
import { answer, check, watched, within } from "./support.mjs";

const TOKEN = "a token of this test";

/** A client that started a daemon, its session, and a second client of the same daemon. */
async function company(place, options = {}) {
  const host = place.tcpClient({ connectionToken: TOKEN });
  const mine = watched({ onPermissionRequest: approveAll, ...options });
  const session = await host.createSession(mine.options);
  return { host, session, events: mine.events, guest: place.guestClient(host, TOKEN) };
}

/** Promises one value, to be given later. */
function later() {
  let give;
  const given = new Promise((resolve) => (give = resolve));
  return { give, given };
}

function guestTool(handler) {
  return defineTool("glob", {
    description: "Finds files by pattern.",
    parameters: { type: "object", properties: { pattern: { type: "string" } }, required: ["pattern"] },
    overridesBuiltInTool: true,
    skipPermission: true,
    handler,
  });
}

check("a session works over TCP with the token that the client chose", async (place) => {
  const client = place.tcpClient({ connectionToken: TOKEN });
  await client.start();
  assert.equal((await client.ping("hello")).message, "pong: hello");
  const { events, options } = watched({ streaming: true, onPermissionRequest: approveAll });
  const session = await client.createSession(options);
  assert.match(await answer(session, "run echo over TCP"), /over TCP/);
  await events.event("assistant.message_delta");
  assert.deepEqual(await client.stop(), []);
});

check("a session works over TCP with a token that nobody chose", async (place) => {
  const session = await place.tcpClient().createSession(watched({ onPermissionRequest: approveAll }).options);
  assert.match(await answer(session, "run echo over TCP"), /over TCP/);
});

check("both clients of a session see what happens in it", async (place) => {
  const { session, events, guest } = await company(place);
  const theirs = watched({ onPermissionRequest: () => ({ kind: "no-result" }) });
  await guest.resumeSession(session.sessionId, theirs.options);
  await answer(session, "run echo seen by two");
  await theirs.events.event("session.idle");
  const turn = (seen) => seen.items.slice(seen.types().indexOf("user.message"));
  assert.deepEqual(turn(theirs.events), turn(events));
  assert.ok(turn(events).some(({ type }) => type === "tool.execution_complete"));
});

check("of two answers to one permission the first wins", async (place) => {
  const slow = later();
  const { session, events, guest } = await company(place, { onPermissionRequest: () => slow.given });
  const theirs = watched({ onPermissionRequest: () => ({ kind: "approve-once" }) });
  await guest.resumeSession(session.sessionId, theirs.options);
  assert.match(await answer(session, "run echo allowed"), /allowed/);
  const { requestId } = (await events.event("permission.requested")).data;
  for (const seen of [events, theirs.events]) {
    const completed = await seen.event("permission.completed");
    assert.deepEqual([completed.data.requestId, completed.data.result.kind], [requestId, "approved"]);
  }
  const late = await session.rpc.permissions.handlePendingPermissionRequest({ requestId, result: { kind: "reject" } });
  assert.equal(late.success, false);
  slow.give({ kind: "reject" });
  assert.equal(events.types().filter((type) => type === "permission.completed").length, 1);
});

check("a client's tools serve the session while it is there and leave with it", async (place) => {
  const { session, events, guest } = await company(place, { excludedTools: new ToolSet().addBuiltIn("glob") });
  assert.match(await answer(session, "find *.md"), /`glob`, which this session does not offer/);
  const theirs = watched({ onPermissionRequest: approveAll, tools: [guestTool(() => "found by the guest")] });
  await guest.resumeSession(session.sessionId, theirs.options);
  assert.match(await answer(session, "find *.md"), /found by the guest/);
  assert.equal((await events.event("external_tool.requested")).data.toolName, "glob");
  assert.deepEqual(await guest.stop(), []);
  assert.match(await answer(session, "find *.md"), /`glob`, which this session does not offer/);
  assert.match(await answer(session, "run echo still here"), /still here/);
});

check("a call that waits for a vanished client can be answered by another", async (place) => {
  const called = later();
  const { session, events, guest } = await company(place);
  const tool = guestTool(() => {
    called.give();
    return new Promise(() => {});
  });
  await guest.resumeSession(session.sessionId, watched({ onPermissionRequest: approveAll, tools: [tool] }).options);
  const answered = answer(session, "find *.md");
  await within(called.given, "the guest's tool to be called");
  await guest.forceStop();
  const { requestId } = (await events.event("external_tool.requested")).data;
  assert.equal((await session.rpc.tools.handlePendingToolCall({ requestId, result: "found by the host" })).success, true);
  assert.match(await answered, /found by the host/);
});

check("a guest leaves without ending the session", async (place) => {
  const { session, events, guest } = await company(place);
  const joined = await guest.resumeSession(session.sessionId, watched({ onPermissionRequest: approveAll }).options);
  await joined.disconnect();
  assert.match(await answer(session, "run echo alone again"), /alone again/);
  assert.ok(!events.types().includes("session.shutdown"));
});

check("a wrong token and no token are refused, and nothing else is served", async (place) => {
  const { host, session } = await company(place);
  await assert.rejects(place.guestClient(host, "a guess").start(), /AUTHENTICATION_FAILED/);
  await assert.rejects(place.guestClient(host, undefined).start(), /AUTHENTICATION_FAILED/);
  const stranger = place.rpc(await place.connect({ port: host.runtimePort, host: "127.0.0.1" }));
  for (const [method, params] of [
    ["ping", { message: "hello" }],
    ["session.list", {}],
    ["session.getMessages", { sessionId: session.sessionId }],
  ]) {
    await assert.rejects(stranger.sendRequest(method, params), { code: -32002, message: /AUTHENTICATION_FAILED/ });
  }
  assert.match(await answer(session, "run echo undisturbed"), /undisturbed/);
});
