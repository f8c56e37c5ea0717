import { describe, expect, it } from "vitest";
import { defineOperation, type GatedFeature, OperationRegistry, Type } from "../../index.ts";

const features: readonly GatedFeature[] = [
  { name: "deep", tier: "pro", reason: "Deep scans take long.", pointer: "/options/deep" },
  { name: "export", tier: "enterprise", pointer: "/export" },
  { name: "history", tier: "pro" },
];

const scan = defineOperation({
  namespace: "code",
  name: "scan",
  version: "1.0.0",
  type: "query",
  description: "Scans.",
  inputSchema: Type.Any(),
  features,
  handler: (input: unknown, { requireFeature }) => {
    if ((input as { history?: boolean } | undefined)?.history === true) requireFeature("history");
    if ((input as { odd?: boolean } | undefined)?.odd === true) requireFeature("odd");
    return "scanned";
  },
});
const audit = defineOperation({ ...withoutId(scan), name: "audit", tier: "enterprise", features: [] });
const registry = new OperationRegistry([scan, audit]);

function withoutId({ id: _, ...spec }: typeof scan) {
  return spec;
}

const as = (tier?: string) => ({ identity: { subject: "ada", ...(tier !== undefined && { tier }) } });
const call = (input: unknown, tier?: string) => registry.execute("code.scan", input, as(tier));

describe("tiers", () => {
  it.each(["enterprise"])("CS-9 lets the %s tier call an operation that asks for it", async (tier) => {
    expect(await registry.execute("code.audit", {}, as(tier))).toMatchObject({ data: "scanned" });
  });

  it.each([undefined, "community", "pro", "gold", "ENTERPRISE", "__proto__", "toString"])(
    "CS-2 CS-8 CS-9 refuses tier %s, with a hint what to get",
    async (tier) => {
      await expect(registry.execute("code.audit", {}, as(tier))).rejects.toMatchObject({
        code: "UPGRADE_REQUIRED",
        details: {
          upgradeHints: [
            {
              feature: "code.audit",
              tier: "enterprise",
              reason: '"code.audit" is part of the enterprise tier.',
            },
          ],
        },
      });
    },
  );

  it("CS-2 takes an anonymous caller for the lowest tier", async () => {
    await expect(registry.execute("code.audit", {})).rejects.toMatchObject({ code: "UPGRADE_REQUIRED" });
    expect(await registry.execute("code.scan", {})).toMatchObject({ data: "scanned" });
  });

  it("CS-9 lists an operation above the caller's tier, so that they learn of it", () => {
    expect(registry.list().map(({ id }) => id)).toContain("code.audit");
  });
});

describe("gated features", () => {
  it("CS-8 refuses what the input asks for, with its reason, and runs nothing", async () => {
    await expect(call({ options: { deep: true } })).rejects.toMatchObject({
      code: "UPGRADE_REQUIRED",
      details: { upgradeHints: [{ feature: "deep", tier: "pro", reason: "Deep scans take long." }] },
    });
  });

  it.each([
    [
      "an accessor",
      {
        get export() {
          return "csv";
        },
      },
    ],
    ["an inherited property", Object.create({ export: "csv" })],
    [
      "an accessor on the way",
      {
        get options() {
          return { deep: true };
        },
      },
    ],
    [
      "a proxy that throws",
      new Proxy(
        {},
        {
          has: () => {
            throw new Error("no");
          },
        },
      ),
    ],
  ])("CS-9 takes %s for asking", async (_, input) => {
    await expect(call(input)).rejects.toMatchObject({ code: "UPGRADE_REQUIRED" });
  });

  it("CS-8 hints at every feature that is missing", async () => {
    await expect(call({ options: { deep: 1 }, export: "csv" })).rejects.toMatchObject({
      details: { upgradeHints: [{ feature: "deep" }, { feature: "export" }] },
    });
    await expect(call({ options: { deep: 1 }, export: "csv" }, "pro")).rejects.toMatchObject({
      details: { upgradeHints: [{ feature: "export", tier: "enterprise" }] },
    });
  });

  it.each([
    ["pro", { options: { deep: true } }],
    ["enterprise", { options: { deep: true }, export: "csv" }],
    ["community", { options: { deep: false }, export: null }],
    ["community", { options: "deep" }],
    ["community", undefined],
  ])("CS-9 lets a %s caller ask for %j", async (tier, input) => {
    expect(await call(input, tier)).toMatchObject({ data: "scanned" });
  });

  it("CS-8 lets the handler ask for a feature it finds it needs", async () => {
    await expect(call({ history: true })).rejects.toMatchObject({
      code: "UPGRADE_REQUIRED",
      details: {
        upgradeHints: [{ feature: "history", tier: "pro", reason: '"history" is part of the pro tier.' }],
      },
    });
    expect(await call({ history: true }, "pro")).toMatchObject({ data: "scanned" });
  });

  it("CS-9 takes an undeclared feature for a mistake of the handler", async () => {
    await expect(call({ odd: true }, "enterprise")).rejects.toMatchObject({
      code: "EXECUTION_ERROR",
      cause: expect.objectContaining({ message: 'Operation "code.scan" declares no feature "odd".' }),
    });
  });

  it.each([
    ["/deeep", true],
    ["/deep", false],
    ["/options/dry", false],
    ["/options/dri", true],
    ["/any/thing", false],
    ["/list/0", false],
  ])("CS-9 refuses a pointer its schema does not know: %s (%s)", (pointer, isRefused) => {
    const inputSchema = Type.Object({
      deep: Type.Optional(Type.Boolean()),
      options: Type.Optional(Type.Object({ dry: Type.Boolean() })),
      any: Type.Optional(Type.Any()),
      list: Type.Optional(Type.Array(Type.String())),
    });
    const spec = {
      ...withoutId(scan),
      inputSchema,
      features: [{ name: "x", tier: "pro" as const, pointer }],
    };
    const register = () => new OperationRegistry([defineOperation(spec as never)]);
    if (isRefused) expect(register).toThrow("leads to nothing its inputSchema knows");
    else expect(register).not.toThrow();
  });

  it.each([
    [[{ name: "x", tier: "pro", pointr: "/x" }], 'a feature has no "pointr"'],
    [[{ name: "", tier: "pro" }], "a feature needs a name"],
    [[{ name: "x", tier: "gold" }], 'the tier of feature "x" must be one of community, pro, enterprise'],
    [[{ name: "x", tier: "pro", pointer: "x" }], 'the pointer of feature "x" must be a JSON pointer'],
    [
      [
        { name: "x", tier: "pro" },
        { name: "x", tier: "pro" },
      ],
      "a feature is listed twice",
    ],
    [{}, "features must be a list"],
  ])("CS-9 refuses to register %j", (given, message) => {
    const spec = { ...withoutId(scan), features: given as never };
    expect(() => new OperationRegistry([defineOperation(spec)])).toThrow(message);
  });
});
