import type { MCPContentBlock } from "../../../core/envelope/content-block.ts";
import type {
  MCPResponseMeta,
  ResponseEnvelope,
  ResultFacts,
  SaidFacts,
} from "../../../core/envelope/response-meta.ts";
import type { CallError } from "../../../core/errors/errors.ts";
import { quoteSaid, saidIn, withoutSaid } from "../../../core/errors/source-words.ts";
import { asJson, isPlainObject, setOwn, toJsonTextOrNone } from "../../../core/json/json-value.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { EndedCall } from "../../../core/result/ended-call.ts";
import { blocksBesideData, layOutResult, linksFrom, sentenceOf } from "../../../core/result/human-text.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import {
  type CallToolResult,
  type ContentBlock,
  fromFacts,
  RESULT_META_KEY,
  type ToolResult,
  textBlock,
  textOf,
} from "../../../core/result/tool-result.ts";
import { toOperationSchema } from "../../../core/schema/any-schema.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { issueText } from "../../../core/schema/schema-issue.ts";
import { BYTES_META_KEY, bytesPlaceOf } from "../../content-blocks.ts";
import { knowsAllBlocks } from "../../protocol/revisions.ts";
import { foreignMeta } from "../tools/describe-tool.ts";

/**
 * MCP's own results: data as structured content and as text. What an imported tool answered goes on as it came. Errors are text
 * for people; their structure rides in `_meta`, because clients of the first SDK throw away an error result whose structured
 * content misses the output schema.
 */
export const plainFormat: ResultFormat = Object.freeze({
  name: "plain",

  write({ outcome, operation }: EndedCall): CallToolResult {
    if ("error" in outcome) return toErrorText(outcome.error);
    const { envelope } = outcome;
    if (envelope.meta.source === "mcp") return passOn(envelope.data, envelope.meta, operation);
    if (envelope.meta.isError === true) return toToolErrorText(envelope, operation);
    const said = envelope.meta.waybill?.said;
    return said === undefined ? toDataResult(envelope.data) : toSaidResult(envelope.data, said);
  },

  outputSchema({ outputSchema }: AnyOperation) {
    if (outputSchema === undefined) return undefined;
    const { json, meaningful } = toOperationSchema(outputSchema, "output");
    return meaningful ? json : undefined;
  },
});

/** Writes a failed call for people: what went wrong, then where. */
export function toErrorText(error: CallError): CallToolResult {
  return { content: [textBlock(sayWhy(error.toJSON()))], isError: true };
}

function toDataResult(data: unknown): CallToolResult {
  if (data === undefined) return { content: [] };
  const structured = asJson(data);
  return withStructured({ content: [textBlock(toText(structured))] }, structured);
}

/** Data with what its operation said about it: headline and details, the data or what was written in its place, next steps, links. */
function toSaidResult(data: unknown, said: SaidFacts): CallToolResult {
  const structured = data === undefined ? undefined : asJson(data);
  const fields: ToolResult = { isError: false, ...fromFacts(false, { said }) };
  const content = layOutResult(fields, structured === undefined ? undefined : toText(structured));
  const result: CallToolResult = { content: [...content] as ContentBlock[], _meta: metaOf(said, content) };
  return structured === undefined ? result : withStructured(result, structured);
}

/**
 * What the operation's own `_meta` holds, and all it said for programs, so that the next hop says it too; of its blocks, which ones
 * of the content they are.
 */
function metaOf(
  { _meta, content = [], ...said }: SaidFacts,
  shown: readonly MCPContentBlock[],
): Record<string, unknown> {
  const own = new Set(content);
  const blocks = shown.flatMap((block, index) => (own.has(block) ? [index] : []));
  return { ..._meta, [RESULT_META_KEY]: { said, ...(blocks.length > 0 && { blocks }) } };
}

/** The types of the SDK know objects alone; the protocol takes any JSON value since 2026-07-28. */
function withStructured(result: CallToolResult, structured: unknown): CallToolResult {
  result.structuredContent = structured as Record<string, unknown>;
  return result;
}

function toText(data: unknown): string {
  return typeof data === "string" ? data : JSON.stringify(data);
}

