import { isPlainObject } from "../../../core/json/json-value.ts";
import { mediaKindOf, parseSendableType } from "../../media-types.ts";
import type { EncodingPlan, MediaPlan, OperationPlan, ParameterPlan, SecuritySchemePlan } from "../plan.ts";
import {
  asciiJsonOf,
  checkHeaderInput,
  checkWellFormed,
  escapeName,
  escapeReserved,
  escapeSeparator,
  escapeText,
  invalidInput,
  isFramingHeader,
  isToken,
  jsonTextOf,
  notCallable,
  refuseBlob,
  shown,
} from "./input-text.ts";

/** A value taken apart: one text, a list of them, or names with texts. */
export type ValueShape =
  | { readonly kind: "scalar"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] }
  | { readonly kind: "members"; readonly members: readonly (readonly [name: string, text: string])[] };

/** Tells whether nothing was given; RFC 6570 calls both undefined. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** The text of a string, number, boolean, bigint or date; nothing for lists and objects. */
export function scalarText(value: unknown, key: string): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalidInput(key, `is ${value}, which cannot be sent`);
      return String(value);
    case "boolean":
    case "bigint":
      return String(value);
    case "object":
      if (value instanceof Date) return dateText(value, key);
      refuseBlob(value, key);
      return refuseBytes(value, key);
    default:
      throw invalidInput(key, `is of type ${typeof value}, which cannot be sent`);
  }
}

/** The same where lists and objects are written as JSON: no style says how they nest. */
export function memberText(value: unknown, key: string): string {
  return scalarText(value, key) ?? jsonTextOf(value, key);
}

/** Takes a value apart; members without a value are left out, as RFC 6570 says. */
export function shapeOf(value: unknown, key: string): ValueShape {
  const text = scalarText(value, key);
  if (text !== undefined) return { kind: "scalar", text };
  if (Array.isArray(value)) {
    const items = value.filter((item) => !isAbsent(item)).map((item) => memberText(item, key));
    return { kind: "list", items };
  }
  refuseOpaque(value, key);
  const members = Object.entries(value as object).filter(([, member]) => !isAbsent(member));
  return { kind: "members", members: members.map(([name, member]) => [name, memberText(member, key)]) };
}

/** Refuses instances that show nothing of what they hold, such as maps: they would be left out without a word. */
function refuseOpaque(value: unknown, key: string): void {
  if (Array.isArray(value) || isPlainObject(value) || Object.keys(value as object).length > 0) return;
  throw invalidInput(key, "is an instance that cannot be sent; give a list or a plain object");
}

function dateText(date: Date, key: string): string {
  if (Number.isNaN(date.getTime())) throw invalidInput(key, "is no valid date");
  return date.toISOString();
}

function refuseBytes(value: object | null, key: string): undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    throw invalidInput(key, "is bytes; give them as text, such as base64");
  }
  return undefined;
}

/** Takes the value of a parameter apart. */
type ReadShape = (value: unknown) => ValueShape;

/** Makes what takes values of a parameter apart: by themselves, or as one text of the media type it is described by. */
function createShapeReader({ key, contentType }: ParameterPlan): ReadShape {
  if (contentType === undefined) return (value) => shapeOf(value, key);
  const kind = mediaKindOf(parseSendableType(contentType)?.essence ?? contentType);
  const asJson = kind === "json" || kind === "range";
  return (value) => ({ kind: "scalar", text: asJson ? asciiJsonOf(value, key) : memberText(value, key) });
}

/** Writes a value between separators; each text is escaped, each pair is `name=value` where names and values stay together. */
export function joinShape(
  shape: ValueShape,
  options: { readonly separator: string; readonly pairs: boolean; readonly encode: (text: string) => string },
): string {
  const { separator, pairs, encode } = options;
  switch (shape.kind) {
    case "scalar":
      return encode(shape.text);
    case "list":
      return shape.items.map(encode).join(separator);
    case "members": {
      const between = pairs ? "=" : separator;
      return shape.members.map(([name, text]) => encode(name) + between + encode(text)).join(separator);
    }
  }
}

