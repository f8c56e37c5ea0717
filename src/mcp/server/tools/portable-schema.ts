import { setOwn } from "../../../core/json/json-value.ts";
import {
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  schemaForm,
} from "../../../core/schema/json-schema.ts";
import { withoutNeedlessEscapes } from "../../../core/schema/pattern.ts";
import { mapSubschemas, modernKeywords } from "../../../core/schema/rewrite-schema.ts";
import { ReferenceTargets } from "../../../core/schema/schema-index.ts";

/**
 * Who reads a schema: anyone who keeps to 2020-12; the validators of today's clients; or those of 2025 clients, which read what
 * does not name its dialect as 2020-12 or as draft-07.
 */
type SchemaReader = "exact" | "modern" | "legacy";

type Keywords = Record<string, unknown>;

/** Names of the document or its parts, which plain pointers make needless; the validators stumble over those that clash. */
const NAMING = new Set(["$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"]);

/** Keywords that mean nothing here, but something else to a validator of the SDKs, or make it give up. */
const FOREIGN = new Set(["id", "nullable", "$async"]);

/** Keywords whose value is data that every validator reads alike. */
const DATA = new Set(["const", "default", "enum", "examples", "required", "type"]);

/** Keywords of 2019-09 and later, which a draft-07 validator passes over. */
const LATER = ["dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems"];

/**
 * Rewrites a schema as 2020-12 with plain pointers for references. For `exact` nothing that it says is changed, or the answer is
 * undefined; for validators it says no more than before, and nothing that they refuse or read otherwise.
 */
export function toPortableSchema(
  schema: JsonSchemaObject,
  reader: SchemaReader,
): JsonSchemaObject | undefined {
  const references = new SchemaReferences(schema);
  const first = new Rewriting(references, reader, true);
  const whole = first.document(schema);
  if (first.losses === 0) return whole;
  // What a reference leads to may now accept more than before, which matters wherever accepting is turned into refusing.
  return reader === "exact" ? undefined : new Rewriting(references, reader, false).document(schema);
}

class Rewriting {
  /** How often something was left out, or is passed over by the reader. */
  losses = 0;
  readonly #references: SchemaReferences;
  readonly #reader: SchemaReader;
  readonly #trustsReferences: boolean;

  constructor(references: SchemaReferences, reader: SchemaReader, trustsReferences: boolean) {
    this.#references = references;
    this.#reader = reader;
    this.#trustsReferences = trustsReferences;
  }