function toToolErrorText(
  { data, meta }: ResponseEnvelope,
  operation: AnyOperation | undefined,
): CallToolResult {
  const { code, message, details, said } = meta.waybill ?? {};
  const { suggestedAction, nextTool, summary } = said ?? {};
  const lines: string[] = [];
  const reason = message ?? summary;
  if (reason !== undefined || code !== undefined) {
    lines.push(sayWhy({ code, message: reason ?? sentenceOf(code, operation), details }));
  }
  if (suggestedAction !== undefined) lines.push(`Suggestion: ${suggestedAction}`);
  if (nextTool !== undefined) lines.push(`Next tool: ${nextTool}`);
  const { error: _, summary: shown, content: own = [], ...fields } = fromFacts(true, { ...meta.waybill });
  const isTold = shown === undefined || shown === reason;
  // The data of an error is nowhere else to be seen, so that it is shown beside whatever was written about it.
  const links = linksFrom(own);
  const json = data === undefined || data === null ? [] : [textBlock(toText(asJson(data)))];
  const blocks = layOutResult({
    ...fields,
    isError: true,
    ...(!isTold && { summary: shown }),
    content: [...own.slice(0, links), ...json, ...own.slice(links)],
  });
  const content = [...(lines.length > 0 ? [textBlock(lines.join("\n"))] : []), ...blocks] as ContentBlock[];
  if (content.length === 0) content.push(textBlock("The operation reported an error."));
  return { content, isError: true, ...(said !== undefined && { _meta: metaOf(said, content) }) };
}

function passOn(data: unknown, meta: MCPResponseMeta, operation: AnyOperation | undefined): CallToolResult {
  const isData = isStructured(data, meta);
  const structured = isData ? asJson(data) : undefined;
  const { content, said } = withWords(meta, isData ? data : undefined, structured);
  const _meta = { ...foreignMeta(meta._meta), ...(said !== undefined && metaOf(said, content)) };
  const result: CallToolResult = { content: content.map(withoutBytesPlace) as ContentBlock[] };
  if (Object.keys(_meta).length > 0) result._meta = _meta;
  if (meta.isError) result.isError = true;
  addUnknown(result, meta.waybill?.unknown);
  if (!isData) return result;
  if (result.content.length === 0) result.content.push(textBlock(toText(structured)));
  return meta.isError && !isWelcome(data, operation) ? result : withStructured(result, structured);
}

/** Only Waybill itself says where in the data the bytes of a block belong. */
function withoutBytesPlace(block: MCPContentBlock): MCPContentBlock {
  if (bytesPlaceOf(block) === undefined) return block;
  const { _meta: { [BYTES_META_KEY]: _, ...others } = {}, ...rest } = block;
  return (Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }) as MCPContentBlock;
}

/** What the protocol itself means something by is not passed on. */
const PROTOCOL_MEMBERS = new Set(["isError", "resultType", "inputRequests", "requestState", "task"]);

/** Members of a tool's result that MCP does not define go on as they came, beside those that it does. */
function addUnknown(result: CallToolResult, unknown: ResultFacts["unknown"] = {}): void {
  for (const name of Object.keys(unknown)) {
    if (!PROTOCOL_MEMBERS.has(name) && !Object.hasOwn(result, name)) setOwn(result, name, unknown[name]);
  }
}

/** The blocks as they came show what their tool said; what was said about them here joins them. */
function withWords(
  { content, isError, waybill }: MCPResponseMeta,
  data: unknown,
  structured: unknown,
): { readonly content: readonly MCPContentBlock[]; readonly said?: SaidFacts | undefined } {
  const said = waybill?.said;
  const isShown = said?.content?.every((block) => content.some((shown) => isEqual(shown, block)));
  if (said === undefined || isShown === true) return { content, said: said && withOwnBlocks(said, content) };
  const words = { ...said, content: said.content ?? blocksBesideData(content, data) };
  const fields: ToolResult = { isError, ...fromFacts(isError, { ...waybill, said: words }) };
  return {
    content: layOutResult(fields, structured === undefined ? undefined : toText(structured)),
    said: words,
  };
}

/** Blocks that came another way than the content, such as over a bus, are found in it again. */
function withOwnBlocks(said: SaidFacts, content: readonly MCPContentBlock[]): SaidFacts {
  const own = said.content?.map((block) => content.find((shown) => shown === block || isEqual(shown, block)));
  return { ...said, content: (own ?? []) as readonly MCPContentBlock[] };
}

