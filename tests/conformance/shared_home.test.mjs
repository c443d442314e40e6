// Several SDK apps on one home at once: one daemon behind them, and what ends what.

import assert from "node:assert/strict";
import { approveAll } from "@github/copilot-sdk";
import { answer, check, watched, within } from "./support.mjs";

/** Waits until the daemon has noticed that a client is gone: then the session has nobody left. */
async function resumed(client, id, options) {
  return client.resumeSession(id, { onPermissionRequest: approveAll, ...options });
}

check("two apps on one home see each other's sessions and end apart", async (place) => {
  const [first, second] = [place.stdioClient(), place.stdioClient()];
  const one = await first.createSession({ model: "offline", onPermissionRequest: approveAll });
  const two = await second.createSession({ model: "offline", onPermissionRequest: approveAll });
  assert.match(await answer(one, "run echo from one"), /from one/);
  assert.match(await answer(two, "run echo from two"), /from two/);
  const listed = (await first.listSessions()).map(({ sessionId }) => sessionId);
  assert.ok(listed.includes(one.sessionId) && listed.includes(two.sessionId));
  assert.deepEqual(await first.stop(), []);
  assert.match(await answer(two, "run echo still here"), /still here/);
});

check("a session open in one app is prompted and closed from another", async (place) => {
  const [first, second] = [place.stdioClient(), place.stdioClient()];
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const one = await first.createSession(options);
  await answer(one, "hello");
  const idle = await events.event("session.idle");
  const two = await resumed(second, one.sessionId);
  assert.match(await answer(two, "run echo from the second"), /from the second/);
  await two.disconnect();
  // The first app hears of the other's turn on a connection of its own. Until the end of that turn
  // has come here, `sendAndWait` would take it for the end of the turn that it starts.
  await events.event("session.idle", (event) => event !== idle);
  assert.match(await answer(one, "run echo from the first"), /from the first/);
  await one.disconnect();
});

check("a turn goes on when its app is killed, and its result is there on resume", async (place) => {
  const [first, second] = [place.stdioClient(), place.stdioClient()];
  await second.start();
  const command = await place.endlessCommand();
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await first.createSession(options);
  await session.send({ prompt: `run ${command.text}` });
  await events.event("tool.execution_start");
  await events.event("permission.completed");
  const gone = new Promise((resolve) => first.cliProcess.on("close", resolve));
  first.cliProcess.kill("SIGKILL");
  await within(gone, "the relay's end");
  // The other app is not disturbed, and can find the session at work.
  const other = await second.createSession({ model: "offline", onPermissionRequest: approveAll });
  assert.match(await answer(other, "run echo undisturbed"), /undisturbed/);
  const seen = watched({ continuePendingWork: true });
  const again = await resumed(second, session.sessionId, seen.options);
  const resume = await seen.events.event("session.resume");
  assert.equal(resume.data.sessionWasActive, false);
  await again.abort();
  await command.ended();
  await seen.events.event("session.idle");
  await first.forceStop();
});

check("a default resume closes what an app left behind, without a model call", async (place) => {
  const [first, second] = [place.stdioClient(), place.stdioClient()];
  await second.start();
  const asked = watched({ onPermissionRequest: () => ({ kind: "no-result" }) });
  const session = await first.createSession(asked.options);
  await session.send({ prompt: "run echo never" });
  await asked.events.event("permission.requested");
  const gone = new Promise((resolve) => first.cliProcess.on("close", resolve));
  first.cliProcess.kill("SIGKILL");
  await within(gone, "the relay's end");
  const seen = watched();
  const again = await resumed(second, session.sessionId, seen.options);
  const types = (await again.getEvents()).map(({ type }) => type);
  assert.ok(types.includes("permission.completed") && types.includes("tool.execution_complete"), types.join(", "));
  assert.equal(types.filter((type) => type === "assistant.turn_start").length, 1);
  assert.match(await answer(again, "run echo onwards"), /onwards/);
  await first.forceStop();
});
