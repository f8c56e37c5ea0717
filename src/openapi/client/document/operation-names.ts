import { createHash } from "node:crypto";
import { METHODS } from "./http-methods.ts";

/** What names an operation in its document. */
export interface OperationSign {
  /** Upper case. */
  readonly method: string;
  readonly path: string;
  /** The `operationId`, after patches. */
  readonly namedId: string | undefined;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_./-]*$/;
const MAX_LENGTH = 200;
/** How a name ends that was made of one that could not be kept. */
const MADE = /-x[0-9a-f]{10}$/;
const SEGMENT = /^[A-Za-z0-9_.-]*$/;
const PARAMETER = /^\{([A-Za-z0-9_.-]+)\}$/;
const STARTS_WITH_METHOD = new RegExp(`^(?:${METHODS.join("|")})/`);

/**
 * Names every operation of a document, each by what it is alone, so that another one never changes a name: the `operationId`
 * where it is a name, else method and path with `{id}` written `by-id`. What does not fit is made to fit, and ends in a hash of
 * what it was. Only an `operationId` that is given twice is no name for either.
 */
export function nameOperations(signs: readonly OperationSign[]): string[] {
  const counts = new Map<string, number>();
  for (const { namedId } of signs) {
    if (namedId !== undefined) counts.set(namedId, (counts.get(namedId) ?? 0) + 1);
  }
  return signs.map((sign) => {
    if (sign.namedId === undefined) return nameOfPlace(sign);
    if ((counts.get(sign.namedId) ?? 0) > 1)
      return made(sign.namedId, `twice ${sign.namedId} ${place(sign)}`);
    return nameOfId(sign.namedId, sign);
  });
}

/** Tells whether an operation may be called that. */
export function isName(name: unknown): boolean {
  return typeof name === "string" && NAME.test(name) && name.length <= MAX_LENGTH;
}

function nameOfId(id: string, sign: OperationSign): string {
  const fits = isName(id) && !MADE.test(id);
  if (fits && (!STARTS_WITH_METHOD.test(id) || id === nameOfPlace(sign))) return id;
  return made(id, `id ${id}`);
}

function nameOfPlace(sign: OperationSign): string {
  const method = sign.method.toLowerCase();
  const segments = sign.path.split("/");
  let fits = METHODS.includes(method) && sign.method === method.toUpperCase() && segments.shift() === "";
  const words = segments.map((segment) => {
    const parameter = PARAMETER.exec(segment)?.[1];
    if (parameter !== undefined) return `by-${parameter}`;
    if (!SEGMENT.test(segment) || segment.startsWith("by-")) fits = false;
    return segment.replace(/[{}]/g, "");
  });
  const name = `${method}/${words.join("/")}`;
  fits &&= name.length <= MAX_LENGTH && !MADE.test(name);
  return fits ? name : made(name, `place ${place(sign)}`);
}

function place({ method, path }: OperationSign): string {
  return `${method} ${path}`;
}

/** A readable name out of any text; `origin` is what tells it from others that read the same. */
function made(text: string, origin: string): string {
  const hash = createHash("sha256").update(origin).digest("hex").slice(0, 10);
  const readable = text.replace(/[^A-Za-z0-9_./-]+/g, "_").replace(/^[./-]+/, "");
  return `${readable.slice(0, MAX_LENGTH - 12) || "operation"}-x${hash}`;
}
