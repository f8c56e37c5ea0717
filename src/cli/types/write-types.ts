import { createReadStream } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { openSession, type Session, type SourceFlags } from "../session/session.ts";
import { toSafeJson, writeOut } from "../terminal/style.ts";
import {
  ALIAS_MARK,
  type SchemaType,
  type SchemaTypeOptions,
  schemaToType,
  type TypeAlias,
} from "./schema-to-type.ts";
import {
  docComment,
  indent,
  NameBook,
  quote,
  type TypeText,
  typeName,
  typeText,
  UNKNOWN,
} from "./type-text.ts";

/** How the types of operations are written. */
interface WriteTypesOptions extends SchemaTypeOptions {
  /** Hears of schemas that cannot be read; what they describe is `unknown`. @default nobody does */
  readonly onUnreadable?: ((id: string, direction: "input" | "output", cause: unknown) => void) | undefined;
}

/** Where the package is imported from. */
const PACKAGE = "waybill";

const HEADER = `// Made by "waybill types" from what is mounted; run it again instead of changing this file.
// Operations called by id are typed as soon as a program includes it.
/* eslint-disable */
import ${JSON.stringify(PACKAGE)};

`;

/** Operations as they are written: the names of their types are given first, so that all can be listed first. */
interface Entry {
  readonly operation: AnyOperation;
  readonly input: string;
  readonly output: string;
}

/** Writes a module that makes calls by id typed, piece by piece; the same operations give the same text in any order. */
export function* writeTypes(
  operations: Iterable<AnyOperation>,
  options: WriteTypesOptions = {},
): Generator<string, void, undefined> {
  const names = new NameBook();
  const sorted = [...operations].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const entries = sorted.map((operation): Entry => {
    const { namespace, name } = operation;
    return {
      operation,
      input: names.give(`${typeName(namespace, name)}Input`),
      output: names.give(`${typeName(namespace, name)}Output`),
    };
  });
  yield HEADER;
  yield* writeMap(entries);
  const writing: Writing = { book: new TypeBook(names), options };
  for (const entry of entries) {
    yield writeSchema(entry, "input", writing);
    yield writeSchema(entry, "output", writing);
  }
  yield "export {};\n";
}

function* writeMap(entries: readonly Entry[]): Generator<string, void, undefined> {
  yield `declare module ${JSON.stringify(PACKAGE)} {\n  interface OperationMap {\n`;
  for (const { operation, input, output } of entries) {
    const comment = indent(indent(docComment({ description: operation.description })));
    const lead = comment === "" ? "    " : `    ${comment}`;
    yield `${lead}${quote(operation.id)}: { input: ${input}; output: ${output} };\n`;
  }
  yield "  }\n}\n\n";
}

interface Writing {
  readonly book: TypeBook;
  readonly options: WriteTypesOptions;
}

function writeSchema(entry: Entry, direction: "input" | "output", { book, options }: Writing): string {
  const { operation, [direction]: name } = entry;
  const type = typeOf(operation, direction, options);
  const { text, added } = book.add(type, operation.namespace);
  const aliases = added.map((alias) => `${alias.comment}export type ${alias.name} = ${alias.text};\n\n`);
  const what = direction === "input" ? "takes" : "answers with";
  const comment = type.comment === "" ? `/** What \`${operation.id}\` ${what}. */\n` : type.comment;
  return `${aliases.join("")}${comment}export type ${name} = ${text};\n\n`;
}

const ANYTHING: SchemaType = { comment: "", type: UNKNOWN, aliases: [] };

function typeOf(
  operation: AnyOperation,
  direction: "input" | "output",
  { onUnreadable, ...options }: WriteTypesOptions,
): SchemaType {
  const schema = direction === "input" ? operation.inputSchema : operation.outputSchema;
  if (schema === undefined) return ANYTHING;
  try {
    const hasOwnJson = typeof schema === "boolean" || !("~standard" in schema);
    const json = hasOwnJson ? schema : toOperationSchema(schema, direction).json;
    return schemaToType(json, { ...options, direction });
  } catch (cause) {
    onUnreadable?.(operation.id, direction, cause);
    return ANYTHING;
  }
}

