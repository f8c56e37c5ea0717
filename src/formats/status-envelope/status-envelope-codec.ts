import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import {
  adviceText,
  headline,
  isBlank,
  linksFrom,
  nextStepsText,
  textsIn,
} from "../../core/result/human-text.ts";
import { type CallToolResult, type ToolResult, textBlock } from "../../core/result/tool-result.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import {
  type Carrier,
  type Contract,
  findContract,
  isEmpty,
  readCarrier,
  unusualParts,
  withUnknown,
  writeCarrier,
} from "../carrier.ts";
import { createCodec, type Decoded, type Oddity } from "../codec.ts";
import { FormatError, writeFormatJson } from "../format-error.ts";
import { isStatusMeta } from "../result-fields.ts";
import { adviseRetry } from "../retry-advice.ts";
import type { ToolResponseEnvelope, ToolResponseMeta } from "./compose-tool-payload.ts";

const NAME = "status-envelope";
const META_KEYS = [
  "status",
  "summary",
  "details",
  "nextSteps",
  "truncated",
  "tokenUsage",
  "rateLimit",
] as const;

/** The structured tool response: `{ meta, data }` as structured content, and its headline and details as text. */
export const statusEnvelopeCodec = createCodec<CallToolResult>({
  name: NAME,

  write(result) {
    const extra = result.extra?.[NAME] ?? {};
    const envelope = toStatusEnvelope(result);
    // Refuses what JSON cannot hold: nobody could send it.
    writeFormatJson(envelope.data);
    const human = result.content ?? [];
    const omitting = {
      omitMetaDetails: extra["omitsDetails"] === true,
      omitNextSteps: extra["omitsNextSteps"] === true,
    };
    return writeCarrier(NAME, result, {
      content:
        extra["verbatim"] === true
          ? human
          : layOut(envelope.meta, withAdvice(result, human, omitting), omitting),
      ...(extra["inText"] !== true && { structured: { value: envelope } }),
      flag: result.isError,
    });
  },

  read(value, options) {
    const carrier = readCarrier(value);
    const contract = findContract(carrier, options);
    if (contract === undefined || !isStatusEnvelope(contract.value)) {
      throw new FormatError("bad_shape", "The result holds no status envelope.", { format: NAME });
    }
    return { ...readStatusEnvelope(carrier, contract), residual: carrier.residual };
  },
});

/** Where the next steps are somebody's own, what the error advises besides stands above them. */
function withAdvice(
  { error, nextSteps }: ToolResult,
  human: readonly MCPContentBlock[],
  { omitNextSteps }: Omitting,
): readonly MCPContentBlock[] {
  if (error === undefined || nextSteps === undefined || omitNextSteps === true) return human;
  const advice = adviceText(error, [...textsIn(human), ...nextSteps]);
  const links = linksFrom(human);
  return advice === undefined ? human : [...human.slice(0, links), textBlock(advice), ...human.slice(links)];
}

/** What of `meta` stays out of the text. */
interface Omitting {
  readonly omitMetaDetails?: boolean | undefined;
  readonly omitNextSteps?: boolean | undefined;
}

/** Puts blocks in their order: headline, details, the rest, next steps, and the links that end the rest. */
export function layOut(
  meta: ToolResponseMeta,
  rest: readonly MCPContentBlock[],
  { omitMetaDetails = false, omitNextSteps = false }: Omitting,
): readonly MCPContentBlock[] {
  const { status, summary, details = [], nextSteps = [] } = meta;
  const shown = omitMetaDetails ? [] : details.filter((detail) => !isBlank(detail));
  const steps = omitNextSteps ? [] : nextSteps.filter((step) => !isBlank(step));
  const links = linksFrom(rest);
  return [
    textBlock(headline(status, summary)),
    ...shown.map(textBlock),
    ...rest.slice(0, links),
    ...(steps.length > 0 ? [textBlock(nextStepsText(steps))] : []),
    ...rest.slice(links),
  ];
}

/** Tells whether a value is a `{ meta: { status, summary, … }, data }`; unknown fields are fine. */
export function isStatusEnvelope(value: unknown): value is ToolResponseEnvelope {
  return isPlainObject(value) && Object.hasOwn(value, "data") && isStatusMeta(value["meta"]);
}

