import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import type {
  OperationPlan,
  ParameterPlace,
  ParameterPlan,
  ParameterStyle,
  SecuritySchemePlan,
} from "../plan.ts";
import { copyExtension } from "./copy-json.ts";
import { upgradeOperation } from "./document-file.ts";
import { type DocumentReader, inlineOperation, type OperationPlace } from "./inline-operation.ts";
import { planSecurity, planServers } from "./plan-access.ts";
import { planBody, planResponses } from "./plan-bodies.ts";
import { type Direction, UsedDefinitions } from "./schema-piece.ts";

/** What is planned of a document. */
export interface PlanSource extends OperationPlace {
  readonly method: string;
  readonly path: string;
  /** The media type of the body that an overlay asks for. */
  readonly contentType: string | undefined;
  /** What is already known to be odd about it. */
  readonly notes: readonly string[];
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
}

/** Reads everything a document says about one operation, upgraded and mended. */
export function planOperation(source: PlanSource, reader: DocumentReader): OperationPlan {
  const notes = new Set(source.notes);
  const root = reader.files.root.root as Record<string, unknown>;
  const operation = source.operation.value as Record<string, unknown>;
  const inlined = inlineOperation(source, reader, notes);
  const lists = reader.version === "2.0" ? mendSwagger(inlined, notes) : undefined;
  const upgraded = upgradeOperation(inlined, reader.version);
  if (lists !== undefined) mendUpgraded(upgraded, lists);
  const used = new UsedDefinitions(notes);
  const schemas = (direction: Direction) => ({
    use: (schema: unknown) => reader.book.use(schema, direction, used),
    peek: reader.book.peek.bind(reader.book),
    notes,
  });
  const path = plainPath(source.path, upgraded["parameters"]);
  const item = isObject(source.item.value) ? source.item.value : {};
  return Object.freeze({
    method: source.method,
    path: path.text,
    servers: planServers(operation, item, reader.files.root),
    parameters: planParameters(upgraded, path, schemas("input")),
    body: planBody(upgraded["requestBody"], source.contentType, schemas("input")),
    responses: planResponses(upgraded["responses"], schemas("output")),
    ...planSecurity(operation["security"] ?? root["security"], source.schemes, notes),
    definitions: used.schemas,
    waybill: copyExtension(operation["x-waybill"]),
    notes: [...notes],
  });
}

type Fields = Record<string, unknown>;

const STYLES: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form", "cookie"],
  querystring: ["form"],
};
/** Headers that are described elsewhere: https://spec.openapis.org/oas/v3.1.1#parameter-object */
const IGNORED_HEADERS = new Set(["accept", "content-type", "authorization"]);
const PLACEHOLDER = /\{([^{}]+)\}/g;

/** How the parameters of an operation are read. */
interface ParameterReader {
  /** Makes a schema of the document one of the plan. */
  use(schema: unknown): JsonSchema;
  /** What is odd about them. */
  readonly notes: Set<string>;
}

/** A path whose `{names}` are those of its parameters. */
export interface PlainPath {
  readonly text: string;
  /** Names of those that may fill several segments. */
  readonly open: ReadonlySet<string>;
}

/** Writes `{+name}`, which is RFC 6570 for a value whose slashes stay, as `{name}` where that is what is declared. */
function plainPath(path: string, parameters: unknown): PlainPath {
  const declared = new Set<unknown>();
  for (const parameter of Array.isArray(parameters) ? (parameters as Fields[]) : []) {
    if (parameter["in"] === "path") declared.add(parameter["name"]);
  }
  const open = new Set<string>();
  const text = path.replace(PLACEHOLDER, (whole, name: string) => {
    const bare = name.slice(1);
    if (!name.startsWith("+") || declared.has(name) || !declared.has(bare)) return whole;
    open.add(bare);
    return `{${bare}}`;
  });
  return { text, open };
}

