// The smaller methods through the SDK's typed interface: each is called, and the judge reads the reply.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { approveAll } from "@github/copilot-sdk";
import { answer, check, watched } from "./support.mjs";

async function open(place, options = {}) {
  const client = place.stdioClient();
  const { events, options: all } = watched({ onPermissionRequest: approveAll, ...options });
  return { client, events, session: await client.createSession(all) };
}

check("a session has a name, which the user's choice outranks", async (place) => {
  const { session, events } = await open(place);
  await session.rpc.name.set({ name: "chosen" });
  assert.equal((await session.rpc.name.get()).name, "chosen");
  assert.equal((await session.rpc.name.setAuto({ summary: "derived" })).applied, false);
  assert.equal((await session.rpc.name.get()).name, "chosen");
  await events.event("session.title_changed", ({ data }) => data.title === "chosen");
});

check("a session's mode can be read and set", async (place) => {
  const { session, events } = await open(place);
  assert.equal(await session.rpc.mode.get(), "interactive");
  await session.rpc.mode.set({ mode: "plan" });
  assert.equal(await session.rpc.mode.get(), "plan");
  const changed = await events.event("session.mode_changed");
  assert.deepEqual(changed.data, { previousMode: "interactive", newMode: "plan" });
});

check("a session's model can be read, listed and switched", async (place) => {
  const { session } = await open(place);
  assert.equal((await session.rpc.model.getCurrent()).modelId, "offline");
  assert.ok((await session.rpc.model.list()).list.some(({ id }) => id === "offline"));
  assert.equal((await session.rpc.model.switchTo({ modelId: "offline" })).modelId, "offline");
});

check("a session's plan can be written, read and deleted", async (place) => {
  const { session, events } = await open(place);
  assert.equal((await session.rpc.plan.read()).exists, false);
  await session.rpc.plan.update({ content: "# Plan\n" });
  const plan = await session.rpc.plan.read();
  assert.deepEqual([plan.exists, plan.content], [true, "# Plan\n"]);
  await session.rpc.plan.delete();
  assert.equal((await session.rpc.plan.read()).exists, false);
  const operations = events.items.filter(({ type }) => type === "session.plan_changed").map(({ data }) => data.operation);
  assert.deepEqual(operations, ["create", "delete"]);
});

check("the event log is read from a cursor on", async (place) => {
  const { session } = await open(place);
  const { cursor } = await session.rpc.eventLog.tail();
  await answer(session, "hello");
  const page = await session.rpc.eventLog.read({ cursor, max: 1000 });
  assert.equal(page.hasMore, false);
  assert.equal(page.cursorStatus, "ok");
  assert.ok(page.events.some(({ type }) => type === "user.message"));
  assert.ok(!page.events.some(({ type }) => type === "session.start"));
  const rest = await session.rpc.eventLog.read({ cursor: page.cursor });
  assert.deepEqual(rest.events, []);
  const { handle } = await session.rpc.eventLog.registerInterest({ eventType: "mcp.oauth_required" });
  assert.equal((await session.rpc.eventLog.releaseInterest({ handle })).success, true);
});

check("messages that wait can be seen and taken back", async (place) => {
  const { session, events } = await open(place);
  const { text } = await place.endlessCommand();
  await session.send({ prompt: `run ${text}` });
  await events.event("tool.execution_partial_result");
  await session.send({ prompt: "second" });
  await session.send({ prompt: "third" });
  const waiting = async () => (await session.rpc.queue.pendingItems()).items.map(({ displayText }) => displayText);
  assert.deepEqual(await waiting(), ["second", "third"]);
  assert.equal((await session.rpc.queue.removeMostRecent()).removed, true);
  assert.deepEqual(await waiting(), ["second"]);
  await session.rpc.queue.clear();
  assert.deepEqual(await waiting(), []);
  assert.equal((await session.rpc.queue.removeMostRecent()).removed, false);
  await session.abort();
});

check("a client's commands are listed", async (place) => {
  const { session } = await open(place, {
    commands: [{ name: "deploy", description: "Deploys it.", handler: () => {} }],
  });
  const { commands } = await session.rpc.commands.list({ includeClientCommands: true });
  const mine = commands.find(({ name }) => name === "deploy");
  assert.deepEqual([mine?.description, mine?.kind], ["Deploys it.", "client"]);
});

check("custom agents are listed, selected and left", async (place) => {
  const { session } = await open(place, {
    customAgents: [{ name: "reviewer", displayName: "Reviewer", description: "Reads code.", prompt: "Review." }],
  });
  assert.ok((await session.rpc.agent.list()).agents.some(({ name }) => name === "reviewer"));
  assert.equal((await session.rpc.agent.getCurrent()).agent, null);
  assert.equal((await session.rpc.agent.select({ name: "reviewer" })).agent.name, "reviewer");
  assert.equal((await session.rpc.agent.getCurrent()).agent.name, "reviewer");
  await session.rpc.agent.deselect();
  assert.equal((await session.rpc.agent.getCurrent()).agent, null);
});

