// Stands between the SDK and the daemon and writes down what passes.
//
// The SDK starts it as if it were the daemon. It starts the real one (LOOPD_BIN) with the same
// arguments and passes bytes, signals and the exit code on unchanged. With --stdio that is one
// connection; otherwise it opens a TCP port of its own in front of the daemon's and announces that.
// Below TRAFFIC it leaves `<n>.in` and `<n>.out` per connection, as bytes, and `<pid>.pid`. Each
// byte is on disk before it is passed on, so whoever saw a frame can read it there.

import { spawn } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";

const { LOOPD_BIN, TRAFFIC, ...env } = process.env;
const args = process.argv.slice(2);
const overStdio = args.includes("--stdio");
const daemon = spawn(LOOPD_BIN, args, { env, stdio: [overStdio ? "pipe" : "ignore", "pipe", "inherit"] });
writeFileSync(join(TRAFFIC, `${daemon.pid}.pid`), "");
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => daemon.kill(signal));
daemon.on("error", (error) => {
  console.error(`${LOOPD_BIN} did not start: ${error.message}`);
  process.exit(127);
});
daemon.on("close", (code, signal) => process.stdout.write("", () => process.exit(code ?? (signal ? 1 : 0))));
process.stdout.on("error", () => {});

let connections = 0;

function pass(client, server) {
  const name = join(TRAFFIC, `${daemon.pid}-${connections++}`);
  client.in.on("data", (bytes) => (appendFileSync(`${name}.in`, bytes), server.out.write(bytes)));
  server.in.on("data", (bytes) => (appendFileSync(`${name}.out`, bytes), client.out.write(bytes)));
  client.in.on("end", () => server.out.end());
  server.out.on("error", () => {});
}

function inFront(port) {
  const proxy = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    pass({ in: client, out: client }, { in: server, out: server });
    client.on("error", () => server.destroy());
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
  });
  proxy.listen(0, "127.0.0.1", () => console.log(`tap listening on port ${proxy.address().port}`));
}

if (overStdio) {
  pass({ in: process.stdin, out: process.stdout }, { in: daemon.stdout, out: daemon.stdin });
} else {
  let said = "";
  daemon.stdout.on("data", function listen(bytes) {
    said += bytes;
    const line = /listening on port (\d+)/i.exec(said);
    if (!line) return;
    daemon.stdout.off("data", listen).resume();
    inFront(Number(line[1]));
  });
}
