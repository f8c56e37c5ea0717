import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { CompiledSchema } from "../../core/schema/compile-schema.ts";
import { sampleInput } from "../../core/schema/sample-values.ts";
import { issueText, type SchemaIssue } from "../../core/schema/schema-issue.ts";
import { jsonTypeOf } from "../../core/schema/schema-view.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { type DecodedToolResult, decodeToolResult } from "../../formats/decode-tool-result.ts";
import type { McpRequestOptions } from "../../mcp/client/mcp-connection.ts";
import type { CheckId, CheckList, CheckStatus } from "./check-report.ts";
import { describeAnswer, isRefusal, type McpPeer, type PeerAnswer, type PeerCheck } from "./mcp-peer.ts";
import type { ListedTool } from "./mcp-tool-checks.ts";

type Input = Readonly<Record<string, unknown>>;

/** Which tools are called, and with what. */
export interface CallPlan {
  /** Also calls tools that do not say that they only read. */
  readonly all: boolean;
  /** Tools that are called whatever they say. */
  readonly named: ReadonlySet<string>;
  /** Inputs by name of tool, in place of samples. */
  readonly inputs: ReadonlyMap<string, unknown>;
  /** Hears what is called next. */
  onCall(tool: string): void;
}

/** Tools that are called; a server with more is known well enough by then. */
const MOST_CALLED = 200;
const CALLS_EACH = 3;
const STREAM_VALUES = 3;

/** Calls the tools that may be called, three times each, and judges what they answer. */
export async function checkCalls(
  check: PeerCheck,
  tools: readonly ListedTool[],
  plan: CallPlan,
): Promise<void> {
  const { list, peer } = check;
  let called = 0;
  let isCancelled = false;
  for (const tool of tools) {
    const { input, reason } = inputFor(tool, plan, called);
    if (input === undefined) {
      list.skip("mcp.call", tool.name, `Not called: ${reason}`);
      continue;
    }
    if (peer.isGone) {
      list.skip("mcp.call", tool.name, "Not called: the connection was lost too often.");
      continue;
    }
    called += 1;
    plan.onCall(tool.name);
    await (tool.isStream ? checkStream : checkTool)(check, tool, input);
    if (!plan.inputs.has(tool.name)) await checkRefusal(check, tool);
    if (!isCancelled) {
      isCancelled = true;
      await checkCancel(check, tool, input);
    }
  }
}

/** What a tool is called with, or why it is not called. */
function inputFor(tool: ListedTool, plan: CallPlan, called: number): { input?: Input; reason?: string } {
  const { name, input, isReadOnly } = tool;
  const given = plan.inputs.get(name);
  if (!isReadOnly && !plan.all && !plan.named.has(name) && given === undefined) {
    return { reason: "it does not say that it only reads. Name it with --call, or use --call-all." };
  }
  if (called >= MOST_CALLED && !plan.named.has(name) && given === undefined) {
    return { reason: `${MOST_CALLED} tools were. Name it with --call.` };
  }
  const made = input === undefined ? { value: {}, isAccepted: true } : sampleInput(input);
  const sample = given ?? (made.isAccepted ? made.value : undefined);
  if (isPlainObject(sample)) return { input: sample };
  const hint = `Give one with --input ${name}=@file.json.`;
  return { reason: `no input could be made that passes its inputSchema. ${hint}` };
}

function call(
  peer: McpPeer,
  { name, definition }: ListedTool,
  input: Input,
  options: McpRequestOptions = {},
) {
  const { inputSchema } = definition;
  return peer.ask(
    "tools/call",
    { name, arguments: input },
    { ...options, ...(isPlainObject(inputSchema) && { inputSchema }) },
  );
}

async function checkTool({ list, peer }: PeerCheck, tool: ListedTool, input: Input): Promise<void> {
  const findings: Finding[] = [];
  const answers: PeerAnswer[] = [];
  for (let i = 0; i < CALLS_EACH; i++) {
    const answer = await call(peer, tool, input);
    answers.push(answer);
    findings.push(...judgeAnswer(answer, tool, input));
    if (answer.kind === "failure") break;
  }
  const stable = judgeStable(answers);
  addFindings(list, tool.name, stable === undefined ? findings : [...findings, stable]);
}

