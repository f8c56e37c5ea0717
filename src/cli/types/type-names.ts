import { escapeHidden } from "../../core/text/clean-text.ts";

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

const MAX_NAME = 120;

/** Writes a text as a literal that no line break, control or hidden character stands in. */
export function quote(text: string): string {
  return escapeHidden(JSON.stringify(text));
}

/** Writes the name of a property. */
export function propertyKey(name: string): string {
  return IDENTIFIER.test(name) ? name : quote(name);
}

/** Makes a name for a type out of any text: `repos/get-all` becomes `ReposGetAll`. */
export function typeName(...texts: readonly string[]): string {
  const words = texts.flatMap((text) => text.slice(0, MAX_NAME).match(/[A-Za-z0-9]+/g) ?? []);
  const name = words
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")
    .slice(0, MAX_NAME);
  return /^[A-Za-z]/.test(name) ? name : `Type${name}`;
}

/** Names that are given once each; one asked for again gets a number. */
export class NameBook {
  readonly #taken = new Map<string, number>();

  give(wanted: string): string {
    let count = this.#taken.get(wanted) ?? 0;
    let name = wanted;
    while (this.#taken.has(name)) {
      count += 1;
      name = `${wanted}${count + 1}`;
    }
    this.#taken.set(wanted, count);
    if (name !== wanted) this.#taken.set(name, 0);
    return name;
  }
}
