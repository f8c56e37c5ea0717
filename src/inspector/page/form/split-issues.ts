import type { IssueView } from "../../protocol.ts";
import { parsePointer } from "../parts/json-text.ts";

/** An issue as one field sees it. */
export interface PlacedIssue {
  /** The way to it from the field; empty for the field's own. */
  readonly path: readonly string[];
  readonly expected: string;
  readonly found: string;
}

/** The same list every time, so that fields without issues stay as they are. */
export const NO_ISSUES: readonly PlacedIssue[] = [];

/** As many as anybody reads. */
const MOST = 500;

/** Takes the issues of a whole input, as its outermost field sees them. */
export function placeIssues(issues: readonly IssueView[]): readonly PlacedIssue[] {
  if (issues.length === 0) return NO_ISSUES;
  return issues
    .slice(0, MOST)
    .map(({ pointer, expected, found }) => ({ path: parsePointer(pointer), expected, found }));
}

/** Parts the issues of a field from those of what is in it, by name. */
export function splitIssues(issues: readonly PlacedIssue[]): {
  readonly own: readonly PlacedIssue[];
  readonly below: ReadonlyMap<string, readonly PlacedIssue[]>;
} {
  const own: PlacedIssue[] = [];
  const below = new Map<string, PlacedIssue[]>();
  for (const issue of issues) {
    const [name, ...path] = issue.path;
    if (name === undefined) own.push(issue);
    else if (below.has(name)) below.get(name)?.push({ ...issue, path });
    else below.set(name, [{ ...issue, path }]);
  }
  return { own, below };
}

/** Those of what is not drawn, for the nearest field that is: its own, with the way to them. */
export function issuesElsewhere(
  below: ReadonlyMap<string, readonly PlacedIssue[]>,
  isDrawn: (name: string) => boolean,
): readonly PlacedIssue[] {
  return [...below]
    .filter(([name]) => !isDrawn(name))
    .flatMap(([name, issues]) => issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
}
