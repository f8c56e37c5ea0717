import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { blocksOf, type DocumentBlock, isAsShown } from "../document-blocks.ts";
import { HARDENED, ROOT, runCommand } from "../run-node.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The ports that pages name; each run takes free ones in their place. */
const PORTS = ["4100", "4200"] as const;

/** Asks the system, which gives the same port to nobody else for a while. */
async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => void server.close(resolve));
  return String(typeof address === "object" ? address?.port : undefined);
}

/** What makes the package, which is made for all tests by now. */
const PACKED = /^npm ci && npm pack$/m;

/** Somebody who follows a page, in an empty folder. */
class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), "waybill-reader-"));
  readonly #servers: { readonly child: ChildProcess; readonly ended: Promise<unknown> }[] = [];
  readonly #ports: readonly (readonly [page: string, free: string])[];

  constructor(ports: readonly string[]) {
    this.#ports = PORTS.map((port, index) => [port, ports[index] as string]);
  }

  async follow(block: DocumentBlock): Promise<void> {
    const text = this.#here(block.text);
    const prints = block.prints === undefined ? undefined : this.#here(block.prints);
    if (PACKED.test(block.text)) expect(prints?.trim()).toBe(`…${this.#packed}`);
    else if (block.file !== undefined) this.#save(block.file, text);
    else if (/^npx --no waybill serve\b(?!.*--stdio)/.test(text))
      await this.#serve(text.trim(), prints ?? "listening");
    else await this.#run(text, prints);
  }

  async leave(): Promise<void> {
    const running = this.#servers.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    for (const { child } of running) process.kill(-(child.pid as number), "SIGTERM");
    await Promise.all(this.#servers.map(({ ended }) => ended));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** With the ports of this run, and with the package as it was packed. */
  #here(text: string): string {
    const flags = "--prefer-offline --no-audit --no-fund --ignore-scripts";
    const ported = this.#ports.reduce((all, [page, free]) => all.replaceAll(page, free), text);
    return ported.replace(
      /^npm install \S+\.tgz$/m,
      `npm install ${flags} ${join(inject("installed"), this.#packed)}`,
    );
  }

  get #packed(): string {
    return readdirSync(inject("installed")).find((name) => name.endsWith(".tgz")) as string;
  }

  #save(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  async #run(text: string, prints: string | undefined): Promise<void> {
    const ran = await runCommand("sh", ["-e", "-c", `exec 2>&1\n${text}`], {
      cwd: this.folder,
      env: this.#env(),
    });
    expect(ran.code, ran.stdout).toBe(0);
    if (prints !== undefined && !isAsShown(prints, ran.stdout, "whole")) expect(ran.stdout).toBe(prints);
  }

  /** Without a config the port of the page is the usual one. */
  async #serve(command: string, prints: string): Promise<void> {
    const hasConfig = readdirSync(this.folder).some((name) => name.startsWith("waybill.config."));
    const line = hasConfig ? command : `${command} --port ${this.#ports[0]?.[1]}`;
    const child = spawn("sh", ["-c", `exec ${line} 2>&1`], {
      cwd: this.folder,
      env: { ...process.env, ...this.#env() },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    const ended = new Promise((resolve) => void child.once("close", resolve));
    this.#servers.push({ child, ended });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await expect.poll(() => isAsShown(prints, said, "part") || said, { timeout: 60_000 }).toBe(true);
  }

  #env(): Record<string, string> {
    return {
      WAYBILL_STATE_DIR: join(this.folder, "state"),
      HOME: this.folder,
      NO_COLOR: "1",
      NODE_OPTIONS: "",
      npm_config_cache: process.env["npm_config_cache"] ?? join(process.env["HOME"] ?? "", ".npm"),
      npm_config_loglevel: "error",
      npm_config_update_notifier: "false",
    };
  }
}

const README = read("README.md");
const { version } = JSON.parse(read("package.json"));

const titleOf = ({ line, text, file }: DocumentBlock): string =>
  `line ${line}: ${file ?? text.trim().split("\n", 1)[0]}`;

/** The page as it reads does not depend on the flags of the second run. */
describe.runIf(!HARDENED)("docs/getting-started.md, followed from top to bottom", () => {
  const blocks = blocksOf(read("docs/getting-started.md"));
  let reader: Reader;
  beforeAll(async () => {
    reader = new Reader(await Promise.all(PORTS.map(freePort)));
  });
  afterAll(() => reader.leave());

  it.each(blocks.map((block) => [titleOf(block), block] as const))("RE-30 %s", async (_, block) => {
    await reader.follow(block);
  });

  it("is read in ten minutes", () => {
    const words = read("docs/getting-started.md").split(/\s+/).length;
    expect(words / 200).toBeLessThan(10);
  });
});

/** Asks its questions on a terminal; here nobody answers. */
const unasked = (text: string): string =>
  text.replaceAll(/^npx --no waybill init(?= *(?:#|$))/gm, "npx --no waybill init --yes");

/** What the README has a reader do with the command, after it was installed. */
describe.runIf(!HARDENED)("the README, whose commands of waybill are followed in order", () => {
  const blocks = blocksOf(README.replaceAll(/^```(?:ts|js|json|yaml)\n.*?^```$/gms, ""))
    .map((block) => ({
      ...block,
      text: unasked(block.text.replaceAll(/^(?!npx --no waybill|curl ).*\n/gm, "")),
    }))
    .filter(({ text }) => /^npx --no waybill/m.test(text));
  let reader: Reader;
  beforeAll(async () => {
    reader = new Reader(await Promise.all(PORTS.map(freePort)));
    await reader.follow({ line: 0, text: `npm init -y\nnpm install waybill-${version}.tgz\n` });
  });
  afterAll(() => reader.leave());

  it("RE-30 shows what serving says", async () => {
    const prints = /^```text\n(Waybill .*?)^```$/ms.exec(README)?.[1];
    expect(prints).toBeDefined();
    await reader.follow({ line: 0, text: "npx --no waybill serve\n", prints: prints ?? "" });
  });

  it("RE-30 has a program that runs on this Node as it says", async () => {
    const text = /^```ts\n(.*?)^```$/ms.exec(README)?.[1] ?? "";
    const prints = /^```text\n(\{.*?)^```$/ms.exec(README)?.[1] ?? "";
    await reader.follow({ line: 0, text, file: "task.mts" });
    await reader.follow({ line: 0, text: "npx --no jiti task.mts\n", prints });
  });

  it("RE-30 shows the command at work", () => {
    expect(blocks.length).toBeGreaterThan(0);
  });

  it.each(blocks.map((block) => [titleOf(block), block] as const))("RE-30 %s", async (_, block) => {
    await reader.follow(block);
  });
});
