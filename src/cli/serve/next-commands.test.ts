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
