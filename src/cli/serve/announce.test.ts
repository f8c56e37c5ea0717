import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, moduleOf, openProject } from "../../../test/command-project.ts";

let project: CommandProject;
afterEach(() => project.remove());

const TOKEN = "0123456789abcdef-secret";

/** What is to be tried, as words. */
function shownLines(text: string): readonly (readonly string[])[] {
  const [, block = ""] = /Try in another terminal\n((?: {2}.+\n)+)/.exec(text) ?? [];
  return block
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().split(" "));
}

async function serveWith(auth: object, env: NodeJS.ProcessEnv = {}) {
  project = openProject({
    "shop.mjs": moduleOf("shop.hello"),
    "waybill.config.json": { operations: "shop.mjs", serve: { port: 0, auth } },
  });
  return await project.serve([], env);
}

describe("the banner of serve", () => {
  it("says what the tool list takes, what policies left, and how to turn the inspector on", async () => {
    project = openProject({
      "shop.mjs": moduleOf("shop.hello"),
      "more.mjs": moduleOf("more.hello"),
      "waybill.config.json": {
        operations: "*.mjs",
        policies: { "more.*": { enabled: false } },
        serve: { port: 0 },
      },
    });
    const { io, stop } = await project.serve();
    expect(io.err()).toMatch(/^ {2}tool list 1 tool, about [\d,]+ tokens of a model's context/m);
    expect(io.err()).toMatch(/^ {2}local +up +local +1 of 2 /m);
    expect(io.err()).toMatch(/^ {2}inspector off; "waybill serve --inspect" or .* turns it on$/m);
    await stop();
    const inspected = await project.serve(["--inspect"]);
    expect(inspected.io.err()).toMatch(/^ {2}inspector http:/m);
    expect(inspected.io.err()).not.toContain("inspector off");
    await inspected.stop();
  });

  it("says where people approve calls, if a policy holds any", async () => {
    const config = (policy: object) => ({
      "waybill.config.json": { operations: "*.mjs", policies: { "shop.*": policy }, serve: { port: 0 } },
    });
    project = openProject({ "shop.mjs": moduleOf("shop.hello"), ...config({ approve: {} }) });
    const held = await project.serve();
    expect(held.io.err()).toMatch(/^ {2}approvals http:\S+\/approvals$/m);
    await held.stop();
    project.write(config({ timeoutMs: 5 }));
    const free = await project.serve();
    expect(free.io.err()).not.toContain("/approvals");
    await free.stop();
  });

  it("says of a heavy tool list what to do", async () => {
    const text = moduleOf("shop.hello").replace(
      /description: "[^"]*"/,
      `description: "word ".repeat(40_000)`,
    );
    project = openProject({
      "shop.mjs": text,
      "waybill.config.json": { operations: "shop.mjs", serve: { port: 0 } },
    });
    const heavy = await project.serve();
    expect(heavy.io.err()).toMatch(
      /! The tool list is heavy: 1 tool, about 40,000 tokens.*"catalogue": true/,
    );
    await heavy.stop();
    project.write({
      "waybill.config.json": {
        operations: "shop.mjs",
        serve: { port: 0, mcp: { catalogue: true } },
      },
    });
    const light = await project.serve();
    expect(light.io.err()).toMatch(/tool list 4 tools of the catalogue, about \d{3} tokens/);
    expect(light.io.err()).not.toContain("heavy");
    await light.stop();
  });
});

describe("what is to be tried where callers need a token", () => {
  it("names the variable that the token comes from, and works as it is printed", async () => {
    const env = { GATE_TOKEN: TOKEN };
    const { io, url, stop } = await serveWith({ tokens: { ada: { token: "${env:GATE_TOKEN}" } } }, env);
    const lines = shownLines(io.err()).filter(([command]) => command === "waybill");
    expect(lines.at(-1)).toEqual(["waybill", "list", "--url", url, "--token-env", "GATE_TOKEN"]);
    for (const [, ...args] of lines)
      expect(await project.run(args, { env })).toMatchObject({
        code: 0,
        out: expect.stringContaining("shop.hello"),
      });
    expect(await stop()).toBe(0);
    expect(io.err()).not.toContain(TOKEN);
  });

  it("says what to set where the token stands in the config, or in a file that the next terminal has not read", async () => {
    const { io, url, stop } = await serveWith({ tokens: { ada: { token: TOKEN } } });
    const [note, last = []] = shownLines(io.err()).slice(-2);
    expect(note?.join(" ")).toBe("# with WAYBILL_TOKEN set to a token of serve.auth.tokens:");
    expect(last).toEqual(["waybill", "list", "--url", url]);
    const found = await project.run(last.slice(1), { env: { WAYBILL_TOKEN: TOKEN } });
    expect([found.code, found.out]).toEqual([0, expect.stringContaining("shop.hello")]);
    await stop();
    project.write({
      ".env": `GATE_TOKEN=${TOKEN}\n`,
      "waybill.config.json": {
        envFile: ".env",
        operations: "shop.mjs",
        serve: { port: 0, auth: { tokens: { ada: { token: "${GATE_TOKEN}" } } } },
      },
    });
    const again = await project.serve();
    expect(again.io.err()).toContain("# with WAYBILL_TOKEN set to");
    await again.stop();
  });

  it("needs no flag for the variable that is looked at anyway", async () => {
    const env = { WAYBILL_TOKEN: TOKEN };
    const { io, url, stop } = await serveWith({ tokens: { ada: { token: "${WAYBILL_TOKEN}" } } }, env);
    expect(shownLines(io.err()).at(-1)).toEqual(["waybill", "list", "--url", url]);
    await stop();
  });
});
