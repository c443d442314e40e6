// The judge itself: it must find what is wrong and let pass what is right.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { framesOf, Judge, judgeTraffic } from "./judge.mjs";

const ID = "01a1e262-dc68-67c5-fb39-9267eb08ef5c";
const reply = (id, result) => ({ jsonrpc: "2.0", id, result });
const event = (changes) => ({
  jsonrpc: "2.0",
  method: "session.event",
  params: {
    sessionId: ID,
    event: { id: ID, timestamp: "2026-01-02T03:04:05.678Z", parentId: null, type: "abort", data: { reason: "user_initiated" }, ...changes },
  },
});

/** Shows a judge requests by id and messages of the daemon's, and returns its findings as one text. */
function findings(requests, messages) {
  const judge = new Judge();
  for (const [id, method] of Object.entries(requests)) judge.sent({ jsonrpc: "2.0", id: Number(id), method });
  for (const message of messages) judge.received(message);
  assert.equal(judge.judged, messages.length);
  return judge.violations.join("\n");
}

const pong = { message: "pong: x", timestamp: "2026-01-02T03:04:05.678Z", protocolVersion: 3 };

for (const [what, requests, messages, expected] of [
  ["a sound event", {}, [event({})], /^$/],
  ["a sound reply", { 1: "ping" }, [reply(1, pong)], /^$/],
  ["a sound list of events", { 1: "session.getMessages" }, [reply(1, { events: [event({}).params.event] })], /^$/],
  ["an error reply", { 1: "ping" }, [{ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "no" } }], /^$/],
  ["a reply that its schema forgot", { 1: "session.agent.getCurrent" }, [reply(1, { agent: null })], /^$/],
  ["another reply of that method", { 1: "session.agent.getCurrent" }, [reply(1, {})], /getCurrent: .*agent/],
  ["an event of a kind that the schema does not know", {}, [event({ type: "novelty", data: 5 })], /^$/],
  ["a member that is not of the event", {}, [event({ seq: 7 })], /session\.event abort: .*additional properties \(seq\)/],
  ["a value of the wrong kind", {}, [event({ data: { reason: 5 } })], /session\.event abort: \/data\/reason must/],
  ["an id that is no UUID", {}, [event({ id: "7" })], /session\.event abort: \/id must match format/],
  ["an event of the daemon's own", {}, [event({ type: "loopd.queue" })], /keeps to itself/],
  ["an event in a list", { 1: "session.getMessages" }, [reply(1, { events: [event({ id: "7" }).params.event] })], /session\.getMessages abort: \/id/],
  ["a reply without a required member", { 1: "ping" }, [reply(1, { message: "pong: x" })], /reply to ping: .*timestamp/],
  ["a reply that should be null", { 1: "runtime.shutdown" }, [reply(1, {})], /reply to runtime\.shutdown: .*null/],
  ["a second reply", { 1: "ping" }, [reply(1, pong), reply(1, pong)], /is of no open request/],
  ["a reply without result", { 1: "ping" }, [{ jsonrpc: "2.0", id: 1 }], /result is missing/],
  ["an error without code", { 1: "ping" }, [{ jsonrpc: "2.0", id: 1, error: { message: "no" } }], /error is malformed/],
  ["a frame of another protocol", {}, [{ ...event({}), jsonrpc: "1.0" }], /jsonrpc must be 2\.0/],
  ["a server request that the schema refuses", {}, [{ jsonrpc: "2.0", id: 1, method: "hooks.invoke", params: {} }], /hooks\.invoke: .*required/],
]) {
  test(`the judge on ${what}`, () => assert.match(findings(requests, messages), expected));
}

test("frames are cut at their length in bytes, and the rest is told", () => {
  const body = JSON.stringify({ text: "grün" });
  const frame = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const { messages, rest } = framesOf(Buffer.from(`${frame}${frame}oops`));
  assert.deepEqual(messages, [{ text: "grün" }, { text: "grün" }]);
  assert.equal(rest.toString(), "oops");
});

test("what a tap wrote down is judged, and a stray line on stdout is found", () => {
  const folder = mkdtempSync(join(tmpdir(), "loopd-judge-"));
  try {
    const frame = (message) => `Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`;
    writeFileSync(join(folder, "1-0.in"), frame(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })));
    writeFileSync(join(folder, "1-0.out"), `${frame(JSON.stringify(reply(1, {})))}a stray line\n`);
    const { judged, violations } = judgeTraffic(folder);
    assert.equal(judged, 1);
    assert.match(violations.join("\n"), /reply to ping.*\n(.*\n)*stdout: carries what is no frame: a stray line/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
