import { initialValue } from "../form/initial-value.ts";
import { isSameJson } from "../form/json-value.ts";
import type { InputHistory } from "./input-history.ts";
import type { OperationDesk } from "./operation-desk.ts";

/** Keeps what was typed at a desk, as far as it may be kept, in the place of what was kept of it before. */
export function keepDraft(drafts: InputHistory, desk: Pick<OperationDesk, "operation" | "value">): void {
  const { id, inputSchema } = desk.operation;
  drafts.forget(id);
  if (!isSameJson(desk.value, initialValue(inputSchema))) drafts.add(id, desk.value, inputSchema);
}
