import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { SCRIPTED_SERVER, scriptedTool, type UsedFolder, until, useFolder } from "../installed-folder.ts";
import { HARDENED } from "../run-node.ts";
import { consumerErrors } from "../type-check.ts";

let folder: UsedFolder;
beforeEach(() => {
  folder = useFolder();
});
afterEach(() => folder.remove());

const DEPOT = join(inject("installed"), "node_modules/waybill/dist/embedded/depot-server.js");
const SERVER = { command: process.execPath, args: ["server.mjs", "tools.json"] };

function writeServer(tools: readonly object[], config: object = {}): void {
  folder.write("server.mjs", SCRIPTED_SERVER);
  folder.write("tools.json", tools);
  folder.write("waybill.config.json", { mcpServers: { post: SERVER }, ...config });
}

describe("types", () => {
  // Types do not depend on the flags of the second run.
  it.runIf(!HARDENED)("RE-27 writes types that the compiler checks calls with", async () => {
    const written = await folder.run(["types", "--out", "waybill-types.ts"]);
    expect([written.code, written.stdout]).toEqual([0, ""]);
    const use = folder.write(
      "use.ts",
      `
      import { createClient, OperationRegistry, unwrap } from "waybill";
      import type { ParcelBookInput } from "./waybill-types.js";
      const registry = new OperationRegistry();
      const input: ParcelBookInput = { to: "Lisbon", kg: 2 };
      export const kg: number = unwrap(await registry.execute("parcel.book", input)).kg;
      const client = createClient(registry);
      export const amount: number = (await client.call("tariff.quote", { kg: 2, zone: "europe" })).price.amount;
      export const boxes: number | undefined = (await client.call("depot.stock", {})).stock[0]?.boxes;
      export const wrongType: ParcelBookInput = { to: "Lisbon", kg: "2" };
      await client.call("parcel.track", { code: "P-1001" });
      await client.call("tariff.zone", { code: 7 });
    `,
    );
    expect(consumerErrors(use, folder.path)).toEqual([
      expect.stringMatching(/Type 'string' is not assignable to type 'number'/),
      expect.stringMatching(/'code' does not exist/),
      expect.stringMatching(/Type 'number' is not assignable to type 'string'/),
    ]);
  });

  it("RE-27 says whether the file is up to date", async () => {
    writeServer([scriptedTool("a", "Reads.")]);
    expect((await folder.run(["types", "--check"])).code).toBe(1);
    expect((await folder.run(["types"])).code).toBe(0);
    expect(folder.read("waybill-types.ts")).toContain('"post.a"');
    expect((await folder.run(["types", "--check"])).code).toBe(0);
    folder.write("tools.json", [scriptedTool("b", "Writes.")]);
    expect((await folder.run(["types", "--check"])).code).toBe(1);
  });
});

describe("lock", () => {
  it("RE-30 refuses a tool whose definition has changed, until it is approved", async () => {
    writeServer([scriptedTool("a", "Reads."), scriptedTool("b", "Writes.")], { lock: true });
    const unseen = await folder.run(["call", "post.a"]);
    expect([unseen.code, unseen.stdout]).toEqual([3, ""]);
    expect(unseen.stderr).toMatch(/waybill lock --approve/);

    expect((await folder.run(["lock", "--approve"])).code).toBe(0);
    expect(await folder.run(["call", "post.a"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("a ran"),
    });

    folder.write("tools.json", [
      scriptedTool("a", "Reads, and sends it away."),
      scriptedTool("b", "Writes."),
    ]);
    const [state, refused, other] = await Promise.all([
      folder.run(["lock"]),
      folder.run(["call", "post.a"]),
      folder.run(["call", "post.b"]),
    ]);
    expect([state.code, refused.code, other.code]).toEqual([1, 3, 0]);
    expect(state.stdout).toMatch(/- .*Reads\.[\s\S]*\+ .*Reads, and sends it away\./);
    expect([refused.stdout, refused.stderr]).toEqual(["", expect.stringMatching(/waybill lock/)]);

    const approved = await folder.run(["lock", "--approve", "post", "--tool", "a", "--yes", "--json"]);
    expect([approved.code, JSON.parse(approved.stdout).approved]).toEqual([0, { post: ["a"] }]);
    expect((await folder.run(["call", "post.a"])).code).toBe(0);
  });

  it("RE-30 refuses it in a gateway that runs, and serves it once it is approved", async () => {
    writeServer([scriptedTool("a", "Reads."), scriptedTool("b", "Writes.")], { lock: true });
    await folder.run(["lock", "--approve"]);
    folder.write("tools.json", [scriptedTool("a", "Reads, and more."), scriptedTool("b", "Writes.")]);
    const { url, stop } = await folder.serve();
    const call = async (operation: string) => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ operation, input: {} });
      return (await fetch(`${url}/call`, { method: "POST", headers, body })).status;
    };
    expect([(await call("post.a")) >= 400, await call("post.b")]).toEqual([true, 200]);
    await folder.run(["lock", "--approve", "--yes"]);
    await until(
      () => call("post.a"),
      (status) => status === 200,
    );
    expect((await stop()).code).toBe(0);
  });
});

interface Report {
  readonly ok: boolean;
  readonly reports: readonly {
    readonly checks: readonly { id: string; subject: string; status: string }[];
  }[];
}

const failuresOf = (stdout: string): readonly string[] =>
  (JSON.parse(stdout) as Report).reports.flatMap(({ checks }) =>
    checks.filter(({ status }) => status === "fail").map(({ id, subject }) => `${id} ${subject}`),
  );

