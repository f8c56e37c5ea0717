import type { MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { ParsedBy } from "../../core/operation/operation-types.ts";
import { isBlank } from "../../core/result/human-text.ts";
import { type ContentBlock, textBlock } from "../../core/result/tool-result.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { markResult } from "../authored.ts";
import { createEnvelopeSchema, type EnvelopeSchema, type EnvelopeShape } from "../envelope-schema.ts";
import { writeFormatJson } from "../format-error.ts";
import { cutText, PREVIEW_CHARACTERS } from "../preview/cut-markdown.ts";
import { layOut, statusEnvelopeCodec } from "./status-envelope-codec.ts";

/** The longest summary hosts render well. */
const SUMMARY_CHARACTERS = 80;

/** Writes a reply: the headline, details, further text, next steps and links as blocks; the envelope for programs. */
export function composeToolPayload<T>(
  options: ComposeToolPayloadOptions<T>,
): ToolPayload<T> & AuthoredResult<T> {
  const { data, additionalText = [], resourceLinks = [], omitMetaDetails, omitNextSteps } = options;
  const meta = withoutUndefined(options.meta);
  assertMeta(meta);
  const { isError = meta.status === "error", onWarning = console.warn } = options;
  warnOfSummary(meta.summary, onWarning);
  if (isError && meta.status !== "error") {
    onWarning(
      `A tool response with isError says "${meta.status}"; some clients then check its data like a success.`,
    );
  }
  const texts = additionalText.filter((text) => !isBlank(text)).map(textBlock);
  const payload: ToolPayload<T> = {
    content: layOut(meta, [...texts, ...resourceLinks], { omitMetaDetails, omitNextSteps }) as ContentBlock[],
    // An envelope without data would be none.
    structuredContent: { meta, data: data === undefined ? (null as T) : data },
    isError,
  };
  return markResult(payload, () => statusEnvelopeCodec.decode(payload));
}

/** Optional fields are absent on the wire, not undefined. */
function withoutUndefined(meta: ToolResponseMeta): ToolResponseMeta {
  return Object.fromEntries(
    Object.entries(meta)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, isPlainObject(value) ? withoutUndefined(value as never) : value]),
  ) as unknown as ToolResponseMeta;
}

/** Programs without types make these mistakes, and hosts would show them. */
function assertMeta({ status, summary }: ToolResponseMeta): void {
  if (!["ok", "error", "info", "warn"].includes(status)) {
    throw new TypeError(
      `meta.status must be "ok", "error", "info" or "warn"; it is ${JSON.stringify(status)}.`,
    );
  }
  if (typeof summary !== "string") throw new TypeError("meta.summary must be a string.");
}

function warnOfSummary(summary: string, warn: (message: string) => void): void {
  if (/[\r\n]/.test(summary)) warn("The summary of a tool response has a line break; hosts show one line.");
  else if ([...summary].length > SUMMARY_CHARACTERS) {
    warn(`The summary of a tool response is over ${SUMMARY_CHARACTERS} characters; hosts may cut it.`);
  }
}

/** The arguments of the two convenience builders. */
export interface BuildResponseOptions {
  /** `success` is read as `ok`, and a word nobody knows as `info`. */
  readonly status: ToolResponseStatus | "success" | (string & {});
  readonly title: string;
  /** Follows the title in the summary. */
  readonly statusMessage?: string;
  /** Become the details. */
  readonly textSections?: readonly string[];
  readonly nextSteps?: readonly string[];
  /** Shown as fenced JSON. */
  readonly jsonData?: unknown;
  /** Characters of JSON shown. @default 2000 */
  readonly jsonPreviewLimit?: number;
  readonly resourceLinks?: readonly MCPResourceLinkBlock[];
  readonly tokenUsage?: TokenUsage;
  readonly rateLimit?: RateLimit;
  readonly truncated?: boolean;
  readonly omitMetaDetails?: boolean;
  readonly omitNextSteps?: boolean;
}

/** The data of a tool that has none of its own type yet. */
export interface DefaultToolResponseData {
  readonly title: string;
  readonly statusMessage?: string;
  readonly sections?: readonly string[];
  readonly jsonData?: unknown;
  /** The text shows less of the JSON than there is. */
  readonly truncated?: boolean;
}

/** Builds a reply from title, status and typed data. */
export function buildStructuredResponse<T>(
  options: BuildResponseOptions & { readonly data: T },
): ToolPayload<T> & AuthoredResult<T> {
  return build(options, options.data);
}

/**
 * Builds a reply whose data is nothing but what the text says.
 * @deprecated Use `buildStructuredResponse` or `composeToolPayload`, which carry typed data.
 */
export function buildToolResponse(
  options: BuildResponseOptions,
): ToolPayload<DefaultToolResponseData> & AuthoredResult<DefaultToolResponseData> {
  const { title, statusMessage, textSections, jsonData } = options;
  const { isCut } = previewOf(options);
  return build(options, {
    title,
    ...(statusMessage !== undefined && { statusMessage }),
    ...(textSections !== undefined && { sections: textSections }),
    ...(jsonData !== undefined && { jsonData }),
    ...(isCut && { truncated: true }),
  });
}

