import { describe, expect, it } from "vitest";
import { query } from "../../test/make-operation.ts";
import { endCall } from "../core/result/ended-call.ts";
import {
  CallError,
  compileSchema,
  OperationRegistry,
  type ResultFormat,
  result,
  Type,
  toolError,
} from "../index.ts";
import {
  combineFormats,
  composeToolPayload,
  createResultFormat,
  createResultReader,
  decodeToolResult,
  FORMATS,
  toToolResult,
} from "./index.ts";

const outputSchema = Type.Object({ n: Type.Number() });
const double = query("math.double", (input) => ({ n: (input as { n: number }).n * 2 }), { outputSchema });
const fail = query("math.fail", () => {
  throw new CallError("NOT_FOUND", "No such number.");
});
const registry = new OperationRegistry([double, fail]);
const ended = (id: string, input: unknown) => endCall(registry, id, input, { requestId: "r1" });

/** Writes a call of `math.double` and reads it again as an importer would. */
async function written(format: ResultFormat, id = "math.double") {
  return await format.write(await ended(id, { n: 2 }));
}

describe("a result format", () => {
  it.each(["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const)(
    "X-1 %s writes what ended, whichever way, and describes what it writes",
    async (name) => {
      const format = createResultFormat(name);
      expect(format.name).toBe(name);
      const result = await written(format);
      expect(decodeToolResult(result)).toMatchObject({ format: name, data: { n: 4 } });
      const schema = format.outputSchema(double);
      if (schema === undefined) expect(result.structuredContent).toBeUndefined();
      else expect(compileSchema(schema).check(result.structuredContent)).toBe(true);
      expect(await written(format, "math.fail")).toMatchObject({ isError: true });
    },
  );

  it("X-1 refuses at once what is no tool format", () => {
    expect(() => createResultFormat("response-envelope" as "mcp")).toThrow(TypeError);
    expect(() => createResultFormat("xml" as "mcp")).toThrow(/There is no format "xml"/);
  });
});

describe("next steps and next tools", () => {
  const told = { message: "Nothing is left.", suggestedAction: "Order more.", nextTool: "stock_order" };
  const steps = ["Ask the depot."];
  const said = new OperationRegistry([
    query("stock.steps", () => result(1, { summary: "One", nextSteps: steps })),
    query("stock.none", () => result(1, { summary: "One" })),
    query("stock.gone", () => toolError(0, told)),
    query("stock.goneWithSteps", () => toolError(0, { ...told, nextSteps: steps })),
    query("stock.goneWithText", () => toolError(0, { ...told, markdown: "## Empty" })),
    query("stock.goneWithAll", () => toolError(0, { ...told, markdown: "Call `stock_order`: Order more." })),
  ]);
  const write = (format: ResultFormat, id: string) =>
    endCall(said, id, {}, { requestId: "r1" }).then((call) => format.write(call));
  const textOf = (content: readonly unknown[]) =>
    content.map((block) => (block as { text?: string }).text ?? "").filter((text) => !text.startsWith("__"));

  it("TR-7 next steps can be left out of the text of a status envelope, and stay in its meta", async () => {
    const format = createResultFormat({ format: "status-envelope", omitNextSteps: true });
    const left = await write(format, "stock.steps");
    expect(textOf(left.content)).toEqual(["✅ One"]);
    expect(left.structuredContent).toMatchObject({ meta: { nextSteps: steps } });
    expect(decodeToolResult(left).result).toMatchObject({ nextSteps: steps });
    const usual = await write(createResultFormat("status-envelope"), "stock.steps");
    expect(textOf(usual.content)).toEqual(["✅ One", "Next steps:\n- Ask the depot."]);
    // Nothing is noted where there is nothing to leave out.
    expect(JSON.stringify(await write(format, "stock.none"))).not.toContain("omitsNextSteps");
    expect(textOf((await write(format, "stock.gone")).content)).toEqual(["❌ Nothing is left."]);
  });

  it.each(["tool-envelope", "tiered-envelope", "mcp"] as const)(
    "TR-7 leaving them out is refused for %s, which has no such block",
    (format) => {
      expect(() => createResultFormat({ format, omitNextSteps: true })).toThrow(
        new TypeError(
          `omitNextSteps is an option of the format "status-envelope"; the format "${format}" does not take it.`,
        ),
      );
      expect(() => createResultFormat({ format, omitNextSteps: false })).not.toThrow();
      expect(() => createResultFormat({ format, omitNextSteps: "yes" as never })).toThrow("true or false");
    },
  );

  const names = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const;
  const ids = ["stock.gone", "stock.goneWithSteps", "stock.goneWithText", "stock.goneWithAll"];
  it.each(names.flatMap((name) => ids.map((id) => [name, id] as const)))(
    "TE-7 the text of a %s names what to do and the next tool: %s",
    async (name, id) => {
      const written = await write(createResultFormat(name), id);
      const text = textOf(written.content).join("\n");
      expect(text).toContain("stock_order");
      expect(text).toContain("Order more.");
      expect(text.split("Next tool:").length).toBeLessThanOrEqual(2);
      expect(decodeToolResult(written).error).toMatchObject(told);
    },
  );

  it.each([
    ["search", "Researching took too long."],
    ["search", "The search failed."],
    ["list", "Could not list the orders."],
    ["get_order", "get_orders and re_get_order.get_order-2 are busy."],
  ])(
    "TE-7 the next tool %s is named beside a text that only holds its letters: %s",
    async (nextTool, markdown) => {
      const failing = query("stock.no", () => toolError(0, { message: "m", nextTool, markdown }));
      for (const name of names) {
        const call = await endCall(new OperationRegistry([failing]), "stock.no", {}, { requestId: "r1" });
        const text = textOf((await createResultFormat(name).write(call)).content).join("\n");
        expect(text, name).toMatch(new RegExp(`(Next tool: |Call )${nextTool}`));
      }
    },
  );

  it.each([
    ["search", "Try `search`, please."],
    ["search", "Call search."],
    ["get_order", "Then use get_order."],
    ["shop.get_order", "(shop.get_order)"],
  ])("TE-7 the next tool %s is not named twice: %s", async (nextTool, markdown) => {
    const failing = query("stock.no", () => toolError(0, { message: "m", nextTool, markdown }));
    for (const name of ["tool-envelope", "tiered-envelope", "mcp"] as const) {
      const call = await endCall(new OperationRegistry([failing]), "stock.no", {}, { requestId: "r1" });
      const text = textOf((await createResultFormat(name).write(call)).content).join("\n");
      expect(text, name).not.toContain("Next tool:");
    }
  });

  it("X-8 an error with the status of a success is shown as an error wherever its author did not lay it out", async () => {
    const meta = { status: "ok", summary: "All is well" } as const;
    const odd = query("stock.odd", () =>
      composeToolPayload({ meta, data: 1, isError: true, onWarning: () => {} }),
    );
    for (const name of ["tool-envelope", "mcp"] as const) {
      const call = await endCall(new OperationRegistry([odd]), "stock.odd", {}, { requestId: "r1" });
      const written = await createResultFormat(name).write(call);
      expect(written.isError).toBe(true);
      expect(textOf(written.content)[0]).toBe("❌ All is well");
    }
  });

  it("TE-3 a text that leaves the next tool out is read, and written again as it is", () => {
    const { message, ...advice } = told;
    const payload = { category: "not_found", code: "NONE", message, recoverable: true, ...advice };
    const made = toToolResult({ summaryMarkdown: "## Empty", payload, meta: { tool: "t", ts: "x" } });
    const { result: read } = FORMATS["tool-envelope"].decode(made);
    expect(FORMATS["tool-envelope"].encode(read)).toEqual(made);
    expect(read.content).toEqual([{ type: "text", text: "## Empty" }]);
  });
});

describe("several formats at once", () => {
  it("X-1 write the blocks of each, and the structured content of the one that has any", async () => {
    const both = combineFormats(createResultFormat("status-envelope"), createResultFormat("tool-envelope"));
    expect(both.name).toBe("status-envelope+tool-envelope");
    const result = await written(both);
    expect(result.structuredContent).toMatchObject({ meta: { status: "ok" }, data: { n: 4 } });
    expect(result.content.some((block) => "text" in block && block.text.startsWith("__ENVELOPE_V1__:"))).toBe(
      true,
    );
    expect(both.outputSchema(double)).toEqual(createResultFormat("status-envelope").outputSchema(double));
    expect(await written(both, "math.fail")).toMatchObject({ isError: true });
  });

  it("X-1 a block is not written twice", async () => {
    const text = createResultFormat("tool-envelope");
    const once = await written(text);
    expect((await combineFormats(text, text).write(await ended("math.fail", {}))).isError).toBe(true);
    expect((await written(combineFormats(createResultFormat("mcp"), text))).content.length).toBe(
      once.content.length + 1,
    );
  });

  it("X-1 two that need the structured content are refused", () => {
    const [tiered, status] = [createResultFormat("tiered-envelope"), createResultFormat("status-envelope")];
    expect(() => combineFormats(tiered, status)).toThrow(/both fill the structured content/);
  });
});

describe("a result reader", () => {
  const reader = createResultReader();

  it.each(["tool-envelope", "tiered-envelope", "status-envelope"] as const)(
    "X-2 finds the data of a %s, and the schema of that data",
    async (name) => {
      const format = createResultFormat(name);
      expect(reader.read(await written(format))).toMatchObject({ data: { n: 4 }, format: name });
      expect(reader.read(await written(format, "math.fail"))).toMatchObject({ format: name });
      const advertised = format.outputSchema(double);
      if (advertised === undefined) return;
      const schema = compileSchema(reader.dataSchema?.(advertised) ?? false);
      expect([schema.check({ n: 1 }), schema.check({ n: "1" }), schema.check(undefined)]).toEqual([
        true,
        false,
        false,
      ]);
    },
  );

  it("X-2 leaves a plain result, and anything that is none, to whoever asked", async () => {
    const plain = await written(createResultFormat("mcp"));
    expect(reader.read(plain)).toBeUndefined();
    for (const odd of [undefined, null, 5, {}, { content: 1 }]) expect(reader.read(odd)).toBeUndefined();
    expect(reader.dataSchema?.({ type: "object", properties: { data: {} } })).toEqual({
      type: "object",
      properties: { data: {} },
    });
  });

  it("RE-31 finds JSON in text where it is asked to", () => {
    const result = { content: [{ type: "text", text: '{"n":1}' }] };
    expect(reader.read(result)).toBeUndefined();
    expect(createResultReader({ recoverJson: true }).read(result)).toMatchObject({
      data: { n: 1 },
      obtained: "text-json",
    });
    expect(reader.read(result, outputSchema)).toMatchObject({ data: { n: 1 }, obtained: "text-json" });
  });

  it("RE-32 follows references inside the schema of an envelope somebody else wrote", () => {
    const advertised = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        meta: { type: "object", properties: { status: {}, summary: {} } },
        data: { type: "array", items: { $ref: "#/definitions/row" } },
      },
      definitions: { row: { type: "integer" } },
    };
    const schema = compileSchema(reader.dataSchema?.(advertised) ?? false);
    expect([schema.check([1, 2]), schema.check(["a"]), schema.check(1)]).toEqual([true, false, false]);
  });
});