/** Takes a few values of a stream, which may never end, and leaves it then. */
async function checkStream({ list, peer }: PeerCheck, tool: ListedTool, input: Input): Promise<void> {
  const id = "mcp.call";
  const stop = new AbortController();
  let values = 0;
  const onProgress = () => {
    values += 1;
    if (values >= STREAM_VALUES) stop.abort();
  };
  const answer = await call(peer, tool, input, { signal: stop.signal, onProgress });
  if (answer.kind !== "failure" || answer.isLost) {
    addFindings(list, tool.name, judgeAnswer(answer, tool, input));
  } else if (values > 0) {
    list.pass(id, tool.name, `It is a stream, and gave ${counted(values, "value")}.`);
  } else {
    list.skip(id, tool.name, `It is a stream, and gave no value within ${peer.timeoutMs} ms.`);
  }
}

function judgeAnswer(answer: PeerAnswer, tool: ListedTool, input: Input): readonly Finding[] {
  const id = "mcp.call";
  if (answer.kind === "failure" && answer.isBusy) {
    const message = "It still told of progress when the time was up; give it more with --timeout.";
    return [{ id, status: "skip", message }];
  }
  if (answer.kind === "failure") {
    return [{ id, status: "fail", message: `The call was not answered. ${answer.reason}`, evidence: input }];
  }
  if (answer.kind === "error") return [judgeRpcError(answer, input)];
  const { result } = answer;
  const isError = result["isError"] === true;
  const rules = { declaresOutput: tool.definition["outputSchema"] !== undefined, output: tool.output };
  const findings = judgeResult(result, rules);
  if (!isError) return [{ id, status: "pass", message: "Calls are answered." }, ...findings];
  const hint = `Give an input it takes with --input ${tool.name}=@file.json to see a result.`;
  return [
    { id, status: "pass", message: `It reported an error for the sampled input. ${hint}` },
    ...findings,
  ];
}

function judgeRpcError({ code, message }: { code: number; message: string }, input: Input): Finding {
  const id = "mcp.call";
  if (code === -32602) return { id, status: "pass", message: `It refused the input: ${message}` };
  const what = `It answered with the JSON-RPC error ${code}; what a tool fails with is a result with isError.`;
  return { id, status: code === -32601 ? "fail" : "warn", message: `${what} ${message}`, evidence: input };
}

/** Compares what equal calls gave; nothing where there is nothing to compare. */
function judgeStable(answers: readonly PeerAnswer[]): Finding | undefined {
  const id = "mcp.result.stable";
  const results = answers.flatMap((answer) => (answer.kind === "result" ? [answer.result] : []));
  const [first, ...others] = results;
  if (first === undefined || others.length === 0) return undefined;
  if (others.some((other) => (other["isError"] === true) !== (first["isError"] === true))) {
    return { id, status: "warn", message: "Equal calls sometimes succeed and sometimes report an error." };
  }
  const kinds = kindsOf(first);
  for (const other of others.map(kindsOf)) {
    for (const [place, kind] of other) {
      const known = kinds.get(place);
      if (known !== undefined && known !== kind && known !== "null" && kind !== "null") {
        const message = `Equal calls give data of different types: ${place} is ${known}, then ${kind}.`;
        return { id, status: "warn", message };
      }
    }
  }
  return { id, status: "pass", message: "Equal calls give data of the same type." };
}

/** The types of structured content and its members, and of the blocks, by place. */
function kindsOf({ structuredContent, content }: Input): Map<string, string> {
  const kinds = new Map<string, string>();
  kinds.set("structuredContent", structuredContent === undefined ? "absent" : jsonTypeOf(structuredContent));
  if (isPlainObject(structuredContent)) {
    for (const [key, value] of Object.entries(structuredContent).slice(0, 1_000)) {
      kinds.set(`structuredContent.${key}`, jsonTypeOf(value));
    }
  }
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  if (isPlainObject(first)) kinds.set("the first block", String(first["type"]));
  return kinds;
}

async function checkRefusal({ list, peer }: PeerCheck, tool: ListedTool): Promise<void> {
  const id = "mcp.manners.invalid-arguments";
  const spoiled = tool.input === undefined ? undefined : spoiledInput(tool.input);
  if (spoiled === undefined) return;
  const answer = await call(peer, tool, spoiled);
  const { name } = tool;
  if (isRefusal(answer)) list.pass(id, name, "They are refused.");
  else if (answer.kind === "error") {
    list.warn(id, name, `They are refused with ${answer.code} instead of -32602 or isError.`, {
      evidence: spoiled,
    });
  } else {
    const message = `Arguments that miss the inputSchema are not refused. ${describeAnswer(answer)}`;
    list.fail(id, name, message, { evidence: spoiled });
  }
}

