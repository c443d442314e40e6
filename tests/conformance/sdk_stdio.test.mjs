// The official SDK over the daemon's pipes: one client, one daemon, the built-in model `offline`.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { approveAll, defineTool } from "@github/copilot-sdk";
import { answer, check, watched } from "./support.mjs";

/** A tool of the client's, under a name that the offline model calls for `find *…`. */
function clientGlob(handler) {
  return defineTool("glob", {
    description: "Finds files by pattern.",
    parameters: { type: "object", properties: { pattern: { type: "string" } }, required: ["pattern"] },
    overridesBuiltInTool: true,
    handler,
  });
}

check("the client starts the daemon, which tells what it is", async (place) => {
  const client = place.stdioClient();
  await client.start();
  const pong = await client.ping("hello");
  assert.equal(pong.message, "pong: hello");
  assert.equal(pong.protocolVersion, 3);
  assert.ok(!Number.isNaN(Date.parse(pong.timestamp)), pong.timestamp);
  const status = await client.getStatus();
  assert.equal(status.protocolVersion, 3);
  assert.match(status.version, /^\d+\.\d+\.\d+/);
  assert.equal((await client.getAuthStatus()).isAuthenticated, false);
  const models = await client.listModels();
  assert.deepEqual(models.map(({ id }) => id), ["offline"]);
  assert.deepEqual(await client.stop(), []);
});

check("a tool runs once its permission is given", async (place) => {
  const asked = [];
  const { events, options } = watched({
    onPermissionRequest: (request) => {
      asked.push(request);
      return { kind: "approve-once" };
    },
  });
  const session = await place.stdioClient().createSession(options);
  assert.match(await answer(session, "run echo $((6 * 7)) | tee made.txt"), /42\n<exited with exit code 0>/);
  assert.equal(readFileSync(join(place.work, "made.txt"), "utf8"), "42\n");
  assert.deepEqual(asked.map(({ kind, fullCommandText }) => [kind, fullCommandText]), [
    ["shell", "echo $((6 * 7)) | tee made.txt"],
  ]);
  const complete = await events.event("tool.execution_complete");
  assert.equal(complete.data.success, true);
  assert.deepEqual((await events.event("permission.completed")).data.result, { kind: "approved" });
});

