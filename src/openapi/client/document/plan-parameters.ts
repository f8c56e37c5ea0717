import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import type { ParameterPlace, ParameterPlan, ParameterStyle } from "../plan.ts";

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
export function plainPath(path: string, parameters: unknown): PlainPath {
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
export function planParameters(operation: Fields, path: PlainPath, reader: ParameterReader): ParameterPlan[] {
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
