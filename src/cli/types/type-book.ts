import { findCircles } from "./find-circles.ts";
import { ALIAS_MARK, type SchemaType, type TypeAlias } from "./schema-to-type.ts";
import { type NameBook, typeName } from "./type-names.ts";
import { type TypeText, toText } from "./type-text.ts";

/** A type that has its name. */
export interface NamedType {
  readonly name: string;
  readonly comment: string;
  readonly text: string;
}

/** Shorter types stand where their names would. */
const MAX_INLINE = 24;

/** Stands for a type within a circle of types while circles are compared. */
const PLACE = (place: number): string => `\uE001${place}\uE001`;

/** Gives names to types, the same one to those that say the same: a document repeats itself in every operation. */
export class TypeBook {
  readonly #names: NameBook;
  /** Names of a circle of types by what it says; of a single type there is one. */
  readonly #known = new Map<string, readonly string[]>();

  constructor(names: NameBook) {
    this.#names = names;
  }

  /** The text of a schema's type, and the types it needs that were not there before. `prefix` begins their names. */
  add(
    { type, aliases }: SchemaType,
    prefix: string,
  ): { readonly text: string; readonly added: readonly NamedType[] } {
    const texts = aliases.map((alias) => toText(alias.type));
    const written: string[] = [];
    const added: NamedType[] = [];
    const write = (text: string, circle: readonly number[] = []): string =>
      text.replace(ALIAS_MARK, (_, digits: string) => {
        const place = circle.indexOf(Number(digits));
        return place === -1 ? (written[Number(digits)] as string) : PLACE(place);
      });
    for (const circle of findCircles(texts.map(marksIn))) {
      const bodies = circle.map((index) => write(texts[index] as string, circle));
      const [first] = circle as [number];
      const [body] = bodies as [string];
      if (circle.length === 1 && isInline(body)) {
        written[first] = inlineText((aliases[first] as TypeAlias).type, body);
        continue;
      }
      const members = circle.map((index) => aliases[index] as TypeAlias);
      const { names, isNew } = this.#name(members, bodies, prefix);
      for (const [place, index] of circle.entries()) written[index] = names[place] as string;
      if (!isNew) continue;
      for (const [place, { comment }] of members.entries()) {
        const text = (bodies[place] as string).replace(
          /\uE001(\d+)\uE001/g,
          (_, digits) => names[Number(digits)] as string,
        );
        added.push({ name: names[place] as string, comment, text });
      }
    }
    return { text: write(toText(type)), added };
  }

  #name(
    members: readonly TypeAlias[],
    bodies: readonly string[],
    prefix: string,
  ): { readonly names: readonly string[]; readonly isNew: boolean } {
    const key = JSON.stringify([prefix, members.map(({ hint, comment }) => [hint, comment]), bodies]);
    const known = this.#known.get(key);
    if (known !== undefined) return { names: known, isNew: false };
    const names = members.map(({ hint }) => this.#names.give(typeName(prefix, hint)));
    this.#known.set(key, names);
    return { names, isNew: true };
  }
}

function marksIn(text: string): readonly number[] {
  return Array.from(text.matchAll(ALIAS_MARK), ([, digits]) => Number(digits));
}

function isInline(body: string): boolean {
  return body.length <= MAX_INLINE && !body.includes("\uE001") && !body.includes("\n");
}

/** As it may stand in a union, an intersection or before brackets. */
function inlineText(type: TypeText, body: string): string {
  return type.members.length > 1 || type.isIntersection ? `(${body})` : body;
}
