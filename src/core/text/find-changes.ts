/** Items `from` to `to` of one list stand for `fromB` to `toB` of the other. */
export interface ListChange {
  readonly from: number;
  readonly to: number;
  readonly fromB: number;
  readonly toB: number;
}

/** Items that were put in or taken out, up to which changes are told apart; beyond it they are one. */
const MOST_EDITS = 400;

/** Finds where two lists of words differ, in order; changes that touch each other are one. Time and memory are bounded. */
export function findChanges(a: readonly string[], b: readonly string[]): readonly ListChange[] {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start++;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (restA.length + restB.length === 0) return [];
  const whole = [{ from: 0, to: restA.length, fromB: 0, toB: restB.length }];
  const changes: ListChange[] = [];
  for (const { from, to, fromB, toB } of shortestEdits(restA, restB) ?? whole) {
    const last = changes.at(-1);
    const moved = { from: from + start, to: to + start, fromB: fromB + start, toB: toB + start };
    if (last?.to === moved.from && last.toB === moved.fromB)
      changes[changes.length - 1] = { ...last, to: moved.to, toB: moved.toB };
    else changes.push(moved);
  }
  return changes;
}

/** The shortest way from one list to the other (Myers 1986), item by item; nothing where it is too long to look for. */
function shortestEdits(a: readonly string[], b: readonly string[]): readonly ListChange[] | undefined {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const reached = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(new Map(reached));
    for (let line = -edits; line <= edits; line += 2) {
      let x = isDown(reached, line, edits) ? at(reached, line + 1) : at(reached, line - 1) + 1;
      while (x < a.length && x - line < b.length && a[x] === b[x - line]) x++;
      reached.set(line, x);
      if (x >= a.length && x - line >= b.length) return walkBack(trace, a.length, b.length);
    }
  }
  return undefined;
}

function at(reached: ReadonlyMap<number, number>, line: number): number {
  return reached.get(line) ?? -1;
}

function isDown(reached: ReadonlyMap<number, number>, line: number, edits: number): boolean {
  return line === -edits || (line !== edits && at(reached, line - 1) < at(reached, line + 1));
}

function walkBack(trace: readonly ReadonlyMap<number, number>[], endA: number, endB: number): ListChange[] {
  const changes: ListChange[] = [];
  let [x, y] = [endA, endB];
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const reached = trace[edits] as ReadonlyMap<number, number>;
    const line = x - y;
    const down = isDown(reached, line, edits);
    const fromLine = down ? line + 1 : line - 1;
    const from = at(reached, fromLine);
    const fromB = from - fromLine;
    changes.unshift({ from, to: down ? from : from + 1, fromB, toB: down ? fromB + 1 : fromB });
    [x, y] = [from, fromB];
  }
  return changes;
}
