import { isErrorEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { CallError } from "../../core/errors/errors.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { toWire } from "../../core/wire/wire.ts";
import { problemOf } from "./problem-answer.ts";

const WIRE = { code: "OUTPUT_INVALID", errors: false } as const;

/**
 * Writes one yield of a subscription: `data` is what JSON makes of it, `wire` what it is exactly, each where there is one and the two
 * differ. A yield that says no has `isError` and its reason.
 */
export function writeNext(id: string, envelope: ResponseEnvelope): string {
  const { data, meta } = envelope;
  const { cursor, event, code, message, details, said } = meta.waybill ?? {};
  const wire = toWire(data, WIRE);
  const text = data === undefined ? undefined : toJsonTextOrNone(data);
  const members = [
    ...(text === undefined ? [] : [`"data":${text}`]),
    ...(wire === data && text !== undefined ? [] : [`"wire":${JSON.stringify(wire)}`]),
    ...writeMembers({ cursor, event, said }),
    ...(isErrorEnvelope(envelope) ? ['"isError":true', ...writeMembers({ code, message, details })] : []),
  ];
  return writeEvent(id, "next", `{${members.join(",")}}`);
}

/** Writes the end of a subscription. */
export function writeDone(id: string): string {
  return writeEvent(id, "done", "{}");
}

/** Writes the error a subscription ended with, as a problem. */
export function writeError(id: string, error: CallError, requestId: string): string {
  return writeEvent(id, "error", JSON.stringify(problemOf(error, requestId)));
}

function writeMembers(members: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const text = value === undefined ? undefined : toJsonTextOrNone(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
}

/** JSON text has no line breaks, so that one line of data is enough. */
function writeEvent(id: string, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}