function toStatusEnvelope(result: ToolResult): ToolResponseEnvelope {
  const { data, error, truncated, tokenUsage, rateLimit } = result;
  const { status = result.isError ? "error" : "ok", summary = inventSummary(result), details } = result;
  const nextSteps = nextStepsOf(result);
  const meta: ToolResponseMeta = {
    status,
    summary,
    ...(details !== undefined && { details }),
    ...(nextSteps !== undefined && { nextSteps }),
    ...(truncated !== undefined && { truncated }),
    ...(tokenUsage !== undefined && { tokenUsage }),
    ...(rateLimit !== undefined && { rateLimit }),
  };
  const extra = result.extra?.[NAME] ?? {};
  const made = error?.code === undefined ? null : { errorCode: error.code };
  const envelope = { meta: withUnknown(meta, extra["meta"]), data: data === undefined ? made : data };
  return withUnknown(envelope, extra["envelope"]);
}

function inventSummary({ error, tool = "The tool", isError }: ToolResult): string {
  return error?.message ?? (isError ? `${tool} failed.` : `${tool} answered.`);
}

/** The steps a result names; else what its error suggests, or what is known about errors of its kind. */
export function nextStepsOf({ nextSteps, error }: ToolResult): readonly string[] | undefined {
  if (nextSteps !== undefined || error === undefined) return nextSteps;
  const { suggestedAction, nextTool } = error;
  const steps = [suggestedAction, nextTool === undefined ? undefined : `Call ${nextTool}.`];
  const given = steps.filter((step) => step !== undefined);
  if (given.length > 0) return given;
  const { retryable, correctable } = adviseRetry(error);
  if (retryable === true) return ["Try again later with the same input."];
  return correctable === true ? ["Correct the input and try again."] : undefined;
}

/** Reads a result whose status envelope has been found. */
export function readStatusEnvelope(carrier: Carrier, { value, obtained }: Contract): Decoded {
  const envelope = value as ToolResponseEnvelope;
  const { meta, data, ...unknown } = envelope as ToolResponseEnvelope & Record<string, unknown>;
  const known = META_KEYS.filter((key) => meta[key] !== undefined).map((key) => [key, meta[key]]);
  const unknownMeta = Object.entries(meta).filter(([key]) => !META_KEYS.some((name) => name === key));
  // Left out, the flag follows the status.
  const isError = carrier.flag ?? meta.status === "error";
  const layout = readLayout(meta, carrier.content as readonly MCPContentBlock[]);
  const extra = {
    ...unusualParts(carrier, isError),
    ...layout.extra,
    ...(obtained === "contract-json" && { inText: true }),
    ...(unknownMeta.length > 0 && { meta: Object.fromEntries(unknownMeta) }),
    ...(!isEmpty(unknown) && { envelope: unknown }),
  };
  const result: ToolResult = {
    isError,
    data,
    ...Object.fromEntries(known),
    ...(layout.rest.length > 0 && { content: layout.rest }),
    ...(carrier.meta && { _meta: carrier.meta }),
    ...(!isEmpty(extra) && { extra: { [NAME]: extra } }),
  };
  return { result, obtained, odd: oddities(isError, meta) };
}

interface Layout {
  /** The blocks that are not derived from `meta`. */
  readonly rest: readonly MCPContentBlock[];
  readonly extra: Readonly<Record<string, unknown>>;
}

/** The layouts a result may have, the usual one first. */
const LAYOUTS: readonly { readonly omitting: Omitting; readonly extra: Layout["extra"] }[] = [
  { omitting: {}, extra: {} },
  { omitting: { omitMetaDetails: true }, extra: { omitsDetails: true } },
  { omitting: { omitNextSteps: true }, extra: { omitsNextSteps: true } },
  {
    omitting: { omitMetaDetails: true, omitNextSteps: true },
    extra: { omitsDetails: true, omitsNextSteps: true },
  },
];

/** Takes away the blocks that `layOut` derives; where they are not as it writes them, everything is kept as it stands. */
function readLayout(meta: ToolResponseMeta, content: readonly MCPContentBlock[]): Layout {
  for (const { omitting, extra } of LAYOUTS) {
    const derived = layOut(meta, [], omitting);
    const steps = layOut({ ...meta, nextSteps: [] }, [], omitting).length;
    const links = linksFrom(content);
    const rest = [...content.slice(steps, links - (derived.length - steps)), ...content.slice(links)];
    const isSame = content.length - rest.length === derived.length;
    if (isSame && isEqual(content, layOut(meta, rest, omitting))) return { rest, extra };
  }
  return { rest: content, extra: { verbatim: true } };
}

function oddities(isError: boolean, meta: ToolResponseMeta): readonly Oddity[] {
  const odd: Oddity[] = [];
  if (isError !== (meta.status === "error")) {
    odd.push({ code: "flag_mismatch", message: `isError does not go with the status "${meta.status}".` });
  }
  if ([...meta.summary].length > 80 || /[\r\n]/.test(meta.summary)) {
    odd.push({ code: "long_summary", message: "The summary is over 80 characters, or more than one line." });
  }
  return odd;
}