  document(root: JsonSchemaObject): JsonSchemaObject {
    const written = this.#object(root);
    if (this.#references.moved.size === 0) return written;
    const definitions = isObject(written["$defs"]) ? { ...written["$defs"] } : {};
    for (const [target, name] of this.#references.moved) setOwn(definitions, name, this.#object(target));
    return { ...written, $defs: definitions };
  }

  #schema(schema: unknown): JsonSchema {
    if (!isObject(schema)) return schema !== false;
    return this.#references.moved.has(schema) ? this.#reference(schema) : this.#object(schema);
  }

  #reference(target: JsonSchema): Keywords {
    if (!this.#trustsReferences) this.losses++;
    return { $ref: this.#references.pointerTo(target) };
  }

  #object(schema: JsonSchemaObject): Keywords {
    const before = this.losses;
    const isOld = this.#references.isOld(schema);
    const references: Keywords = {};
    const further: JsonSchema[] = [];
    this.#referTo(schema, references, further);
    // Before 2019-09 a reference hid everything beside it, except what was only ever pointed at.
    const source = isOld && typeof schema["$ref"] === "string" ? onlyBesideReference(schema) : schema;
    const modern = modernKeywords(source, isOld);
    const plain = Object.keys(modern).filter((keyword) => this.#isPlain(keyword, modern[keyword]));
    const kept = Object.fromEntries(plain.map((keyword) => [keyword, modern[keyword]]));
    const copy: Keywords = {
      ...references,
      ...mapSubschemas(kept, (part, keyword) => this.#part(part, keyword)),
    };
    this.#items(modern, copy);
    this.#members(modern, copy);
    this.#dependents(modern, copy);
    this.#choices(modern, copy, further);
    if (further.length > 0) copy["allOf"] = [...((copy["allOf"] as JsonSchema[]) ?? []), ...further];
    this.#unevaluated(modern, copy, before);
    if (this.#reader === "legacy") for (const keyword of LATER) if (keyword in copy) this.losses++;
    return copy;
  }

  #referTo(schema: JsonSchemaObject, copy: Keywords, further: JsonSchema[]): void {
    for (const { target } of this.#references.referencesOf(schema)) {
      if (target === undefined) this.losses++;
      else if (target === false) further.push({ not: {} });
      else if (target !== true) {
        const reference = this.#reference(target);
        if (copy["$ref"] === undefined) copy["$ref"] = reference["$ref"];
        else further.push(reference);
      }
    }
  }

  /** Whether a keyword is written by itself, whatever stands beside it. */
  #isPlain(keyword: string, value: unknown): boolean {
    if (WRITTEN_APART.has(keyword) || NAMING.has(keyword)) return false;
    if (keyword === "format") return typeof value === "string";
    if ((keyword === "allOf" || keyword === "anyOf") && Array.isArray(value) && value.length === 0) {
      if (keyword === "anyOf") this.losses++;
      return false;
    }
    if (this.#reader === "exact") return true;
    if (FOREIGN.has(keyword)) return false;
    const isKnown = DATA.has(keyword) || schemaForm(keyword, value) !== undefined;
    return isKnown || !isConfusing(value);
  }

  #part(part: JsonSchema, keyword: string): JsonSchema {
    const written = this.#schema(part);
    return MAPS.has(keyword) ? spelledOut(written) : written;
  }

  #items(source: JsonSchemaObject, copy: Keywords): void {
    const { prefixItems, items } = source;
    if (Array.isArray(prefixItems)) copy["prefixItems"] = prefixItems.map((item) => this.#schema(item));
    // A validator of draft-07 does not know the former, and would hold all items to the latter.
    if (prefixItems !== undefined && this.#reader === "legacy") this.losses++;
    else if (items !== undefined) copy["items"] = this.#schema(items);
    if (source["contains"] !== undefined) this.#contains(source, copy);
  }

  #contains(source: JsonSchemaObject, copy: Keywords): void {
    const { minContains, maxContains } = source;
    if (minContains === 0 && this.#reader !== "exact") this.losses++;
    if (minContains === 0 && this.#reader === "legacy") return;
    const before = this.losses;
    copy["contains"] = this.#schema(source["contains"]);
    // Said outright, because beside `maxContains` some validators forget that the default is 1.
    const least = minContains ?? (maxContains === undefined ? undefined : 1);
    if (least !== undefined) copy["minContains"] = least;
    if (maxContains !== undefined && this.losses === before) copy["maxContains"] = maxContains;
  }

  /** Validators find a member that every object inherits in all of them, and one named `__proto__` in none. */
  #members(source: JsonSchemaObject, copy: Keywords): void {
    const before = this.losses;
    const { patternProperties, required } = source;
    const { properties } = copy;
    if (isObject(patternProperties)) this.#patternProperties(patternProperties, copy);
    if (this.#reader === "exact") return;
    if (isObject(properties)) copy["properties"] = this.#withoutInherited(properties);
    if (this.losses > before) delete copy["additionalProperties"];
    if (Array.isArray(required) && required.some(isInherited)) this.losses++;
  }

  #withoutInherited(members: JsonSchemaObject): JsonSchemaObject {
    const names = Object.keys(members).filter((name) => this.#reader !== "exact" && isInherited(name));
    this.losses += names.length;
    return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));
  }

  #pattern(source: string): string | undefined {
    return this.#reader === "exact" ? source : toUnicodePattern(source);
  }

  #patternProperties(members: Readonly<Record<string, unknown>>, copy: Keywords): void {
    const written: Keywords = {};
    for (const source of Object.keys(members)) {
      const pattern = this.#pattern(source);
      const isFree = pattern === source || (pattern !== undefined && !Object.hasOwn(members, pattern));
      if (isFree && !Object.hasOwn(written, pattern)) setOwn(written, pattern, this.#schema(members[source]));
      else this.losses++;
    }
    copy["patternProperties"] = written;
  }

  #dependents({ dependentRequired, dependentSchemas }: JsonSchemaObject, copy: Keywords): void {
    const names = isObject(dependentRequired) ? this.#withoutInherited(dependentRequired) : {};
    const schemas = isObject(dependentSchemas) ? this.#withoutInherited(dependentSchemas) : {};
    if (Object.keys(names).length > 0) copy["dependentRequired"] = names;
    if (Object.keys(schemas).length === 0) return;
    Object.assign(
      copy,
      mapSubschemas({ dependentSchemas: schemas }, (part) => this.#schema(part)),
    );
  }

  /** Where accepting more inside would mean accepting less outside, the keyword is loosened or left out. */
  #choices(source: JsonSchemaObject, copy: Keywords, further: JsonSchema[]): void {
    const { oneOf, pattern, multipleOf } = source;
    const own = {
      pattern: typeof pattern === "string" ? this.#pattern(pattern) : undefined,
      // Some validators divide, and find that 19.99 is no multiple of 0.01.
      multipleOf: this.#reader === "exact" || Number.isInteger(multipleOf) ? multipleOf : undefined,
    };
    for (const keyword of ["pattern", "multipleOf"] as const) {
      if (own[keyword] !== undefined) copy[keyword] = own[keyword];
      else if (source[keyword] !== undefined) this.losses++;
    }
    if (Array.isArray(source["enum"])) {
      if (source["enum"].length > 0) copy["enum"] = source["enum"];
      else further.push({ not: {} });
    }
    if (source["not"] !== undefined) this.#unlessLossy("not", source, copy);
    if (source["if"] === undefined || !this.#unlessLossy("if", source, copy)) {
      delete copy["then"];
      delete copy["else"];
    }
    if (!Array.isArray(oneOf)) return;
    if (oneOf.length === 0) {
      further.push({ not: {} });
      return;
    }
    const before = this.losses;
    const branches = oneOf.map((branch) => this.#schema(branch));
    if (this.losses === before) copy["oneOf"] = branches;
    else if (copy["anyOf"] === undefined) copy["anyOf"] = branches;
    else further.push({ anyOf: branches });
  }

  #unlessLossy(keyword: string, source: JsonSchemaObject, copy: Keywords): boolean {
    const before = this.losses;
    const written = this.#schema(source[keyword]);
    if (this.losses > before) return false;
    copy[keyword] = written;
    return true;
  }

