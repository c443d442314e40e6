// The judge: holds what the daemon sent against the public schemas of the protocol.
//
// One judge per connection. It is shown each message of either direction and keeps a list of
// violations; it knows no method or event by itself and never talks to the daemon.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import Ajv from "ajv/dist/2019.js";
import addFormats from "ajv-formats";

const SCHEMAS = join(
  dirname(createRequire(import.meta.url).resolve("@github/copilot-sdk-linux-x64/package.json")),
  "schemas",
);
const LONGEST_LIST = 8;
const LONGEST_VALUE = 400;

/** Replies that the protocol's own runtime gives although its schema refuses them. */
const ERRATA = new Map([
  ["session.agent.getCurrent", { agent: null }],
  ["session.agent.deselect", {}],
]);

const TEXT = { type: "string" };

/** Members that the newest clients read and that this version's schemas do not have yet, by definition. */
const AHEAD = {
  ErrorData: { originatingMessageId: TEXT },
  QueuePendingItems: { source: TEXT },
  QueuePendingItemsResult: { withdrawableTurnMessageId: TEXT },
};

const CLIENT = { type: "object", properties: { id: TEXT, name: TEXT }, required: ["id"], additionalProperties: false };
const MESSAGES = { type: "array", items: TEXT };

const COUNT = { type: "integer", minimum: 0 };
const AGENT = { agentId: TEXT, sessionId: TEXT };
const RUN = { sessionId: TEXT, cancelled: { type: "boolean" }, totalToolCalls: COUNT, totalTokens: COUNT, durationMs: COUNT };

/** Members of our own: who did something, to which messages, and what a run of an agent came to. Clients that do not know them ignore them. */
const OWN = {
  AbortData: { abortedBy: CLIENT, removedMessageIds: MESSAGES },
  AbortResult: { removedMessageIds: MESSAGES },
  InterruptMainTurnResult: { removedMessageIds: MESSAGES, runningMessageId: TEXT, runningBy: CLIENT },
  QueuePendingItems: { sentBy: CLIENT },
  SubagentStartedData: AGENT,
  SubagentCompletedData: { ...AGENT, status: TEXT },
  SubagentFailedData: { ...AGENT, status: TEXT },
  SystemNotificationAgentCompleted: RUN,
  SystemNotificationAgentIdle: { ...RUN, status: TEXT },
  SystemNotificationShellCompleted: { agentId: TEXT },
  SystemNotificationShellDetachedCompleted: { agentId: TEXT },
  Skill: { unavailable: TEXT },
  SkillInvokedData: { folder: TEXT },
  SkillsLoadedSkill: { unavailable: TEXT, pluginName: TEXT },
  CommandsHandlePendingCommandResult: { waitedFor: { type: "boolean" } },
};

const ajv = new Ajv.default({ strict: false, allErrors: true });
addFormats.default(ajv);

function load(file) {
  const { $schema, $ref, ...schema } = JSON.parse(readFileSync(join(SCHEMAS, file), "utf8"));
  for (const [name, members] of [...Object.entries(AHEAD), ...Object.entries(OWN)]) {
    const definition = schema.definitions[name];
    if (definition) Object.assign(definition.properties, members);
  }
  ajv.addSchema({ ...schema, $id: file });
  return schema;
}

const events = load("session-events.schema.json");
const api = load("api.schema.json");

/** Where each method's definition is: name → JSON pointer. */
function methods(node, pointer, found = new Map()) {
  if (typeof node.rpcMethod === "string") return found.set(node.rpcMethod, { pointer, node });
  for (const [key, child] of Object.entries(node)) {
    if (child !== null && typeof child === "object") methods(child, `${pointer}/${key}`, found);
  }
  return found;
}

const offered = new Map([...methods(api.server, "/server"), ...methods(api.session, "/session")]);
const asked = new Map([
  ...methods(api.clientSession, "/clientSession"),
  ...methods(api.clientGlobal, "/clientGlobal"),
]);
const eventNames = new Map(
  events.definitions.SessionEvent.anyOf.map(({ $ref }) => {
    const name = $ref.split("/").pop();
    return [events.definitions[name].properties.type.const, name];
  }),
);

const compiled = new Map();

function problems(reference, value) {
  if (!compiled.has(reference)) compiled.set(reference, ajv.compile({ $ref: reference }));
  const validate = compiled.get(reference);
  if (validate(value)) return [];
  const list = validate.errors.map(({ instancePath, message, params }) => {
    const detail = Object.values(params).filter((item) => typeof item === "string");
    return `${instancePath || "/"} ${message}${detail.length > 0 ? ` (${detail.join(", ")})` : ""}`;
  });
  const more = list.length - LONGEST_LIST;
  return more > 0 ? [...list.slice(0, LONGEST_LIST), `… and ${more} more`] : list;
}