/** Tells whether a list or an object has nothing in it, which no style writes. */
export function isEmptyShape(shape: ValueShape): boolean {
  if (shape.kind === "scalar") return false;
  return shape.kind === "list" ? shape.items.length === 0 : shape.members.length === 0;
}

/** What stands between the parts of a style that is written as one value. */
const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: " ", pipeDelimited: "|" };

/** What joins the parts of a value into one; nothing where each is written by itself. */
export function separatorOf(way: {
  readonly style: ParameterPlan["style"];
  readonly explode: boolean;
  readonly separator?: string | undefined;
}): string | undefined {
  if (way.separator !== undefined) return way.separator;
  return way.explode ? undefined : (SEPARATORS[way.style] ?? ",");
}

/** Refuses parts that hold what separates them: they would be read as more parts than there are. */
export function checkSeparable(shape: ValueShape, separator: string, key: string): void {
  if (shape.kind === "scalar") return;
  const texts = shape.kind === "list" ? shape.items : shape.members.flat();
  if (texts.some((text) => text.includes(separator))) {
    throw invalidInput(key, `holds a part with ${JSON.stringify(separator)}, which separates its parts`);
  }
}

/** Makes what writes the values of a path parameter: never a `/`, and never nothing. */
export function createPathWriter(parameter: ParameterPlan): (value: unknown) => string {
  const { key, name, style, explode, allowReserved, separator = "," } = parameter;
  const readShape = createShapeReader(parameter);
  const encode = (text: string) =>
    allowReserved ? escapeReserved(text, key, "path") : escapeText(text, key);
  const label = escapeName(name);
  const write = (shape: ValueShape): string => {
    if (style === "matrix") return writeMatrix(shape, { label, explode, encode });
    if (style !== "label") {
      if (separator !== ",") checkSeparable(shape, separator, key);
      return joinShape(shape, { separator: escapeSeparator(separator), pairs: explode, encode });
    }
    return `.${joinShape(shape, { separator: explode ? "." : ",", pairs: explode, encode })}`;
  };
  return (value) => {
    const shape = readShape(value);
    const text = isEmptyShape(shape) ? "" : write(shape);
    if (text === "") throw invalidInput(key, "is empty, which a path cannot hold");
    return text;
  };
}

function writeMatrix(
  shape: ValueShape,
  way: { readonly label: string; readonly explode: boolean; readonly encode: (text: string) => string },
): string {
  const { label, explode, encode } = way;
  const pair = (name: string, text: string) => (text === "" ? `;${name}` : `;${name}=${text}`);
  if (explode && shape.kind === "list") return shape.items.map((item) => pair(label, encode(item))).join("");
  if (explode && shape.kind === "members") {
    return shape.members.map(([name, text]) => pair(encode(name), encode(text))).join("");
  }
  return pair(label, joinShape(shape, { separator: ",", pairs: false, encode }));
}

/** Adds escaped `name=value` pairs of one value. */
export type PairWriter = (value: unknown, pairs: string[]) => void;

/** Deepest object that is written with brackets. */
const DEEPEST = 32;

/** Makes what writes the values of a query parameter, or of a property of a form. */
export function createQueryWriter(parameter: ParameterPlan): PairWriter {
  const { key, name, style, allowReserved, contentType } = parameter;
  const encode = (text: string) =>
    allowReserved ? escapeReserved(text, key, "query") : escapeText(text, key);
  const label = escapeName(name);
  if (style === "deepObject" && contentType === undefined) {
    return (value, pairs) => writeDeep(value, label, { key, encode, pairs, depth: 0 });
  }
  const readShape = createShapeReader(parameter);
  const joined = separatorOf(parameter);
  const separator = escapeSeparator(joined ?? ",");
  return (value, pairs) => {
    // Text is what most values are.
    const shape: ValueShape =
      typeof value === "string" && contentType === undefined
        ? { kind: "scalar", text: value }
        : readShape(value);
    if (isEmptyShape(shape)) {
      if (parameter.allowEmpty) pairs.push(`${label}=`);
    } else if (joined === undefined && shape.kind !== "scalar") {
      writeExploded(shape, pairs, { label, encode });
    } else {
      // An escaped separator is not told from one inside of a part, and where reserved characters stay, nor is a comma.
      if (separator !== ",") checkSeparable(shape, joined ?? separator, key);
      if (allowReserved) checkSeparable(shape, ",", key);
      pairs.push(`${label}=${joinShape(shape, { separator, pairs: false, encode })}`);
    }
  };
}

