import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { OperationRegistry, toCallError } from "../src/index.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { createHttpHandler } from "../src/openapi/index.ts";
import { rejection, until } from "./make-operation.ts";

const SECRET = "canary-4f1c9e27ab53d860";
const WORDS = "the license has ended";
const PRINTED = "printed on the way out";

/** Works when it is first started. Later it ends, or answers the handshake with an error, as the second argument says. */
const SERVER = `
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const [, , mark, later] = process.argv;
const isAgain = existsSync(mark);
writeFileSync(mark, "");
const words = "${WORDS}: " + process.env.API_TOKEN + " at " + process.cwd() + "/license.txt";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
if (isAgain && later === "exits") { console.error("${PRINTED} " + words); process.exit(3); }
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize" && isAgain) return say({ id, error: { code: -32000, message: words } });
  if (method === "initialize") {
    return say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } } });
  }
  if (method === "tools/list") {
    return say({ id, result: { tools: ["end", "fail"].map((name) => ({ name, inputSchema: { type: "object" } })) } });
  }
  if (params.name === "fail") return say({ id, error: { code: -32602, message: words } });
  console.error("${PRINTED} " + words);
  process.exit(3);
});
`;

async function start(later: "exits" | "answers") {
  const folder = mkdtempSync(join(tmpdir(), "waybill-words-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "our-node");
  symlinkSync(process.execPath, program);
  writeFileSync(join(folder, "server.mjs"), SERVER);
  const source = await fromMcp(
    {
      command: program,
      args: [join(folder, "server.mjs"), join(folder, "started"), later],
      cwd: folder,
      env: { API_TOKEN: SECRET },
    },
    { namespace: "files", protocol: "2025", reconnect: { delayMs: 10, maxDelayMs: 20 }, onWarning: () => {} },
  );
  onTestFinished(() => source.close());
  const registry = new OperationRegistry([], { onWarning: () => {} });
  registry.registerAll(source);
  const handler = createHttpHandler(registry);
  const overHttp = async (name: string): Promise<string> => {
    const request = new Request(`http://localhost/api/files/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    return await (await handler.fetch(request)).text();
  };
  const over = async (name: string): Promise<readonly string[]> => {
    const error = toCallError(await rejection(registry.execute(`files.${name}`, {})));
    return [JSON.stringify(error), error.message, await overHttp(name)];
  };
  const expectClean = (texts: readonly string[]): void => {
    for (const text of texts) {
      for (const hidden of [folder, homedir(), SECRET, PRINTED, "license.txt"])
        expect(text).not.toContain(hidden);
    }
  };
  return { source, over, expectClean };
}

describe("an MCP server that is a process, served without a gateway", () => {
  it("X-11 is named without where it is, and its words are passed on without secrets and paths", async () => {
    const { over, expectClean } = await start("answers");
    const texts = await over("fail");
    expectClean(texts);
    expect(texts[0]).toContain(`"said":"${WORDS}: *** at [path]"`);
    expect(texts[1]).toBe('MCP server "files" (our-node) does not take this input for the tool "fail".');
    expect(texts[2]).toContain(WORDS);
  });

  it.each(["exits", "answers"] as const)(
    "X-11 that %s when it is started again says so in our words, and in its own in one place",
    async (later) => {
      const { source, over, expectClean } = await start(later);
      expectClean(await over("end"));
      await until(() => source.state.status === "down" && source.state.reason.includes("could not"));
      const texts = await over("fail");
      expectClean(texts);
      expectClean([JSON.stringify(source.state)]);
      expect(texts[1]).not.toContain(WORDS);
      expect(texts[0]?.includes(WORDS)).toBe(later === "answers");
      expect(texts[2]).toContain(later === "exits" ? "its process exited with code 3" : `"said":"${WORDS}`);
    },
  );
});