interface NamedType {
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
    const texts = aliases.map((alias) => typeText(alias.type));
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
    return { text: write(typeText(type)), added };
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

/**
 * Sorts things that need others: each stands after all it needs, in a list of its own, or together with those that need each
 * other. Takes time in proportion to what there is, and no stack.
 */
function findCircles(needs: readonly (readonly number[])[]): readonly (readonly number[])[] {
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

/** Where the types go unless somebody says otherwise. */
const TYPES_FILE = "waybill-types.ts";

/** The flags of `waybill types`. */
export interface TypesFlags extends SourceFlags {
  readonly out?: string;
  readonly check?: boolean;
  readonly partial?: boolean;
  readonly closed?: boolean;
  readonly json?: boolean;
}

/** Writes types for everything that is mounted. */
export async function runTypes(io: Io, flags: TypesFlags): Promise<number> {
  if (flags.check && flags.out === "-")
    throw new CommandError("--check compares a file; --out - names none.");
  if (flags.json && flags.out === "-")
    throw new CommandError("--json and --out - cannot be given together: both write to stdout.");
  const session = await openSession(io, flags, { whole: true });
  try {
    refuseGaps(io, session, flags.partial === true);
    const operations = [...session.gateway.executor.operations].filter(
      ({ visibility }) => visibility !== "internal",
    );
    return await emitTypes(io, operations, flags);
  } finally {
    await session.close();
  }
}

/** A file that leaves out what is down for a moment would take types away from those who use them. */
function refuseGaps(io: Io, { gateway }: Session, isPartial: boolean): void {
  for (const { name, state } of gateway.sources) {
    if (state.status === "up" || state.status === "disabled") continue;
    const reason = state.status === "down" ? state.reason : `it is ${state.status}`;
    const message = `The source "${safeLine(name, 100)}" is down, so its types are not known: ${safeLine(reason)}`;
    if (!isPartial) {
      throw new CommandError(
        `${message}\nNothing was written; --partial writes the types of the others.`,
        EXIT.callError,
      );
    }
    io.stderr.write(`waybill: ${message}\n`);
  }
}

/** Writes, prints or checks the types of operations. */
export async function emitTypes(
  io: Io,
  operations: readonly AnyOperation[],
  { out = TYPES_FILE, check, closed, json }: Pick<TypesFlags, "out" | "check" | "closed" | "json">,
): Promise<number> {
  if (out === "") throw new CommandError("--out takes a file, or - for stdout.");
  const pieces = writeTypes(operations, { closed, onUnreadable: toTell(io) });
  if (out === "-") {
    for (const piece of pieces) await writeOut(io, piece);
    return EXIT.ok;
  }
  const path = resolve(io.cwd, out);
  if (json) return reportTypes(io, { path, out, count: operations.length, isCheck: check === true }, pieces);
  if (check) return checkFile(io, { path, out }, pieces);
  await writeTypesFile(path, pieces);
  const count = operations.length === 1 ? "1 operation" : `${operations.length} operations`;
  tell(io, `${count} typed in ${safeLine(out, 200)}; make sure that your tsconfig.json includes it.`);
  return EXIT.ok;
}

interface TypesReport {
  readonly path: string;
  readonly out: string;
  readonly count: number;
  readonly isCheck: boolean;
}

/** Writes or checks the file, and says so for programs. */
async function reportTypes(io: Io, report: TypesReport, pieces: Iterable<string>): Promise<number> {
  const { path, out, count, isCheck } = report;
  const state = isCheck ? await holdsTypes(path, pieces) : "written";
  if (!isCheck) await writeTypesFile(path, pieces);
  io.stdout.write(`${toSafeJson({ file: out, operations: count, state })}\n`);
  return state === "written" || state === "same" ? EXIT.ok : EXIT.toolError;
}

async function checkFile(
  io: Io,
  { path, out }: Pick<TypesReport, "path" | "out">,
  pieces: Iterable<string>,
): Promise<number> {
  const state = await holdsTypes(path, pieces);
  const shown = safeLine(out, 200);
  if (state === "same") {
    tell(io, `${shown} is up to date.`);
    return EXIT.ok;
  }
  const what = state === "missing" ? `${shown} does not exist` : `${shown} is out of date`;
  throw new CommandError(
    `${what}; "${spelledCommand(io)} types" with the same flags and without --check writes it.`,
    EXIT.toolError,
  );
}

function toTell(io: Io): WriteTypesOptions["onUnreadable"] {
  return (id, direction, cause) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    const what = `the ${direction} of ${safeLine(id, 200)}`;
    tell(io, `${what} is unknown: its schema cannot be used. ${safeLine(why)}`);
  };
}

function tell(io: Io, message: string): void {
  if (!io.quiet) io.stderr.write(`waybill: ${message}\n`);
}

/** Text is handed to the file system in pieces of about this length. */
const PIECE = 65_536;

/** Gathers small pieces of text into larger ones. */
function* gathered(pieces: Iterable<string>): Generator<string, void, undefined> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Writes a file piece by piece; until it is whole, what was there stays. */
async function writeTypesFile(path: string, pieces: Iterable<string>): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    const file = await open(beside, "w");
    try {
      for (const piece of gathered(pieces)) await file.write(piece);
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (thrown) {
    await rm(beside, { force: true }).catch(() => {});
    throw fileFailure(thrown, path, "written");
  }
}

/** Tells whether a file holds exactly this text; one that is not there does not. */
async function holdsTypes(path: string, pieces: Iterable<string>): Promise<"same" | "different" | "missing"> {
  if ((await stat(path).catch(() => undefined))?.isFile() !== true) return "missing";
  const wanted = gathered(pieces);
  let left = "";
  try {
    for await (const chunk of createReadStream(path, { encoding: "utf8", highWaterMark: PIECE })) {
      // A checkout on Windows may have changed the ends of lines.
      const found = (chunk as string).replace(/\r/g, "");
      while (left.length < found.length) {
        const next = wanted.next();
        if (next.done) return "different";
        left += next.value;
      }
      if (!left.startsWith(found)) return "different";
      left = left.slice(found.length);
    }
  } catch (thrown) {
    throw fileFailure(thrown, path, "read");
  }
  return left === "" && wanted.next().done === true ? "same" : "different";
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  EACCES: "permission is missing",
  EPERM: "permission is missing",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EISDIR: "it is a folder",
  ENOTDIR: "its folder is a file",
};

function fileFailure(thrown: unknown, path: string, done: string): unknown {
  const { code } = thrown as NodeJS.ErrnoException;
  if (typeof code !== "string") return thrown;
  return new CommandError(
    `The file "${safeLine(path, 200)}" cannot be ${done}: ${REASONS[code] ?? code}.`,
    undefined,
    {
      cause: thrown,
    },
  );
}
