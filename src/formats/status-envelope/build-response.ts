import type { MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { toJsonText } from "../json-text.ts";
import { cutText, PREVIEW_CHARACTERS } from "../preview/cut-text.ts";
import { composeToolPayload } from "./compose-tool-payload.ts";
import type { RateLimit, TokenUsage, ToolPayload, ToolResponseMeta, ToolResponseStatus } from "./types.ts";

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
  toJsonText(jsonData);
  const { text, truncated } = cutText(JSON.stringify(jsonData, null, 2), { maxCharacters: jsonPreviewLimit });
  return { preview: [`\`\`\`json\n${text}\n\`\`\``], isCut: truncated };
}
