import type { OperationRow } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { visibleText } from "../parts/visible-text.ts";

/** Whether an operation reads, changes something, or streams; and whether it may destroy. */
export function TypeBadge({
  type,
  isDestructive = false,
}: {
  readonly type: OperationRow["type"];
  /** @default false */
  readonly isDestructive?: boolean | undefined;
}) {
  const tone = type === "mutation" ? "warn" : "plain";
  return (
    <>
      {isDestructive && <Badge tone="bad">destructive</Badge>}
      <Badge tone={type === "subscription" ? "note" : tone}>{visibleText(type, 20)}</Badge>
    </>
  );
}