check("permission policy is configured and obeyed", async (place) => {
  const { session, events } = await open(place, { onPermissionRequest: () => ({ kind: "reject" }) });
  const { permissions } = session.rpc;
  assert.deepEqual((await permissions.pendingRequests()).items, []);
  assert.equal((await permissions.setApproveAll({ enabled: true })).success, true);
  assert.match(await answer(session, "run echo unasked"), /unasked/);
  assert.ok(!events.types().includes("permission.requested"));
  assert.equal((await permissions.setApproveAll({ enabled: false })).success, true);
  await answer(session, "run echo asked");
  await events.event("permission.requested");
  assert.equal((await permissions.resetSessionApprovals({})).success, true);
  assert.equal((await permissions.configure({ approveAllReadPermissionRequests: true })).success, true);
  assert.equal((await permissions.modifyRules({ scope: "session", removeAll: true })).success, true);
  assert.equal((await permissions.setRequired({ required: true })).success, true);
  assert.equal((await permissions.notifyPromptShown({ message: "shown" })).success, true);
  assert.equal((await permissions.urls.setUnrestrictedMode({ enabled: false })).success, true);
});

check("permission paths, locations and trusted folders can be asked for and added", async (place) => {
  const { paths, locations, folderTrust } = (await open(place)).session.rpc.permissions;
  const [inside, outside] = [join(place.work, "a.txt"), join(place.root, "elsewhere")];
  mkdirSync(outside);
  assert.equal((await paths.list()).primary, place.work);
  assert.equal((await paths.isPathWithinWorkspace({ path: inside })).allowed, true);
  assert.equal((await paths.isPathWithinAllowedDirectories({ path: outside })).allowed, false);
  assert.equal((await paths.add({ path: outside })).success, true);
  assert.equal((await paths.isPathWithinAllowedDirectories({ path: outside })).allowed, true);
  assert.equal((await paths.updatePrimary({ path: place.work })).success, true);
  const location = await locations.resolve({ workingDirectory: place.work });
  const approval = { kind: "commands", commandIdentifiers: ["echo"] };
  assert.equal((await locations.addToolApproval({ locationKey: location.locationKey, approval })).success, true);
  await locations.apply({ workingDirectory: place.work });
  assert.equal((await folderTrust.isTrusted({ path: place.work })).trusted, false);
  assert.equal((await folderTrust.addTrusted({ path: place.work })).success, true);
  assert.equal((await folderTrust.isTrusted({ path: place.work })).trusted, true);
});

check("an answer to a question that is not open is not taken", async (place) => {
  const { rpc } = (await open(place)).session;
  const requestId = "nobody asked";
  for (const taken of [
    rpc.permissions.handlePendingPermissionRequest({ requestId, result: { kind: "approve-once" } }),
    rpc.tools.handlePendingToolCall({ requestId, result: "late" }),
    rpc.commands.respondToQueuedCommand({ requestId, result: { handled: false } }),
    rpc.ui.handlePendingElicitation({ requestId, result: { action: "cancel" } }),
    rpc.ui.handlePendingUserInput({ requestId, response: { answer: "late", wasFreeform: true } }),
  ]) {
    assert.equal((await taken).success, false);
  }
  // A report of a command that nobody waits for any more is heard all the same.
  assert.equal((await rpc.commands.handlePendingCommand({ requestId })).success, true);
});

check("a form of the client's is filled in by its own handler", async (place) => {
  const { session, events } = await open(place, {
    onElicitationRequest: ({ message }) =>
      message === "Deploy?" ? { action: "accept", content: { confirmed: true } } : { action: "decline" },
  });
  assert.equal(session.capabilities.ui?.elicitation, true);
  assert.equal(await session.ui.confirm("Deploy?"), true);
  assert.equal(await session.ui.confirm("Delete?"), false);
  await events.event("elicitation.completed");
});

check("a note is kept in the log unless it is ephemeral", async (place) => {
  const { session, events } = await open(place);
  await session.log("kept");
  await session.log("careful", { level: "warning" });
  await session.log("passing", { ephemeral: true });
  await events.event("session.info", ({ data }) => data.message === "passing");
  const kept = (await session.getEvents()).filter(({ type }) => /^session\.(info|warning)$/.test(type));
  assert.deepEqual(kept.map(({ data }) => data.message), ["kept", "careful"]);
});

check("a fork has the history up to its point and a life of its own", async (place) => {
  const { client, session } = await open(place);
  await answer(session, "hello");
  const { sessionId } = await client.rpc.sessions.fork({ sessionId: session.sessionId, name: "branch" });
  const fork = await client.resumeSession(sessionId, watched({ onPermissionRequest: approveAll }).options);
  await answer(fork, "run echo in the fork");
  const said = async (of) => (await of.getEvents()).filter(({ type }) => type === "user.message").map(({ data }) => data.content);
  assert.deepEqual(await said(session), ["hello"]);
  assert.deepEqual(await said(fork), ["hello", "run echo in the fork"]);
});

check("a suspended session is resumed with its history", async (place) => {
  const { client, session } = await open(place);
  await answer(session, "hello");
  await session.rpc.suspend();
  const resumed = await client.resumeSession(session.sessionId, watched({ onPermissionRequest: approveAll }).options);
  assert.ok((await resumed.getEvents()).some(({ data }) => data.content === "hello"));
  assert.match(await answer(resumed, "run echo awake"), /awake/);
});
