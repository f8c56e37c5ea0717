import { isPlainObject, parseJsonTextOrNone, setOwn } from "../../core/json/json-value.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { type SchemaView, viewSchema } from "../../core/schema/schema-view.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { CommandError } from "../io.ts";
import { nameOfFile, parseGivenJson, readGivenFile, textOfBytes } from "./given-file.ts";

/** What inputs are read with. */
interface InputOptions {
  /** The schema of the input; values are read by it. @default anything goes */
  readonly schema?: JsonSchemaObject | undefined;
  /** What relative names of files start from. */
  readonly cwd: string;
  /** The text of stdin, for `-`. */
  readStdin(): Promise<string>;
}

/** Words that are no `key=value` and stand for the whole input. */
const WHOLE = /^\s*[[{"]/;

/**
 * Reads the inputs of a call: whole ones (`{…}`, `@file.json`, `-`) and members (`key=text`, `key:=json`, `key=@file`, `key@file`,
 * `a.b=…`, `a[0].b=…`); members go into the whole. Gives `undefined` where there are none.
 */
export async function parseInputs(words: readonly string[], options: InputOptions): Promise<unknown> {
  const wholes = words.filter(isWhole);
  if (wholes.length > 1)
    throw new CommandError("The input is given whole more than once; give one, and key=value besides.");
  const whole = wholes[0] === undefined ? undefined : await readWhole(wholes[0], options);
  const members = words.filter((word) => !isWhole(word));
  if (members.length === 0) return whole;
  if (whole !== undefined && !isPlainObject(whole))
    throw new CommandError("key=value can only be added to a JSON object.");
  const input: Record<string, unknown> = isPlainObject(whole) ? whole : {};
  const growing: GrowingInput = { input, given: new Map() };
  for (const word of members) await addMember(word, growing, options);
  return input;
}

/** Tells whether a word stands for the whole input. */
function isWhole(word: string): boolean {
  if (word === "-" || word.startsWith("@") || WHOLE.test(word)) return true;
  return /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(word);
}

async function readWhole(word: string, options: InputOptions): Promise<unknown> {
  if (word === "-") return parseGivenJson(await options.readStdin(), "The input on stdin");
  if (!word.startsWith("@")) return parseGivenJson(word, "The input");
  const path = word.slice(1);
  const what = `The file "${safeLine(path, 200)}"`;
  return parseGivenJson(textOfBytes(await readGivenFile(path, options.cwd), what), what);
}

/** Where the members lead that are given one by one, as paths into the input; none for whole inputs. */
export function memberPaths(
  words: readonly string[],
  schema: JsonSchemaObject,
): readonly (readonly string[])[] {
  return words.filter((word) => !isWhole(word)).map((word) => pathOf(splitMember(word).key, schema).path);
}

interface Member {
  readonly key: string;
  readonly kind: "text" | "json" | "file" | "json-file";
  readonly text: string;
}

/** Splits `key=text`, `key:=json`, `key=@file`, `key:=@file` and `key@file`; `key=@@text` is the text `@text`. */
function splitMember(word: string): Member {
  const at = word.search(/[=@]/);
  if (at <= 0) throw notUnderstood(word);
  if (word[at] === "@") return { key: word.slice(0, at), kind: "file", text: word.slice(at + 1) };
  const isJson = word[at - 1] === ":";
  const key = word.slice(0, isJson ? at - 1 : at);
  const text = word.slice(at + 1);
  if (key === "") throw notUnderstood(word);
  if (text.startsWith("@@") && !isJson) return { key, kind: "text", text: text.slice(1) };
  if (text.startsWith("@")) return { key, kind: isJson ? "json-file" : "file", text: text.slice(1) };
  return { key, kind: isJson ? "json" : "text", text };
}

function notUnderstood(word: string): CommandError {
  return new CommandError(
    `The input "${safeLine(word, 80)}" is not understood; inputs are key=value, key:=json, key=@file, a JSON object, @file.json, or - for stdin.`,
  );
}

/** Finds the place that a key with dots leads to; a member whose own name has dots is preferred. */
function pathOf(key: string, root: JsonSchemaObject): { path: string[]; view: SchemaView } {
  const path: string[] = [];
  let view = viewSchema(root);
  let rest = inOnlyPlace(key, view);
  while (rest !== "") {
    const segments = rest.split(".");
    let taken = segments.length;
    while (taken > 1 && !view.has(segments.slice(0, taken).join("."))) taken -= 1;
    const name = segments.slice(0, taken).join(".");
    const item = itemPath(name, view);
    if (item !== undefined) {
      rest = [item, ...segments.slice(taken)].join(".");
      continue;
    }
    if (name === "") throw new CommandError(`The key "${safeLine(key, 80)}" has an empty part.`);
    path.push(name);
    view = view.member(name);
    if (taken === segments.length) break;
    rest = segments.slice(taken).join(".");
    if (rest === "") throw new CommandError(`The key "${safeLine(key, 80)}" ends with a dot.`);
  }
  return { path, view };
}

/** `lines[0]`, as `describe` writes items of a list, with a dot; nothing where the schema knows no such list. */
function itemPath(name: string, view: SchemaView): string | undefined {
  const bracket = name.indexOf("[");
  const places = name.slice(bracket);
  if (bracket < 1 || view.has(name) || !/^(?:\[\d{1,6}\])+$/.test(places)) return undefined;
  const isList = view.member(name.slice(0, bracket)).types.has("array");
  return isList ? name.replaceAll("[", ".").replaceAll("]", "") : undefined;
}

/**
 * The key with the member before it that alone can hold it, such as `body.title` for `title`: where the schema lets in no other
 * members, and exactly one of its own has one of that name.
 */
function inOnlyPlace(key: string, view: SchemaView): string {
  const [first = ""] = key.split(".", 1);
  const isClosed = view.parts.some(({ additionalProperties }) => additionalProperties === false);
  const holds = (at: SchemaView) => at.has(first) || at.has(key) || itemPath(first, at) !== undefined;
  if (!isClosed || first === "" || holds(view)) return key;
  const holders = [...view.names].filter((name) => holds(view.member(name)));
  return holders.length === 1 ? `${holders[0]}.${key}` : key;
}

/** An input that members are added to. */
interface GrowingInput {
  readonly input: Record<string, unknown>;
  /** How often each place was given. */
  readonly given: Map<string, number>;
}

async function addMember(word: string, { input, given }: GrowingInput, options: InputOptions): Promise<void> {
  const member = splitMember(word);
  const { path, view } = pathOf(member.key, options.schema ?? {});
  const place = JSON.stringify(path);
  const times = (given.get(place) ?? 0) + 1;
  given.set(place, times);
  const holder = holderOf(input, path, member.key);
  const last = path.at(-1) as string;
  if (times === 1) return put(holder, last, await memberValue(member, view, options));
  const { types } = view;
  if (types.size > 0 && !types.has("array"))
    throw new CommandError(`"${safeLine(member.key, 80)}" is given more than once, but takes one value.`);
  const before = read(holder, last);
  const list = Array.isArray(before) && (types.has("array") || times > 2) ? before : [before];
  const next = types.has("array")
    ? await itemValue(member, view, options)
    : await memberValue(member, view, options);
  put(holder, last, [...list, next]);
}

type Holder = Record<string, unknown> | unknown[];

/** Walks to what holds the last part of a path, and makes what is missing on the way. */
function holderOf(input: Record<string, unknown>, path: readonly string[], key: string): Holder {
  let holder: Holder = input;
  for (const [at, name] of path.slice(0, -1).entries()) {
    const next: unknown = read(holder, name);
    if (Array.isArray(next) || isPlainObject(next)) holder = next;
    else if (next === undefined) {
      const made: Holder = path[at + 1] === "0" ? [] : {};
      put(holder, name, made);
      holder = made;
    } else throw new CommandError(`"${safeLine(key, 80)}" leads into a value that has no members.`);
  }
  return holder;
}

function read(holder: Holder, name: string): unknown {
  if (Array.isArray(holder)) return /^\d+$/.test(name) ? holder[Number(name)] : undefined;
  return Object.hasOwn(holder, name) ? holder[name] : undefined;
}

function put(holder: Holder, name: string, value: unknown): void {
  if (!Array.isArray(holder)) {
    setOwn(holder, name, value);
    return;
  }
  const at = /^\d{1,6}$/.test(name) ? Number(name) : Number.NaN;
  if (!(at <= holder.length))
    throw new CommandError(
      `A list has no place "${safeLine(name, 40)}" yet; count from 0, one after the other.`,
    );
  holder[at] = value;
}

async function memberValue(member: Member, view: SchemaView, options: InputOptions): Promise<unknown> {
  const { key, kind, text } = member;
  if (kind === "text") return valueOfText(text, view, key);
  if (kind === "json") return parseGivenJson(text, `The value of "${safeLine(key, 80)}"`);
  const bytes = await readGivenFile(text, options.cwd);
  const what = `The file "${safeLine(text, 200)}"`;
  if (kind === "json-file") return parseGivenJson(textOfBytes(bytes, what), what);
  const form = bytesForm(view);
  if (form === "text") return bytes.toString("base64");
  if (form === "object") return { base64: bytes.toString("base64"), filename: nameOfFile(text) };
  const content = textOfBytes(bytes, what);
  const { types } = view;
  return types.size === 0 || types.has("string") ? content : valueOfText(content.trim(), view, key);
}

async function itemValue(member: Member, view: SchemaView, options: InputOptions): Promise<unknown> {
  if (member.kind !== "text") return memberValue(member, viewSchema(true), options);
  return valueOfText(member.text, view.items(0), member.key);
}

/**
 * Turns the text of `key=text` into the value that the schema there asks for. What fits no type stays text, so that the call says
 * what is wrong with it.
 */
export function valueOfText(text: string, view: SchemaView, key: string): unknown {
  const listed = listedValue(text, view);
  if (listed !== undefined) return listed.value;
  const { types } = view;
  if (types.size === 0) return guessedValue(text);
  if (types.has("null") && text === "null") return null;
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if ((types.has("number") || types.has("integer")) && isNumber(text)) return numberOf(text, types, key);
  if (types.has("object") && text.startsWith("{")) return parseGivenJson(text, `The value of "${key}"`);
  if (types.has("array")) return listOf(text, view, key);
  return text;
}

/** A value that `enum` or `const` names. */
function listedValue(text: string, { values }: SchemaView): { readonly value: unknown } | undefined {
  const exact = values.find((value) => value === text);
  const found = exact ?? values.find((value) => typeof value !== "object" && String(value) === text);
  return found === undefined ? undefined : { value: found };
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function isNumber(text: string): boolean {
  return NUMBER.test(text.trim());
}

function numberOf(text: string, types: ReadonlySet<string>, key: string): unknown {
  const value = Number(text);
  if (/^-?\d+$/.test(text.trim()) && !Number.isSafeInteger(value)) {
    if (types.has("string")) return text;
    throw new CommandError(
      `"${safeLine(key, 80)}" is ${safeLine(text, 40)}, which a number cannot hold exactly.`,
    );
  }
  return value;
}

/** Where nothing is known: JSON when it is JSON, else text. */
function guessedValue(text: string): unknown {
  if (/^[[{]/.test(text) || isNumber(text) || /^(?:true|false|null)$/.test(text)) {
    const value = parseJsonTextOrNone(text);
    const isExact = typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(text);
    if (value !== undefined && isExact) return value;
  }
  return text;
}

/** A list is written as JSON, or as the only one of its items. */
function listOf(text: string, view: SchemaView, key: string): unknown {
  if (text.startsWith("[")) return parseGivenJson(text, `The value of "${key}"`);
  return view.types.has("string") ? text : [valueOfText(text, view.items(0), key)];
}

/** Tells whether text there stands for bytes, and how they are written. */
function bytesForm({ parts }: SchemaView): "text" | "object" | undefined {
  if (parts.some(({ contentEncoding, format }) => contentEncoding === "base64" || format === "byte"))
    return "text";
  const takesBytes = parts.some(
    ({ format, description }) =>
      format === "binary" ||
      (typeof description === "string" && description.startsWith("Bytes: a Uint8Array")),
  );
  return takesBytes ? "object" : undefined;
}