/** Data that is only the content again is no structured content. */
function isStructured(data: unknown, meta: MCPResponseMeta): boolean {
  if (Object.hasOwn(meta, "structuredContent")) return data !== undefined;
  if (data === undefined || data === meta.content || meta.waybill?.obtained === "content") return false;
  return !isEqual(data, meta.content);
}

/** The data of an error is kept where no client can take offence at it. */
function isWelcome(data: unknown, operation: AnyOperation | undefined): boolean {
  const schema = operation?.outputSchema;
  return schema === undefined || toOperationSchema(schema, "output").check(asJson(data));
}

interface Reason {
  readonly code?: string | undefined;
  readonly message: string;
  readonly details?: unknown;
}

function sayWhy({ code, message, details }: Reason): string {
  const first = code === undefined ? message : `${message} [${code}]`;
  const said = saidIn(details);
  const others = withoutSaid(details);
  const written = others === undefined ? undefined : (issueLines(others) ?? toJsonTextOrNone(others));
  const lines = [first, written, said === undefined ? undefined : quoteSaid(said)];
  return lines.filter((line) => line !== undefined).join("\n");
}

/** Says the issues of a schema one by one, each with its pointer. */
function issueLines(details: unknown): string | undefined {
  if (!isPlainObject(details) || !Array.isArray(details["issues"])) return undefined;
  const lines = details["issues"].map((issue: unknown) => {
    const { pointer, expected, found, message } = isPlainObject(issue) ? issue : {};
    if (typeof pointer !== "string") return undefined;
    return `- ${issueText(
      {
        pointer,
        expected: String(expected),
        found: String(found),
        ...(typeof message === "string" && { message }),
      },
      "the input itself",
    )}`;
  });
  return lines.length > 0 && lines.every((line) => line !== undefined) ? lines.join("\n") : undefined;
}

/** The revision that brought audio. */
const AUDIO_SINCE = "2025-03-26";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Writes the blocks of a tool result, or of the messages of a prompt, as a client of an older revision knows them, one for one: its SDK
 * refuses the whole answer over a kind it does not know. A link becomes text, audio an embedded resource. Structured content, which such
 * a client passes over, is shown as text where no text shows it.
 */
export function forOlderRevision<T>(answer: T, revision: string | undefined): T {
  if (revision === undefined || knowsAllBlocks(revision) || !isPlainObject(answer)) return answer;
  const { content, messages, structuredContent } = answer as Fields;
  if (Array.isArray(messages)) {
    const older = messages.map((message: unknown, index) =>
      isPlainObject(message)
        ? { ...message, content: olderBlock(message["content"], revision, index) }
        : message,
    );
    return { ...answer, messages: older };
  }
  if (!Array.isArray(content)) return answer;
  const older = content.map((block, index) => olderBlock(block, revision, index));
  const data = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  const isShown = data === undefined || older.some((block) => isData(textOf(block), data, structuredContent));
  return { ...answer, content: isShown ? older : [...older, textBlock(data)] };
}

/** Text is data where it is its JSON, a string as it is, or the one member of `{ result }`. */
function isData(text: string | undefined, json: string, value: unknown): boolean {
  if (text === undefined) return false;
  return (
    text === json ||
    json === `{"result":${text}}` ||
    json === `{"result":${JSON.stringify(text)}}` ||
    text === value
  );
}

function olderBlock(block: unknown, revision: string, index: number): unknown {
  if (!isPlainObject(block)) return block;
  if (block["type"] === "resource_link") {
    const { annotations } = block;
    return { ...textBlock(toLinkText(block)), ...(annotations !== undefined && { annotations }) };
  }
  if (block["type"] !== "audio" || revision >= AUDIO_SINCE) return block;
  const { data, mimeType, type: _, ...rest } = block;
  return {
    ...rest,
    type: "resource",
    resource: { uri: `waybill://block/${index}`, mimeType, blob: data },
  };
}

function toLinkText({ uri, name, title, description, mimeType, size }: Fields): string {
  const facts = [mimeType, typeof size === "number" ? `${size.toLocaleString("en-US")} bytes` : undefined];
  const shown = facts.filter((fact) => typeof fact === "string").join(", ");
  const label = `${String(title ?? name)}: ${String(uri)}${shown === "" ? "" : ` (${shown})`}`;
  return typeof description === "string" ? `${label}\n${description}` : label;
}