/** The definition of a method's params or result, if it has one. */
function part(table, method, name) {
  const definition = table.get(method);
  return definition?.node[name] ? `api.schema.json#${definition.pointer}/${name}` : undefined;
}

export class Judge {
  #waiting = new Map();
  #violations = new Set();
  #sawFrames = 0;

  /** How many messages of the daemon were judged. */
  get judged() {
    return this.#sawFrames;
  }

  get violations() {
    return [...this.#violations];
  }

  /** Takes note of a message that a client sent. */
  sent(message) {
    if (message.method !== undefined && message.id !== undefined) this.#waiting.set(message.id, message.method);
  }

  /** Judges a message that the daemon sent. */
  received(message) {
    this.#sawFrames += 1;
    if (message.jsonrpc !== "2.0") this.#blame("a frame", ["/jsonrpc must be 2.0"], message);
    if (message.method === undefined) this.#reply(message);
    else if (message.method === "session.event") this.#event(message.params?.event, "session.event");
    else this.#check(message.method, part(asked, message.method, "params"), message.params);
  }

  /** Notes something that is wrong before it is a message. */
  blame(what, why) {
    this.#violations.add(`${what}: ${why}`);
  }

  #reply(message) {
    const method = this.#waiting.get(message.id);
    // An id of null answers what could not be read at all.
    if (method === undefined && message.id !== null) {
      this.#blame("a reply", [`/id ${message.id} is of no open request`], message);
    }
    this.#waiting.delete(message.id);
    if (message.error !== undefined) {
      const { code, message: text } = message.error;
      if (!Number.isInteger(code) || typeof text !== "string") this.#blame(`error of ${method}`, ["/error is malformed"], message);
      return;
    }
    if (!("result" in message)) this.#blame(`reply to ${method}`, ["/result is missing"], message);
    const events = Array.isArray(message.result?.events) ? message.result.events : [];
    const sound = events.map((event) => this.#event(event, method)).every(Boolean);
    // A list with a bad event is not judged again: as a whole it fails 149 alternatives at once.
    if (!sound || isDeepStrictEqual(ERRATA.get(method), message.result)) return;
    this.#check(`reply to ${method}`, part(offered, method, "result"), message.result);
  }

  #event(event, where) {
    const name = eventNames.get(event?.type);
    if (name) return this.#check(`${where} ${event.type}`, `session-events.schema.json#/definitions/${name}`, event);
    const own = String(event?.type).startsWith("loopd.");
    return this.#blame(where, own ? ["/type is of an event that the daemon keeps to itself"] : [], event);
  }

  #check(what, reference, value) {
    return this.#blame(what, reference ? problems(reference, value) : [], value);
  }

  /** Notes what is wrong with a value; true when nothing is. */
  #blame(what, list, value) {
    const shown = JSON.stringify(value)?.slice(0, LONGEST_VALUE);
    if (list.length > 0) this.blame(what, `${list.join("; ")}\n      in ${shown}`);
    return list.length === 0;
  }
}

/** Cuts bytes into the messages of `Content-Length` frames; the rest is no whole frame. */
export function framesOf(bytes) {
  const messages = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf("\r\n\r\n");
    const length = /^Content-Length: (\d+)$/.exec(rest.subarray(0, Math.max(end, 0)).toString("latin1"));
    if (!length || rest.length < end + 4 + Number(length[1])) return { messages, rest };
    const next = end + 4 + Number(length[1]);
    messages.push(JSON.parse(rest.subarray(end + 4, next).toString("utf8")));
    rest = rest.subarray(next);
  }
}

/** Judges what a tap wrote down, one list for all connections below a folder. */
export function judgeTraffic(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith(".out"));
  const judges = names.map((name) => {
    const judge = new Judge();
    const read = (end) => framesOf(readFileSync(join(folder, name.replace(/out$/, end))));
    for (const message of read("in").messages) judge.sent(message);
    const { messages, rest } = read("out");
    for (const message of messages) judge.received(message);
    // A killed daemon may leave half a frame; anything else is not a frame at all.
    if (rest.length > 0 && !rest.toString().startsWith("Content-Length: ")) {
      judge.blame("stdout", `carries what is no frame: ${rest.subarray(0, LONGEST_VALUE)}`);
    }
    return judge;
  });
  return {
    judged: judges.reduce((sum, judge) => sum + judge.judged, 0),
    violations: judges.flatMap((judge) => judge.violations),
  };
}
