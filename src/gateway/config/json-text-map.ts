import { setOwn } from "../../core/json/json-value.ts";
import { quoteText } from "./config-path.ts";

/** A value of a text, where it begins, and where it has ended. */
export interface TextNode {
  readonly value: unknown;
  readonly offset: number;
  readonly end: number;
  readonly items?: readonly TextNode[];
  readonly members?: ReadonlyMap<string, TextMember>;
}

/** A member of an object in a text. */
export interface TextMember {
  readonly keyOffset: number;
  readonly node: TextNode;
}

/** A text that cannot be read, and where. */
export class TextMistake extends Error {
  override readonly name = "TextMistake";
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** A text that is nested deeper than is read here. */
export class TextDepth extends TextMistake {}

/** How JSON is read. */
export interface JsonTextOptions {
  /** Refuses a name that an object has already, of which `JSON.parse` keeps the last. @default false */
  readonly uniqueNames?: boolean;
}

const BLANKS = " \t\r\n";
const STRING = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS = /true|false|null/y;

/** Reads JSON with comments and trailing commas, and keeps where everything stands; throws a `TextMistake`. */
export function readJsonText(text: string, maxDepth: number, options: JsonTextOptions = {}): TextNode {
  return new JsonReader(text, maxDepth, options).read();
}

class JsonReader {
  readonly #text: string;
  readonly #isUnique: boolean;
  #at = 0;
  #left: number;

  constructor(text: string, maxDepth: number, { uniqueNames = false }: JsonTextOptions) {
    this.#text = text;
    this.#left = maxDepth;
    this.#isUnique = uniqueNames;
  }

  read(): TextNode {
    const node = this.#readValue();
    this.#skipBlank();
    if (this.#at < this.#text.length) throw this.#mistake("There is more text after the end.");
    return node;
  }

  #readValue(): TextNode {
    this.#skipBlank();
    const offset = this.#at;
    const first = this.#text[offset];
    if (first === "{" || first === "[") return this.#readNested(first, offset);
    if (first === '"') return { value: this.#readString(), offset, end: this.#at };
    const plain = this.#take(WORDS) ?? this.#take(NUMBER);
    if (plain !== undefined) return { value: JSON.parse(plain), offset, end: this.#at };
    if (first === undefined) throw this.#mistake("The text ends where a value should stand.");
    throw this.#mistake(first === "'" ? "A text stands in double quotes." : "A value should stand here.");
  }

  #readNested(open: "{" | "[", offset: number): TextNode {
    if (this.#left === 0) throw new TextDepth("The config is nested too deeply.", this.#at);
    this.#left -= 1;
    this.#at += 1;
    const node = open === "{" ? this.#readMembers(offset) : this.#readItems(offset);
    this.#left += 1;
    return node;
  }

  #readItems(offset: number): TextNode {
    const items: TextNode[] = [];
    while (!this.#closes("]")) {
      items.push(this.#readValue());
      this.#readComma("]");
    }
    return { value: items.map((item) => item.value), offset, end: this.#at, items };
  }

  #readMembers(offset: number): TextNode {
    const value: Record<string, unknown> = {};
    const members = new Map<string, TextMember>();
    while (!this.#closes("}")) {
      const keyOffset = this.#at;
      if (this.#text[keyOffset] !== '"') throw this.#mistake("A name in double quotes should stand here.");
      const key = this.#readString();
      if (this.#isUnique && members.has(key)) throw repeated(key, keyOffset);
      this.#skipBlank();
      if (this.#text[this.#at] !== ":") throw this.#mistake("A colon is missing after the name.");
      this.#at += 1;
      const node = this.#readValue();
      setOwn(value, key, node.value);
      members.set(key, { keyOffset, node });
      this.#readComma("}");
    }
    return { value, offset, end: this.#at, members };
  }

  #closes(bracket: string): boolean {
    this.#skipBlank();
    if (this.#text[this.#at] !== bracket) return false;
    this.#at += 1;
    return true;
  }

  #readComma(bracket: string): void {
    this.#skipBlank();
    if (this.#text[this.#at] === ",") this.#at += 1;
    else if (this.#at >= this.#text.length)
      throw this.#mistake(`The text ends where "${bracket}" is missing.`);
    else if (this.#text[this.#at] !== bracket)
      throw this.#mistake(`A comma or "${bracket}" is missing before this.`);
  }

  #readString(): string {
    const start = this.#at;
    const found = this.#take(STRING);
    if (found === undefined) throw this.#mistake("This text is not closed.");
    try {
      return JSON.parse(found) as string;
    } catch {
      throw new TextMistake("This text has a character that must be escaped.", start);
    }
  }

  /** By hand: a pattern remembers every blank, and there may be millions. */
  #skipBlank(): void {
    const text = this.#text;
    let at = this.#at;
    for (;;) {
      while (at < text.length && BLANKS.includes(text.charAt(at))) at++;
      const isBlock = text.startsWith("/*", at);
      if (!isBlock && !text.startsWith("//", at)) break;
      const end = isBlock ? text.indexOf("*/", at + 2) : text.indexOf("\n", at);
      if (isBlock && end < 0) {
        this.#at = at;
        throw this.#mistake("This comment is not closed.");
      }
      at = end < 0 ? text.length : end + (isBlock ? 2 : 0);
    }
    this.#at = at;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #mistake(message: string): TextMistake {
    return new TextMistake(message, this.#at);
  }
}

function repeated(name: string, offset: number): TextMistake {
  return new TextMistake(
    `The name ${quoteText(name)} stands in this object already; remove one of the two.`,
    offset,
  );
}
