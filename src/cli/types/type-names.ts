const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** What could end a line or hide in one; JSON itself escapes the rest. */
const UNSAFE =
  /[\u007F-\u009F\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uD800-\uF8FF\uFFF9-\uFFFB]/g;

const MAX_NAME = 120;

/** Writes a text as a literal that no line break, control or hidden character stands in. */
export function quote(text: string): string {
  return JSON.stringify(text).replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]|./gsu, keepOrEscape);
}

function keepOrEscape(found: string): string {
  UNSAFE.lastIndex = 0;
  if (found.length > 1 || !UNSAFE.test(found)) return found;
  return `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
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
