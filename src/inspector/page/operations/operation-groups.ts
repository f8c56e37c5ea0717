import type { OperationRow } from "../../protocol.ts";

/** A line of the list as it is shown: the operations of a large source stand in groups that fold. */
export type ShownLine =
  | ListLine
  | {
      readonly kind: "group";
      readonly key: string;
      readonly name: string;
      readonly count: number;
      readonly isOpen: boolean;
    };

/** Sources with no more operations than this stand there whole. */
const MOST_FLAT = 40;

/** Puts the operations of large sources in groups by their tag; those of a group that is folded are left out. */
export function groupLines(
  lines: readonly ListLine[],
  isOpen: (key: string) => boolean,
): readonly ShownLine[] {
  const shown: ShownLine[] = [];
  for (let at = 0; at < lines.length; ) {
    const head = lines[at];
    if (head?.kind !== "source") {
      if (head !== undefined) shown.push(head);
      at += 1;
      continue;
    }
    const members = lines.slice(at + 1, at + 1 + head.count);
    shown.push(head, ...(head.count > MOST_FLAT ? grouped(head.source, members, isOpen) : members));
    at += 1 + head.count;
  }
  return shown;
}

/** The group of an operation, told from those of other sources. */
export function groupKeyOf({ source, group }: Pick<OperationRow, "source" | "group">): string {
  return JSON.stringify([source, group ?? ""]);
}

function grouped(
  source: string,
  members: readonly ListLine[],
  isOpen: (key: string) => boolean,
): readonly ShownLine[] {
  const groups = new Map<string, ListLine[]>();
  for (const line of members) {
    if (line.kind !== "operation") continue;
    const { group = "" } = line.row;
    const known = groups.get(group);
    if (known === undefined) groups.set(group, [line]);
    else known.push(line);
  }
  if (groups.size < 2) return members;
  return [...groups]
    .sort(([one], [other]) => (one === "" ? 1 : other === "" ? -1 : one.localeCompare(other, "en")))
    .flatMap(([group, list]): ShownLine[] => {
      const key = groupKeyOf({ source, group });
      const open = isOpen(key);
      const name = group === "" ? "Without a tag" : group;
      return [{ kind: "group", key, name, count: list.length, isOpen: open }, ...(open ? list : [])];
    });
}

/** What the list is narrowed to. */
export interface Narrowing {
  /** What is searched for. */
  readonly query: string;
  /** @default every source */
  readonly source?: string | undefined;
}

/** A line of the list: the head of a source, or an operation below it. */
export type ListLine =
  | { readonly kind: "source"; readonly source: string; readonly count: number }
  | { readonly kind: "operation"; readonly row: OperationRow; readonly position: number };

/** The lines of a list: the operations that were found in their order, or all where nothing is searched for; each source in one piece. */
export function operationLines(
  rows: readonly OperationRow[],
  found: readonly string[] | undefined,
  source?: string,
): readonly ListLine[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const ordered = found === undefined ? rows : found.flatMap((id) => byId.get(id) ?? []);
  const shown = source === undefined ? ordered : ordered.filter((row) => row.source === source);
  let position = 0;
  return [...bySource(shown)].flatMap(([name, group]): ListLine[] => [
    { kind: "source", source: name, count: group.length },
    ...group.map((row): ListLine => {
      position += 1;
      return { kind: "operation", row, position };
    }),
  ]);
}

/** The operations of each source, in the order they come. */
export function bySource(rows: readonly OperationRow[]): ReadonlyMap<string, readonly OperationRow[]> {
  const groups = new Map<string, OperationRow[]>();
  for (const row of rows) {
    const group = groups.get(row.source);
    if (group === undefined) groups.set(row.source, [row]);
    else group.push(row);
  }
  return groups;
}
