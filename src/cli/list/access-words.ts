import type { AccessControl, ResourceRule } from "../../core/access/access.ts";

/** Says in words what whoever calls an operation has to hold; nothing where it is nothing. */
export function accessWords({ scopes = {}, resource = [] }: AccessControl): string {
  const { allOf = [], anyOf = [] } = scopes;
  const rules: readonly ResourceRule[] = Array.isArray(resource) ? resource : [resource as ResourceRule];
  const needs = [
    allOf.length === 0 ? "" : `the scope${allOf.length === 1 ? "" : "s"} ${listed(allOf, "and")}`,
    anyOf.length === 0 ? "" : anyWords(anyOf),
    ...rules.map(({ type, pointer }) => `the ${type} that ${fieldWords(pointer)} names`),
  ].filter((part) => part !== "");
  return needs.length === 0 ? "" : `needs ${listed(needs, "and")}`;
}

function anyWords(scopes: readonly string[]): string {
  return scopes.length === 1 ? `the scope ${scopes[0]}` : `one of the scopes ${listed(scopes, "or")}`;
}

function fieldWords(pointer: string): string {
  return pointer === "" ? "the input" : `"${pointer.slice(1).replaceAll("/", ".")}" of the input`;
}

function listed(words: readonly string[], last: "and" | "or"): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
