import { parsePointer } from "../json/json-pointer.ts";

/** One way a value misses its schema. */
export interface SchemaIssue {
  /** JSON pointer into the value; `""` is the value itself. */
  readonly pointer: string;
  readonly expected: string;
  readonly found: string;
  /** The sentence of a validator that says more than that, in its own words. */
  readonly message?: string;
}

/** What is expected of a member that must be there. */
export const REQUIRED = "a required property";
/** What is found where there is no value. */
export const NOTHING = "nothing";

/** A pointer as people write the place: `/body/items/0` is `body.items.0`; `whole` is what the value itself is called. */
export function fieldName(pointer: string, whole: string): string {
  return pointer === "" ? whole : parsePointer(pointer).join(".");
}

/** Says in words how a value misses its schema, without the place: `is missing`, `must be integer; it is string of 1 character`. */
export function issueWords({ expected, found, message }: Omit<SchemaIssue, "pointer">): string {
  if (message !== undefined) return `is refused: ${message}`;
  if (found !== NOTHING) return `must be ${expected}; it is ${found}`;
  return expected === REQUIRED ? "is missing" : `is missing: it must be ${expected}`;
}

/** Says in words how a value misses its schema; `whole` is what the value itself is called. */
export function issueText(issue: SchemaIssue, whole: string): string {
  return `${fieldName(issue.pointer, whole)} ${issueWords(issue)}`;
}

/** Says that an input does not match the schema of an operation, with the first issue. */
export function mismatchText(operationId: string, [first]: readonly SchemaIssue[]): string {
  const reason = first === undefined ? "" : `: ${issueText(first, "it")}`;
  return `The input of "${operationId}" does not match its schema${reason}.`;
}

/** What normalising changed, each change named by its JSON pointer. */
export interface NormalizationReport {
  readonly stripped: readonly string[];
  readonly defaulted: readonly string[];
  readonly converted: readonly string[];
  /** How many further changes were made and not listed. */
  readonly omitted?: number;
}

/** Says why a schema was refused, and where in it the reason lies. */
export class SchemaError extends TypeError {
  override readonly name = "SchemaError";
  /** JSON pointer into the schema. */
  readonly pointer: string;

  constructor(reason: string, pointer = "", options?: { readonly cause?: unknown }) {
    super(pointer === "" ? reason : `${reason} (at ${pointer} of the schema)`, options);
    this.pointer = pointer;
  }
}
