import { type AnySchema, toOperationSchema } from "../schema/any-schema.ts";
import { type CompiledSchema, compileSchema } from "../schema/compile-schema.ts";
import { isObject } from "../schema/json-schema.ts";
import { rewriteSchema } from "../schema/rewrite-schema.ts";
import { viewSchema } from "../schema/schema-view.ts";
import { CUT_MARKER, FLAG } from "./shorten-data.ts";

/** A schema as callers hold it: compiled already, or anything an operation may declare. */
export type DataSchema = CompiledSchema | AnySchema;

/** Asks a schema about candidates, a limited number of times. */
export class DataValidator {
  readonly #compiled: CompiledSchema;
  /** Nothing where the schema cannot be guarded: then no cut is accepted. */
  readonly #guarded: CompiledSchema | undefined;
  #asksLeft: number;

  private constructor(compiled: CompiledSchema, maxAsks: number) {
    this.#compiled = compiled;
    this.#guarded = guardForms(compiled);
    this.#asksLeft = maxAsks;
  }

  /** Makes a validator of a schema; nothing for one that says nothing, which accepts any cut. */
  static of(schema: DataSchema | undefined, maxAsks: number): DataValidator | undefined {
    if (schema === undefined) return undefined;
    const compiled = isCompiled(schema) ? schema : toOperationSchema(schema, "output");
    return compiled.meaningful ? new DataValidator(compiled, maxAsks) : undefined;
  }

  get isExhausted(): boolean {
    return this.#asksLeft <= 0;
  }

  /** Tells whether a value passes; nothing does once the number of questions is used up. */
  accepts(value: unknown): boolean {
    if (this.isExhausted) return false;
    this.#asksLeft--;
    if (this.#guarded?.check(value) !== true) return false;
    // Compiled apart from the options of the other, it may know less than that.
    const isSame = this.#guarded === this.#compiled || this.#compiled.check(value);
    return isSame && passesOwnRules(this.#compiled, value);
  }

  /** Pointers to what is wrong with a value. */
  complaints(value: unknown): string[] {
    if (this.isExhausted) return [];
    this.#asksLeft--;
    const issues = this.#guarded?.errors(value) ?? [];
    return (issues.length > 0 ? issues : this.#compiled.errors(value)).map(({ pointer }) => pointer);
  }

  /** Tells whether the outermost object declares a `truncated` that may be true. */
  get declaresFlag(): boolean {
    const view = viewSchema(this.#compiled.json);
    return view.has(FLAG) && view.member(FLAG).parts.some(admitsTrue);
  }
}

function isCompiled(schema: DataSchema): schema is CompiledSchema {
  return (
    isObject(schema) &&
    typeof schema["isClean"] === "function" &&
    typeof schema["fillDefaults"] === "function"
  );
}

/** Rules of a Standard Schema beyond JSON Schema; those that answer later cannot be asked here and count as broken. */
function passesOwnRules(compiled: CompiledSchema & { readonly validate?: unknown }, value: unknown): boolean {
  const { validate } = compiled;
  if (typeof validate !== "function") return true;
  try {
    const answer: unknown = validate(value);
    if (isObject(answer) && typeof answer["then"] === "function") {
      Promise.resolve(answer).catch(() => undefined);
      return false;
    }
    return isObject(answer) && !answer["issues"];
  } catch {
    return false;
  }
}

function admitsTrue({ type, const: only, enum: choices }: Readonly<Record<string, unknown>>): boolean {
  if (only === true || type === "boolean") return true;
  return [type, choices].some(
    (list) => Array.isArray(list) && (list.includes("boolean") || list.includes(true)),
  );
}

/** Keywords that give a string a form, which a cut would break; Waybill does not check them, and clients do. */
const FORMS = ["format", "contentEncoding"] as const;

/** No string that was cut. */
const UNCUT = { not: { pattern: `${CUT_MARKER}$` } };

const guarded = new WeakMap<CompiledSchema, CompiledSchema | undefined>();

/** The same schema, refusing strings of a certain form that were cut; made once for each schema. */
function guardForms(compiled: CompiledSchema): CompiledSchema | undefined {
  if (!guarded.has(compiled)) guarded.set(compiled, withUncutForms(compiled));
  return guarded.get(compiled);
}

function withUncutForms(compiled: CompiledSchema): CompiledSchema | undefined {
  const guarded = rewriteSchema(compiled.json, {
    keywords: (schema) => {
      const hasForm = FORMS.some((keyword) => typeof schema[keyword] === "string");
      const { allOf } = schema;
      return hasForm ? { ...schema, allOf: [...(Array.isArray(allOf) ? allOf : []), UNCUT] } : schema;
    },
  });
  if (guarded === compiled.json) return compiled;
  try {
    return compileSchema(guarded);
  } catch {
    return undefined;
  }
}
