import { expect, onTestFinished, vi } from "vitest";
import {
  type CallToolResult,
  createToolCaller,
  FORMATS,
  tieredEnvelope as makeEnvelope,
  parseTieredEnvelope,
  TIERED_ERROR_CODES,
  TIERS,
  type TieredEnvelope,
  toolOutputSchema,
} from "../../src/formats/index.ts";
import examples from "../../src/formats/tiered-envelope/published-examples.json" with { type: "json" };
import {
  CallError,
  compileSchema,
  ERROR_CODES,
  OperationRegistry,
  result,
  Type,
  toolError,
} from "../../src/index.ts";
import { query } from "../make-operation.ts";
import { registryOf, type SeedDocument, textAt } from "./sentence.ts";

const [success, failure] = examples.examples as unknown as [TieredEnvelope, TieredEnvelope];
const FIELDS = [
  ...[
    "tier",
    "tool_version",
    "tool_id",
    "request_id",
    "capabilities",
    "duration_ms",
    "error",
    "upgrade_hints",
  ],
  "data",
];
const HINT = { feature: "deep", tier: "pro", reason: "Deep scans take long." };
const CODE = "const password = 'hunter2';";

const scan = query("code.scan", () => ({ findings: [] }), {
  version: "3.2.8",
  inputSchema: Type.Object({ deep: Type.Optional(Type.Boolean()) }),
  outputSchema: Type.Object({ findings: Type.Array(Type.String()) }),
  features: [{ name: "deep", tier: "pro", reason: HINT.reason, pointer: "/deep" }],
});
const registry = registryOf([
  scan,
  query("code.none", () => undefined),
  query("code.fails", () => {
    throw new Error(`Unexpected token in ${CODE}`);
  }),
  query("code.denies", () => {
    throw new CallError("NOT_FOUND", `No symbol in ${CODE}`, { details: { line: CODE } });
  }),
  query("code.says-no", () =>
    toolError({ success: false }, { code: "NOT_FOUND", message: "No such file.", details: { path: "a.py" } }),
  ),
  query("code.upgrade", () => toolError(null, { code: "UPGRADE_REQUIRED", message: "Not in your plan." })),
  query("code.capable", () => result(1, { capabilities: ["incremental"], upgradeHints: [HINT] })),
  query("code.enterprise", () => 1, { tier: "enterprise" }),
]);
const call = createToolCaller(registry, { format: "tiered-envelope" });
const envelopeOf = (carrier: CallToolResult) => parseTieredEnvelope(carrier.structuredContent);
const envelope = async (...given: Parameters<typeof call>) => envelopeOf(await call(...given));

/** One field with a value that it may not have. */
const SPOILED: Readonly<Record<string, readonly unknown[]>> = {
  tier: ["gold", 1, null],
  tool_version: [3, null],
  tool_id: [3, null],
  request_id: [3, null],
  capabilities: ["envelope-v1", [1], null],
  duration_ms: ["27", -1, Number.NaN],
  error: ["File not found", [], undefined],
  upgrade_hints: [{}, [{ feature: "x" }], null],
  data: [],
};
const without = (value: object, key: string) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
const isRefused = (value: unknown) =>
  expect(() => parseTieredEnvelope(value)).toThrow(expect.objectContaining({ code: "bad_shape" }));

