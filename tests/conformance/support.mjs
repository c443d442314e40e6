// What every conformance test stands on: a fresh place, clients and daemons in it, waiting for facts.
//
// `check` runs one test in a place of its own, ends all that was started there, and then asks the
// judge about every frame that the daemon sent. Nothing here waits for time to pass: `within` only
// bounds the wait for something that has to happen.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { Judge, judgeTraffic } from "./judge.mjs";

const TAP = fileURLToPath(new URL("tap.js", import.meta.url));
const PATIENCE = 20_000;

/** Waits for a promise, but not forever. */
export async function within(promise, what, patience = PATIENCE) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${patience} ms in vain for ${what}`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A list of what happened so far that can be waited on. */
export class Seen {
  items = [];
  #waiting = new Set();

  add = (item) => {
    this.items.push(item);
    for (const wake of this.#waiting) wake();
  };

  /** Resolves to the first item, old or new, that fits. */
  first(fits, what) {
    const arrived = new Promise((resolve) => {
      const look = () => {
        const found = this.items.find(fits);
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
    return within(arrived, what).catch((error) => {
      error.message += `; seen: ${this.items.map((item) => item?.type ?? item).join(", ")}`;
      throw error;
    });
  }

  /** Resolves to the first event of a type, old or new. */
  event(type, fits = () => true) {
    return this.first((event) => event.type === type && fits(event), type);
  }

  types() {
    return this.items.map((event) => event.type);
  }
}

/** A daemon started without the SDK. */
export class Daemon {
  lines = new Seen();
  stdout = "";
  stderr = "";

  constructor(args, { cwd, env, stdin = "ignore" }) {
    this.child = spawn(process.env.LOOPD_BIN, args, { cwd, env, stdio: [stdin, "pipe", "pipe"] });
    this.child.stderr.on("data", (text) => (this.stderr += text));
    let line = "";
    this.child.stdout.on("data", (bytes) => {
      this.stdout += bytes;
      const parts = (line + bytes).split("\n");
      line = parts.pop();
      parts.forEach(this.lines.add);
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.on("error", reject);
      this.child.on("close", (code, signal) => resolve({ code, signal }));
    });
  }

  /** The part of the first line of stdout that a pattern captures. */
  async announced(pattern) {
    const failed = this.ended.then(({ code }) => {
      throw new Error(`loopd ended with ${code} before it said ${pattern}: ${this.stderr}`);
    });
    failed.catch(() => {});
    const line = await Promise.race([this.lines.first((line) => pattern.test(line), `a line like ${pattern}`), failed]);
    return pattern.exec(line)[1];
  }

  async end(signal = "SIGTERM") {
    this.child.kill(signal);
    return within(this.ended, "the daemon's end");
  }
}

/** One test's own folder, environment and processes. */
class Place {
  root = realpathSync(mkdtempSync(join(tmpdir(), "loopd-")));
  home = join(this.root, "home");
  work = join(this.root, "work");
  #traffic = join(this.root, "traffic");
  #clients = [];
  #daemons = [];
  #judges = [];
  #sockets = [];

  constructor() {
    for (const folder of [this.home, this.work, this.#traffic]) mkdirSync(folder, { mode: 0o700 });
  }

  /** The whole environment of a daemon that is started without the SDK. */
  get env() {
    return { PATH: process.env.PATH, HOME: this.root, LOOPD_HOME: this.home };
  }

  /** An SDK client that starts its daemon and speaks over its pipes. */
  stdioClient(options = {}) {
    return this.#client(RuntimeConnection.forStdio({ path: TAP, env: this.#tappedEnv() }), options);
  }

  /** An SDK client that starts its daemon and speaks over TCP. */
  tcpClient({ connectionToken, ...options } = {}) {
    return this.#client(RuntimeConnection.forTcp({ path: TAP, connectionToken, env: this.#tappedEnv() }), options);
  }

  /** An SDK client of a daemon that another client started. */
  guestClient(host, connectionToken) {
    return this.#client(RuntimeConnection.forUri(`localhost:${host.runtimePort}`, { connectionToken }), {});
  }

  #tappedEnv() {
    const { LOOPD_HOME, ...env } = this.env;
    return { ...env, LOOPD_BIN: process.env.LOOPD_BIN, TRAFFIC: this.#traffic };
  }

  #client(connection, options) {
    const own = connection.kind === "uri" ? {} : { baseDirectory: this.home, workingDirectory: this.work };
    const client = new CopilotClient({ connection, ...own, ...options });
    this.#clients.push(client);
    return client;
  }

  daemon(args, options = {}) {
    const daemon = new Daemon(args, { cwd: this.work, env: this.env, ...options });
    this.#daemons.push(daemon);
    return daemon;
  }

  /** A shell command that runs until the test is over, and when it really ended. */
  async endlessCommand() {
    const server = createServer((socket) => {
      this.#sockets.push(socket);
      server.close();
      ended(new Promise((resolve) => socket.on("error", () => {}).on("close", resolve)));
      socket.resume();
    });
    let ended;
    const started = new Promise((resolve) => (ended = (over) => resolve({ over })));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve).unref());
    return {
      text: `exec 3<>/dev/tcp/127.0.0.1/${server.address().port}; echo started; cat <&3`,
      ended: async () => within((await within(started, "a command's start")).over, "a command's end"),
    };
  }

  /** A plain connection to a socket or port; all it receives is judged. */
  async connect(address) {
    const socket = connect(address);
    this.#sockets.push(socket);
    await within(new Promise((done, failed) => socket.on("connect", done).on("error", failed)), "a connection");
    socket.on("error", () => {});
    socket.gone = new Promise((resolve) => socket.on("close", resolve));
    return socket;
  }

  /** The same, spoken to through vscode-jsonrpc, with the events it was sent. */
  rpc(input, output = input) {
    const judge = this.judge();
    class Reader extends StreamMessageReader {
      listen(callback) {
        return super.listen((message) => (judge.received(message), callback(message)));
      }
    }
    class Writer extends StreamMessageWriter {
      async write(message) {
        judge.sent(message);
        return super.write(message);
      }
    }
    const connection = createMessageConnection(new Reader(input), new Writer(output));
    connection.events = new Seen();
    connection.onNotification("session.event", ({ event }) => connection.events.add(event));
    connection.listen();
    return connection;
  }

  judge() {
    const judge = new Judge();
    this.#judges.push(judge);
    return judge;
  }

  /** Whether anybody had reason to expect frames. */
  get spoke() {
    return this.#clients.length + this.#judges.length > 0;
  }

  /** The processes that taps started and that are still there. */
  #alive() {
    return readdirSync(this.#traffic)
      .filter((name) => name.endsWith(".pid"))
      .map((name) => Number.parseInt(name, 10))
      .filter((pid) => {
        try {
          // One that ended is still listed until its parent takes note, and a killed tap does not.
          return process.kill(pid, 0) && !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
        } catch {
          return false;
        }
      });
  }

  /**
   * The daemon that serves the home in the background, and when it is gone.
   *
   * Only who answers at the socket is alive: the lock file keeps the name of an owner that ended.
   */
  async owner() {
    const lock = [this.home, join(this.home, "loopd")].map((home) => join(home, "loopd.lock")).find(existsSync);
    const owner = lock && JSON.parse(readFileSync(lock, "utf8").split("\n")[0]);
    if (!owner?.socket) return undefined;
    const socket = await this.connect({ path: owner.socket }).catch(() => undefined);
    return socket && { pid: owner.pid, gone: () => within(socket.resume().gone, `the end of the daemon ${owner.pid}`) };
  }

  /** Ends the daemon in the background, if there is one, as a shutdown of the machine would. */
  async endOwner() {
    const owner = await this.owner();
    if (!owner) return;
    process.kill(owner.pid, "SIGTERM");
    await owner.gone().catch((error) => {
      process.kill(owner.pid, "SIGKILL");
      throw error;
    });
  }

  /** Kills the daemon of a client as a crash would, and gives the client up. */
  async crash(client) {
    const relayed = new Promise((resolve) => client.cliProcess.on("close", resolve));
    const owner = await this.owner();
    process.kill(owner.pid, "SIGKILL");
    await Promise.all([owner.gone(), within(relayed, "the end of the process that the client started")]);
    await client.forceStop();
  }

  /** Ends everything; returns what did not end as it should. */
  async leave() {
    const faults = [];
    // Guests first: the client that started the daemon takes it away.
    for (const client of this.#clients.reverse()) {
      const errors = await within(client.stop(), "client.stop()", 2 * PATIENCE).catch((error) => [error]);
      faults.push(...errors.map((error) => `client.stop(): ${error.message}`));
    }
    for (const daemon of this.#daemons) {
      if (daemon.child.exitCode === null && daemon.child.signalCode === null) {
        await daemon.end().catch((error) => (faults.push(error.message), daemon.child.kill("SIGKILL")));
      }
    }
    await this.endOwner().catch((error) => faults.push(error.message));
    for (const socket of this.#sockets) socket.destroy();
    for (const pid of this.#alive()) {
      faults.push(`the daemon ${pid} was left alive`);
      process.kill(pid, "SIGKILL");
    }
    return faults;
  }

  /** What the judges of all connections found. */
  verdict() {
    const traffic = judgeTraffic(this.#traffic);
    return {
      judged: this.#judges.reduce((sum, judge) => sum + judge.judged, traffic.judged),
      violations: [...new Set([...traffic.violations, ...this.#judges.flatMap((judge) => judge.violations)])],
    };
  }

  remove() {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Registers a test that gets a place of its own and is judged when it is over. */
export function check(name, body) {
  test(name, async () => {
    assert.ok(process.env.LOOPD_BIN, "LOOPD_BIN must name the loopd binary (scripts/test conformance sets it)");
    const place = new Place();
    const faults = [];
    try {
      await body(place);
    } catch (error) {
      faults.push(error);
    }
    faults.push(...(await place.leave()));
    const { judged, violations } = place.verdict();
    place.remove();
    if (judged === 0 && place.spoke) faults.push("the judge saw no frame, although there was a conversation");
    faults.push(...violations.map((violation) => `violation: ${violation}`));
    if (faults.length === 1 && faults[0] instanceof Error) throw faults[0];
    if (faults.length > 0) assert.fail(`\n${faults.map((fault) => `  - ${fault.stack ?? fault}`).join("\n")}`);
  });
}

/** Options of a session whose events are kept, and the events. */
export function watched(options = {}) {
  const events = new Seen();
  return { events, options: { model: "offline", onEvent: events.add, ...options } };
}

/** Sends a prompt and waits for the session to be idle; returns the last answer's text. */
export async function answer(session, prompt) {
  const message = await session.sendAndWait({ prompt }, PATIENCE);
  return message?.data.content;
}
