import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpRequestOptions } from "../../mcp/client/mcp-connection.ts";
import { counted } from "../terminal/counted.ts";
import type { CheckList } from "./check-report.ts";
import { addFindings, type Finding } from "./findings.ts";
import { isRefusal } from "./mcp-manners-checks.ts";
import { describeAnswer, type McpPeer, type PeerAnswer } from "./mcp-peer.ts";
import { judgeResult } from "./mcp-result-checks.ts";
import type { ListedTool } from "./mcp-tool-checks.ts";
import { sampleInput, spoiledInput } from "./sample-input.ts";

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
  list: CheckList,
  peer: McpPeer,
  tools: readonly ListedTool[],
  plan: CallPlan,
): Promise<void> {
  let called = 0;
  let isCancelled = false;
  for (const tool of tools) {
    const input = inputFor(list, tool, plan, called);
    if (input === undefined) continue;
    if (peer.isGone) {
      list.skip("mcp.call", tool.name, "Not called: the connection was lost too often.");
      continue;
    }
    called += 1;
    plan.onCall(tool.name);
    await (tool.isStream ? checkStream : checkTool)(list, peer, tool, input);
    if (!plan.inputs.has(tool.name)) await checkRefusal(list, peer, tool);
    if (!isCancelled) {
      isCancelled = true;
      await checkCancel(list, peer, tool, input);
    }
  }
}

/** What a tool is called with; nothing, and a check that says why, where it is not called. */
function inputFor(list: CheckList, tool: ListedTool, plan: CallPlan, called: number): Input | undefined {
  const id = "mcp.call";
  const { name, input, isReadOnly } = tool;
  const given = plan.inputs.get(name);
  if (!isReadOnly && !plan.all && !plan.named.has(name) && given === undefined) {
    list.skip(
      id,
      name,
      "Not called: it does not say that it only reads. Name it with --call, or use --call-all.",
    );
    return undefined;
  }
  if (called >= MOST_CALLED && !plan.named.has(name) && given === undefined) {
    list.skip(id, name, `Not called: ${MOST_CALLED} tools were. Name it with --call.`);
    return undefined;
  }
  const sample = given ?? (input === undefined ? {} : sampleInput(input));
  if (isPlainObject(sample)) return sample;
  const hint = `Give one with --input ${name}=@file.json.`;
  list.skip(id, name, `Not called: no input could be made that passes its inputSchema. ${hint}`);
  return undefined;
}

function call(
  peer: McpPeer,
  { name, definition }: ListedTool,
  input: Input,
  options: Pick<McpRequestOptions, "signal" | "onProgress"> = {},
) {
  const { inputSchema } = definition;
  return peer.ask(
    "tools/call",
    { name, arguments: input },
    { ...options, ...(isPlainObject(inputSchema) && { inputSchema }) },
  );
}

async function checkTool(list: CheckList, peer: McpPeer, tool: ListedTool, input: Input): Promise<void> {
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
async function checkStream(list: CheckList, peer: McpPeer, tool: ListedTool, input: Input): Promise<void> {
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
  return [{ id, status: "pass", message: `It said no to the sampled input. ${hint}` }, ...findings];
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
    return { id, status: "warn", message: "Equal calls sometimes succeed and sometimes say no." };
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
  kinds.set("structuredContent", structuredContent === undefined ? "absent" : kindOf(structuredContent));
  if (isPlainObject(structuredContent)) {
    for (const [key, value] of Object.entries(structuredContent).slice(0, 1_000)) {
      kinds.set(`structuredContent.${key}`, kindOf(value));
    }
  }
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  if (isPlainObject(first)) kinds.set("the first block", String(first["type"]));
  return kinds;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

async function checkRefusal(list: CheckList, peer: McpPeer, tool: ListedTool): Promise<void> {
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

async function checkCancel(list: CheckList, peer: McpPeer, tool: ListedTool, input: Input): Promise<void> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 5);
  await call(peer, tool, input, { signal: stop.signal });
  clearTimeout(timer);
  const answer = await peer.ask("tools/list", {});
  const id = "mcp.manners.cancel";
  if (answer.kind === "result") list.pass(id, tool.name, "The server answers on after a call was cancelled.");
  else list.fail(id, tool.name, `After a call was cancelled the server fails. ${describeAnswer(answer)}`);
}