function build<T>(options: BuildResponseOptions, data: T): ToolPayload<T> & AuthoredResult<T> {
  const { title, statusMessage, textSections, nextSteps, resourceLinks, tokenUsage, rateLimit } = options;
  const { preview, isCut } = previewOf(options);
  const truncated = options.truncated ?? (isCut || undefined);
  const meta: ToolResponseMeta = {
    status: toStatus(options.status),
    summary: statusMessage === undefined || statusMessage === "" ? title : `${title}: ${statusMessage}`,
    ...(textSections !== undefined && { details: textSections }),
    ...(nextSteps !== undefined && { nextSteps }),
    ...(truncated !== undefined && { truncated }),
    ...(tokenUsage !== undefined && { tokenUsage }),
    ...(rateLimit !== undefined && { rateLimit }),
  };
  return composeToolPayload({
    meta,
    data,
    additionalText: preview,
    ...(resourceLinks !== undefined && { resourceLinks }),
    omitMetaDetails: options.omitMetaDetails,
    omitNextSteps: options.omitNextSteps,
  });
}

/** The word a legacy status stands for. */
function toStatus(status: string): ToolResponseStatus {
  switch (status) {
    case "ok":
    case "error":
    case "info":
    case "warn":
      return status;
    case "success":
      return "ok";
    default:
      return "info";
  }
}

function previewOf({ jsonData, jsonPreviewLimit = PREVIEW_CHARACTERS }: BuildResponseOptions): {
  readonly preview: readonly string[];
  readonly isCut: boolean;
} {
  if (jsonData === undefined) return { preview: [], isCut: false };
  // Refuses what JSON cannot hold before it is written for reading.
  writeFormatJson(jsonData);
  const { text, truncated } = cutText(JSON.stringify(jsonData, null, 2), {
    maxCharacters: jsonPreviewLimit,
  });
  return { preview: [`\`\`\`json\n${text}\n\`\`\``], isCut: truncated };
}

/** How a tool fared, as its headline shows it. */
export type ToolResponseStatus = "ok" | "error" | "info" | "warn";

/** Tokens in the reply itself, and in the whole result it stands for; estimates. */
export interface TokenUsage {
  readonly inline?: number;
  readonly total?: number;
}

/** What is left of a quota, and how long until it is full again. */
export interface RateLimit {
  readonly remaining?: number;
  readonly resetSeconds?: number;
}

/** The part of a reply that people and models read first. */
export interface ToolResponseMeta {
  readonly status: ToolResponseStatus;
  /** One line; hosts render up to 80 characters well. */
  readonly summary: string;
  readonly details?: readonly string[];
  /** What the agent may do now. */
  readonly nextSteps?: readonly string[];
  /** The reply shows less than there is. */
  readonly truncated?: boolean;
  readonly tokenUsage?: TokenUsage;
  readonly rateLimit?: RateLimit;
}

/** A tool's data with its status; a type rather than an interface, so that MCP SDKs take it for a record. */
export type ToolResponseEnvelope<T = unknown> = {
  readonly meta: ToolResponseMeta;
  readonly data: T;
};

/** What a tool returns to its MCP server: blocks for people, the envelope for programs. */
export type ToolPayload<T = unknown> = {
  readonly content: ContentBlock[];
  readonly structuredContent: ToolResponseEnvelope<T>;
  readonly isError: boolean;
};

/** What `composeToolPayload` is told. */
export interface ComposeToolPayloadOptions<T = unknown> {
  readonly meta: ToolResponseMeta;
  readonly data: T;
  /** Written verbatim after the details, a block each; blank ones are left out. */
  readonly additionalText?: readonly string[];
  /** Written last, untouched. */
  readonly resourceLinks?: readonly MCPResourceLinkBlock[];
  /** Keeps the details out of the text; they stay in `meta`. @default false */
  readonly omitMetaDetails?: boolean | undefined;
  /** Keeps the next steps out of the text; they stay in `meta`. @default false */
  readonly omitNextSteps?: boolean | undefined;
  /** @default meta.status === "error" */
  readonly isError?: boolean;
  /** Hears of a summary that hosts will not render well. @default console.warn */
  readonly onWarning?: (message: string) => void;
}

const TEXTS = { type: "array", items: { type: "string" } };

/** Describes a `ToolResponseMeta`; unknown fields are tolerated. */
export const ToolResponseMetaSchema: JsonSchemaObject = {
  type: "object",
  properties: {
    status: { enum: ["ok", "error", "info", "warn"] },
    summary: { type: "string" },
    details: TEXTS,
    nextSteps: TEXTS,
    truncated: { type: "boolean" },
    tokenUsage: { type: "object", properties: { inline: { type: "number" }, total: { type: "number" } } },
    rateLimit: {
      type: "object",
      properties: { remaining: { type: "number" }, resetSeconds: { type: "number" } },
    },
  },
  required: ["status", "summary"],
};

const SHAPE: EnvelopeShape = {
  fields: { type: "object", properties: { meta: ToolResponseMetaSchema }, required: ["meta", "data"] },
  failed: { properties: { meta: { properties: { status: { const: "error" } } } } },
  isFailed: ({ meta }) => (meta as { status?: unknown }).status === "error",
};

/**
 * Declares a whole status envelope as a tool's `outputSchema`, from the schema of its data. An error is admitted whatever
 * its data.
 */
export function createToolResponseEnvelopeSchema<S extends AnySchema>(
  schema: S,
): EnvelopeSchema<ToolResponseEnvelope<ParsedBy<S>>, S> {
  return createEnvelopeSchema(schema, SHAPE);
}
