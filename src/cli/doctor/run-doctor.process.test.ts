import { describe, expect, it } from "vitest";
import { SECRET, useDoctorFolder } from "../../../test/doctor-folder.ts";
import { childScript } from "../../../test/stdio-child.ts";
import type { Diagnosis } from "./examine-sources.ts";

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

  it("shows the last lines of a process that ends, and of one that hangs, cleaned and without secrets", async () => {
    const says = (then: string) => ({
      command: process.execPath,
      args: [
        "-e",
        `for (let i = 1; i <= 7; i++) console.error("\u001b[31mline " + i + " " + process.env.TOKEN); ${then}`,
      ],
      env: { TOKEN: "${TOKEN}" },
      connectTimeoutMs: 3_000,
    });
    const mcpServers = { ends: says("process.exit(3)"), hangs: says("setTimeout(() => {}, 9e6)") };
    await setConfig({ mcpServers, serve: { port: 0 } });
    const shownOf = (text: string) => [...text.matchAll(/^ {2}\| (.*)$/gm)].map(([, line]) => line);
    const last = [3, 4, 5, 6, 7].map((i) => `line ${i} ***`);
    const all = [1, 2, 3, 4, 5, 6, 7].map((i) => `line ${i} ***`);
    const [short, verbose, json] = [await run(), await run("--verbose"), await run("--json")];
    expect(shownOf(short.stdout)).toEqual([...last, ...last]);
    // What ends is started again meanwhile.
    expect(shownOf(verbose.stdout).slice(0, 7)).toEqual(all);
    expect(shownOf(verbose.stdout).slice(-7)).toEqual(all);
    const { diagnoses } = JSON.parse(json.stdout) as { diagnoses: Diagnosis[] };
    const told = diagnoses.filter(({ area }) => area === "source");
    expect(told.map(({ subject, stderr }) => [subject, stderr?.slice(-7)])).toEqual([
      ["ends", all],
      ["hangs", all],
    ]);
    expect(short.stdout + verbose.stdout + json.stdout).not.toContain(SECRET);
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
