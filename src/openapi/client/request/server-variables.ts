import { parseUrl } from "../../../core/text/parse-url.ts";
import type { ServerPlan, ServerVariablePlan } from "../plan.ts";

/** A URL with its variables filled in, or the name of one that has no value. */
export type FilledUrl = { readonly url: string; readonly missing?: undefined } | { readonly missing: string };

/** What a scheme, host or port may be given as: nothing that ends it, or begins another. */
const AUTHORITY_VALUE = /^[A-Za-z0-9._~-]+$/;

/** What would leave the path. */
const NO_PATH_VALUE = /[?#\\]|\p{Cc}/u;

/** Fills the variables of a server's URL; a value given for one that it does not have, or may not have, is a `TypeError`. */
export function fillServerUrl(server: ServerPlan, given: Readonly<Record<string, string>>): FilledUrl {
  const names = new Set([...server.url.matchAll(/\{([^{}]*)\}/g)].map(([, name = ""]) => name));
  checkGiven(given, names, server);
  const authorityEnd = endOfAuthority(server.url);
  let missing: string | undefined;
  const url = server.url.replace(/\{([^{}]*)\}/g, (whole: string, name: string, at: number) => {
    const variable = variableOf(server, name);
    const value = Object.hasOwn(given, name) ? given[name] : (variable.default ?? variable.enum?.[0]);
    if (value === undefined) {
      missing ??= name;
      return whole;
    }
    if (Object.hasOwn(given, name)) {
      checkValue(value, { name, variable, place: placeOf(server.url, at, authorityEnd) });
    }
    return value;
  });
  return missing === undefined ? { url } : { missing };
}

function variableOf(server: ServerPlan, name: string): ServerVariablePlan {
  return (Object.hasOwn(server.variables, name) ? server.variables[name] : undefined) ?? {};
}

function checkGiven(
  given: Readonly<Record<string, string>>,
  names: ReadonlySet<string>,
  server: ServerPlan,
): void {
  for (const name of Object.keys(given)) {
    if (names.has(name) || Object.hasOwn(server.variables, name)) continue;
    const known = [...names].map((each) => JSON.stringify(each)).join(", ");
    throw new TypeError(
      `serverVariables: the server has no variable ${JSON.stringify(name)}; it has ${known || "none"}.`,
    );
  }
}

type ValuePlace = "authority" | "path" | "whole";

/** Where a variable stands; one that begins the URL and is not the scheme alone is an address by itself. */
function placeOf(url: string, at: number, authorityEnd: number): ValuePlace {
  if (at === 0 && !/^\{[^{}]*\}:/.test(url)) return "whole";
  return at < authorityEnd ? "authority" : "path";
}

function endOfAuthority(url: string): number {
  const scheme = /^[^/?#]*:\/\/|^\/\//.exec(url)?.[0];
  if (scheme === undefined) return 0;
  const rest = url.slice(scheme.length).replace(/\{[^{}]*\}/g, (name) => "x".repeat(name.length));
  const end = rest.search(/[/?#\\]/);
  return end === -1 ? url.length : scheme.length + end;
}

interface Filled {
  readonly name: string;
  readonly variable: ServerVariablePlan;
  readonly place: ValuePlace;
}

function checkValue(value: unknown, { name, variable, place }: Filled): void {
  const shownName = `serverVariables: ${JSON.stringify(name)}`;
  if (typeof value !== "string") throw new TypeError(`${shownName} must be text.`);
  if (variable.enum !== undefined) {
    if (variable.enum.includes(value)) return;
    const known = variable.enum.slice(0, 10).map((each) => JSON.stringify(each));
    throw new TypeError(`${shownName} must be one of ${known.join(", ")}.`);
  }
  if (value === variable.default) return;
  if (place === "authority" && !AUTHORITY_VALUE.test(value)) {
    throw new TypeError(`${shownName} is part of a host: only letters, digits, ".", "-", "_" and "~".`);
  }
  if (place === "path" && (NO_PATH_VALUE.test(value) || hasDots(value))) {
    throw new TypeError(`${shownName} is part of a path: no "?", "#", "\\", and no segment "." or "..".`);
  }
  if (place === "whole" && !isAddress(value)) {
    throw new TypeError(`${shownName} must be an address such as "https://api.example".`);
  }
}

function hasDots(value: string): boolean {
  return value.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
}

function isAddress(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || parseUrl(value) === undefined) return false;
  const { username, password } = new URL(value);
  return username + password === "" && !NO_PATH_VALUE.test(value) && !hasDots(value);
}