/** One pair per item or member, the latter under their own names. */
function writeExploded(
  shape: ValueShape,
  pairs: string[],
  { label, encode }: { readonly label: string; readonly encode: (text: string) => string },
): void {
  if (shape.kind === "list") for (const item of shape.items) pairs.push(`${label}=${encode(item)}`);
  if (shape.kind !== "members") return;
  for (const [name, text] of shape.members)
    pairs.push(`${encode(name).replaceAll("=", "%3D")}=${encode(text)}`);
}

interface DeepWalk {
  readonly key: string;
  readonly encode: (text: string) => string;
  readonly pairs: string[];
  readonly depth: number;
}

/**
 * Writes `a[b][c]=1`. OpenAPI does not say how lists nest: `a[]=1` is what most servers read, and items that are objects are
 * numbered, because nothing else keeps their members together.
 */
function writeDeep(value: unknown, label: string, walk: DeepWalk): void {
  if (isAbsent(value)) return;
  const text = scalarText(value, walk.key);
  if (text !== undefined) {
    walk.pairs.push(`${label}=${walk.encode(text)}`);
    return;
  }
  refuseOpaque(value, walk.key);
  if (walk.depth >= DEEPEST) throw invalidInput(walk.key, `is nested more than ${DEEPEST} levels deep`);
  const inside = { ...walk, depth: walk.depth + 1 };
  const isList = Array.isArray(value);
  const isFlat =
    isList && value.every((item) => isAbsent(item) || typeof item !== "object" || item instanceof Date);
  for (const [name, member] of Object.entries(value as object)) {
    const index = isFlat ? "" : escapeText(name, walk.key);
    writeDeep(member, `${label}%5B${index}%5D`, inside);
  }
}

/** Makes what writes a parameter that is all of the query (OpenAPI 3.2): a form, or one escaped text. */
export function createQuerystringWriter({ key, contentType }: ParameterPlan): PairWriter {
  const kind = mediaKindOf(parseSendableType(contentType ?? "")?.essence ?? "");
  const writeForm = createFormWriter(key, undefined);
  return (value, pairs) => {
    if (kind === "json") pairs.push(escapeText(jsonTextOf(value, key), key));
    else if (typeof value !== "object" || kind === "text" || kind === "events")
      pairs.push(escapeText(memberText(value, key), key));
    else {
      const form = writeForm(value);
      if (form !== "") pairs.push(form);
    }
  };
}

