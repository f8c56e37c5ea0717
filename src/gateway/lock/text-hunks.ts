/** One place where two texts differ, with what stands around it in both. */
export interface TextHunk {
  /** Characters that both have before `lead`, and that are not shown; after `trail`, of the last place alone. */
  readonly skipped: number;
  readonly rest: number;
  /** What stands right before and after it. */
  readonly lead: string;
  readonly before: string;
  readonly after: string;
  readonly trail: string;
}

/** Characters around a place that are shown. */
const AROUND = 40;
/** Words that were put in or taken out, up to which places are told apart; beyond it they are one. */
const MOST_EDITS = 400;

/** Finds every place where two texts differ, by words; places close to each other are one. Time and memory are bounded. */
export function findHunks(before: string, after: string): readonly TextHunk[] {
  const [a, b] = [tokensOf(before), tokensOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const whole = [{ from: 0, to: restA.length, fromB: 0, toB: restB.length }];
  const changes = (pathOf(restA, restB) ?? whole).map(({ from, to, fromB, toB }) => ({
    from: from + start,
    to: to + start,
    fromB: fromB + start,
    toB: toB + start,
  }));
  return toHunks(a, b, joined(a, changes));
}

function tokensOf(text: string): readonly string[] {
  return text.match(/\\u\{[0-9a-f]+\}|\\.|[\p{L}\p{N}_]+|./gsu) ?? [];
}

/** Words `from` to `to` of one text stand for `fromB` to `toB` of the other. */
interface Change {
  readonly from: number;
  readonly to: number;
  readonly fromB: number;
  readonly toB: number;
}

/** The shortest way from one list to the other (Myers 1986); nothing where it is too long to look for. */
function pathOf(a: readonly string[], b: readonly string[]): readonly Change[] | undefined {
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

function walkBack(trace: readonly ReadonlyMap<number, number>[], endA: number, endB: number): Change[] {
  const changes: Change[] = [];
  let [x, y] = [endA, endB];
  for (let edits = trace.length - 1; edits > 0; edits--) {
    const reached = trace[edits] as ReadonlyMap<number, number>;
    const line = x - y;
    const down = isDown(reached, line, edits);
    const fromLine = down ? line + 1 : line - 1;
    const fromX = at(reached, fromLine);
    const fromY = fromX - fromLine;
    changes.unshift({
      from: fromX,
      to: down ? fromX : fromX + 1,
      fromB: fromY,
      toB: down ? fromY + 1 : fromY,
    });
    [x, y] = [fromX, fromY];
  }
  return changes;
}

/** Makes one of changes with little between them. */
function joined(a: readonly string[], changes: readonly Change[]): readonly Change[] {
  const result: Change[] = [];
  for (const change of changes) {
    const last = result.at(-1);
    const between = last === undefined ? "" : a.slice(last.to, change.from).join("");
    if (last === undefined || between.length > AROUND) result.push(change);
    else result[result.length - 1] = { ...last, to: change.to, toB: change.toB };
  }
  return result;
}

function toHunks(a: readonly string[], b: readonly string[], changes: readonly Change[]): TextHunk[] {
  const hunks: TextHunk[] = [];
  let [end, trailing] = [0, 0];
  changes.forEach(({ from, to, fromB, toB }, index) => {
    const same = a.slice(end, from).join("");
    const next = a.slice(to, changes[index + 1]?.from ?? a.length).join("");
    const lead = same.slice(Math.max(0, same.length - AROUND)).replace(/^[\uDC00-\uDFFF]/, "");
    const trail = next.slice(0, AROUND).replace(/[\uD800-\uDBFF]$/, "");
    hunks.push({
      skipped: Math.max(0, same.length - lead.length - trailing),
      rest: index === changes.length - 1 ? next.length - trail.length : 0,
      lead,
      before: a.slice(from, to).join(""),
      after: b.slice(fromB, toB).join(""),
      trail,
    });
    [end, trailing] = [to, trail.length];
  });
  return hunks;
}
