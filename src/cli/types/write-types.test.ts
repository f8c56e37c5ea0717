import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Type } from "typebox";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { ROOT } from "../../../test/run-node.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { fromOpenApi } from "../../openapi/index.ts";
import type { Io } from "../io.ts";
import { emitTypes, writeTypes } from "./write-types.ts";

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.asynciterable.d.ts"],
  types: ["node"],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  paths: { waybill: [join(ROOT, "src/index.ts")] },
};

/** Compiles modules together as a user's program; what is wrong in any of them. */
function compile(modules: Readonly<Record<string, string>>): string[] {
  const texts = new Map(
    Object.entries(modules).map(([name, text]) => [join(ROOT, `${name}.in-memory.ts`), text]),
  );
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => texts.has(file) || fileExists(file);
  host.getSourceFile = (file, version) => {
    const text = texts.get(file);
    return text === undefined ? getSourceFile(file, version) : ts.createSourceFile(file, text, version);
  };
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  return [...texts.keys()].flatMap((file) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(file))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")),
  );
}

function operation(
  id: string,
  inputSchema?: AnySchema,
  outputSchema?: AnySchema,
  description = "Does it.",
): AnyOperation {
  const dot = id.indexOf(".");
  return defineOperation({
    namespace: id.slice(0, dot),
    name: id.slice(dot + 1),
    version: "1.0.0",
    type: "query",
    description,
    ...(inputSchema !== undefined && { inputSchema }),
    ...(outputSchema !== undefined && { outputSchema }),
    handler: () => null,
  }) as AnyOperation;
}

const textOf = (operations: Iterable<AnyOperation>) => [...writeTypes(operations)].join("");

const TREE = {
  $ref: "#/$defs/tree",
  $defs: {
    tree: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/tree" } } } },
  },
};

const PARCELS = [
  operation(
    "parcel.track",
    Type.Object({ code: Type.String() }, { additionalProperties: false }),
    Type.Object({ place: Type.String(), grams: Type.Optional(Type.Number()) }),
  ),
  operation("parcel.list/all", undefined, z.array(z.object({ code: z.string() }))),
  operation("parcel.tree", TREE, TREE),
  operation("parcel.forest", { type: "array", items: TREE }, undefined),
];

describe("writeTypes", () => {
  it("RE-27 types calls by id as soon as a program includes the module", () => {
    const use = `
      import { createClient, OperationRegistry, unwrap } from "waybill";
      const registry = new OperationRegistry();
      const tracked = unwrap(await registry.execute("parcel.track", { code: "A-17" }));
      export const place: string = tracked.place;
      export const grams: number | undefined = tracked.grams;
      // @ts-expect-error the code is a text
      await registry.execute("parcel.track", { code: 17 });
      // @ts-expect-error there is no such property
      await registry.execute("parcel.track", { code: "A-17", kode: 1 });
      const client = createClient(registry);
      export const code: string | undefined = (await client.call("parcel.list/all"))[0]?.code;
      const tree = await client.call("parcel.tree", { children: [{ children: [] }] });
      export const leaf = tree.children?.[0]?.children;
      // @ts-expect-error children are a list
      await client.call("parcel.tree", { children: {} });
    `;
    expect(compile({ types: textOf(PARCELS), use })).toEqual([]);
  });

  it("RE-27 gives the same text in any order, and one name to what says the same", () => {
    const text = textOf(PARCELS);
    expect(textOf([...PARCELS].reverse())).toBe(text);
    expect(text.match(/export type ParcelTree\w* = \{/g)).toHaveLength(1);
  });

  it("RE-27 gives every type a name of its own", () => {
    const other = { ...TREE, $defs: { tree: { ...TREE.$defs.tree, required: ["children"] } } };
    const ids = ["a.b-c", "a.b/c", "a.b.c", "a-b.c", "a.b_c", "3d.class", "a.bCInput"];
    const text = textOf([...ids.map((id) => operation(id, TREE, other)), operation("a.treeNode", TREE)]);
    const names = [...text.matchAll(/^export type (\S+) =/gm)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(compile({ names: text })).toEqual([]);
  });

  it("RE-27 lets no description out of its comment", () => {
    const hostile =
      "*/ export const evil = 1; /*\n@ts-expect-error\n/// <reference path='x' />\u2028\u001b[31m ${x} `";
    const schema = {
      type: "object",
      description: hostile,
      properties: { a: { type: "string", description: hostile, default: "*/" } },
    };
    const text = textOf([operation("x.y", schema, { const: "*/\u2028\u202e" }, hostile)]);
    expect(compile({ hostile: text })).toEqual([]);
    expect(text).not.toMatch(/^\s*export const evil/m);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u2028\u202e]/);
  });

  it("RE-27 writes nothing that hides, wherever it stood, and keeps what it means", () => {
    const hidden = "\u0085\u009b31m\u202e\u2066\u200b\u2800\ue000\u{E0041}\u{F0000}\ufdd0";
    const schema = {
      type: "object",
      title: hidden,
      description: `All of ${hidden} it.`,
      properties: { [`a${hidden}`]: { enum: [`b${hidden}`, { [hidden]: hidden }], default: `c${hidden}` } },
      required: [`d${hidden}`],
    };
    const text = textOf([operation("x.y", schema, { const: hidden }, hidden)]);
    expect(cleanText(text)).toEqual({ text, findings: [] });
    expect(compile({ hiding: text })).toEqual([]);
    expect(text).toContain(String.raw`\udb40\udc41`);
  });

  it("RE-27 writes unknown for a schema that cannot be used, and says so", () => {
    const told: string[] = [];
    const broken = { ...operation("x.y"), inputSchema: { $ref: "#/gone" } } as AnyOperation;
    const text = [
      ...writeTypes([broken], { onUnreadable: (id, direction) => told.push(`${id} ${direction}`) }),
    ].join("");
    expect(told).toEqual(["x.y input"]);
    expect(text).toContain("export type XYInput = unknown;");
  });

  it("RE-27 writes 10,000 operations within 10 seconds", () => {
    const many = Array.from({ length: 10_000 }, (_, i) =>
      operation(
        `n${i % 50}.op${i}`,
        {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "array", items: { $ref: "#/$defs/x" } } },
          $defs: { x: { type: "object", properties: { k: { enum: ["a", i] } } } },
        },
        { type: "object", properties: { id: { type: "string" } } },
      ),
    );
    const started = cpuMs();
    let size = 0;
    for (const piece of writeTypes(many)) size += piece.length;
    expect(cpuMs() - started).toBeLessThan(10_000);
    expect(size).toBeLessThan(10_000_000);
  });

  it("RE-27 compiles for a large public API", async () => {
    const source = await fromOpenApi(join(ROOT, "node_modules/@figma/rest-api-spec/openapi/openapi.yaml"), {
      namespace: "figma",
    });
    const text = textOf(source);
    await source.close();
    expect(text).toContain('"figma.getFile": {');
    expect(compile({ figma: text })).toEqual([]);
  });

  it("RE-27 compiles for recorded servers", () => {
    const recorded = join(ROOT, "test/data/recorded-servers");
    const modules = readdirSync(recorded).map((name, i) => [
      name.slice(0, -5),
      textOf(toolsIn(`s${i}`, JSON.parse(readFileSync(join(recorded, name), "utf8")))),
    ]);
    expect(modules.length).toBeGreaterThanOrEqual(10);
    expect(compile(Object.fromEntries(modules))).toEqual([]);
  });
});

