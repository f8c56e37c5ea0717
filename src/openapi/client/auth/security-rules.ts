import type { OperationPlan } from "../plan.ts";
import { type Addition, clash } from "./addition.ts";
import type { CredentialSlot, NamedScheme } from "./credential-slot.ts";
import type { SchemeCredentials } from "./scheme-credentials.ts";

/** What an operation asks for, with the credentials that there are. */
export interface SecurityRules {
  /** What is added to every call, where it is always the same. */
  readonly fixed: readonly Addition[] | undefined;
  /** Alternatives for which every scheme has a credential, in order. */
  readonly alternatives: readonly (readonly CredentialSlot[])[];
  /** Whether a call may go without. */
  readonly optional: boolean;
  /** Whether another credential may be had than the one that was refused. */
  readonly renewable: boolean;
  /** The names of each alternative, as the document declares them. */
  readonly wanted: readonly (readonly string[])[];
  /** Those of them that have no credential; all of an alternative where each has one. */
  readonly lacking: readonly (readonly string[])[];
}

/** Reads what an operation asks for; done once for each. */
export function readSecurityRules(plan: OperationPlan, credentials: SchemeCredentials): SecurityRules {
  const undeclared = plan.security.length === 0 ? credentials.undeclared() : [];
  const declared = plan.security.map((alternative) =>
    Object.entries(alternative).map(([name, scopes]): NamedScheme => {
      const scheme = Object.hasOwn(plan.schemes, name) ? plan.schemes[name] : undefined;
      return { name, plan: scheme ?? { type: "unknown" }, scopes };
    }),
  );
  const wanted = declared.filter((schemes) => schemes.length > 0);
  const bound = [...wanted, ...undeclared.map((scheme) => [scheme])]
    .map((schemes) => schemes.map((scheme) => credentials.bind(scheme)))
    .filter((slots): slots is CredentialSlot[] => !slots.includes(undefined));
  const usable = bound.filter((slots) => !clash(slots.flatMap(({ fixed }) => fixed ?? [])));
  const [first] = usable;
  const fixed = first?.every((slot) => slot.fixed !== undefined)
    ? first.flatMap((slot) => slot.fixed ?? [])
    : undefined;
  return {
    fixed,
    alternatives: usable,
    optional: wanted.length < declared.length || plan.security.length === 0,
    renewable: fixed === undefined && usable.length > 0,
    wanted: wanted.map(namesOf),
    lacking: wanted.map((schemes) => {
      const lacking = schemes.filter((scheme) => credentials.bind(scheme) === undefined);
      return namesOf(lacking.length > 0 ? lacking : schemes);
    }),
  };
}

function namesOf(schemes: readonly NamedScheme[]): string[] {
  return schemes.map(({ name }) => name);
}
