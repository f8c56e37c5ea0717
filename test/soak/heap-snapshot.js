// @ts-check
// Reads the heaps that V8 writes.
import { readFileSync } from "node:fs";

/** What the engine keeps for itself: code, what it notes about code and the shapes of objects. It drops and makes it again as it likes. */
const OF_THE_ENGINE = new Set(["code", "object shape", "hidden", "synthetic"]);

/** @typedef {ReturnType<typeof readHeap>} Heap Objects by number. */

/** @param {string} path */
export function readHeap(path) {
  const { snapshot, nodes, edges, strings } = JSON.parse(readFileSync(path, "utf8"));
  const { node_fields, node_types, edge_fields, edge_types } = snapshot.meta;
  const [width, edgeWidth] = [node_fields.length, edge_fields.length];
  const count = nodes.length / width;
  /** @param {string} name @returns {(node: number) => number} */
  const field = (name) => {
    const offset = node_fields.indexOf(name);
    return (node) => nodes[node * width + offset];
  };
  const [typeNumber, name, edgeCount] = [field("type"), field("name"), field("edge_count")];
  const type = (/** @type {number} */ node) => node_types[0][typeNumber(node)];
  const firstEdge = new Uint32Array(count + 1);
  for (let node = 0; node < count; node++) firstEdge[node + 1] = (firstEdge[node] ?? 0) + edgeCount(node);
  return {
    count,
    id: field("id"),
    size: field("self_size"),
    /** Whether the program made it, and not the engine for itself. @param {number} node */
    isOfProgram: (node) => !OF_THE_ENGINE.has(type(node)),
    /** What kind of object it is: its constructor, or its type where that says more. @param {number} node */
    kind: (node) => {
      const of = type(node);
      if (/string|number|bigint/.test(of)) return `(${of})`;
      const text = strings[name(node)].slice(0, 60);
      return of === "object" ? text : `(${of}) ${text}`;
    },
    /** What an object holds; weak references hold nothing. @param {number} node @returns {{ label: string, to: number }[]} */
    held: (node) => {
      const found = [];
      for (let edge = firstEdge[node] ?? 0; edge < (firstEdge[node + 1] ?? 0); edge++) {
        const [of, label, to] = edges.slice(edge * edgeWidth, edge * edgeWidth + 3);
        const how = edge_types[0][of];
        if (how === "weak") continue;
        found.push({ label: how === "element" || how === "hidden" ? "[]" : strings[label], to: to / width });
      }
      return found;
    },
  };
}

/** Bytes of all objects that the program made. @param {string} path */
export function bytesOfProgram(path) {
  const { count, isOfProgram, size } = readHeap(path);
  let bytes = 0;
  for (let node = 0; node < count; node++) if (isOfProgram(node)) bytes += size(node);
  return bytes;
}
