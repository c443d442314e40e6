// Runs a program per language with each version of its SDK package, and prints package by scenario.
//
//   LOOPD_BIN=…/loopd SDKS=…/target/sdks node sdks/run.mjs [part of a package's name]
//
// A program prints `ok NAME` or `FAIL NAME: why` per scenario; a missing line is a failure. The row
// `afterwards` is the runner's own: the program printed nothing else and ended well, the model got no
// request that a vendor would refuse, and no process stays.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";

const SCENARIOS = [
  "start_stdio",
  "start_tcp",
  "create",
  "stream",
  "client_tool",
  "permission",
  "question",
  "two_waits",
  "abort",
  "wait_timeout",
  "resume",
  "list",
  "delete",
  "stop",
];

const { LOOPD_BIN, SDKS } = process.env;
if (!LOOPD_BIN || !SDKS) {
  console.error("LOOPD_BIN must name the daemon and SDKS the folder of the packages; scripts/test sdks sets both");
  process.exit(2);
}

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const read = (name) => readFileSync(file(name), "utf8");

function npm(name) {
  const { version } = JSON.parse(read(`../node_modules/${name}/package.json`));
  return { name: `npm ${version}`, command: [process.execPath, file("program.mjs")], env: { SDK: name } };
}

function python(version) {
  return { name: `python ${version}`, command: [join(SDKS, `python-${version}`, "bin", "python"), file("program.py")] };
}

function rust() {
  const [, version] = /^github-copilot-sdk = .*version = "=([^"]+)"/m.exec(read("rust/Cargo.toml"));
  return { name: `rust ${version}`, command: [join(SDKS, "rust", "debug", "getting-started")] };
}

const PACKAGES = [
  npm("@github/copilot-sdk"),
  npm("copilot-sdk-preview"),
  ...read("python-versions").trim().split("\n").map(python),
  rust(),
];

const LONGEST_PROGRAM = 120_000;
const LONGEST_LEAVING = 15_000;

/** The processes of our daemon that work for a folder; known only where there is /proc. */
function processesOf(place) {
  if (process.platform !== "linux") return [];
  const daemon = realpathSync(LOOPD_BIN);
  return readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readlinkSync(`/proc/${pid}/exe`) === daemon &&
        readFileSync(`/proc/${pid}/environ`, "utf8").includes(place)
      );
    } catch {
      return false; // It ended while we looked.
    }
  });
}

/** Waits until no process that fits is left; returns those that stay. */
async function leaving(place, fits) {
  const end = Date.now() + LONGEST_LEAVING;
  for (;;) {
    const left = processesOf(place).filter(fits);
    if (left.length === 0 || Date.now() > end) return left;
    await pause(20);
  }
}

const commandLine = (pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();

/** Whether a process is one that an SDK started, and not the daemon in the background. */
function startedBySdk(pid) {
  try {
    return commandLine(pid).includes("--no-auto-update");
  } catch {
    return false;
  }
}

/** Runs one program in a folder of its own; returns what it printed and how it ended. */
async function runProgram({ command, env }, place, url) {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: join(place, "work"),
    env: { PATH: process.env.PATH, HOME: place, LOOPD_BIN, MODEL_URL: url, PLACE: place, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (err += text));
  const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), LONGEST_PROGRAM);
  const ended = await new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, signal) => resolve(signal ?? code));
  });
  clearTimeout(timer);
  return { out, err, ended };
}

/** Runs the scenarios with one package; returns `ok` or what is wrong, by scenario. */
async function judge(subject) {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "loopd-sdk-")));
  for (const folder of ["home", "work"]) mkdirSync(join(place, folder), { mode: 0o700 });
  const model = await startModel();
  const { out, err, ended } = await runProgram(subject, place, model.url);
  const faults = model.faults.map((fault) => `the model was sent a bad request: ${fault}`);
  await model.stop();
  if (ended !== 0) faults.push(`the program ended with ${ended}: ${err.trim().split("\n").at(-1)}`);

  const results = new Map();
  for (const line of out.split("\n").filter(Boolean)) {
    const [, verdict, name, why] = /^(ok|FAIL) (\w+)(?:: (.*))?$/.exec(line) ?? [];
    if (!SCENARIOS.includes(name) || results.has(name)) faults.push(`the program printed: ${line}`);
    else results.set(name, verdict === "ok" ? "ok" : (why ?? "no reason given"));
  }
  for (const name of SCENARIOS) if (!results.has(name)) results.set(name, "no result");

  // What an SDK started ends with its client; the daemon in the background ends with its home.
  const stays = async (fits) => {
    for (const pid of await leaving(place, fits)) {
      faults.push(`process ${pid} stays: ${commandLine(pid)}`);
      process.kill(Number(pid), "SIGKILL");
    }
  };
  await stays(startedBySdk);
  rmSync(place, { recursive: true, force: true });
  await stays(() => true);
  results.set("afterwards", faults.length === 0 ? "ok" : faults.join("; "));
  return { results, err };
}

const chosen = PACKAGES.filter(({ name }) => name.includes(process.argv[2] ?? ""));
const judged = [];
for (const subject of chosen) {
  const began = Date.now();
  judged.push({ ...subject, ...(await judge(subject)), seconds: (Date.now() - began) / 1000 });
}

const cell = (result) => (result === "ok" ? "ok" : "FAIL");
const rows = [
  ["", ...judged.map(({ name }) => name)],
  ...[...SCENARIOS, "afterwards"].map((scenario) => [scenario, ...judged.map(({ results }) => cell(results.get(scenario)))]),
  ["seconds", ...judged.map(({ seconds }) => seconds.toFixed(1))],
];
const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
for (const row of rows) console.log(row.map((text, column) => text.padEnd(widths[column])).join("  ").trimEnd());

let failed = chosen.length === 0;
if (failed) console.error(`no package is named like ${process.argv[2]}`);
for (const { name, results, err } of judged) {
  const wrong = [...results].filter(([, result]) => result !== "ok");
  if (wrong.length === 0) continue;
  failed = true;
  for (const [scenario, why] of wrong) console.error(`${name}: ${scenario}: ${why}`);
  if (err) console.error(`${name}, its last words:\n${err.trim().split("\n").slice(-20).join("\n")}`);
}
process.exit(failed ? 1 : 0);
