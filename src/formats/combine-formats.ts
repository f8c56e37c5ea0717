import type { CallToolResult, ContentBlock } from "../core/result/call-tool-result.ts";
import type { ResultFormat } from "../core/result/result-format.ts";
import { isEqual } from "../core/schema/compare-values.ts";

/** The published formats that need the structured content for themselves. */
const STRUCTURED: ReadonlySet<string> = new Set(["mcp", "tiered-envelope", "status-envelope"]);

/**
 * Writes every result in several formats at once, for readers of different kinds: the blocks of each in turn, without those an
 * earlier one has written, and the structured content of the first that has any. A status envelope with previews stays one; a
 * tool envelope beside it holds the whole.
 */
export function combineFormats(first: ResultFormat, ...others: readonly ResultFormat[]): ResultFormat {
  const formats = [first, ...others];
  for (const format of formats) assertFormat(format);
  const rivals = formats.filter(({ name }) => STRUCTURED.has(name));
  if (rivals.length > 1) {
    const names = rivals.map(({ name }) => `"${name}"`).join(" and ");
    throw new TypeError(
      `The formats ${names} both fill the structured content; combine one of them with others.`,
    );
  }
  return Object.freeze<ResultFormat>({
    name: formats.map(({ name }) => name).join("+"),
    async write(call) {
      return join(await Promise.all(formats.map((format) => format.write(call))));
    },
    outputSchema(operation) {
      for (const format of formats) {
        const schema = format.outputSchema(operation);
        if (schema !== undefined) return schema;
      }
      return undefined;
    },
    ...(formats.some(({ previews }) => previews) && { previews: true }),
  });
}

function assertFormat(format: unknown): void {
  const { name, write, outputSchema } = (format ?? {}) as Partial<ResultFormat>;
  if (typeof name === "string" && typeof write === "function" && typeof outputSchema === "function") return;
  const hint = Array.isArray(format) ? "not in a list" : 'such as createResultFormat("tool-envelope")';
  throw new TypeError(`combineFormats takes formats one by one, ${hint}: combineFormats(first, second).`);
}

function join(results: readonly CallToolResult[]): CallToolResult {
  const content: ContentBlock[] = [];
  const joined: CallToolResult = { content };
  for (const result of results) {
    for (const block of result.content) {
      if (!content.some((known) => isEqual(known, block))) content.push(block);
    }
    if (result.structuredContent !== undefined && joined.structuredContent === undefined) {
      joined.structuredContent = result.structuredContent;
    }
    if (result.isError === true) joined.isError = true;
    if (result._meta !== undefined) joined._meta = { ...result._meta, ...joined._meta };
  }
  return joined;
}