describe("check", () => {
  it("RE-30 finds nothing wrong with a server that does what it declares", async () => {
    const target = `"${process.execPath}" "${DEPOT}"`;
    const [people, json, junit] = await Promise.all([
      folder.run(["check", target]),
      folder.run([
        "check",
        target,
        "--json",
        "--call",
        "label",
        "--input",
        'label={"id":"P-1001","to":"Oslo"}',
      ]),
      folder.run(["check", target, "--junit"]),
    ]);
    expect([people.code, json.code, junit.code]).toEqual([0, 0, 0]);
    expect(people.stdout).toMatch(/passed: 0 failed/);
    expect(failuresOf(json.stdout)).toEqual([]);
    expect(junit.stdout).toMatch(/^<\?xml [^>]*>\n<testsuites name="waybill check" tests="\d+" failures="0"/);
  });

  it("RE-30 finds what a server breaks of its own schemas and of the contracts", async () => {
    const outputSchema = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
    const annotations = { readOnlyHint: true };
    const content = [{ type: "text", text: "{}" }];
    writeServer([
      scriptedTool(
        "keeps",
        "Answers as it says.",
        { annotations, outputSchema },
        { content, structuredContent: { n: 1 } },
      ),
      scriptedTool(
        "lies",
        "Answers otherwise.",
        { annotations, outputSchema },
        { content, structuredContent: { n: "1" } },
      ),
      scriptedTool("odd", "Answers with no content.", { annotations }, { answer: 42 }),
    ]);
    const [people, json, saved] = await Promise.all([
      folder.run(["check", "post"]),
      folder.run(["check", "post", "--json"]),
      folder.run(["check", "post", "--junit", "report.xml"]),
    ]);
    expect([people.code, json.code, saved.code]).toEqual([1, 1, 1]);
    const failures = failuresOf(json.stdout);
    expect(failures.filter((failure) => failure.endsWith(" lies"))).not.toEqual([]);
    expect(failures.filter((failure) => failure.endsWith(" odd"))).not.toEqual([]);
    expect(failures.filter((failure) => failure.endsWith(" keeps"))).toEqual([]);
    expect(people.stdout).toMatch(/lies/);
    const report = folder.read("report.xml");
    expect(report).toContain(`failures="${failures.length}"`);
    expect(report.match(/<failure/g)).toHaveLength(failures.length);
  });

  it("RE-30 ends with 3 when there is no server", async () => {
    const { code, stdout, stderr } = await folder.run(["check", "http://127.0.0.1:1/mcp", "--mcp"]);
    expect([code, stderr]).toEqual([3, ""]);
    expect(stdout).toMatch(/FAIL .*mcp\.connect\n[\s\S]*cannot be reached: 1 failed/);
  });
});

interface Diagnoses {
  readonly ok: boolean;
  readonly diagnoses: readonly {
    area: string;
    subject: string;
    status: string;
    message: string;
    fix?: string;
  }[];
}

describe("doctor", () => {
  it("RE-30 finds the embedded default healthy", async () => {
    const [people, json] = await Promise.all([folder.run(["doctor"]), folder.run(["doctor", "--json"])]);
    expect([people.code, json.code, json.stderr]).toEqual([0, 0, ""]);
    const { ok, diagnoses } = JSON.parse(json.stdout) as Diagnoses;
    expect(ok).toBe(true);
    const sources = diagnoses.filter(({ area, status }) => area === "source" && status === "ok");
    expect(sources.map(({ subject }) => subject)).toEqual(
      expect.arrayContaining(["depot", "tariff", "local"]),
    );
    for (const word of ["depot", "tariff"]) expect(people.stdout).toContain(word);
  });

  it("RE-30 says which sources are broken, why, and what to do, and that the rest is well", async () => {
    writeServer([scriptedTool("a", "Reads.")], {
      mcpServers: {
        post: SERVER,
        missing: { command: "no-such-program-anywhere" },
        gone: { command: process.execPath, args: ["-e", "process.exit(7)"] },
        dead: { url: "http://127.0.0.1:1/mcp" },
        unset: { command: process.execPath, env: { KEY: "${NOT_SET_ANYWHERE}" } },
      },
      openapi: { nowhere: { document: "nowhere.yaml" } },
      operations: "broken.mjs",
      serve: { port: 0 },
    });
    folder.write("broken.mjs", "export const a = 1;\nexport const b = {;\n");
    const { code, stdout, stderr } = await folder.run(["doctor", "--json"]);
    expect([code, stderr]).toEqual([1, ""]);
    const { ok, diagnoses } = JSON.parse(stdout) as Diagnoses;
    expect(ok).toBe(false);
    const of = (name: string) => diagnoses.filter(({ subject }) => subject.includes(name));
    for (const name of ["missing", "gone", "dead", "unset", "nowhere", "local"]) {
      expect([name, of(name)]).toEqual([
        name,
        expect.arrayContaining([
          expect.objectContaining({
            status: "problem",
            message: expect.any(String),
            fix: expect.any(String),
          }),
        ]),
      ]);
    }
    // On a busy machine it is noted that it was slow.
    expect(of("post").map(({ status }) => status)).toEqual(expect.arrayContaining(["ok"]));
    expect(of("post").map(({ status }) => status)).not.toContain("problem");
    const [module] = of("local").filter(({ status }) => status === "problem");
    expect(module?.message).toMatch(/broken\.mjs: .*Line 2: /);
    expect(module?.fix).toContain("waybill list --sources --json");
    expect(of("unset")[0]?.message).toContain("NOT_SET_ANYWHERE");
    expect((await folder.run(["call", "post.a"])).code).toBe(0);
  });
});
