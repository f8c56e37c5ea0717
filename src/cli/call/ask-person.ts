import { confirm, isCancel, log, multiselect, select, text } from "@clack/prompts";
import { setOwn } from "../../core/json/json-value.ts";
import type { ElicitAnswer, ElicitRequest } from "../../core/operation/caller-side.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { viewSchema } from "../../core/schema/schema-view.ts";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import type { Io } from "../io.ts";
import { valueOfText } from "./parse-inputs.ts";

const MOST_FIELDS = 50;
const CANCELLED: ElicitAnswer = { action: "cancel" };

/** Puts a question of a server to the person at the terminal, on stderr. */
export async function askPerson(io: Io, request: ElicitRequest, signal: AbortSignal): Promise<ElicitAnswer> {
  const surroundings = { input: io.stdin, output: io.stderr, signal };
  log.message(`A server asks: ${safeText(request.message)}`, { output: io.stderr });
  if (request.mode === "url") {
    log.message(`It wants you to open ${safeLine(request.url, 2_000)}`, { output: io.stderr });
    const isDone = await confirm({ message: "Have you done that?", initialValue: false, ...surroundings });
    if (isCancel(isDone)) return CANCELLED;
    return { action: isDone ? "accept" : "decline" };
  }
  const wants = await confirm({ message: "Answer it?", ...surroundings });
  if (isCancel(wants)) return CANCELLED;
  if (!wants) return { action: "decline" };
  const { properties, required } = request.requestedSchema;
  const needed = new Set(Array.isArray(required) ? required : []);
  const content: Record<string, unknown> = {};
  const fields = Object.entries(isObject(properties) ? properties : {}).slice(0, MOST_FIELDS);
  for (const [name, schema] of fields) {
    if (!isObject(schema)) continue;
    const answer = await askField({ name, schema, isNeeded: needed.has(name) }, surroundings);
    if (isCancel(answer)) return CANCELLED;
    if (answer !== undefined) setOwn(content, name, answer);
  }
  return { action: "accept", content };
}

interface Surroundings {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly signal: AbortSignal;
}

/** A field of the answer that a server asks for. */
interface Field {
  readonly name: string;
  readonly schema: JsonSchemaObject;
  readonly isNeeded: boolean;
}

async function askField(field: Field, surroundings: Surroundings): Promise<unknown> {
  const { name, schema, isNeeded } = field;
  const message = labelOf(field);
  if (schema["type"] === "boolean")
    return confirm({ message, initialValue: schema["default"] === true, ...surroundings });
  const choices = choicesOf(schema);
  if (choices !== undefined) return select({ message, options: choices, ...surroundings });
  const several = isObject(schema["items"]) ? choicesOf(schema["items"]) : undefined;
  if (several !== undefined)
    return multiselect({ message, options: several, required: isNeeded, ...surroundings });
  const preset = schema["default"];
  const given = await text({
    message,
    ...(preset !== undefined && { initialValue: String(preset) }),
    validate: (typed) => mistakeIn(typed ?? "", field),
    ...surroundings,
  });
  if (isCancel(given)) return given;
  return given === "" && !isNeeded ? undefined : valueOfText(given, viewSchema(schema), name);
}

function labelOf({ name, schema, isNeeded }: Field): string {
  const { title, description } = schema;
  const label = safeLine(typeof title === "string" ? title : name, 100);
  const more = typeof description === "string" ? ` (${safeLine(description, 300)})` : "";
  return `${label}${more}${isNeeded ? "" : " — may be left empty"}`;
}

function choicesOf(schema: JsonSchemaObject): { value: string; label: string }[] | undefined {
  const { enum: values, enumNames, oneOf, anyOf } = schema;
  if (Array.isArray(values)) {
    const names = Array.isArray(enumNames) ? enumNames : [];
    return values.map((value, at) => ({
      value: String(value),
      label: safeLine(String(names[at] ?? value), 100),
    }));
  }
  const titled = [oneOf, anyOf].find(Array.isArray);
  const options = (titled ?? []).filter((option) => isObject(option) && typeof option["const"] === "string");
  if (options.length === 0) return undefined;
  return options.map((option) => {
    const { const: value, title } = option as { const: string; title?: unknown };
    return { value, label: safeLine(typeof title === "string" ? title : value, 100) };
  });
}

function mistakeIn(typed: string, { name, schema, isNeeded }: Field): string | undefined {
  if (typed === "") return isNeeded ? "It is needed." : undefined;
  try {
    const [issue] = compileSchema(schema).errors(valueOfText(typed, viewSchema(schema), name));
    return issue === undefined ? undefined : `It must be ${safeLine(issue.expected, 200)}.`;
  } catch {
    return undefined;
  }
}
