import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./run-node.ts";

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Whole numbers as code writes them, products included. */
function toNumber(text: string): number {
  const factors = text.split("*").map((factor) => Number(factor.trim().replaceAll(/[_,]/g, "")));
  return factors.reduce((product, factor) => product * factor, 1);
}

function found(value: string | undefined, file: string, name: string): string {
  if (value === undefined) throw new Error(`${file} states no ${name} any more.`);
  return value;
}

/** The value of `const NAME = 1_000;` in a source file. */
export function constantOf(file: string, name: string): number {
  const value = new RegExp(`^(?:export )?const ${name} = ([\\d_ *]+);$`, "m").exec(read(file))?.[1];
  return toNumber(found(value, file, name));
}

/** The numbers of `const NAME = { a: 1, … }` in a source file. */
export function constantsOf(file: string, name: string): Record<string, number> {
  const body = new RegExp(`^(?:export )?const ${name}(?:: \\w+)? = \\{(.*?)\\}`, "ms").exec(read(file))?.[1];
  const members = found(body, file, name)
    .replaceAll(/\/\*\*.*?\*\//gs, "")
    .matchAll(/(\w+): ([\d_ *]+)/g);
  return Object.fromEntries([...members].map((match) => [match[1] as string, toNumber(match[2] as string)]));
}

/** The numbers that doc comments of an interface's members give as `@default`, from `least` on. */
export function defaultsOf(file: string, name: string, least = 0): Record<string, number> {
  const body = new RegExp(`^(?:export )?interface ${name}\\b.*?\\{\\n(.*?)^\\}`, "ms").exec(read(file))?.[1];
  const members = found(body, file, name).matchAll(
    /\/\*\*((?:(?!\*\/).)*)@default ([\d_]+)(?! \w)\s*\*\/\s*readonly (\w+)\??:/gs,
  );
  const stated = [...members].map((match) => [match[3] as string, toNumber(match[2] as string)] as const);
  return Object.fromEntries(stated.filter(([, value]) => value >= least));
}
