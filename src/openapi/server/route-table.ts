import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { type InputPlace, operationPath, placeOf } from "./input-place.ts";

/** How an operation is reached. */
export interface Route {
  readonly operation: AnyOperation;
  readonly place: InputPlace;
  /** The value of `allow`. */
  readonly allow: string;
  /** Whether its input has a member that asks for a page. */
  readonly hasCursor: boolean;
}

/** Finds operations by path: a path names one by itself, so that whoever may see it, nothing is searched. */
export class RouteTable {
  readonly #executor: Executor;
  readonly basePath: string;
  readonly #prefix: string;
  /** Only what was found: others could fill it with anything. */
  readonly #found = new Map<string, Route>();

  constructor(executor: Executor, basePath: string) {
    this.#executor = executor;
    this.basePath = basePath;
    this.#prefix = `${basePath}/`;
  }

  /** Tells whether an operation could be here. */
  covers(path: string): boolean {
    return path.startsWith(this.#prefix);
  }

  find(path: string): Route | undefined {
    const known = this.#found.get(path);
    if (known !== undefined) return known;
    const route = this.covers(path) ? this.#lookUp(path) : undefined;
    if (route !== undefined) this.#found.set(path, route);
    return route;
  }

  /** Forgets all: operations have changed. */
  clear(): void {
    this.#found.clear();
  }

  #lookUp(path: string): Route | undefined {
    const rest = path.slice(this.#prefix.length);
    const slash = rest.indexOf("/");
    if (slash < 1) return undefined;
    const name = rest.slice(slash + 1).replaceAll("%2F", "/");
    const operation = this.#executor.get(`${rest.slice(0, slash)}.${name}`);
    if (operation === undefined || operation.visibility === "internal") return undefined;
    // Of the ways a path can be written, one counts.
    if (operationPath(operation, this.basePath) !== path) return undefined;
    return toRoute(operation);
  }
}

function toRoute(operation: AnyOperation): Route {
  const place = placeOf(operation);
  const isQuery = place.place === "query";
  return {
    operation,
    place,
    allow: isQuery ? "GET, HEAD, OPTIONS" : "POST, OPTIONS",
    hasCursor: isQuery && place.parameters.some(({ name }) => name === "cursor"),
  };
}
