import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { expect, it, onTestFinished } from "vitest";
import { createLocalStateStore } from "./local-state-store.ts";
import { holdForProcess } from "./process-hold.ts";
import { StateLog } from "./state-log.ts";

/** Lets a process write until it has said so many lines, and kills it. */
async function writeAndKill(program: string, folder: string, lines: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [program, folder], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  const ended = once(child, "exit");
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.split("\n").length > lines) child.kill("SIGKILL");
  }
  // Its output ends before it does.
  await ended;
  // The last line may be half of one.
  return text.split("\n").slice(0, -1);
}

it("has all that was acknowledged when its process is killed, again and again", {
  timeout: 120_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-state-"));
  const program = join(folder, "writer.mjs");
  const bundle = await rolldown({
    input: fileURLToPath(new URL("../../../test/state-writer-process.ts", import.meta.url)),
    platform: "node",
    logLevel: "silent",
  });
  await bundle.write({ file: program, format: "esm", codeSplitting: false });
  const acknowledged: string[] = [];
  for (let round = 1; round <= 5; round++) {
    const [first, ...lines] = await writeAndKill(program, folder, 100 * round);
    expect(Number(first?.split(" ")[1])).toBeGreaterThanOrEqual(acknowledged.length);
    acknowledged.push(...lines.filter((line) => !line.startsWith("!")));
  }
  const log = await StateLog.open(folder, { now: Date.now, onFault: () => {} });
  const store = createLocalStateStore({ log });
  const missing: string[] = [];
  for (const key of acknowledged) {
    const found = await store.get({ collection: "keys", owner: "ann", key });
    if (
      !Buffer.from(found?.value ?? [])
        .toString()
        .startsWith(key)
    )
      missing.push(key);
  }
  expect(missing).toEqual([]);
  expect(acknowledged.length).toBeGreaterThan(1_000);
  await store.close();
  await rm(folder, { recursive: true });
});

it.runIf(process.platform === "linux")(
  "is free when its process has ended and nobody has reaped it",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-hold-"));
    // The shell becomes a program that reaps nothing.
    const parent = spawn("sh", ["-c", "sleep 0 & echo $!; exec sleep 60"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(async () => {
      parent.kill("SIGKILL");
      await rm(folder, { recursive: true });
    });
    const [line] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(line);
    const fields = () => readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    await expect.poll(() => fields()[0]).toBe("Z");
    const path = join(folder, "hold");
    await writeFile(path, `${pid} ${fields()[19]}`);
    const letGo = await holdForProcess(path, (held) => `held by ${held}`);
    await letGo();
  },
);
