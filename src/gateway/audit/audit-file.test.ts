import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AUDIT_LIMITS, AuditFile, auditFiles, hashLine } from "./audit-file.ts";
import { readAudit, verifyAudit } from "./verify-audit.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-audit-"));
  path = join(folder, "audit.jsonl");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(count: number, from = 0): Promise<AuditFile["head"]> {
  const file = await AuditFile.open(path);
  for (let n = from; n < from + count; n += 1)
    file.add({ event: "call", operation: `shop.op${n}`, subject: "ada\u2028x" });
  await file.close();
  return file.head;
}

const lines = async (): Promise<string[]> => (await readFile(path, "utf8")).split("\n").slice(0, -1);
const problems = async (heads: Parameters<typeof verifyAudit>[1] = []): Promise<string[]> =>
  (await verifyAudit(path, heads)).faults.map(({ line, problem }) => `${line} ${problem}`);

describe("an audit file", () => {
  it("is a chain that goes on where the process before ended", async () => {
    await write(3);
    const head = await write(2, 3);
    const report = await verifyAudit(path, [head]);
    expect(report).toMatchObject({ records: 5, head, faults: [], notes: [] });
    expect(JSON.parse((await lines())[4] as string)).toMatchObject({ seq: 5, operation: "shop.op4" });
    expect(head.hash).toBe(hashLine((await lines())[4] as string));
  });

  it.each<readonly [string, (all: string[]) => string[], readonly string[]]>([
    [
      "a record that was changed",
      (all) => all.map((line) => line.replace("shop.op1", "shop.opX")),
      ["3 does not name the record before it"],
    ],
    [
      "a record that was taken out",
      ([a, _, ...more]) => [a as string, ...more],
      ["2 has the number 3 after 1"],
    ],
    [
      "two that changed places",
      ([a, b, c, ...more]) => [a, c, b, ...more] as string[],
      ["2 has the number 3 after 1", "3 has the number 2 after 3", "4 has the number 4 after 2"],
    ],
    ["a line that is none", ([a, ...more]) => [a as string, "nonsense", ...more], ["2 is no record"]],
    ["a beginning that was cut off", ([, ...more]) => more, ["1 has the number 2 after 0"]],
  ])("shows %s", async (_, change, expected) => {
    await write(5);
    await writeFile(path, `${change(await lines()).join("\n")}\n`);
    expect(await problems()).toEqual(expected);
  });

  it("shows an end that was cut off, and a chain that was written anew, against a head that was kept", async () => {
    const head = await write(5);
    const all = await lines();
    await writeFile(path, `${all.slice(0, 3).join("\n")}\n`);
    expect(await problems()).toEqual([]);
    expect(await problems([head])).toEqual(["0 has no record 5, which was kept as a head"]);
    await rm(path);
    await write(5, 100);
    expect(await problems([head])).toEqual(["5 is not the record 5 whose hash was kept"]);
  });

  it("goes on after a line that a killed process left half written, and says so", async () => {
    await write(2);
    const whole = (await readFile(path)).length;
    await appendFile(path, '{"seq":3,"prev":"ab');
    const head = await write(2, 2);
    expect(head.seq).toBe(5);
    const report = await verifyAudit(path, [head]);
    expect([report.faults, report.notes.map(({ line, problem }) => `${line} ${problem}`)]).toEqual([
      [],
      ["3 was not written to its end"],
    ]);
    await truncate(path, whole + 5);
    expect((await verifyAudit(path)).notes).toHaveLength(1);
    await rm(path);
    await writeFile(path, '{"seq":1');
    await write(1);
    expect(await problems()).toEqual([]);
  });

  it("is set aside when it is full, and the chain goes through all of them", async () => {
    const file = await AuditFile.open(path, { maxBytes: 2_000 });
    for (let n = 0; n < 60; n += 1) {
      file.add({ event: "call", operation: `shop.op${n}` });
      if (n % 7 === 0) await file.flush();
    }
    await file.close();
    const files = await auditFiles(path);
    expect(files.length).toBeGreaterThan(3);
    expect(await verifyAudit(path, [file.head])).toMatchObject({ records: 60, faults: [] });
    await rm(files[1] as string);
    expect((await verifyAudit(path)).faults).toHaveLength(1);
    expect((await readdir(folder)).some((name) => name.endsWith(".lock"))).toBe(false);
  });

  it.each([
    ["is there and empty", async () => await writeFile(path, "")],
    ["is not there yet", async () => await rm(path, { force: true })],
    ["has part of its first line", async () => await writeFile(path, '{"seq":61,"pr')],
  ])("goes on with the chain where the file after one that was set aside %s", async (_, leave) => {
    const file = await AuditFile.open(path, { maxBytes: 1 });
    file.add({ event: "call", operation: "shop.op0" });
    await file.flush();
    file.add({ event: "call", operation: "shop.op1" });
    await file.close();
    expect(await readFile(path, "utf8")).toBe("");
    await leave();
    const head = await write(1);
    expect(head.seq).toBeGreaterThan(2);
    await write(1);
    const report = await verifyAudit(path, [file.head, head]);
    expect(report.faults).toEqual([]);
    const again = await AuditFile.open(path, { maxBytes: 1 });
    again.add({ event: "call" });
    await again.close();
    expect((await auditFiles(path)).map((name) => name.slice(path.length - 6, -6))).toEqual([
      ".000000000001",
      ".000000000002",
      ".000000000003",
      "",
    ]);
    expect((await verifyAudit(path, [again.head])).faults).toEqual([]);
  });

  it("opens again after a beginning and after two records in a row that were left half written", async () => {
    await writeFile(path, '{"seq":1');
    await write(1);
    await write(1);
    await appendFile(path, '{"seq":4,"prev":"ab');
    await appendFile(path, '\n{"seq":4,"torn":tr');
    const head = await write(1);
    expect(await verifyAudit(path, [head])).toMatchObject({ records: 5, faults: [] });
  });

  it("names a half-written line that ends within a character", async () => {
    await write(1);
    await appendFile(path, Buffer.from('{"seq":2,"subject":"é').subarray(0, -1));
    await write(1);
    expect(await problems()).toEqual([]);
  });

  it("shows what was taken out or changed right before a half-written line", async () => {
    await write(3);
    await appendFile(path, '{"seq":4,"pr');
    await write(1);
    const [a, b, c, ...more] = (await lines()) as [string, string, string, ...string[]];
    await writeFile(path, [a, b, ...more, ""].join("\n"));
    expect(await problems()).not.toEqual([]);
    await writeFile(path, [a, b, c.replace("shop.op2", "shop.opX"), ...more, ""].join("\n"));
    expect(await problems()).not.toEqual([]);
    await writeFile(path, [a, b, c, ...more, ""].join("\n"));
    expect(await problems()).toEqual([]);
  });

  it("is read whole while it is set aside", async () => {
    const file = await AuditFile.open(path, { maxBytes: 2_000 });
    const add = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) file.add({ event: "call", operation: "shop.op" });
      await file.flush();
    };
    for (let n = 0; n < 5; n += 1) await add(7);
    await add(3);
    const seen: unknown[] = [];
    for await (const { record } of readAudit(path)) {
      if (seen.length === 0) await add(20);
      seen.push(record?.seq);
    }
    await file.close();
    expect(seen.length).toBeGreaterThanOrEqual(38);
    expect(seen).toEqual(seen.map((_, at) => at + 1));
  });

  it("is written by one process alone, and the hold of one that has ended is taken over", async () => {
    const file = await AuditFile.open(path);
    await expect(AuditFile.open(path)).rejects.toThrow(`Process ${process.pid} writes the audit file`);
    await file.close();
    await writeFile(`${path}.lock`, "4194399 1");
    await (await AuditFile.open(path)).close();
  });

  it("is no file of another kind", async () => {
    await writeFile(path, "some notes\n");
    await expect(AuditFile.open(path)).rejects.toThrow("is no audit file");
    expect(await readFile(path, "utf8")).toBe("some notes\n");
  });

  it("cuts a record that is too long, and keeps what it is about", async () => {
    const file = await AuditFile.open(path);
    file.add({ operation: "a.b", note: "x".repeat(AUDIT_LIMITS.record) });
    await file.close();
    const [line = ""] = await lines();
    expect(line.length).toBeLessThan(1_000);
    expect(JSON.parse(line)).toMatchObject({ operation: "a.b", isCut: true });
  });

  it("keeps who approved a call and as whom it was made, whatever its source has found in its results", async () => {
    const file = await AuditFile.open(path);
    const [upstream, approval] = [
      { as: "caller", grant: "g1" },
      { id: "a1", decision: "approved", by: "ada" },
    ];
    // Of names of members that a server made up, each character takes six in JSON.
    const marked = Array.from({ length: 20 }, () => ({ pointer: "\u0001".repeat(200), kind: "cards" }));
    file.add({ operation: "a.b", subject: "\u0001".repeat(4_000), upstream, approval, findings: 20, marked });
    await file.close();
    const [line = ""] = await lines();
    expect(line.length).toBeLessThan(AUDIT_LIMITS.record);
    expect(JSON.parse(line)).toMatchObject({
      operation: "a.b",
      upstream,
      approval,
      findings: 20,
      isCut: true,
    });
  });

  it("drops records past its bound, and says how many when there is room again", async () => {
    const file = await AuditFile.open(path);
    const note = "x".repeat(8_192);
    const fit = Math.floor(AUDIT_LIMITS.waiting / 8_192) + 10;
    for (let n = 0; n < fit + 50; n += 1) file.add({ note });
    expect(file.dropped).toBeGreaterThan(0);
    await file.flush();
    file.add({ operation: "a.b" });
    await file.close();
    const last = (await lines()).slice(-2).map((line) => JSON.parse(line));
    expect(last).toMatchObject([{ event: "audit", dropped: file.dropped }, { operation: "a.b" }]);
    expect(await problems([file.head])).toEqual([]);
  });
});
