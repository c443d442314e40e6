// The command line: flags, stdout, exit codes, and one owner per home.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { framesOf } from "./judge.mjs";
import { check, within } from "./support.mjs";

const STDIO = ["--headless", "--no-auto-update", "--stdio"];

/** A daemon on pipes that answered once, so that it is known to be up. */
async function onPipes(place, args = STDIO) {
  const daemon = place.daemon(args, { stdin: "pipe" });
  const connection = place.rpc(daemon.child.stdout, daemon.child.stdin);
  await within(connection.sendRequest("connect", {}), `an answer (stderr: ${daemon.stderr})`);
  return { daemon, connection };
}

check("an unknown flag ends the daemon with the flag's name on stderr", async (place) => {
  const daemon = place.daemon(["--nonexistent-flag-for-testing", ...STDIO], { stdin: "pipe" });
  const { code } = await within(daemon.ended, "the end");
  assert.ok(code > 0, `exit code ${code}`);
  assert.match(daemon.stderr, /--nonexistent-flag-for-testing/);
  assert.equal(daemon.stdout, "");
});

check("every flag that the SDK passes is taken", async (place) => {
  const flags = [
    ["--log-level", "warning"],
    ["--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"],
    ["--no-auto-login"],
    ["--session-idle-timeout", "600"],
    ["--remote"],
  ];
  const { connection } = await onPipes(place, ["--yolo", ...STDIO, ...flags.flat()]);
  assert.equal((await connection.sendRequest("ping", { message: "hello" })).message, "pong: hello");
});

check("--server is another word for --headless, on pipes and on TCP", async (place) => {
  const { connection } = await onPipes(place, ["--server", "--stdio", "--no-auto-update"]);
  assert.equal((await connection.sendRequest("ping", { message: "hello" })).message, "pong: hello");
  await onPipes(place, ["--server", ...STDIO]);
  const listening = place.daemon(["--server", "--port", "0", "--no-auto-update"]);
  await listening.announced(/listening on port (\d+)/);
});

check("with --stdio stdout carries frames and nothing else, however much is logged", async (place) => {
  // Private: the daemon's own log goes to stderr, not to a file.
  const { daemon, connection } = await onPipes(place, [...STDIO, "--private", "--log-level", "all", "--yolo"]);
  const sessionId = randomUUID();
  await connection.sendRequest("session.create", { sessionId, model: "offline", streaming: true });
  await connection.sendRequest("session.send", { sessionId, prompt: "run echo to stdout; echo to stderr >&2" });
  await connection.events.event("session.idle");
  daemon.child.stdin.end();
  await within(daemon.ended, "the daemon's end");
  const { messages, rest } = framesOf(Buffer.from(daemon.stdout));
  assert.equal(rest.toString(), "");
  assert.ok(messages.length > 10, `${messages.length} frames`);
  assert.notEqual(daemon.stderr, "", "--log-level all logs to stderr");
});

check("--yolo asks for no permission", async (place) => {
  const { connection } = await onPipes(place, ["--yolo", ...STDIO]);
  const sessionId = randomUUID();
  await connection.sendRequest("session.create", { sessionId, model: "offline", requestPermission: true });
  await connection.sendRequest("session.send", { sessionId, prompt: "run echo unasked" });
  await connection.events.event("session.idle");
  const complete = await connection.events.event("tool.execution_complete");
  assert.match(complete.data.result.content, /unasked/);
  assert.ok(!connection.events.types().includes("permission.requested"));
});

check("without --stdio a line on stdout names the port, which serves localhost", async (place) => {
  const daemon = place.daemon(["--headless", "--no-auto-update"], {
    env: { ...place.env, COPILOT_CONNECTION_TOKEN: "token" },
  });
  const port = Number(await daemon.announced(/listening on port (\d+)/i));
  const connection = place.rpc(await place.connect({ port, host: "localhost" }));
  assert.equal((await connection.sendRequest("connect", { token: "token" })).protocolVersion, 3);
});

check("--port takes the port that it is given", async (place) => {
  const first = place.daemon(["--headless", "--no-auto-update"]);
  const port = await first.announced(/listening on port (\d+)/i);
  await first.end();
  const second = place.daemon(["--headless", "--no-auto-update", "--port", port]);
  assert.equal(await second.announced(/listening on port (\d+)/i), port);
});

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  check(`${signal} ends a daemon on pipes, open session and all, with 0`, async (place) => {
    const { daemon, connection } = await onPipes(place);
    await connection.sendRequest("session.create", { sessionId: randomUUID(), model: "offline" });
    assert.deepEqual(await daemon.end(signal), { code: 0, signal: null });
  });
}

for (const [args, line] of [
  [["--headless"], /listening on port (\d+)/i],
  [["serve"], /listening on (\/.+)$/],
]) {
  check(`SIGTERM ends loopd ${args[0]} with 0`, async (place) => {
    const daemon = place.daemon(args);
    await daemon.announced(line);
    assert.deepEqual(await daemon.end(), { code: 0, signal: null });
  });
}

check("the end of stdin ends a daemon on pipes", async (place) => {
  const { daemon } = await onPipes(place);
  daemon.child.stdin.end();
  assert.deepEqual(await within(daemon.ended, "the daemon's end"), { code: 0, signal: null });
});

check("after runtime.shutdown the daemon is still there but serves nothing", async (place) => {
  const { daemon, connection } = await onPipes(place);
  const sessionId = randomUUID();
  await connection.sendRequest("session.create", { sessionId, model: "offline" });
  assert.equal(await connection.sendRequest("runtime.shutdown", {}), null);
  await assert.rejects(connection.sendRequest("session.getMessages", { sessionId }));
  assert.equal(daemon.child.exitCode, null);
  assert.deepEqual(await daemon.end(), { code: 0, signal: null });
});

check("a second private daemon on one home is refused and told who owns it", async (place) => {
  const { daemon: owner, connection } = await onPipes(place, [...STDIO, "--private"]);
  const second = place.daemon([...STDIO, "--private"], { stdin: "pipe" });
  const { code } = await within(second.ended, "the second daemon's end");
  assert.ok(code > 0, `exit code ${code}`);
  assert.match(second.stderr, new RegExp(`\\b${owner.child.pid}\\b`));
  assert.equal(second.stdout, "");
  assert.equal((await connection.sendRequest("ping", { message: "still here" })).message, "pong: still here");
});

check("a daemon whose home is deleted leaves and does not make it again", async (place) => {
  const daemon = place.daemon(["serve"]);
  await daemon.announced(/listening on (\/.+)$/);
  rmSync(place.home, { recursive: true });
  await within(daemon.ended, "the daemon to leave");
  assert.ok(!existsSync(place.home));
});

check("the process that a client started ends with 1 and one line when the daemon dies", async (place) => {
  const { daemon: relay } = await onPipes(place);
  const { pid } = await place.owner();
  process.kill(pid, "SIGKILL");
  assert.deepEqual(await within(relay.ended, "the relay's end"), { code: 1, signal: null });
  assert.match(relay.stderr, /^loopd: .+\n$/);
});
