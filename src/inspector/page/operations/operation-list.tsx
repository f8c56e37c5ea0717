import { useId } from "preact/hooks";
import type { OperationRow } from "../../protocol.ts";
import { VirtualList } from "../parts/virtual-list.tsx";
import { ListFilters } from "./list-filters.tsx";
import { OperationLine, SourceHead } from "./operation-line.tsx";
import type { ListLine } from "./search-operations.ts";
import { useOperationList } from "./use-operation-list.ts";

const HEIGHT = 48;

/** The operations as a list that is searched while typing and moved in with the arrow keys. */
export function OperationList({
  rows,
  chosen,
}: {
  readonly rows: readonly OperationRow[];
  readonly chosen: string | undefined;
}) {
  const id = useId();
  const list = useOperationList(rows, chosen);
  const { lines, narrowing, narrow, active, at, onKeyDown } = list;
  const last = lines.at(-1);
  const count = last?.kind === "operation" ? last.position : 0;
  const draw = (line: ListLine, index: number) =>
    line.kind === "source" ? (
      <SourceHead line={line} />
    ) : (
      <OperationLine
        row={line.row}
        id={`${id}-${index}`}
        place={[line.position, count]}
        isChosen={line.row.id === chosen}
        isActive={line.row.id === active}
      />
    );
  return (
    <>
      <ListFilters rows={rows} list={list} count={count} id={id} />
      {count === 0 && (
        <p class="notice">
          No operation matches.{" "}
          <button type="button" onClick={() => narrow({ query: "", source: undefined })}>
            Show all
          </button>
        </p>
      )}
      <VirtualList
        key={JSON.stringify(narrowing)}
        items={lines}
        height={HEIGHT}
        keep={at}
        reveal={at}
        keyOf={(line) => (line.kind === "source" ? `source ${line.source}` : line.position)}
        onKeyDown={onKeyDown}
        attributes={{
          id: `${id}-list`,
          role: "listbox",
          tabIndex: 0,
          "aria-label": "Operations",
          "aria-activedescendant": at < 0 ? undefined : `${id}-${at}`,
        }}
        draw={draw}
      />
    </>
  );
}