/** The contract of the tiered response envelope. */
export const tieredEnvelope: SeedDocument = {
  Goals: [
    [
      "CS-1",
      "every tool returns the same fields at the top, whatever comes of the call",
      async () => {
        const ids = ["code.scan", "code.none", "code.fails", "code.denies", "code.says-no", "code.nowhere"];
        for (const id of ids) expect(Object.keys(await envelope(id, {}))).toEqual(FIELDS);
        expect(Object.keys(await envelope("code.scan", { deep: 7 }))).toEqual(FIELDS);
      },
    ],
    [
      "CS-3 X-9",
      "a caller correlates requests by request_id",
      async () => {
        const found = await envelope("code.scan", {}, { requestId: "trace-7" });
        expect(found.request_id).toBe("trace-7");
      },
    ],
    [
      "CS-2 CS-9",
      "a caller can tell the tier, and the tool's metadata",
      async () => {
        const found = await envelope("code.scan", {}, { identity: { subject: "ada", tier: "pro" } });
        expect(found).toMatchObject({ tier: "pro", tool_id: "code.scan", tool_version: "3.2.8" });
      },
    ],
    [
      "CS-7 X-5",
      "every error has a code of the published list",
      () => {
        for (const { tieredCode } of Object.values(ERROR_CODES))
          expect(TIERED_ERROR_CODES).toContain(tieredCode);
        const eleven = ["invalid_argument", "invalid_path", "forbidden", "not_found", "timeout", "too_large"];
        const rest = ["resource_exhausted", "not_implemented", "upgrade_required", "dependency_unavailable"];
        expect(TIERED_ERROR_CODES).toEqual([...eleven, ...rest, "internal_error"]);
      },
    ],
  ],
  "Envelope schema": [
    [
      "CS-1 CS-11",
      "a tool returns a JSON object with the fields: as structured content, and as text",
      async () => {
        const carrier = await call("code.scan", {});
        expect(JSON.parse(textAt(carrier.content, 0))).toEqual(carrier.structuredContent);
        const schema = toolOutputSchema(scan, "tiered-envelope");
        expect(compileSchema(schema ?? false).check(carrier.structuredContent)).toBe(true);
      },
    ],
    [
      "CS-1",
      "all fields must be there",
      () => {
        for (const field of FIELDS) isRefused(without(success, field));
      },
    ],
    ...Object.entries(SPOILED)
      .filter(([, values]) => values.length > 0)
      .map(
        ([field, values]) =>
          [
            "CS-1",
            `${field} has the type it is given`,
            () => {
              for (const value of values) isRefused({ ...success, [field]: value });
            },
          ] as const,
      ),
    [
      "CS-2",
      "tier is one of three",
      () => {
        expect(TIERS).toEqual(["community", "pro", "enterprise"]);
        for (const tier of TIERS) expect(parseTieredEnvelope({ ...success, tier }).tier).toBe(tier);
      },
    ],
    [
      "CS-2",
      "a caller without a tier, or with one nobody knows, has the lowest",
      async () => {
        expect((await envelope("code.scan", {})).tier).toBe("community");
        const identity = { subject: "eve", tier: "platinum" as never };
        expect((await envelope("code.scan", {}, { identity })).tier).toBe("community");
      },
    ],
    [
      "CS-11",
      "tool_version is the semantic version of the tool",
      async () => {
        expect((await envelope("code.scan", {})).tool_version).toBe("3.2.8");
        expect(() => registryOf([query("a.b", () => 1, { version: "three" })])).toThrow(/version/);
        const written = FORMATS["tiered-envelope"].encode({ isError: false, data: 1, toolVersion: "three" });
        expect(envelopeOf(written).tool_version).toBe("0.0.0");
      },
    ],
    [
      "X-9",
      "tool_id is the tool's id, as it was called",
      async () => expect((await envelope("code.scan", {})).tool_id).toBe("code.scan"),
    ],
    [
      "CS-3",
      "request_id is the caller's, or made by the server",
      async () => {
        expect((await envelope("code.scan", {}, { requestId: "r1" })).request_id).toBe("r1");
        expect((await envelope("code.scan", {})).request_id).toMatch(/^[0-9a-f]{32}$/);
      },
    ],
    [
      "CS-11 X-7",
      "capabilities tell what this invocation supports",
      async () => {
        expect((await envelope("code.capable", {})).capabilities).toEqual(["envelope-v1", "incremental"]);
        expect((await envelope("code.scan", {})).capabilities).toEqual(["envelope-v1"]);
        const own = createToolCaller(registry, { format: "tiered-envelope", capabilities: ["streaming"] });
        const found = envelopeOf(await own("code.scan", {}));
        expect(found.capabilities).toEqual(["envelope-v1", "streaming"]);
      },
    ],
    [
      "CS-4",
      "duration_ms is the time from end to end, what is waited for included",
      async () => {
        const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
        onTestFinished(() => clock.mockRestore());
        const slow = query("a.slow", async () => {
          await Promise.resolve();
          clock.mockReturnValue(1_027);
          return 1;
        });
        const timed = createToolCaller(new OperationRegistry([slow]), { format: "tiered-envelope" });
        expect(envelopeOf(await timed("a.slow", {})).duration_ms).toBe(27);
      },
    ],
    [
      "CS-4",
      "duration_ms is required for pro and enterprise",
      () => {
        for (const tier of ["pro", "enterprise"]) isRefused({ ...without(success, "duration_ms"), tier });
      },
    ],
    [
      "CS-4",
      "duration_ms is recommended for community: it may be missing, and is always written",
      async () => {
        const bare = { ...without(success, "duration_ms"), tier: "community" };
        expect(parseTieredEnvelope(bare)).toBe(bare);
        expect((await envelope("code.scan", {})).duration_ms).toBeGreaterThanOrEqual(0);
      },
    ],
    [
      "CS-5",
      "error is null, or an object",
      async () => {
        expect((await envelope("code.scan", {})).error).toBeNull();
        expect((await envelope("code.fails", {})).error).toBeTypeOf("object");
      },
    ],
    [
      "CS-1",
      "upgrade_hints is a list, an empty one where there is nothing to say",
      async () => {
        expect((await envelope("code.scan", {})).upgrade_hints).toEqual([]);
        expect((await envelope("code.capable", {})).upgrade_hints).toEqual([HINT]);
      },
    ],
    [
      "CS-1",
      "data is the tool's own response model, anything or null",
      async () => {
        expect((await envelope("code.scan", {})).data).toEqual({ findings: [] });
        expect((await envelope("code.none", {})).data).toBeNull();
        for (const data of [0, false, "", [], null, { a: 1 }])
          expect(parseTieredEnvelope({ ...success, data }).data).toEqual(data);
      },
    ],
  ],
  "Error model": [
    [
      "CS-5",
      "an error has a message for people and a code for machines",
      () => {
        for (const key of ["error", "error_code"]) {
          isRefused({ ...failure, error: without(failure.error ?? {}, key) });
          isRefused({ ...failure, error: { ...failure.error, [key]: 7 } });
        }
      },
    ],
    [
      "CS-5",
      "error_details is an object, or null",
      async () => {
        for (const error_details of [{ line: 3 }, null]) {
          const given = { ...failure, error: { ...failure.error, error_details } };
          expect(parseTieredEnvelope(given).error?.error_details).toEqual(error_details);
        }
        for (const error_details of ["line 3", 3, []])
          isRefused({ ...failure, error: { ...failure.error, error_details } });
        expect((await envelope("code.fails", {})).error?.error_details).toBeNull();
        expect((await envelope("code.says-no", {})).error?.error_details).toEqual({ path: "a.py" });
      },
    ],
    [
      "CS-6",
      "an error has no contents of code in it, whatever was thrown",
      async () => {
        for (const id of ["code.fails", "code.denies"])
          expect(JSON.stringify(await call(id, {}))).not.toContain("hunter2");
        expect((await envelope("code.denies", {})).error).toEqual({
          error: ERROR_CODES.NOT_FOUND.message,
          error_code: "not_found",
          error_details: null,
        });
      },
      "006",
    ],
    [
      "CS-6 X-7",
      "what a handler says on purpose is said",
      async () => {
        const { error } = await envelope("code.says-no", {});
        expect(error).toMatchObject({ error: "No such file.", error_code: "not_found" });
      },
      "006",
    ],
    [
      "CS-5",
      "a tool may put details of a failure into data as well; error is what counts",
      async () => {
        const carrier = await call("code.says-no", {});
        const { data, error } = envelopeOf(carrier);
        expect(data).toEqual({ success: false });
        expect([error?.error_code, carrier.isError]).toEqual(["not_found", true]);
        const { isError } = FORMATS["tiered-envelope"].decode({
          content: [],
          structuredContent: { ...success, data: { success: false } },
        }).result;
        expect(isError).toBe(false);
      },
    ],
    [
      "CS-7",
      "a code that this list does not have is kept when it is read",
      () => {
        const error = { error: "x", error_code: "disk_full", error_details: null };
        const carrier = { content: [], structuredContent: { ...failure, error }, isError: true };
        const { result: read } = FORMATS["tiered-envelope"].decode(carrier);
        expect(read.error?.code).toBe("disk_full");
        expect(envelopeOf(FORMATS["tiered-envelope"].encode(read)).error).toEqual(error);
      },
    ],
  ],
  "Upgrade hints": [
    [
      "CS-8 CS-9",
      "a feature that the tier does not have is answered with a hint for it",
      async () => {
        const { error, upgrade_hints } = await envelope("code.scan", { deep: true });
        expect(error?.error_code).toBe("upgrade_required");
        expect(upgrade_hints).toEqual([HINT]);
        const pro = { identity: { subject: "ada", tier: "pro" as const } };
        expect((await envelope("code.scan", { deep: true }, pro)).error).toBeNull();
      },
    ],
    [
      "CS-8",
      "one hint or more, also where the whole tool is out of reach or a handler says so itself",
      async () => {
        for (const id of ["code.enterprise", "code.upgrade"]) {
          const { error, upgrade_hints } = await envelope(id, {});
          expect(error?.error_code).toBe("upgrade_required");
          expect(upgrade_hints.length).toBeGreaterThan(0);
        }
      },
    ],
    [
      "CS-8",
      "a hint has a feature, a tier and a reason, all texts",
      () => {
        for (const key of ["feature", "tier", "reason"]) {
          isRefused({ ...success, upgrade_hints: [without(HINT, key)] });
          isRefused({ ...success, upgrade_hints: [{ ...HINT, [key]: 3 }] });
        }
        expect(parseTieredEnvelope({ ...success, upgrade_hints: [HINT] }).upgrade_hints).toEqual([HINT]);
      },
    ],
  ],
  Examples: [
    ...[success, failure].map(
      (example, index) =>
        [
          "CS-10",
          `the ${index === 0 ? "success" : "error"} is read, and written again as it is`,
          () => {
            expect(JSON.stringify(parseTieredEnvelope(JSON.stringify(example)))).toBe(
              JSON.stringify(example),
            );
            const { result: read } = FORMATS["tiered-envelope"].decode({
              content: [{ type: "text", text: JSON.stringify(example) }],
              structuredContent: example,
              ...(example.error !== null && { isError: true }),
            });
            const written = FORMATS["tiered-envelope"].encode(read);
            expect(JSON.stringify(written.structuredContent)).toBe(JSON.stringify(example));
            expect(textAt(written.content, 0)).toBe(JSON.stringify(example));
          },
        ] as const,
    ),
    [
      "CS-1 X-8",
      "the factory makes both of them, field by field",
      () => {
        for (const example of [success, failure])
          expect(JSON.stringify(makeEnvelope(example))).toBe(JSON.stringify(example));
        expect(() => makeEnvelope({ toolId: "x" } as never)).toThrow(/tool_id/);
      },
    ],
    [
      "CS-11",
      "a tool result that carries one says that it failed exactly where error is not null",
      async () => {
        expect((await call("code.scan", {})).isError).toBeUndefined();
        expect((await call("code.says-no", {})).isError).toBe(true);
      },
      "CTR `isError` is set exactly when `error` is not null",
    ],
  ],
};