/** What RFC 6265 lets a cookie hold unquoted. */
const COOKIE_TEXT = /^[!#-+\--:<-[\]-~]*$/;

/**
 * Makes what writes the values of a cookie parameter: escaped in the style `form`, as they are in the style `cookie`, which refuses
 * what would need escaping. Parts that are exploded become cookies of their own: nothing reads the `&` of a query here.
 */
export function createCookieWriter(parameter: ParameterPlan): PairWriter {
  const { key, name, style, contentType } = parameter;
  const isRaw = style === "cookie" && contentType === undefined;
  const encode = (text: string) => (isRaw ? checkCookie(text, key) : escapeText(text, key));
  const readShape = createShapeReader(parameter);
  const label = escapeName(name);
  const joined = separatorOf(parameter);
  const separator = escapeSeparator(joined ?? ",");
  return (value, pairs) => {
    const shape = readShape(value);
    if (isEmptyShape(shape)) return;
    if (joined === undefined && shape.kind !== "scalar") writeExploded(shape, pairs, { label, encode });
    else {
      if (separator !== ",") checkSeparable(shape, joined ?? separator, key);
      pairs.push(`${label}=${joinShape(shape, { separator, pairs: false, encode })}`);
    }
  };
}

function checkCookie(text: string, key: string): string {
  if (COOKIE_TEXT.test(text)) return text;
  throw invalidInput(key, "holds characters that a cookie cannot hold");
}

/** Makes what writes the values of a header parameter; nothing where a list is empty. */
export function createHeaderWriter(parameter: ParameterPlan): (value: unknown) => string | undefined {
  const { key, name, explode, separator = "," } = parameter;
  if (!isToken(name)) {
    return () => {
      throw notCallable(`The parameter ${shown(key)} cannot be sent: its name is not that of a header.`);
    };
  }
  if (isFramingHeader(name.toLowerCase())) {
    return () => {
      throw invalidInput(key, "is a header that the transport writes by itself, and cannot be given");
    };
  }
  const readShape = createShapeReader(parameter);
  return (value) => {
    const shape = readShape(value);
    if (isEmptyShape(shape)) return undefined;
    checkSeparable(shape, separator, key);
    const text = joinShape(shape, { separator, pairs: explode, encode: (part) => part });
    return checkHeaderInput(text, key);
  };
}

/** Tells whether a header parameter can be given at all. */
export function isSendableHeader({ in: place, name }: ParameterPlan): boolean {
  return place !== "header" || (isToken(name) && !isFramingHeader(name.toLowerCase()));
}

/**
 * Makes what tells whether a parameter must be given: not where a credential is written in its place, whichever alternative the
 * operation is called by.
 */
export function createRequiredCheck({
  security,
  schemes,
}: OperationPlan): (parameter: ParameterPlan) => boolean {
  const alternatives = security.map(
    (alternative) =>
      new Set(
        Object.keys(alternative).map((name) =>
          Object.hasOwn(schemes, name) ? placeOf(schemes[name]) : undefined,
        ),
      ),
  );
  return ({ required, in: place, name }) => {
    if (!required || alternatives.length === 0) return required;
    const written = toPlace(place, name);
    return !alternatives.every((places) => places.has(written));
  };
}

function placeOf(scheme: SecuritySchemePlan | undefined): string | undefined {
  switch (scheme?.type) {
    case "apiKey":
      return toPlace(scheme.in, scheme.name);
    case "http":
    case "oauth2":
    case "openIdConnect":
      return toPlace("header", "authorization");
    default:
      return undefined;
  }
}

/** Names of headers alone are the same in either case. */
function toPlace(place: ParameterPlan["in"], name: string): string {
  return `${place} ${place === "header" ? name.toLowerCase() : name}`;
}

/** Makes what writes objects as `application/x-www-form-urlencoded`; text is taken to be that already. */
export function createFormWriter(key: string, encoding: MediaPlan["encoding"]): (value: unknown) => string {
  const writers = new Map<string, PairWriter>();
  for (const [name, plan] of Object.entries(encoding ?? {})) {
    writers.set(name, createQueryWriter(toParameter(key, name, plan)));
  }
  return (value) => {
    if (typeof value === "string") return checkWellFormed(value, key);
    if (!isPlainObject(value))
      throw invalidInput(key, "must be an object, each property a field of the form");
    const pairs: string[] = [];
    for (const [name, member] of Object.entries(value)) {
      if (isAbsent(member)) continue;
      const write = writers.get(name);
      if (write !== undefined) write(member, pairs);
      else for (const pair of plainPairs(name, member, key)) pairs.push(pair);
    }
    return pairs.join("&");
  };
}

/** Lists are repeated and objects are JSON, unless the document says otherwise. */
function* plainPairs(name: string, value: unknown, key: string): Generator<string> {
  const label = escapeText(name, key);
  for (const item of Array.isArray(value) ? value : [value]) {
    if (!isAbsent(item)) yield `${label}=${escapeText(memberText(item, key), key)}`;
  }
}

/** An encoding that says how to write is a query parameter's; one that names a media type alone is of that type. */
function toParameter(key: string, name: string, plan: EncodingPlan): ParameterPlan {
  const { style, explode, allowReserved, separator, contentType } = plan;
  const isStyled = [style, explode, allowReserved, separator].some((each) => each !== undefined);
  return {
    key,
    name,
    in: "query",
    required: false,
    style: style ?? "form",
    explode: explode ?? (style ?? "form") === "form",
    allowReserved: allowReserved ?? false,
    allowEmpty: false,
    schema: true,
    separator,
    contentType: isStyled ? undefined : contentType,
  };
}
