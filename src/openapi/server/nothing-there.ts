import { CallError } from "../../core/errors/errors.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { nearestName } from "../../core/text/nearest-name.ts";
import type { AuthenticatedRequest } from "../../http/exchange.ts";
import { operationPath } from "./input-place.ts";
import { requestError } from "./problem-answer.ts";

const OWN_PATHS = ["/batch", "/call", "/docs", "/health", "/openapi.json", "/ready"];
const SHOWN_CHARACTERS = 200;
/** How many paths of about the same length are compared; each takes some microseconds. */
const COMPARED = 200;
/** The most letters that are wrong in a name which is still recognised. */
const SLIPS = 2;

/** Says that nothing is at an address, and which one may be meant: of the operations, only those that the caller may see. */
export function nothingThere(
  { request, identity }: AuthenticatedRequest,
  executor: Executor,
  basePath: string,
): CallError {
  const { path, method } = request;
  const asked = path.slice(0, SHOWN_CHARACTERS);
  const isOperation = path.startsWith(`${basePath}/`);
  const paths = executor.list({ identity }).map((operation) => operationPath(operation, basePath));
  const near = findNear(asked, basePath, isOperation ? paths : [...OWN_PATHS, ...paths]);
  const hint =
    near !== undefined
      ? ` Did you mean ${JSON.stringify(near)}?`
      : method === "GET"
        ? " See /openapi.json for what is there."
        : "";
  const what = isOperation ? "no operation" : "nothing";
  const message = `There is ${what} at ${JSON.stringify(asked)}.${hint}`;
  return isOperation
    ? new CallError("OPERATION_NOT_FOUND", message, { stack: false })
    : requestError("NOT_FOUND", message);
}

function findNear(asked: string, basePath: string, paths: readonly string[]): string | undefined {
  const whole = paths.includes(basePath + asked) ? basePath + asked : undefined;
  const alike = paths.filter((path) => Math.abs(path.length - asked.length) <= SLIPS).slice(0, COMPARED);
  return whole ?? nearestName(asked, alike);
}
