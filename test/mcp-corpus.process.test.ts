import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { compileSchema, isCallError, type MCPResponseMeta, OperationRegistry } from "../src/index.ts";
import { fromMcp, type McpSource, mapMCPContentBlocks } from "../src/mcp/index.ts";
import { rejection } from "./make-operation.ts";
import { ROOT } from "./run-node.ts";

/** What public MCP servers answered. */
const RECORDED = join(ROOT, "test/data/recorded-servers");
const servers = readdirSync(RECORDED);

interface Exchange {
  readonly request: { readonly params: { readonly name: string; readonly arguments?: object } };
  readonly response: {
    readonly result?: Readonly<Record<string, unknown>>;
    readonly error?: { readonly code: number };
  };
}
interface Recording {
  readonly calls: readonly Exchange[];
  readonly toolsList: readonly {
    readonly response: { readonly result: { readonly tools: readonly Tool[] } };
  }[];
  readonly modern?: {
    readonly toolsList: { readonly response: { readonly result: { readonly tools: readonly Tool[] } } };
    readonly calls: readonly Exchange[];
  };
}
interface Tool {
  readonly name: string;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  readonly annotations?: { readonly readOnlyHint?: boolean };
}

const read = (name: string): Recording => JSON.parse(readFileSync(join(RECORDED, name), "utf8"));

describe("imported recordings", () => {
  let source: McpSource | undefined;
  const warnings: string[] = [];
  afterEach(async () => {
    warnings.length = 0;
    await source?.close();
    source = undefined;
  });

  const open = async (name: string, protocol: "2025" | "2026" | "auto") => {
    source = await fromMcp(
      {
        command: process.execPath,
        args: [join(ROOT, "test/mcp-children/replay-server.js"), join(RECORDED, name)],
      },
      { namespace: "corpus", protocol, onWarning: (message) => warnings.push(message) },
    );
    return source;
  };

  const compare = async (imported: McpSource, tools: readonly Tool[], calls: readonly Exchange[]) => {
    expect(imported.unusable).toEqual([]);
    expect(imported.operations.map(({ name }) => name)).toEqual(tools.map(({ name }) => name).sort());
    for (const { name, inputSchema, outputSchema, annotations } of tools) {
      const operation = imported.operations.find((found) => found.name === name);
      expect(operation?.inputSchema).toEqual(inputSchema);
      expect(operation?.outputSchema).toEqual(outputSchema);
      expect(operation?.type).toBe(annotations?.readOnlyHint === true ? "query" : "mutation");
    }
    for (const call of calls) await compareCall(imported, call);
  };

  const compareCall = async (imported: McpSource, { request, response }: Exchange) => {
    const { name, arguments: input } = request.params;
    const { result, error } = response;
    try {
      const { data, meta } = await imported.call(name, input);
      const { content, isError, structuredContent } = result ?? {};
      const blocks = mapMCPContentBlocks(content);
      const hasStructured = structuredContent !== undefined;
      expect((meta as MCPResponseMeta).content).toEqual(blocks);
      expect(meta.isError).toBe(isError === true);
      const obtained = meta.waybill?.obtained;
      expect(obtained === "structured-content").toBe(hasStructured);
      if (hasStructured) expect(data).toEqual(structuredContent);
      else if (obtained === "content") expect(data).toEqual(blocks);
      else expect(data).toEqual(JSON.parse((content as { text: string }[])[0]?.text ?? ""));
    } catch (thrown) {
      if (!isCallError(thrown) || error === undefined) throw thrown;
      expect(thrown.code).toBe(name === "__no_such_tool__" ? "OPERATION_NOT_FOUND" : "VALIDATION_ERROR");
    }
  };

  it.each(servers)(
    "RE-22 RE-23 %s: every tool is there, and every answer comes back (2025)",
    async (name) => {
      const { toolsList, calls } = read(name);
      const imported = await open(name, "2025");
      expect(imported.server.protocolVersion).not.toBe("2026-07-28");
      await compare(
        imported,
        toolsList.flatMap(({ response }) => response.result.tools),
        calls,
      );
    },
  );

  it.each(servers.filter((name) => read(name).modern))(
    "RE-22 RE-23 %s: the same over 2026-07-28, where it knows that",
    async (name) => {
      const { modern } = read(name);
      const imported = await open(name, "2026");
      expect(imported.server.protocolVersion).toBe("2026-07-28");
      await compare(imported, modern?.toolsList.response.result.tools ?? [], modern?.calls ?? []);
    },
  );

  it.each(servers)("RE-22 %s: registers, and what it declares holds for what it answers", async (name) => {
    const imported = await open(name, "2025");
    const registry = new OperationRegistry();
    registry.registerAll(imported);
    expect(registry.list()).toHaveLength(imported.operations.length);
    for (const { request, response } of read(name).calls) {
      const id = `corpus.${request.params.name}`;
      if (registry.get(id) === undefined || response.result?.["isError"] === true) continue;
      const input = request.params.arguments ?? {};
      const declared = registry.get(id)?.inputSchema ?? {};
      if (!compileSchema(declared).check(input)) {
        // What the server would let through although it says otherwise is not sent.
        expect(await rejection(registry.execute(id, input))).toMatchObject({ code: "VALIDATION_ERROR" });
        continue;
      }
      const { meta } = await registry.execute(id, input);
      if (response.result?.["structuredContent"] !== undefined)
        expect(meta.waybill?.violations).toBeUndefined();
    }
  });
});
