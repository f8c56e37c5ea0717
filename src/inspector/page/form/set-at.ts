import { parsePointer } from "../parts/json-text.ts";
import { membersIn, ownOf } from "./json-value.ts";

/** Copies a value with another one at a pointer; `undefined` takes away what is there. What the way lacks becomes objects. */
export function setAt(whole: unknown, pointer: string, value: unknown): unknown {
  const names = parsePointer(pointer);
  // Down, noting what is passed, and up again: a pointer may be longer than the stack is deep.
  const passed: unknown[] = [];
  let here = whole;
  for (const name of names) {
    passed.push(here);
    here = ownOf(here, name);
  }
  return names.reduceRight<unknown>((made, name, at) => withMember(passed[at], name, made), value);
}

/** Spreading and computed names define members, so that none of them ever reaches a prototype. */
function withMember(container: unknown, name: string, value: unknown): unknown {
  if (Array.isArray(container)) {
    const index = Number(name);
    return value === undefined ? container.toSpliced(index, 1) : container.with(index, value);
  }
  const members = membersIn(container);
  if (value === undefined) return Object.fromEntries(Object.entries(members).filter(([key]) => key !== name));
  return { ...members, [name]: value };
}
