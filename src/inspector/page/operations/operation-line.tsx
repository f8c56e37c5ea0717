import type { OperationRow } from "../../protocol.ts";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { toHash } from "../router.ts";
import type { ListLine } from "./search-operations.ts";
import { TypeBadge } from "./type-badge.tsx";

/** The head of a source in the list. */
export function SourceHead({
  line: { source, count },
}: {
  readonly line: Extract<ListLine, { kind: "source" }>;
}) {
  return (
    <div class="source-head" role="presentation">
      <strong class="cut">{visibleText(source, 200)}</strong>
      <span class="soft small">{counted(count, "operation")}</span>
    </div>
  );
}

/** One operation in the list. */
export interface OperationLineProps {
  readonly row: OperationRow;
  readonly id: string;
  /** Which one it is, of how many. */
  readonly place: readonly [number, number];
  readonly isChosen: boolean;
  readonly isActive: boolean;
}

/** Shows an operation as a line to choose. */
export function OperationLine({ row, id, place, isChosen, isActive }: OperationLineProps) {
  return (
    <a
      class={`operation-line ${isActive ? "active" : ""}`}
      id={id}
      role="option"
      tabIndex={-1}
      href={toHash("operations", row.id)}
      aria-selected={isChosen}
      aria-posinset={place[0]}
      aria-setsize={place[1]}
    >
      <span class="row-top">
        <span class="mono cut">{visibleText(row.id, 300)}</span>
        <TypeBadge type={row.type} isDestructive={row.destructive} />
      </span>
      <span class="cut soft small">{visibleText(row.title || row.summary, 300)}</span>
      <span class="hidden-text">, source {visibleText(row.source, 200)}</span>
    </a>
  );
}