/** Makes the plans of an operation's parameters, those included that only its path names. */
function planParameters(operation: Fields, path: PlainPath, reader: ParameterReader): ParameterPlan[] {
  const inPath = new Set(Array.from(path.text.matchAll(PLACEHOLDER), ([, name]) => name as string));
  const plans: Omit<ParameterPlan, "key">[] = [];
  for (const parameter of operation["parameters"] === undefined
    ? []
    : (operation["parameters"] as Fields[])) {
    const plan = planParameter(parameter, inPath, reader);
    if (plan === undefined) continue;
    plans.push(plan.in === "path" && path.open.has(plan.name) ? { ...plan, allowReserved: true } : plan);
  }
  for (const name of inPath) {
    if (plans.some((plan) => plan.in === "path" && plan.name === name)) continue;
    reader.notes.add(`The path has {${name}}, which is not declared; it is taken to be a text.`);
    plans.push(undeclared(name));
  }
  return withKeys(plans, operation["requestBody"] !== undefined);
}

function planParameter(
  parameter: Fields,
  inPath: ReadonlySet<string>,
  { use, notes }: ParameterReader,
): Omit<ParameterPlan, "key"> | undefined {
  const name = String(parameter["name"]);
  const place = parameter["in"];
  if (!isPlace(place)) {
    notes.add(
      `The parameter ${JSON.stringify(name)} is in ${JSON.stringify(place)}, which is no place; it was left out.`,
    );
    return undefined;
  }
  if (place === "header" && IGNORED_HEADERS.has(name.toLowerCase())) return undefined;
  if (place === "path" && !inPath.has(name)) {
    notes.add(`The parameter ${JSON.stringify(name)} is not in the path; it was left out.`);
    return undefined;
  }
  const style = styleOf(parameter, place, notes);
  const { description, explode, separator } = parameter;
  return {
    name,
    in: place,
    required: place === "path" || parameter["required"] === true,
    style,
    explode: typeof explode === "boolean" ? explode : style === "form" || style === "cookie",
    ...(typeof separator === "string" && { separator }),
    allowReserved: parameter["allowReserved"] === true,
    allowEmpty: parameter["allowEmptyValue"] === true,
    ...contentOf(parameter, use),
    description: typeof description === "string" ? description : undefined,
    deprecated: parameter["deprecated"] === true ? true : undefined,
  };
}

function contentOf(
  { schema, content }: Fields,
  use: (schema: unknown) => JsonSchema,
): Pick<ParameterPlan, "schema" | "contentType"> {
  const [described] = schema === undefined && isObject(content) ? Object.entries(content) : [];
  if (described === undefined)
    return { schema: schema === undefined ? {} : use(schema), contentType: undefined };
  const [contentType, media] = described;
  const inner = isObject(media) ? media["schema"] : undefined;
  return { schema: inner === undefined ? {} : use(inner), contentType };
}

function undeclared(name: string): Omit<ParameterPlan, "key"> {
  return {
    ...{ name, in: "path", required: true, style: "simple", explode: false, allowReserved: false },
    ...{ allowEmpty: false, schema: { type: "string" }, contentType: undefined },
    ...{ description: undefined, deprecated: undefined },
  };
}

function isPlace(value: unknown): value is ParameterPlace {
  return typeof value === "string" && Object.hasOwn(STYLES, value);
}

function styleOf({ name, style }: Fields, place: ParameterPlace, notes: Set<string>): ParameterStyle {
  const allowed = STYLES[place];
  if (allowed.includes(style as ParameterStyle)) return style as ParameterStyle;
  if (style !== undefined) {
    notes.add(
      `The parameter ${JSON.stringify(String(name))} has the style ${JSON.stringify(style)}, which is none of its place.`,
    );
  }
  return allowed[0] as ParameterStyle;
}

/** A parameter is known by its name, and by its place too where that alone would not tell it from others or from the body. */
function withKeys(plans: readonly Omit<ParameterPlan, "key">[], hasBody: boolean): ParameterPlan[] {
  const counts = new Map<string, number>([["__proto__", 1]]);
  if (hasBody) counts.set("body", 1);
  for (const { name } of plans) counts.set(name, (counts.get(name) ?? 0) + 1);
  const taken = new Set(["__proto__", ...(hasBody ? ["body"] : [])]);
  for (const { name } of plans) if (counts.get(name) === 1) taken.add(name);
  return plans.map((plan) => {
    let key = plan.name;
    if (counts.get(key) === 1) return { key, ...plan };
    do key = `${plan.in}_${key}`;
    while (taken.has(key));
    taken.add(key);
    return { key, ...plan };
  });
}

const URLENCODED = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";

