import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { createGateway, type Gateway } from "../src/gateway/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { labelledTexts, recordedTexts } from "./guard-texts.ts";
import { query } from "./make-operation.ts";
import { ROOT } from "./run-node.ts";
import { loadedConfig } from "./served-gateway.ts";

const EACH = 50;

/** A gateway that marks whatever guards find in the texts it is given; links lead to one host only. */
async function marker(): Promise<Gateway> {
  const guard = {
    credentials: "mark",
    cards: "mark",
    hidden: "mark",
    links: "mark",
    linkHosts: ["*.com", "*.org", "*.io", "*.dev", "*.net"],
  } as const;
  const loaded = loadedConfig({ policies: { "*": { guard } } });
  const inputSchema = { type: "object", properties: { text: { type: "string" } } } as const;
  const echo = query("guard.echo", (input) => input, { inputSchema });
  const gateway = await createGateway({ ...loaded, localOperations: [echo] });
  await gateway.ready;
  return gateway;
}

async function kindsIn(gateway: Gateway, text: string): Promise<ReadonlySet<string>> {
  const { meta } = await gateway.executor.execute("guard.echo", { text });
  return new Set(meta.waybill?.findings?.map(({ kind }) => kind));
}

describe("what guards find in labelled texts", () => {
  const found = new Map<string, { label: string; hits: number; all: number }>();

  beforeAll(async () => {
    const gateway = await marker();
    for (const { label, form, text } of labelledTexts(EACH)) {
      const kinds = await kindsIn(gateway, text);
      const row = found.get(form) ?? { label, hits: 0, all: 0 };
      found.set(form, row);
      row.all += 1;
      if (label === "none" ? kinds.size > 0 : kinds.has(label)) row.hits += 1;
    }
    await gateway.close();
  });

  const rateOf = (label: string): number => {
    const rows = [...found.values()].filter((row) => row.label === label);
    return rows.reduce((sum, { hits }) => sum + hits, 0) / rows.reduce((sum, { all }) => sum + all, 0);
  };

  it("is as the docs state it, form by form", () => {
    const document = readFileSync(join(ROOT, "docs/security.md"), "utf8");
    const rows = [...found].map(([form, { label, hits, all }]) => {
      return `| ${form} | ${label} | ${Math.round((hits / all) * 100)} % |`;
    });
    for (const row of rows) expect(document, rows.join("\n")).toContain(row);
  });

  it.each([
    ["credentials", 0.85],
    ["cards", 0.65],
    ["hidden", 1],
    ["links", 1],
  ] as const)("has at least the recall for %s of %d", (label, least) => {
    expect(rateOf(label)).toBeGreaterThanOrEqual(least);
  });

  it("raises a false alarm in at most one harmless text of a hundred", () => {
    expect(rateOf("none")).toBeLessThanOrEqual(0.01);
  });
});

it("raises no alarm in the texts that public servers answered, but for hidden characters and links", async () => {
  const gateway = await marker();
  atEnd(() => gateway.close());
  const alarms: string[] = [];
  let [texts, looked] = [0, 0];
  for (const text of recordedTexts()) {
    texts += 1;
    looked += text.length;
    const kinds = await kindsIn(gateway, text);
    if (kinds.has("credentials") || kinds.has("cards")) alarms.push(text.slice(0, 200));
  }
  expect(alarms).toEqual([]);
  expect(texts, `${looked} characters`).toBeGreaterThan(2_500);
});
