import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { OperationRegistry } from "../../index.ts";
import { fromOpenApi } from "../../openapi/index.ts";
import { type Embedded, openEmbedded } from "./embedded-config.ts";

/** Opens some of the embedded default with a state folder of its own; both go when the test is over. */
async function openForTest(only: (name: string) => boolean): Promise<Embedded> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-embedded-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const embedded = await openEmbedded({ env: { WAYBILL_STATE_DIR: folder }, only });
  onTestFinished(() => embedded.close());
  return embedded;
}

function listeners(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;
}

describe("the embedded default", () => {
  it("starts nothing for what is not needed", async () => {
    const before = listeners();
    const { loaded, stateFile } = await openForTest((name) => name === "parcel");
    expect([loaded.config.openapi, loaded.config.mcpServers]).toEqual([{}, {}]);
    expect(listeners()).toBeLessThanOrEqual(before);
    expect(loaded.localOperations?.map(({ id }) => id)).toEqual([
      "parcel.book",
      "parcel.track",
      "parcel.list",
      "parcel.deliver",
      "parcel.plan",
      "parcel.watch",
    ]);
    await expect(stat(stateFile)).rejects.toThrow("ENOENT");
    const office = new OperationRegistry(loaded.localOperations ?? []);
    await office.execute("parcel.book", { to: "Bern" });
    expect((await stat(stateFile)).size).toBeGreaterThan(0);
  });

  it("stops listening when it is closed, though calls were made", async () => {
    const { loaded, close } = await openForTest((name) => name === "tariff");
    const url = loaded.config.openapi?.["tariff"]?.document ?? "";
    expect((await fetch(url)).status).toBe(200);
    await close();
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });
});

describe("the tariff service", () => {
  async function openTariff(): Promise<OperationRegistry> {
    const { loaded } = await openForTest((name) => name === "tariff");
    const source = await fromOpenApi(loaded.config.openapi?.["tariff"]?.document ?? "", {
      namespace: "tariff",
    });
    onTestFinished(() => source.close());
    expect([source.unusable, source.notes]).toEqual([[], []]);
    const registry = new OperationRegistry([], { outputPolicy: "strict" });
    registry.registerAll(source);
    return registry;
  }

  it("answers as its document says", async () => {
    const tariff = await openTariff();
    expect(tariff.list().map(({ id }) => id)).toEqual([
      "tariff.convert",
      "tariff.quote",
      "tariff.zone",
      "tariff.zones",
    ]);
    const quote = await tariff.execute("tariff.quote", {
      kg: 2.5,
      zone: "europe",
      service: "express",
      insured: true,
    });
    expect(quote.data).toEqual({
      zone: "europe",
      service: "express",
      kg: 2.5,
      price: { amount: 18.8, currency: "EUR" },
      days: 2,
      lines: [
        { what: "base", amount: 7.9 },
        { what: "weight", amount: 8.4 },
        { what: "insurance", amount: 2.5 },
      ],
    });
    expect((await tariff.execute("tariff.zones", {})).data).toHaveLength(3);
    expect((await tariff.execute("tariff.zone", { code: "world" })).data).toMatchObject({ code: "world" });
    const body = { amount: { amount: 10, currency: "EUR" }, to: "CHF" };
    expect((await tariff.execute("tariff.convert", { body })).data).toEqual({ amount: 9.5, currency: "CHF" });
  });

  it("says what it does not know", async () => {
    const tariff = await openTariff();
    const body = { amount: { amount: 10, currency: "EUR" }, to: "XYZ" };
    await expect(tariff.execute("tariff.convert", { body })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
      details: { status: 422, body: { known: expect.arrayContaining(["EUR"]) } },
    });
    await expect(tariff.execute("tariff.zone", { code: "mars" })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    await expect(tariff.execute("tariff.quote", { kg: 31, zone: "europe" })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
  });

  it("survives what no document allows", async () => {
    const { loaded } = await openForTest((name) => name === "tariff");
    const at = (path: string): URL => new URL(path, loaded.config.openapi?.["tariff"]?.document);
    const asked = await Promise.all([
      fetch(at("/quote")),
      fetch(at("/quote?kg=NaN&zone=europe")),
      fetch(at("/quote?kg=1&zone=__proto__")),
      fetch(at("/quote?kg=1&zone=europe&service=slow")),
      fetch(at("/convert"), { method: "POST", body: "{" }),
      fetch(at("/convert"), {
        method: "POST",
        body: '{"amount":{"amount":1,"currency":"__proto__"},"to":"EUR"}',
      }),
      fetch(at("/zones/%"), { method: "DELETE" }),
      fetch(at("/nothing")),
    ]);
    expect(asked.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 422, 404, 404]);
    for (const { headers } of asked) expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it.each([
    ["nonsense\r\n\r\n", 400],
    ["GET / HTTP/1.1\r\nhost: localhost\r\nexpect: the-moon\r\nconnection: close\r\n\r\n", 417],
    // In one piece: what a server has not read when it closes resets the connection, and the answer may be lost with it.
    [`GET / HTTP/1.1\r\nhost: localhost\r\na: ${"x".repeat(20_000)}\r\n\r\n`, 431],
  ])("RE-30 is never guessed of what answers bytes that are no request: %#", async (text, status) => {
    const { loaded } = await openForTest((name) => name === "tariff");
    const { port } = new URL(loaded.config.openapi?.["tariff"]?.document ?? "");
    const socket = connect(Number(port), "127.0.0.1").on("error", () => {});
    socket.write(text);
    let answer = "";
    for await (const bytes of socket as AsyncIterable<Buffer>) answer += bytes.toString("latin1");
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/x-content-type-options: nosniff\r\n/i);
  });
});
