import type { CallFailure, CallRow, CallView, ResultView } from "../protocol.ts";
import { type CallLog, rowOf } from "./call-log.ts";
import { readKept } from "./kept-text.ts";
import type { LoggedCall } from "./logged-call.ts";
import { maySee, type Viewer } from "./viewer.ts";

/** Tells all that is remembered of a call; nothing where it is not there for this viewer. */
export function viewOfCall(log: CallLog, seq: number, viewer: Viewer): CallView | undefined {
  const call = log.get(seq);
  if (call === undefined || !maySee(viewer, call.caller)) return undefined;
  const error = errorOf(call, viewer);
  const { raw } = call;
  return {
    row: rowOf(call),
    input: readKept(call.input, (value) => ({ value })),
    results: call.results.map((kept) => readKept(kept, (value) => value as ResultView)),
    earlier: call.earlier,
    ...(error !== undefined && { error }),
    ...(raw !== undefined && viewer.isOperator && { raw: readKept(raw, (value) => ({ value })) }),
    family: familyOf(log, call, viewer),
  };
}

const FORGOTTEN_MESSAGE = "What was said about the error is not remembered.";

function errorOf({ error, row, toldMessage }: LoggedCall, { isOperator }: Viewer): CallFailure | undefined {
  if (error === undefined) return undefined;
  if (error.text === undefined) return { code: row.code ?? "UNKNOWN_ERROR", message: FORGOTTEN_MESSAGE };
  const failure = JSON.parse(error.text) as CallFailure;
  if (isOperator || toldMessage === undefined) return failure;
  const { text } = toldMessage;
  return { ...failure, message: text === undefined ? FORGOTTEN_MESSAGE : (JSON.parse(text) as string) };
}

/** The call nobody here made, and all below it, as far as they are remembered. */
function familyOf(log: CallLog, call: LoggedCall, viewer: Viewer): readonly CallRow[] {
  const below = new Map<number, LoggedCall[]>();
  for (const one of log.calls()) {
    const { parent } = one.row;
    if (parent === undefined) continue;
    const known = below.get(parent);
    if (known === undefined) below.set(parent, [one]);
    else known.push(one);
  }
  const family: LoggedCall[] = [];
  const left = [eldestOf(log, call)];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    family.push(next);
    for (const child of below.get(next.seq) ?? []) left.push(child);
  }
  return family
    .filter(({ caller }) => maySee(viewer, caller))
    .sort((a, b) => a.seq - b.seq)
    .map(rowOf);
}

/** A call is always above those with a higher number, so this ends. */
function eldestOf(log: CallLog, call: LoggedCall): LoggedCall {
  let eldest = call;
  for (;;) {
    const { parent } = eldest.row;
    const above = parent === undefined ? undefined : log.get(parent);
    if (above === undefined) return eldest;
    eldest = above;
  }
}
