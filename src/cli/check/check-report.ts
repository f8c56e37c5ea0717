import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/clean-text.ts";

/** How a check ended. */
export type CheckStatus = "pass" | "warn" | "fail" | "skip";

/** How a server or a document is checked. */
export interface CheckOptions {
  /** What it is called in the report, without secrets. */
  readonly target: string;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Takes secrets out of what is told. @default nothing is taken out */
  readonly mask?: ((text: string) => string) | undefined;
  /** Hears what is looked at. */
  onProgress(text: string): void;
}

/** One question asked of a server or document, and the answer; every text is fit to be shown. */
export interface Check {
  readonly id: CheckId;
  readonly title: string;
  /** The tool, operation, resource or prompt it is about; empty for the server or document as a whole. */
  readonly subject: string;
  readonly status: CheckStatus;
  readonly message: string;
  /** What was seen, as text; cut. */
  readonly evidence?: string;
  /** What to do; with warnings and failures. */
  readonly fix?: string;
}

/** How many checks ended which way. */
type CheckCounts = Readonly<Record<CheckStatus, number>>;

/** What is known of a server or document once it has been checked: what `--json` prints. */
export interface CheckReport {
  /** The version of Waybill that looked. */
  readonly waybill: string;
  /** What was checked, without secrets. */
  readonly target: string;
  readonly kind: "mcp" | "openapi";
  /** What it calls itself. */
  readonly name?: string;
  readonly version?: string;
  /** The revision of MCP that was spoken. */
  readonly protocol?: string;
  /** False where it could not be connected to, or not be read. */
  readonly reachable: boolean;
  /** Why nothing of an API was called; absent where it was. */
  readonly notCalled?: string;
  readonly counts: CheckCounts;
  /** In the order they were made. */
  readonly checks: readonly Check[];
  /** Checks that were counted and are not listed, being too many. */
  readonly omitted: number;
}

/** Bounds on what is told. */
export const REPORT_LIMITS = {
  /** Checks that are listed; passes are left out first. */
  checks: 5_000,
  message: 500,
  subject: 200,
  evidence: 1_000,
} as const;

/** What may be said with a check besides its message. */
interface FindingOptions {
  readonly evidence?: unknown;
  /** In place of what is usual for the kind of check. */
  readonly fix?: string;
}

/** What a report says of its target. */
type TargetFacts = Pick<CheckReport, "target" | "kind">;

/** Collects checks while they are made; whatever is put in comes out cleaned, masked and bounded. */
export class CheckList {
  readonly #target: TargetFacts;
  readonly #mask: (text: string) => string;
  readonly #checks: Check[] = [];
  readonly #counts = { pass: 0, warn: 0, fail: 0, skip: 0 };
  #omitted = 0;
  #facts: Pick<CheckReport, "name" | "version" | "protocol"> = {};
  #isReachable = true;
  #notCalled: string | undefined;

  constructor(target: TargetFacts, mask: (text: string) => string = (text) => text) {
    this.#mask = mask;
    this.#target = { ...target, target: this.#line(target.target, REPORT_LIMITS.message) };
  }

  pass(id: CheckId, subject: string, message: string): void {
    this.#add({ id, subject, status: "pass", message });
  }

  skip(id: CheckId, subject: string, message: string): void {
    this.#add({ id, subject, status: "skip", message });
  }

  warn(id: CheckId, subject: string, message: string, options: FindingOptions = {}): void {
    this.#add({ id, subject, status: "warn", message }, options);
  }

  fail(id: CheckId, subject: string, message: string, options: FindingOptions = {}): void {
    this.#add({ id, subject, status: "fail", message }, options);
  }

  /** Says that the target could not be reached at all. */
  unreachable(id: CheckId, message: string): void {
    this.#isReachable = false;
    this.fail(id, "", message);
  }

  /** Says why nothing of an API was called. */
  notCalled(reason: string): void {
    this.#notCalled = reason;
  }

