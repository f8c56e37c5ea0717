import { copyFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServedFolder, type UsedFolder, useFolder } from "../installed-folder.ts";

const GITHUB = fileURLToPath(new URL("../data/github-api.json", import.meta.url));
const SHOP = `
export const add = { namespace: "shop", name: "add", version: "1.0.0", type: "query", description: "Adds one.",
  inputSchema: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] }, handler: ({ a }) => a + 1 };
`;

/** What went through to a gateway. */
interface Passage {
  readonly url: string;
  readonly asked: string[];
  /** Of all answers together. */
  bytes: number;
}

describe("a gateway over an API of 1,223 operations", () => {
  let folder: UsedFolder;
  let served: ServedFolder;
  let between: Server;
  const passage: Passage & { url: string } = { url: "", asked: [], bytes: 0 };
  beforeAll(async () => {
    folder = useFolder();
    copyFileSync(GITHUB, join(folder.path, "github.json"));
    folder.write("shop.mjs", SHOP);
    folder.write("waybill.config.json", {
      operations: "shop.mjs",
      openapi: { github: { document: "github.json" } },
    });
    served = await folder.serve();
    const { port } = new URL(served.url);
    between = createServer((incoming, response) => {
      const { method, url: path, headers } = incoming;
      passage.asked.push(`${method} ${path}`);
      const passed = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.on("data", (chunk: Buffer) => {
          passage.bytes += chunk.length;
        });
        answer.pipe(response);
      });
      incoming.pipe(passed);
    });
    await new Promise<void>((done) => between.listen(0, "127.0.0.1", done));
    passage.url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    between.closeAllConnections();
    between.close();
    await folder.remove();
  });

  it("RE-30 is asked for one operation and one call by its address, and for no document", async () => {
    expect(await folder.run(["call", "shop.add", "a=1", "--url", passage.url])).toEqual({
      code: 0,
      stdout: "2\n",
      stderr: "",
    });
    expect(passage.asked).toEqual(["GET /operations/shop.add", "POST /call"]);
    expect(passage.bytes).toBeLessThan(2_000);
  });

  it("RE-30 tells what its tool list takes, where a model would feel it, and the ways out", async () => {
    const [banner] = await served.says(/The tool list is heavy: .*\n/);
    expect(banner).toMatch(/1,224 tools, about [\d,]+ tokens .*"catalogue": true .*"allow"/);
  });

  it("RE-30 counts operations after policies, and before them where that differs, in log and table alike", async () => {
    folder.write("some/waybill.config.json", {
      openapi: { github: { document: "../github.json", policy: { allow: ["issues/*", "repos/*"] } } },
      mcpServers: { gone: { command: "no-such-program" } },
    });
    const cwd = join(folder.path, "some");
    const { stdout } = await folder.run(["list", "--sources"], { cwd });
    const [, count, offered] = /^github +up +openapi +(\d+) of (\d+)/m.exec(stdout) ?? [];
    expect([Number(count) > 0, offered]).toEqual([true, "1223"]);
    const log = folder.stream(["serve", "--port", "0", "--config", "some/waybill.config.json"]);
    await log.says(new RegExp(`"source":"github","operations":${count},"offered":1223`));
    await log.stop("SIGTERM");
  });

  it("RE-30 is looked at by doctor, which tells what is broken before what is heavy, and what is well at the end", async () => {
    const cwd = join(folder.path, "some");
    const { code, stdout } = await folder.run(["doctor"], { cwd });
    expect(code).toBe(1);
    const order = [...stdout.matchAll(/^(problem|note|ok)\b/gm)].map(([word]) => word);
    expect(order).toEqual([...order].sort((a, b) => WEIGHT.indexOf(a) - WEIGHT.indexOf(b)));
    expect(stdout).toMatch(/^problem {2}source gone: down: /m);
    expect(stdout).toMatch(/^note {2}tools: \d+ tools, about [\d,]+ tokens of a model's context$/m);
    expect(stdout.match(/npx/g)?.length ?? 0).toBeLessThanOrEqual(1);
  });

  it("RE-30 is not held up by a server that hangs, in list and doctor, which take --source and --timeout", async () => {
    const hangs = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1e9)"] };
    folder.write("hung/waybill.config.json", { operations: "../shop.mjs", mcpServers: { hangs } });
    const cwd = join(folder.path, "hung");
    const listed = await folder.run(["list", "--timeout", "1s"], { cwd });
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining("shop.add")]);
    expect(listed.stderr).toContain('"hangs"');
    const looked = await folder.run(["doctor", "--source", "hangs", "--timeout", "1s"], { cwd });
    expect([looked.code, looked.stdout]).toEqual([
      1,
      expect.stringMatching(/^problem {2}source hangs: it has not come up in time$/m),
    ]);
  });
});

const WEIGHT = ["problem", "note", "ok"];