async function checkCancel({ list, peer }: PeerCheck, tool: ListedTool, input: Input): Promise<void> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 5);
  await call(peer, tool, input, { signal: stop.signal });
  clearTimeout(timer);
  const answer = await peer.ask("tools/list", {});
  const id = "mcp.manners.cancel";
  if (answer.kind === "result") list.pass(id, tool.name, "The server answers on after a call was cancelled.");
  else list.fail(id, tool.name, `After a call was cancelled the server fails. ${describeAnswer(answer)}`);
}

/** What a result is held to. */
interface ResultRules {
  /** Whether the tool declares an outputSchema. */
  readonly declaresOutput: boolean;
  /** Absent where it cannot be used. */
  readonly output: CompiledSchema | undefined;
}

type Result = Readonly<Record<string, unknown>>;

/** Judges one result of a tool. */
function judgeResult(result: Result, rules: ResultRules): readonly Finding[] {
  const shape = judgeShape(result);
  if (shape.status === "fail") return [shape];
  const findings = [shape, ...judgeFormat(result)];
  if (result["isError"] === true) return [...findings, judgeError(result)];
  return [...findings, ...judgeStructured(result, rules)];
}

/** Members that a block of a type must have, each a string. */
const BLOCK_TEXTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["text", ["text"]],
  ["image", ["data", "mimeType"]],
  ["audio", ["data", "mimeType"]],
  ["resource_link", ["uri", "name"]],
  ["resource", []],
]);

function judgeShape(result: Result): Finding {
  const id = "mcp.result.shape";
  const { content, isError } = result;
  if (!Array.isArray(content)) {
    const message = content === undefined ? "The result has no content." : "content is no array.";
    return { id, status: "fail", message, evidence: result };
  }
  if (isError !== undefined && typeof isError !== "boolean") {
    return { id, status: "fail", message: "isError must be true or false.", evidence: isError };
  }
  const faults = content.map((block, at) => ({ at, fault: faultOf(block) }));
  const bad = faults.find(({ fault }) => fault?.isWrong === true);
  const odd = bad ?? faults.find(({ fault }) => fault !== undefined);
  if (odd?.fault === undefined) return { id, status: "pass", message: "The result has the shape of one." };
  const message = `Block ${odd.at + 1} of the content ${odd.fault.text}.`;
  return { id, status: odd.fault.isWrong ? "fail" : "warn", message, evidence: content[odd.at] };
}

interface BlockFault {
  readonly text: string;
  readonly isWrong: boolean;
}

function faultOf(block: unknown): BlockFault | undefined {
  if (!isPlainObject(block) || typeof block["type"] !== "string") {
    return { text: "is no block with a type", isWrong: true };
  }
  const texts = BLOCK_TEXTS.get(block["type"]);
  if (texts === undefined) return { text: "is of a type that MCP does not know", isWrong: false };
  const missing = texts.find((name) => typeof block[name] !== "string");
  if (missing !== undefined) {
    return { text: `is of type ${block["type"]} and has no text under "${missing}"`, isWrong: true };
  }
  const { resource } = block;
  const holdsResource =
    isPlainObject(resource) &&
    typeof resource["uri"] === "string" &&
    (typeof resource["text"] === "string" || typeof resource["blob"] === "string");
  return block["type"] === "resource" && !holdsResource
    ? { text: "holds no resource with a uri and a text or a blob", isWrong: true }
    : undefined;
}

/** What a reader says of blocks that are meant to be envelopes and are none. */
const UNREADABLE: ReadonlySet<string> = new Set([
  "not_an_envelope",
  "too_large",
  "bad_base64",
  "bad_utf8",
  "bad_json",
  "bad_shape",
  "version_mismatch",
  "unsupported_version",
]);