  /** Keeps what the target says of itself. */
  describe(facts: { readonly name?: unknown; readonly version?: unknown; readonly protocol?: string }): void {
    const { name, version, protocol } = facts;
    this.#facts = {
      ...(typeof name === "string" && { name: this.#line(name, 200) }),
      ...(typeof version === "string" && { version: this.#line(version, 100) }),
      ...(protocol !== undefined && { protocol: this.#line(protocol, 40) }),
    };
  }

  get report(): CheckReport {
    return {
      waybill: PACKAGE_VERSION,
      ...this.#target,
      ...this.#facts,
      reachable: this.#isReachable,
      ...(this.#notCalled !== undefined && { notCalled: this.#notCalled }),
      counts: { ...this.#counts },
      checks: [...this.#checks],
      omitted: this.#omitted,
    };
  }

  #add(
    { id, subject, status, message }: Pick<Check, "id" | "subject" | "status" | "message">,
    { evidence: seen, fix: ownFix }: FindingOptions = {},
  ): void {
    this.#counts[status] += 1;
    if (this.#checks.length >= REPORT_LIMITS.checks && !this.#dropPass(status)) {
      this.#omitted += 1;
      return;
    }
    const { title, fix } = CHECK_KINDS[id];
    const evidence = this.#evidence(seen);
    this.#checks.push({
      id,
      title,
      subject: this.#line(subject, REPORT_LIMITS.subject),
      status,
      message: this.#line(message, REPORT_LIMITS.message),
      ...(evidence !== "" && { evidence }),
      ...((status === "warn" || status === "fail") && {
        fix: this.#line(ownFix ?? fix, REPORT_LIMITS.message),
      }),
    });
  }

  /** Makes room for what matters more than a check that passed. */
  #dropPass(status: CheckStatus): boolean {
    if (status === "pass") return false;
    const at = this.#checks.findLastIndex((check) => check.status === "pass");
    if (at < 0) return false;
    this.#checks.splice(at, 1);
    this.#omitted += 1;
    return true;
  }

  #evidence(value: unknown): string {
    if (value === undefined) return "";
    return this.#line(typeof value === "string" ? value : toJson(value), REPORT_LIMITS.evidence);
  }

  #line(text: string, length: number): string {
    // Masked again once it is cleaned: what was taken out may have stood in the middle of a secret.
    return this.#mask(safeLine(this.#mask(text.slice(0, length * 8)), length));
  }
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(no JSON)";
  }
}

/** What one kind of check asks, and what to do where the answer is no. */
interface CheckKind {
  readonly title: string;
  /** For people, where it fails or warns. */
  readonly fix: string;
}

/** Every kind of check by its id. A new row, and code that adds checks under the id, is all that a new one needs. */
const CHECK_KINDS = {
  "mcp.connect": {
    title: "the server can be connected to",
    fix: "Start the command by hand, or open the address, and see what it says.",
  },
  "mcp.revision": {
    title: "the revisions of MCP agree with each other",
    fix: "Offer the same tools under every revision that is spoken.",
  },
  "mcp.list": {
    title: "tools are listed in full",
    fix: "Answer tools/list with an array of tools, and end its pages with one that has no nextCursor.",
  },
  "mcp.list.stable": {
    title: "two listings in a row are the same",
    fix: "Keep definitions as they are, and tell of changes with notifications/tools/list_changed.",
  },
  "mcp.list.unique": { title: "names of tools are unique", fix: "Give every tool a name of its own." },
  "mcp.list.size": {
    title: "definitions leave a model room to think",
    fix: "Shorten descriptions and schemas, or serve fewer tools; `waybill serve` can serve a small catalogue instead.",
  },
  "mcp.tool.name": {
    title: "the name can be used everywhere",
    fix: "Use 1 to 128 of the letters A-Z a-z, digits, _ - and a full stop.",
  },
  "mcp.tool.description": {
    title: "the tool says what it does",
    fix: "Add a description: models choose tools by it.",
  },
  "mcp.tool.hidden": {
    title: "nothing hides in the definition",
    fix: "Remove control, zero-width, bidi and tag characters; people do not see them and models do.",
  },
  "mcp.tool.input-schema": {
    title: "the input schema is an object schema that can be used",
    fix: 'Declare an inputSchema with "type": "object" that is valid JSON Schema.',
  },
  "mcp.tool.output-schema": {
    title: "the output schema can be used",
    fix: "Declare an outputSchema that is valid JSON Schema, or none.",
  },
  "mcp.tool.annotations": {
    title: "annotations do not contradict each other",
    fix: "A tool that only reads destroys nothing: correct readOnlyHint or destructiveHint; hints are true or false.",
  },
  "mcp.manners.unknown-tool": {
    title: "an unknown tool is refused",
    fix: "Answer tools/call of an unknown name with the JSON-RPC error -32602, or a result with isError.",
  },
  "mcp.manners.unknown-method": {
    title: "an unknown method is refused",
    fix: "Answer methods that are not known with the JSON-RPC error -32601.",
  },
  "mcp.manners.ping": { title: "ping is answered", fix: "Answer ping with an empty result." },
  "mcp.manners.invalid-arguments": {
    title: "arguments that miss the input schema are refused",
    fix: "Check arguments against the inputSchema, and answer with isError or -32602 what is wrong with them.",
  },
  "mcp.manners.cancel": {
    title: "the server goes on after a call that was cancelled",
    fix: "Stop the call on notifications/cancelled, and keep answering others.",
  },
  "mcp.call": {
    title: "calls are answered",
    fix: "Answer every tools/call, in time, with a result or an error.",
  },
  "mcp.result.shape": {
    title: "results have the shape that MCP asks for",
    fix: "Answer with content, an array of blocks that each have a known type and its members.",
  },
  "mcp.result.structured": {
    title: "structured content keeps the output schema",
    fix: "Send structuredContent that passes the outputSchema, or correct the schema.",
  },
  "mcp.result.text": {
    title: "structured content comes with text as well",
    fix: "Add a text block with the same data, for clients that read only text.",
  },
  "mcp.result.error": {
    title: "error results say what is wrong",
    fix: "Add a text block that says what went wrong and what to do about it.",
  },
  "mcp.result.format": {
    title: "published formats are written as published",
    fix: "See docs/formats.md; `waybill decode` shows how a result is read.",
  },
  "mcp.result.stable": {
    title: "equal calls give data of the same type",
    fix: "Answer the same input with the same kind of data each time.",
  },
  "mcp.resource.list": {
    title: "resources are listed",
    fix: "Answer resources/list with an array of resources.",
  },
  "mcp.resource.read": {
    title: "listed resources can be read",
    fix: "List only what can be read, and answer with contents that each have a uri and a text or a blob.",
  },
  "mcp.prompt.list": { title: "prompts are listed", fix: "Answer prompts/list with an array of prompts." },
  "mcp.prompt.get": {
    title: "listed prompts can be had",
    fix: "Answer prompts/get with messages that each have a role and content.",
  },
  "openapi.read": {
    title: "the document can be read",
    fix: "Give the path or address of an OpenAPI 2.0 to 3.2 document, as JSON or YAML.",
  },
  "openapi.operation": {
    title: "every operation can be used",
    fix: "Correct what the document says of the operation, or mend it with an overlay.",
  },
  "openapi.note": {
    title: "operations are described without mistakes",
    fix: "Correct the document; until then the mistake is mended or left out as the message says.",
  },
  "openapi.operation-id": {
    title: "operationIds are there and unique",
    fix: "Give every operation an operationId of its own: names of operations are made of it.",
  },
  "openapi.security": {
    title: "security schemes are known",
    fix: "Declare every scheme that security names under components.securitySchemes, with a type of OpenAPI.",
  },
  "openapi.schema": {
    title: "schemas can be used",
    fix: "Correct the schema; until then nothing is checked by it.",
  },
  "openapi.server": {
    title: "the API can be reached",
    fix: "Start the API, or name where it is with --base-url; --offline leaves this out.",
  },
  "openapi.call": {
    title: "calls are answered",
    fix: "Answer in time, with a body that is what its Content-Type says.",
  },
  "openapi.response.status": {
    title: "answers have a status that the document declares",
    fix: "Declare the status under responses, or answer with one that is declared.",
  },
  "openapi.response.media": {
    title: "answers have a media type that the document declares",
    fix: "Declare the media type under content of the response, or answer with one that is declared.",
  },
  "openapi.response.schema": {
    title: "answers keep their schema",
    fix: "Send what the schema of the response says, or correct the schema.",
  },
} as const satisfies Record<string, CheckKind>;

/** The id of a kind of check. */
export type CheckId = keyof typeof CHECK_KINDS;
