import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { FoundResult } from "./found-result.ts";
import { ResultTextError } from "./result-text-error.ts";

/** A call that the inspector exported as a file. */
export type Fixture = Readonly<Record<string, unknown>>;

/** Tells whether something is a call that the inspector exported. */
export function isFixture(value: Fixture): boolean {
  const { waybill } = value;
  return typeof waybill === "string" && /^fixture\/\d{1,9}$/.test(waybill);
}

/** Opens a fixture to what came back: one result, each value of a subscription, or the error. */
export function openFixture(fixture: Fixture, what: string): readonly FoundResult[] {
  const { waybill, envelope, envelopes, error } = fixture;
  if (waybill !== "fixture/1") {
    throw new ResultTextError(
      `${what} is a fixture of another version (${safeLine(String(waybill), 30)}); this Waybill reads fixture/1.`,
    );
  }
  const notes = [noteOf(fixture)];
  const values = isPlainObject(envelope) ? [envelope] : Array.isArray(envelopes) ? envelopes : [];
  const found: FoundResult[] = values.map((value) => ({ value, wrapping: "fixture", notes }));
  if (isPlainObject(error)) found.push({ failure: "call-error", error, wrapping: "fixture", notes });
  if (found.length > 0) return found;
  throw new ResultTextError(
    `${what} is a fixture without a result: ${reasonIn(fixture)}. Export it again from a call that has one.`,
  );
}

function noteOf({ operation, recordedAt }: Fixture): string {
  const of = typeof operation === "string" ? ` of ${safeLine(operation, 100)}` : "";
  const when = typeof recordedAt === "string" ? `, recorded ${safeLine(recordedAt, 40)}` : "";
  return `Taken out of a fixture${of}${when}.`;
}

function reasonIn({ outcome, omitted }: Fixture): string {
  if (outcome === undefined) return "the call was still running";
  return isPlainObject(omitted) && Array.isArray(omitted["envelopes"])
    ? "what came back was not kept"
    : "nothing came back";
}
