import { isPlainObject } from "../../core/json/json-value.ts";
import type { CompiledSchema } from "../../core/schema/compile-schema.ts";
import type { SchemaIssue } from "../../core/schema/schema-issue.ts";
import { type DecodedToolResult, decodeToolResult } from "../../formats/decode-tool-result.ts";
import type { Finding } from "./findings.ts";

/** What a result is held to. */
export interface ResultRules {
  /** Whether the tool declares an outputSchema. */
  readonly declaresOutput: boolean;
  /** Absent where it cannot be used. */
  readonly output: CompiledSchema | undefined;
}

type Result = Readonly<Record<string, unknown>>;

/** Judges one result of a tool. */
export function judgeResult(result: Result, rules: ResultRules): readonly Finding[] {
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
  const shown = issues
    .slice(0, SHOWN_ISSUES)
    .map(({ pointer, expected, found }) => `at "${pointer}" expected ${expected}, found ${found}`);
  const rest = issues.length - shown.length;
  return `${shown.join("; ")}${rest > 0 ? `; and ${rest} more` : ""}.`;
}
