import type { OperationView } from "../../protocol.ts";
import { ownOf } from "../form/json-value.ts";

const MOST = 50;

/** Says who may call an operation, one sentence for each condition. */
export function accessWords({ access }: OperationView): readonly string[] {
  if (access === undefined) return ["Everybody who can reach the gateway."];
  const { allOf = [], anyOf = [] } = access.scopes ?? {};
  return [
    "Callers who say who they are.",
    ...(allOf.length > 0 ? [`They hold all scopes of ${listed(allOf)}.`] : []),
    ...(anyOf.length > 0 ? [`They hold at least one scope of ${listed(anyOf)}.`] : []),
    ...[access.resource ?? []]
      .flat()
      .slice(0, MOST)
      .map(
        (rule) => `They hold the ${textOf(rule, "type")} that the input names at ${textOf(rule, "pointer")}.`,
      ),
  ];
}

/** Says which plan an operation and its features need; nothing where every plan has them. */
export function planWords({ tier, features = [] }: OperationView): readonly string[] {
  return [
    ...(tier === undefined ? [] : [`Plan ${tier} or higher.`]),
    ...features
      .slice(0, MOST)
      .map((feature) => `Feature ${textOf(feature, "name")}: plan ${textOf(feature, "tier")} or higher.`),
  ];
}

const CLAIMS = [
  ["readOnly", "Only reads.", "Changes something."],
  ["destructive", "May destroy something.", "Destroys nothing."],
  ["idempotent", "Calling it again changes nothing more.", "Calling it again may do it again."],
  ["openWorld", "Reaches systems beyond its own.", "Stays within its own system."],
] as const;

/** Says in words what an operation claims of itself. */
export function annotationWords({ annotations = {} }: OperationView): readonly string[] {
  return CLAIMS.flatMap(([name, yes, no]) => {
    const claim = annotations[name];
    return claim === undefined ? [] : [claim ? yes : no];
  });
}

function listed(words: readonly string[]): string {
  return words.slice(0, MOST).join(", ") + (words.length > MOST ? ", …" : "");
}

function textOf(value: unknown, name: string): string {
  const member = ownOf(value, name);
  return typeof member === "string" ? member : "?";
}