check("a streamed answer comes in pieces that add up to the message", async (place) => {
  const { events, options } = watched({ streaming: true, onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  const text = await answer(session, "run echo one two three");
  const message = events.items.findLast(({ type }) => type === "assistant.message");
  const pieces = events.items.filter(
    ({ type, data }) => type === "assistant.message_delta" && data.messageId === message.data.messageId,
  );
  assert.ok(pieces.length > 1, `${pieces.length} pieces`);
  assert.equal(pieces.map(({ data }) => data.deltaContent).join(""), text);
});

check("a session that does not stream sends no pieces", async (place) => {
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  await answer(session, "hello");
  assert.ok(!events.types().includes("assistant.message_delta"));
});

check("a tool of the client's is called with its arguments and answers the model", async (place) => {
  const calls = [];
  const { events, options } = watched({
    onPermissionRequest: approveAll,
    tools: [clientGlob((args, { toolName, sessionId }) => (calls.push({ args, toolName, sessionId }), "seen by the client"))],
  });
  const session = await place.stdioClient().createSession(options);
  assert.match(await answer(session, "find *.secret"), /seen by the client/);
  assert.deepEqual(calls, [{ args: { pattern: "*.secret" }, toolName: "glob", sessionId: session.sessionId }]);
  const requested = await events.event("external_tool.requested");
  await events.event("external_tool.completed", ({ data }) => data.requestId === requested.data.requestId);
});

check("what a client's tool throws does not reach the model", async (place) => {
  const { events, options } = watched({
    onPermissionRequest: approveAll,
    tools: [
      clientGlob(() => {
        throw new Error("the password is swordfish");
      }),
    ],
  });
  const session = await place.stdioClient().createSession(options);
  const text = await answer(session, "find *.secret");
  assert.match(text, /Failed to execute `glob` tool/);
  assert.doesNotMatch(text, /swordfish/);
  assert.equal((await events.event("tool.execution_complete")).data.success, false);
});

check("nothing happens when permission is denied", async (place) => {
  const { events, options } = watched({ onPermissionRequest: () => ({ kind: "reject" }) });
  const session = await place.stdioClient().createSession(options);
  await answer(session, "write made.txt too bold");
  assert.ok(!existsSync(join(place.work, "made.txt")));
  assert.equal((await events.event("permission.completed")).data.result.kind, "denied-interactively-by-user");
  assert.equal((await events.event("tool.execution_complete")).data.success, false);
});

check("a question reaches the client's handler and its answer the model", async (place) => {
  const questions = [];
  const { events, options } = watched({
    onPermissionRequest: approveAll,
    onUserInputRequest: (request) => (questions.push(request.question), { answer: "green", wasFreeform: true }),
  });
  const session = await place.stdioClient().createSession(options);
  assert.match(await answer(session, "ask Which colour?"), /green/);
  assert.deepEqual(questions, ["Which colour?"]);
  await events.event("user_input.completed");
});

check("abort stops a running tool and leaves the session usable", async (place) => {
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  const command = await place.endlessCommand();
  await session.send({ prompt: `run ${command.text}` });
  await events.event("tool.execution_partial_result");
  await session.abort();
  assert.equal((await events.event("abort")).data.reason, "user_initiated");
  await events.event("session.idle", ({ data }) => data.aborted === true);
  await command.ended();
  assert.match(await answer(session, "run echo again"), /again/);
});

check("a disconnected session is resumed by the same client with its history", async (place) => {
  const client = place.stdioClient();
  const first = await client.createSession(watched({ onPermissionRequest: approveAll }).options);
  await answer(first, "run echo before");
  const before = await first.getEvents();
  await first.disconnect();
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const second = await client.resumeSession(first.sessionId, options);
  const after = await second.getEvents();
  assert.deepEqual(after.slice(0, before.length), before);
  await events.event("session.resume");
  assert.match(await answer(second, "run echo after"), /after/);
});

check("sessions are listed, described and deleted", async (place) => {
  const client = place.stdioClient();
  const { options } = watched({ onPermissionRequest: approveAll });
  const kept = await client.createSession({ ...options });
  const dropped = await client.createSession({ ...options });
  await answer(dropped, "hello to one");
  await answer(kept, "hello to the other");
  const ids = async () => (await client.listSessions()).map(({ sessionId }) => sessionId).sort();
  assert.deepEqual(await ids(), [kept.sessionId, dropped.sessionId].sort());
  assert.equal(await client.getLastSessionId(), kept.sessionId);
  const metadata = await client.getSessionMetadata(kept.sessionId);
  assert.equal(metadata.sessionId, kept.sessionId);
  assert.equal(metadata.context.workingDirectory, place.work);
  assert.ok(metadata.modifiedTime >= metadata.startTime);
  await dropped.disconnect();
  await client.deleteSession(dropped.sessionId);
  assert.deepEqual(await ids(), [kept.sessionId]);
  await assert.rejects(client.resumeSession(dropped.sessionId, options), /Session not found/i);
  await assert.rejects(client.deleteSession(dropped.sessionId));
});

check("events come in the order of their chain, and the kept ones come again", async (place) => {
  const { events, options } = watched({ streaming: true, onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  await answer(session, "run echo one then run echo two");
  const kept = await session.getEvents();
  assert.deepEqual(kept, events.items.filter(({ ephemeral }) => !ephemeral));
  assert.deepEqual(kept.map(({ parentId }) => parentId), [null, ...kept.slice(0, -1).map(({ id }) => id)]);
  const early = events.items.filter(({ parentId }, position) => {
    const parent = events.items.findIndex(({ id }) => id === parentId);
    return parentId !== null && (parent < 0 || parent >= position);
  });
  assert.deepEqual(early.map(({ type }) => type), [], "sent before the event that they follow");
  assert.equal(new Set(events.items.map(({ id }) => id)).size, events.items.length);
  assert.equal(events.types()[0], "session.start");
  assert.equal(events.types().at(-1), "session.idle");
});

check("a session outlives its daemon", async (place) => {
  writeFileSync(join(place.work, "note.txt"), "remember me\n");
  const first = place.stdioClient();
  const { options } = watched({ onPermissionRequest: approveAll });
  const session = await first.createSession(options);
  await answer(session, "read note.txt");
  const before = await session.getEvents();
  assert.deepEqual(await first.stop(), []);
  await place.endOwner();

  const second = place.stdioClient();
  const resumed = await second.resumeSession(session.sessionId, watched({ onPermissionRequest: approveAll }).options);
  const after = await resumed.getEvents();
  assert.deepEqual(after.slice(0, before.length), before);
  assert.deepEqual(
    after.slice(before.length).map(({ type }) => type),
    ["session.shutdown", "session.resume"],
  );
  assert.match(await answer(resumed, "read note.txt"), /remember me/);
});

check("a daemon killed in the middle of a tool call leaves a session that can go on", async (place) => {
  const first = place.stdioClient();
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await first.createSession(options);
  const prompt = `run ${(await place.endlessCommand()).text}`;
  await session.send({ prompt });
  await events.event("tool.execution_partial_result");
  await place.crash(first);

  const second = place.stdioClient();
  const again = watched({ onPermissionRequest: approveAll });
  const resumed = await second.resumeSession(session.sessionId, again.options);
  const kept = await resumed.getEvents();
  assert.deepEqual(kept.filter(({ type }) => type === "user.message").map(({ data }) => data.content), [prompt]);
  assert.match(await answer(resumed, "run echo again"), /again/);
  const seen = events.items.filter(({ ephemeral }) => !ephemeral);
  assert.deepEqual(kept.slice(0, seen.length), seen, "nothing that was published is lost");
});