/** What stands between the items of a list, by `collectionFormat`. */
const SEPARATORS: ReadonlyMap<unknown, string> = new Map([
  ["csv", ","],
  ["ssv", " "],
  ["tsv", "\t"],
  ["pipes", "|"],
]);

/** Separators of lists that are written as one text, by place and name. */
export type ListSeparators = ReadonlyMap<string, string>;

/** Says what Swagger 2.0 leaves to be understood, and its upgrade does not: which form is sent, and how lists are written in it. */
function mendSwagger(operation: Fields, notes: Set<string>): ListSeparators {
  const parameters = operation["parameters"] as Fields[];
  operation["parameters"] = parameters.filter(
    (one) => one["in"] !== "formData" || one["name"] !== "__proto__",
  );
  const form = parameters.filter((parameter) => parameter["in"] === "formData");
  const lists = new Map<string, string>();
  for (const parameter of parameters) {
    if (parameter["type"] !== "array") continue;
    const separator = separatorOf(parameter, notes);
    if (separator !== undefined) lists.set(`${parameter["in"]} ${parameter["name"]}`, separator);
    if (parameter["in"] === "formData") parameter["collectionFormat"] ??= "csv";
  }
  if (form.length > 0) operation["consumes"] = formTypes(operation["consumes"] as string[], form);
  return lists;
}

/** Nothing for a list whose items are repeated. */
function separatorOf(
  { collectionFormat = "csv", in: place, name }: Fields,
  notes: Set<string>,
): string | undefined {
  if (collectionFormat === "multi" && (place === "query" || place === "formData")) return undefined;
  const separator = SEPARATORS.get(collectionFormat);
  if (separator === undefined) {
    const said = JSON.stringify(collectionFormat);
    notes.add(
      `The list ${JSON.stringify(name)} has the collectionFormat ${said}, which its place does not have; commas are used.`,
    );
  }
  return separator ?? ",";
}

function formTypes(consumes: readonly string[], form: readonly Fields[]): string[] {
  if (form.some(({ type }) => type === "file")) return [MULTIPART];
  const types = consumes.filter((type) => type === URLENCODED || type === MULTIPART);
  return types.length > 0 ? types : [URLENCODED];
}

/** Says what the upgrade of Swagger 2.0 forgets: that a form with required fields is itself required, and what separates items. */
function mendUpgraded(operation: Fields, lists: ListSeparators): void {
  for (const parameter of Array.isArray(operation["parameters"])
    ? (operation["parameters"] as Fields[])
    : []) {
    const separator = lists.get(`${parameter["in"]} ${parameter["name"]}`);
    if (separator !== undefined) separate(parameter, separator);
  }
  const body = operation["requestBody"];
  if (!isObject(body) || !isObject(body["content"])) return;
  for (const type of [URLENCODED, MULTIPART]) {
    const media = body["content"][type];
    if (!isObject(media)) continue;
    if (asksForFields(media)) body["required"] = true;
    mendForm(media, type === MULTIPART, lists);
  }
}

/** Leaves it to the style where that says as much. */
function separate(parameter: Fields, separator: string): void {
  const { in: place, style } = parameter;
  parameter["explode"] = false;
  const isQuery = place === "query";
  if (separator === "," || (isQuery && (style === "spaceDelimited" || style === "pipeDelimited"))) return;
  parameter["style"] = isQuery ? "form" : "simple";
  parameter["separator"] = separator;
}

function asksForFields({ schema }: Fields): boolean {
  const required = isObject(schema) ? schema["required"] : undefined;
  return Array.isArray(required) && required.length > 0;
}

function mendForm(media: Fields, isMultipart: boolean, lists: ListSeparators): void {
  const properties = isObject(media["schema"]) ? media["schema"]["properties"] : undefined;
  const encoding: Fields = isObject(media["encoding"]) ? { ...media["encoding"] } : {};
  for (const name of Object.keys(isObject(properties) ? properties : {})) {
    const separator = lists.get(`formData ${name}`);
    if (separator === undefined) continue;
    const field: Fields = isObject(encoding[name]) ? { ...encoding[name], in: "query" } : { in: "query" };
    separate(field, separator);
    // A part has no style that would say so.
    if (isMultipart) field["separator"] = separator;
    else field["style"] ??= "form";
    encoding[name] = field;
  }
  if (Object.keys(encoding).length > 0) media["encoding"] = encoding;
}
