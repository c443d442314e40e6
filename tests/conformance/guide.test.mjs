// The programs of docs/extensions.md, as they stand there, against a running daemon.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { check } from "./support.mjs";

const guide = readFileSync(new URL("../../docs/extensions.md", import.meta.url), "utf8");

/** The one program of a language in the guide. */
function program(language) {
  const blocks = [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))];
  assert.equal(blocks.length, 1, `the guide has one program in ${language}`);
  return blocks[0][1];
}

for (const [language, file, runtime] of [["python", "guide.py", "python3"], ["js", "guide.mjs", process.execPath]]) {
  check(`the guide's program in ${language} works as it stands`, async (place) => {
    const daemon = place.daemon(["serve"]);
    await daemon.announced(/listening on (\/.+)$/);
    writeFileSync(join(place.work, file), program(language));
    const env = { ...process.env, LOOPD_HOME: place.home };
    const { stdout } = await promisify(execFile)(runtime, [file], { cwd: place.work, env, timeout: 20_000 });
    assert.match(stdout, /^asked: touch made$/m);
    assert.match(stdout, /^answer: Done\. The output was:$/m);
    assert.match(stdout, /^missed: user\.message$/m);
    assert.ok(existsSync(join(place.work, "made")));
  });
}