  /** Says what is left over, so it holds only while nothing beside it was lost. */
  #unevaluated(source: JsonSchemaObject, copy: Keywords, before: number): void {
    for (const keyword of ["unevaluatedItems", "unevaluatedProperties"]) {
      if (source[keyword] === undefined) continue;
      const isSound = this.losses === before && this.#reader !== "legacy";
      if (isSound) copy[keyword] = this.#schema(source[keyword]);
      else this.losses++;
    }
  }
}

const MAPS = new Set(["$defs", "definitions", "properties"]);

const WRITTEN_APART = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "items", "prefixItems", "contains", "minContains"],
  ...["maxContains", "patternProperties", "dependentRequired", "dependentSchemas", "pattern"],
  ...["multipleOf", "enum", "not", "if", "oneOf", "unevaluatedItems", "unevaluatedProperties"],
]);

/** Below keywords nobody knows, some validators still take note of names. */
function isConfusing(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    /"\$(?:id|anchor|dynamicAnchor)":/.test(JSON.stringify(value))
  );
}

function onlyBesideReference({ definitions, $defs, title, description }: JsonSchemaObject): JsonSchemaObject {
  const kept = { title, description, definitions, $defs };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

/** A boolean schema as an object of keywords, the only kind that older clients take for a member. */
export function spelledOut(schema: JsonSchema): JsonSchemaObject {
  if (typeof schema !== "boolean") return schema;
  return schema ? {} : { not: {} };
}

function isInherited(name: unknown): boolean {
  return typeof name === "string" && (name === "__proto__" || name in Object.prototype);
}

/** Names that can stand in a reference as they are, for every validator. */
const SAFE_NAME = /^[\w.-]+$/;

const DEFINITIONS = ["$defs", "definitions"] as const;

/**
 * Knows what every reference of a document means, and a plain pointer for it: to the root, to a definition that stays where it
 * is, or to a new definition. So neither `$id` nor anchors are needed to follow them.
 */
class SchemaReferences extends ReferenceTargets {
  readonly #pointers = new Map<JsonSchema, string>();
  /** Schemas that are referred to where no pointer is safe, with the names of their new definitions. */
  readonly moved = new Map<JsonSchemaObject, string>();

  constructor(root: JsonSchemaObject) {
    super(root);
    this.#pointers.set(root, "#");
    this.#keepDefinitions(root, "#");
    this.forEachReference((target) => {
      if (!this.#pointers.has(target)) this.#move(target, root);
    });
  }

  /** The reference that leads to a schema that is referred to. */
  pointerTo(target: JsonSchema): string | undefined {
    return this.#pointers.get(target);
  }

  #keepDefinitions(schema: JsonSchemaObject, pointer: string): void {
    for (const keyword of DEFINITIONS) {
      const members = schema[keyword];
      if (!isObject(members)) continue;
      for (const name of Object.keys(members)) {
        const member = members[name];
        if (!isObject(member) || !SAFE_NAME.test(name) || name in Object.prototype) continue;
        if (this.#pointers.has(member)) continue;
        this.#pointers.set(member, `${pointer}/${keyword}/${name}`);
        this.#keepDefinitions(member, `${pointer}/${keyword}/${name}`);
      }
    }
  }

  #move(target: JsonSchemaObject, root: JsonSchemaObject): void {
    const taken = isObject(root["$defs"]) ? root["$defs"] : {};
    let name = `ref${this.moved.size + 1}`;
    while (Object.hasOwn(taken, name)) name = `_${name}`;
    this.moved.set(target, name);
    this.#pointers.set(target, `#/$defs/${name}`);
  }
}

/** The pattern as Unicode mode takes it, with the same meaning; undefined where there is none. */
function toUnicodePattern(source: string): string | undefined {
  return [source, withoutNeedlessEscapes(source)].find((pattern) => {
    try {
      return new RegExp(pattern, "u") instanceof RegExp;
    } catch {
      return false;
    }
  });
}
