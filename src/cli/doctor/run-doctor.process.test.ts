import { describe, expect, it } from "vitest";
import { SECRET, useDoctorFolder } from "../../../test/doctor-folder.ts";
import { childScript } from "../../../test/stdio-child.ts";
import type { Diagnosis } from "./diagnosis.ts";

const { run, setConfig, write } = useDoctorFolder();
const good = { command: process.execPath, args: [childScript("sdk-server.js")] };

describe("doctor", () => {
  it("finds a sound config healthy", async () => {
    await setConfig({ mcpServers: { good }, serve: { port: 0 } });
    const { code, stdout } = await run();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/ok\s+source\s+good/)]);
    expect(stdout.trimEnd().endsWith("healthy")).toBe(true);
  });

  it("says of each broken source what is wrong and what to do, and shows no secret", async () => {
    const mcpServers = {
      good,
      gone: { command: "/no/such/program", args: ["--token", SECRET], env: { TOKEN: "${TOKEN}" } },
      unset: { url: "https://mcp.example/mcp", bearer: "${NO_SUCH_VARIABLE}" },
      off: { ...good, disabled: true },
    };
    await setConfig({ mcpServers, serve: { port: 0 }, openapi: { api: { document: "none.json" } } });
    const { code, stdout } = await run("--json");
    const { diagnoses, ok } = JSON.parse(stdout) as { ok: boolean; diagnoses: Diagnosis[] };
    const broken = diagnoses.filter(({ status }) => status === "problem");
    expect([code, ok]).toEqual([1, false]);
    expect(new Set(broken.map(({ area, subject }) => `${area} ${subject}`))).toEqual(
      new Set(["source gone", "source unset", "source api"]),
    );
    const fixOf = (name: string) => broken.filter(({ subject }) => subject === name).map(({ fix }) => fix);
    expect(stdout.match(/NO_SUCH_VARIABLE/g)).toHaveLength(2);
    expect(fixOf("unset")).toEqual(["Set what the reference names, or remove it."]);
    expect(fixOf("api")).toEqual([
      "Correct openapi.api.document; a path counts from the folder of the config.",
    ]);
    expect(broken.every(({ fix }) => fix !== undefined && fix !== "")).toBe(true);
    expect(stdout).not.toContain(SECRET);
  });

  it("names commands that are about the same sources", async () => {
    await write("other.json", { mcpServers: { good }, lock: true });
    const { stdout } = await run("-c", "other.json");
    expect(stdout).toContain(
      '"waybill lock good --config other.json", then "waybill lock --approve good --config other.json"',
    );
  });

  it("notes patterns that match nothing, and counts what policies left", async () => {
    const server = { ...good, policy: { deny: ["*"] } };
    await setConfig({
      mcpServers: { good: server },
      policies: { "goood.*": { cacheMs: 1 } },
      serve: { port: 0 },
    });
    const { code, stdout } = await run("--json");
    const { diagnoses, sources } = JSON.parse(stdout) as {
      diagnoses: Diagnosis[];
      sources: { operations: number }[];
    };
    const [pattern] = diagnoses.filter(({ area }) => area === "policy");
    expect([code, pattern?.status, sources[0]?.operations]).toEqual([0, "note", 0]);
    expect(pattern?.message).toContain('did you mean "good.*"?');
  });
});
