/**
 * Sorts things that need others: each stands after all it needs, in a list of its own, or together with those that need each
 * other. Takes time in proportion to what there is, and no stack.
 */
export function findCircles(needs: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const circles: number[][] = [];
  const order: number[] = [];
  const lowest: number[] = [];
  const isOpen: boolean[] = [];
  const open: number[] = [];
  let count = 0;

  const enter = (thing: number): { thing: number; next: number } => {
    order[thing] = count;
    lowest[thing] = count;
    count += 1;
    isOpen[thing] = true;
    open.push(thing);
    return { thing, next: 0 };
  };

  const close = (thing: number): void => {
    if (lowest[thing] !== order[thing]) return;
    const circle = open.splice(open.lastIndexOf(thing));
    for (const member of circle) isOpen[member] = false;
    circles.push(circle);
  };

  for (let start = 0; start < needs.length; start++) {
    if (order[start] !== undefined) continue;
    const path = [enter(start)];
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const needed = needs[step.thing]?.[step.next];
      step.next += 1;
      if (needed === undefined) {
        path.pop();
        close(step.thing);
        const above = path.at(-1);
        if (above !== undefined)
          lowest[above.thing] = Math.min(lowest[above.thing] as number, lowest[step.thing] as number);
      } else if (order[needed] === undefined) path.push(enter(needed));
      else if (isOpen[needed])
        lowest[step.thing] = Math.min(lowest[step.thing] as number, order[needed] as number);
    }
  }
  return circles;
}
