import type { CallView, EnvelopeView, KeptReason } from "../../protocol.ts";

/** A call as a file, for tests that want to know what came back; what is not there is left out when it is written. */
export interface Fixture {
  readonly waybill: "fixture/1";
  /** When the call began, in ISO 8601. */
  readonly recordedAt: string;
  readonly operation: string;
  readonly input: unknown;
  /** Nothing while the call runs. */
  readonly outcome: string | undefined;
  readonly durationMs: number | undefined;
  readonly envelope: EnvelopeView | undefined;
  /** Of a subscription, in the order they came. */
  readonly envelopes: readonly EnvelopeView[] | undefined;
  readonly error: CallView["error"];
  /** What is missing, and why; nothing when all is there. */
  readonly omitted:
    | {
        readonly input: KeptReason | undefined;
        readonly envelopes: readonly KeptReason[] | undefined;
        readonly earlier: number | undefined;
      }
    | undefined;
}

/** Makes the fixture of a call, as far as the call is remembered. */
export function toFixture({ row, input, results, earlier, error }: CallView): Fixture {
  const { startedAt, operation, outcome, durationMs, type } = row;
  const envelopes = results.flatMap((result) => ("envelope" in result ? [result.envelope] : []));
  const missing = results.flatMap((result) => ("omitted" in result ? [result.omitted] : []));
  const isMany = type === "subscription" || results.length > 1;
  const lost = "omitted" in input && input.omitted !== "none" ? input.omitted : undefined;
  const isWhole = !(lost || missing.length || earlier);
  return {
    waybill: "fixture/1",
    recordedAt: new Date(startedAt).toISOString(),
    operation,
    input: "value" in input ? input.value : undefined,
    outcome,
    durationMs,
    envelope: isMany ? undefined : envelopes[0],
    envelopes: isMany ? envelopes : undefined,
    error,
    omitted: isWhole
      ? undefined
      : { input: lost, envelopes: missing.length ? missing : undefined, earlier: earlier || undefined },
  };
}

/** The name of its file; what a file system may not like is left out. */
export function fixtureName(operation: string): string {
  const name = operation.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "");
  return `${name.slice(0, 100) || "call"}.fixture.json`;
}
