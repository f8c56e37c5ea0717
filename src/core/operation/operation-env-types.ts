import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { NestedCallOptions } from "./operation-context.ts";
import type { AnyOperation, CallArguments, OperationMap, OutputOf } from "./operation-types.ts";

/** One operation as a function. */
export type EnvCall<T> = {
  // Declared as a method, so that a typed map may stand in for the general one.
  call(...rest: CallArguments<T, NestedCallOptions>): Promise<ResponseEnvelope<OutputOf<T>>>;
}["call"];

/** Operations as functions, by namespace and name. */
export type OperationEnv<Ops extends readonly AnyOperation[] = readonly AnyOperation[]> =
  AnyOperation extends Ops[number] ? KnownEnv : EnvOf<Ops[number]>;

/** What of the operations a map holds. */
export interface EnvOptions<Namespace extends string = string> {
  /** The namespaces the map holds, now and later; any other is not there. @default all */
  readonly namespaces?: readonly Namespace[] | undefined;
}

/** A map with some of its namespaces alone. */
export type EnvWithin<Env, Namespace extends string> = string extends Namespace
  ? Env
  : { readonly [NS in Namespace as NS extends keyof Env ? NS : never]: Env[NS & keyof Env] };

type EnvOf<Op extends AnyOperation> = {
  readonly [NS in Op["namespace"]]: {
    readonly [Member in Extract<Op, { readonly namespace: NS }> as Member["name"]]: EnvCall<Member>;
  };
};

/** Typed where the map of known operations says so, open everywhere else. */
type KnownEnv = MappedEnv<keyof OperationMap & string> & AnyEnv;

type AnyEnv = Readonly<Record<string, AnyNamespace>>;

type AnyNamespace = Readonly<Record<string, EnvCall<string>>>;

type MappedEnv<Ids extends string> = {
  readonly [NS in Ids extends `${infer Namespace}.${string}` ? Namespace : never]: AnyNamespace & {
    readonly [Id in Extract<Ids, `${NS}.${string}`> as Id extends `${NS}.${infer Name}`
      ? Name
      : never]: EnvCall<Id>;
  };
};