function judgeFormat(result: Result): readonly Finding[] {
  const id = "mcp.result.format";
  let decoded: DecodedToolResult;
  try {
    decoded = decodeToolResult(result);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return [{ id, status: "fail", message: `The result cannot be read. ${message}` }];
  }
  const suspect = decoded.odd.find(({ code }) => code === "error_as_success");
  const odd = decoded.odd.filter(({ code }) => code !== "error_as_success");
  const told = odd.map(({ message }) => message).join(" ");
  const findings: Finding[] = [];
  if (suspect !== undefined) {
    findings.push({
      id: "mcp.result.error",
      status: "warn",
      message: suspect.message,
      evidence: decoded.text,
      fix: "Set isError: true where a call failed; where it did not, word the text so that it does not begin like an error.",
    });
  }
  if (odd.some(({ code }) => UNREADABLE.has(code))) {
    findings.push({ id, status: "fail", message: `An envelope in the result cannot be read. ${told}` });
  } else if (decoded.format === "ambiguous") {
    const names = decoded.candidates?.map(({ format }) => format).join(", ");
    findings.push({
      id,
      status: "warn",
      message: `The result can be read in several formats: ${names}. ${told}`,
    });
  } else if (odd.length > 0) {
    findings.push({ id, status: "warn", message: `Read as ${decoded.format}, with a doubt. ${told}` });
  } else findings.push({ id, status: "pass", message: `Read as ${decoded.format}.` });
  return findings;
}

function hasText(content: unknown): boolean {
  return (
    Array.isArray(content) &&
    content.some((block: unknown) => {
      const text = isPlainObject(block) && block["type"] === "text" ? block["text"] : undefined;
      return typeof text === "string" && text.trim() !== "";
    })
  );
}

function judgeError({ content }: Result): Finding {
  const id = "mcp.result.error";
  return hasText(content)
    ? { id, status: "pass", message: "The error result says what is wrong." }
    : {
        id,
        status: "fail",
        message: "The error result has no text that says what is wrong.",
        evidence: content,
      };
}

function judgeStructured(result: Result, { declaresOutput, output }: ResultRules): readonly Finding[] {
  const id = "mcp.result.structured";
  const { structuredContent: data, content } = result;
  if (data === undefined) {
    if (!declaresOutput) return [];
    const message = "The tool declares an outputSchema, and its result has no structuredContent.";
    return [{ id, status: "fail", message, evidence: result }];
  }
  const text: Finding = hasText(content)
    ? { id: "mcp.result.text", status: "pass", message: "There is text beside the structured content." }
    : { id: "mcp.result.text", status: "warn", message: "There is structured content, and no text with it." };
  if (output === undefined) return [text];
  const issues = output.errors(data);
  if (issues.length === 0) return [text, { id, status: "pass", message: "It keeps the outputSchema." }];
  const message = `The structuredContent misses the outputSchema: ${describeIssues(issues)}`;
  return [text, { id, status: "fail", message, evidence: data }];
}

const SHOWN_ISSUES = 3;

/** Says in one line how a value misses its schema. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  const shown = issues.slice(0, SHOWN_ISSUES).map((issue) => issueText(issue, "it"));
  const rest = issues.length - shown.length;
  return `${shown.join("; ")}${rest > 0 ? `; and ${rest} more` : ""}.`;
}

/** What one look at something says; several looks make one check. */
export interface Finding {
  readonly id: CheckId;
  readonly status: CheckStatus;
  readonly message: string;
  readonly evidence?: unknown;
  /** In place of what is usual for the kind of check. */
  readonly fix?: string;
}

const WEIGHT: Readonly<Record<CheckStatus, number>> = { skip: 0, pass: 1, warn: 2, fail: 3 };

/** Adds one check for each kind of finding: the worst of them, and of equals the first. */
export function addFindings(list: CheckList, subject: string, findings: readonly Finding[]): void {
  const worst = new Map<CheckId, Finding>();
  for (const finding of findings) {
    const known = worst.get(finding.id);
    if (known === undefined || WEIGHT[finding.status] > WEIGHT[known.status]) worst.set(finding.id, finding);
  }
  for (const { id, status, message, evidence, fix } of worst.values()) {
    list[status](id, subject, message, { evidence, ...(fix !== undefined && { fix }) });
  }
}

/** Members that are tried, so that a schema of thousands costs no more than a few. */
const MOST_SPOILED = 20;
const WRONG_VALUES: readonly unknown[] = [{ "waybill check": [true] }, 12.5, "\u0001", null];

/** An input that misses a schema: without what must be there, or with a value of another type; nothing where everything passes. */
function spoiledInput(schema: CompiledSchema): Input | undefined {
  if (!schema.check({})) return {};
  const { json } = schema;
  const properties = isPlainObject(json) && isPlainObject(json["properties"]) ? json["properties"] : {};
  for (const name of Object.keys(properties).slice(0, MOST_SPOILED)) {
    for (const wrong of WRONG_VALUES) {
      const input: Record<string, unknown> = {};
      setOwn(input, name, wrong);
      if (!schema.check(input)) return input;
    }
  }
  return undefined;
}
