import { stat } from "node:fs/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { openEmbeddedForTest } from "../../../test/open-embedded.ts";
import { OperationRegistry } from "../../index.ts";
import { fromOpenApi } from "../../openapi/index.ts";

function listeners(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;
}

describe("the embedded default", () => {
  it("starts nothing for what is not needed", async () => {
    const before = listeners();
    const { loaded, stateFile } = await openEmbeddedForTest((name) => name === "parcel");
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
    const { loaded, close } = await openEmbeddedForTest((name) => name === "tariff");
    const url = loaded.config.openapi?.["tariff"]?.document ?? "";
    expect((await fetch(url)).status).toBe(200);
    await close();
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });
});

describe("the tariff service", () => {
  async function openTariff(): Promise<OperationRegistry> {
    const { loaded } = await openEmbeddedForTest((name) => name === "tariff");
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
    const { loaded } = await openEmbeddedForTest((name) => name === "tariff");
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
  });
});