interface Recording {
  readonly toolsList: readonly {
    readonly response: { readonly result: { readonly tools: readonly Tool[] } };
  }[];
}
interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: AnySchema;
  readonly outputSchema?: AnySchema;
}

function toolsIn(namespace: string, { toolsList }: Recording): AnyOperation[] {
  const tools = toolsList.flatMap(({ response }) => response.result.tools);
  expect(tools.length).toBeGreaterThan(0);
  return tools.map((tool) =>
    operation(`${namespace}.${tool.name}`, tool.inputSchema, tool.outputSchema, tool.description ?? ""),
  );
}

describe("emitTypes", () => {
  const start = async () => {
    const cwd = await mkdtemp(join(tmpdir(), "waybill-types-"));
    const texts = { out: "", err: "" };
    const into = (name: keyof typeof texts) =>
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          texts[name] += chunk.toString();
          done();
        },
      });
    const io = { stdout: into("out"), stderr: into("err"), env: {}, cwd } as unknown as Io;
    return { io, texts, path: join(cwd, "waybill-types.ts"), cwd };
  };

  it("RE-27 writes the file, finds it up to date, and finds it out of date", async () => {
    const { io, path, texts, cwd } = await start();
    await expect(emitTypes(io, PARCELS, { check: true })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining("does not exist"),
    });
    expect(await emitTypes(io, PARCELS, {})).toBe(0);
    expect(await readFile(path, "utf8")).toBe(textOf(PARCELS));
    expect(await readdir(cwd)).toEqual(["waybill-types.ts"]);
    expect(await emitTypes(io, PARCELS, { check: true })).toBe(0);
    await writeFile(path, textOf(PARCELS).replace(/\n/g, "\r\n"));
    expect(await emitTypes(io, PARCELS, { check: true })).toBe(0);
    const isOld = { exitCode: 1, message: expect.stringContaining("out of date") };
    await expect(emitTypes(io, PARCELS.slice(1), { check: true })).rejects.toMatchObject(isOld);
    for (const spoilt of [`${textOf(PARCELS)}x`, textOf(PARCELS).slice(0, -1), ""]) {
      await writeFile(path, spoilt);
      await expect(emitTypes(io, PARCELS, { check: true })).rejects.toMatchObject(isOld);
    }
    expect(texts.out).toBe("");
  });

  it("RE-27 prints with -, and says why a file cannot be written", async () => {
    const { io, texts } = await start();
    await emitTypes(io, PARCELS, { out: "-" });
    expect(texts.out).toBe(textOf(PARCELS));
    await expect(emitTypes(io, PARCELS, { out: "gone/x.ts" })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("cannot be written: its folder does not exist."),
    });
  });
});
