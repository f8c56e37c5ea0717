// @ts-check
// Shows what one heap holds that an earlier one of the same process did not: `node test/soak/compare-heaps.js <first> <last> [rows]`, for the
// files of `run-soak.js --snapshots`. First bytes and objects by constructor, then those of new objects by the path that holds them.
import { readHeap } from "./heap-snapshot.js";

const [first, last, rows = "20"] = process.argv.slice(2);
if (first === undefined || last === undefined) {
  console.error("Usage: node test/soak/compare-heaps.js <first.heapsnapshot> <last.heapsnapshot> [rows]");
  process.exit(2);
}

/** Adds bytes and objects up by a name. @template T @param {Iterable<T>} all @param {(one: T) => string} name @param {(one: T) => number} size */
function sumBy(all, name, size) {
  /** @type {Map<string, [bytes: number, objects: number]>} */
  const sums = new Map();
  for (const one of all) {
    const [bytes, objects] = sums.get(name(one)) ?? [0, 0];
    sums.set(name(one), [bytes + size(one), objects + 1]);
  }
  return sums;
}

/** @param {readonly (readonly [string, readonly [number, number]])[]} sums */
function print(sums) {
  const shown = [...sums].sort(([, [a]], [, [b]]) => b - a).slice(0, Number(rows));
  for (const [name, [bytes, objects]] of shown) {
    console.log(`${String(bytes).padStart(12)}${String(objects).padStart(10)}  ${name}`);
  }
}

const [before, after] = [readHeap(first), readHeap(last)];
const kinds = [before, after].map((heap) => sumBy(Array(heap.count).keys(), heap.kind, heap.size));
console.log("What grew, by constructor: bytes, objects");
print(
  [...(kinds[1] ?? [])].map(([kind, [bytes, objects]]) => {
    const [bytesBefore, objectsBefore] = kinds[0]?.get(kind) ?? [0, 0];
    return [kind, [bytes - bytesBefore, objects - objectsBefore]];
  }),
);

const known = new Set(Array.from({ length: before.count }, (_, node) => before.id(node)));
const paths = [""];
/** @type {number[]} */
const fresh = [];
for (let [queue, at] = [[0], 0]; at < queue.length; at++) {
  const node = queue[at] ?? 0;
  if (!known.has(after.id(node))) fresh.push(node);
  for (const { label, to } of after.held(node)) {
    if (paths[to] !== undefined) continue;
    paths[to] = `${paths[node]} > .${/^\d+$/.test(label) ? "[]" : label} ${after.kind(to)}`.slice(-700);
    queue.push(to);
  }
}
console.log("\nWhat is new, by the shortest path that holds it: bytes, objects");
print([...sumBy(fresh, (node) => paths[node] ?? "", after.size)]);
