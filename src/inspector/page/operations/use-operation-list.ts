import { useEffect, useMemo, useState } from "preact/hooks";
import type { OperationRow } from "../../protocol.ts";
import { navigate, toHash } from "../router.ts";
import { lineAfterKey } from "./list-keys.ts";
import { type ListLine, type Narrowing, searchOperations, toSearched } from "./search-operations.ts";
import { useWorkspace } from "./workspace.ts";

/** The list of operations as it is narrowed and moved in. */
export interface OperationListState {
  readonly lines: readonly ListLine[];
  readonly narrowing: Narrowing;
  /** The id of the operation that Enter would choose. */
  readonly active: string | undefined;
  /** Its line; -1 where it is not in the list. */
  readonly at: number;
  readonly narrow: (change: Partial<Narrowing>) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** Narrows a list of operations and moves in it. */
export function useOperationList(
  rows: readonly OperationRow[],
  chosen: string | undefined,
): OperationListState {
  const workspace = useWorkspace();
  const [narrowing, setNarrowing] = useState(workspace.narrowing);
  const [moved, setMoved] = useState(chosen);
  const searched = useMemo(() => toSearched(rows), [rows]);
  const lines = useMemo(() => searchOperations(searched, narrowing), [searched, narrowing]);
  const active = moved ?? (narrowing.query === "" ? undefined : idOf(lines[1]));
  const at = useMemo(
    () => (active === undefined ? -1 : lines.findIndex((line) => idOf(line) === active)),
    [lines, active],
  );
  useEffect(() => setMoved(chosen), [chosen]);
  const narrow = (change: Partial<Narrowing>): void => {
    workspace.narrowing = { ...narrowing, ...change };
    setNarrowing(workspace.narrowing);
    setMoved(workspace.narrowing.query === "" ? chosen : undefined);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    if (event.isComposing || (event.target instanceof HTMLInputElement && /Home|End/.test(key))) return;
    const id = idOf(lines[(key === "Enter" ? at : lineAfterKey(lines, at, key)) ?? -1]);
    if (id === undefined) return;
    event.preventDefault();
    if (key !== "Enter") setMoved(id);
    else if (id !== chosen) navigate(toHash("operations", id));
    else document.getElementById("operation-title")?.focus();
  };
  return { lines, narrowing, active, at, narrow, onKeyDown };
}

function idOf(line: ListLine | undefined): string | undefined {
  return line?.kind === "operation" ? line.row.id : undefined;
}
